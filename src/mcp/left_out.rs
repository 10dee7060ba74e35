//! The place of the server in a build without the feature `mcp`.

use git_handoff::model::left_out::LeftOut;
use git_handoff::repository::Environment;

use crate::output::{Ending, Failure, Output};

/// Returns the error about the missing feature.
pub(crate) fn run(_: Option<String>, _: Environment, _: &mut Output) -> Result<Ending, Failure> {
    Err(LeftOut("mcp").into())
}
