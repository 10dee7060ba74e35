//! `git handoff doc diff`

use std::io;

use git_handoff::model::digest::Oid;
use git_handoff::model::format;
use git_handoff::model::json::changes::{Changes, MOST_READ};
use git_handoff::model::name::FilePath;
use git_handoff::run::query::difference::Difference;
use git_handoff::run::query::{VerifiedRun, documents, revisions};

use super::super::{fields, gate};
use super::{Ending, Failure, Output, Repository};

/// Show the changes between two revisions of a document
///
/// With one revision, compares it with the highest; with none, the highest with the one before.
/// JSON is compared by field: `+` added, `-` removed, `~` changed, each with its JSON pointer.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
    /// The document's name
    name: String,
    /// The first revision
    #[arg(value_name = "FROM", value_parser = clap::value_parser!(u64).range(1..))]
    from: Option<u64>,
    /// The second revision
    #[arg(value_name = "TO", value_parser = clap::value_parser!(u64).range(1..))]
    to: Option<u64>,
    /// Print a patch, even for JSON
    #[arg(long, short)]
    patch: bool,
    #[command(flatten)]
    terms: gate::Terms,
}

/// Prints the difference.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let name = documents::name(&arguments.name)?;
    let view = super::vetted(repository, &arguments.run, arguments.terms, output)?;
    let to = revisions::find(&view, &name, arguments.to)?.revision.number;
    let from = arguments.from.unwrap_or(to - 1);
    let (old, new) = (read_revision(&view, &name, from, repository)?, read_revision(&view, &name, to, repository)?);
    // Ignores replacement refs. The path is literal.
    let git = repository.store.git().env("GIT_NO_REPLACE_OBJECTS", "1").env("GIT_NO_LAZY_FETCH", "1");
    let git = git.arg("--literal-pathspecs").arg("diff-tree");
    let options = ["-p", "-r", "--no-ext-diff", "--no-textconv", "--no-color"];
    let call = git.args(options).arg(old.tree.to_string()).arg(new.tree.to_string());
    let call = call.arg("--").arg(format::document_path(&name));
    let fields = match (&old.bytes, &new.bytes) {
        (Some(old), Some(new)) if output.json || !arguments.patch => Changes::between(old, new),
        _ => None,
    };
    match fields {
        fields if output.json => output.value(&Difference::new(fields, call)?),
        Some(changes) => fields::print(&changes, old.bytes == new.bytes, output),
        None => return fields::stream(call, output),
    }
    Ok(Ending::Done)
}

/// A recorded revision.
struct Taken {
    /// A tree with the document at its path.
    tree: Oid,
    /// The bytes; `None` before the first revision, and if too large to compare by field.
    bytes: Option<Vec<u8>>,
}

/// Returns a revision with its recorded bytes; before the first, an empty one.
fn read_revision(view: &VerifiedRun, name: &FilePath, number: u64, repository: &Repository) -> Result<Taken, Failure> {
    if number == 0 {
        return Ok(Taken { tree: repository.store.empty_tree(), bytes: None });
    }
    let change = revisions::find(view, name, Some(number))?;
    let mut bytes = (change.revision.product.size <= MOST_READ as u64).then(Vec::new);
    match &mut bytes {
        Some(bytes) => repository.give_document(view, &change, bytes)?,
        None => repository.give_document(view, &change, &mut io::sink())?,
    }
    let link = view.links.iter().find(|link| link.commit == change.commit);
    Ok(Taken { tree: link.map(|link| link.tree).ok_or_else(Failure::bug)?, bytes })
}
