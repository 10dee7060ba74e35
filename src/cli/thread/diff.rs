//! `git handoff thread diff`

use git_handoff::run::query::difference::Difference;

use super::super::fields;
use super::{Ending, Failure, Output, Repository};

/// Compare a checkpoint with another, or with the one before
///
/// Compares states, packets and working trees. JSON states are compared by field: `+` added, `-`
/// removed, `~` changed, each with its JSON pointer.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// THREAD, or THREAD:CHECKPOINT
    #[arg(value_name = "THREAD[:CHECKPOINT]")]
    old: String,
    /// The other checkpoint, of any thread
    #[arg(value_name = "THREAD[:CHECKPOINT]")]
    new: Option<String>,
    /// Print a patch of the states as well, even for JSON
    #[arg(long, short)]
    patch: bool,
    /// Compare even if a thread depends on an untrusted key
    #[arg(long)]
    accept_untrusted: bool,
}

/// Prints the difference.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let (old, new) = (arguments.old.as_str(), arguments.new.as_deref());
    let compared = repository.thread_diff(old, new, arguments.accept_untrusted, &mut |text| output.warn(text))?;
    let fields = if arguments.patch && !output.json { None } else { compared.fields()? };
    if output.json {
        output.value(&Difference::new(fields, compared.patch(true))?);
        return Ok(Ending::Done);
    }
    let with_state = fields.is_none();
    if let Some(fields) = fields {
        fields::print(&fields, compared.is_same_state(), output);
    }
    fields::stream(compared.patch(with_state), output)
}
