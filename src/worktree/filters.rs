//! Decides where the repository's filters run on a worker's files.
//!
//! git runs a filter in the worktree, and many programs load code from the current folder: modules,
//! plugins, a pinned version of themselves. No list covers all. So if the worker is confined,
//! filters on its files are confined in the same way.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use crate::model::limits::Limits;
use crate::process::attendant::Attendant;
use crate::sandbox::Confinement;

/// Where filters run.
#[derive(Clone, Debug, Default)]
pub enum Filters {
    /// Unconfined, like the worker.
    #[default]
    Outside,
    /// Confined as the attempt's commands are.
    Inside(Arc<Inside>),
    /// Nowhere, because the attempt's confinement is unknown: files with filters cannot be
    /// captured.
    Nowhere,
}

impl Filters {
    /// Returns the place for a worker with this confinement, or for an unconfined one.
    pub fn new(inside: Option<Inside>) -> Self {
        inside.map_or(Self::Outside, |inside| Self::Inside(Arc::new(inside)))
    }
}

/// The settings for running a filter like the commands of its attempt.
#[derive(Clone, Debug)]
pub struct Inside {
    /// Its confinement.
    pub by: Arc<Confinement>,
    /// The environment of the attempt's commands.
    pub env: BTreeMap<String, OsString>,
    /// The program that supervises it.
    pub supervisor: Option<Attendant>,
    /// Its limits.
    pub limits: Limits,
}
