//! The place of compiled schemas in a build without the feature `schemas`.

use serde_json::Value;

use super::{Refusal, Unusable};
use crate::model::left_out::LeftOut;

/// A compiled schema; this build makes none.
pub(in crate::plan) enum Compiled {}

impl Compiled {
    /// Returns the error about the missing feature.
    pub(in crate::plan) fn new(_: &Value) -> Result<Self, Unusable> {
        Err(Unusable::LeftOut(LeftOut("schemas")))
    }

    /// Cannot be called: there is no such value.
    pub(in crate::plan) fn refusal(&self, _: &Value, _: usize) -> Option<Refusal> {
        match *self {}
    }
}
