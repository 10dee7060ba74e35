//! Threads: chains of saved states that agents pass on.
//!
//! [`checkpoint`] saves a state. [`steps`] rolls back, forks and resumes. [`offer`] signs a
//! descriptor of a checkpoint, and [`adopt`] creates a thread from one. [`vouch`] verifies a thread
//! before use, [`gate`] checks the packet, [`used`] finds used nonces and tokens, and
//! [`comparison`] compares checkpoints. [`worktree`] saves a working tree and [`checkout`] restores
//! it. Every change appends one entry to a thread that [`crate::verify`] has just found valid.

pub mod adopt;
pub mod answers;
pub mod checkout;
pub mod checkpoint;
pub mod comparison;
pub mod gate;
pub mod nonce;
pub mod offer;
pub mod operations;
pub mod overview;
pub mod packet;
pub mod packet_operations;
pub mod steps;
pub mod submodules;
pub mod target;
pub mod used;
pub mod verification;
pub mod vouch;
pub mod worktree;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use vouch::VerifiedThread;

use crate::git::private_files::VERIFIED_THREADS;
use crate::git::refs;
use crate::git::retry::{Lost, Retry};
use crate::git::store::{Edit, Store};
use crate::ledger::chain::{self, Appended, Draft, Head, Link, Writer};
use crate::ledger::log;
use crate::model::any_error::AnyError;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Content, Event, LogRecorded, Origin, Product, ThreadCheckpointed};
use crate::model::format;
use crate::model::name::{RunId, ThreadId};
use crate::model::place::{Kind, Place};
use crate::model::thread::{Checkpoint, CheckpointId, PACKET, STATE, WORKTREE};
use crate::repository::marks;
use crate::verify::{self, Mark, ThreadSnapshot, Verified};

/// A valid thread of ours that can be continued.
pub struct OpenThread {
    writer: Writer,
    sound: Verified<ThreadSnapshot>,
}

impl OpenThread {
    /// Opens a thread of this repository, or returns `None` if it does not exist.
    ///
    /// Remembers the verified head, so the next append checks newer signatures only.
    pub fn find(writer: &Writer, thread: &ThreadId) -> Result<Option<Self>, AnyError> {
        let (store, key) = (&writer.store, writer.signer.fingerprint());
        let Some(tip) = tip(writer, thread)? else { return Ok(None) };
        let mark = marks::read(store, VERIFIED_THREADS, &thread.encoded());
        let open = Self::ours(writer, verify::verified_thread_on(store, thread, tip, &key, mark.as_ref())?)?;
        let now = Mark { commit: open.sound.commit, key };
        if mark.as_ref() != Some(&now) {
            // If this fails, the next writer verifies everything again.
            let _ = marks::keep(store, VERIFIED_THREADS, &thread.encoded(), now);
        }
        Ok(Some(open))
    }

    /// Opens a verified thread of this repository; appends go onto exactly the verified entry.
    pub fn from_verified(writer: &Writer, vouched: &VerifiedThread) -> Result<Self, AnyError> {
        if vouched.reference() != format::thread_ref(&vouched.sound().thread) {
            return Err(Error::Unknown(vouched.sound().thread.clone()).into());
        }
        Self::ours(writer, vouched.sound().clone())
    }

    fn ours(writer: &Writer, sound: Verified<ThreadSnapshot>) -> Result<Self, AnyError> {
        let (thread, key) = (&sound.thread, writer.signer.fingerprint());
        if sound.key != key {
            return Err(Error::NotOurs { thread: thread.clone(), owner: sound.key.clone(), key }.into());
        }
        let known = log::find(&writer.store, &key, thread.clone())?;
        if known.is_some_and(|known| known.last_seq >= sound.entries) {
            let name = format::thread_ref(thread);
            // The log is written after the ref, so a concurrent append can make it name more
            // entries than were read.
            let has_moved = refs::read(&writer.store, &name)?.is_some_and(|tip| tip != sound.commit);
            return Err(if has_moved {
                chain::Error::LostRace(name).into()
            } else {
                Error::Shortened(thread.clone()).into()
            });
        }
        Ok(Self { writer: writer.clone(), sound })
    }

    /// Returns the thread as opened.
    pub fn sound(&self) -> &ThreadSnapshot {
        &self.sound
    }

    /// Appends an entry.
    pub(crate) fn append(&self, event: Event) -> Result<Link, AnyError> {
        let appended = draft(&self.writer, &self.sound.thread, Some(&self.sound), event)?;
        publish(&self.writer, &self.sound.thread, Some(self.sound.first), appended)
    }
}

/// Returns the head of a thread, or `None` if it does not exist. A thread that only the log names
/// is an error.
pub fn tip(writer: &Writer, thread: &ThreadId) -> Result<Option<Oid>, AnyError> {
    // The log is written after the ref, so it is read first: what it names must then exist.
    let known = log::find(&writer.store, &writer.signer.fingerprint(), thread.clone())?;
    let tip = refs::read(&writer.store, &format::thread_ref(thread))?;
    if tip.is_none() && known.is_some() { Err(Error::Gone(thread.clone()).into()) } else { Ok(tip) }
}

/// Runs an operation on a verified thread; after a lost race, repeats it on the new state.
pub(crate) fn in_turn<T>(
    writer: &Writer,
    mut thread: VerifiedThread,
    mut act: impl FnMut(&VerifiedThread) -> Result<T, AnyError>,
) -> Result<T, AnyError> {
    let mut race = Retry::default();
    loop {
        match act(&thread) {
            Err(error) if error.is_lost() && race.again() => thread = thread.renewed(&writer.store)?,
            other => return other,
        }
    }
}

/// Appends a checkpoint to an open thread, or creates the thread with it.
///
/// Fails with a lost race if a thread that is not open exists by now.
fn save(
    writer: &Writer,
    thread: &ThreadId,
    open: Option<&OpenThread>,
    content: Content,
    origin: Option<Origin>,
) -> Result<Checkpoint, AnyError> {
    let event = Event::ThreadCheckpointed(ThreadCheckpointed { content, origin });
    let sound = open.map(|open| &open.sound);
    let appended = draft(writer, thread, sound, event)?;
    let Link { entry, hash, commit, .. } = publish(writer, thread, sound.map(|sound| sound.first), appended)?;
    Ok(Checkpoint::new(entry, hash, commit))
}

/// Refuses a name that a thread has or had. An unreadable ref is an error.
pub(crate) fn vacant(writer: &Writer, thread: &ThreadId) -> Result<(), AnyError> {
    if tip(writer, thread)?.is_some() { Err(Error::Exists(thread.clone()).into()) } else { Ok(()) }
}

/// Turns a lost race for a name into the error for an existing thread.
pub(crate) fn explain_lost_race(thread: &ThreadId, error: AnyError) -> AnyError {
    if error.is_lost() { Error::Exists(thread.clone()).into() } else { error }
}

/// Returns the edits after which a tree has exactly this content.
fn edits(content: &Content) -> Vec<(String, Edit)> {
    let worktree = content.worktree.as_ref().map(|worktree| Edit::Tree(worktree.tree));
    [(STATE, Some(blob_edit(content.state))), (PACKET, content.packet.map(blob_edit)), (WORKTREE, worktree)]
        .map(|(path, edit)| (path.to_owned(), edit.unwrap_or(Edit::Remove)))
        .into()
}

fn blob_edit(product: Product) -> Edit {
    Edit::Blob(product.oid)
}

/// Writes an entry without moving the ref: after the verified head, or as the first one.
fn draft(
    writer: &Writer,
    thread: &ThreadId,
    onto: Option<&Verified<ThreadSnapshot>>,
    event: Event,
) -> Result<Appended, AnyError> {
    let edits = if let Event::ThreadCheckpointed(e) = &event { edits(&e.content) } else { Vec::new() };
    let name = format::thread_ref(thread);
    let head = match onto {
        Some(sound) => Head {
            name,
            commit: Some(sound.commit),
            tree: Some(sound.tree),
            last: Some(sound.last),
            at: Some(sound.at),
            entries: sound.entries,
        },
        None => Head::unborn(name),
    };
    Ok(writer.append(&head, vec![Draft { about: thread.clone().into(), event, bytes: Vec::new(), edits }])?)
}

/// Moves the ref, then records the last entry of the thread in the writer's log.
///
/// `first` is the leaf hash of entry 0, or `None` if this is that entry.
/// After a crash in between, the log names an earlier entry; the next append corrects it.
fn publish(writer: &Writer, thread: &ThreadId, first: Option<Digest>, appended: Appended) -> Result<Link, AnyError> {
    let (_, links) = appended.publish()?;
    let link = links.into_iter().next().expect("one draft makes one entry");
    let (log, first) = (writer.signer.fingerprint(), first.unwrap_or(link.hash));
    let recorded = LogRecorded::new(log, first, link.entry.seq, link.hash);
    log::ensure(writer, &thread.clone().into(), &recorded)?;
    Ok(link)
}

/// Formats a path as git does.
fn path_of(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}

/// Returns the threads of this repository, in order of name.
pub fn own_threads(store: &Store) -> Result<Vec<ThreadId>, AnyError> {
    let names = refs::list(store, format::THREAD_REFS)?;
    Ok(names.iter().filter_map(|(name, _)| ThreadId::decode(name.strip_prefix(format::THREAD_REFS)?)).collect())
}

/// Returns the fetched threads with their refs.
pub fn fetched_threads(store: &Store) -> Result<Vec<(ThreadId, String)>, AnyError> {
    Ok(refs::list(store, format::FETCHED_REFS)?
        .into_iter()
        .filter_map(|(reference, _)| {
            let place = Place::fetched_of(&reference, Kind::Thread)?;
            Some((ThreadId::parse(&place.name).ok()?, reference))
        })
        .collect())
}

errors! {
    /// An error of a thread.
    #[derive(Debug, thiserror::Error)] pub enum Error = "thread";
    Unknown(ThreadId) "unknown-thread": "there is no thread {:?} here" [.0.as_str()];
    Exists(ThreadId) "thread-exists": "there is a thread {:?} here already" [.0.as_str()];
    Gone(ThreadId) "vanished": "the thread {:?} is gone, but the repository log holds it" [.0.as_str()];
    Shortened(ThreadId) "vanished": "the thread {:?} has lost entries that the repository log holds" [.0.as_str()];
    NoCheckpoint { thread: ThreadId, checkpoint: CheckpointId } "unknown-checkpoint":
        "the thread {:?} has no checkpoint {checkpoint}" [thread.as_str()];
    NotOurs { thread: ThreadId, owner: String, key: String } "not-a-writer":
        "the thread {:?} belongs to the key {owner}, not to {key}" [thread.as_str()];
    Tie { run: RunId, finding: String } "unsound-run":
        "the run {:?} cannot be tied to a checkpoint: {finding}" [run.as_str()];
    Altered(CheckpointId) "altered": "the state of {0} is not what its entry says";
}
