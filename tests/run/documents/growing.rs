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
use crate::common::repo::{TestRepo, after, item};

const REFERENCE: &str = "refs/handoff/runs/r";

/// Verifies the run `r` as a writer does, with the mark of a commit.
fn verified(repo: &TestRepo, commit: Option<&str>) -> Result<Verified<Continuable>, Refusal> {
    let store = Store::discover(&repo.env.repo()).unwrap();
    let key = Signer::from_file(&repo.path("home/signing_key")).unwrap().fingerprint();
    let run = RunId::parse("r").unwrap();
    match commit {
        Some(commit) => {
            let mark = Mark { commit: commit.parse().unwrap(), key: key.clone() };
            let appender = Appender { key: &key, begun: Begun::ByKnown(None), mark: Some(&mark), now: None };
            continuable_on(&store, &run, REFERENCE, appender)
        }
        None => continuable(&store, &run, REFERENCE, &key),
    }
}

/// Returns what appending goes by.
fn describe(one: &Continuable) -> String {
    let Continuable { first, commit, tree, last, at, frontier, state, .. } = one;
    let state = (&state.items, state.documents.names().collect::<Vec<_>>(), state.graph.items(), state.is_settled());
    format!("{:?} {state:?}", (first, commit, tree, last, at, frontier.root(), frontier.len()))
}

fn mark(repo: &TestRepo) -> PathBuf {
    repo.env.repo().join(".git/handoff/verified/r")
}

/// Returns the commit that the mark of the run `r` names.
fn marked(repo: &TestRepo) -> String {
    let saved_mark: Value = serde_json::from_slice(&fs::read(mark(repo)).unwrap()).unwrap();
    saved_mark["commit"].as_str().unwrap().to_owned()
}

/// Returns the commits of the run `r`, the first one first.
fn commits(repo: &TestRepo) -> Vec<String> {
    let listed = repo.env.git(["rev-list", "--reverse", REFERENCE]).success();
    listed.lines().map(str::to_owned).collect()
}

#[test]
fn each_write_verifies_what_came_since_the_last() {
    let repo = open();
    for count in [5, 20] {
        (0..count).for_each(|at| drop(put(&repo, "n", &format!("{count} {at}"), &[]).success()));
        let commits = commits(&repo);
        // The last write did not verify its own entry.
        assert_eq!(marked(&repo), commits[commits.len() - 2]);
        assert_eq!(verified(&repo, Some(&marked(&repo))).unwrap().examined, 1);
        assert_eq!(verified(&repo, None).unwrap().examined, commits.len());
    }
    // The content of a mark decides alone.
    for odd in [&b""[..], b"{", b"{}", br#"{"commit":"0000","key":"x","tool":"git-handoff"}"#] {
        fs::write(mark(&repo), odd).unwrap();
        put(&repo, "n", "x", &[]).success();
        assert_eq!(marked(&repo), commits(&repo).iter().rev().nth(1).unwrap().as_str());
    }
    repo.env.handoff(["run", "r"]).success();
    repo.is_intact("r");
    // A sealed run needs none.
    repo.env.handoff(["run", "r"]).success();
    assert!(!mark(&repo).exists());
}

#[test]
fn a_run_comes_to_the_same_from_every_mark() {
    let repo = super::repo();
    let mut made = item("a", "echo '{\"score\":1}' >outputs/s; echo x >new.txt");
    made["produces"] = json!([{"kind": "document", "name": "s", "path": "s", "schema": "score@1"}, {"kind": "patch"}]);
    let items = [made, item("f", "test -e ../never"), after("g", &["f"], "true"), after("b", &["a"], "true")];
    repo.env.write("plan.json", &json!({"id": "r", "openEnded": true, "items": items}).to_string());
    repo.env.handoff(["submit", "../plan.json"]).success();
    put(&repo, "notes", "one", &[]).success();
    // The same bytes again change nothing in the tree.
    put(&repo, "notes", "one", &[]).success();
    assert_eq!(repo.env.handoff(["run", "r"]).status, Some(4));
    repo.env.write(
        "more.json",
        &json!({"id": "r", "openEnded": true, "items": [after("more", &["b"], "true")]}).to_string(),
    );
    repo.env.handoff(["extend", "r", "../more.json"]).success();
    repo.env.handoff(["retry", "r/f"]).success();
    repo.env.handoff(["cancel", "r/g"]).success();
    put(&repo, "notes", "one", &[]).success();
    assert_eq!(repo.env.handoff(["run", "r"]).status, Some(4));
    let whole = verified(&repo, None).unwrap();
    let commits = commits(&repo);
    assert!(commits.len() > 15, "{}", commits.len());
    for (at, commit) in commits.iter().enumerate() {
        let found = verified(&repo, Some(commit)).unwrap();
        assert_eq!(found.examined, commits.len() - at - 1);
        assert_eq!(describe(&found), describe(&whole), "from entry {at} on");
    }
    repo.ends_intact("r");
}

/// Writes a commit of the run `r` again without its signature, on top of the same one, and moves
/// the ref there.
fn unsign(repo: &TestRepo, commit: &str) -> String {
    let script = format!(
        "git cat-file commit {commit} | awk '/^gpgsig/ {{ skip = 1; next }} skip && /^ / {{ next }} {{ skip = 0; print }}' \
         | git hash-object -t commit -w --stdin"
    );
    let forged = repo.env.shell("repo", &script).success().trim().to_owned();
    repo.env.git(["update-ref", REFERENCE, &forged]).success();
    forged
}

#[test]
fn a_mark_vouches_for_nothing_that_came_after_it_or_stands_elsewhere() {
    let repo = open();
    (0..4).for_each(|at| drop(put(&repo, "n", &at.to_string(), &[]).success()));
    let honest = commits(&repo);
    // On top of what is marked; and in the place of what is marked.
    for at in [honest.len() - 1, honest.len() - 2, 1] {
        repo.env.git(["update-ref", REFERENCE, &honest[at]]).success();
        let forged = unsign(&repo, &honest[at]);
        let before = repo.refs();
        let refused = put(&repo, "n", "more", &[]);
        let why = format!("error: run r does not verify: entry {at}: it is not signed\nhint: git handoff verify r\n");
        assert_eq!(refused.stderr, why);
        assert_eq!(repo.refs(), before);
        assert_ne!(marked(&repo), forged);
    }
    repo.env.git(["update-ref", REFERENCE, honest.last().unwrap()]).success();
    put(&repo, "n", "more", &[]).success();
    repo.env.handoff(["run", "r"]).success();
    repo.is_intact("r");
}
