//! Threads: what they come from, the runs that they are tied to, and what logs say of them.

use std::fs;

use git_handoff::git::codec;
use git_handoff::git::refs;
use git_handoff::git::store::Edit;
use git_handoff::ledger::chain::{Draft, Head, Link};
use git_handoff::ledger::sign::Signer;
use git_handoff::model::digest::{Digest, Oid};
use git_handoff::model::entry::{
    AdoptedFrom, Content, Entry, Event, LogRecorded, Origin, Product, RunTie, SourceCheckpoint, Subject,
    ThreadCheckpointed, ThreadResumed,
};
use git_handoff::model::format;
use git_handoff::model::name::{RunId, ThreadId};
use git_handoff::model::role::every_role;
use git_handoff::model::thread::{CheckpointId, STATE};
use serde_json::{Value, json};

use super::keys::BOTH;
use super::{bundle_of_what_is_here, folder, lose, updating};
use crate::common::Environment;
use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, PLAN, key, next};

/// The thread that every vector is about.
const THREAD: &str = "t";

const REFERENCE: &str = "refs/handoff/threads/t";

const RUN: &str = "refs/handoff/runs/handoff-dag-1";

/// A story of a thread.
pub(super) struct Vector {
    name: &'static str,
    what: &'static str,
    arguments: &'static [&'static str],
    tell: fn(&ThreadRepo),
}

impl Vector {
    const fn new(name: &'static str, what: &'static str, tell: fn(&ThreadRepo)) -> Self {
        Self { name, what, arguments: BOTH, tell }
    }

    pub(super) fn file(&self) -> String {
        format!("{}.bundle", self.name)
    }
}

pub(super) const VECTORS: &[Vector] = &[
    Vector::new("clean-thread", "a checkpoint, another, and a resumption of it", |repo| {
        let first = repo.own(None, b"first");
        let second = repo.own(Some(&first), b"second");
        repo.resume(&second, second.checkpoint());
    }),
    Vector::new("clean-thread-of-a-run", "a checkpoint tied to an entry of a run, which went on", |repo| {
        let links = repo.run(&repo.forge.signer);
        repo.tie(links[2].commit);
    }),
    Vector::new("clean-thread-of-a-run-that-is-gone", "the same, without the ref of the run", |repo| {
        let links = repo.run(&repo.forge.signer);
        repo.tie(links[2].commit);
        repo.forget_run();
    }),
    Vector::new("clean-thread-of-a-seal", "a checkpoint tied to the seal of a run that a log records", |repo| {
        let chain = repo.forge.honest();
        repo.tie(chain.links.last().unwrap().commit);
    }),
    Vector::new("clean-thread-adopted", "a thread of another key, adopted twice", |repo| {
        let middle = repo.adopt(&repo.forge.signer, &repo.source(b"state"), &repo.mate, "middle");
        repo.adopt(&repo.forge.signer, &middle, &repo.forge.signer, THREAD);
    }),
    Vector::new("clean-thread-to-and-fro", "adopted there and back, under a name that was there before", |repo| {
        let middle = repo.adopt(&repo.forge.signer, &repo.source(b"state"), &repo.mate, "middle");
        let again = repo.adopt(&repo.mate, &middle, &repo.forge.signer, "source");
        repo.adopt(&repo.forge.signer, &again, &repo.mate, THREAD);
    }),
    Vector::new("clean-thread-rolled-back", "rolled back to a checkpoint, and then to that", |repo| {
        let first = repo.own(None, b"first");
        let second = repo.own(Some(&first), b"second");
        let back = repo.origin(Some(&second), &first.content, Origin::To(first.checkpoint()));
        repo.origin(Some(&back), &first.content, Origin::To(back.checkpoint()));
    }),
    Vector::new("clean-thread-forked", "a fork of an earlier checkpoint of a thread that went on", |repo| {
        let first = repo.source(b"state");
        repo.save(&repo.mate, Some(&first), "source", b"more");
        repo.origin(None, &first.content, Origin::From(first.source()));
    }),
    Vector::new("clean-thread-in-its-log", "a log records each length of the thread", |repo| {
        recorded(repo);
    }),
    Vector::new("clean-thread-behind-a-log", "adopted from a thread that went on, as a log says", |repo| {
        let first = repo.source(b"first");
        let second = repo.save(&repo.mate, Some(&first), "source", b"second");
        repo.log(&repo.mate, &first);
        repo.log(&repo.mate, &second);
        repo.adopt(&repo.forge.signer, &first, &repo.mate, THREAD);
    }),
    Vector::new("thread-without-an-entry", "the newest commit is no entry", |repo| {
        repo.own(None, b"state");
        repo.garbage(REFERENCE);
    }),
    Vector::new("thread-of-another-key", "an entry by another key than entry 0", |repo| {
        let first = repo.own(None, b"first");
        repo.save(&repo.mate, Some(&first), THREAD, b"second");
    }),
    Vector::new("thread-under-another-name", "the entries of another thread", |repo| {
        let source = repo.save(&repo.forge.signer, None, "source", b"state");
        refs::set(&repo.forge.store, REFERENCE, source.commit()).unwrap();
    }),
    Vector::new("thread-with-another-size", "a state whose size is one more than in the entry before", |repo| {
        let first = repo.own(None, b"state");
        let mut content = first.content.clone();
        content.state.size += 1;
        repo.add(&repo.forge.signer, Some(&first), THREAD, &content, None);
    }),
    Vector::new("thread-without-its-state", "the state is missing", |repo| {
        let first = repo.own(None, b"state");
        lose(&repo.forge, first.content.state.oid);
    }),
    Vector::new("thread-that-resumes-an-earlier-one", "a resumption of another checkpoint than the latest", |repo| {
        let first = repo.own(None, b"first");
        let second = repo.own(Some(&first), b"second");
        repo.resume(&second, first.checkpoint());
    }),
    Vector::new("thread-tied-to-an-unsigned-entry", "the entry of the run has no signature", |repo| {
        tied_to_a_copy(repo, None, true);
    }),
    Vector::new("thread-tied-to-no-writer", "the entry is by a key that is no writer of the run", |repo| {
        tied_to_a_copy(repo, Some(&repo.mate), true);
    }),
    Vector::new("thread-tied-to-no-beginning", "the entry of the run has no parent", |repo| {
        tied_to_a_copy(repo, Some(&repo.forge.signer), false);
    }),
    Vector::new("thread-tied-to-a-log", "the entry is of a log about the run", |repo| {
        repo.forge.honest();
        let log = format::log_ref(&repo.forge.signer.fingerprint());
        repo.tie(refs::read(&repo.forge.store, &log).unwrap().unwrap());
    }),
    Vector::new("thread-tied-to-another-run", "the entry is of another run than the one named", |repo| {
        let links = repo.run(&repo.forge.signer);
        let run = RunTie { id: RunId::parse("another").unwrap(), commit: links[1].commit };
        repo.origin(None, &repo.content(b"state"), Origin::Run(run));
    }),
    Vector::new("thread-tied-to-a-strangers-run", "the run is by a key that is not known", |repo| {
        let links = repo.run(&repo.stranger);
        repo.forget_run();
        repo.tie(links[2].commit);
    }),
    Vector::new("thread-tied-to-an-illegal-run", "an item of the run began before its dependencies ended", |repo| {
        let mut run = ChainBuilder::submit(&repo.forge, PLAN);
        run.fire("edit-b");
        repo.tie(run.write(&repo.forge.signer).links[1].commit);
    }),
    Vector::new("thread-tied-to-a-run-written-anew", "the run of this id and key is another one now", |repo| {
        let links = repo.run(&repo.forge.signer);
        repo.tie(links[2].commit);
        failed(repo);
    }),
    Vector::new("thread-tied-to-a-run-of-another-seal", "a log of a key that is not known has another seal", |repo| {
        let links = repo.run(&repo.forge.signer);
        let about = RunId::parse("handoff-dag-1").unwrap().into();
        let (log, first) = (repo.stranger.fingerprint(), links[0].hash);
        let (last, root) = (Digest::compute(b"another"), Some(Digest::compute(b"another root")));
        repo.record(&repo.stranger, about, LogRecorded { root, ..LogRecorded::new(log, first, 5, last) });
        repo.tie(links[5].commit);
    }),
    Vector::new("thread-tied-to-a-run-of-another-end", "a log has another seal of the run", |repo| {
        repo.forge.honest();
        let links = failed(repo);
        repo.forget_run();
        repo.tie(links.last().unwrap().commit);
    }),
    Vector::new("thread-from-a-stranger", "adopted, and adopted on, from a key that is not known", |repo| {
        let source = repo.save(&repo.stranger, None, "source", b"state");
        let middle = repo.adopt(&repo.mate, &source, &repo.stranger, "middle");
        repo.adopt(&repo.forge.signer, &middle, &repo.mate, THREAD);
    }),
    Vector::new("thread-forked-from-a-strangers", "the same, forked on", |repo| {
        let source = repo.save(&repo.stranger, None, "source", b"state");
        let middle = repo.adopt(&repo.mate, &source, &repo.stranger, "middle");
        repo.origin(None, &middle.content, Origin::From(middle.source()));
    }),
    Vector::new("thread-with-a-source-without-its-state", "an earlier state of the source of the source", |repo| {
        let first = repo.source(b"before");
        let source = repo.save(&repo.mate, Some(&first), "source", b"state");
        let middle = repo.adopt(&repo.forge.signer, &source, &repo.mate, "middle");
        repo.adopt(&repo.forge.signer, &middle, &repo.forge.signer, THREAD);
        lose(&repo.forge, first.content.state.oid);
    }),
    Vector::new("thread-forked-from-another-name", "a fork names another thread than its commit is of", |repo| {
        forked(repo, |from, _| from.thread = id("middle"));
    }),
    Vector::new("thread-forked-from-another-checkpoint", "a fork names another checkpoint", |repo| {
        forked(repo, |from, first| from.checkpoint = first.checkpoint());
    }),
    Vector::new("thread-forked-from-another-commit", "a fork names an earlier commit", |repo| {
        forked(repo, |from, first| from.commit = first.commit());
    }),
    Vector::new("thread-forked-with-another-state", "a fork has another state than its source", |repo| {
        let source = repo.source(b"state");
        repo.origin(None, &repo.content(b"another state"), Origin::From(source.source()));
    }),
    Vector::new("thread-adopted-from-another-key", "an adoption names another key than its source is by", |repo| {
        repo.adopt(&repo.forge.signer, &repo.source(b"state"), &repo.forge.signer, THREAD);
    }),
    Vector::new("thread-adopted-from-two-keys", "the last entry of the source is by another key", |repo| {
        let source = repo.save(&repo.stranger, Some(&repo.source(b"state")), "source", b"taken over");
        repo.adopt(&repo.forge.signer, &source, &repo.mate, THREAD);
    }),
    Vector::new("thread-adopted-from-no-key", "the last entry of the source has no signature", |repo| {
        let first = repo.source(b"before");
        let mut source = repo.save(&repo.mate, Some(&first), "source", b"state");
        let last = source.links.last_mut().unwrap();
        last.commit = repo.raw(&last.entry, last.tree, &[first.commit()], None);
        repo.adopt(&repo.forge.signer, &source, &repo.mate, THREAD);
    }),
    Vector::new("thread-adopted-with-another-digest", "an adoption names another state than it has", |repo| {
        let source = repo.source(b"state");
        let offer = AdoptedFrom { sha256: Digest::compute(b"first"), ..source.offer(&repo.mate, THREAD) };
        repo.origin(None, &source.content, Origin::Adopted(offer));
    }),
    Vector::new("thread-adopted-with-another-state", "an adoption has another state than its source", |repo| {
        let offer =
            AdoptedFrom { sha256: Digest::compute(b"first"), ..repo.source(b"state").offer(&repo.mate, THREAD) };
        repo.origin(None, &repo.content(b"first"), Origin::Adopted(offer));
    }),
    Vector::new("thread-adopted-later", "an adoption as entry 1", |repo| {
        let (first, source) = (repo.own(None, b"first"), repo.source(b"state"));
        let offer = source.offer(&repo.mate, THREAD);
        repo.origin(Some(&first), &source.content, Origin::Adopted(offer));
    }),
    Vector::new("thread-forked-later", "a fork as entry 1", |repo| {
        let (first, source) = (repo.own(None, b"first"), repo.source(b"state"));
        repo.origin(Some(&first), &source.content, Origin::From(source.source()));
    }),
    Vector::new("thread-rolled-back-at-first", "a rollback as entry 0", |repo| {
        let first = repo.own(None, b"first");
        repo.origin(None, &first.content, Origin::To(first.checkpoint()));
    }),
    Vector::new("thread-rolled-back-to-another-state", "a rollback with another state than its checkpoint", |repo| {
        rolled_back(repo, |content, second| *content = second.clone());
    }),
    Vector::new("thread-rolled-back-to-another-summary", "a rollback with another summary", |repo| {
        rolled_back(repo, |content, _| content.summary = Some("another".to_owned()));
    }),
    Vector::new("thread-rolled-back-to-another-thread", "a rollback to a checkpoint of another thread", |repo| {
        let (first, source) = (repo.own(None, b"first"), repo.source(b"state"));
        repo.origin(Some(&first), &source.content, Origin::To(source.checkpoint()));
    }),
    Vector::new("thread-cut-off", "a log records an entry behind the last", |repo| {
        let first = recorded(repo);
        refs::set(&repo.forge.store, REFERENCE, first.commit()).unwrap();
    }),
    Vector::new(
        "thread-cut-off-below-a-broken-log",
        "the same, and the newest commit of the log is no entry",
        |repo| {
            let first = recorded(repo);
            refs::set(&repo.forge.store, REFERENCE, first.commit()).unwrap();
            repo.garbage(&format::log_ref(&repo.forge.signer.fingerprint()));
        },
    ),
    Vector::new("thread-adopted-from-a-shorter-story", "a log has another beginning of the source", |repo| {
        retold(repo, false);
    }),
    Vector::new("thread-adopted-from-another-story", "the same, and the source is as long as in the log", |repo| {
        retold(repo, true);
    }),
];

/// A thread of two checkpoints, each recorded in the log. Returns the first.
fn recorded(repo: &ThreadRepo) -> Tale {
    let first = repo.own(None, b"first");
    repo.log(&repo.forge.signer, &first);
    let second = repo.own(Some(&first), b"second");
    repo.log(&repo.forge.signer, &second);
    first
}

/// A thread adopted from another, which its key has rewritten since a log recorded it.
fn retold(repo: &ThreadRepo, is_as_long: bool) {
    let first = repo.source(b"first");
    let second = repo.save(&repo.mate, Some(&first), "source", b"second");
    repo.log(&repo.mate, &second);
    let mut source = repo.source(b"first, written anew");
    if is_as_long {
        source = repo.save(&repo.mate, Some(&source), "source", b"second, written anew");
    }
    repo.adopt(&repo.forge.signer, &source, &repo.mate, THREAD);
}

/// A thread tied to a copy of an entry of a run, which is nowhere else.
fn tied_to_a_copy(repo: &ThreadRepo, signer: Option<&Signer>, has_parent: bool) {
    let links = repo.run(&repo.forge.signer);
    let parents: &[Oid] = if has_parent { &[links[2].commit] } else { &[] };
    let commit = repo.raw(&links[3].entry, links[3].tree, parents, signer);
    repo.forget_run();
    repo.tie(commit);
}

/// A run whose first item fails.
fn failed(repo: &ThreadRepo) -> Vec<Link> {
    let mut run = ChainBuilder::submit(&repo.forge, PLAN);
    run.fire("edit-a");
    run.fail("edit-a");
    run.skip("edit-b");
    run.seal();
    run.write(&repo.forge.signer).links
}

/// A fork of a thread of two checkpoints, which names its source in another way.
fn forked(repo: &ThreadRepo, bend: fn(&mut SourceCheckpoint, &Tale)) {
    let first = repo.source(b"before");
    let source = repo.save(&repo.mate, Some(&first), "source", b"state");
    let mut from = source.source();
    bend(&mut from, &first);
    repo.origin(None, &source.content, Origin::From(from));
}

/// A rollback from the second checkpoint to the first, with another content.
fn rolled_back(repo: &ThreadRepo, bend: fn(&mut Content, &Content)) {
    let first = repo.own(None, b"first");
    let second = repo.own(Some(&first), b"second");
    let mut content = first.content.clone();
    bend(&mut content, &second.content);
    repo.origin(Some(&second), &content, Origin::To(first.checkpoint()));
}

/// Writes the story, compares its refs with the bundle's, and returns its line of the index.
pub(super) fn check(vector: &Vector, env: &Environment) -> Value {
    let repo = ThreadRepo::new();
    (vector.tell)(&repo);
    let current_refs =
        super::refs(&repo.forge.git(&["for-each-ref", "--format=%(objectname) %(refname)", "refs/handoff"]));
    let file = folder().join(vector.file());
    let plain: String = current_refs.iter().fold(String::new(), |lines, (name, oid)| lines + oid + " " + name + "\n");
    let head = format!("# v2 git bundle\n{plain}\nPACK");
    let has_head = || fs::read(&file).is_ok_and(|bytes| bytes.starts_with(head.as_bytes()));
    if updating() && !has_head() {
        fs::write(&file, bundle_of_what_is_here(&repo.forge, &current_refs)).unwrap();
    }
    assert!(has_head(), "{} is not what its story makes", vector.file());
    let is_clean = vector.name.starts_with("clean-");
    let mut arguments = vec!["verify", "--json", "--bundle", file.to_str().unwrap()];
    arguments.extend(vector.arguments);
    arguments.push(THREAD);
    let output = env.handoff_in("home", arguments);
    let report: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}: {output}", vector.name));
    let rows = report["checks"].as_object().unwrap();
    assert_eq!(
        (report["failure"].is_null(), output.status),
        (is_clean, Some(if is_clean { 0 } else { 3 })),
        "{report}"
    );
    let mut entry = json!({
        "file": vector.file(),
        "thread": THREAD,
        "description": vector.what,
        "refs": current_refs,
        "arguments": vector.arguments,
        "failure": report["failure"],
        "exit": output.status,
    });
    if report["failure"].is_null() {
        entry["open"] = rows.iter().filter(|(_, row)| row["ok"] == "n/a").map(|(row, _)| row.as_str()).collect();
    }
    entry
}

/// A repository with three keys: ours, a teammate's, and a stranger's.
struct ThreadRepo {
    forge: Forge,
    mate: Signer,
    stranger: Signer,
}

/// A thread that was written.
#[derive(Clone)]
struct Tale {
    name: ThreadId,
    head: Head,
    links: Vec<Link>,
    content: Content,
}

fn id(name: &str) -> ThreadId {
    ThreadId::parse(name).unwrap()
}

impl Tale {
    fn checkpoint(&self) -> CheckpointId {
        let last = self.links.last().unwrap();
        CheckpointId::new(last.entry.seq, last.hash)
    }

    fn commit(&self) -> Oid {
        self.links.last().unwrap().commit
    }

    fn source(&self) -> SourceCheckpoint {
        SourceCheckpoint { thread: self.name.clone(), checkpoint: self.checkpoint(), commit: self.commit() }
    }

    /// An offer of its last checkpoint by a key.
    fn offer(&self, by: &Signer, name: &str) -> AdoptedFrom {
        AdoptedFrom {
            source: self.source(),
            sha256: self.content.state.sha256,
            descriptor: Digest::compute(name.as_bytes()),
            nonce: "0123456789abcdef".to_owned(),
            signer: by.fingerprint(),
            accepted_unknown: false,
            accepted_packet: None,
            to_agent: None,
        }
    }
}

impl ThreadRepo {
    fn new() -> Self {
        let forge = Forge::new();
        let (mate, stranger) = (key(forge.path(), 2), key(forge.path(), 3));
        Self { forge, mate, stranger }
    }

    fn content(&self, bytes: &[u8]) -> Content {
        let oid = self.forge.store.write_blob(bytes).unwrap();
        let state = Product { sha256: Digest::compute(bytes), oid, size: bytes.len() as u64 };
        Content { state, summary: None, packet: None, worktree: None, base: None }
    }

    /// Appends a checkpoint by a key, and moves the ref.
    fn add(
        &self,
        signer: &Signer,
        tale: Option<&Tale>,
        name: &str,
        content: &Content,
        origin: impl Into<Option<Origin>>,
    ) -> Tale {
        let event = Event::ThreadCheckpointed(ThreadCheckpointed { content: content.clone(), origin: origin.into() });
        let head = tale.map_or_else(|| Head::unborn(format::thread_ref(&id(name))), |tale| tale.head.clone());
        let edits = vec![(STATE.to_owned(), Edit::Blob(content.state.oid))];
        let draft = Draft { about: id(name).into(), event, bytes: Vec::new(), edits };
        // Nothing is pruned before the ref is set.
        let (_, written) = self.forge.writer_with(signer).append(&head, vec![draft]).unwrap().place().unwrap();
        let link = written[0].clone();
        refs::set(&self.forge.store, &format::thread_ref(&id(name)), link.commit).unwrap();
        let mut links = tale.map(|tale| tale.links.clone()).unwrap_or_default();
        let head = next(&head, &link);
        links.push(link);
        Tale { name: id(name), head, links, content: content.clone() }
    }

    fn save(&self, signer: &Signer, tale: Option<&Tale>, name: &str, bytes: &[u8]) -> Tale {
        self.add(signer, tale, name, &self.content(bytes), None)
    }

    /// Saves a state in the thread.
    fn own(&self, tale: Option<&Tale>, bytes: &[u8]) -> Tale {
        self.save(&self.forge.signer, tale, THREAD, bytes)
    }

    /// Begins a thread of the teammate.
    fn source(&self, bytes: &[u8]) -> Tale {
        self.save(&self.mate, None, "source", bytes)
    }

    /// Appends a checkpoint with an origin to the thread.
    fn origin(&self, tale: Option<&Tale>, content: &Content, origin: Origin) -> Tale {
        self.add(&self.forge.signer, tale, THREAD, content, origin)
    }

    fn adopt(&self, signer: &Signer, source: &Tale, from: &Signer, name: &str) -> Tale {
        self.add(signer, None, name, &source.content, Origin::Adopted(source.offer(from, name)))
    }

    /// Resumes a checkpoint of the thread.
    fn resume(&self, tale: &Tale, checkpoint: CheckpointId) {
        let event = Event::ThreadResumed(ThreadResumed::new(checkpoint));
        let draft = Draft { about: tale.name.clone().into(), event, bytes: Vec::new(), edits: Vec::new() };
        let writer = self.forge.writer_with(&self.forge.signer);
        let (_, written) = writer.append(&tale.head, vec![draft]).unwrap().place().unwrap();
        refs::set(&self.forge.store, REFERENCE, written[0].commit).unwrap();
    }

    /// Records the last entry of a thread in the log of a key.
    fn log(&self, signer: &Signer, tale: &Tale) {
        let (log, first, last) = (signer.fingerprint(), tale.links[0].hash, tale.links.last().unwrap());
        let recorded = LogRecorded::new(log, first, last.entry.seq, last.hash);
        self.record(signer, tale.name.clone().into(), recorded);
    }

    fn record(&self, signer: &Signer, about: Subject, recorded: LogRecorded) {
        let reference = format::log_ref(&signer.fingerprint());
        let head = git_handoff::ledger::chain::tip(&self.forge.store, &reference).unwrap();
        let event = Event::LogRecorded(recorded);
        let draft = Draft { about, event, bytes: Vec::new(), edits: Vec::new() };
        let (_, written) = self.forge.writer_with(signer).append(&head, vec![draft]).unwrap().place().unwrap();
        refs::set(&self.forge.store, &reference, written[0].commit).unwrap();
    }

    /// Appends a commit that is no entry, as anyone without a key can.
    fn garbage(&self, reference: &str) {
        let tip = refs::read(&self.forge.store, reference).unwrap().unwrap();
        let tree = self.forge.git(&["rev-parse", &format!("{tip}^{{tree}}")]);
        let who = "mallory <mallory@example.com> 1780538400 +0000";
        let raw = format!("tree {tree}\nparent {tip}\nauthor {who}\ncommitter {who}\n\nno entry\n");
        let commit = self.forge.store.write(gix::objs::Kind::Commit, raw.as_bytes()).unwrap();
        refs::set(&self.forge.store, reference, commit).unwrap();
    }

    /// A run of a key, published where ours are.
    fn run(&self, signer: &Signer) -> Vec<Link> {
        let mut chain_builder = ChainBuilder::honest(&self.forge);
        if let Event::RunSubmitted(e) = &mut chain_builder.drafts[0].event {
            e.roles = every_role([signer.fingerprint()]);
        }
        chain_builder.write(signer).links
    }

    fn forget_run(&self) {
        let tip = refs::read(&self.forge.store, RUN).unwrap().unwrap();
        refs::delete(&self.forge.store, RUN, tip).unwrap();
    }

    /// Ties the thread to a commit of the run.
    fn tie(&self, commit: Oid) {
        let run = RunTie { id: RunId::parse("handoff-dag-1").unwrap(), commit };
        self.origin(None, &self.content(b"state"), Origin::Run(run));
    }

    /// Writes an entry's commit, signed or unsigned.
    fn raw(&self, entry: &Entry, tree: Oid, parents: &[Oid], signer: Option<&Signer>) -> Oid {
        let payload = codec::payload(entry, tree, parents);
        let raw = match signer {
            Some(signer) => codec::signed(entry, tree, parents, &signer.sign(&payload).unwrap()),
            None => payload,
        };
        self.forge.store.write(gix::objs::Kind::Commit, &raw).unwrap()
    }
}
