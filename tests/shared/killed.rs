//! Drivers that are killed again and again.

use serde_json::Value;

use super::{Hub, plan, succeeds};
use crate::common::repo::{item, wait_for};

/// A hub whose only item ends at its second attempt, and whose drivers are never silent for too
/// long.
fn hub() -> Hub {
    let hub = Hub::new(&plan(&[item("i0", "test $HANDOFF_ATTEMPT = 2 || sleep 60; echo x >outputs/x")]));
    hub.repo.env.git(["config", "--global", "handoff.lostAfter", "1h"]).success();
    hub
}

/// Returns the beats on the remote.
fn beats(hub: &Hub) -> Vec<Value> {
    let listed = hub.repo.env.git_in("hub.git", ["for-each-ref", "--format=%(contents)", "refs/handoff/drivers/r"]);
    listed.success().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The second driver dies before it could take over what the first one left.
#[test]
fn a_driver_that_dies_at_its_start_leaves_nothing_behind() {
    let hub = hub();
    let first = hub.drive("repo");
    let lost = hub.wait_for("item.fired", "i0")["driver"].clone();
    hub.hook("pre-receive", Some("! grep -q refs/handoff/runs/r"));
    assert!(first.kill());
    let second = hub.drive("repo");
    hub.wait_for_beats(2);
    assert!(second.kill());
    hub.hook("pre-receive", None);
    succeeds(hub.drive("repo"));
    hub.ends_well(1);
    let back = hub.of_kind("item.requeued");
    assert_eq!((back.len(), &back[0]["because"], &back[0]["driver"]), (1, &"lock".into(), &lost), "{back:?}");
    // Nor do their beats stay.
    hub.wait_for_beats(0);
}

/// The machine may die again, so one with a free slot goes on with what it lost.
#[test]
fn items_of_a_killed_driver_go_to_a_free_slot() {
    let hub = hub();
    hub.clone("b", &[]);
    let first = hub.drive("repo");
    hub.wait_for("item.fired", "i0");
    let other = hub.drive_with("b", |command| {
        command.env("HANDOFF_ACTOR", "agent:b");
    });
    wait_for("a free slot", || beats(&hub).iter().any(|beat| beat["free"].as_u64() > Some(1)));
    assert!(first.kill());
    let again = hub.drive("repo");
    for driver in [other, again] {
        succeeds(driver);
    }
    hub.ends_well(1);
    let fired = hub.of_kind("item.fired");
    assert_eq!(fired.last().unwrap()["actor"], "agent:b", "{fired:?}");
    assert_eq!(hub.of_kind("item.requeued")[0]["because"], "lock");
}
