//! Operations on threads.
//!
//! A thread is verified before anything is appended to it or read from it. `warn` receives notes
//! for the reader.

use serde_json::Value;

use crate::git::{refs, work_tree};
use crate::model::any_error::AnyError;
use crate::model::format;
use crate::model::name::ThreadId;
use crate::model::packet::Unclean;
use crate::model::printable;
use crate::model::thread::{Checkpoint, CheckpointId, MAX_SUMMARY};
use crate::repository::{Repository, Trust};
use crate::verify::{Options, knows_key};

use super::adopt::{self, Request};
use super::answers::{AdoptedCheckpoint, NewCheckpoint, ThreadSummary, Threads};
use super::offer::{self, AtRemotes, Terms};
use super::target::ThreadTarget;
use super::{own_threads, steps};

/// The maximum length of an agent's name, in bytes.
const MAX_AGENT: usize = 256;

/// The message for a name that cannot be recorded.
pub(super) const THREAD: &str = "thread name";

/// Options for resuming a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct GoingOn {
    /// Whether to restore the saved working tree.
    pub checkout: bool,
    /// The worst accepted classification of the packet; recorded.
    pub accept: Option<Unclean>,
    /// Whether to accept untrusted keys.
    pub accept_untrusted: bool,
}

/// A descriptor, and whether its checkpoint can be found.
#[derive(Clone, Debug)]
pub struct Offered {
    /// The descriptor to pass on unchanged.
    pub descriptor: Value,
    /// The thread.
    pub thread: ThreadId,
    /// Whether the recipient can find it.
    pub at_remotes: AtRemotes,
}

impl Offered {
    /// Returns a warning if the recipient may not find it, with the remote to push to.
    pub fn caution(&self) -> Option<(String, &str)> {
        let thread = &self.thread;
        match &self.at_remotes {
            AtRemotes::Held => None,
            AtRemotes::Nowhere(remote) => {
                Some((format!("{thread} is not on {remote:?} yet, so it cannot be adopted from there"), remote))
            }
            AtRemotes::Unknown(remote) => {
                Some((format!("{remote:?} could not be asked whether it holds {thread}"), remote))
            }
        }
    }
}

/// The threads that may be forked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Those with known keys, including the lineage, as for adopting.
    Known,
    /// Those without distrusted keys.
    VerifiedThread,
    /// Any valid thread.
    Any,
}

impl Repository {
    /// Resumes a thread of ours at its latest checkpoint, and records that.
    pub fn resume(&self, thread: ThreadId, how: GoingOn, warn: &mut dyn FnMut(&str)) -> Result<Checkpoint, AnyError> {
        let vouched = ThreadTarget::own(self, thread)?.vouched(self, how.accept_untrusted, warn)?;
        let (checkpoint, behind) = steps::resume(&self.writer()?, vouched, how.checkout, how.accept)?;
        behind.iter().for_each(|submodule| warn(&submodule.in_words()));
        Ok(checkpoint)
    }

    /// Returns the latest checkpoint of a thread of ours, which [`Self::resume`] has returned
    /// before; records nothing.
    pub fn resumable(&self, thread: ThreadId, warn: &mut dyn FnMut(&str)) -> Result<Checkpoint, AnyError> {
        let vouched = ThreadTarget::own(self, thread)?.vouched(self, false, warn)?;
        let latest = steps::find(vouched.sound(), None)?;
        if latest.resumed.is_empty() {
            return Err(Error::NotResumed(vouched.sound().thread.clone()).into());
        }
        Ok(latest.clone())
    }

    /// Lists the threads of this repository. An unreadable one does not hide the others.
    pub fn threads(&self) -> Result<Threads, AnyError> {
        let mut threads = Vec::new();
        for thread in own_threads(&self.store)? {
            let reference = format::thread_ref(&thread);
            let Some(tip) = refs::read(&self.store, &reference)? else { continue };
            let target = ThreadTarget { thread: thread.clone(), reference, tip, checkpoint: None };
            let unknown = ThreadSummary {
                thread_id: thread,
                checkpoints: None,
                checkpoint_id: None,
                at: None,
                summary: None,
                error: None,
            };
            threads.push(match target.sound(&self.store) {
                Ok(sound) => {
                    let Some(latest) = sound.trail.latest() else { continue };
                    ThreadSummary {
                        checkpoints: Some(sound.trail.checkpoints.len()),
                        checkpoint_id: Some(latest.id.clone()),
                        at: Some(latest.entry.at),
                        summary: Some(latest.content().summary.clone()),
                        ..unknown
                    }
                }
                Err(error) => ThreadSummary { error: Some(error.to_string()), ..unknown },
            });
        }
        Ok(Threads { threads })
    }

    /// Returns the checkpoints of a thread, newest first.
    pub fn thread_log(&self, thread: &str) -> Result<Vec<Checkpoint>, AnyError> {
        let sound = ThreadTarget::find(&self.store, thread)?.sound(&self.store)?;
        Ok(sound.trail.checkpoints.iter().rev().cloned().collect())
    }

    /// Draws the entries of some threads, and of those that they come from, as `git log --graph`
    /// does. Newest first.
    ///
    /// Every thread must be valid. The runs that checkpoints were made in are left out.
    pub fn thread_graph(&self, threads: &[String]) -> Result<String, AnyError> {
        let mut tips = Vec::new();
        for thread in threads {
            let target = ThreadTarget::find(&self.store, thread)?;
            target.sound(&self.store)?;
            tips.push(target.tip.to_string());
        }
        // The subject of an entry is its kind first, and a commit of a run has another kind.
        let call = self.store.git().env("GIT_NO_LAZY_FETCH", "1").args(["log", "--no-color", "--no-show-signature"]);
        let drawn = call.args(["--graph", "--grep=^thread\\.", "--format=%h %as %s"]).args(&tips).run()?;
        let drawn = printable::lines(&String::from_utf8_lossy(&drawn));
        Ok(drawn.lines().map(|line| line.trim_end().to_owned() + "\n").collect())
    }

    /// Creates a thread from a checkpoint of another.
    pub fn fork(
        &self,
        source: &str,
        new: &ThreadId,
        whose: Source,
        warn: &mut dyn FnMut(&str),
    ) -> Result<NewCheckpoint, AnyError> {
        self.free_of_secrets(THREAD, new.as_str())?;
        let target = ThreadTarget::find(&self.store, source)?;
        let vouched = target.vouched(self, whose == Source::Any, warn)?;
        if whose == Source::Known {
            let options = self.options(&Trust::default(), warn)?;
            let sound = vouched.sound();
            let unknown = |why: String| Error::UnknownSigner { name: source.to_owned(), key: sound.key.clone(), why };
            match knows_key(&options, &sound.key, self.environment.clock.now()) {
                Ok(true) => {}
                Ok(false) => return Err(unknown("is not known here".to_owned()).into()),
                Err(why) => return Err(unknown(why).into()),
            }
            if let Some(stranger) = sound.lineage.iter().find(|ancestor| !ancestor.signer.trusted) {
                return Err(
                    unknown(format!("goes back to {}, which is not known here", stranger.signer.fingerprint)).into()
                );
            }
        }
        let made = steps::fork(&self.writer()?, &vouched, target.checkpoint.as_ref(), new)?;
        Ok(NewCheckpoint::new(new, &made, NewCheckpoint::FORKED))
    }

    /// Appends an earlier checkpoint of our thread as its latest.
    pub fn rollback(
        &self,
        thread: ThreadId,
        to: &CheckpointId,
        accept_untrusted: bool,
        warn: &mut dyn FnMut(&str),
    ) -> Result<NewCheckpoint, AnyError> {
        let name = thread.clone();
        let vouched = ThreadTarget::own(self, thread)?.vouched(self, accept_untrusted, warn)?;
        let made = steps::rollback(&self.writer()?, vouched, to)?;
        Ok(NewCheckpoint::new(&name, &made, NewCheckpoint::ROLLED_BACK))
    }

    /// Returns the signed descriptor of a checkpoint.
    pub fn offer(&self, target: &str, terms: Terms, warn: &mut dyn FnMut(&str)) -> Result<Offered, AnyError> {
        let target = ThreadTarget::find(&self.store, target)?;
        // Whether to trust its lineage is the recipient's decision.
        let source = target.vouched(self, true, warn)?;
        if terms
            .to_agent
            .as_deref()
            .is_some_and(|to| to.is_empty() || to.len() > MAX_AGENT || to.chars().any(char::is_control))
        {
            return Err(Error::Agent.into());
        }
        let at = target.checkpoint.as_ref();
        let descriptor = offer::offer(&self.writer()?, &source, at, terms)?;
        let at_remotes = offer::at_remotes(&self.store, &self.reach(), &source, at)?;
        Ok(Offered { descriptor, thread: target.thread, at_remotes })
    }

    /// Adopts an offered checkpoint as the beginning of a new thread.
    pub fn adopt(&self, request: &Request) -> Result<AdoptedCheckpoint, AnyError> {
        // The request decides whether to accept an unknown key.
        let options = Options { strict_signers: false, ..request.options.clone() };
        self.free_of_secrets(THREAD, request.new.as_str())?;
        adopt::adopt(&self.writer()?, &Request { options, ..request.clone() })
    }
}

errors! {
    /// An error of an operation on threads.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Summary "usage" 2: "a summary is one line of at most {MAX_SUMMARY} bytes";
    Agent "usage" 2: "an agent's name has 1 to {MAX_AGENT} bytes and no control characters";
    UnknownSigner { name: String, key: String, why: String } "unknown-signer":
        "the thread belongs to {key}, which {why}";
    NotResumed(ThreadId) "not-resumed":
        "the latest state of the thread {0} was not resumed: its rest can only be read afterwards";
    Packet(AnyError): "cannot write the packet of the checkpoint: {0}";
    #[from "head"] Head(work_tree::Error);
}
