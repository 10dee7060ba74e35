//! Coordinators and drivers killed at random moments, until the example is finished.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::common::Environment;
use crate::common::repo::TestRepo;

/// The number of items of each rule in the pipeline.
const STEPS: [(&str, usize); 5] = [("categorize", 1), ("polish", 1), ("publish", 1), ("review", 2), ("translate", 1)];

#[test]
fn the_pipeline_ends_with_every_step_created_once_in_spite_of_kills() {
    let repo = TestRepo { env: Environment::example("translation-pipeline") };
    repo.config("handoff.subagent.translator.command", "sh specialists/translate.sh");
    // Each kill may cost an attempt.
    repo.config("handoff.queue.default.maxAttempts", "100");
    repo.env.handoff(["submit", "plan.json"]).success();
    let (mut round, mut killed) = (0_u64, 0);
    let name = repo.path("repo/.git/refs/handoff/runs/article-1");
    let tip = || std::fs::read_to_string(&name).ok().filter(|tip| tip.len() == 41);
    while !repo.is_sealed("article-1") && round < 60 {
        let mut driver = repo.start(&["run", "article-1"]);
        let others = [repo.start(&["coordinate", "article-1"]), repo.start(&["coordinate", "article-1"])];
        // After one to three entries, and a moment that is never the same: so the run gets on, and
        // not to its end at once.
        let (mut last, mut changes) = (tip(), 0);
        let until = Instant::now() + Duration::from_secs(20);
        while changes <= round % 3 && !driver.is_over() && Instant::now() < until {
            let now = tip();
            if now.is_some() && now != last {
                (last, changes) = (now, changes + 1);
            }
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(round * 7 % 20));
        killed += usize::from(driver.kill());
        for other in others {
            other.kill();
        }
        repo.passes_fsck();
        round += 1;
    }
    repo.env.handoff(["run", "article-1"]).success();
    assert!(killed > 3, "hardly anything was alive when it was killed");
    repo.is_clean();
    repo.is_intact("article-1");
    let (mut created, mut ids) = (BTreeMap::new(), BTreeSet::new());
    for entry in repo.entries("article-1").iter().filter(|entry| entry["kind"] == "run.extended") {
        *created.entry(entry["cause"]["rule"].as_str().unwrap().to_owned()).or_insert(0) += 1;
        let items = entry["items"].as_object().unwrap().keys();
        items.for_each(|id| assert!(ids.insert(id.clone()), "{id} was created twice"));
    }
    assert_eq!(created, BTreeMap::from(STEPS.map(|(rule, count)| (rule.to_owned(), count))));
    assert!(repo.items("article-1").values().all(|item| item.status == "done"));
}
