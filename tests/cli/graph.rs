//! `graph`: rows for people, and the forms for other programs.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::common::assert_output;
use crate::common::repo::{TestRepo, after, item, wait_for};
use crate::common::report::{error_code, find_line};

/// The names of items that mean something to a terminal, to HTML, DOT or Mermaid.
const HOSTILE: [&str; 6] = [
    "say \"hi\" <b>&amp; `x` #1;",
    "ab\u{202e}gpj.exe",
    "测试一下很长很长很长很长很长很长的名字",
    "שלום",
    "end\\",
    "\\u{202e}",
];

fn hostile() -> Vec<Value> {
    let mut items = vec![item(HOSTILE[0], "true")];
    items.extend(HOSTILE[1..5].iter().map(|name| after(name, &HOSTILE[..1], "true")));
    items.push(after(HOSTILE[5], &HOSTILE[1..5], "true"));
    items
}

fn fan(count: usize, command: impl Fn(usize) -> &'static str) -> Vec<Value> {
    let names: Vec<String> = (1..=count).map(|at| format!("shard-{at:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut items = vec![item("split", "true")];
    items.extend(names.iter().enumerate().map(|(at, name)| after(name, &["split"], command(at + 1))));
    items.push(after("join", &names, "true"));
    items
}

/// Returns the graph of a plan, after it was seen to be no wider than 80 columns.
fn graph_of(repo: &TestRepo, run: &str, items: &[Value]) -> String {
    let plan = repo.plan(run, items);
    let graph = repo.env.handoff(["graph", &plan]).success();
    for line in graph.lines() {
        assert!(console::measure_text_width(line) <= 80, "{line}");
    }
    graph
}

#[test]
fn a_plan_is_drawn_without_statuses() {
    let repo = TestRepo::new();
    let chain = [item("fetch", "true"), after("build", &["fetch"], "true"), after("test", &["build"], "true")];
    assert_output!("graph_chain", graph_of(&repo, "chain", &chain));
    assert_output!("graph_fan", graph_of(&repo, "fan", &fan(40, |_| "true")));
    let diamond =
        [item("a", "true"), after("b", &["a"], "true"), after("c", &["a"], "true"), after("d", &["b", "c"], "true")];
    assert_output!("graph_diamond", graph_of(&repo, "diamond", &diamond));
    assert_output!("graph_collapsed", graph_of(&repo, "collapsed", &fan(400, |_| "true")));
}

#[test]
fn names_change_neither_the_width_nor_the_form() {
    let repo = TestRepo::new();
    assert_output!("graph_hostile", graph_of(&repo, "hostile", &hostile()));
    let plan = repo.plan("hostile", &hostile());
    assert_output!("graph_hostile_dot", repo.env.handoff(["graph", &plan, "--dot"]).success());
    assert_output!("graph_hostile_mermaid", repo.env.handoff(["graph", &plan, "--mermaid"]).success());
}

#[test]
fn a_run_is_drawn_with_statuses_and_colours() {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.concurrency", "1");
    repo.config("handoff.executor.red.command", "true");
    repo.config("handoff.executor.red.verify", "echo FAILED; exit 1");
    repo.config("handoff.executor.red.onVerifyFail", "keep");
    let items = [
        item("plan", "touch outputs/x"),
        json!({ "id": "lint", "executor": "red", "depends_on": ["plan"] }),
        after("unit", &["plan"], "exit 1"),
        after("report", &["unit"], "true"),
        after("docs", &["plan"], "touch outputs/x"),
        after("site", &["docs"], "true"),
        json!({ "id": "sign-off", "executor": "approval", "depends_on": ["docs"] }),
        after("package", &["lint", "unit", "site"], "true"),
        item("alone", "touch outputs/x"),
        after("publish", &["sign-off", "alone"], "true"),
    ];
    repo.drive("r", &items).ends(4);
    let plain = repo.env.handoff(["graph", "r"]).success();
    assert_output!("graph_run", plain);
    assert_output!("graph_run_mermaid", repo.env.handoff(["graph", "r", "--mermaid"]).success());
    assert_output!("graph_run_dot", repo.env.handoff(["graph", "r", "--dot"]).success());
    let answer: Value = serde_json::from_str(&repo.env.handoff(["graph", "r", "--json"]).success()).unwrap();
    assert_eq!((&answer["run"], &answer["plan"]), (&json!("r"), &Value::Null));
    assert_eq!(answer["boxes"][1]["statuses"], json!({ "red": 1 }));
    assert_eq!(answer["boxes"][7]["members"], json!(["package"]));
    assert_eq!(answer["edges"].as_array().unwrap().len(), 11);
    repo.config("color.ui", "always");
    let colored = repo.env.handoff(["graph", "r"]).success();
    assert!(find_line(&colored, "│  ├─ \u{1b}[31m✗\u{1b}[0m unit").contains("\u{1b}[31mfailed\u{1b}[0m"), "{colored}");
    assert!(colored.contains("\u{1b}[32m✓\u{1b}[0m plan"), "{colored}");
    let bare =
        ["0", "2", "31", "32", "33"].iter().fold(colored, |text, code| text.replace(&format!("\u{1b}[{code}m"), ""));
    assert_eq!(bare, plain, "colours change nothing else");
}

#[test]
fn graph_marks_a_running_item() {
    let repo = TestRepo::new();
    let script = "touch $HOME/../begun; while ! test -e $HOME/../go; do sleep 0.05; done";
    repo.submit("live", &[item("long", script), after("next", &["long"], "true")]);
    let driver = repo.start(&["run", "live"]);
    wait_for("the worker runs", || repo.path("begun").exists());
    let stdout = repo.env.handoff(["graph", "live"]).success();
    repo.env.write("go", "");
    assert!(driver.wait().0.success());
    assert_output!("graph_running", stdout);
}

#[test]
fn a_group_counts_its_items_by_status() {
    let repo = TestRepo::new();
    let items = fan(160, |_| "true");
    repo.submit("many", &items);
    repo.env.handoff(["cancel", "many/shard-003"]).success();
    let stdout = repo.env.handoff(["graph", "many"]).success();
    assert_output!("graph_group", stdout);
    let answer: Value = serde_json::from_str(&repo.env.handoff(["graph", "many", "--json"]).success()).unwrap();
    assert_eq!(answer["boxes"][1]["group"], "shard-#");
    assert_eq!(answer["boxes"][1]["members"].as_array().unwrap().len(), 160);
    assert_eq!(answer["boxes"][1]["statuses"], json!({ "pending": 159, "cancelled": 1 }));
}

#[test]
fn graph_rejects_undrawable_plans() {
    let repo = TestRepo::new();
    repo.submit("release", &[item("a", "true")]);
    let output = repo.env.handoff(["graph", "relase", "--json"]).exit(1);
    assert_eq!(error_code(&output.stderr), "unknown-run");
    let graph_output = repo.env.handoff(["graph", "relase"]).exit(1);
    assert_eq!(graph_output.stderr, "error: there is no run \"relase\" here\nhint: did you mean \"release\"?\n");
    let missing_output = repo.env.handoff(["graph", "../none.json"]).exit(1);
    assert!(missing_output.stderr.starts_with("error: ../none.json could not be read\n"), "{missing_output}");
    let empty = repo.plan("empty", &[]);
    let empty_output = repo.env.handoff(["graph", &empty]).exit(1);
    assert_eq!(empty_output.stdout, "no-items at items (line 1): a plan has at least one item\n");
    let circle = repo.plan("circle", &[after("a", &["b"], "true"), after("b", &["a"], "true")]);
    let cycle_output = repo.env.handoff(["graph", &circle, "--dot"]).exit(1);
    assert!(cycle_output.stdout.starts_with("cycle at "), "{cycle_output}");
    let both_output = repo.env.handoff(["graph", "release", "--dot", "--mermaid"]).exit(2);
    assert!(both_output.stderr.contains("cannot be used with"), "{both_output}");
    for form in ["--dot", "--mermaid", "--svg"] {
        let json_output = repo.env.handoff(["graph", "release", form, "--json"]).exit(2);
        assert_eq!(error_code(&json_output.stderr), "usage", "{form}");
    }
    // A run comes before a file of its name; a path names the file.
    repo.env.write("repo/release", "no plan");
    repo.env.handoff(["graph", "release"]).success();
    assert!(repo.env.handoff(["graph", "./release"]).exit(1).stdout.starts_with("not-json: "));
}

#[test]
fn graphviz_reads_what_is_meant_for_it() {
    let repo = TestRepo::new();
    let plan = repo.plan("hostile", &hostile());
    let written = repo.env.handoff(["graph", &plan, "--dot"]).success();
    let started = Command::new("dot").arg("-Tplain").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    // Graphviz is not required.
    let Ok(mut dot) = started else { return };
    std::io::Write::write_all(&mut dot.stdin.take().unwrap(), written.as_bytes()).unwrap();
    let output = dot.wait_with_output().unwrap();
    let plain = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{plain}");
    let count = |word: &str| plain.lines().filter(|line| line.starts_with(word)).count();
    assert_eq!((count("node "), count("edge ")), (6, 8), "{plain}");
    assert!(plain.contains("say \\\"hi\\\" <b>&amp;amp; `x` #1;") || plain.contains("&amp; `x` #1;"), "{plain}");
}
