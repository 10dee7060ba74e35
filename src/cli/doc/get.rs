//! `git handoff doc get`

use git_handoff::document::{self, Error};
use git_handoff::git::store;
use git_handoff::model::quote::quoted;
use git_handoff::model::schema::Wanted;

use super::super::cat::Stdout;
use super::{Context, Ending, Failure, Output};

/// Print a document as it is, byte for byte
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
    /// The document's name
    name: String,
    /// Print this revision, and not the highest
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    revision: Option<u64>,
    /// Print nothing, and say what changed, unless it is of this schema: ID, or ID@REQUIREMENT like report@^1
    #[arg(long, value_name = "SCHEMA")]
    expect: Option<String>,
}

/// Prints the bytes, if they are what is expected and what was recorded.
pub(super) fn run(arguments: &Arguments, context: &Context, output: &mut Output) -> Result<Ending, Failure> {
    let name = super::name(&arguments.name)?;
    let wanted: Option<Wanted> = arguments.expect.as_deref().map(str::parse).transpose()?;
    let view = super::view(context, &arguments.run)?;
    let change = document::find(&view, &name, arguments.revision)?;
    let with = |what: &str| format!("git handoff doc {what} {} {}", quoted(&arguments.run), quoted(&arguments.name));
    if let Some(wanted) = &wanted {
        document::expect(&view, &change, wanted).map_err(|error| Failure::from(error).hint(with("log")))?;
    }
    document::give(&context.store, &change, &mut Stdout { output }).map_err(|error| {
        let hint = match &error {
            Error::Store(store::Error::Missing(oid)) => {
                format!("git cat-file -e {oid}   # brings it into a partial clone, if its remote has it")
            }
            _ => format!("git handoff verify {}", quoted(&arguments.run)),
        };
        Failure::from(error).hint(hint)
    })?;
    Ok(Ending::Done)
}
