//! Which attempts can meet others, and when nobody is left who may have something from one that is over.
//!
//! Whoever can speak to another process can hand it what it has open: to another attempt, which hands it on to one that begins
//! later, and so on. So a handle lives as long as attempts that can meet others follow on one another without a gap, of this driver or
//! of any other, and no longer; no count of attempts that ran at the same time says more. Attempts that are kept from all others, and those that
//! nothing confines, which need no handle, do not count.
//!
//! Drivers tell one another by a lock on a file, [`Host::meeting`]: shared as long as an attempt of theirs runs that counts.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::OFlags;

use super::Workspace;
use crate::worker::host::Host;
use crate::worker::sandbox::Confinement;

/// The attempts of one driver that can meet others; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(in crate::worker) struct Company(Arc<Mutex<Present>>);

#[derive(Debug, Default)]
struct Present {
    count: u64,
    /// Tells other drivers, as long as there are any. Where it could not be had nobody can have it, and nothing is used again.
    lock: Option<Lock>,
}

/// A lock that is let go when this is dropped, whatever a child of ours that is yet to begin its program has inherited.
#[derive(Debug)]
struct Lock(File);

impl Lock {
    /// Waits for nobody but those who ask whether they can have it.
    fn shared(path: &Path) -> io::Result<Self> {
        let file = open(path)?;
        file.lock_shared()?;
        Ok(Self(file))
    }

    /// Fails where anybody has it.
    fn exclusive(path: &Path) -> io::Result<Self> {
        let file = open(path)?;
        file.try_lock()?;
        Ok(Self(file))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // What cannot be let go so ends with the file.
        let _ = self.0.unlock();
    }
}

impl Company {
    fn present(&self) -> MutexGuard<'_, Present> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes one more; [`Company::leave`] is to follow when nothing of it runs any more, and never where that is in doubt.
    pub(in crate::worker) fn join(&self, path: &Path) {
        let mut present = self.present();
        if present.lock.is_none() {
            present.lock = Lock::shared(path).ok();
        }
        present.count += 1;
    }

    /// Notes one less.
    pub(in crate::worker) fn leave(&self) {
        let mut present = self.present();
        present.count -= 1;
        if present.count == 0 {
            present.lock = None;
        }
    }

    /// Returns how many of this driver's there are.
    pub(super) fn count(&self) -> u64 {
        self.present().count
    }

    /// Returns whether there is no attempt anywhere, of this user, that can meet others; not so where that cannot be told.
    pub(super) fn is_empty(&self, path: &Path) -> bool {
        let present = self.present();
        // A lock that we get is let go at once.
        present.count == 0 && Lock::exclusive(path).is_ok()
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags).open(path)
}

impl Workspace {
    /// Returns whether what runs here, confined so, can speak to workers of other attempts.
    pub fn lets_meet(&self, by: &Confinement) -> bool {
        !by.keeps_apart() || !self.linked().is_empty()
    }

    /// Notes that its worker will be able to speak to workers of other attempts.
    ///
    /// To be called before it begins; [`Workspace::part`] is to follow.
    pub fn meet(&mut self, host: &Host) {
        if self.company.is_none() {
            host.company.join(&host.meeting);
            self.company = Some(host.company.clone());
        }
    }

    /// Notes that nothing of its worker's runs any more, if that is so; what is in doubt stays among those that others may meet.
    ///
    /// To be called once.
    pub fn part(&self) {
        if let Some(company) = self.company.as_ref().filter(|_| !self.is_in_doubt()) {
            company.leave();
        }
    }

    /// Returns whether its worker was able to speak to others.
    pub fn could_meet(&self) -> bool {
        self.company.is_some()
    }
}
