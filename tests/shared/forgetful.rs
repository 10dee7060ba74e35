//! A clone that submitted and pushed a run, and did not join it, reads the remote first.

use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::{Hub, items, plan, succeeds, works};
use crate::common::repo::{Driver, item, wait_for};
use crate::common::report::find_line;

/// A hub whose run was pushed, with a second clone.
fn pushed(plan: &Value) -> Hub {
    let hub = Hub::new(plan);
    hub.repo.env.handoff(["push", "origin", "r"]).success();
    hub.clone("b", &[]);
    hub
}

/// Starts `run r` without a remote.
fn run(hub: &Hub, clone: &str) -> Driver {
    let dir = hub.repo.path(clone);
    hub.repo.start_with(&["run", "r"], |command| {
        command.current_dir(dir).env_remove("HANDOFF_CLOCK");
    })
}

fn json_of(hub: &Hub, clone: &str, words: &[&str]) -> Value {
    let (_, out, stderr) = hub.command(clone, &[words, &["--json"]].concat());
    // A failure is on standard error.
    let line = out.lines().last().or_else(|| stderr.lines().last()).unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|_| panic!("{out}{stderr}"))
}

/// Makes the remote unreadable, or readable again.
fn rename(hub: &Hub, from: &str, to: &str) {
    fs::rename(hub.repo.path(from), hub.repo.path(to)).unwrap();
}

/// Returns an item that ends once the file `go` is there.
fn waits(id: &str) -> Value {
    item(
        id,
        "echo $HANDOFF_ITEM >>\"$HOME/../ran\"; until test -e \"$HOME/../go\"; do sleep 0.05; done; echo x >outputs/x",
    )
}

fn beat(hub: &Hub) -> Option<Value> {
    let listed = hub.repo.env.git_in("hub.git", ["for-each-ref", "--format=%(contents)", "refs/handoff/drivers/r"]);
    serde_json::from_str(listed.success().lines().next()?).ok()
}

/// Runs the commands of a way out, after which both runs are verified without a conflict.
#[track_caller]
fn leads_out(hub: &Hub, commands: &[&[&str]]) {
    for words in commands {
        let (code, out, stderr) = hub.command("repo", words);
        assert_eq!(code, Some(0), "{words:?}: {out}{stderr}");
    }
    for name in ["origin/r", "mine"] {
        let (_, out, stderr) = hub.command("repo", &["verify", name]);
        assert!(!out.contains("TAMPERED") && !out.contains("CONFLICT"), "{name}: {out}{stderr}");
    }
}

/// A command records through the remote, and a driver here in its repository. If they overlapped,
/// the run would go on twice.
#[test]
fn a_driver_of_a_pushed_run_waits_for_the_command_of_a_person() {
    let hub = pushed(&plan(&items(2, "0")));
    hub.repo.env.write(
        "hub.git/hooks/update",
        "#!/bin/sh\ncase $1 in refs/handoff/runs/*) touch ../held;\nuntil test -e ../go; do sleep 0.05; done ;; esac\n",
    );
    hub.repo.env.shell(".", "chmod +x hub.git/hooks/update").success();
    let command = hub.repo.start(&["cancel", "r/i0"]);
    wait_for("the push", || hub.repo.path("held").exists());
    let driver = run(&hub, "repo");
    thread::sleep(Duration::from_millis(500));
    hub.repo.env.write("go", "");
    assert_eq!(command.wait().0.code(), Some(0));
    assert_eq!(driver.wait().0.code(), Some(4));
    hub.repo.env.handoff(["close", "r"]).success();
    hub.repo.env.handoff(["push", "origin", "r"]).success();
    hub.repo.env.handoff(["verify", "r", "--allow-partial"]).success();
}

#[test]
fn views_read_the_remote_first() {
    let hub = pushed(&plan(&items(2, "0")));
    succeeds(hub.drive("b"));
    let offline = json_of(&hub, "repo", &["status", "r", "--offline"]);
    assert_eq!((&offline["outcome"]["done"], &offline["remote"]), (&0.into(), &Value::Null));
    let graph = json_of(&hub, "repo", &["graph", "r"]);
    let done: u64 = graph["boxes"].as_array().unwrap().iter().filter_map(|one| one["statuses"]["done"].as_u64()).sum();
    assert_eq!((&graph["remote"]["remote"], done), (&"origin".into(), 2));
    let status = json_of(&hub, "repo", &["status", "r"]);
    assert_eq!((&status["outcome"]["done"], &status["sealed"]), (&2.into(), &true.into()));
    assert_eq!(status["remote"], Value::Null, "nothing follows a seal");
    let (code, _, stderr) = hub.command("repo", &["verify", "r"]);
    assert_eq!(code, Some(0), "{stderr}");
}

#[test]
fn a_run_is_watched_that_others_drive() {
    let hub = pushed(&plan(&items(2, "0.2")));
    let dir = hub.repo.path("repo");
    let watching = hub.repo.start_with(&["watch", "r"], |command| {
        command.current_dir(dir).env_remove("HANDOFF_CLOCK");
    });
    wait_for("a first reading", || watching.stderr().lines().any(|line| line == "r: the same as on origin"));
    succeeds(hub.drive("b"));
    let (status, output) = watching.wait();
    assert!(status.success(), "{output}");
    assert_eq!(find_line(&output, "r: 2 of 2"), "r: 2 of 2 done, sealed");
}

#[test]
fn unreachable_remote_gives_old_state_with_its_age() {
    let hub = pushed(&plan(&items(1, "0")));
    rename(&hub, "hub.git", "away.git");
    let (code, out, stderr) = hub.command("repo", &["status", "r"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(find_line(&stderr, "warning: ").starts_with("warning: cannot read \"r\" from origin: "), "{stderr}");
    let age = find_line(&out, "as of ");
    assert!(age.starts_with("as of 2026-06-04 ") && age.ends_with(" ago: origin could not be read"), "{age}");
    let status = json_of(&hub, "repo", &["status", "r"]);
    assert!(status["remote"]["failure"].is_string() && status["remote"]["readAt"].is_string(), "{status}");
    for words in [&["run", "r"][..], &["cancel", "r"], &["cancel", "r/i0"], &["close", "r"]] {
        let failure = json_of(&hub, "repo", words);
        let hint = "the same command with --offline   # goes by what is here: other machines may have done more";
        assert_eq!((&failure["code"], &failure["hint"]), (&"remote".into(), &hint.into()), "{words:?}: {failure}");
    }
    assert_eq!(hub.lines("ran").len(), 0);
    let (cancel_code, cancel_out, cancel_stderr) = hub.command("repo", &["cancel", "r", "--offline"]);
    assert_eq!((cancel_code, cancel_out.as_str()), (Some(0), "r: 3 entries, sealed\n"), "{cancel_stderr}");
}

#[test]
fn a_change_from_a_clone_that_does_not_drive_holds() {
    let hub = pushed(&plan(&[item("i0", &works("30")), item("i1", &works("0"))]));
    let driver = hub.drive("b");
    hub.wait_for("item.fired", "i0");
    let (code, out, stderr) = hub.command("repo", &["cancel", "r/i0", "--reason", "no longer wanted"]);
    assert_eq!((code, out.as_str()), (Some(0), "r: 1 entry\n"), "{stderr}");
    assert_eq!(find_line(&stderr, "r: read"), "r: read new entries from origin");
    assert_eq!(hub.wait_for("item.cancelled", "i0")["reason"], "no longer wanted");
    assert_eq!(driver.wait().0.code(), Some(4));
}

/// A driver that joins later finds the change on the remote.
#[test]
fn a_change_of_a_pushed_run_is_on_its_remote() {
    let hub = pushed(&plan(&items(2, "0")));
    let (code, _, stderr) = hub.command("repo", &["cancel", "r/i0"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(hub.of_kind("item.cancelled").len(), 1);
    assert_eq!(hub.drive("b").wait().0.code(), Some(4));
    assert_eq!(hub.lines("ran"), ["i1 1"]);
}

#[test]
fn a_run_that_others_drive_is_joined() {
    let hub = pushed(&plan(&items(6, "0.3")));
    let first = hub.drive("b");
    hub.wait_for_kind("run.shared");
    let second = run(&hub, "repo");
    for driver in [first, second] {
        succeeds(driver);
    }
    hub.ends_well(6);
    assert_eq!(hub.lines("ran").len(), 6);
    let fired = hub.of_kind("item.fired");
    assert!(fired.iter().all(|entry| entry["driver"].is_string()));
}

#[test]
fn a_run_that_no_other_drives_is_driven_here_and_not_shared() {
    let hub = pushed(&plan(&[waits("i0"), item("i1", &works("0"))]));
    let before = hub.entries().len();
    let alone = run(&hub, "repo");
    hub.wait_for_beats(1);
    assert_eq!(beat(&hub).unwrap()["alone"], true);
    let listed = json_of(&hub, "b", &["fetch", "origin"]);
    assert_eq!(listed["refs"].as_array().map(Vec::len), Some(2), "{listed}");
    fs::write(hub.repo.path("go"), "").unwrap();
    let (status, output) = alone.wait();
    assert!(status.success(), "{output}");
    assert_eq!(find_line(&output, "hint: git handoff push"), "hint: git handoff push origin r");
    assert_eq!(hub.entries().len(), before, "nothing was pushed");
    let (code, _, stderr) = hub.command("repo", &["push", "origin", "r"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(beat(&hub), None, "the remote has everything");
    succeeds(hub.drive("b"));
    hub.ends_well(2);
}

#[test]
fn a_driver_elsewhere_respects_one_that_drives_alone_until_it_is_lost() {
    let hub = pushed(&plan(&[waits("i0")]));
    let alone = run(&hub, "repo");
    hub.wait_for_beats(1);
    let other = hub.drive("b");
    let is_waiting =
        |text: String| text.lines().any(|line| line.contains(" drives the run, not shared: waiting until"));
    wait_for("the other to wait", || is_waiting(other.stderr()));
    let number = |shared_hub: &Hub| beat(shared_hub).and_then(|beat| beat["beat"].as_u64()).unwrap_or_default();
    // Longer than a silent driver would be respected.
    let until = number(&hub) + 5;
    wait_for("more beats", || number(&hub) >= until);
    assert_eq!(hub.of_kind("run.shared").len(), 0);
    assert!(alone.kill());
    hub.wait_for_kind("run.shared");
    fs::write(hub.repo.path("go"), "").unwrap();
    succeeds(other);
    hub.ends_well(1);
}

#[test]
fn two_chains_of_one_run_give_a_hint() {
    let hub = pushed(&plan(&items(2, "0")));
    let (code, _, stderr) = hub.command("repo", &["cancel", "r/i0", "--offline"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(hub.of_kind("item.cancelled").len(), 0);
    succeeds(hub.drive("b"));
    for words in [&["run", "r"][..], &["cancel", "r"]] {
        let failure = json_of(&hub, "repo", words);
        assert_eq!(failure["code"], "driven-twice", "{failure}");
    }
    let (push_code, _, push_stderr) = hub.command("repo", &["push", "origin", "r"]);
    assert_eq!(push_code, Some(1), "{push_stderr}");
    let way_out = "hint: git handoff adopt-run r --id ID && git handoff delete r && git handoff fetch origin r   \
                   # keeps both: yours as ID, and the one of origin as origin/r";
    assert_eq!(find_line(&push_stderr, "hint: "), way_out);
    leads_out(&hub, &[&["adopt-run", "r", "--id", "mine"], &["delete", "--yes", "r"], &["fetch", "origin", "r"]]);
}

/// Both ends are recorded, so `verify` names both until one of them is deleted where it was driven.
#[test]
fn two_ends_of_one_run_are_a_conflict_with_a_way_out() {
    let hub = pushed(&plan(&items(1, "0")));
    let (code, _, stderr) = hub.command("repo", &["run", "r", "--offline"]);
    assert_eq!(code, Some(0), "{stderr}");
    succeeds(hub.drive("b"));
    let (_, _, fetch_stderr) = hub.command("repo", &["fetch", "origin"]);
    assert_eq!(json_of(&hub, "repo", &["verify", "origin/r"])["failure"], "conflict", "{fetch_stderr}");
    let ours = json_of(&hub, "repo", &["verify", "r"]);
    assert_eq!(ours["failure"], "conflict", "{ours}");
    let anchor = &ours["checks"]["anchor"];
    assert_eq!(anchor["codes"], serde_json::json!(["driven-twice"]), "{ours}");
    let (_, _, verify_stderr) = hub.command("repo", &["verify", "r"]);
    let way_out = "hint: git handoff adopt-run r --id ID && git handoff delete r   # keeps both";
    assert!(verify_stderr.lines().any(|line| line == way_out), "{verify_stderr}");
    leads_out(&hub, &[&["adopt-run", "r", "--id", "mine"], &["delete", "--yes", "r"]]);
}

/// The login node of a cluster submits and pushes, and looks after the run.
#[test]
fn a_clone_that_does_not_drive_looks_after_drivers() {
    let hub = pushed(&plan(&[item("i0", "test $HANDOFF_ATTEMPT = 2 || sleep 60; echo x >outputs/x")]));
    hub.repo.env.git(["config", "--global", "handoff.lostAfter", "1h"]).success();
    let first = hub.drive("b");
    let id = hub.wait_for("item.fired", "i0")["driver"].as_str().unwrap().to_owned();
    let listed = json_of(&hub, "repo", &["status", "r", "--drivers"]);
    assert_eq!((&listed["remote"], &listed["drivers"][0]["holds"][0]), (&"origin".into(), &"i0".into()));
    assert!(first.kill());
    let (code, _, stderr) = hub.command("repo", &["lost", "r", "--driver", &id[..8]]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(hub.wait_for("item.requeued", "i0")["because"], "told");
    let (cancel_code, _, cancel_stderr) = hub.command("repo", &["cancel", "r"]);
    assert_eq!(cancel_code, Some(0), "{cancel_stderr}");
    assert_eq!(hub.of_kind("run.sealed").len(), 1);
    let (clean_code, cleaned, clean_stderr) = hub.command("repo", &["clean", "--remote", "--force", "r"]);
    assert_eq!((clean_code, cleaned.lines().count()), (Some(0), 1), "{cleaned}{clean_stderr}");
    assert_eq!(beat(&hub), None);
}
