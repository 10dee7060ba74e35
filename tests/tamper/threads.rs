//! Forged threads with some key: lineage, ties, and logs.

use git_handoff::model::role::every_role;
use std::fs;

use git_handoff::git::codec;
use git_handoff::git::refs;
use git_handoff::git::store::Edit;
use git_handoff::ledger::chain::{Draft, Head, Link};
use git_handoff::ledger::sign::{Signer, allowed_signers_line};
use git_handoff::model::digest::{Digest, Oid};
use git_handoff::model::entry::{
    AdoptedFrom, Content, Entry, Event, LogRecorded, Origin, Product, RunTie, SourceCheckpoint, Subject,
    ThreadCheckpointed,
};
use git_handoff::model::format;
use git_handoff::model::name::{RunId, ThreadId};
use git_handoff::model::thread::{CheckpointId, STATE};
use git_handoff::verify::{Logs, Options, Signers, State, ThreadReport, ThreadsAtHand, thread};
use jiff::tz::TimeZone;

use super::both::Both;
use super::table;
use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, key, next};

/// A repository with three keys: ours, a teammate's, and a stranger's.
struct ThreadRepo {
    forge: Forge,
    mate: Signer,
    stranger: Signer,
}

/// A thread that was told.
#[derive(Clone)]
struct Tale {
    name: ThreadId,
    head: Head,
    links: Vec<Link>,
    content: Content,
}

/// The log of a key, as it is kept when it was fetched.
fn fetched(signer: &Signer) -> String {
    format::log_ref(&signer.fingerprint()).replacen("refs/handoff/", "refs/handoff/remotes/hub/", 1)
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
    fn offer(&self, by: &str, name: &str, accepted: bool) -> AdoptedFrom {
        AdoptedFrom {
            source: self.source(),
            sha256: self.content.state.sha256,
            descriptor: Digest::of(name.as_bytes()),
            nonce: "0123456789abcdef".to_owned(),
            signer: by.to_owned(),
            accepted_unknown: accepted,
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
        let state = Product { sha256: Digest::of(bytes), oid, size: bytes.len() as u64 };
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

    fn save(&self, signer: &Signer, tale: Option<&Tale>, name: &str, bytes: &[u8], run: Option<RunTie>) -> Tale {
        self.add(signer, tale, name, &self.content(bytes), run.map(Origin::Run))
    }

    fn adopt(&self, signer: &Signer, source: &Tale, from: &str, name: &str, accepted: bool) -> Tale {
        self.add(signer, None, name, &source.content, Origin::Adopted(source.offer(from, name, accepted)))
    }

    /// Appends what the log of a key says of a thread, to the log at hand under some ref.
    fn log(&self, signer: &Signer, reference: &str, tale: &Tale) {
        let log = signer.fingerprint();
        let head = git_handoff::ledger::chain::tip(&self.forge.store, reference).unwrap();
        let (first, last) = (tale.links[0].hash, tale.links.last().unwrap().hash);
        let recorded = LogRecorded { log, first, last_seq: tale.links.len() as u64 - 1, last, root: None };
        let edits = vec![(format::log_thread_path(&tale.name), Edit::Bytes(recorded.canonical()))];
        let event = Event::LogRecorded(recorded);
        let draft = Draft { about: tale.name.clone().into(), event, bytes: Vec::new(), edits };
        let (_, written) = self.forge.writer_with(signer).append(&head, vec![draft]).unwrap().place().unwrap();
        refs::set(&self.forge.store, reference, written[0].commit).unwrap();
    }

    /// Appends a commit that is not an entry, as anyone without a key can.
    fn garbage(&self, reference: &str) {
        let tip = refs::read(&self.forge.store, reference).unwrap().unwrap();
        let tree = format!("{tip}^{{tree}}");
        let commit = self.forge.git(&["commit-tree", &tree, "-p", &tip.to_string(), "-m", "garbage"]);
        refs::set(&self.forge.store, reference, commit.parse().unwrap()).unwrap();
    }

    fn verify(&self, name: &str, options: &Options) -> ThreadReport {
        let logs = Logs::read(&self.forge.store).unwrap();
        thread(&self.forge.store, ThreadsAtHand::logs(&logs), &id(name), &format::thread_ref(&id(name)), options)
            .unwrap()
    }

    /// We trust ourselves and the teammate only.
    fn strict(&self) -> Options {
        let line = |signer: &Signer, name: &str| allowed_signers_line(name, signer.public()).unwrap();
        let text = format!("{}\n{}\n", line(&self.forge.signer, "ada"), line(&self.mate, "ben"));
        let signers = Signers::parse(&text, &TimeZone::UTC).unwrap();
        Options { signers: Some(signers), strict_signers: true, ..self.forge.options() }
    }

    /// The file of a loose object.
    fn file(&self, oid: Oid) -> std::path::PathBuf {
        let hex = oid.to_string();
        self.forge.path().join(".git/objects").join(&hex[..2]).join(&hex[2..])
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
        let name = "refs/handoff/runs/handoff-dag-1";
        let tip = refs::read(&self.forge.store, name).unwrap().unwrap();
        refs::delete(&self.forge.store, name, tip).unwrap();
    }

    /// A thread of ours, `t`, that is tied to a commit of a run.
    fn tie(&self, commit: Oid) -> Tale {
        let run = RunTie { id: RunId::parse("handoff-dag-1").unwrap(), commit };
        self.save(&self.forge.signer, None, "t", b"state", Some(run))
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

/// The verdicts, without and with known keys.
#[derive(Default)]
struct Rows(Vec<Vec<String>>);

impl Rows {
    fn read(&mut self, what: &str, repo: &ThreadRepo, wanted: (&str, &str)) {
        let word = |report: &ThreadReport| {
            let failed = report.rows.iter().filter(|row| row.state == State::Failed).map(|row| row.name);
            let failed = failed.collect::<Vec<_>>().join(", ");
            match report.failure {
                None => "`INTACT`".to_owned(),
                Some("incomplete") => "`INCOMPLETE`".to_owned(),
                Some(_) if report.distrust => format!("`UNTRUSTED` ({failed})"),
                Some(_) => format!("`TAMPERED` ({failed})"),
            }
        };
        let plain = repo.verify("t", &repo.forge.options());
        let strict = repo.verify("t", &repo.strict());
        let found = (word(&plain), word(&strict));
        assert!(found.0.contains(wanted.0) && found.1.contains(wanted.1), "{what}: {found:?}\n{plain:#?}\n{strict:#?}");
        self.0.push(vec![what.to_owned(), found.0, found.1]);
    }
}

const INTACT: (&str, &str) = ("INTACT", "INTACT");
const TAMPERED: (&str, &str) = ("TAMPERED", "TAMPERED");
const UNTRUSTED: (&str, &str) = ("INTACT", "UNTRUSTED");

#[test]
fn ties() {
    let mut rows = Rows::default();
    let repo = ThreadRepo::new();
    let links = repo.run(&repo.forge.signer);
    repo.tie(links[2].commit);
    rows.read("nothing: tied to an entry of a run of ours, which went on", &repo, INTACT);
    repo.forget_run();
    rows.read("nothing: the run's ref is gone, its entries are not", &repo, INTACT);

    let repo = ThreadRepo::new();
    let links = repo.run(&repo.forge.signer);
    let (third, parents) = (&links[3], [links[2].commit]);
    for (what, commit, forget) in [
        ("to an unsigned entry", repo.raw(&third.entry, third.tree, &parents, None), true),
        ("the same, beside our own run of that name", repo.raw(&third.entry, third.tree, &parents, None), false),
        (
            "to an entry by a key that is no writer of the run",
            repo.raw(&third.entry, third.tree, &parents, Some(&repo.mate)),
            true,
        ),
        (
            "to an entry in the middle, without those before it",
            repo.raw(&third.entry, third.tree, &[], Some(&repo.forge.signer)),
            true,
        ),
    ] {
        if forget {
            repo.forget_run();
        }
        repo.tie(commit);
        rows.read(what, &repo, TAMPERED);
        refs::set(&repo.forge.store, "refs/handoff/runs/handoff-dag-1", links.last().unwrap().commit).unwrap();
    }

    let repo = ThreadRepo::new();
    let told = repo.forge.honest();
    let log = format::log_ref(&repo.forge.signer.fingerprint());
    repo.tie(refs::read(&repo.forge.store, &log).unwrap().unwrap());
    rows.read("to an entry of a log about the run", &repo, TAMPERED);
    repo.forget_run();
    rows.read("the same, where the run is gone", &repo, TAMPERED);
    let other = RunTie { id: RunId::parse("another").unwrap(), commit: told.links[1].commit };
    repo.save(&repo.forge.signer, None, "t", b"state", Some(other));
    rows.read("to an entry of another run", &repo, TAMPERED);

    let repo = ThreadRepo::new();
    let strange = repo.run(&repo.stranger);
    repo.tie(strange[2].commit);
    repo.forget_run();
    rows.read("to a stranger's run", &repo, UNTRUSTED);
    repo.run(&repo.forge.signer);
    rows.read("the same, where a run of that name is ours", &repo, UNTRUSTED);
    repo.forget_run();
    let repo = ThreadRepo::new();
    repo.forge.honest();
    repo.forget_run();
    let strange = repo.run(&repo.stranger);
    repo.forget_run();
    repo.tie(strange[2].commit);
    rows.read("the same, where only our log names a run of ours", &repo, UNTRUSTED);

    let repo = ThreadRepo::new();
    let told = repo.forge.honest();
    repo.tie(told.links[2].commit);
    rows.read("nothing: to an entry of a run that our log saw sealed", &repo, INTACT);
    repo.tie(told.links.last().unwrap().commit);
    rows.read("nothing: to its seal", &repo, INTACT);
    let mut chain_builder = ChainBuilder::submit(&repo.forge, crate::common::forge::PLAN);
    chain_builder.fire("edit-a");
    chain_builder.fail("edit-a");
    chain_builder.skip("edit-b");
    chain_builder.seal();
    let links = chain_builder.write(&repo.forge.signer).links;
    repo.forget_run();
    repo.tie(links.last().unwrap().commit);
    rows.read("to one that began like it and ended otherwise, where the run is gone", &repo, TAMPERED);

    let repo = ThreadRepo::new();
    let links = repo.run(&repo.forge.signer);
    repo.tie(links[2].commit);
    let mut chain_builder = ChainBuilder::submit(&repo.forge, crate::common::forge::PLAN);
    chain_builder.fire("edit-a");
    chain_builder.fail("edit-a");
    chain_builder.write(&repo.forge.signer);
    rows.read("to a run of ours that was rewritten afterwards", &repo, TAMPERED);
    let repo = ThreadRepo::new();
    let mut chain_builder = ChainBuilder::submit(&repo.forge, crate::common::forge::PLAN);
    chain_builder.fire("edit-b");
    let links = chain_builder.write(&repo.forge.signer).links;
    repo.tie(links[1].commit);
    rows.read("to a run of ours in which an item ran before its dependencies", &repo, TAMPERED);
    table::check("ties", &["a tie", "reads", "with trusted signers configured"], &rows.0);
}

#[test]
fn a_size_counts_wherever_the_same_bytes_are_named() {
    let repo = ThreadRepo::new();
    let first = repo.save(&repo.forge.signer, None, "t", b"state", None);
    let mut content = first.content.clone();
    content.state.size += 1;
    repo.add(&repo.forge.signer, Some(&first), "t", &content, None);
    assert_eq!(repo.verify("t", &repo.forge.options()).failure, Some("content"));
}

#[test]
fn lineages() {
    let mut rows = Rows::default();
    let repo = ThreadRepo::new();
    let own = &repo.forge.signer;
    let source = repo.save(&repo.mate, None, "source", b"state", None);
    let middle = repo.adopt(own, &source, &repo.mate.fingerprint(), "t2", false);
    repo.adopt(own, &middle, &own.fingerprint(), "t", false);
    rows.read("nothing: a teammate's thread, adopted twice", &repo, ("INTACT", "INTACT"));
    let again = repo.adopt(&repo.mate, &middle, &own.fingerprint(), "source", false);
    repo.adopt(own, &again, &repo.mate.fingerprint(), "t", false);
    rows.read("nothing: to and fro, under names that were there before", &repo, INTACT);

    let repo = ThreadRepo::new();
    let own = &repo.forge.signer;
    let source = repo.save(&repo.stranger, None, "source", b"state", None);
    let strange = repo.stranger.fingerprint();
    for accepted in [true, false] {
        let middle = repo.adopt(&repo.mate, &source, &strange, "middle", accepted);
        repo.adopt(own, &middle, &repo.mate.fingerprint(), "t", false);
        let said = if accepted { "which the teammate accepted as unknown" } else { "which the teammate says he knew" };
        rows.read(&format!("a stranger's thread, {said}, adopted on"), &repo, UNTRUSTED);
        assert_eq!(repo.verify("t", &repo.forge.options()).accepted_unknown(), accepted);
    }
    let middle = repo.adopt(&repo.mate, &source, &strange, "middle", true);
    repo.add(own, None, "t", &middle.content, Origin::From(middle.source()));
    rows.read("the same, forked on", &repo, UNTRUSTED);
    let revoked = Options { revoked: [(strange, None)].into(), ..repo.forge.options() };
    let report = repo.verify("t", &revoked);
    assert!(report.distrust && report.failure == Some("lineage"), "{report:#?}");

    let repo = ThreadRepo::new();
    let own = &repo.forge.signer;
    let first = repo.save(&repo.mate, None, "source", b"before", None);
    let source = repo.save(&repo.mate, Some(&first), "source", b"state", None);
    let mate = repo.mate.fingerprint();
    let middle = repo.adopt(own, &source, &mate, "middle", false);
    repo.adopt(own, &middle, &own.fingerprint(), "t", false);
    let path = repo.file(first.content.state.oid);
    let honest = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    rows.read("a state that the source of the source held before is gone", &repo, TAMPERED);
    fs::copy(repo.file(repo.forge.store.write_blob(b"after!").unwrap()), &path).unwrap();
    rows.read("the same, with other bytes in its place", &repo, TAMPERED);
    fs::remove_file(&path).unwrap();
    fs::write(&path, honest).unwrap();
    rows.read("nothing: the bytes are back", &repo, INTACT);

    let bent = |what: &str, bend: &dyn Fn(&mut SourceCheckpoint), rows: &mut Rows| {
        let mut from = source.source();
        bend(&mut from);
        repo.add(own, None, "t", &source.content, Origin::From(from));
        rows.read(what, &repo, TAMPERED);
    };
    bent("a fork that names another thread than its commit is of", &|from| from.thread = id("middle"), &mut rows);
    bent("a fork that names another checkpoint", &|from| from.checkpoint = first.checkpoint(), &mut rows);
    bent("a fork of an earlier commit under the later one's name", &|from| from.commit = first.commit(), &mut rows);
    let other = repo.save(&repo.mate, None, "source", b"another state", None);
    repo.add(own, None, "t", &source.content, Origin::From(other.source()));
    rows.read("a fork that holds something else than its source", &repo, TAMPERED);
    repo.adopt(own, &source, &own.fingerprint(), "t", false);
    rows.read("an adoption whose source is by another key than it says", &repo, TAMPERED);
    let taken = repo.save(&repo.stranger, Some(&source), "source", b"taken over", None);
    repo.adopt(own, &taken, &mate, "t", false);
    rows.read("a source whose last entry is by another key", &repo, TAMPERED);
    let last = source.links.last().unwrap();
    let unsigned = repo.raw(&last.entry, last.tree, &[first.commit()], None);
    let mut nobody = source.clone();
    nobody.links.last_mut().unwrap().commit = unsigned;
    repo.adopt(own, &nobody, &mate, "t", false);
    rows.read("a source with an unsigned last entry", &repo, TAMPERED);
    assert!(matches!(last.entry.about, Subject::Thread(_)));
    table::check("lineages", &["what a thread goes back to", "reads", "with trusted signers configured"], &rows.0);
}

#[test]
fn origins() {
    let (mut rows, mut both) = (Rows::default(), Both::default());
    let repo = ThreadRepo::new();
    let (own, mate) = (&repo.forge.signer, &repo.mate.fingerprint());
    let mut read = |what: &str, wanted: (&str, &str)| {
        rows.read(what, &repo, wanted);
        both.note_thread(&repo.forge, what);
    };
    let source = repo.save(&repo.mate, None, "source", b"state", None);
    let first = repo.save(own, None, "t", b"first", None);
    let second = repo.save(own, Some(&first), "t", b"second", None);
    let back = repo.add(own, Some(&second), "t", &first.content, Origin::To(first.checkpoint()));
    read("nothing: rolled back to an earlier checkpoint", INTACT);
    repo.add(own, Some(&back), "t", &first.content, Origin::To(back.checkpoint()));
    read("nothing: rolled back to the rollback", INTACT);
    let summed = Content { summary: Some("another".to_owned()), ..first.content.clone() };
    for (what, content, to) in [
        ("a rollback with another state than its checkpoint", &second.content, first.checkpoint()),
        ("a rollback with another summary than its checkpoint", &summed, first.checkpoint()),
        ("a rollback to a checkpoint of another thread", &source.content, source.checkpoint()),
    ] {
        repo.add(own, Some(&second), "t", content, Origin::To(to));
        read(what, TAMPERED);
    }
    repo.add(own, None, "t", &first.content, Origin::To(first.checkpoint()));
    read("a rollback as entry 0", TAMPERED);
    repo.add(own, Some(&first), "t", &source.content, Origin::From(source.source()));
    read("a fork as entry 1", TAMPERED);
    let offer = source.offer(mate, "t", false);
    repo.add(own, Some(&first), "t", &source.content, Origin::Adopted(offer.clone()));
    read("an adoption as entry 1", TAMPERED);
    let other = AdoptedFrom { sha256: first.content.state.sha256, ..offer.clone() };
    repo.add(own, None, "t", &source.content, Origin::Adopted(other));
    read("an adoption that names another state than it has", TAMPERED);
    repo.add(
        own,
        None,
        "t",
        &first.content,
        Origin::Adopted(AdoptedFrom { sha256: first.content.state.sha256, ..offer }),
    );
    read("an adoption of another state than the source has", TAMPERED);
    table::check("origins", &["the origin of a checkpoint", "reads", "with trusted signers configured"], &rows.0);
    both.compare();
}

#[test]
fn logs() {
    let mut rows = Rows::default();
    let repo = ThreadRepo::new();
    let (own, mate) = (&repo.forge.signer, &repo.mate);
    let first = repo.save(mate, None, "source", b"first", None);
    let second = repo.save(mate, Some(&first), "source", b"second", None);
    let log = fetched(mate);
    repo.log(mate, &log, &first);
    repo.log(mate, &log, &second);
    repo.adopt(own, &first, &mate.fingerprint(), "t", false);
    rows.read("nothing: adopted from a thread that went on, as its log says", &repo, INTACT);
    let retold = repo.save(mate, None, "source", b"first, told anew", None);
    repo.adopt(own, &retold, &mate.fingerprint(), "t", false);
    rows.read("adopted from a thread that its key rewrote, shorter than its log knew it", &repo, TAMPERED);
    repo.garbage(&log);
    rows.read("the same, with garbage on top of that log", &repo, TAMPERED);
    let again = repo.save(mate, Some(&retold), "source", b"second, told anew", None);
    repo.adopt(own, &again, &mate.fingerprint(), "t", false);
    rows.read("adopted from one that was rewritten, as long as its log knew it", &repo, TAMPERED);
    let middle = repo.adopt(own, &again, &mate.fingerprint(), "middle", false);
    repo.adopt(own, &middle, &own.fingerprint(), "t", false);
    rows.read("the same, one adoption further on", &repo, TAMPERED);

    let repo = ThreadRepo::new();
    let own = &repo.forge.signer;
    let log = format::log_ref(&own.fingerprint());
    let first = repo.save(own, None, "t", b"first", None);
    repo.log(own, &log, &first);
    let second = repo.save(own, Some(&first), "t", b"second", None);
    repo.log(own, &log, &second);
    rows.read("nothing: a thread of ours and our log", &repo, INTACT);
    refs::set(&repo.forge.store, "refs/handoff/threads/t", first.commit()).unwrap();
    rows.read("a thread of ours whose end was cut off", &repo, TAMPERED);
    repo.garbage(&log);
    rows.read("the same, with garbage on top of our log", &repo, TAMPERED);
    table::check("thread-logs", &["what logs say", "reads", "with trusted signers configured"], &rows.0);
}
