//! Threads that many write at once: whatever is compatible lands, each once, and every chain is one
//! line.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use super::at_once;
use crate::common::repo::{Driver, TestRepo};
use crate::common::report::find_line;

/// Starts checkpoints at the same time, each with a state of its own; returns what they printed.
fn save_at_once(
    repo: &TestRepo,
    count: usize,
    thread: impl Fn(usize) -> String,
    how: impl Fn(usize, &mut Command),
) -> Vec<Value> {
    let started: Vec<Driver> = (0..count)
        .map(|at| {
            repo.env.write(&format!("state-{at}"), &format!("state {at}"));
            let (thread, state) = (thread(at), repo.path(&format!("state-{at}")));
            let arguments = ["checkpoint", &thread, "--state", state.to_str().unwrap()];
            repo.start_with(&arguments, |command| how(at, command))
        })
        .collect();
    started.into_iter().map(printed).collect()
}

/// Waits for a command that must succeed, and returns the object that it printed.
#[track_caller]
fn printed(command: Driver) -> Value {
    let (status, output) = command.wait();
    assert_eq!(status.code(), Some(0), "{output}");
    serde_json::from_str(&output).unwrap_or_else(|e| panic!("{e}: {output}"))
}

/// Returns the checkpoints of a thread, the first one first.
fn trail(repo: &TestRepo, thread: &str) -> Vec<Value> {
    let printed = repo.env.handoff(["thread", "log", "--json", thread]).success();
    let mut trail: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    trail.reverse();
    trail
}

fn texts<'v>(values: impl IntoIterator<Item = &'v Value>, name: &str) -> BTreeSet<String> {
    values.into_iter().map(|value| value[name].as_str().expect("a text").to_owned()).collect()
}

/// Holds that a thread verifies, and that its commits are one line of so many.
#[track_caller]
fn is_one_line(repo: &TestRepo, thread: &str, entries: usize) {
    repo.env.handoff(["thread", "verify", thread]).success();
    let commits = repo.env.git(["rev-list", "--count", &format!("refs/handoff/threads/{thread}")]).success();
    assert_eq!(commits.trim(), entries.to_string(), "{thread}");
    let reached = repo.env.git(["rev-list", "--count", "--first-parent", &format!("refs/handoff/threads/{thread}")]);
    assert_eq!(reached.success().trim(), entries.to_string(), "{thread}");
}

#[test]
fn checkpoints_of_one_thread_all_land() {
    let repo = TestRepo::new();
    // The first makes the thread, and the repository's key.
    for count in [8, 20] {
        let thread = format!("t{count}");
        let made = save_at_once(&repo, count, |_| thread.clone(), |_, _| {});
        let trail = trail(&repo, &thread);
        assert_eq!(trail.len(), count);
        for name in ["checkpoint_id", "commit", "blob_sha256"] {
            let (saved, there) = (texts(&made, name), texts(&trail, name));
            assert_eq!((saved.len(), saved), (count, there), "{name}");
        }
        is_one_line(&repo, &thread, count);
    }
    repo.is_clean();
}

#[test]
fn the_same_state_saved_many_times_in_one_moment_is_that_many_checkpoints() {
    let repo = TestRepo::new();
    repo.env.write("state", "x");
    // The first commit of the thread would be identical for everyone.
    let arguments = ["checkpoint", "t", "--state", "../state"];
    let save = |_| {
        repo.start_with(&arguments, |command| {
            command.env("HANDOFF_CLOCK", "2027-01-01T00:00:00.000Z");
        })
    };
    let started: Vec<Driver> = (0..8).map(save).collect();
    let made: Vec<Value> = started.into_iter().map(printed).collect();
    assert_eq!(texts(&made, "commit").len(), 8);
    is_one_line(&repo, "t", 8);
}

#[test]
fn working_trees_that_differ_are_saved_each_for_itself() {
    let repo = TestRepo::new();
    for at in 0..8 {
        let folder = format!("../tree-{at}");
        repo.env.git(["worktree", "add", "--quiet", "--detach", &folder]).success();
        repo.env.write(&format!("tree-{at}/only-{at}.txt"), &format!("{at}\n"));
        repo.env.write(&format!("tree-{at}/a.txt"), &format!("changed by {at}\n"));
    }
    let made = save_at_once(
        &repo,
        8,
        |_| "t".to_owned(),
        |at, command| {
            command.arg("--worktree").current_dir(repo.path(&format!("tree-{at}")));
        },
    );
    for (at, outputs) in made.iter().enumerate() {
        let commit = outputs["commit"].as_str().expect("a commit");
        let files = repo.env.git(["ls-tree", "--name-only", &format!("{commit}:worktree")]).success();
        assert_eq!(files, format!("a.txt\ndir\nonly-{at}.txt\n"));
        let changed = repo.env.git(["cat-file", "-p", &format!("{commit}:worktree/a.txt")]).success();
        assert_eq!(changed, format!("changed by {at}\n"));
    }
    is_one_line(&repo, "t", 8);
}

#[test]
fn threads_share_one_log() {
    let repo = TestRepo::new();
    let made = save_at_once(&repo, 12, |at| format!("t{}", at % 6), |_, _| {});
    assert_eq!(texts(&made, "commit").len(), 12);
    for at in 0..6 {
        is_one_line(&repo, &format!("t{at}"), 2);
    }
    // The log names both checkpoints of each, which does not count as lost entries.
    let log = repo.env.git(["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]).success();
    let commits = repo.env.git(["log", "--format=%b", log.trim()]).success();
    let entries: Vec<Value> =
        serde_json::Deserializer::from_str(&commits).into_iter::<Value>().map(Result::unwrap).collect();
    let ends = entries.iter().filter(|entry| entry["kind"] == "log.recorded" && entry["lastSeq"] == 1);
    assert_eq!(ends.count(), 6, "{commits}");
}

#[test]
fn whatever_is_done_with_a_thread_at_once_is_done() {
    let repo = TestRepo::new();
    repo.env.write("state", "first");
    let first: Value =
        serde_json::from_str(&repo.env.handoff(["checkpoint", "t", "--state", "../state"]).success()).unwrap();
    let first = format!("t:{}", first["checkpoint_id"].as_str().unwrap());
    let offers: Vec<String> = (0..3)
        .map(|at| {
            let offer = repo.env.handoff(["offer", &first]).success();
            repo.env.write(&format!("offer-{at}"), &offer);
            format!("../offer-{at}")
        })
        .collect();
    let mut commands: Vec<Vec<String>> = Vec::new();
    let mut add = |words: &[&str]| commands.push(words.iter().map(|word| (*word).to_owned()).collect());
    for (at, offer) in offers.iter().enumerate() {
        add(&["checkpoint", "t", "--state", "../state"]);
        add(&["rollback", &first]);
        add(&["resume", "t"]);
        add(&["fork", "t", "--as", &format!("fork-{at}")]);
        add(&["adopt", offer, "--as", &format!("adopted-{at}")]);
        add(&["offer", "t"]);
        add(&["thread", "verify", "t"]);
    }
    let words: Vec<Vec<&str>> = commands.iter().map(|words| words.iter().map(String::as_str).collect()).collect();
    let ended = at_once(&repo, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
    for (arguments, (code, output)) in words.iter().zip(&ended) {
        assert_eq!(*code, 0, "{arguments:?}: {output}");
    }
    // The first checkpoint, three more, three that go back, three that were handed out.
    is_one_line(&repo, "t", 10);
    assert_eq!(trail(&repo, "t").len(), 7);
    for at in 0..3 {
        repo.env.handoff(["thread", "verify", &format!("fork-{at}")]).success();
        repo.env.handoff(["thread", "verify", &format!("adopted-{at}")]).success();
    }
    repo.is_clean();
}

#[test]
fn concurrent_adoptions_use_a_name_and_an_offer_once() {
    let repo = TestRepo::new();
    repo.env.write("state", "first");
    repo.env.handoff(["checkpoint", "t", "--state", "../state"]).success();
    let offer = repo.env.handoff(["offer", "t"]).success();
    repo.env.write("offer", &offer);
    let forks = at_once(&repo, &[&["fork", "t", "--as", "new"][..]; 6]);
    let names: Vec<String> = (0..6).map(|at| format!("mine-{at}")).collect();
    let adoptions: Vec<[&str; 4]> = names.iter().map(|name| ["adopt", "../offer", "--as", name.as_str()]).collect();
    let adoptions = at_once(&repo, &adoptions.iter().map(|words| &words[..]).collect::<Vec<_>>());
    for (ended, why) in [
        (forks, "error: there is a thread \"new\" here already"),
        (adoptions, "error: the offer was used in this repository before"),
    ] {
        let refused: Vec<_> = ended.iter().filter(|(code, _)| *code != 0).collect();
        assert_eq!(refused.len(), 5, "{ended:?}");
        // No hint suggests a hopeless retry.
        assert!(refused.iter().all(|(code, output)| *code == 1 && find_line(output, "error: ") == why), "{ended:?}");
    }
    repo.env.handoff(["thread", "verify", "new"]).success();
    repo.is_clean();
}
