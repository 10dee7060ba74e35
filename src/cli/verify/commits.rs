//! `git handoff verify --commits`

use git_handoff::model::outcomes::CLAIMED;
use git_handoff::share::anchor::verification::Verification;

use super::super::{Ending, Failure, Output, whence};
use super::Repository;

/// Prints the verdict on each commit of a range.
pub(super) fn run(
    range: &str,
    allow_partial: bool,
    repository: &Repository,
    with: &Verification<'_>,
    output: &mut Output,
) -> Result<Ending, Failure> {
    let verified = repository.verify_commits(range, with, &mut |text| output.warn(text))?;
    if !output.answers(&verified) {
        for commit in &verified.commits {
            let line = whence::row(commit, output);
            output.line(line);
        }
        if verified.commits.is_empty() {
            output.note("there are no commits in this range");
        } else {
            let pass = verified.commits.iter().filter(|commit| commit.verdict.passes()).count();
            let red = verified.commits.iter().filter(|commit| commit.verdict.passes() && commit.is_red()).count();
            let red = if red > 0 { format!(", {red} red") } else { String::new() };
            let claimed = verified.commits.iter().filter(|commit| commit.is_claimed()).count();
            let claimed = if claimed > 0 { format!(", {claimed} {CLAIMED}") } else { String::new() };
            output.line(format!("{range}: {pass} of {} commits pass{red}{claimed}", verified.commits.len()).as_str());
        }
    }
    Ok(match verified.passed {
        false => Ending::CheckFailed,
        true if verified.red && !allow_partial => Ending::NotAllDone,
        true => Ending::Done,
    })
}
