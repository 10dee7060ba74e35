//! The hooks of the plugin: which thread they name, and what they save.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::{json, repository, save};
use crate::common::Environment;

/// Runs a hook in a folder; returns what it prints.
#[track_caller]
fn hook(env: &Environment, dir: &str, words: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugin/hooks/handoff.sh");
    env.shell(dir, &format!("sh '{}' {words} </dev/null", path.display())).success()
}

/// Returns the thread that the hook at the start names.
#[track_caller]
fn thread(env: &Environment, dir: &str) -> String {
    let printed = hook(env, dir, "start");
    let line =
        printed.lines().find_map(|line| line.strip_prefix("The thread of this branch is ")).expect("it is named");
    line.split_once(". ").expect("a sentence").0.to_owned()
}

#[test]
fn no_two_branches_keys_or_work_trees_share_a_thread() {
    let env = repository();
    save(&env, "notes", b"x", &[]);
    let long = "x".repeat(119);
    let (long_a, long_b) = (format!("{long}a"), format!("{long}b"));
    let chinese = "\u{767b}".repeat(60);
    let names = [
        "feature/login",
        "feature-login",
        "feature_login",
        "Feature/login",
        "\u{434}\u{43e}\u{43c}",
        "\u{434}\u{43e}\u{43b}",
    ];
    let more = ["detached", "a.b", "a@b", &chinese, &long_a, &long_b];
    let mut threads = BTreeSet::new();
    for name in names.iter().chain(&more) {
        env.git(["switch", "--quiet", "--create", name, "main"]).success();
        let thread = thread(&env, "repo");
        assert!(thread.len() <= 100, "{thread}");
        // A tag of that name changes nothing.
        env.git(["tag", name]).success();
        assert_eq!(self::thread(&env, "repo"), thread);
        env.write("repo/draft", name);
        assert_eq!(hook(&env, "repo", "save 'at stop'"), "");
        assert!(env.handoff(["check", &thread]).success().contains("Classification: CLEAN"), "{thread}");
        assert!(threads.insert(thread.clone()), "{thread} of {name} is another branch's");
    }
    // `detached` is a branch, too.
    env.shell("repo", "git switch --quiet detached && git worktree add --quiet --detach ../one && git worktree add --quiet --detach ../two")
        .success();
    env.git(["switch", "--quiet", "--detach"]).success();
    let (one, two) = (thread(&env, "one"), thread(&env, "two"));
    assert_eq!((&one, &two), (&thread(&env, "one"), &thread(&env, "two")));
    assert!(threads.insert(one) && threads.insert(two) && threads.insert(thread(&env, "repo")), "{threads:?}");
    let key = super::strange_key(&env);
    env.git(["switch", "--quiet", "main"]).success();
    let ours = thread(&env, "repo");
    env.git(["config", "handoff.signingKey", &key]).success();
    assert_ne!(thread(&env, "repo"), ours);
}

#[test]
fn hook_reports_a_large_untracked_file_and_saves_the_rest() {
    let env = repository();
    save(&env, "notes", b"x", &[]);
    env.git(["config", "handoff.maxProductSize", "1000"]).success();
    env.write("repo/big [1].bin", &"x".repeat(1001));
    env.write("repo/draft", "a word");
    let thread = thread(&env, "repo");
    let printed: Value = json(&hook(&env, "repo", "save 'at stop'"));
    let line = "git handoff: left out: big [1].bin, larger than 1000 bytes, the most that is taken";
    assert_eq!(printed["systemMessage"], line);
    // Nothing changed, so there is no second message.
    assert_eq!(hook(&env, "repo", "save 'at stop'"), "");
    let latest = json(&env.handoff(["thread", "log", &thread, "--json"]).success());
    let stdout = env.handoff(["thread", "show", &thread, "--json"]).success();
    assert_eq!(json(&stdout)["worktree"]["ignored"][0]["path"], "big [1].bin", "{latest}");
    env.write("repo/token.txt", &["ghp_0123456789abcdefghij", "ABCDEFGHIJ012345\n"].concat());
    let second_printed: Value = json(&hook(&env, "repo", "save 'at stop'"));
    let message = second_printed["systemMessage"].as_str().expect("a text");
    assert!(message.starts_with("git handoff saved no checkpoint: error: "), "{message}");
}
