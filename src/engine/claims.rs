//! What an attempt has for itself in the whole repository, whichever run and process it is of: its resource locks, and a place in its
//! queue.
//!
//! Each is a file that the operating system locks, so that nothing is left of whoever dies. Who is refused gets a ticket and joins the line
//! of what could not be had, before all who ask later: nobody older stands in the way of the oldest ticket anywhere, so no two wait for
//! each other, and nobody is passed by for ever. In the line of what could be had nobody waits, so that it is free for others meanwhile.
//!
//! A file also says whose it is, as long as it is: what a worker goes on with whose driver and supervisor were killed ends before
//! anybody else has what it had.

mod holder;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::model::digest::Digest;

use super::locks;

/// How long to wait before asking again.
pub const AGAIN: Duration = Duration::from_millis(100);

/// What may be claimed for the items of a run on one queue.
#[derive(Clone, Debug)]
pub struct Claims {
    common_dir: PathBuf,
    queue: String,
    places: usize,
}

/// What an attempt holds, until it is dropped, or the process dies and nothing of the attempt is left.
#[derive(Debug)]
pub struct Claim {
    /// The files that it has locked, each with the folder of what that is a place of.
    held: Vec<(PathBuf, File)>,
}

/// A place in the lines of what is wanted.
#[derive(Debug)]
pub struct Ticket {
    number: String,
    /// The lines that it stands in, each with its file.
    lines: BTreeMap<PathBuf, File>,
}

/// Whether something could be had.
#[derive(Debug)]
pub enum Asked {
    /// Yes.
    Taken(Claim),
    /// No; asking again keeps the place in the line.
    Refused {
        /// The place; none where another took one in this very moment, so that it is to be asked for again.
        ticket: Option<Ticket>,
        /// Whether the queue is full, so that no other item of the run can be dispatched either.
        full: bool,
    },
}

/// One thing that can be held by so many at once.
struct Thing {
    dir: PathBuf,
    places: usize,
}

impl Claims {
    /// The claims of a repository for a queue in which so many items run at once.
    pub fn new(common_dir: &Path, queue: &str, places: usize) -> Self {
        Self { common_dir: common_dir.to_owned(), queue: queue.to_owned(), places }
    }

    /// Takes all that an item needs, or nothing.
    pub fn ask(&self, locks: &[String], ticket: Option<Ticket>) -> Result<Asked, Error> {
        // The queue first: who finds it full need not look further.
        let queue = self.thing(locks::QUEUES, &self.queue, self.places);
        let locks = locks.iter().collect::<BTreeSet<_>>().into_iter();
        let things: Vec<Thing> =
            std::iter::once(queue).chain(locks.map(|key| self.thing(locks::RESOURCES, key, 1))).collect();
        let mut held = Vec::new();
        for (nth, thing) in things.iter().enumerate() {
            let turn = thing.is_turn_of(ticket.as_ref()).map_err(|source| thing.failed(source))?;
            let taken = if turn { thing.take().map_err(|source| thing.failed(source))? } else { None };
            let Some(file) = taken else {
                drop(held);
                let drawn = ticket.map_or_else(|| Ticket::draw(&self.common_dir), |ticket| Ok(Some(ticket)));
                let joined = drawn.and_then(|drawn| drawn.map_or(Ok(None), |ticket| ticket.join(thing)));
                let ticket = joined.map_err(|source| thing.failed(source))?;
                return Ok(Asked::Refused { ticket, full: nth == 0 });
            };
            held.push((thing.dir.clone(), file));
        }
        Ok(Asked::Taken(Claim { held }))
    }

    fn thing(&self, kind: &str, key: &str, places: usize) -> Thing {
        Thing { dir: place_of(&self.common_dir, kind, key), places }
    }
}

/// Returns the items that hold a lock now, each as `RUN/ITEM`.
pub(super) fn locked_by(common_dir: &Path, key: &str) -> Vec<String> {
    holder::current(&place_of(common_dir, locks::RESOURCES, key))
}

/// Returns the items that hold places of a queue now, each as `RUN/ITEM`.
pub(super) fn queued(common_dir: &Path, queue: &str) -> Vec<String> {
    holder::current(&place_of(common_dir, locks::QUEUES, queue))
}

/// Returns the folder of a thing: a key may be any text, and stands as its digest.
fn place_of(common_dir: &Path, kind: &str, key: &str) -> PathBuf {
    locks::folder(common_dir, kind).join(&Digest::of(key.as_bytes()).hex()[..32])
}

impl Claim {
    /// Notes whose it is, by the folder of the attempt; to be called before anything is started there.
    pub fn is_for(&self, attempt_dir: &Path) -> Result<(), Error> {
        for (dir, file) in &self.held {
            holder::write(file, attempt_dir).map_err(|source| Error { path: dir.clone(), source })?;
        }
        Ok(())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // What stays written costs the next one a look, and is found to be over.
        self.held.iter().for_each(|(_, file)| drop(holder::clear(file)));
    }
}

impl Thing {
    /// Takes a place that is free, and in which nobody's attempt goes on.
    fn take(&self) -> io::Result<Option<File>> {
        let places = self.dir.join("places");
        locks::make(&places)?;
        for place in 0..self.places {
            let file = open(&places.join(place.to_string()))?;
            if locked(&file)? && holder::is_over(&file)? {
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    /// Whether nobody waits who came before.
    fn is_turn_of(&self, ticket: Option<&Ticket>) -> io::Result<bool> {
        let listed = match fs::read_dir(self.dir.join("line")) {
            Ok(listed) => listed,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(true);
            }
            Err(error) => return Err(error),
        };
        for entry in listed {
            let entry = entry?;
            let earlier = ticket.is_none_or(|own| entry.file_name().as_encoded_bytes() < own.number.as_bytes());
            if earlier && is_held(&entry.path())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn failed(&self, source: io::Error) -> Error {
        Error { path: self.dir.clone(), source }
    }
}

impl Ticket {
    /// Draws the next one of the repository; none where another draws one in this very moment.
    ///
    /// Nobody is waited for here: whoever waited could not be told to stop.
    fn draw(common_dir: &Path) -> io::Result<Option<Self>> {
        let path = locks::tickets(common_dir);
        path.parent().map_or(Ok(()), locks::make)?;
        let mut file = open(&path)?;
        if !locked(&file)? {
            return Ok(None);
        }
        let mut drawn = String::new();
        file.read_to_string(&mut drawn)?;
        // What a full disk made of it counts as none: whoever waits then may come behind.
        let next = drawn.trim().parse::<u64>().unwrap_or(0).saturating_add(1);
        file.rewind()?;
        // Of the same width, so that they sort as they were drawn.
        let number = format!("{next:020}");
        write!(file, "{number}")?;
        Ok(Some(Self { number, lines: BTreeMap::new() }))
    }

    /// Joins a line, unless it stands there; none where somebody else has the same number.
    fn join(mut self, thing: &Thing) -> io::Result<Option<Self>> {
        let line = thing.dir.join("line");
        let path = line.join(&self.number);
        if self.lines.contains_key(&path) {
            return Ok(Some(self));
        }
        locks::make(&line)?;
        // It is locked before it can be seen: one that nobody holds is taken away.
        let hidden = thing.dir.join(&self.number);
        let file = open(&hidden)?;
        if !locked(&file)? {
            return Ok(None);
        }
        fs::rename(&hidden, &path)?;
        self.lines.insert(path, file);
        Ok(Some(self))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // What stays behind is not held, and taken away by whoever looks next.
        self.lines.keys().for_each(|path| drop(fs::remove_file(path)));
    }
}

/// Whether somebody alive has a ticket; one of the dead is taken away.
fn is_held(path: &Path) -> io::Result<bool> {
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let is_ours = locked(&file)?;
    if is_ours {
        let _ = fs::remove_file(path);
    }
    Ok(!is_ours)
}

/// Locks a file unless somebody else has it locked, and says whether it did.
fn locked(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(source)) => Err(source),
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// A lock could not be used.
#[derive(Debug, thiserror::Error)]
#[error("the locks in {} could not be used", path.display())]
pub struct Error {
    path: PathBuf,
    source: io::Error,
}
