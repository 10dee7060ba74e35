//! `git handoff verify --bundle`

use std::path::Path;

use git_handoff::model::{hints, printable};
use git_handoff::share::anchor::verification::Verification;
use git_handoff::verify::{Bundle, ChainReport, NotRecomputed};

use super::super::{Ending, Failure, Output, thread};
use super::{Arguments, Repository, print};

/// Prints a report for each run and thread of a bundle, or for the named ones.
pub(super) fn run(
    path: &Path,
    arguments: &Arguments,
    repository: &Repository,
    with: &Verification<'_>,
    output: &mut Output,
) -> Result<Ending, Failure> {
    let bundle = Bundle::open(path, repository.config.max_fetch_size)?.with_bases(&repository.store)?;
    for name in bundle.skipped() {
        output.warn(&format!("{} is no name of a run, thread or log; it was left aside", printable::line(name)));
    }
    let (mut ending, mut at) = (Ending::Done, 0);
    with.bundle(&bundle, &arguments.runs, &mut |report| {
        let found = match report {
            ChainReport::Run(report) => {
                let open = report.intact && report.not_recomputed.iter().any(NotRecomputed::lacks_base);
                let hint = open.then(|| hints::bundle_protected(&report.run));
                let printed = print(*report, at, arguments, None, output);
                hint.into_iter().for_each(|hint| output.hint_once(hint));
                printed
            }
            ChainReport::Thread(report) => thread::print(&report, at, output),
        };
        at += 1;
        ending = ending.or_worse(found);
    })?;
    Ok(ending)
}
