//! Transcripts of a shared run: all drivers push theirs to one ref of the remote, if configured.

use std::collections::BTreeSet;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use super::{Hub, both_succeed, plan, succeeds};
use crate::common::repo::{Driver, item, wait_for};
use crate::common::report::find_line;

/// The ref of the transcripts of the run `r`.
const REF: &str = "refs/handoff/transcripts/r";

impl Hub {
    /// Starts a driver of one item at a time that pushes transcripts.
    fn drive_telling(&self, clone: &str) -> Driver {
        self.drive_with(clone, tells)
    }

    /// Returns the items of which the remote has a transcript.
    fn published_transcripts(&self) -> BTreeSet<String> {
        let listed = self.repo.env.git_in("hub.git", ["ls-tree", "-r", "--name-only", REF]);
        listed.stdout.lines().filter_map(|path| Some(path.split('/').nth(1)?.to_owned())).collect()
    }

    /// Writes a tree to the remote that has a transcript of each of these items.
    fn tree_of(&self, items: &[&str]) -> String {
        let line = |item: &&str| {
            format!(
                "blob=$(echo {item} | git hash-object -w --stdin); one=$(printf '100644 blob %s\\t1\\n' $blob | git mktree); printf '040000 tree %s\\t{item}\\n' $one"
            )
        };
        let all: Vec<String> = items.iter().map(line).collect();
        let script =
            format!("all=$({{ {}; }} | git mktree); printf '040000 tree %s\\tff\\n' $all | git mktree", all.join("; "));
        self.repo.env.shell("hub.git", &script).success().trim().to_owned()
    }

    /// Fails unless a clone has the transcript of each of these items.
    #[track_caller]
    fn shows(&self, clone: &str, items: &[&str]) {
        for item in items {
            let (code, out, stderr) = self.command(clone, &["cat", &format!("r/{item}:transcript")]);
            assert_eq!((code, out.as_str()), (Some(0), format!("this is {item}\n").as_str()), "{stderr}");
        }
    }
}

fn tells(command: &mut Command) {
    command.args(["--transcripts", "--jobs", "1"]);
}

/// Returns a line of shell that prints, and ends when this many items are running.
fn waits_for(count: usize) -> String {
    format!(
        "echo this is $HANDOFF_ITEM; touch \"$HOME/../began-$HANDOFF_ITEM\"; echo x >outputs/x; \
         until [ $(ls \"$HOME/..\" | grep -c '^began-') -ge {count} ]; do sleep 0.05; done"
    )
}

/// Returns two items that two drivers of one item at a time must share.
fn two_items() -> Value {
    plan(&[item("i0", &waits_for(2)), item("i1", &waits_for(2))])
}

fn names(items: &[&str]) -> BTreeSet<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

#[test]
fn the_transcripts_of_two_drivers_stand_at_the_remote() {
    let hub = Hub::new(&two_items());
    hub.repo.env.git_in("hub.git", ["config", "uploadpack.allowFilter", "true"]).success();
    hub.clone("b", &[]);
    let before = hub.repo.env.git_in("b", ["config", "--list", "--local"]).success();
    let first = hub.drive_telling("repo");
    hub.wait_for_kind("run.shared");
    both_succeed([first, hub.drive_telling("b")]);
    hub.ends_well(2);
    assert_eq!(hub.published_transcripts(), names(&["i0", "i1"]));
    hub.clone("c", &[]);
    hub.repo.env.handoff_in("c", ["fetch", "origin", "--transcripts"]).success();
    hub.shows("c", &["i0", "i1"]);
    // The other's transcripts are not in a driver's clone until they are fetched.
    let ours = hub.repo.env.git_in("b", ["ls-tree", "-r", "--name-only", REF]).success();
    let other = if ours.contains("/i0/") { "i1" } else { "i0" };
    let (code, _, stderr) = hub.command("b", &["cat", &format!("r/{other}:transcript")]);
    assert_eq!(code, Some(1), "{stderr}");
    insta::assert_snapshot!(find_line(&stderr, "hint: "), @"hint: git handoff fetch origin --transcripts");
    hub.repo.env.handoff_in("b", ["fetch", "origin", "--transcripts"]).success();
    hub.shows("b", &["i0", "i1"]);
    assert_eq!(hub.repo.env.git_in("b", ["ls-tree", "-r", "--name-only", REF]).success(), ours);
    hub.repo.env.git_in("b", ["fsck", "--strict", "--no-dangling"]).success();
    assert_eq!(hub.repo.env.git_in("b", ["config", "--list", "--local"]).success(), before);
}

#[test]
fn without_the_flag_transcripts_stay_and_a_push_adds_them() {
    let hub = Hub::new(&two_items());
    hub.clone("b", &[]);
    let drive = |clone: &str| hub.drive_with(clone, |command| _ = command.args(["--jobs", "1"]));
    let first = drive("repo");
    hub.wait_for_kind("run.shared");
    both_succeed([first, drive("b")]);
    hub.ends_well(2);
    assert_eq!(hub.published_transcripts(), names(&[]));
    // A driver that finds nothing left to do pushes them, too.
    succeeds(hub.drive_telling("repo"));
    assert_eq!(hub.published_transcripts().len(), 1);
    hub.repo.env.handoff_in("b", ["push", "origin", "r", "--transcripts"]).success();
    assert_eq!(hub.published_transcripts(), names(&["i0", "i1"]));
    // A clone with fewer removes none.
    hub.repo.env.handoff_in("repo", ["push", "origin", "r", "--transcripts"]).success();
    assert_eq!(hub.published_transcripts(), names(&["i0", "i1"]));
}

#[test]
fn a_rival_push_between_read_and_push_loses_nothing() {
    let hub = Hub::new(&plan(&[item("i0", &waits_for(1))]));
    let (first, second) = (hub.tree_of(&["rival1"]), hub.tree_of(&["rival1", "rival2"]));
    let real = hub.repo.env.shell("", "command -v git").success();
    let (real, top) = (real.trim(), hub.repo.path("").display().to_string());
    let wrapper = format!(
        "#!/bin/sh\ncase \"$*\" in *' push '*{REF}*)\n\
         if mkdir {top}/first 2>/dev/null; then env -i {real} --git-dir={top}/hub.git update-ref {REF} {first}\n\
         elif mkdir {top}/second 2>/dev/null; then env -i {real} --git-dir={top}/hub.git update-ref {REF} {second}\n\
         fi;; esac\nexec {real} \"$@\"\n"
    );
    hub.repo.env.write("bin/git", &wrapper);
    hub.repo.env.shell("", "chmod +x bin/git").success();
    let path = format!("{}:{}", hub.repo.path("bin").display(), std::env::var("PATH").unwrap());
    succeeds(hub.drive_with("repo", |command| {
        tells(command);
        command.env("PATH", path);
    }));
    assert!(hub.repo.path("second").exists(), "both rivals pushed");
    assert_eq!(hub.published_transcripts(), names(&["i0", "rival1", "rival2"]));
    hub.ends_well(1);
}

#[test]
fn a_remote_that_refuses_transcripts_gives_one_warning() {
    let slow = |id: &str| item(id, &format!("{}; sleep 1.5", waits_for(1)));
    let hub = Hub::new(&plan(&[slow("i0"), slow("i1")]));
    let refuse = format!("case $1 in {REF}) echo $3 >>refused; echo 'no transcripts here' >&2; exit 1;; esac");
    hub.hook("update", Some(&refuse));
    let (status, output) = hub.drive_with("repo", tells).wait();
    assert!(status.success(), "{output}");
    insta::assert_snapshot!(find_line(&output, "warning: "), @"warning: cannot push the transcripts of r to origin: [remote rejected] (hook declined): no transcripts here error: hook declined to update refs/handoff/transcripts/r; they stay in this clone");
    assert!(hub.lines("hub.git/refused").len() > 1, "it was tried again");
    hub.ends_well(2);
}

#[test]
fn a_transcript_with_a_secret_stays() {
    let hub = Hub::new(&plan(&[item("i0", "echo correct-horse-battery-staple; echo x >outputs/x")]));
    succeeds(hub.drive("repo"));
    // It becomes known as a secret only after the transcript was recorded.
    hub.repo.config("handoff.executor.other.command", "true");
    hub.repo.config("handoff.executor.other.secretEnv", "TOKEN");
    let telling = |command: &mut Command| tells(command.env("TOKEN", "correct-horse-battery-staple"));
    let (status, output) = hub.drive_with("repo", telling).wait();
    assert!(status.success(), "{output}");
    let refused = find_line(&output, "warning: ");
    assert!(refused.starts_with("warning: cannot push the transcripts of r to origin: secret-found: "), "{output}");
    assert!(refused.ends_with("/i0/1:1 secret-env; they stay in this clone"), "{output}");
    assert_eq!(hub.published_transcripts(), names(&[]));
    succeeds(hub.drive_telling("repo"));
    assert_eq!(hub.published_transcripts(), names(&["i0"]));
}

#[test]
fn invalid_transcript_ref_is_replaced() {
    let hub = Hub::new(&plan(&[item("i0", &waits_for(1))]));
    hub.repo.env.git(["push", "--quiet", "origin", &format!("main:{REF}")]).success();
    succeeds(hub.drive_telling("repo"));
    assert_eq!(hub.published_transcripts(), names(&["i0"]));
}

#[test]
fn transcripts_are_pushed_during_a_run_and_at_its_end() {
    let hub = Hub::new(&plan(&[item("i0", &waits_for(1)), item("i1", &waits_for(3))]));
    let driver = hub.drive_telling("repo");
    wait_for("the first transcript", || !hub.published_transcripts().is_empty());
    hub.wait_for("item.fired", "i1");
    wait_for("the second item", || hub.repo.path("began-i1").exists());
    driver.signal(Signal::TERM);
    assert_eq!(driver.wait().0.code(), Some(130));
    assert_eq!(hub.published_transcripts(), names(&["i0", "i1"]));
}
