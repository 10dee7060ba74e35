//! Compares two checkpoints.

use crate::git::program::Git;
use crate::git::store::Store;
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::model::json::changes::{Changes, MOST_READ};
use crate::model::thread::{Checkpoint, STATE};
use crate::repository::Repository;

use super::steps;
use super::target::ThreadTarget;

/// Two checkpoints of verified threads.
pub struct Comparison {
    store: Store,
    /// The first; `None` if the second is the beginning of its thread.
    old: Option<Checkpoint>,
    new: Checkpoint,
}

impl Comparison {
    /// Compares their states by field; `None` unless both are JSON.
    pub fn fields(&self) -> Result<Option<Changes>, AnyError> {
        let Some(old) = &self.old else { return Ok(None) };
        let sizes = [old, &self.new].map(|checkpoint| checkpoint.content().state.size);
        if sizes.into_iter().any(|size| size > MOST_READ as u64) {
            return Ok(None);
        }
        Ok(Changes::between(&self.state(old)?, &self.state(&self.new)?))
    }

    /// Returns true if their states are equal bytes.
    pub fn is_same_state(&self) -> bool {
        self.old.as_ref().is_some_and(|old| old.content().state == self.new.content().state)
    }

    /// Returns the git command that prints their difference, with or without the states.
    pub fn patch(&self, with_state: bool) -> Git {
        let empty = self.store.empty_tree();
        let tree =
            |commit: Option<Oid>| commit.map_or_else(|| empty.to_string(), |commit| format!("{commit}^{{tree}}"));
        let options = ["-p", "-r", "--no-ext-diff", "--no-textconv", "--no-color"];
        let (old, new) = (tree(self.old.as_ref().map(|old| old.commit)), tree(Some(self.new.commit)));
        let call = self.store.git().arg("diff-tree").args(options).arg(old).arg(new);
        if with_state { call } else { call.args([".".to_owned(), format!(":(exclude,literal){STATE}")]) }
    }

    fn state(&self, checkpoint: &Checkpoint) -> Result<Vec<u8>, AnyError> {
        let mut state = Vec::new();
        steps::hand_out(&self.store, checkpoint, checkpoint.content().state, &mut state)?;
        Ok(state)
    }
}

impl Repository {
    /// Compares a checkpoint with another, or with its predecessor.
    pub fn thread_diff(
        &self,
        old: &str,
        new: Option<&str>,
        accept_untrusted: bool,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Comparison, AnyError> {
        let store = &self.store;
        let target = ThreadTarget::find(store, old)?;
        let vouched = target.vouched(self, accept_untrusted, warn)?;
        let sound = vouched.sound();
        let selected = steps::find(sound, target.checkpoint.as_ref())?;
        let (earlier, new) = if let Some(other) = new {
            let other_target = ThreadTarget::find(store, other)?;
            let other_vouched = other_target.vouched(self, accept_untrusted, warn)?;
            (Some(selected.clone()), steps::find(other_vouched.sound(), other_target.checkpoint.as_ref())?.clone())
        } else {
            let place = sound.trail.checkpoints.iter().position(|checkpoint| checkpoint.id == selected.id);
            let before = place.and_then(|place| sound.trail.checkpoints.get(place.checked_sub(1)?));
            (before.cloned(), selected.clone())
        };
        Ok(Comparison { store: store.clone(), old: earlier, new })
    }
}
