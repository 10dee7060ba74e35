//! Translates the published rules of gitleaks into `src/model/credential/gitleaks.json`, and
//! compares.
//!
//! The patterns are Go's RE2. Three things differ in the crate `regex`, and [`translated`] escapes
//! them: braces that begin no repetition, brackets inside brackets, and the doubled signs `&&`,
//! `--`, `~~` inside brackets. Rules without a pattern for content are left out.

use std::fmt::Write as _;
use std::path::Path;

use regex::bytes::RegexBuilder;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The file that gitleaks publishes.
const PUBLISHED: &str = include_str!("../fixtures/gitleaks.toml");

/// Rules with more false alarms than findings.
const UNUSED: [&str; 1] = ["generic-api-key"];

/// The Base64 text after the key in every SSH signature by an ed25519 key, in lower case. After
/// some keys it looks like a token of Square.
const SIGNATURE: &str = "2dpdaaaaaaaaaagc2hhntey";

#[derive(Deserialize)]
struct File {
    allowlist: Allowlist,
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    id: String,
    regex: Option<String>,
    path: Option<String>,
    #[serde(rename = "secretGroup")]
    secret_group: Option<usize>,
    #[serde(default)]
    entropy: f64,
    #[serde(default)]
    keywords: Vec<String>,
    #[serde(default)]
    allowlists: Vec<Allowlist>,
}

#[derive(Deserialize)]
struct Allowlist {
    condition: Option<String>,
    #[serde(rename = "regexTarget")]
    regex_target: Option<String>,
    #[serde(default)]
    regexes: Vec<String>,
    #[serde(default)]
    stopwords: Vec<String>,
    #[serde(default)]
    paths: Vec<String>,
}

#[test]
fn the_rules_are_those_that_gitleaks_publishes() {
    let file: File = basic_toml::from_str(PUBLISHED).expect("the file is TOML");
    let content = file.rules.iter().filter(|rule| rule.regex.is_some()).count();
    // One rule looks at a path alone.
    assert_eq!((file.rules.len(), content), (222, 221));
    assert!(UNUSED.iter().all(|name| file.rules.iter().any(|rule| rule.id == *name)));
    // gitleaks passes over images and archives to save time; here nothing is stored unseen.
    let of_all = Allowlist { paths: Vec::new(), ..file.allowlist };
    let mut text =
        format!("{{\"exceptions\":[\n{},\n{}],\n\"rules\":[", exception(&of_all), json!({ "stop_words": [SIGNATURE] }));
    let used = file.rules.iter().filter(|rule| rule.regex.is_some() && !UNUSED.contains(&rule.id.as_str()));
    for (at, rule) in used.enumerate() {
        let comma = if at == 0 { "" } else { "," };
        write!(text, "{comma}\n{}", shape(rule)).expect("writing to a string does not fail");
    }
    text.push_str("\n]}\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/model/credential/gitleaks.json");
    if std::env::var_os("HANDOFF_UPDATE_DOCS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let vendored = std::fs::read_to_string(&path).unwrap();
    assert!(
        vendored == text,
        "{} is not what tests/fixtures/gitleaks.toml says; see README.md beside it",
        path.display()
    );
}

/// Returns a rule as the program reads it; absent fields are omitted.
fn shape(rule: &Rule) -> Value {
    let mut shape = Map::new();
    let mut add = |name: &str, value: Value| shape.insert(name.to_owned(), value);
    add("name", rule.id.as_str().into());
    add("pattern", rule.regex.as_deref().map(translated).into());
    add("words", lower(&rule.keywords));
    if let Some(group) = rule.secret_group.filter(|group| *group > 0) {
        add("group", group.into());
    }
    if rule.entropy > 0.0 {
        add("entropy", rule.entropy.into());
    }
    if let Some(path) = &rule.path {
        add("path", translated(path).into());
    }
    if !rule.allowlists.is_empty() {
        add("exceptions", rule.allowlists.iter().map(exception).collect());
    }
    shape.into()
}

fn exception(list: &Allowlist) -> Value {
    let patterns = |sources: &[String]| sources.iter().map(|source| translated(source)).collect::<Value>();
    let all = list.condition.as_deref().is_some_and(|word| matches!(word, "AND" | "and" | "&&"));
    let target = list.regex_target.as_deref().filter(|target| matches!(*target, "match" | "line"));
    let fields = [
        ("all", Value::from(all)),
        ("target", target.unwrap_or("secret").into()),
        ("patterns", patterns(&list.regexes)),
        ("stop_words", lower(&list.stopwords)),
        ("paths", patterns(&list.paths)),
    ];
    let is_set = |value: &Value| *value != json!(false) && *value != json!("secret") && *value != json!([]);
    fields.into_iter().filter(|(_, value)| is_set(value)).map(|(name, value)| (name.to_owned(), value)).collect()
}

fn lower(words: &[String]) -> Value {
    words.iter().map(|word| Value::from(word.to_ascii_lowercase())).collect()
}

/// Returns a pattern of Go's as one of ours that means the same.
fn translated(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 8);
    let mut chars = source.char_indices().peekable();
    // Where the brackets began that are open.
    let mut class: Option<usize> = None;
    while let Some((at, c)) = chars.next() {
        let rest = &source[at..];
        match (c, class) {
            ('\\', _) => {
                out.push(c);
                out.extend(chars.next().map(|(_, escaped)| escaped));
                continue;
            }
            ('[', None) => {
                class = Some(at);
                out.push(c);
                // A bracket that closes is itself at the beginning.
                if chars.peek().is_some_and(|(_, next)| *next == '^') {
                    out.extend(chars.next().map(|(_, next)| next));
                }
                if chars.peek().is_some_and(|(_, next)| *next == ']') {
                    out.push('\\');
                    out.extend(chars.next().map(|(_, next)| next));
                }
                continue;
            }
            ('[', Some(_)) if rest.starts_with("[:") => {
                let end = rest.find(":]").map_or(rest.len(), |end| end + 2);
                out.push_str(&rest[..end]);
                while chars.peek().is_some_and(|(next, _)| *next < at + end) {
                    chars.next();
                }
                continue;
            }
            (']', Some(_)) => class = None,
            ('[', Some(_)) => out.push('\\'),
            ('&' | '-' | '~', Some(_)) if out.ends_with(c) && !out.ends_with(&format!("\\{c}")) => out.push('\\'),
            ('{', None) if !is_repetition(rest) => out.push('\\'),
            _ => {}
        }
        out.push(c);
    }
    out
}

/// Returns whether a brace begins `{2}`, `{2,}` or `{2,3}`.
fn is_repetition(rest: &str) -> bool {
    let Some((inside, _)) = rest[1..].split_once('}') else { return false };
    let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && is_number(least) && is_number(most)
}

#[test]
fn patterns_that_go_reads_differently_are_rewritten() {
    for (go, ours) in [
        (r"^\${(?:[A-Z_]+)}$", r"^\$\{(?:[A-Z_]+)}$"),
        (r"a{2}b{3,}c{4,5}", r"a{2}b{3,}c{4,5}"),
        (r"[[:alnum:]]{14}", r"[[:alnum:]]{14}"),
        (r"[a[b]", r"[a\[b]"),
        (r"[]a]", r"[\]a]"),
        (r"[^]a]", r"[^\]a]"),
        (r"[!-&&]", r"[!-&\&]"),
        (r"[\[{]", r"[\[{]"),
        (r"\{\{[ \t]*", r"\{\{[ \t]*"),
    ] {
        assert_eq!(translated(go), ours);
        RegexBuilder::new(ours).unicode(false).build().unwrap();
    }
}
