//! Forgeries by a remote's writer, with and without a key, before and after a fetch.

use std::fs;
use std::path::Path;

use git_handoff::git::codec;
use git_handoff::git::store::{Durability, Store};
use git_handoff::ledger::chain;
use git_handoff::ledger::sign::Signer;
use git_handoff::model::digest::{Digest, Oid};
use git_handoff::model::entry::{Entry, Event, RunEnded};
use git_handoff::model::thread::{CheckpointId, Origin, SourceCheckpoint};
use git_handoff::model::time::Moment;
use serde_json::Value;

use super::table;
use crate::common::Environment;

const SEALED: &str = "refs/handoff/runs/handoff-dag-1";
const OPEN: &str = "refs/handoff/runs/open";
const THREAD: &str = "refs/handoff/threads/research";

/// A remote, `hub`, and `clone`, which fetched from it what is honest.
pub(crate) struct Remote {
    pub(crate) env: Environment,
    store: Store,
    right: Signer,
    stranger: Signer,
    pub(crate) log: String,
}

/// An entry to append to a chain, as the key's owner would.
pub(crate) struct Next {
    entry: Entry,
    tree: Oid,
    parents: Vec<Oid>,
}

/// The forger's keys.
#[derive(Clone, Copy)]
pub(crate) enum By {
    Nobody,
    Stranger,
    /// The signature of the entry before.
    Copy,
    Right,
}

impl Remote {
    pub(crate) fn new() -> Self {
        let env = Environment::example("handoff-dag");
        env.handoff(["run", "plan.json"]).success();
        let plan = fs::read_to_string(env.repo().join("plan.json")).unwrap().replace("handoff-dag-1", "open");
        env.write("repo/open.json", &plan);
        env.handoff(["submit", "open.json"]).success();
        env.write("state", "draft");
        env.handoff(["checkpoint", "research", "--state", "../state"]).success();
        env.git_in(".", ["init", "--quiet", "--bare", "hub"]).success();
        env.git(["remote", "add", "origin", "../hub"]).success();
        env.handoff(["push", "--all"]).success();
        env.git_in(".", ["clone", "--quiet", "hub", "clone"]).success();
        env.git_in("clone", ["config", "handoff.signingKey", ""]).success();
        env.handoff_in("clone", ["fetch"]).success();
        let store = Store::open(&env.path().join("hub")).unwrap().with_durability(Durability::Relaxed);
        let right = Signer::from_file(&env.path().join("home/signing_key")).unwrap();
        let stranger = Signer::own(&env.path().join("home/stranger")).unwrap();
        let log =
            env.git_in("hub", ["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]).success().trim().to_owned();
        Self { env, store, right, stranger, log }
    }

    /// Puts an entry on top of a chain of the remote, bent first.
    pub(crate) fn on_top(&self, name: &str, by: By, bend: impl FnOnce(&mut Next)) {
        let tip = self.oid(name);
        let before = chain::decode(&self.store, tip).unwrap();
        let event = match before.entry.event {
            event if event.is_of_run() => Event::RunClosed(RunEnded::new("enough")),
            event => event,
        };
        let (seq, prev) = (before.entry.seq + 1, Some(before.hash));
        let mut next =
            Next { entry: Entry { seq, prev, event, ..before.entry }, tree: before.tree, parents: vec![tip] };
        bend(&mut next);
        let Next { entry, tree, parents } = next;
        let payload = codec::payload(&entry, tree, &parents);
        let signed = |signature: &str| codec::signed(&entry, tree, &parents, signature);
        let raw = match by {
            By::Nobody => payload,
            By::Stranger => signed(&self.stranger.sign(&payload).unwrap()),
            By::Copy => signed(&before.signature.unwrap()),
            By::Right => signed(&self.right.sign(&payload).unwrap()),
        };
        let commit = self.store.write(gix::objs::Kind::Commit, &raw).unwrap();
        self.point(name, &commit.to_string());
    }

    /// Puts a commit that is no entry on top.
    pub(crate) fn garbage(&self, name: &str) {
        let tree = format!("{name}^{{tree}}");
        let commit = self.env.git_in("hub", ["commit-tree", &tree, "-p", name, "-m", "x"]).success();
        self.point(name, commit.trim());
    }

    pub(crate) fn point(&self, name: &str, at: &str) {
        self.env.git_in("hub", ["update-ref", name, at]).success();
    }

    pub(crate) fn oid(&self, name: &str) -> Oid {
        self.env.git_in("hub", ["rev-parse", name]).success().trim().parse().unwrap()
    }

    fn refs(&self, dir: &str) -> String {
        self.env.git_in(dir, ["for-each-ref", "--format=%(objectname) %(refname)", "refs/handoff"]).success()
    }

    /// Fetches, and returns the message about a ref.
    fn fetch_message(&self, dir: &str, name: &str) -> String {
        let fetched = self.env.handoff_in(dir, ["fetch", "--json"]).exit(1);
        let value: Value = serde_json::from_str(fetched.stdout.lines().next().unwrap()).unwrap();
        let below = name.strip_prefix("refs/handoff/").unwrap();
        let refs = value["refs"].as_array().unwrap();
        let is_it = |entry: &&Value| entry["ref"].as_str().unwrap().ends_with(below);
        let entry = refs.iter().find(is_it).unwrap_or_else(|| panic!("{name}: {value}"));
        let others = refs.iter().filter(|listed_entry| !is_it(listed_entry));
        assert!(others.into_iter().all(|other| ["new", "up-to-date"].contains(&other["status"].as_str().unwrap())));
        let reason = entry["reason"].as_str().map(|reason| format!(": {}", plain(reason))).unwrap_or_default();
        format!("{}{reason}", entry["status"].as_str().unwrap())
    }
}

/// Returns a sentence without what differs from one key and one commit to the next.
fn plain(text: &str) -> String {
    let is_id = |word: &str| word.len() >= 7 && word.chars().all(|c| c.is_ascii_hexdigit());
    let word = |word: &str| match word.trim_matches(|c: char| !c.is_alphanumeric()) {
        id if is_id(id) => word.replace(id, "…"),
        key if key.starts_with("SHA256:") => "SHA256:…".to_owned(),
        _ => word.to_owned(),
    };
    // git's messages differ between versions.
    let text = text.split_once(": missing").map_or(text, |(before, _)| before);
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

type Forgery<'a> = (&'static str, Box<dyn Fn(&Remote, &str) + 'a>);

fn next(what: &'static str, by: By, bend: impl Fn(&mut Next) + Copy + 'static) -> Forgery<'static> {
    (what, Box::new(move |remote, name| remote.on_top(name, by, bend)))
}

/// Forgeries without a key, and those that need the writer's key.
fn forgeries() -> Vec<Forgery<'static>> {
    vec![
        ("a commit that is no entry on top", Box::new(Remote::garbage)),
        next("an entry on top, unsigned", By::Nobody, |_| {}),
        next("an entry on top, signed by a stranger", By::Stranger, |_| {}),
        next("an entry on top, with the signature of the one before", By::Copy, |_| {}),
        ("an honest ref pointed at a tag of its head", Box::new(tagged)),
        ("an honest ref pointed at a tree", Box::new(|remote, name| remote.point(name, &format!("{name}^{{tree}}")))),
        ("an object on top that git finds unsound", Box::new(unsound)),
        next("with the right key: an entry that repeats its number", By::Right, |next| next.entry.seq -= 1),
        next("with the right key: an entry that leaves one out", By::Right, |next| next.entry.seq += 1),
        next("with the right key: an entry that names another before it", By::Right, |next| {
            next.entry.prev = Some(Digest::compute(b"another"));
        }),
        next("with the right key: an entry without one before it", By::Right, |next| {
            (next.entry.prev, next.entry.seq) = (None, 0);
        }),
        next("with the right key: an entry dated before the last", By::Right, |next| {
            next.entry.at = Moment::from_millis(0);
        }),
        next("with the right key: an entry with a second parent", By::Right, |next| next.parents.push(next.parents[0])),
        next("with the right key: an entry of another kind of chain", By::Right, |next| {
            next.entry.event = match &next.entry.event {
                Event::RunClosed(_) => Event::RunSubmitted(serde_json::from_str(SUBMITTED).unwrap()),
                _ => Event::RunClosed(RunEnded::new("")),
            };
            next.entry.about = "another".parse::<git_handoff::model::name::RunId>().unwrap().into();
        }),
    ]
}

const SUBMITTED: &str = r#"{"plan":{"sha256":"sha256:c184d64d5d661aacc480cbbdad98048e6b8cb1c7ad53d06f3f21d7e5b6a3f538",
"oid":"4be1f2a04be1f2a04be1f2a04be1f2a04be1f2a0","size":1},"artifacts":{},
"base":"4be1f2a04be1f2a04be1f2a04be1f2a04be1f2a0","queue":"default","pattern":"dag","roles":{},
"tool":"x"}"#;

fn tagged(remote: &Remote, name: &str) {
    remote.env.git_in("hub", ["tag", "--force", "-a", "-m", "x", "x", name]).success();
    remote.point(name, "refs/tags/x");
    remote.env.git_in("hub", ["tag", "--delete", "x"]).success();
}

pub(crate) fn unsound(remote: &Remote, name: &str) {
    let head = remote.oid(name);
    let tree = remote.env.git_in("hub", ["rev-parse", &format!("{name}^{{tree}}")]).success();
    let text = format!("tree {tree}parent {head}\nauthor no mail 0 +0000\ncommitter x <y> 0 +0000\n\nx\n");
    remote.env.write("unsound", &text);
    let made = remote.env.git_in("hub", ["hash-object", "--literally", "-w", "-t", "commit", "../unsound"]).success();
    remote.point(name, made.trim());
}

fn fresh(remote: &Remote) {
    let folder = remote.env.path().join("fresh");
    if Path::new(&folder).exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    remote.env.git_in(".", ["init", "--quiet", "fresh"]).success();
    remote.env.git_in("fresh", ["remote", "add", "origin", "../hub"]).success();
}

#[test]
fn remote_changes_of_known_and_new_chains() {
    let remote = Remote::new();
    let before = remote.refs("clone");
    let honest = remote.env.handoff_in("clone", ["verify", "origin/handoff-dag-1"]).success();
    let mut rows = Vec::new();
    let chains =
        [("a log", remote.log.as_str()), ("a sealed run", SEALED), ("an open run", OPEN), ("a thread", THREAD)];
    for (what, forge) in forgeries() {
        for (chain, name) in chains {
            let head = remote.oid(name);
            forge(&remote, name);
            let message = remote.fetch_message("clone", name);
            assert_eq!(remote.refs("clone"), before, "{what}: {chain}");
            assert_eq!(remote.env.handoff_in("clone", ["verify", "origin/handoff-dag-1"]).success(), honest);
            // A first fetch accepts the rest, but not this.
            fresh(&remote);
            remote.fetch_message("fresh", name);
            let refs = remote.refs("fresh");
            assert_eq!(refs.lines().count(), 3, "{what}: {chain}: {refs}");
            remote.point(name, &head.to_string());
            rows.push(vec![what.to_owned(), chain.to_owned(), message]);
        }
    }
    // For git, a forked thread is a descendant.
    let head = remote.oid(THREAD);
    remote.on_top(THREAD, By::Stranger, |next| {
        let checkpoint = CheckpointId::new(next.entry.seq - 1, next.entry.prev.unwrap());
        let Event::ThreadCheckpointed(e) = &mut next.entry.event else { panic!() };
        let from = SourceCheckpoint { thread: next.entry.about.thread().unwrap().clone(), checkpoint, commit: head };
        e.origin = Some(Origin::From(from));
        (next.entry.seq, next.entry.prev) = (0, None);
    });
    rows.push(vec!["a stranger's fork of it".to_owned(), "a thread".to_owned(), remote.fetch_message("clone", THREAD)]);
    assert_eq!(remote.refs("clone"), before);
    remote.point(THREAD, &head.to_string());
    remote.env.handoff_in("clone", ["fetch"]).success();
    table::check(
        "tamper_fetched",
        &["what was done at the remote", "to", "`fetch` keeps what it had, and says"],
        &rows,
    );
}

#[test]
fn remote_refs_under_foreign_names() {
    let remote = Remote::new();
    let stranger = remote.log.replace("DEO2ec9d", "AEO2ec9d");
    let (of_key, _) = remote.log.split_once('.').unwrap();
    let further = format!("{of_key}.000000000000");
    let names = [
        ("a run under the name of another", "refs/handoff/runs/other", SEALED),
        ("a log under the name of a run", "refs/handoff/runs/other", &remote.log),
        ("a thread under the name of a run", "refs/handoff/runs/other", THREAD),
        ("a thread under the name of another", "refs/handoff/threads/other", THREAD),
        ("a run under the name of a thread", "refs/handoff/threads/other", SEALED),
        ("a log under the name of another key", &stranger, &remote.log),
        ("a log under the name of an entry that it has not", &further, &remote.log),
        ("a run under the name of a log", &stranger, SEALED),
    ];
    let before = remote.refs("clone");
    let mut rows = Vec::new();
    for (what, name, of) in names {
        remote.point(name, of);
        let message = remote.fetch_message("clone", name);
        assert_eq!(remote.refs("clone"), before, "{what}");
        remote.env.git_in("hub", ["update-ref", "-d", name]).success();
        rows.push(vec![what.to_owned(), message]);
    }
    table::check("tamper_misnamed", &["what the remote shows", "`fetch` does not take it, and says"], &rows);
}
