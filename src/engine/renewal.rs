//! Reads settings and trust again while a run is driven.

use std::collections::BTreeSet;

use crate::model::causes::in_words;
use crate::repository::{Environment, Repository, Trust};

use super::machine::Machine;

impl Machine {
    /// Reads the settings again, and returns the keys that are revoked now, or why something cannot
    /// be read.
    ///
    /// The folders of worktrees stay as they were when the driver began.
    pub(super) fn renew(&mut self) -> Result<BTreeSet<String>, String> {
        let environment = Environment { directory: self.top.clone(), ..self.environment.clone() };
        let repository = Repository::open(environment).map_err(|error| in_words(&*error))?;
        let trusted = repository.options(&Trust::default(), &mut |_| ()).map_err(|error| in_words(&error))?;
        // A recording has the settings that were sealed with it.
        if !self.is_recording && *repository.config != *self.config {
            let new = Self::new(&repository, self.close).map_err(|error| error.to_string())?;
            self.config = new.config;
            self.ambient = new.ambient;
            self.schemas = new.schemas;
            self.shapes = new.shapes;
            self.secrets = new.secrets;
            self.programs = new.programs;
            self.sandbox = new.sandbox;
        }
        Ok(trusted.revoked.into_keys().collect())
    }
}
