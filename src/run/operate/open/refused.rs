//! Records the results that the remote of a shared run refuses.

use std::collections::VecDeque;

use crate::ledger::chain::Link;
use crate::model::entry::{Event, ItemReconciled, Outcome};
use crate::run::operate::new_entry::NewEntry;

use super::{Applying, Error, OpenRun};

impl OpenRun {
    /// Records each result alone, after the remote refused them together. If it takes others, a
    /// result that it refuses once more becomes a failure with the remote's reason; its products
    /// stay in this repository. After an error, results that were not recorded are staged.
    pub(super) fn publish_each(
        &mut self,
        entries: &[NewEntry],
        remote: String,
        why: String,
    ) -> Result<Vec<Link>, Error> {
        let mut links = Vec::new();
        let results = entries.iter().filter(|new| self.survives(new)).cloned().collect();
        let mut refused = self.publish_alone(results, &mut links)?;
        let is_taken = !links.is_empty();
        if is_taken {
            // The remote may have begun to take entries only after it refused some.
            let again = refused.into_iter().map(|(new, _)| new).collect();
            refused = self.publish_alone(again, &mut links)?;
        }
        let refused: Vec<NewEntry> =
            refused.into_iter().map(|(new, reason)| if is_taken { failed_push(new, &reason) } else { new }).collect();
        self.apply(&refused, Applying::Kept)?;
        if !is_taken && self.has_staged() {
            return Err(Error::PushRefused { remote, why });
        }
        links.extend(self.publish()?);
        Ok(links)
    }

    /// Records each of these results in a push of its own. Returns those that the remote refused,
    /// with its reasons.
    fn publish_alone(
        &mut self,
        mut left: VecDeque<NewEntry>,
        links: &mut Vec<Link>,
    ) -> Result<Vec<(NewEntry, String)>, Error> {
        let mut refused = Vec::new();
        while let Some(new) = left.pop_front() {
            self.apply(std::slice::from_ref(&new), Applying::Kept)?;
            match self.publish_with(&[]) {
                Ok(Some(more)) => links.extend(more),
                Ok(None) => left.push_front(new),
                Err(Error::PushRefused { why, .. }) => refused.push((new, why)),
                Err(error) => {
                    let unrecorded: Vec<_> =
                        refused.into_iter().map(|(entry, _)| entry).chain([new]).chain(left).collect();
                    self.apply(&unrecorded, Applying::Kept)?;
                    return Err(error);
                }
            }
        }
        Ok(refused)
    }

    /// Replaces staged results that the remote refuses by failures. Returns the results, for
    /// [`OpenRun::stage_again`].
    pub fn fail_refused(&mut self, why: &str) -> Result<Vec<NewEntry>, Error> {
        let staged = std::mem::take(&mut self.staged).entries;
        self.unstage();
        let failed: Vec<NewEntry> = staged.iter().map(|new| failed_push(new.clone(), why)).collect();
        self.apply(&failed, Applying::Kept)?;
        Ok(staged)
    }

    /// Replaces the staged entries with those of these results that can still be recorded.
    pub fn stage_again(&mut self, results: &[NewEntry]) -> Result<(), Error> {
        self.unstage();
        self.apply(results, Applying::Kept)
    }
}

/// Returns the failure that replaces a result that the remote refuses.
fn failed_push(new: NewEntry, why: &str) -> NewEntry {
    let Event::ItemReconciled(e) = &new.event else { return new };
    if e.reused.is_some() {
        return new;
    }
    let failed = ItemReconciled {
        reason: Some(format!("push-refused: {why}")),
        duration_ms: e.duration_ms,
        driver: e.driver.clone(),
        ..ItemReconciled::new(e.item.clone(), e.attempt, Outcome::Failed)
    };
    NewEntry::plain(Event::ItemReconciled(failed))
}
