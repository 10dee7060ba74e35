//! Many items, and git's own housekeeping meanwhile.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::common::repo::{TestRepo, item};

#[test]
fn git_gc_meanwhile_takes_nothing_away() {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.concurrency", "4");
    let items: Vec<_> = (0..60)
        .map(|at| {
            let mut item =
                item(&format!("i{at}"), "echo $HANDOFF_ITEM >>a.txt; echo $HANDOFF_ITEM >outputs/id; echo said");
            if at >= 4 {
                let from = format!("i{}", at - 4);
                item["needs"] =
                    serde_json::json!({ "id": { "from": from, "select": { "kind": "output", "path": "id" } } });
            }
            item
        })
        .collect();
    repo.submit("r", &items);
    let (over, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut gc = repo.env.command("git", "repo");
    gc.args(["gc", "--quiet"]);
    let output = std::thread::scope(|scope| {
        let collecting = scope.spawn(|| {
            while !over.load(Ordering::SeqCst) || rounds.load(Ordering::SeqCst) < 3 {
                // One that began in the very moment in which packs were merged may miss one of
                // them, and is right the next time.
                let output = (0..3).map(|_| gc.output().unwrap()).find(|output| output.status.success());
                assert!(output.is_some(), "git gc does not get through");
                rounds.fetch_add(1, Ordering::SeqCst);
            }
        });
        let output = repo.env.handoff(["run", "r"]);
        over.store(true, Ordering::SeqCst);
        collecting.join().unwrap();
        output
    });
    assert_eq!(output.status, Some(0), "{output}");
    repo.is_clean();
    repo.is_intact("r");
}

#[test]
fn many_items_end_when_eight_run_at_a_time() {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.concurrency", "8");
    // More than a flat `items/` holds. What is tested here is neither the disk nor the shell.
    repo.config("handoff.durability", "relaxed");
    let items: Vec<_> = (0..160)
        .map(|at| {
            let mut item = item(&format!("i{at}"), "");
            item["inputs"]["command"] = serde_json::json!(["true"]);
            item["resourceLocks"] = if at % 10 == 0 { serde_json::json!(["one"]) } else { serde_json::json!([]) };
            item["depends_on"] =
                if at % 7 == 6 { serde_json::json!([format!("i{}", at - 3)]) } else { serde_json::json!([]) };
            item
        })
        .collect();
    repo.drive("r", &items).success();
    assert!(repo.items("r").values().all(|item| item.status == "done" && item.attempts == 1));
    assert_eq!(repo.entries("r").len(), 2 * 160 + 2);
    repo.is_clean();
    repo.is_intact("r");
    costs_little(&repo, 160);
}

#[test]
fn item_cost_is_independent_of_the_item_count() {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.concurrency", "8");
    repo.config("handoff.durability", "relaxed");
    let items: Vec<_> = (0..500)
        .map(|at| {
            let mut item = item(&format!("i{at}"), "");
            item["inputs"]["command"] = serde_json::json!(["true"]);
            item
        })
        .collect();
    repo.drive("r", &items).success();
    costs_little(&repo, 500);
    repo.is_intact("r");
}

/// Checks what no-op items take: as they were written, on a remote, and after `git gc`.
fn costs_little(repo: &TestRepo, items: u64) {
    let most = items * 2_500;
    let packed = |repository: &str| -> u64 {
        let folder = std::fs::read_dir(repo.path(repository).join("objects/pack")).expect("there are packs");
        folder.map(|file| file.and_then(|file| file.metadata()).expect("a pack can be looked at").len()).sum()
    };
    let written = packed("repo/.git");
    assert!(written < most * 2, "{written} bytes as written");
    repo.env.git(["init", "--quiet", "--bare", "../hub"]).success();
    repo.env.handoff(["push", "../hub", "r"]).success();
    let pushed = packed("hub");
    assert!(pushed < most, "{pushed} bytes on the remote");
    repo.env.git(["gc", "--quiet"]).success();
    let collected = packed("repo/.git");
    assert!(collected < most, "{collected} bytes after git gc");
}
