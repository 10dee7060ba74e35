//! Items that are done and handed over nothing: every view says so, but for items that have nothing
//! to hand over by design.

use serde_json::{Value, json};

use crate::common::repo::{TestRepo, item};
use crate::common::report::{find_entry, find_line, find_row};

const WORDS: &str = "done, nothing handed over";

#[test]
fn every_view_marks_an_item_without_products() {
    let repo = TestRepo::new();
    let run = repo.drive("r", &[item("empty", "true"), item("full", "echo x >outputs/x")]).exit(0);
    let rows = "✓ empty  done, nothing handed over  1 attempt\n✓ full   done                       1 attempt  outputs/x\nr: 2 of 2 done, sealed\n";
    let screen = "─ no check\n1 output\nproof ✓ intact, 6 entries, your key: git handoff verify r\n";
    assert_eq!(run.stdout, format!("{rows}{screen}"));
    insta::assert_snapshot!(find_line(&run.stderr, "✓ empty  "), @"✓ empty  done in 0ms, nothing handed over");
    insta::assert_snapshot!(find_line(&run.stderr, "✓ full  "), @"✓ full  done in 0ms, 1 product");
    let stdout_of = |arguments: &[&str]| repo.env.handoff(arguments).success();
    let timed = "✓ empty  done, nothing handed over  1 attempt  2026-06-04 02:00Z  0ms\n✓ full   done                       1 attempt  2026-06-04 02:00Z  0ms  outputs/x\nsubmitted 2026-06-04 02:00Z by human:ada\nr: 2 of 2 done, sealed\n";
    assert_eq!(stdout_of(&["status", "r"]), timed);
    assert_eq!(stdout_of(&["watch", "r"]), rows);
    assert!(stdout_of(&["show", "r"]).ends_with(rows));
    let stdout = stdout_of(&["show", "r/empty"]);
    assert!(stdout.contains(&format!("  {WORDS}  exit 0")), "{stdout}");
    insta::assert_snapshot!(find_line(&stdout, "status  "), @"status     done, nothing handed over");
    let log = stdout_of(&["log", "r"]);
    assert!(log.contains(&format!("item.reconciled empty #1: {WORDS}\n")), "{log}");
    insta::assert_snapshot!(find_entry(&log, "item.reconciled full"), @"item.reconciled full #1: done");
    insta::assert_snapshot!(stdout_of(&["runs"]), @"r  default  sealed  2026-06-04 02:00Z  human:ada  2 done, 1 with nothing handed over");
    assert!(
        stdout_of(&[]).contains(
            "1 run sealed, done and green by what they record, 1 with an item that has nothing handed over\n"
        )
    );
    insta::assert_snapshot!(find_row(&stdout_of(&["verify", "r"]), "outcome"), @"✓ outcome    2 of 2 done, 1 with nothing handed over");
}

#[test]
fn json_marks_an_item_without_products() {
    let repo = TestRepo::new();
    repo.submit("r", &[item("empty", "true"), item("full", "echo x >outputs/x")]);
    let read = |arguments: &[&str]| -> Value { serde_json::from_str(&repo.env.handoff(arguments).success()).unwrap() };
    let both = |answer: &Value| [0, 1].map(|at| answer["items"][at].get("handedOver").cloned());
    let expected = [Some(json!(false)), None];
    let run = read(&["--json", "run", "r"]);
    assert_eq!((both(&run), &run["outcome"]["handedOverNothing"]), (expected.clone(), &json!(1)));
    assert_eq!(both(&read(&["--json", "status", "r"])), expected);
    assert_eq!(both(&read(&["--json", "show", "r"])), expected);
    let item = read(&["--json", "show", "r/empty"]);
    let ended = item["entries"].as_array().unwrap().iter().find(|entry| entry["kind"] == "item.reconciled");
    assert_eq!((&item["handedOver"], &ended.unwrap()["handedOver"]), (&json!(false), &json!(false)));
    let entries = repo.entries("r");
    let handed_over: Vec<_> =
        entries.iter().filter_map(|entry| Some((entry["item"].as_str()?, entry.get("handedOver")?))).collect();
    assert_eq!(handed_over, [("empty", &json!(false))]);
    assert_eq!(read(&["--json", "runs"])["runs"][0]["handedOverNothing"], json!(1));
    assert_eq!(read(&["--json"])["handedOverNothing"], json!(1));
    assert_eq!(read(&["--json", "verify", "r"])["outcome"]["handedOverNothing"], json!(1));
}

#[test]
fn item_without_declared_products_is_just_done() {
    let repo = TestRepo::new();
    let mut checks = item("checks", "true");
    checks["produces"] = json!([]);
    let mut gate = item("gate", "true");
    gate["inputs"]["gate"] = json!({ "subject": "work", "onRed": "advance" });
    let people = json!({ "id": "people", "executor": "approval", "depends_on": ["gate"] });
    repo.env.write(
        "repo/pipeline.json",
        &json!({ "id": "looks", "version": 1, "blocks": [{ "kind": "agent" }] }).to_string(),
    );
    let items = [item("work", "echo x >>a.txt"), gate, checks, people];
    let plan = json!({ "id": "r", "pattern": "pipeline", "items": items });
    repo.env.write("plan.json", &plan.to_string());
    repo.env.handoff(["run", "../plan.json"]).ends(4);
    repo.env.handoff(["approve", "r/people"]).success();
    let run = repo.env.handoff(["run", "r"]).exit(0);
    insta::assert_snapshot!(run, @"
    ✓ work    done  1 attempt   patch
    ✓ gate    done  1 attempt
    ✓ checks  done  1 attempt
    ✓ people  done  0 attempts
    r: 4 of 4 done, sealed
    ─ no check
    1 file changed, +1 −0: a.txt
    proof ✓ intact, 9 entries, your key: git handoff verify r
    ------- stderr -------
    hint: git handoff apply r   # as a commit: --commit
    ");
    let log = repo.env.handoff(["log", "r"]).success();
    let events: Vec<&str> = log.lines().filter_map(|line| line.split("  human:ada  ").nth(1)).collect();
    assert_eq!(
        events,
        [
            "run.submitted r",
            "item.fired work #1: running",
            "item.reconciled work #1: done",
            "item.fired gate #1: running",
            "item.reconciled gate #1: done",
            "item.fired checks #1: running",
            "item.reconciled checks #1: done",
            "item.decided people #0: done",
            "run.sealed r",
        ]
    );
}

#[test]
fn a_red_item_and_a_reused_one_say_it_as_well() {
    let repo = TestRepo::new();
    let denies = "printf '{\"verify\":{\"passed\":false}}' >\"$HANDOFF_RESULT\"";
    let run = repo.drive("red", &[item("a", denies)]).exit(4);
    insta::assert_snapshot!(run.stdout, @"
    ! a  done, red, nothing handed over  1 attempt  verify-failed: by the worker's own word
    red: 0 of 1 done, 1 red, sealed
    ! check failed: by the item's own word
    ─ nothing changed
    proof ✓ intact, 4 entries, your key: git handoff verify red
    ");
    repo.drive("first", &[item("a", "true")]).ends(0);
    repo.submit("second", &[item("a", "true")]);
    let second_run = repo.env.handoff(["run", "--reuse", "second"]).exit(0);
    insta::assert_snapshot!(second_run.stdout, @"
    ✓ a  done, reused, nothing handed over  1 attempt  from first/a
    second: 1 of 1 done, sealed
    ─ nothing changed
    proof ✓ intact, 4 entries, your key: git handoff verify second
    ");
}
