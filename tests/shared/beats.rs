//! Values on the refs of drivers that are no sign of life: anyone who may push can put them there.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Hub, both_succeed, items, plan, succeeds, works};
use crate::common::repo::{Driver, item};
use crate::common::report::find_line;

/// A script whose first attempt never ends by itself.
const STUCK: &str = "test $HANDOFF_ATTEMPT = 2 || sleep 60; echo x >outputs/x";

impl Hub {
    fn beat_ref(driver: &str) -> String {
        format!("refs/handoff/drivers/r/{driver}")
    }

    /// Runs git in the remote.
    fn in_hub(&self, words: &[&str]) -> String {
        let person = ["-c", "user.name=x", "-c", "user.email=x@x"];
        self.repo.env.git_in("hub.git", [&person[..], words].concat()).success().trim().to_owned()
    }

    /// Puts a value on the ref of a driver.
    fn put(&self, driver: &str, value: &str) {
        self.in_hub(&["update-ref", &Self::beat_ref(driver), value]);
    }

    /// Writes an object that git's checks may refuse.
    fn object(&self, kind: &str, text: &str) -> String {
        self.repo.env.write("object", text);
        self.in_hub(&["hash-object", "-t", kind, "-w", "--literally", "../object"])
    }

    /// Writes a commit that git refuses to receive.
    fn bad_commit(&self) -> String {
        let tree = self.object("tree", "");
        self.object("commit", &format!("tree {tree}\nauthor x\n\nhello"))
    }

    /// Removes an object and the refs of drivers, so that the remote is sound again.
    fn remove_object(&self, oid: &str) {
        for name in self.in_hub(&["for-each-ref", "--format=%(refname)", "refs/handoff/drivers"]).lines() {
            self.in_hub(&["update-ref", "-d", name]);
        }
        fs::remove_file(self.repo.path("hub.git/objects").join(&oid[..2]).join(&oid[2..])).unwrap();
    }

    /// Starts a driver, waits until it holds `i0`, and returns its id with it.
    fn holder(&self, clone: &str) -> (Driver, String) {
        let driver = self.drive(clone);
        let fired = self.wait_for("item.fired", "i0");
        (driver, fired["driver"].as_str().unwrap().to_owned())
    }

    /// Starts a driver that holds `i0`, and another in a clone. Also returns the id of the first.
    fn pair(&self) -> (Driver, String, Driver) {
        self.clone("b", &[]);
        let (first, id) = self.holder("repo");
        let second = self.drive("b");
        self.wait_for_beats(2);
        (first, id, second)
    }

    fn is_taken_over(&self) -> bool {
        self.of_kind("item.requeued").iter().any(|entry| entry["because"] == "silent")
    }

    /// Returns a driver as `status --drivers --json` shows it.
    #[track_caller]
    fn show_driver(&self, clone: &str, driver: &str) -> Value {
        let (code, listed, stderr) = self.command(clone, &["status", "r", "--drivers", "--json"]);
        assert_eq!(code, Some(0), "{stderr}");
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let found = listed["drivers"].as_array().unwrap().iter().find(|entry| entry["driver"] == driver);
        found.unwrap_or_else(|| panic!("{driver}: {listed}")).clone()
    }
}

#[test]
fn only_a_valid_beat_counts_as_alive() {
    let hub = Hub::new(&plan(&[item("i0", STUCK)]));
    hub.repo.env.git(["config", "--global", "handoff.lostAfter", "1h"]).success();
    let (driver, id) = hub.holder("repo");
    hub.wait_for_beats(1);
    assert!(driver.kill());
    assert_eq!(hub.show_driver("repo", &id)["state"], "alive");
    let name = Hub::beat_ref(&id);
    let beat = hub.in_hub(&["rev-parse", &name]);
    let message = hub.in_hub(&["log", "-1", "--format=%B", &name]);
    hub.repo.env.shell("", "ssh-keygen -q -t ed25519 -N '' -f stranger").success();
    let key = hub.repo.path("stranger");
    let tree = format!("{beat}^{{tree}}");
    let sign = ["-c", "gpg.format=ssh", "-c", &format!("user.signingkey={}", key.display()), "commit-tree", "-S"];
    let signed = |signed_message: &str| {
        hub.repo.env.write("message", signed_message);
        hub.in_hub(&[&sign[..], &["-F", "../message", "-p", &beat, &tree]].concat())
    };
    let mut text: Value = serde_json::from_str(message.trim()).unwrap();
    text["beat"] = json!(1000);
    let by_a_stranger = signed(&text.to_string());
    let (beats, taker) = (text.as_object_mut().unwrap(), "2".repeat(32));
    beats.remove("beat");
    beats.insert("taker".to_owned(), json!(taker));
    let fence = signed(&text.to_string());
    let blob = hub.object("blob", "hi");
    for value in [&by_a_stranger, &fence, &blob] {
        hub.put(&id, value);
        let row = hub.show_driver("repo", &id);
        assert_eq!((&row["state"], &row["beat"], &row["key"]), (&"unknown".into(), &Value::Null, &Value::Null));
    }
    let other = "1".repeat(32);
    hub.put(&other, &beat);
    assert_eq!(hub.show_driver("repo", &other)["state"], "unknown");
}

#[test]
fn driver_without_a_beat_is_replaced() {
    let hub = Hub::new(&plan(&[item("i0", STUCK)]));
    let (first, id, second) = hub.pair();
    assert!(first.kill());
    hub.put(&id, &hub.object("blob", "hi"));
    succeeds(second);
    assert!(hub.is_taken_over());
    hub.ends_well(1);
}

#[test]
fn a_living_driver_beats_over_what_is_no_beat() {
    let hub = Hub::new(&plan(&[item("i0", &works("6")), item("i1", &works("0.1"))]));
    let (first, id, second) = hub.pair();
    hub.put(&id, &hub.object("blob", "hi"));
    sleep(Duration::from_secs(1));
    let bad = hub.bad_commit();
    hub.put(&id, &bad);
    both_succeed([first, second]);
    assert!(!hub.is_taken_over());
    hub.remove_object(&bad);
    hub.ends_well(2);
}

#[test]
fn a_beat_that_git_refuses_stops_no_driver() {
    let hub = Hub::new(&plan(&[item("i0", STUCK)]));
    let (first, _, second) = hub.pair();
    let (bad, made_up) = (hub.bad_commit(), "0".repeat(32));
    hub.put(&made_up, &bad);
    assert!(first.kill());
    assert_eq!(hub.show_driver("b", &made_up)["state"], "unknown");
    succeeds(second);
    assert!(hub.is_taken_over());
    hub.remove_object(&bad);
    hub.ends_well(1);
}

#[test]
fn old_beats_that_are_put_back_keep_no_driver_alive() {
    let hub = Hub::new(&plan(&[item("i0", STUCK)]));
    let (first, id, second) = hub.pair();
    sleep(Duration::from_secs(1));
    assert!(first.kill());
    let last = hub.in_hub(&["rev-parse", &Hub::beat_ref(&id)]);
    let before = hub.in_hub(&["rev-parse", &format!("{last}^")]);
    // A push of the taker that comes between two of these is lost, so there are gaps.
    for at in 0..30 {
        hub.put(&id, if at % 2 == 0 { &before } else { &last });
        sleep(Duration::from_millis(800));
        if hub.is_taken_over() {
            break;
        }
    }
    assert!(hub.is_taken_over());
    succeeds(second);
    hub.ends_well(1);
}

/// A remote that drops answers makes a driver meet its own first beat, again and again.
#[test]
fn a_first_beat_is_tried_until_nothing_else_moves_its_ref() {
    let hub = Hub::new(&plan(&items(1, "0")));
    let tree = hub.object("tree", "");
    let others = ["a", "b"].map(|text| hub.in_hub(&["commit-tree", "-m", text, &tree]));
    let script = format!(
        "set -e; unset GIT_QUARANTINE_PATH; while read -r old new name; do case $name in refs/handoff/drivers/*) \
         echo x >>../races; n=$(wc -l <../races); [ \"$n\" -gt 3 ] || \
         if [ $((n % 2)) = 1 ]; then git update-ref \"$name\" {}; else git update-ref \"$name\" {}; fi;; esac; done",
        others[0], others[1]
    );
    hub.hook("pre-receive", Some(&script));
    succeeds(hub.drive("repo"));
    assert!(hub.lines("races").len() > 3, "the first three beats found another value");
    hub.ends_well(1);
}

#[test]
fn made_up_beats_slow_no_driver() {
    let hub = Hub::new(&plan(&items(2, "0")));
    hub.repo.env.git(["config", "--global", "handoff.lostAfter", "1h"]).success();
    let tree = hub.object("tree", "");
    let commit = hub.in_hub(&["commit-tree", "-m", "made up", &tree]);
    let create = |at: u32| format!("create {} {commit}", Hub::beat_ref(&format!("{at:032x}")));
    // If they counted, drivers would wait for minutes between two pushes.
    hub.repo.env.write("refs", &((0..4000).map(create).collect::<Vec<_>>().join("\n") + "\n"));
    hub.repo.env.shell("hub.git", "git update-ref --stdin <../refs").success();
    succeeds(hub.drive("repo"));
    hub.ends_well(2);
}

#[test]
fn a_copy_of_a_clone_does_not_take_over_from_its_living_original() {
    let hub = Hub::new(&plan(&[item("i0", &works("4"))]));
    hub.repo.env.git(["config", "--global", "handoff.lostAfter", "1h"]).success();
    let (first, _) = hub.holder("repo");
    // The driver's temporary files may go while they are copied.
    let copy = "for nth in 1 2 3 4 5 6 7 8; do rm -rf copy; cp -a repo copy && exit; done; exit 1";
    hub.repo.env.shell("", copy).success();
    let root = hub.repo.path("worktrees-of-the-copy");
    hub.repo.env.git_in("copy", ["config", "handoff.workspace.root", root.to_str().unwrap()]).success();
    let second = hub.drive("copy");
    both_succeed([first, second]);
    assert_eq!(hub.of_kind("item.requeued"), [] as [Value; 0]);
    hub.ends_well(1);
}

#[test]
fn status_of_a_shared_run_names_its_remote() {
    let hub = Hub::new(&plan(&[item("i0", STUCK)]));
    hub.repo.env.git(["push", "--quiet", "origin", "refs/handoff/runs/r", "refs/handoff/bases/r"]).success();
    hub.clone("b", &[]);
    let (_driver, _) = hub.holder("b");
    hub.repo.env.handoff(["fetch", "origin"]).success();
    let (_, status, _) = hub.command("repo", &["status", "r"]);
    insta::assert_snapshot!(find_line(&status, "driven "), @"driven through a remote, by no driver of this repository");
    let own = hub.drive("repo");
    hub.wait_for_beats(2);
    assert!(own.kill());
    let (_, status_text, stderr) = hub.command("repo", &["status", "r"]);
    insta::assert_snapshot!(find_line(&status_text, "driven "), @"driven through origin, by no driver of this repository");
    insta::assert_snapshot!(find_line(&stderr, "hint: "), @"hint: git handoff status r --drivers");
    let (_, status_json, _) = hub.command("repo", &["status", "r", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&status_json).unwrap()["driver"], Value::Null);
    let (_, found, doctor_stderr) = hub.command("repo", &["doctor"]);
    insta::assert_snapshot!(find_line(&found, "note: the run "), @r#"note: the run "r" is driven through origin: 1 item(s) were running"#);
    assert!(found.lines().any(|line| line == "  git handoff status r --drivers"), "{found}{doctor_stderr}");
    let (_, doctor_found, _) = hub.command("repo", &["doctor", "--json"]);
    let findings: Value = serde_json::from_str(&doctor_found).unwrap();
    let codes: Vec<&Value> = findings["findings"].as_array().unwrap().iter().map(|it| &it["code"]).collect();
    assert!(codes.contains(&&json!("driven-elsewhere")), "{findings}");
}
