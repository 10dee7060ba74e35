//! `git handoff doctor`

use super::context::Context;
use super::{Ending, Failure, Output};

/// (being written)
#[derive(clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments, _: &Context, _: &mut Output) -> Result<Ending, Failure> {
    Err(Failure::refused("unfinished", "not there yet".into()))
}
