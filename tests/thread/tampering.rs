//! A thread that was tampered with is neither called intact nor continued.

use super::{ends, json, repository, save, strange_key, text, traces};
use crate::common::Environment;
use crate::common::report::find_row;

/// Asserts that verify fails in a row and that nothing is appended.
#[track_caller]
fn refused(env: &Environment, failure: &str) {
    let verified = json(&env.handoff(["--json", "thread", "verify", "t"]).exit(3).stdout);
    assert_eq!(verified["failure"], failure, "{verified}");
    let before = traces(env, "repo");
    env.write("repo/state", "more");
    ends(env, 1, &["checkpoint", "t", "--state", "state"]);
    assert_eq!(traces(env, "repo"), before);
}

#[test]
fn a_removed_end_is_missed() {
    let env = repository();
    let first = save(&env, "t", b"1", &[]);
    save(&env, "t", b"2", &[]);
    env.git(["update-ref", "refs/handoff/threads/t", text(&first["commit"])]).success();
    refused(&env, "anchor");
}

#[test]
fn garbage_on_top_of_the_log_hides_no_cut_off_end() {
    let env = repository();
    let first = save(&env, "t", b"1", &[]);
    save(&env, "t", b"2", &[]);
    let log = env.git(["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]).success();
    let garbage = env.git(["commit-tree", "-p", log.trim(), "-m", "x", &format!("{}^{{tree}}", log.trim())]).success();
    env.git(["update-ref", log.trim(), garbage.trim()]).success();
    // The rest of the log is unknown.
    let output = env.handoff(["thread", "verify", "t"]).exit(3);
    insta::assert_snapshot!(find_row(&output.stdout, "anchor"), @"✗ anchor     refs/handoff/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg is broken: commit 6f546c2: the commit is not an entry: the message is not a subject and an entry; its statements up to entry 1 count");
    env.git(["update-ref", "refs/handoff/threads/t", text(&first["commit"])]).success();
    let thread_verify_output = env.handoff(["thread", "verify", "t"]).exit(3);
    insta::assert_snapshot!(find_row(&thread_verify_output.stdout, "anchor"), @"✗ anchor     refs/handoff/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg holds 2 entries: the last are gone");
}

#[test]
fn verify_misses_a_removed_thread_whose_name_stays_reserved() {
    let env = repository();
    save(&env, "t", b"1", &[]);
    env.git(["update-ref", "-d", "refs/handoff/threads/t"]).success();
    ends(&env, 3, &["thread", "verify", "t"]);
    let before = traces(&env, "repo");
    env.write("repo/state", "more");
    ends(&env, 1, &["checkpoint", "t", "--state", "state"]);
    assert_eq!(traces(&env, "repo"), before);
}

#[test]
fn a_rewritten_checkpoint_is_found() {
    let env = repository();
    save(&env, "t", b"1", &[]);
    save(&env, "t", b"2", &[]);
    // The same entry and signature over a tree with other bytes.
    let script = "
        blob=$(printf evil | git hash-object -w --stdin)
        tree=$(printf '100644 blob %s\\tstate\\n' $blob | git mktree)
        commit=$(git cat-file commit refs/handoff/threads/t | sed \"1s/.*/tree $tree/\" | git hash-object -w -t commit --stdin)
        git update-ref refs/handoff/threads/t $commit";
    env.shell("repo", script).success();
    refused(&env, "signature");
}

#[test]
fn rewriting_a_state_together_with_its_hash_breaks_the_signature() {
    let env = repository();
    save(&env, "t", b"1", &[]);
    let script = r#"
        new=$(printf 2 | sha256sum | cut -d' ' -f1); old=$(printf 1 | sha256sum | cut -d' ' -f1)
        oldblob=$(printf 1 | git hash-object --stdin); newblob=$(printf 2 | git hash-object -w --stdin)
        tree=$(printf '100644 blob %s\tstate\n' $newblob | git mktree)
        commit=$(git cat-file commit refs/handoff/threads/t | sed "1s/.*/tree $tree/; s/$old/$new/; s/$oldblob/$newblob/" \
            | git hash-object -w -t commit --stdin)
        git update-ref refs/handoff/threads/t $commit"#;
    env.shell("repo", script).success();
    refused(&env, "signature");
}

#[test]
fn an_entry_by_another_key_is_refused() {
    let env = repository();
    save(&env, "t", b"1", &[]);
    let clean = env.git(["rev-parse", "refs/handoff/threads/t"]).success();
    let key = strange_key(&env);
    // The stranger cannot append to it here ...
    env.git(["config", "handoff.signingKey", &key]).success();
    env.write("repo/state", "more");
    let output = env.handoff(["checkpoint", "t", "--state", "state"]).exit(1);
    insta::assert_snapshot!(output.stderr, @r#"
    error: the thread "t" belongs to the key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg, not to SHA256:isH6DG48ZqdRjaioUoUR4aEx0BegtZVO1402cZS/zvc
    hint: git handoff fork t --as NAME
    "#);
    assert_eq!(env.git(["rev-parse", "refs/handoff/threads/t"]).success(), clean);
    // ... and what it signs elsewhere is no evidence.
    env.git(["update-ref", "-d", "refs/handoff/threads/t"]).success();
    env.git([
        "update-ref",
        "-d",
        env.git(["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]).success().trim(),
    ])
    .success();
    save(&env, "t", b"1", &[]);
    let forged = env.git(["cat-file", "commit", "refs/handoff/threads/t"]).success();
    assert!(forged.contains("thread.checkpointed"));
    env.git(["config", "--unset", "handoff.signingKey"]).success();
    let verified = json(&env.handoff(["--json", "thread", "verify", "t"]).exit(0).stdout);
    assert_eq!(verified["checks"]["signature"]["ok"], "n/a", "{verified}");
    env.write("signers", "");
    ends(&env, 3, &["thread", "verify", "t", "--signers", "../signers"]);
}

#[test]
fn a_missing_or_damaged_state_is_found() {
    let env = repository();
    let saved = save(&env, "t", b"1", &[]);
    crate::common::loosen(&env.repo());
    let blob = text(&saved["blob_id"]).to_owned();
    let file = format!("repo/.git/objects/{}/{}", &blob[..2], &blob[2..]);
    std::fs::remove_file(env.path().join(&file)).expect("the blob is loose");
    let verified = json(&env.handoff(["--json", "thread", "verify", "t"]).exit(3).stdout);
    assert_eq!(verified["failure"], "content");
    ends(&env, 1, &["resume", "t"]);
    ends(&env, 1, &["thread", "cat", "t"]);
    let other = env.shell("repo", "printf other | git hash-object -w --stdin").success();
    let other = other.trim();
    let from = env.path().join(format!("repo/.git/objects/{}/{}", &other[..2], &other[2..]));
    std::fs::copy(from, env.path().join(&file)).expect("the file can be written");
    ends(&env, 3, &["thread", "verify", "t"]);
    let output = env.handoff(["resume", "t"]).exit(1);
    assert_eq!(output.raw, b"");
}

#[test]
fn the_trees_of_entries_are_not_judged() {
    let env = repository();
    save(&env, "t", b"1", &[]);
    save(&env, "t", b"2", &["--worktree"]);
    crate::common::loosen(&env.repo());
    let tree = env.git(["rev-parse", "refs/handoff/threads/t~1^{tree}"]).success();
    let file = env.path().join(format!("repo/.git/objects/{}/{}", &tree[..2], tree[2..].trim()));
    std::fs::remove_file(&file).expect("the tree is loose");
    ends(&env, 0, &["thread", "verify", "t"]);
}

#[test]
fn whatever_the_ref_points_at_gets_a_report() {
    let env = repository();
    env.git(["update-ref", "refs/handoff/threads/t", "HEAD"]).success();
    refused(&env, "chain");
    env.git(["update-ref", "refs/handoff/threads/t", env.git(["rev-parse", "HEAD:file"]).success().trim()]).success();
    refused(&env, "chain");
    env.git(["symbolic-ref", "refs/handoff/threads/t", "refs/heads/main"]).success();
    ends(&env, 3, &["thread", "verify", "t"]);
    ends(&env, 1, &["thread", "verify", "none"]);
}
