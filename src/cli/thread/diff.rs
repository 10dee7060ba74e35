//! `git handoff thread diff`

use git_handoff::run::difference::Difference;

use super::super::fields;
use super::{Ending, Failure, Output, Repository};

/// Show how a checkpoint differs from another, or from the one before it
///
/// What is compared is all that they hold: the state, the packet and the working tree. States that are both JSON are compared field by
/// field: `+` is what came, `-` what went, `~` what has another value, each by its JSON pointer.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The thread, at its latest checkpoint or the one that is named
    #[arg(value_name = "THREAD[:CHECKPOINT]")]
    old: String,
    /// The other checkpoint, of any thread
    #[arg(value_name = "THREAD[:CHECKPOINT]")]
    new: Option<String>,
    /// Print a patch of the states as well, JSON or not
    #[arg(long, short)]
    patch: bool,
    /// Compare although a thread rests on a key that is not to be trusted
    #[arg(long)]
    accept_untrusted: bool,
}

/// Prints what leads from the first to the second; of one alone, from the one before it.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let names = (arguments.old.as_str(), arguments.new.as_deref());
    let compared = repository.thread_diff(names, arguments.accept_untrusted, &mut |text| output.warn(text))?;
    let fields = if arguments.patch && !output.json { None } else { compared.fields()? };
    if output.json {
        output.value(&Difference::of(fields, compared.patch(true))?);
        return Ok(Ending::Done);
    }
    let with_state = fields.is_none();
    if let Some(fields) = fields {
        fields::print(&fields, compared.is_same_state(), output);
    }
    fields::stream(compared.patch(with_state), output)
}
