//! `git handoff pipeline list`

use git_handoff::repository::Repository;

use super::super::table;
use super::{Ending, Output};

/// List the pipelines that plans can use, with their hashes
#[derive(clap::Args)]
pub(crate) struct Arguments {}

/// Prints one line for each pipeline.
pub(crate) fn run(_: &Arguments, repository: &Repository, output: &mut Output) -> Ending {
    let list = repository.list_pipelines();
    if output.answers(&list) {
        return Ending::Done;
    }
    let rows: Vec<Vec<String>> = list
        .pipelines
        .iter()
        .map(|pipeline| {
            let count = pipeline.blocks.len();
            let state = pipeline.problem.clone().unwrap_or_else(|| match count {
                1 => "1 block".to_owned(),
                _ => format!("{count} blocks"),
            });
            let hash = pipeline.hash.map_or_else(|| "-".to_owned(), |hash| hash.to_string());
            vec![pipeline.id.clone(), hash, state]
        })
        .collect();
    table::lines(&rows).iter().for_each(|line| output.line(line));
    Ending::Done
}
