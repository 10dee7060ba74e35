//! Where the repository's filters run over what a worker left.
//!
//! git runs a filter in the folder of the worktree, and many a program takes from there what it does: a module, a plugin, the
//! version of itself that it is to be. No list of words tells which do. So where something confines the worker, all that is run
//! over its files is confined by the same.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use super::attendant::Attendant;
use super::sandbox::Confinement;
use crate::model::limits::Limits;

/// Where filters run.
#[derive(Clone, Debug, Default)]
pub enum Filters {
    /// With our rights, as nothing confines the worker either.
    #[default]
    Outside,
    /// Confined as the attempt's commands are.
    Inside(Arc<Inside>),
    /// Nowhere, because it is not known what confined the attempt: a file that one is for cannot be taken.
    Nowhere,
}

impl Filters {
    /// Returns where they run over what is left by a worker that was run like this; none where nothing confined it.
    pub fn of(inside: Option<Inside>) -> Self {
        inside.map_or(Self::Outside, |inside| Self::Inside(Arc::new(inside)))
    }
}

/// What a filter is run by, as the commands of its attempt are.
#[derive(Clone, Debug)]
pub struct Inside {
    /// What confines it.
    pub by: Arc<Confinement>,
    /// The environment of the attempt's commands.
    pub env: BTreeMap<String, OsString>,
    /// The program that supervises it.
    pub supervisor: Option<Attendant>,
    /// How much it may use.
    pub limits: Limits,
}
