//! `git handoff doc get`

use std::io::Write;

use git_handoff::git::store;
use git_handoff::model::name::FilePath;
use git_handoff::model::quote::quoted;
use git_handoff::model::schema::Wanted;
use git_handoff::run::Vetted;
use git_handoff::run::document::{self, Change, Error};

use super::super::cat::Stdout;
use super::super::gate;
use super::{Ending, Failure, Output, Repository};

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
    #[command(flatten)]
    terms: gate::Terms,
}

/// Prints the bytes, if they are what is expected and what was recorded.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let asked = Asked {
        run: &arguments.run,
        name: &arguments.name,
        revision: arguments.revision,
        expect: arguments.expect.as_deref(),
    };
    let wanted = asked.read()?;
    let view = super::vetted(repository, asked.run, arguments.terms, output)?;
    let change = find(&view, &asked, &wanted)?;
    give(repository, &view, &asked, &change, &mut Stdout { output })?;
    Ok(Ending::Done)
}

/// Which revision is read, and what it is expected to be.
pub(crate) struct Asked<'a> {
    /// The run.
    pub(crate) run: &'a str,
    /// The document's name.
    pub(crate) name: &'a str,
    /// The revision; without a number, the highest.
    pub(crate) revision: Option<u64>,
    /// The schema.
    pub(crate) expect: Option<&'a str>,
}

impl Asked<'_> {
    /// Reads the name, and the schema if one is expected.
    pub(crate) fn read(&self) -> Result<(FilePath, Option<Wanted>), Failure> {
        Ok((super::name(self.name)?, self.expect.map(str::parse).transpose()?))
    }
}

/// Finds the revision, and refuses one that is not what is expected.
pub(crate) fn find(
    view: &Vetted,
    asked: &Asked<'_>,
    (name, wanted): &(FilePath, Option<Wanted>),
) -> Result<Change, Failure> {
    let change = document::find(view, name, asked.revision)?;
    if let Some(wanted) = wanted {
        let hint = || format!("git handoff doc log {} {}", quoted(asked.run), quoted(asked.name));
        document::expect(view, &change, wanted).map_err(|error| Failure::from(error).hint(hint()))?;
    }
    Ok(change)
}

/// Copies the bytes of a revision, if they are those that were recorded.
pub(crate) fn give(
    repository: &Repository,
    view: &Vetted,
    asked: &Asked<'_>,
    change: &Change,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    document::give(&repository.store, view, change, out).map_err(|error| {
        let hint = match &error {
            Error::Store(store::Error::Missing(oid)) => {
                format!("git cat-file -e {oid}   # brings it into a partial clone, if its remote has it")
            }
            _ => format!("git handoff verify {}", quoted(asked.run)),
        };
        Failure::from(error).hint(hint)
    })
}
