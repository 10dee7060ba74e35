//! `git handoff anchor list`

use git_handoff::repository::Repository;
use git_handoff::share::anchor::answers::AnchorShown;

use super::super::{Ending, Failure, Output, table};

/// List the anchors that verify asks
///
/// Always includes the logs of this repository.
#[derive(clap::Args)]
pub(crate) struct Arguments {}

/// Prints one line for each anchor.
pub(crate) fn run(repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let list = repository.list_anchors()?;
    if output.answers(&list) {
        return Ok(Ending::Done);
    }
    let rows: Vec<_> = list.anchors.into_iter().map(row).collect();
    table::lines(&rows).iter().for_each(|line| output.line(line));
    Ok(Ending::Done)
}

fn row(anchor: AnchorShown) -> Vec<String> {
    vec![anchor.name, anchor.kind, anchor.guarantee.to_owned(), anchor.place]
}
