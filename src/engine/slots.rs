//! Claims what an attempt needs for itself in the whole repository: a place in its queue, and its
//! resource locks.
//!
//! Each is a file that the system locks, so a dead process holds nothing. A refused claim gets a
//! ticket and joins the line of the slot that was taken, ahead of all later claims. The oldest
//! ticket is never blocked by a younger one, so there is neither deadlock nor starvation. A claim
//! waits in no line of a slot that it could have, which leaves that slot to others.
//!
//! The file of a held slot also names its attempt. If driver and supervisor are both killed, the
//! next holder ends what is left of that attempt first.

mod holder;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::git::trace;
use crate::model::digest::Digest;

use super::locks;

/// How long to wait before retrying a refused claim.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Claims slots for the items of a run.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    common_dir: PathBuf,
    queue: String,
    places: usize,
}

/// The slots of one attempt, held until this is dropped. After a crash of the driver they stay
/// taken until the attempt's processes are gone.
#[derive(Debug)]
pub(super) struct HeldSlots {
    /// The locked files, each with the folder of its slot.
    files: Vec<(PathBuf, File)>,
}

/// A position in the lines of slots that were taken.
#[derive(Debug)]
pub(super) struct Ticket {
    number: String,
    /// The lines that it stands in, each with its file.
    lines: BTreeMap<PathBuf, File>,
}

/// The answer to a claim.
#[derive(Debug)]
pub(super) enum Claim {
    /// All slots were free.
    Granted(HeldSlots),
    /// A slot was taken.
    Refused {
        /// Keeps the position for the next claim, or `None` if a race for it was lost.
        ticket: Option<Ticket>,
        /// Whether the queue is full, so that no other item of the run can be dispatched either.
        queue_is_full: bool,
    },
}

/// A queue or a resource lock, with the number of attempts that can hold it at once.
struct Slot {
    dir: PathBuf,
    places: usize,
}

impl Slots {
    /// Returns the slots of a repository, for a queue that runs this many items at once.
    pub(super) fn new(common_dir: &Path, queue: &str, places: usize) -> Self {
        Self { common_dir: common_dir.to_owned(), queue: queue.to_owned(), places }
    }

    /// Claims a place in the queue and all of these locks, or nothing.
    pub(super) fn claim(&self, locks: &[String], ticket: Option<Ticket>) -> Result<Claim, Error> {
        // The queue comes first: if it is full, no lock matters.
        let queue = self.slot(locks::QUEUES, &self.queue, self.places);
        let locks = locks.iter().collect::<BTreeSet<_>>().into_iter();
        let slots = std::iter::once(queue).chain(locks.map(|key| self.slot(locks::RESOURCES, key, 1)));
        let mut files = Vec::new();
        for (nth, slot) in slots.enumerate() {
            let is_turn =
                slot.is_turn_of(ticket.as_ref()).map_err(|source| Error { path: slot.dir.clone(), source })?;
            let locked =
                if is_turn { slot.take().map_err(|source| Error { path: slot.dir.clone(), source })? } else { None };
            let Some(file) = locked else {
                drop(files);
                if ticket.is_none() {
                    trace::waits_for(slot.dir.display());
                }
                let drawn = ticket.map_or_else(|| Ticket::draw(&self.common_dir), |ticket| Ok(Some(ticket)));
                let joined = drawn.and_then(|drawn| drawn.map_or(Ok(None), |drawn_ticket| drawn_ticket.join(&slot)));
                return Ok(Claim::Refused {
                    ticket: joined.map_err(|source| Error { path: slot.dir.clone(), source })?,
                    queue_is_full: nth == 0,
                });
            };
            files.push((slot.dir, file));
        }
        Ok(Claim::Granted(HeldSlots { files }))
    }

    fn slot(&self, kind: &str, key: &str, places: usize) -> Slot {
        Slot { dir: slot_dir(&self.common_dir, kind, key), places }
    }
}

/// Returns the items that hold a lock now, each as `RUN/ITEM`.
pub(super) fn lock_holders(common_dir: &Path, key: &str) -> Vec<String> {
    holder::current(&slot_dir(common_dir, locks::RESOURCES, key))
}

/// Returns the items that hold places of a queue now, each as `RUN/ITEM`.
pub(super) fn queue_holders(common_dir: &Path, queue: &str) -> Vec<String> {
    holder::current(&slot_dir(common_dir, locks::QUEUES, queue))
}

/// Returns the folder of a slot. Its name is a digest, because a key can be any text.
fn slot_dir(common_dir: &Path, kind: &str, key: &str) -> PathBuf {
    locks::folder(common_dir, kind).join(&Digest::compute(key.as_bytes()).hex()[..32])
}

impl HeldSlots {
    /// Records the folder of the attempt that holds them, before any process is started there.
    pub(super) fn record_holder(&self, attempt_dir: &Path) -> Result<(), Error> {
        for (dir, file) in &self.files {
            holder::write(file, attempt_dir).map_err(|source| Error { path: dir.clone(), source })?;
        }
        Ok(())
    }
}

impl Drop for HeldSlots {
    fn drop(&mut self) {
        // If clearing fails, the next holder looks for the attempt and finds that it is over.
        self.files.iter().for_each(|(_, file)| drop(holder::clear(file)));
    }
}

impl Slot {
    /// Locks a free place that no earlier attempt still uses.
    fn take(&self) -> io::Result<Option<File>> {
        let places = self.dir.join("places");
        fs::create_dir_all(&places)?;
        for place in 0..self.places {
            let file = open(&places.join(place.to_string()))?;
            if try_lock(&file)? && holder::end_leftovers(&file)? {
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    /// Returns true if no older ticket waits in the line.
    fn is_turn_of(&self, ticket: Option<&Ticket>) -> io::Result<bool> {
        let listed = match fs::read_dir(self.dir.join("line")) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(error),
        };
        for entry in listed {
            let entry = entry?;
            let is_older = ticket.is_none_or(|own| entry.file_name().as_encoded_bytes() < own.number.as_bytes());
            if is_older && is_held(&entry.path())? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Ticket {
    /// Draws the next ticket of the repository, or returns `None` if another process draws one now.
    ///
    /// It does not wait for that process, because a wait could not be interrupted.
    fn draw(common_dir: &Path) -> io::Result<Option<Self>> {
        let path = locks::folder(common_dir, locks::TICKETS);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        let mut file = open(&path)?;
        if !try_lock(&file)? {
            return Ok(None);
        }
        let mut drawn = String::new();
        file.read_to_string(&mut drawn)?;
        // A number that a full disk cut off counts as zero. Tickets drawn before may then come
        // second.
        let next = drawn.trim().parse::<u64>().unwrap_or(0).saturating_add(1);
        file.rewind()?;
        // A fixed width makes the names sort in the order of the numbers.
        let number = format!("{next:020}");
        write!(file, "{number}")?;
        Ok(Some(Self { number, lines: BTreeMap::new() }))
    }

    /// Joins the line of a slot. Returns `None` if another process has the same number.
    fn join(mut self, slot: &Slot) -> io::Result<Option<Self>> {
        let line = slot.dir.join("line");
        let path = line.join(&self.number);
        if self.lines.contains_key(&path) {
            return Ok(Some(self));
        }
        fs::create_dir_all(&line)?;
        // Lock it before it is visible, because an unlocked ticket is removed.
        let hidden = slot.dir.join(&self.number);
        let file = open(&hidden)?;
        if !try_lock(&file)? {
            return Ok(None);
        }
        fs::rename(&hidden, &path)?;
        self.lines.insert(path, file);
        Ok(Some(self))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // A file that stays behind is not locked, and the next claim removes it.
        self.lines.keys().for_each(|path| drop(fs::remove_file(path)));
    }
}

/// Returns true if a live process holds a ticket. Removes the ticket of a dead one.
fn is_held(path: &Path) -> io::Result<bool> {
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let is_free = try_lock(&file)?;
    if is_free {
        let _ = fs::remove_file(path);
    }
    Ok(!is_free)
}

/// Locks a file unless another process has it locked, and returns true if it did.
fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(source)) => Err(source),
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// A failure to use a lock file.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the locks in {}", path.display())]
pub struct Error {
    path: PathBuf,
    source: io::Error,
}
