//! People steer a shared run, list its drivers, declare one lost, and dismiss a key.

use serde_json::Value;

use super::{Hub, items, plan, succeeds, works};
use crate::common::repo::{item, wait_for};
use crate::common::report::find_line;

#[test]
fn a_shared_run_is_driven_only_through_its_remote() {
    let hub = Hub::new(&plan(&items(1, "30")));
    let driver = hub.drive("repo");
    hub.wait_for("item.fired", "i0");
    assert!(driver.kill());
    let (code, _, stderr) = hub.command("repo", &["run", "r", "--offline"]);
    assert_eq!(code, Some(1));
    assert_eq!(find_line(&stderr, "error: "), "error: the run \"r\" is shared through origin");
    assert_eq!(find_line(&stderr, "hint: "), "hint: git handoff run r --via origin");
    let (run_code, _, run_stderr) = hub.command("repo", &["run", "--via", "origin"]);
    assert_eq!(run_code, Some(2), "{run_stderr}");
}

#[test]
fn decisions_reach_the_remote_and_stop_the_worker() {
    let hub = Hub::new(&plan(&[item("i0", &works("30")), item("i1", &works("0.1"))]));
    hub.clone("b", &[]);
    let first = hub.drive("repo");
    hub.wait_for("item.reconciled", "i1");
    let second = hub.drive("b");
    wait_for("the clone", || {
        hub.repo.env.git_in("b", ["rev-parse", "--verify", "--quiet", "refs/handoff/runs/r"]).status == Some(0)
    });
    let (code, _, stderr) = hub.command("b", &["cancel", "r/i0", "--reason", "no longer wanted"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(hub.wait_for("item.cancelled", "i0")["reason"], "no longer wanted");
    for driver in [first, second] {
        // The run has settled, and not every item is done.
        assert_eq!(driver.wait().0.code(), Some(4));
    }
    let (close_code, _, close_stderr) = hub.command("repo", &["close", "r"]);
    assert_eq!(close_code, Some(0), "{close_stderr}");
    assert_eq!(hub.of_kind("run.sealed").len(), 1);
}

#[test]
fn drivers_are_listed_and_one_is_declared_lost() {
    let hub = Hub::new(&plan(&[item("i0", "test $HANDOFF_ATTEMPT = 2 || sleep 60; echo x >outputs/x")]));
    hub.clone("b", &[]);
    hub.repo.env.git(["config", "--global", "handoff.lostAfter", "1h"]).success();
    let first = hub.drive("repo");
    let id = hub.wait_for("item.fired", "i0")["driver"].as_str().unwrap().to_owned();
    let second = hub.drive("b");
    hub.wait_for_beats(2);
    let (code, listed, stderr) = hub.command("b", &["status", "r", "--drivers", "--json"]);
    assert_eq!(code, Some(0), "{stderr}");
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let drivers = listed["drivers"].as_array().unwrap();
    let holder = drivers.iter().find(|driver| driver["driver"] == id.as_str()).unwrap();
    assert_eq!((drivers.len(), &holder["state"], &holder["holds"][0]), (2, &"alive".into(), &"i0".into()));
    assert!(first.kill());
    let (lost_code, stdout, lost_stderr) = hub.command("b", &["lost", "r", "--driver", &id[..8]]);
    assert_eq!(
        (lost_code, stdout.as_str()),
        (Some(0), format!("taken from driver {}: i0\n", &id[..8]).as_str()),
        "{lost_stderr}"
    );
    assert_eq!(hub.wait_for("item.requeued", "i0")["because"], "told");
    succeeds(second);
    hub.ends_well(1);
    let (unknown_driver_code, _, unknown_driver_stderr) = hub.command("b", &["lost", "r", "--driver", "zzz"]);
    assert_eq!(unknown_driver_code, Some(2), "{unknown_driver_stderr}");
    let (clean_code, cleaned, clean_stderr) = hub.command("b", &["clean", "--remote", "--force", "r"]);
    assert_eq!((clean_code, cleaned.lines().count()), (Some(0), 1), "{cleaned}{clean_stderr}");
    assert_eq!(hub.repo.env.git_in("hub.git", ["for-each-ref", "refs/handoff/drivers"]).success(), "");
}

#[test]
fn items_of_a_dismissed_key_are_reassigned_at_once() {
    let hub = Hub::new(&plan(&[item("i0", "test $HANDOFF_ATTEMPT = 2 || sleep 60; echo x >outputs/x")]));
    hub.repo.env.git(["config", "--global", "handoff.lostAfter", "1h"]).success();
    hub.clone("b", &[]);
    let dir = hub.repo.path("b");
    let made = hub.repo.env.shell("b", "ssh-keygen -q -t ed25519 -N '' -f key");
    made.success();
    hub.repo.env.git_in("b", ["config", "handoff.signingKey", dir.join("key").to_str().unwrap()]).success();
    let own = hub.repo.env.handoff(["key"]).success();
    hub.repo.env.write("signers", &own);
    hub.repo.env.git_in("b", ["config", "handoff.signers", hub.repo.path("signers").to_str().unwrap()]).success();
    let key = dir.join("key.pub");
    hub.repo.env.handoff(["admit", "r", key.to_str().unwrap(), "--as", "work"]).success();
    hub.repo.env.git(["push", "--quiet", "origin", "refs/handoff/runs/r"]).success();
    let other = hub.drive("b");
    hub.wait_for("item.fired", "i0");
    let second_own = hub.drive("repo");
    hub.wait_for_beats(2);
    let (code, _, stderr) = hub.command("repo", &["dismiss", "r", key.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(hub.wait_for("item.requeued", "i0")["because"], "dismissed");
    succeeds(second_own);
    hub.ends_well(1);
    let (status, output) = other.wait();
    assert!(!status.success() || output.lines().any(|line| line == "r: 1 of 1 done, sealed"), "{output}");
}

/// A clone that submitted a run has the entries of other drivers after a fetch, and verifies them.
#[test]
fn a_clone_that_only_fetches_has_the_entries_of_a_shared_run() {
    let hub = Hub::new(&plan(&items(1, "0")));
    let pushed = hub.repo.env.handoff(["push", "origin", "r"]);
    pushed.success();
    hub.clone("b", &[]);
    succeeds(hub.drive("b"));
    let (code, fetched, stderr) = hub.command("repo", &["fetch", "origin", "--json"]);
    assert_eq!(code, Some(0), "{stderr}");
    let fetched: Value = serde_json::from_str(&fetched).unwrap();
    assert_eq!(fetched["followed"], serde_json::json!(["r"]));
    let head = |of: &str| hub.repo.env.git_in("repo", ["rev-parse", of]).success();
    assert_eq!(head("refs/handoff/runs/r"), head("refs/handoff/remotes/origin/runs/r"));
    for name in ["r", "origin/r"] {
        let (verify_code, out, verify_stderr) = hub.command("repo", &["verify", name]);
        assert_eq!(verify_code, Some(0), "{out}{verify_stderr}");
    }
}

/// The clone that submitted and the clone that sealed have logs of one key that do not contradict
/// each other.
#[test]
fn one_key_submits_in_one_clone_and_seals_in_another() {
    let hub = Hub::new(&plan(&items(1, "0")));
    hub.repo.env.git(["push", "--quiet", "origin", "refs/handoff/runs/r", "refs/handoff/bases/r"]).success();
    hub.clone("b", &[]);
    succeeds(hub.drive("b"));
    hub.repo.env.handoff(["submit", "../plan.json", "--id", "s"]).success();
    for words in [&["fetch", "origin"][..], &["push", "origin", "--all"], &["verify", "r"], &["verify", "s"]] {
        let (code, out, stderr) = hub.command("repo", words);
        assert!(code == Some(0) || words[1] == "s", "{words:?}: {out}{stderr}");
    }
    hub.ends_well(1);
}
