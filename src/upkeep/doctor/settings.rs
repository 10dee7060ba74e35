//! Invalid settings. Nothing else can be checked before they are corrected.

use super::{Diagnosis, Finding};
use crate::git::store::Store;
use crate::model::any_error::AnyError;
use crate::model::causes::in_words;
use crate::repository::Environment;
use crate::repository::config::{self, Config};

impl Environment {
    /// Returns all invalid settings of the repository that contains the directory; empty if it
    /// opens.
    pub fn diagnose_settings(&self) -> Result<Option<Diagnosis>, AnyError> {
        let faults = Config::faults(&Store::discover(&self.directory)?)?;
        if faults.is_empty() {
            return Ok(None);
        }
        let mut findings: Vec<Finding> = faults.iter().map(finding).collect();
        findings
            .push(Finding::note("not-examined", "nothing else was looked at, which takes settings that can be read"));
        Ok(Some(Diagnosis { findings }))
    }
}

fn finding(fault: &config::Error) -> Finding {
    Finding { hint: fault.hint(), ..Finding::problem("setting", in_words(fault)) }
}
