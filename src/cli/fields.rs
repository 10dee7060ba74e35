//! Output shared by `thread diff` and `doc diff`.

use git_handoff::git::program::Git;
use git_handoff::model::json::changes::Changes;

use super::{Ending, Failure, Output};

/// Prints differing fields, one a line.
pub(crate) fn print(fields: &Changes, is_same: bool, output: &mut Output) {
    fields.lines().iter().for_each(|line| output.line(line));
    if fields.listed.is_empty() && !is_same {
        output.note("the fields are the same, in other bytes: --patch shows them");
    }
}

/// Prints the output of a git command.
pub(crate) fn stream(call: Git, output: &mut Output) -> Result<Ending, Failure> {
    call.stream(&mut |chunk| {
        output.bytes(chunk);
        Ok(())
    })?;
    Ok(Ending::Done)
}
