//! Resolves `<thread>` and `<thread>:<checkpoint>`.

use crate::git::store::Store;
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::name::{NameError, ThreadId};
use crate::model::place::Place;
use crate::model::problem::nearest;
use crate::model::thread::CheckpointId;
use crate::repository::{Repository, trust};
use crate::run::query::target::located;
use crate::verify::{Options, ThreadSnapshot, Verified, verified_thread};

use super::own_threads;
use super::vouch::{Trust, VerifiedThread, vouch};

/// A thread, its local or fetched ref, and the named checkpoint.
pub struct ThreadTarget {
    /// The thread.
    pub thread: ThreadId,
    /// The ref.
    pub reference: String,
    /// The ref's commit.
    pub tip: Oid,
    /// The checkpoint.
    pub checkpoint: Option<CheckpointId>,
}

impl ThreadTarget {
    /// Resolves `<thread>[:<checkpoint>]`, or `<remote>/<thread>` for a fetched one.
    pub fn find(store: &Store, text: &str) -> Result<Self, AnyError> {
        match Self::look_for(store, text)? {
            Some(found) => Ok(found),
            None => Err(unknown(store, text)?.into()),
        }
    }

    /// Resolves a thread in the same way, or returns `None`.
    pub fn look_for(store: &Store, text: &str) -> Result<Option<Self>, AnyError> {
        // Names may contain colons, so only a valid checkpoint name after the last one counts.
        let split = text.rsplit_once(':').and_then(|(thread, id)| Some((thread, id.parse::<CheckpointId>().ok()?)));
        if let Some((thread, checkpoint)) = split
            && let Some(found) = Self::look_up(store, thread)?
        {
            return Ok(Some(Self { checkpoint: Some(checkpoint), ..found }));
        }
        Self::look_up(store, text)
    }

    fn look_up(store: &Store, text: &str) -> Result<Option<Self>, AnyError> {
        if let Ok(thread) = ThreadId::parse(text) {
            let found = located(store, &Place::of_thread(&thread), None)?;
            return Ok(found.map(|(name, tip)| without_checkpoint(thread, name, tip)));
        }
        let Some((remote, id)) = text.rsplit_once('/') else { return Ok(None) };
        let Ok(thread) = ThreadId::parse(id) else { return Ok(None) };
        let found = located(store, &Place::of_thread(&thread), Some(remote))?;
        Ok(found.map(|(name, tip)| without_checkpoint(thread, name, tip)))
    }

    /// Returns a thread of this repository.
    pub fn own(repository: &Repository, thread: ThreadId) -> Result<Self, AnyError> {
        let tip = super::tip(&repository.writer()?, &thread)?.ok_or_else(|| super::Error::Unknown(thread.clone()))?;
        Ok(Self { reference: format::thread_ref(&thread), thread, tip, checkpoint: None })
    }

    /// Verifies the thread with the configured trust before its bytes are used; calls `warn` with
    /// notes.
    pub fn vouched(
        &self,
        repository: &Repository,
        accept_untrusted: bool,
        warn: &mut dyn FnMut(&str),
    ) -> Result<VerifiedThread, AnyError> {
        let options = repository.options(&trust::Trust::default(), warn)?;
        let vouched = self.vouched_by(&repository.store, &Trust { options, accept_untrusted })?;
        vouched.warnings().iter().for_each(|warning| warn(warning));
        Ok(vouched)
    }

    /// Verifies the thread with a reader's trust before its bytes are used.
    pub fn vouched_by(&self, store: &Store, trust: &Trust) -> Result<VerifiedThread, AnyError> {
        let vouched = vouch(store, &self.thread, &self.reference, self.tip, trust);
        Ok(vouched.map_err(|source| Error::Vouch { name: self.name(), source })?)
    }

    /// Returns the name of the thread here.
    fn name(&self) -> String {
        Place::fetched(&self.reference)
            .map_or_else(|| self.thread.to_string(), |(remote, _)| format!("{remote}/{}", self.thread))
    }

    /// Reads the thread; fails if it is invalid.
    pub fn sound(&self, store: &Store) -> Result<Verified<ThreadSnapshot>, AnyError> {
        Ok(verified_thread(store, &self.thread, self.tip, &Options::default())?)
    }
}

fn without_checkpoint(thread: ThreadId, reference: String, tip: Oid) -> ThreadTarget {
    ThreadTarget { thread, reference, tip, checkpoint: None }
}

fn unknown(store: &Store, text: &str) -> Result<Error, AnyError> {
    let threads = own_threads(store)?;
    let near = nearest(text, threads.iter().map(ThreadId::as_str)).map(str::to_owned);
    Ok(Error::Unknown { name: text.to_owned(), near })
}

/// Parses the name of a thread; it need not exist.
pub fn id(text: &str) -> Result<ThreadId, Error> {
    ThreadId::parse(text).map_err(|source| Error::Name { name: text.to_owned(), source })
}

errors! {
    /// The reason why a thread cannot be used.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Name { name: String, source: NameError }: "{name:?} cannot be a thread's name: {source}";
    Unknown { name: String, near: Option<String> } "unknown-thread": "there is no thread {name:?} here";
    Vouch { name: String, source: AnyError }: "{source}";
}
