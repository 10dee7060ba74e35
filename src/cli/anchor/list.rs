//! `git handoff anchor list`

use git_handoff::repository::Repository;
use git_handoff::verify::{Guarantee, LOCAL};
use serde_json::json;

use super::super::{Ending, Failure, Output, table};

/// List the anchors that verify asks
///
/// The logs in this repository are always among them.
#[derive(clap::Args)]
pub(crate) struct Arguments {}

/// Prints one line for each anchor.
pub(crate) fn run(repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let anchors = repository.anchors(&[])?;
    let local = [LOCAL, LOCAL, Guarantee::Detect.as_str(), "the logs in this repository"].map(str::to_owned);
    let mut rows = vec![local.to_vec()];
    rows.extend(
        anchors.iter().map(|anchor| {
            vec![anchor.name.clone(), anchor.kind().into(), super::strength(anchor).into(), anchor.place()]
        }),
    );
    if output.json {
        let value = |row: &Vec<String>| json!({"name": row[0], "type": row[1], "guarantee": row[2], "place": row[3]});
        output.value(&json!({
            "schema": "git-handoff.anchors/1",
            "anchors": rows.iter().map(value).collect::<Vec<_>>(),
        }));
        return Ok(Ending::Done);
    }
    table::lines(&rows).iter().for_each(|line| output.line(line));
    Ok(Ending::Done)
}
