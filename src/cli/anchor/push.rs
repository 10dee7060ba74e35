//! `git handoff anchor push`

use git_handoff::repository::Repository;
use git_handoff::share::anchor::answers::PublishedShown;

use super::super::{Ending, Failure, Output, table};

/// Hand the roots of sealed runs and the heads of threads over to anchors
///
/// For a thread, an anchor gets the number of entries and the hash of the last. A time-stamping
/// authority's token is stored here, beside the run or thread. Existing records are kept; if an
/// anchor has a different one, nothing is written and the exit code is 3.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The anchors, runs and threads [default: all anchors, and everything that your key sealed or
    /// owns]
    #[arg(value_name = "ANCHOR|RUN|THREAD")]
    names: Vec<String>,
}

/// Publishes and prints what became of it.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let mut pushed = repository.push_to_anchors(&arguments.names)?;
    let stopped = pushed.stopped.take();
    if output.json && stopped.is_none() {
        output.value(&pushed);
    } else if !output.json {
        let rows: Vec<_> = pushed.published.iter().map(row).collect();
        table::lines(&rows).iter().for_each(|line| output.line(line));
    }
    if let Some((anchor, error)) = stopped {
        let failure = Failure::from(error);
        return Err(Failure { message: format!("{anchor}: {}", failure.message), ..failure });
    }
    if pushed.published.is_empty() {
        output.note("there is nothing to publish: your key sealed no run here, and no thread goes to these anchors");
    }
    Ok(Ending::Done)
}

fn row(published: &PublishedShown) -> Vec<String> {
    [published.anchor.as_str(), published.status, published.kind, &published.name].map(str::to_owned).to_vec()
}
