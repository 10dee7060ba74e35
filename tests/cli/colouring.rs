//! Status words have the colours of `verify` in every view, unless git uses no colour.

use serde_json::json;

use crate::common::repo::{TestRepo, after, item};
use crate::common::{Output, assert_output};

/// The views of runs, in every one of which something stands somehow.
const VIEWS: [&[&str]; 8] = [
    &[],
    &["runs"],
    &["status", "r"],
    &["status", "--blocked", "r"],
    &["log", "r"],
    &["show", "r"],
    &["show", "r/no"],
    &["watch", "bad"],
];

/// A repository with runs of which items stand in every way that there is without a driver.
fn repo() -> TestRepo {
    let repo = TestRepo::new();
    // One after the other, so that the same run gives the same entries.
    repo.config("handoff.queue.default.concurrency", "1");
    repo.config("handoff.executor.red.command", "true");
    repo.config("handoff.executor.red.verify", "echo FAILED; exit 1");
    repo.config("handoff.executor.red.onVerifyFail", "keep");
    let red = json!({ "id": "red", "executor": "red" });
    let approval = json!({ "id": "asked", "executor": "approval" });
    let later = json!({ "id": "later", "executor": "approval", "depends_on": ["asked"] });
    let no = item("no", "exit 1");
    repo.drive("r", &[item("good", "true"), red, no, after("left", &["no"], "true"), approval, later]).ends(4);
    repo.drive("green", &[item("a", "true")]).ends(0);
    repo.drive("bad", &[item("a", "exit 1")]).ends(4);
    repo.submit("gone", &[item("a", "true"), item("b", "true")]);
    repo.env.handoff(["cancel", "gone/a"]).success();
    repo
}

/// Returns what a command prints and says, in which escapes can be read.
fn visible(output: &Output) -> String {
    output.to_string().replace('\u{1b}', "␛")
}

/// Returns it without colours; what else begins with an escape stays.
fn without(text: &str) -> String {
    ["0", "2", "31", "32", "33", "36"]
        .iter()
        .fold(text.to_owned(), |text, code| text.replace(&format!("\u{1b}[{code}m"), ""))
}

#[test]
fn how_work_stands_has_its_colour_in_every_view() {
    let repo = repo();
    let plain: Vec<String> = VIEWS.iter().map(|view| repo.env.handoff(*view).to_string()).collect();
    repo.config("color.ui", "always");
    for (view, uncoloured) in VIEWS.iter().zip(&plain) {
        let output = repo.env.handoff(*view);
        assert!(output.stdout.contains("\u{1b}[31m"), "{view:?}: {}", visible(&output));
        assert_eq!(without(&output.to_string()), *uncoloured, "{view:?}: colours change nothing else");
    }
    let visible_output = |args: &[&str]| visible(&repo.env.handoff(args));
    assert_output!("colour_alone", visible_output(&[]));
    assert_output!("colour_runs", visible_output(&["runs"]));
    assert_output!("colour_status", visible_output(&["status", "r"]));
    assert_output!("colour_blocked", visible_output(&["status", "--blocked", "r"]));
    assert_output!("colour_log", visible_output(&["log", "r"]));
    assert_output!("colour_show", visible_output(&["show", "r"]));
    assert_output!("colour_show_item", visible_output(&["show", "r/no"]));
    assert_output!(
        "colour_run",
        visible(&repo.drive("s", &[item("a", "true"), item("b", "exit 1"), after("c", &["b"], "true")]))
    );
}

#[test]
fn colour_is_off_for_programs_and_on_request() {
    let repo = repo();
    let is_painted = |args: &[&str]| {
        let output = repo.env.handoff(args);
        output.raw.contains(&0x1b) || output.stderr.contains('\u{1b}')
    };
    assert!(!VIEWS.iter().any(|view| is_painted(view)), "nobody sees it");
    repo.config("color.ui", "always");
    for view in VIEWS {
        let output = repo.env.handoff([view, &["--json"]].concat());
        assert!(!output.raw.contains(&0x1b), "{view:?}: {}", visible(&output));
        assert!(is_painted(view), "{view:?}");
    }
    repo.config("color.handoff", "false");
    for view in VIEWS {
        assert!(!is_painted(view), "{view:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn colour_is_on_for_terminals_by_default() {
    let repo = repo();
    let is_painted = |view: &[&str], variables: &str| {
        let line = format!("env -u NO_COLOR {variables} git-handoff {}", view.join(" "));
        super::paging::on_terminal(&repo.env, &line, &[("PAGER", "cat")]).0.contains("\u{1b}[31m")
    };
    for view in VIEWS {
        assert!(is_painted(view, ""), "{view:?}");
        assert!(!is_painted(view, "NO_COLOR=1"), "{view:?}");
    }
    repo.config("color.ui", "false");
    assert!(!is_painted(&["status", "r"], ""));
    repo.config("color.handoff", "auto");
    assert!(is_painted(&["status", "r"], "") && !is_painted(&["status", "r"], "NO_COLOR=1"));
}
