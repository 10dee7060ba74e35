//! `git handoff doc diff`

use std::io;

use git_handoff::model::digest::Oid;
use git_handoff::model::format;
use git_handoff::model::name::FilePath;
use git_handoff::run::{Vetted, document, documents};

use super::super::gate;
use super::{Ending, Failure, Output, Repository};

/// Show what changed between two revisions of a document
///
/// With one revision: from that one to the highest. With none: from the one before the highest to the highest.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
    /// The document's name
    name: String,
    /// The revision to start from
    #[arg(value_name = "FROM", value_parser = clap::value_parser!(u64).range(1..))]
    from: Option<u64>,
    /// The revision to end at
    #[arg(value_name = "TO", value_parser = clap::value_parser!(u64).range(1..))]
    to: Option<u64>,
    #[command(flatten)]
    terms: gate::Terms,
}

/// Prints a patch from one to the other.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let name = documents::name(&arguments.name)?;
    let view = super::vetted(repository, &arguments.run, arguments.terms, output)?;
    let to = document::find(&view, &name, arguments.to)?.revision.number;
    let from = arguments.from.unwrap_or(to - 1);
    let (old, new) = (tree(&view, &name, from, repository)?, tree(&view, &name, to, repository)?);
    // Nothing stands in for what was just hashed. The path is one of ours, to be taken as it is written.
    let git = repository.store.git().env("GIT_NO_REPLACE_OBJECTS", "1").env("GIT_NO_LAZY_FETCH", "1");
    let git = git.arg("--literal-pathspecs").arg("diff-tree");
    let options = ["-p", "-r", "--no-ext-diff", "--no-textconv", "--no-color"];
    let call = git.args(options).arg(old.to_string()).arg(new.to_string());
    call.arg("--").arg(format::document_path(&name)).stream(&mut |chunk| {
        output.bytes(chunk);
        Ok(())
    })?;
    Ok(Ending::Done)
}

/// Returns a tree that holds a revision at the document's place, with the bytes that were recorded; before the first there is
/// nothing.
fn tree(view: &Vetted, name: &FilePath, number: u64, repository: &Repository) -> Result<Oid, Failure> {
    if number == 0 {
        return Ok(repository.store.empty_tree());
    }
    let change = document::find(view, name, Some(number))?;
    repository.give_document(view, &change, &mut io::sink())?;
    let link = view.links.iter().find(|link| link.commit == change.commit);
    link.map(|link| link.tree).ok_or_else(Failure::bug)
}
