//! What people mean by `<thread>` and `<thread>:<checkpoint>`.

use git_handoff::git::refs;
use git_handoff::git::store::Store;
use git_handoff::model::digest::Oid;
use git_handoff::model::format;
use git_handoff::model::name::ThreadId;
use git_handoff::model::place::Place;
use git_handoff::model::problem::nearest;
use git_handoff::model::quote::quoted;
use git_handoff::model::thread::CheckpointId;
use git_handoff::thread::vouch::{self, Trust, Vouched, vouch};
use git_handoff::thread::{self, own_threads};
use git_handoff::verify::{Options, Sound, sound_thread};

use super::super::failure::Failure;
use super::super::target::fetched;
use super::super::verify::{self, trust};
use super::{Output, Repository};

/// A thread, the ref that holds it, ours or a fetched one, and the checkpoint that was named.
pub(crate) struct ThreadTarget {
    /// The thread.
    pub(crate) thread: ThreadId,
    /// The ref.
    pub(crate) reference: String,
    /// The commit that it points at.
    pub(crate) tip: Oid,
    /// The checkpoint.
    pub(crate) checkpoint: Option<CheckpointId>,
}

impl ThreadTarget {
    /// Finds a thread by `<thread>[:<checkpoint>]`, or by `<remote>/<thread>` among those fetched.
    pub(crate) fn find(store: &Store, text: &str) -> Result<Self, Failure> {
        match Self::look_for(store, text)? {
            Some(found) => Ok(found),
            None => Err(unknown(store, text)?),
        }
    }

    /// Finds a thread in the same way; none where there is none.
    pub(crate) fn look_for(store: &Store, text: &str) -> Result<Option<Self>, Failure> {
        // Names may hold colons: only what can be a checkpoint's name behind the last one is taken for it.
        let split = text.rsplit_once(':').and_then(|(thread, id)| Some((thread, id.parse::<CheckpointId>().ok()?)));
        if let Some((thread, checkpoint)) = split
            && let Some(found) = Self::look_up(store, thread)?
        {
            return Ok(Some(Self { checkpoint: Some(checkpoint), ..found }));
        }
        Self::look_up(store, text)
    }

    fn look_up(store: &Store, text: &str) -> Result<Option<Self>, Failure> {
        let at = |thread: ThreadId, reference: String, tip: Oid| Self { thread, reference, tip, checkpoint: None };
        if let Ok(thread) = ThreadId::parse(text) {
            let own = format::thread_ref(&thread);
            if let Some(tip) = refs::read(store, &own)? {
                return Ok(Some(at(thread, own, tip)));
            }
            let found = fetched(store, &Place::of_thread(&thread), text)?;
            return Ok(found.map(|(name, tip)| at(thread, name, tip)));
        }
        let Some((remote, id)) = text.rsplit_once('/') else { return Ok(None) };
        let Ok(thread) = ThreadId::parse(id) else { return Ok(None) };
        let reference = Place::of_thread(&thread).below(&format::fetched_refs(remote));
        let found = refs::list(store, format::FETCHED_REFS)?.into_iter().find(|(name, _)| *name == reference);
        Ok(found.map(|(name, tip)| at(thread, name, tip)))
    }

    /// Returns a thread of this repository.
    pub(crate) fn own(repository: &Repository, thread: ThreadId) -> Result<Self, Failure> {
        let tip = thread::tip(&repository.writer()?, &thread)?.ok_or_else(|| thread::Error::Unknown(thread.clone()))?;
        Ok(Self { reference: format::thread_ref(&thread), thread, tip, checkpoint: None })
    }

    /// Verifies the thread and judges its keys as the configuration says, before any of its bytes are taken out.
    pub(crate) fn vouched(
        &self,
        repository: &Repository,
        accept_untrusted: bool,
        output: &mut Output,
    ) -> Result<Vouched, Failure> {
        let options = trust(&verify::Trust::default(), repository, output)?;
        let vouched = self.vouched_by(&repository.store, &Trust { options, accept_untrusted })?;
        vouched.warnings().iter().for_each(|warning| output.warn(warning));
        Ok(vouched)
    }

    /// Verifies the thread and judges its keys as a reader does, before any of its bytes are taken out.
    pub(crate) fn vouched_by(&self, store: &Store, trust: &Trust) -> Result<Vouched, Failure> {
        let at = (&self.thread, self.reference.as_str(), self.tip);
        vouch(store, at, trust).map_err(|error| match error {
            vouch::Error::Tampered(_) | vouch::Error::Untrusted { .. } => {
                Failure::from(error).hint(format!("git handoff thread verify {}", quoted(&self.name())))
            }
            vouch::Error::Logs(_) | vouch::Error::Ref(_) => error.into(),
        })
    }

    /// Returns what the thread is called here.
    fn name(&self) -> String {
        Place::fetched(&self.reference)
            .map_or_else(|| self.thread.to_string(), |(remote, _)| format!("{remote}/{}", self.thread))
    }

    /// Reads the thread, refusing one that is not sound.
    pub(crate) fn sound(&self, store: &Store) -> Result<Sound, Failure> {
        Ok(sound_thread(store, &self.thread, self.tip, &Options::default())?)
    }
}

fn unknown(store: &Store, text: &str) -> Result<Failure, Failure> {
    let threads = own_threads(store)?;
    let failure = Failure::refused("unknown-thread", format!("there is no thread {text:?} here"));
    Ok(match nearest(text, threads.iter().map(ThreadId::as_str)) {
        Some(near) => failure.hint(format!("did you mean {near:?}?")),
        None => failure.hint("git handoff thread list"),
    })
}
