//! The cost of a write: writers verify new entries only, and data that others can write does not
//! vouch for the rest.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::PathBuf;

use git_handoff::git::store::Store;
use git_handoff::ledger::sign::Signer;
use git_handoff::model::name::RunId;
use git_handoff::verify::{Appender, Begun, Continuable, Mark, Refusal, Verified, continuable, continuable_on};
use serde_json::{Value, json};

use super::{open, put};
use crate::common::ground::{Ground, after, item};

const REFERENCE: &str = "refs/handoff/runs/r";

/// Verifies the run `r` as a writer does, with the mark of a commit.
fn verified(ground: &Ground, commit: Option<&str>) -> Result<Verified<Continuable>, Refusal> {
    let store = Store::discover(&ground.env.repo()).unwrap();
    let key = Signer::from_file(&ground.path("home/signing_key")).unwrap().fingerprint();
    let run = RunId::parse("r").unwrap();
    match commit {
        Some(commit) => {
            let mark = Mark { commit: commit.parse().unwrap(), key: key.clone() };
            let appender = Appender { key: &key, begun: Begun::ByKnown(None), mark: Some(&mark) };
            continuable_on(&store, &run, REFERENCE, appender)
        }
        None => continuable(&store, &run, REFERENCE, &key),
    }
}

/// Returns what appending goes by.
fn told(one: &Continuable) -> String {
    let Continuable { first, commit, tree, last, at, frontier, state, .. } = one;
    let state = (&state.items, state.documents.names().collect::<Vec<_>>(), state.graph.items(), state.is_settled());
    format!("{:?} {state:?}", (first, commit, tree, last, at, frontier.root(), frontier.len()))
}

fn mark(ground: &Ground) -> PathBuf {
    ground.env.repo().join(".git/handoff/verified/r")
}

/// Returns the commit that the mark of the run `r` names.
fn marked(ground: &Ground) -> String {
    let kept: Value = serde_json::from_slice(&fs::read(mark(ground)).unwrap()).unwrap();
    kept["commit"].as_str().unwrap().to_owned()
}

/// Returns the commits of the run `r`, the first one first.
fn commits(ground: &Ground) -> Vec<String> {
    let listed = ground.env.git(["rev-list", "--reverse", REFERENCE]).success();
    listed.lines().map(str::to_owned).collect()
}

#[test]
fn each_write_verifies_what_came_since_the_last() {
    let ground = open();
    for count in [5, 20] {
        (0..count).for_each(|at| drop(put(&ground, "n", &format!("{count} {at}"), &[]).success()));
        let commits = commits(&ground);
        // The last write did not verify its own entry.
        assert_eq!(marked(&ground), commits[commits.len() - 2]);
        assert_eq!(verified(&ground, Some(&marked(&ground))).unwrap().examined, 1);
        assert_eq!(verified(&ground, None).unwrap().examined, commits.len());
    }
    // Whatever the mark is, it is only asked for what it says.
    for odd in [&b""[..], b"{", b"{}", br#"{"commit":"0000","key":"x","tool":"git-handoff"}"#] {
        fs::write(mark(&ground), odd).unwrap();
        put(&ground, "n", "x", &[]).success();
        assert_eq!(marked(&ground), commits(&ground).iter().rev().nth(1).unwrap().as_str());
    }
    ground.env.handoff(["run", "r"]).success();
    ground.is_intact("r");
    // A sealed run needs none.
    ground.env.handoff(["run", "r"]).success();
    assert!(!mark(&ground).exists());
}

#[test]
fn a_run_comes_to_the_same_from_every_mark() {
    let ground = super::ground();
    let mut made = item("a", "echo '{\"score\":1}' >outputs/s; echo x >new.txt");
    made["produces"] = json!([{"kind": "document", "name": "s", "path": "s", "schema": "score@1"}, {"kind": "patch"}]);
    let items = [made, item("f", "test -e ../never"), after("g", &["f"], "true"), after("b", &["a"], "true")];
    ground.env.write("plan.json", &json!({"id": "r", "openEnded": true, "items": items}).to_string());
    ground.env.handoff(["submit", "../plan.json"]).success();
    put(&ground, "notes", "one", &[]).success();
    // The same bytes again change nothing in the tree.
    put(&ground, "notes", "one", &[]).success();
    assert_eq!(ground.env.handoff(["run", "r"]).status, Some(4));
    ground.env.write(
        "more.json",
        &json!({"id": "r", "openEnded": true, "items": [after("more", &["b"], "true")]}).to_string(),
    );
    ground.env.handoff(["extend", "r", "../more.json"]).success();
    ground.env.handoff(["retry", "r/f"]).success();
    ground.env.handoff(["cancel", "r/g"]).success();
    put(&ground, "notes", "one", &[]).success();
    assert_eq!(ground.env.handoff(["run", "r"]).status, Some(4));
    let whole = verified(&ground, None).unwrap();
    let commits = commits(&ground);
    assert!(commits.len() > 15, "{}", commits.len());
    for (at, commit) in commits.iter().enumerate() {
        let found = verified(&ground, Some(commit)).unwrap();
        assert_eq!(found.examined, commits.len() - at - 1);
        assert_eq!(told(&found), told(&whole), "from entry {at} on");
    }
    ground.ends_intact("r");
}

/// Writes a commit of the run `r` again without its signature, on top of the same one, and moves
/// the ref there.
fn unsign(ground: &Ground, commit: &str) -> String {
    let script = format!(
        "git cat-file commit {commit} | awk '/^gpgsig/ {{ skip = 1; next }} skip && /^ / {{ next }} {{ skip = 0; print }}' \
         | git hash-object -t commit -w --stdin"
    );
    let forged = ground.env.shell("repo", &script).success().trim().to_owned();
    ground.env.git(["update-ref", REFERENCE, &forged]).success();
    forged
}

#[test]
fn a_mark_vouches_for_nothing_that_came_after_it_or_stands_elsewhere() {
    let ground = open();
    (0..4).for_each(|at| drop(put(&ground, "n", &at.to_string(), &[]).success()));
    let honest = commits(&ground);
    // On top of what is marked; and in the place of what is marked.
    for at in [honest.len() - 1, honest.len() - 2, 1] {
        ground.env.git(["update-ref", REFERENCE, &honest[at]]).success();
        let forged = unsign(&ground, &honest[at]);
        let before = ground.refs();
        let refused = put(&ground, "n", "more", &[]);
        let why = format!("error: run r does not verify: entry {at}: it is not signed\nhint: git handoff verify r\n");
        assert_eq!(refused.stderr, why);
        assert_eq!(ground.refs(), before);
        assert_ne!(marked(&ground), forged);
    }
    ground.env.git(["update-ref", REFERENCE, honest.last().unwrap()]).success();
    put(&ground, "n", "more", &[]).success();
    ground.env.handoff(["run", "r"]).success();
    ground.is_intact("r");
}
