//! Validates the JSON output of every test against the schemas in `docs/schema/`.
//!
//! The published schemas let fields be added. Here they do not: a field that is printed and not
//! described fails the test that saw it.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use jsonschema::{Retrieve, Uri, Validator};
use serde_json::{Value, json};

use super::program_path;

/// The prefix and suffix of schema names.
const FORM: (&str, &str) = ("git-handoff.", "/1");

/// Where schemas are for one another; there is no such place, so that nothing is ever looked for in
/// it.
const PLACE: &str = "schemas:///";

/// Lines that say of themselves no form: the words of their command, and their schema.
/// `docs/reference/json.md` has the same.
const PLAIN: [(&[&str], &str); 5] = [
    (&["log"], "log"),
    (&["thread", "log"], "thread-log"),
    (&["packet", "new"], "packet"),
    (&["packet", "auto"], "packet"),
    (&["offer"], "descriptor"),
];

/// Commands that print what was recorded, or a format of others, whether they are asked for JSON or
/// not.
const BYTES: [&[&str]; 11] = [
    &["bundle"],
    &["cat"],
    &["complete"],
    &["completions"],
    &["doc", "diff"],
    &["doc", "get"],
    &["export"],
    &["help"],
    &["resume"],
    &["thread", "cat"],
    &["thread", "diff"],
];

/// Validates the JSON output of a command against its schema, if the command is ours or a
/// shell that may have run it.
#[track_caller]
pub(crate) fn hold(command: &Command, output: &Output) {
    let words: Vec<String> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let texts = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    // Ignores output cut off by a signal.
    let whole = output.status.code().is_some();
    if output.status.success() && command.get_program() == program_path() {
        taken_plans(command.get_current_dir(), &words).iter().for_each(hold_plan);
    }
    hold_printed(&command.get_program().to_string_lossy(), &words, [&texts[0], &texts[1]], whole);
}

/// The same, for a program with this output; `whole` is false where it may have been cut
/// off.
#[track_caller]
pub(crate) fn hold_printed(program: &str, words: &[&str], texts: [&str; 2], whole: bool) {
    let is_ours = program == program_path();
    if !is_ours && program != "sh" {
        return;
    }
    let is_json = is_ours && asks_for_json(words);
    for (at, text) in texts.iter().enumerate() {
        for line in text.lines() {
            match serde_json::from_str(line) {
                Ok(answer) => hold_line(&answer, is_ours.then_some(words), is_json && at == 0),
                Err(_) => assert!(!(is_json && whole && at == 0), "{words:?} printed what is no JSON: {line}"),
            }
        }
    }
}

/// Validates an answer against the schema that it names.
#[track_caller]
pub(crate) fn hold_answer(answer: &Value) {
    let form = form(answer).unwrap_or_else(|| panic!("an answer names no form: {answer}"));
    hold_to(form, answer);
}

/// Validates an answer of an MCP tool against its schema.
#[track_caller]
pub(crate) fn hold_tool(tool: &str, result: &Value) {
    let mut answer = result["structuredContent"].clone();
    if let Some(fields) = answer.as_object_mut().filter(|_| !matches!(tool, "submit" | "plan_validate")) {
        // Every answer may have warnings; there they are a part of the form.
        let warnings = fields.remove("warnings").unwrap_or_else(|| json!([""]));
        assert!(warnings.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(Value::is_string)), "{tool}");
    }
    match tool {
        "handoff_checkpoint" if result["isError"] == false => hold_to("descriptor", &answer),
        _ => hold_answer(&answer),
    }
}

/// Validates an accepted plan, as a value or as its text, against the schema of plans: that
/// refuses no good one.
#[track_caller]
pub(crate) fn hold_plan(plan: &Value) {
    static PLAN: OnceLock<Validator> = OnceLock::new();
    let read = plan.as_str().map(|text| serde_json::from_str(text).expect("a plan that was taken is JSON"));
    let plan: &Value = read.as_ref().unwrap_or(plan);
    let wrong: Vec<String> = PLAN.get_or_init(|| published("plan")).iter_errors(plan).map(|e| e.to_string()).collect();
    assert!(wrong.is_empty(), "docs/schema/plan.json refuses {plan}\n{}", wrong.join("\n"));
}

/// Validates an answer against a file in `docs/schema/`.
#[track_caller]
pub(crate) fn hold_to(name: &str, answer: &Value) {
    let wrong: Vec<String> =
        validator(name).iter_errors(answer).map(|error| format!("at {:?}: {error}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "docs/schema/{name}.json does not describe {answer}\n{}", wrong.join("\n"));
}

/// Returns the names of all schemas.
pub(crate) fn schemas() -> BTreeSet<String> {
    documents().keys().map(|name| name.strip_suffix(".json").expect("a schema is JSON").to_owned()).collect()
}

/// Returns the names of the schemas of lines that say of themselves no form.
pub(crate) fn plain() -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (words, name) in PLAIN {
        all.entry(name.to_owned()).or_default().push(words.join(" "));
    }
    all
}

/// Returns the published schema of a name, which lets fields be added.
pub(crate) fn published(name: &str) -> Validator {
    build(name, false)
}

#[track_caller]
fn hold_line(answer: &Value, words: Option<&[&str]>, is_json: bool) {
    let schema = form(answer);
    let plain = words.and_then(|words| PLAIN.iter().find(|(command, _)| is_json && is_of(words, command)));
    match (schema, words, plain) {
        (None, _, Some((_, name))) => hold_to(name, answer),
        (Some(form), words, _) => {
            hold_to(form, answer);
            if let Some(words) = words.filter(|_| is_json) {
                assert!(may_answer(words, form), "docs/reference/json.md does not say that {words:?} answers {form}");
            }
        }
        (None, _, None) => assert!(!is_json, "{words:?} printed what has no schema: {answer}"),
    }
}

/// Returns the plans that a command is given in files.
fn taken_plans(dir: Option<&Path>, words: &[&str]) -> Vec<Value> {
    if !["extend", "run", "submit", "validate"].iter().any(|command| is_of(words, &[command])) {
        return Vec::new();
    }
    // Whatever is a file of JSON among the words is one.
    let texts = words.iter().filter_map(|file| fs::read(dir.unwrap_or(Path::new("")).join(file)).ok());
    texts.filter_map(|text| serde_json::from_slice(&text).ok()).collect()
}

/// Returns whether a command answers in JSON, and with nothing else.
fn asks_for_json(words: &[&str]) -> bool {
    let options = words.iter().take_while(|word| **word != "--");
    let tells = ["--help", "-h", "--version", "-V"];
    let is_json = options.clone().any(|word| *word == "--json") && !options.clone().any(|word| tells.contains(word));
    is_json && !BYTES.iter().any(|command| is_of(words, command))
}

/// Returns true if these are words of a command, which come first but for options of all commands.
fn is_of(words: &[&str], command: &[&str]) -> bool {
    let mut rest = words.iter().copied();
    let mut own = Vec::new();
    while let Some(word) = rest.next() {
        match word {
            "--actor" => drop(rest.next()),
            option if option.starts_with('-') => {}
            word => own.push(word),
        }
    }
    own.starts_with(command)
}

/// Returns the name of the form that an answer says it has.
fn form(answer: &Value) -> Option<&str> {
    answer.as_object()?.get("schema")?.as_str()?.strip_prefix(FORM.0)?.strip_suffix(FORM.1)
}

/// Returns whether the list of answers says of a command that it answers in a form.
fn may_answer(words: &[&str], form: &str) -> bool {
    static LIST: OnceLock<String> = OnceLock::new();
    let list = LIST
        .get_or_init(|| fs::read_to_string(root().join("docs/reference/json.md")).expect("there is a list of answers"));
    let row = list.lines().find(|line| line.starts_with(&format!("| [`{}{form}{}`]", FORM.0, FORM.1)));
    let who = row.and_then(|row| row.split(" | ").nth(1)).unwrap_or_default();
    let mut commands = who.split('`').skip(1).step_by(2).map(|command| command.split(' ').collect::<Vec<_>>());
    who.contains("every ")
        || commands.any(|command| match command.as_slice() {
            ["git", "handoff"] => is_of(words, &[]),
            // Skips the value of an option.
            [command @ .., option] if option.starts_with("--") => is_of(words, command) && words.contains(option),
            command => is_of(words, command),
        })
}

/// Returns what checks the answers of a form, where no field may be added.
fn validator(name: &str) -> &'static Validator {
    static ALL: OnceLock<BTreeMap<String, OnceLock<Validator>>> = OnceLock::new();
    let all = ALL.get_or_init(|| schemas().into_iter().map(|label| (label, OnceLock::new())).collect());
    let one = all.get(name).unwrap_or_else(|| panic!("there is no docs/schema/{name}.json"));
    one.get_or_init(|| build(name, true))
}

fn build(name: &str, closed: bool) -> Validator {
    let mut all = documents().clone();
    let mut whole = json!({ "$ref": format!("{PLACE}{name}.json") });
    if closed {
        all.values_mut().for_each(|schema| close(schema, false));
        close(&mut whole, true);
    }
    let built = jsonschema::options().with_retriever(Documents(all)).build(&whole);
    built.unwrap_or_else(|error| panic!("docs/schema/{name}.json is no schema: {error}"))
}

/// Refuses fields that a schema does not describe, in it and in all that it is made of. `whole`
/// says that it describes all of a value, and not a part of what others describe as well.
fn close(schema: &mut Value, whole: bool) {
    const PARTS: [&str; 7] = ["$ref", "allOf", "anyOf", "oneOf", "properties", "then", "else"];
    let Value::Object(schema) = schema else { return };
    for (key, inner) in schema.iter_mut() {
        match (key.as_str(), inner) {
            ("properties" | "patternProperties", Value::Object(all)) => {
                all.values_mut().for_each(|one| close(one, true));
            }
            ("$defs", Value::Object(all)) => all.values_mut().for_each(|one| close(one, false)),
            ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => all.iter_mut().for_each(|one| close(one, false)),
            ("items" | "additionalProperties", one) => close(one, true),
            ("then" | "else", one) => close(one, false),
            _ => {}
        }
    }
    if whole && !schema.contains_key("additionalProperties") && PARTS.iter().any(|part| schema.contains_key(*part)) {
        schema.insert("unevaluatedProperties".to_owned(), false.into());
    }
}

/// Returns all schemas, by the names of their files.
fn documents() -> &'static BTreeMap<String, Value> {
    static ALL: OnceLock<BTreeMap<String, Value>> = OnceLock::new();
    ALL.get_or_init(|| {
        let files = fs::read_dir(root().join("docs/schema")).expect("there are schemas");
        let read = files.map(|file| {
            let path = file.expect("the folder is readable").path();
            let text = fs::read_to_string(&path).expect("a schema is text");
            let name = path.file_name().and_then(|name| name.to_str()).expect("our names are text").to_owned();
            (name, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        });
        read.collect()
    })
}

/// The schemas by the places that they have for one another.
struct Documents(BTreeMap<String, Value>);

impl Retrieve for Documents {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn Error + Send + Sync>> {
        let name = uri.as_str().strip_prefix(PLACE).unwrap_or_default();
        self.0.get(name).cloned().ok_or_else(|| format!("there is no schema {uri}").into())
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}
