//! One key has one log at a remote, from however many clones its runs are sealed.

use super::{Hub, plan};
use crate::common::repo::item;

impl Hub {
    /// Returns the logs at the remote.
    fn logs(&self) -> Vec<String> {
        let listed = self.repo.env.git_in("hub.git", ["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]);
        listed.success().lines().map(str::to_owned).collect()
    }

    /// Submits a run in a new clone.
    fn submit(&self, run: &str) {
        self.clone(run, &[]);
        self.repo.env.write("plan.json", &serde_json::json!({ "id": run, "items": [item("a", "true")] }).to_string());
        self.repo.env.handoff_in(run, ["submit", "../plan.json"]).success();
    }

    #[track_caller]
    fn run_via(&self, clone: &str, run: &str) {
        let (code, out, err) = self.command(clone, &["run", run, "--via", "origin"]);
        assert_eq!(code, Some(0), "{out}{err}");
    }

    /// Verifies these runs in a clone that fetches them.
    #[track_caller]
    fn verifies(&self, runs: &[&str]) {
        self.clone("reader", &[]);
        self.repo.env.git_in("reader", ["config", "handoff.signingKey", ""]).success();
        // A log that is not sound is passed over, with the exit code 1.
        let _ = self.repo.env.handoff_in("reader", ["fetch", "origin"]);
        for run in runs {
            let (code, out, err) = self.command("reader", &["verify", &format!("origin/{run}"), "--json"]);
            assert_eq!(code, Some(0), "{out}{err}");
            let report: serde_json::Value = serde_json::from_str(&out).unwrap();
            assert_eq!(report["checks"]["anchor"]["detail"], "local (detect)", "{run}: {out}");
        }
    }
}

#[test]
fn fresh_clones_continue_the_log_of_their_key() {
    let hub = Hub::new(&plan(&[item("a", "true")]));
    hub.run_via("repo", "r");
    let logs = hub.logs();
    assert_eq!(logs.len(), 1);
    for run in ["r1", "r2", "r3"] {
        hub.submit(run);
        hub.run_via(run, run);
        assert_eq!(hub.logs(), logs, "{run}");
        // A log of this repository names only its own runs.
        assert_eq!(hub.repo.env.git_in(run, ["for-each-ref", "refs/handoff/logs/*.*"]).success(), "");
    }
    // The first clone, whose copy is behind, goes on with it, too.
    hub.repo.env.write("plan.json", &serde_json::json!({ "id": "again", "items": [item("a", "true")] }).to_string());
    hub.repo.env.handoff(["submit", "../plan.json"]).success();
    hub.run_via("repo", "again");
    assert_eq!(hub.logs(), logs);
    hub.repo.env.handoff(["push", "origin", "--all"]).success();
    assert_eq!(hub.logs(), logs);
    hub.verifies(&["r", "r1", "r2", "r3", "again"]);
}

#[test]
fn clones_that_seal_at_once_continue_one_log() {
    let hub = Hub::new(&plan(&[item("a", "true")]));
    hub.run_via("repo", "r");
    let logs = hub.logs();
    let runs = ["r1", "r2", "r3"];
    runs.iter().for_each(|run| hub.submit(run));
    std::thread::scope(|scope| runs.iter().for_each(|run| drop(scope.spawn(|| hub.run_via(run, run)))));
    assert_eq!(hub.logs(), logs);
    hub.verifies(&["r", "r1", "r2", "r3"]);
}

#[test]
fn a_log_that_cannot_be_continued_is_left_alone() {
    let hub = Hub::new(&plan(&[item("a", "true")]));
    hub.run_via("repo", "r");
    // Another key's commit stands under the name of our log.
    let log = hub.logs().remove(0);
    let main = hub.repo.env.git_in("hub.git", ["rev-parse", "main"]).success();
    hub.repo.env.git_in("hub.git", ["update-ref", &log, main.trim()]).success();
    hub.submit("r1");
    hub.run_via("r1", "r1");
    assert_eq!(hub.logs().len(), 2);
    assert_eq!(hub.repo.env.git_in("hub.git", ["rev-parse", &log]).success(), main);
    hub.verifies(&["r1"]);
}
