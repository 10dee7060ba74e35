//! Follows changes of settings and trust while a run is driven.

use std::time::{Duration, Instant};

use crate::engine::event::Progress;
use crate::model::role::Role;

use super::{Driver, Error};

/// How often to read settings and trust again.
const INTERVAL: Duration = Duration::from_secs(1);

impl Driver<'_> {
    /// Reads settings and trust again from time to time. Returns an error if the driver's own key
    /// is revoked now.
    pub(super) fn renew(&mut self) -> Result<(), Error> {
        if self.renewed.elapsed() < INTERVAL {
            return Ok(());
        }
        self.renewed = Instant::now();
        let revoked = match self.machine.renew() {
            Ok(revoked) => revoked,
            Err(why) => {
                self.tell_once(format!("cannot read the settings again, so those from before count: {why}"));
                return Ok(());
            }
        };
        let own = self.run.writer().signer.fingerprint();
        if revoked.contains(&own) {
            return Err(Error::Revoked(self.run.id().clone(), own));
        }
        let keys = &self.run.state.keys;
        let notes: Vec<String> = revoked
            .iter()
            .filter(|key| keys.has(key, Role::Own) || keys.has(key, Role::Work))
            .map(|key| format!("the key {key} is revoked here: nothing more is taken from it"))
            .collect();
        notes.into_iter().for_each(|note| self.tell_once(note));
        self.run.set_revoked(revoked);
        Ok(())
    }

    /// Tells the operator something, unless this driver said it before.
    pub(super) fn tell_once(&mut self, note: String) {
        if self.reported.insert(note.clone()) {
            (self.tell)(Progress::Note(note));
        }
    }
}
