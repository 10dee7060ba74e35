//! What is done with threads: each operation takes what is asked for and answers what came of it.
//!
//! A thread is verified before anything is appended to it or taken from it. `warn` is told what a reader should know of it.

use serde_json::Value;

use crate::git::{refs, work_tree};
use crate::model::entry::{Content, Product, RunTie, Worktree};
use crate::model::format;
use crate::model::name::ThreadId;
use crate::model::packet::Unclean;
use crate::model::thread::{Checkpoint, CheckpointId, MAX_SUMMARY};
use crate::repository::{self, Repository, Trust, trust};
use crate::run::{self, Target};
use crate::verify::{Options, knows_key};

use super::adopt::{self, Request};
use super::answers::{AdoptedCheckpoint, CheckpointShown, MadeCheckpoint, ThreadSummary, Threads};
use super::offer::{self, AtRemotes, Terms};
use super::target::{self, ThreadTarget};
use super::{Made, own_threads, steps, worktree};

/// The most bytes of an agent's name.
const MAX_AGENT: usize = 256;

/// What a checkpoint has besides its state and packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Besides<'a> {
    /// One line about the state.
    pub summary: Option<&'a str>,
    /// The run that it is tied to.
    pub run: Option<&'a str>,
    /// Whether the working tree is saved.
    pub worktree: bool,
}

/// What people are told of a name that cannot be recorded.
const THREAD: &str = "thread name";

/// How a thread is gone on from.
#[derive(Clone, Copy, Debug, Default)]
pub struct GoingOn {
    /// Whether the saved working tree is put back as well.
    pub checkout: bool,
    /// How bad the attached packet may be, which is recorded.
    pub accept: Option<Unclean>,
    /// Whether the thread may rest on a key that is not to be trusted.
    pub accept_untrusted: bool,
    /// The most bytes that the state may have to be handed out; nothing is recorded of a larger one.
    pub at_most: Option<u64>,
}

/// A descriptor, and where what it offers is not found yet.
#[derive(Clone, Debug)]
pub struct Offered {
    /// What to pass on, as it is.
    pub descriptor: Value,
    /// The thread.
    pub thread: ThreadId,
    /// Whether those who are offered it find it.
    pub at_remotes: AtRemotes,
}

impl Offered {
    /// Returns what is to be said where nobody may find it, and the remote that it should be pushed to.
    pub fn caution(&self) -> Option<(String, &str)> {
        let thread = &self.thread;
        match &self.at_remotes {
            AtRemotes::Held => None,
            AtRemotes::Nowhere(remote) => {
                Some((format!("{thread} is not at {remote:?} yet: nobody can adopt it from there"), remote))
            }
            AtRemotes::Unknown(remote) => {
                Some((format!("{remote:?} could not be asked whether it holds {thread}"), remote))
            }
        }
    }
}

/// Whose threads may be forked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Those whose keys, and the keys that they go back to, are known: as for an adoption.
    Known,
    /// Those that are not distrusted.
    Vouched,
    /// Any that is sound.
    Any,
}

impl Repository {
    /// Records that the latest state of a thread of ours is gone on from, and returns its checkpoint.
    pub fn resume(&self, thread: ThreadId, how: GoingOn, warn: &mut dyn FnMut(&str)) -> Result<Checkpoint, Error> {
        let vouched = ThreadTarget::own(self, thread.clone())?.vouched(self, how.accept_untrusted, warn)?;
        let size = steps::find(vouched.sound(), None)?.content.state.size;
        if let Some(at_most) = how.at_most.filter(|most| size > *most) {
            return Err(Error::TooLarge { thread, size, at_most });
        }
        let (checkpoint, behind) = steps::resume(&self.writer()?, vouched, how.checkout, how.accept)?;
        behind.iter().for_each(|submodule| warn(&submodule.in_words()));
        Ok(checkpoint)
    }

    /// Lists the threads of this repository. One that cannot be read does not hide the others.
    pub fn threads(&self) -> Result<Threads, Error> {
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
                        summary: Some(latest.content.summary.clone()),
                        ..unknown
                    }
                }
                Err(error) => ThreadSummary { error: Some(error.to_string()), ..unknown },
            });
        }
        Ok(Threads { schema: "git-handoff.threads/1", threads })
    }

    /// Shows the checkpoints of a thread, newest first.
    pub fn thread_log(&self, thread: &str) -> Result<Vec<CheckpointShown>, Error> {
        let sound = ThreadTarget::find(&self.store, thread)?.sound(&self.store)?;
        Ok(sound.trail.checkpoints.iter().rev().map(CheckpointShown::of).collect())
    }

    /// Saves a checkpoint; `bytes` writes its state and packet into the repository, once everything else is in order.
    pub fn checkpoint<E: From<Error>>(
        &self,
        thread: &ThreadId,
        besides: &Besides<'_>,
        bytes: impl FnOnce() -> Result<(Product, Option<Product>), E>,
    ) -> Result<MadeCheckpoint, E> {
        if besides.summary.is_some_and(|text| text.len() > MAX_SUMMARY || text.chars().any(char::is_control)) {
            return Err(Error::Summary.into());
        }
        if let Some(summary) = besides.summary {
            self.free_of_secrets("summary", summary).map_err(Error::from)?;
        }
        self.free_of_secrets(THREAD, thread.as_str()).map_err(Error::from)?;
        let run = besides.run.map(|run| self.tie(run)).transpose()?;
        let writer = self.writer().map_err(Error::from)?;
        let base = work_tree::head(&self.store).map_err(Error::from)?;
        let (state, packet) = bytes()?;
        let saved = besides.worktree.then(|| self.save_worktree()).transpose()?;
        let (worktree, left_out) = saved.unzip();
        let content = Content {
            state,
            summary: besides.summary.map(str::to_owned),
            packet,
            worktree,
            base: base.map(|(commit, _)| commit),
        };
        let made = super::checkpoint::checkpoint(&writer, thread, &content, run).map_err(Error::from)?;
        let mut answer = MadeCheckpoint::of(&made, MadeCheckpoint::SAVED);
        answer.left_out = left_out.unwrap_or_default();
        Ok(answer)
    }

    fn tie(&self, text: &str) -> Result<RunTie, Error> {
        let target = Target::find(&self.store, text)?;
        let view = target.view(&self.store)?;
        let commit =
            view.head.commit.ok_or_else(|| run::target::Error::Run(run::Error::Unknown(target.run.clone())))?;
        Ok(RunTie { id: target.run, commit })
    }

    /// Saves the working tree, and returns it with the paths that it does not hold.
    fn save_worktree(&self) -> Result<(Worktree, Vec<String>), Error> {
        let saved = worktree::save(&self.store, self.config.max_product_size, &self.gate())?;
        self.keep(saved.kept);
        Ok((saved.worktree, saved.left_out.iter().map(|path| path.to_string_lossy().into_owned()).collect()))
    }

    /// Begins a new thread with a checkpoint of another.
    pub fn fork(
        &self,
        source: &str,
        new: &ThreadId,
        whose: Source,
        warn: &mut dyn FnMut(&str),
    ) -> Result<MadeCheckpoint, Error> {
        self.free_of_secrets(THREAD, new.as_str())?;
        let target = ThreadTarget::find(&self.store, source)?;
        let vouched = target.vouched(self, whose == Source::Any, warn)?;
        if whose == Source::Known {
            let options = self.options(&Trust::default(), warn)?;
            let sound = vouched.sound();
            let unknown = |why: String| Error::UnknownSigner { named: source.to_owned(), key: sound.key.clone(), why };
            match knows_key(&options, &sound.key, self.environment.clock.now()) {
                Ok(true) => {}
                Ok(false) => return Err(unknown("is not known here".to_owned())),
                Err(why) => return Err(unknown(why)),
            }
            if let Some(stranger) = sound.lineage.iter().find(|ancestor| !ancestor.signer.trusted) {
                return Err(unknown(format!("goes back to {}, which is not known here", stranger.signer.fingerprint)));
            }
        }
        let made = steps::fork(&self.writer()?, &vouched, target.checkpoint.as_ref(), new)?;
        Ok(MadeCheckpoint::of(&made, MadeCheckpoint::FORKED))
    }

    /// Makes an earlier checkpoint of a thread of ours its latest again; nothing is removed.
    pub fn rollback(
        &self,
        thread: ThreadId,
        to: &CheckpointId,
        accept_untrusted: bool,
        warn: &mut dyn FnMut(&str),
    ) -> Result<MadeCheckpoint, Error> {
        let vouched = ThreadTarget::own(self, thread)?.vouched(self, accept_untrusted, warn)?;
        let made: Made = steps::rollback(&self.writer()?, vouched, to)?;
        Ok(MadeCheckpoint::of(&made, MadeCheckpoint::ROLLED_BACK))
    }

    /// Returns the signed descriptor of a checkpoint.
    pub fn offer(&self, target: &str, terms: Terms, warn: &mut dyn FnMut(&str)) -> Result<Offered, Error> {
        let target = ThreadTarget::find(&self.store, target)?;
        // Whom it rests on is for those to judge who are offered it.
        let source = target.vouched(self, true, warn)?;
        let bad = |to: &str| to.is_empty() || to.len() > MAX_AGENT || to.chars().any(char::is_control);
        if terms.to_agent.as_deref().is_some_and(bad) {
            return Err(Error::Agent);
        }
        let at = target.checkpoint.as_ref();
        let descriptor = offer::offer(&self.writer()?, &source, at, terms)?;
        let at_remotes = offer::at_remotes(&self.store, &self.reach(), &source, at)?;
        Ok(Offered { descriptor, thread: target.thread, at_remotes })
    }

    /// Adopts a checkpoint that was offered, as the beginning of a new thread.
    pub fn adopt(&self, request: &Request) -> Result<AdoptedCheckpoint, Error> {
        // Whether an unknown key will do is for the request to say.
        let options = Options { strict_signers: false, ..request.options.clone() };
        self.free_of_secrets(THREAD, request.new.as_str())?;
        let adopted = adopt::adopt(&self.writer()?, &Request { options, ..request.clone() })?;
        Ok(AdoptedCheckpoint::of(&adopted, request.checkout))
    }
}

/// Why nothing was done with a thread.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("a summary is one line of at most {MAX_SUMMARY} bytes")]
    Summary,
    #[error("an agent's name has 1 to {MAX_AGENT} bytes and no control characters")]
    Agent,
    #[error("the thread belongs to {key}, which {why}")]
    UnknownSigner { named: String, key: String, why: String },
    #[error("the state has {size} bytes, and an answer at most {at_most}")]
    TooLarge { thread: ThreadId, size: u64, at_most: u64 },
    #[error(transparent)]
    Target(#[from] target::Error),
    #[error(transparent)]
    Run(#[from] run::target::Error),
    #[error(transparent)]
    Ref(#[from] refs::Error),
    #[error(transparent)]
    Thread(#[from] super::Error),
    #[error(transparent)]
    Adopt(#[from] adopt::Error),
    #[error(transparent)]
    Worktree(#[from] worktree::Error),
    #[error(transparent)]
    Head(#[from] work_tree::Error),
    #[error(transparent)]
    Trust(#[from] trust::Error),
    #[error(transparent)]
    Repository(#[from] repository::Error),
}
