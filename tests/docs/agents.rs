//! The page docs/how-to/configure-an-agent.md: written from the data about agents, and its
//! configurations as they stand there, with a script in the place of each program.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use git_handoff::repository::config::{PRESETS, Preset};
use serde::Deserialize;
use serde_json::{Value, json};

use super::pages;
use crate::common::Environment;

/// The versions of an agent's package.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Versions {
    package: String,
    version: String,
    /// The version that worked in all ways.
    passed: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> PathBuf {
    root().join("docs/how-to/configure-an-agent.md")
}

/// Returns the presets in order of their titles.
fn presets() -> Vec<(&'static str, &'static Preset)> {
    let mut presets: Vec<_> = PRESETS.iter().map(|(name, preset)| (name.as_str(), preset)).collect();
    presets.sort_by_key(|(_, preset)| preset.title.to_lowercase());
    presets
}

/// Returns a line of git's configuration, in quotes if git needs them.
fn setting(key: &str, value: &str) -> String {
    if value.contains(['"', '\\', '#', ';']) {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        format!("\t{key} = \"{value}\"\n")
    } else {
        format!("\t{key} = {value}\n")
    }
}

/// Returns the settings of an agent that runs with a key.
fn block(name: &str, preset: &Preset) -> String {
    let mut block = format!("[handoff \"subagent.{name}\"]\n") + &setting("command", &preset.command);
    preset
        .env
        .iter()
        .chain(&preset.confined)
        .for_each(|(variable, value)| block += &setting("env", &format!("{variable}={value}")));
    if !preset.pass.is_empty() {
        block += &setting("passEnv", &preset.pass.join(" "));
    }
    block + &setting("secretEnv", &preset.keys[0])
}

/// Returns names as a sentence has them.
fn listed(names: &[String], word: &str) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} {word} {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Returns the lines about what an agent needs, leaves and reports.
fn facts(preset: &Preset) -> String {
    let mut facts = String::new();
    let mut add = |fact: String| {
        let mut line = "-".to_owned();
        for word in fact.split(' ') {
            if line.chars().count() + 1 + word.chars().count() > 100 {
                facts += &(std::mem::replace(&mut line, " ".to_owned()) + "\n");
            }
            line = format!("{line} {word}");
        }
        facts += &(line + "\n");
    };
    let lines = |field: &str, paths: &[PathBuf]| {
        paths.iter().map(|path| format!("{field} = {}", path.display())).collect::<Vec<_>>()
    };
    let folders: Vec<PathBuf> = preset.folders.iter().map(|folder| folder.path.clone()).collect();
    let login = [lines("readable", &preset.readable), lines("private", &folders)].concat();
    add(format!("Login: {}", listed(&login, "and")));
    for folder in &preset.folders {
        let path = |file: &PathBuf| folder.path.join(file).display().to_string();
        let shared: Vec<String> = folder.login.iter().map(path).collect();
        if !shared.is_empty() {
            add(format!("Yours, not a copy: {}", listed(&shared, "and")));
        }
        let checked: Vec<String> = folder.checked.iter().map(path).collect();
        if !checked.is_empty() {
            add(format!("Copied, and given back if renewed: {}", listed(&checked, "and")));
        }
        if let Some((variable, below)) = folder.variable()
            && below.is_empty()
        {
            add(format!("`{variable}` moves `{}`", folder.path.display()));
        }
    }
    for service in &preset.services {
        add(format!("With `{}`, the login is that of {}", service.variable, service.title));
    }
    if !preset.borrowed.is_empty() {
        add(format!("Given if it is the only login: {}", listed(&preset.borrowed, "or")));
    }
    if preset.keys.len() > 1 {
        add(format!("Other keys: {}", listed(&preset.keys[1..], "or")));
    }
    if !preset.exclude.is_empty() {
        add(format!("Left out of the patch: {}", listed(&preset.exclude, "and")));
    }
    let rules = &preset.messages;
    let recorded = [
        ("model, ", preset.prints_text || rules.iter().any(|rule| rule.model.is_some())),
        ("session, ", rules.iter().any(|rule| rule.session.is_some())),
        ("tokens", true),
        (", price", preset.prints_text || rules.iter().any(|rule| rule.cost.is_some())),
        (" and errors", true),
    ];
    if preset.prints_text || !rules.is_empty() {
        let what: String = recorded.iter().filter(|(_, is_there)| *is_there).map(|(what, _)| *what).collect();
        add(format!("Recorded from its report: {what}"));
    }
    if !preset.never.is_empty() {
        add(format!("Not tried again after {}", listed(&preset.never, "or")));
    }
    facts
}

/// Returns the sections about agents.
fn sections() -> String {
    let mut text = String::new();
    for (name, preset) in presets() {
        let block = block(name, preset);
        let (title, note) = (&preset.title, preset.note.trim());
        let note = if note.is_empty() { String::new() } else { format!("{note}\n\n") };
        let _ = writeln!(text, "## {title}\n\n{note}```ini\n{block}```\n\n{}", facts(preset));
    }
    text
}

/// Returns the table of versions.
fn versions() -> String {
    let data = fs::read_to_string(root().join("tests/agents/versions.toml")).expect("the versions are there");
    let versions: BTreeMap<String, Versions> = basic_toml::from_str(&data).expect("the versions are a table");
    assert!(versions.keys().eq(PRESETS.keys()), "each agent has its versions, and no other has");
    let mut table = "| agent | package | version that passed |\n|---|---|---|\n".to_owned();
    for (name, preset) in presets() {
        let Versions { package, version, passed } = &versions[name];
        let is_number = |text: &str| text.split('.').all(|part| part.parse::<u64>().is_ok());
        assert!(is_number(version) && is_number(passed), "{name} has versions");
        let (registry, package) = package.split_once(':').expect("a package has a registry");
        let _ = writeln!(table, "| {} | {registry}: `{package}` | {passed} |", preset.title);
    }
    table
}

/// Replaces the lines between two marks.
fn replaced(page: &str, mark: &str, text: &str) -> String {
    let begin = page.find(&format!("<!-- {mark}:")).expect("the page has the mark");
    let begin = begin + page[begin..].find('\n').expect("the mark ends its line") + 1;
    let end = page.find(&format!("<!-- /{mark} -->")).expect("the page has the end mark");
    format!("{}\n{}\n{}", &page[..begin], text.trim_end().to_owned() + "\n", &page[end..])
}

#[test]
fn the_page_is_written_from_the_data() {
    let found = fs::read_to_string(page()).expect("the page is there");
    let expected = replaced(&replaced(&found, "agents", &sections()), "versions", &versions());
    if std::env::var_os("HANDOFF_UPDATE_DOCS").is_some() {
        fs::write(page(), &expected).expect("the page can be written");
    } else {
        assert_eq!(found, expected, "HANDOFF_UPDATE_DOCS=1 cargo test --test it docs::agents writes the page");
    }
}

/// The work of every stand-in: it edits the file that the task names, writes a report, and prints a
/// summary.
const WORK: &str = r#"
file=$(printf '%s\n' "$task" | sed -n 's/.*"file": *"\([^"]*\)".*/\1/p')
printf '// edited by %s\n' "${0##*/}" >>"$file"
printf 'attempt %s of %s/%s\n' "$HANDOFF_ATTEMPT" "$HANDOFF_RUN" "$HANDOFF_ITEM" >outputs/report.txt
printf '{"summary":"edited","verify":{"passed":true}}\n' >"$HANDOFF_RESULT"
"#;

/// How a program that has the task in its last argument takes it.
const LAST: &str = r#"for last in "$@"; do :; done; task=$last"#;

/// The programs: the options they insist on, and how they take their task.
const PROGRAMS: &[(&str, &str, &str)] = &[
    (
        "claude",
        "-p --output-format stream-json --verbose --permission-mode bypassPermissions Do",
        "test \"$IS_SANDBOX\" = 1; task=$(cat); mkdir .claude; echo {} >.claude/settings.local.json",
    ),
    ("codex", "exec --json --dangerously-bypass-approvals-and-sandbox Do", "task=$(cat)"),
    ("gemini", "--skip-trust --approval-mode yolo --output-format stream-json -p Do", "task=$(cat)"),
    (
        "aider",
        "--yes-always --no-git",
        r#"for last in "$@"; do :; done
test "$last" = "$HANDOFF_TASK"
case "$*" in *' --read inputs/note '*) ;; *) exit 66 ;; esac
mkdir .aider.tags.cache.v4
: >.aider.tags.cache.v4/cache.db
: >"$TMPDIR/chat"
task=$(cat "$last")"#,
    ),
    ("opencode", "run Do", LAST),
    ("copilot", "--allow-all-tools --no-color -p Do", LAST),
    ("qwen", "--yolo --output-format stream-json -p Do", "task=$(cat)"),
    ("mini", "--yolo --exit-immediately --output", LAST),
    ("script", "", "task=$(cat); test \"$LOG_LEVEL\" = debug"),
];

#[test]
fn every_configuration_of_the_page_runs() {
    let env = Environment::example("handoff-dag");
    let page = fs::read_to_string(page()).expect("the page is there");
    let settings: String = page.split("```ini\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    env.write("home/agents.config", &settings);
    env.git(["config", "include.path", "../../home/agents.config"]).success();
    let note = json!({"id": "note", "executor": "command", "inputs": {"command": "echo note >outputs/note"}});
    let mut items = vec![note];
    for (name, options, take) in PROGRAMS {
        let script = format!(
            "#!/bin/sh\nset -eu\ncase \"$*\" in '{options}'*) ;; *) echo \"$*\" >&2; exit 64 ;; esac\n{take}{WORK}"
        );
        let file = if *name == "script" { "repo/.handoff/agent.sh".to_owned() } else { format!("bin/{name}") };
        env.write(&file, &script);
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(env.path().join(&file), executable).expect("the mode can be set");
        let inputs = json!({"subagent": name, "workerInput": {"goal": "Edit it", "file": "src/main.ts"}});
        let needs = json!({"note": {"from": "note", "select": {"kind": "output", "path": "note"}}});
        items.push(json!({"id": name, "executor": "dispatch", "inputs": inputs, "needs": needs}));
    }
    let count = settings.matches("[handoff \"subagent.").count();
    assert_eq!(count, PROGRAMS.len(), "each configuration of the page has a stand-in here");
    env.git(["add", ".handoff"]).success();
    env.git(["commit", "--quiet", "--message", "Add the agent"]).success();
    env.write("plan.json", &json!({"id": "agents", "items": items}).to_string());
    let path = std::env::join_paths([env.path().join("bin")]).expect("the path is plain");
    let path = format!("{}:$PATH", path.display());
    let keys: BTreeSet<&str> = settings.lines().filter_map(|line| line.trim().strip_prefix("secretEnv = ")).collect();
    let keys: String =
        keys.into_iter().fold(String::new(), |text, name| text + &format!("{name}=the-value-of-{name} "));
    let run = env.shell("repo", &format!("{keys}PATH=\"{path}\" git handoff --json run ../plan.json"));
    let answer: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("the answer is JSON\n{run}"));
    for item in answer["items"].as_array().expect("there are items").iter().skip(1) {
        let name = item["id"].as_str().expect("an id is text");
        let transcript = env.handoff(["cat", &format!("agents/{name}:transcript")]);
        assert_eq!(item["status"], "done", "{item}\n{transcript}");
        let patch = env.handoff(["cat", &format!("agents/{name}:patch")]).success();
        let by = if name == "script" { "agent.sh" } else { name };
        assert!(patch.contains(&format!("+// edited by {by}\n")), "{patch}");
        assert_eq!(patch.matches("diff --git").count(), 1, "nothing but the file was changed: {patch}");
        let report = env.handoff(["cat", &format!("agents/{name}:outputs/report.txt")]).success();
        assert_eq!(report, format!("attempt 1 of agents/{name}\n"));
    }
    env.handoff(["verify", "agents"]).success();
}

#[test]
fn a_secret_reaches_the_worker_and_not_the_transcript() {
    let env = Environment::example("handoff-dag");
    env.git(["config", "handoff.subagent.code-edit.secretEnv", "TOKEN"]).success();
    env.git([
        "config",
        "handoff.subagent.code-edit.command",
        "echo it is $TOKEN >&2; echo ${#TOKEN} >outputs/length; echo >>src/main.ts",
    ])
    .success();
    env.git(["config", "handoff.subagent.apply-patch.setup", "true"]).success();
    let run = env.shell("repo", "TOKEN=hunter2hunter2 git handoff run plan.json");
    assert!(!run.stdout.contains("hunter2") && !run.stderr.contains("hunter2"), "{run}");
    assert_eq!(env.handoff(["cat", "handoff-dag-1/edit-a:outputs/length"]).success(), "14\n");
    let transcript = env.handoff(["cat", "handoff-dag-1/edit-a:transcript"]).success();
    assert!(transcript.starts_with("it is ") && !transcript.contains("hunter2"), "{transcript}");
    let manifest = env.handoff(["cat", "handoff-dag-1/edit-a:manifest"]).success();
    assert!(manifest.contains("\"secretEnv\":[\"TOKEN\"]") && !manifest.contains("hunter2"), "{manifest}");
}

#[test]
fn worker_gets_only_listed_variables() {
    let env = Environment::example("handoff-dag");
    env.git(["config", "handoff.subagent.code-edit.command", "env >outputs/env; echo >>src/main.ts"]).success();
    let _ = env.shell("repo", "UNNAMED=1 LC_TIME=C git handoff run plan.json");
    let stdout = env.handoff(["cat", "handoff-dag-1/edit-a:outputs/env"]).success();
    let mut names: Vec<&str> = stdout.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    names.retain(|name| !matches!(*name, "PWD" | "OLDPWD" | "SHLVL" | "_"));
    let ours = ["HANDOFF_ATTEMPT", "HANDOFF_BASE", "HANDOFF_ITEM", "HANDOFF_RESULT", "HANDOFF_RUN", "HANDOFF_TASK"];
    assert_eq!(names, [&ours[..], &["HOME", "LANG", "LC_TIME", "PATH", "TMPDIR", "TZ"]].concat());
}

/// Words after an agent's name that start no work.
const NO_WORK: [&str; 3] = ["mcp", "plugin", "--version"];

#[test]
fn every_line_that_starts_an_agent_is_one_that_works() {
    let mut tried = 0;
    let pages = ["README.md".to_owned(), "plugin/README.md".to_owned()].into_iter().chain(pages::below("docs"));
    for page in pages {
        let text = pages::text(&page);
        let blocks = text.split("\n```").skip(1).step_by(2);
        for line in
            blocks.flat_map(|block| block.lines().skip(1)).chain(text.lines().filter(|line| line.starts_with("    ")))
        {
            let Some((name, preset, words)) = agent_line(line) else { continue };
            tried += 1;
            let remarks = preset.remarks(&words);
            assert_eq!(remarks, Vec::<&str>::new(), "{page}: {line}");
            if line.trim_start().starts_with("command = ") {
                assert!(line.contains(name), "{page}");
                assert_eq!(line, setting("command", &preset.command).trim_end(), "{page}");
            }
        }
    }
    assert!(tried > PRESETS.len(), "only {tried} lines were tried");
}

/// Returns the agent that a line of a page starts, with the words after its name.
fn agent_line(line: &str) -> Option<(&'static str, &'static Preset, Vec<String>)> {
    let line = line.trim_start().trim_start_matches("$ ");
    let line = line.strip_prefix("command = ").map_or(line, |value| value.trim_matches('"'));
    let line = line
        .split_once(" -- ")
        .filter(|(before, _)| before.contains("handoff record"))
        .map_or(line, |(_, after)| after);
    let mut words = line.split_whitespace();
    let (name, preset) = Preset::of_program(words.next()?)?;
    let words: Vec<String> = words.map(str::to_owned).collect();
    (!words.first().is_some_and(|first| NO_WORK.contains(&first.as_str()))).then_some((name, preset, words))
}
