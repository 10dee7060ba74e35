//! `git handoff check-schema`: the internal process that validates values against schemas.

use std::io;

use git_handoff::plan::schemas;

use super::{Ending, Failure, Output};

/// Answers requests from standard input, after limiting its own resources.
pub(crate) fn run(output: &mut Output) -> Result<Ending, Failure> {
    let served = schemas::serve(&mut io::stdin().lock(), &mut Answers(output));
    served.map_err(|error| Failure::io("what is to be checked could not be read", &error))?;
    Ok(Ending::Done)
}

/// Writes to standard output.
struct Answers<'o>(&'o mut Output);

impl io::Write for Answers<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.bytes(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush();
        Ok(())
    }
}
