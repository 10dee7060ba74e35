//! Nothing that others wrote steers a terminal, hides, turns a text round or begins a line,
//! whatever command prints it.
//!
//! The commands are those that the program itself lists: one that is new fails the test until it is
//! asked here.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::common::{Environment, Output};

/// Turns the text round, hides, isolates and separates; a name may hold that.
const ODD: &str = "x\u{202e}y\u{200b}\u{2066}z\u{2069}\u{feff}\u{61c}\u{2028}\u{e0041}w";

/// Clears the screen, sets the title, turns the text red, and begins a line of its own; a person's
/// word may hold that.
const STEERS: &str = "eve\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{9d}0;x\u{9c}\u{7f}\u{202e}\u{200f}\u{8}\r\n✓ forged";

/// Commands that print bytes as they are on standard output, since that is what they are for.
const BYTES: [&str; 8] = ["cat", "doc get", "doc diff", "thread cat", "thread diff", "resume", "bundle", "mcp"];

fn is_bad(c: char) -> bool {
    matches!(u32::from(c), 0..=8 | 0xb..=0x1f | 0x7f..=0x9f | 0x61c | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f
        | 0xfeff | 0xe0000..=0xe007f)
}

/// Returns all commands that do something. Only a command with commands below it has a `help`
/// among its completions.
fn commands(env: &Environment, above: &[&str]) -> BTreeSet<String> {
    let completions = env.handoff_in("home", [&["complete", "--"], above, &[""]].concat()).success();
    let mut names: Vec<&str> = completions.lines().collect();
    if !names.contains(&"help") {
        return BTreeSet::from([above.join(" ")]);
    }
    names.retain(|name| *name != "help");
    names.into_iter().flat_map(|name| commands(env, &[above, &[name]].concat())).collect()
}

/// A repository with the worst possible names everywhere.
struct Hostile {
    env: Environment,
}

impl Hostile {
    fn new() -> Self {
        let env = Environment::empty();
        env.write("repo/main.txt", "1\n");
        env.git(["init", "--quiet"]).success();
        env.git(["add", "."]).success();
        env.git(["commit", "--quiet", "--message", "Start"]).success();
        env.git_in("", ["init", "--quiet", "--bare", "hub"]).success();
        env.git(["remote", "add", ODD, "../hub"]).success();
        let hostile = Self { env };
        hostile.runs();
        hostile.threads();
        for dir in ["hub", "repo"] {
            hostile.env.git_in(dir, ["config", "core.quotePath", "false"]).success();
        }
        hostile
    }

    /// Says something in the worst of names.
    fn say(&self, arguments: &[&str]) -> Output {
        self.env.handoff([&["--actor", STEERS], arguments].concat())
    }

    fn runs(&self) {
        let env = &self.env;
        let item = |id: &str, command: String, more: serde_json::Value| {
            let mut item = json!({ "id": id, "executor": "command", "inputs": { "command": command } });
            item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            item
        };
        let made = format!("echo 2 >> main.txt; printf '\\033[31m' > 'outputs/{ODD}'");
        let items = [
            item(ODD, made, json!({})),
            item("fails", "printf '\\033]0;x\\007\\233' >&2; exit 3".into(), json!({})),
            item("waits", "true".into(), json!({ "depends_on": ["fails"] })),
        ];
        env.write("plan.json", &json!({ "id": ODD, "items": items }).to_string());
        env.write("text", STEERS);
        let blocks = json!([{ "kind": "agent" }, { "kind": "script", "command": STEERS }]);
        env.write("pipeline.json", &json!({ "schemaVersion": 1, "id": "dev.odd", "blocks": blocks }).to_string());
        self.say(&["submit", "../plan.json"]).success();
        self.say(&["doc", "put", ODD, ODD, "../text"]).success();
        self.say(&["doc", "put", ODD, ODD, "../plan.json"]).success();
        let _ = self.say(&["run", ODD]);
        self.say(&["close", ODD, "--reason", STEERS]).success();
        let open = json!({ "id": format!("open{ODD}"), "openEnded": true, "items": [item(ODD, "true".into(), json!({}))],
            "rules": [{ "id": format!("rule{ODD}"), "when": { "if": [{ "document": ODD, "pointer": "/x", "op": "==", "value": STEERS }] },
                "create": { "executor": "command", "inputs": { "command": "true" } } }] });
        env.write("open.json", &open.to_string());
        let _ = self.say(&["submit", "../open.json"]);
        env.write("value.json", &json!({ "x": STEERS }).to_string());
        let _ = self.say(&["doc", "put", &format!("open{ODD}"), ODD, "../value.json"]);
        self.say(&["cancel", &format!("open{ODD}/{ODD}"), "--reason", STEERS]).success();
        self.say(&["apply", &format!("{ODD}/{ODD}"), "--branch", "applied"]).success();
        let words = format!("{STEERS}\n\nHandoff-Run: {STEERS}\nHandoff-Item: {STEERS}");
        for (branch, message) in
            [("odd", words), ("odder", format!("{STEERS}\n\nHandoff-Run: {ODD}\nHandoff-Item: {STEERS}"))]
        {
            let tree = env.git(["rev-parse", "applied^{tree}"]).success();
            let name = format!("user.name={STEERS}");
            let commit = env.git(["-c", &name, "commit-tree", "-p", "HEAD", "-m", &message, tree.trim()]).success();
            env.git(["branch", branch, commit.trim()]).success();
        }
    }

    fn threads(&self) {
        self.env.write(
            "packet.json",
            &json!({ "objective": STEERS, ODD: ODD, "run": ODD, "commits": [STEERS] }).to_string(),
        );
        self.env.write("state", STEERS);
        let save = ["checkpoint", ODD, "--state", "../state", "--summary", ODD, "--packet", "../packet.json"];
        self.say(&save).success();
        self.say(&save).success();
        self.env.write("offer.json", &self.say(&["offer", ODD, "--to", ODD, "--accept", "critical"]).success());
    }
}

/// Returns what each command is asked, in an order in which what comes later still finds what it is
/// about.
#[expect(clippy::too_many_lines, reason = "one table of all commands")]
fn command_lines() -> Vec<(&'static str, Vec<Vec<String>>)> {
    let all = |lines: &[&[&str]]| -> Vec<Vec<String>> {
        lines.iter().map(|line| line.iter().map(|word| (*word).to_owned()).collect()).collect()
    };
    let item = format!("{ODD}/{ODD}");
    let open = format!("open{ODD}");
    let (patch, output, odd_path) = (format!("{item}:patch"), format!("{item}:{ODD}"), format!("{ODD}/{ODD}"));
    let (checkpoint, document) = (format!("{ODD}:ckpt-0"), format!("{ODD}:documents/{ODD}"));
    let dotted = format!("handoff.anchor.{ODD}");
    vec![
        (
            "plan new",
            all(&[
                &["../started.json", "--id", ODD],
                &["../started.json"],
                &["-"],
                &["../plan.json"],
                &[STEERS, "--id", "a"],
            ]),
        ),
        ("validate", all(&[&["../plan.json"], &["../packet.json"], &["../text"], &[ODD]])),
        ("submit", all(&[&["../plan.json"], &["../packet.json"], &["../open.json", "--queue", STEERS]])),
        ("run", all(&[&[ODD], &[STEERS], &["../packet.json"]])),
        ("", all(&[&[]])),
        ("runs", all(&[&[], &["--all"]])),
        ("watch", all(&[&[ODD], &[STEERS]])),
        ("status", all(&[&[ODD], &[&open, "--blocked"], &[&open], &[STEERS], &[&odd_path]])),
        ("log", all(&[&[ODD], &[&open], &[STEERS]])),
        ("show", all(&[&[ODD], &[&item], &[&open], &[&format!("{ODD}/fails")], &[STEERS]])),
        ("cat", all(&[&[&patch], &[&output], &[&format!("{ODD}:{STEERS}")], &[&format!("{item}:{STEERS}")]])),
        (
            "verify",
            all(&[
                &[ODD],
                &["--all"],
                &[&open],
                &[STEERS],
                &["--proof", "../packet.json"],
                &["--signers", STEERS, ODD],
                &["--commits", "HEAD..odd"],
                &["--commits", "HEAD..odder"],
                &["--commits", STEERS],
            ]),
        ),
        (
            "whence",
            all(&[
                &["applied"],
                &["odd"],
                &["odder"],
                &["HEAD..odd"],
                &["applied:main.txt"],
                &["main.txt:1"],
                &[STEERS],
            ]),
        ),
        ("coordinate", all(&[&[&open, "--explain"], &[ODD, "--explain"], &[&open, "--dry-run"], &[STEERS]])),
        ("apply", all(&[&[ODD, "--branch", ODD], &[&item], &[ODD, "--branch", STEERS]])),
        (
            "doc put",
            all(&[&[&open, ODD, "../text"], &[&open, STEERS, "../text"], &[&open, ODD, "../text", "--schema", STEERS]]),
        ),
        ("doc get", all(&[&[ODD, ODD], &[ODD, ODD, "--expect", "a@1"], &[ODD, STEERS], &[STEERS, ODD]])),
        ("doc list", all(&[&[ODD], &[&open], &[STEERS]])),
        ("doc log", all(&[&[ODD, ODD], &[&open, ODD]])),
        ("doc diff", all(&[&[ODD, ODD], &[&open, STEERS]])),
        ("extend", all(&[&[&open, "../open.json"], &[&open, "../plan.json"], &[ODD, "../text"]])),
        ("retry", all(&[&[&item], &[&format!("{open}/{ODD}")], &[STEERS]])),
        ("cancel", all(&[&[&item, "--reason", STEERS], &[ODD, "--reason", STEERS]])),
        ("approve", all(&[&[&item, "-m", STEERS], &[&format!("{open}/{ODD}")], &[STEERS]])),
        ("reject", all(&[&[&item, "-m", STEERS], &[STEERS]])),
        ("lineage", all(&[&[&item], &[&format!("{item}:{ODD}")], &[ODD], &[STEERS]])),
        ("waiting", all(&[&[], &["--all"]])),
        ("admit", all(&[&[&open, STEERS, "--as", "work"], &[&open, ODD, "--as", ODD], &[STEERS, ODD, "--as", "own"]])),
        ("completions", all(&[&["bash"], &["zsh"], &["fish"]])),
        ("abandon", all(&[&[ODD], &[STEERS, "-m", STEERS]])),
        ("close", all(&[&[ODD, "--reason", STEERS], &[&open, "--reason", STEERS]])),
        (
            "checkpoint",
            all(&[
                &[ODD, "--state", "../state", "--summary", ODD],
                &[STEERS, "--state", STEERS],
                &[ODD, "--state", "../state", "--run", ODD],
            ]),
        ),
        ("thread list", all(&[&[]])),
        ("thread show", all(&[&[ODD], &[&checkpoint], &[STEERS]])),
        ("thread log", all(&[&[ODD], &[STEERS]])),
        ("thread diff", all(&[&[ODD], &[ODD, STEERS]])),
        ("thread cat", all(&[&[ODD], &[STEERS]])),
        ("thread verify", all(&[&[ODD], &["--all"], &[STEERS]])),
        ("resume", all(&[&[ODD], &[ODD, "--accept", "critical"], &[STEERS]])),
        ("offer", all(&[&[ODD, "--to", ODD], &[ODD, "--to", ODD, "--accept", "critical"], &[ODD, "--to", STEERS]])),
        (
            "adopt",
            all(&[
                &["../offer.json", "--as", "adopted", "--accept", "critical"],
                &["../packet.json", "--as", ODD],
                &["../text", "--as", STEERS],
            ]),
        ),
        ("fork", all(&[&[ODD, "--as", &format!("f{ODD}")], &[STEERS, "--as", STEERS]])),
        ("rollback", all(&[&[&checkpoint], &[STEERS]])),
        ("push", all(&[&[ODD], &[ODD, "--all"], &[ODD, STEERS], &[STEERS]])),
        ("fetch", all(&[&[ODD], &[ODD, STEERS], &[STEERS]])),
        ("anchor add", all(&[&[ODD, "git", "../hub"], &[STEERS, "git", STEERS]])),
        ("anchor add git", all(&[&[]])),
        ("anchor list", all(&[&[], &[&dotted]])),
        ("anchor push", all(&[&[], &[STEERS]])),
        ("anchor check", all(&[&[ODD], &[STEERS]])),
        ("bundle", all(&[&[ODD, "-o", "../b"], &[STEERS, "-o", "../c"]])),
        (
            "check",
            all(&[&["../packet.json"], &["../text"], &[ODD], &[&document], &["../packet.json", &document], &[STEERS]]),
        ),
        (
            "packet new",
            all(&[
                &[
                    "--objective",
                    STEERS,
                    "--completed",
                    STEERS,
                    "--unresolved",
                    ODD,
                    "--assumptions",
                    ODD,
                    "--next-action",
                    STEERS,
                    "--risks",
                    ODD,
                    "--run",
                    ODD,
                    "--item",
                    ODD,
                    "--document",
                    ODD,
                    "--commit",
                    STEERS,
                ],
                &["--objective", STEERS],
            ]),
        ),
        ("packet import", all(&[&["../packet.json"], &["../text"], &[ODD]])),
        ("packet auto", all(&[&["--run", ODD], &["--run", &open], &["--thread", ODD], &["--run", STEERS]])),
        ("pipeline validate", all(&[&["../pipeline.json"], &["../plan.json"], &["../text"], &[STEERS]])),
        ("pipeline add", all(&[&["../pipeline.json"], &["../text"]])),
        ("pipeline list", all(&[&[]])),
        ("pipeline show", all(&[&["dev.odd"], &[STEERS], &[ODD]])),
        ("mcp", all(&[&[]])),
        ("prove", all(&[&[&patch], &[&output], &[STEERS], &[&format!("{item}:{STEERS}")]])),
        ("key", all(&[&[]])),
        (
            "export",
            all(&[
                &[ODD, "--format", "in-toto"],
                &[ODD, "--format", "bundle-json"],
                &[STEERS, "--format", "in-toto"],
                &[ODD, "--format", ODD],
            ]),
        ),
        ("doctor", all(&[&[]])),
        ("graph", all(&[&[ODD], &[&open], &["../plan.json"], &[STEERS]])),
        ("report", all(&[&[ODD, "-o", "../page.html"], &[ODD, "--format", "md"], &[STEERS]])),
        ("record", all(&[&["-m", STEERS, "--", "sh", "-c", "exit 1"], &["--as", STEERS, "--", "true"]])),
        ("adopt-run", all(&[&[ODD, "--id", "adopted"], &[STEERS, "--id", "other"]])),
        ("lost", all(&[&[&open, "--driver", STEERS], &[STEERS, "--driver", ODD]])),
        ("dismiss", all(&[&[&open, STEERS], &[STEERS, ODD]])),
        ("init", all(&[&["--check", STEERS], &["--agent", STEERS]])),
        ("archive", all(&[&[ODD], &[STEERS]])),
        ("unarchive", all(&[&[ODD], &[STEERS]])),
        ("clean", all(&[&["--dry-run"], &[ODD, "--force"], &[STEERS]])),
        ("delete", all(&[&[STEERS], &[STEERS, "--yes"], &[ODD], &[ODD, "--yes"]])),
    ]
}

#[test]
fn nothing_that_others_wrote_reaches_a_terminal_as_it_is() {
    let hostile = Hostile::new();
    let mut lines_by_command: BTreeMap<&str, Vec<Vec<String>>> = BTreeMap::new();
    let order = asked_in_order(&mut lines_by_command);
    let mut wrong = Vec::new();
    for command in order {
        for line in &lines_by_command[command] {
            for json in [&[][..], &["--json"]] {
                let words = command.split_whitespace().chain(line.iter().map(String::as_str));
                let words: Vec<&str> = json.iter().copied().chain(words).collect();
                let output = hostile.say(&words);
                if !matches!(output.status, Some(0..=5)) {
                    wrong.push(format!("{words:?} ended with {:?}", output.status));
                }
                for (stream, text) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
                    if stream == "stdout" && BYTES.contains(&command) {
                        continue;
                    }
                    if let Some(c) = text.chars().find(|c| is_bad(*c)) {
                        wrong.push(format!("{words:?}: {c:?} on {stream}: {text:?}"));
                    }
                    if text.lines().any(|row| row.starts_with("✓ forged")) {
                        wrong.push(format!("{words:?}: a line of its own on {stream}: {text:?}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let listed = commands(&hostile.env, &[]);
    assert!(listed.len() > 60, "{listed:?}");
    let known: BTreeSet<String> = lines_by_command.keys().map(|name| (*name).to_owned()).collect();
    let missing: Vec<_> = listed.difference(&known).filter(|name| !name.starts_with("anchor add")).collect();
    assert!(missing.is_empty(), "commands that are not asked here: {missing:?}");
}

fn asked_in_order(into: &mut BTreeMap<&'static str, Vec<Vec<String>>>) -> Vec<&'static str> {
    let groups = command_lines();
    let order = groups.iter().map(|(name, _)| *name).collect();
    into.extend(groups);
    order
}

#[test]
fn json_output_round_trips() {
    let hostile = Hostile::new();
    let answer = hostile.say(&["--json", "log", ODD]).success();
    let first: serde_json::Value = serde_json::from_str(answer.lines().next().unwrap()).unwrap();
    assert_eq!((first["actor"].as_str(), first["run"].as_str()), (Some(STEERS), Some(ODD)));
    let packet = hostile
        .say(&[
            "packet",
            "new",
            "--objective",
            ODD,
            "--completed",
            "none",
            "--unresolved",
            "none",
            "--assumptions",
            "none",
            "--next-action",
            "Run cargo test",
            "--risks",
            "none",
        ])
        .success();
    let packet: serde_json::Value = serde_json::from_str(&packet).unwrap();
    assert_eq!(packet["objective"], ODD);
}
