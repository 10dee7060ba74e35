//! `git handoff doc put`

use super::super::context;
use std::path::PathBuf;

use git_handoff::model::digest::Digest;
use git_handoff::model::entry::Product;
use git_handoff::model::name::RunId;
use git_handoff::model::quote::quoted;
use git_handoff::model::schema::Schema;
use git_handoff::run::document::{self, Change, Error, InsteadOf, Put};
use serde_json::{Value, json};

use super::super::steer;
use super::{Ending, Failure, Output, Repository};

/// Put a file on a run as the next revision of a document
///
/// The run must not be sealed or closed. Whoever drives it meanwhile takes the revision in. Of two who write at once both get a
/// revision, one after the other, unless they say with --if-match what theirs is to follow.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
    /// The document's name; it may hold slashes
    name: String,
    /// The file, or - for standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// What it is, ID@VERSION; it is checked against the schema that is registered for that
    #[arg(long, value_name = "SCHEMA")]
    schema: Option<String>,
    /// Put it only if the highest revision has this SHA-256, or, with `none`, if there is no such document yet
    #[arg(long, value_name = "SHA256|none")]
    if_match: Option<String>,
}

/// Puts it there, and prints the revision.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let asked = Asked {
        run: &arguments.run,
        name: &arguments.name,
        schema: arguments.schema.as_deref(),
        if_match: arguments.if_match.as_deref(),
    };
    let (run, change) = put(repository, &asked, || context::save(repository, &arguments.file))?;
    if output.json {
        output.value(&value(&run, &change));
    } else {
        let (number, digest) = (change.revision.number, change.revision.product.sha256);
        output.line(&format!("{run}: {} revision {number} {digest}", change.name));
    }
    Ok(Ending::Done)
}

/// Which document is put where, and as what.
pub(crate) struct Asked<'a> {
    /// The run.
    pub(crate) run: &'a str,
    /// The document's name.
    pub(crate) name: &'a str,
    /// What it is.
    pub(crate) schema: Option<&'a str>,
    /// What it must follow: a digest, or `none`.
    pub(crate) if_match: Option<&'a str>,
}

/// Puts a document on a run; `bytes` writes it into the repository, once everything else is in order.
pub(crate) fn put(
    repository: &Repository,
    asked: &Asked<'_>,
    bytes: impl FnOnce() -> Result<Product, Failure>,
) -> Result<(RunId, Change), Failure> {
    let name = super::name(asked.name)?;
    let schema: Option<Schema> = asked.schema.map(str::parse).transpose()?;
    let instead_of = asked.if_match.map(read_match).transpose()?;
    let (mut open, item) = steer::open(asked.run, repository)?;
    if item.is_some() {
        return Err(Failure::usage("a document is put on a run, not on an item".into()));
    }
    let put = Put { name, product: bytes()?, schema, instead_of };
    let change = document::put(&mut open, &put, &repository.schemas()).map_err(|error| {
        let look = match error {
            Error::Changed { found: Some(_), .. } => {
                format!("log {} {}", quoted(asked.run), quoted(asked.name))
            }
            Error::Changed { found: None, .. } => format!("list {}", quoted(asked.run)),
            other => return Failure::from(other),
        };
        Failure::from(error).hint(format!("git handoff doc {look}"))
    })?;
    Ok((open.id().clone(), change))
}

/// Returns what was put, as answers have it.
pub(crate) fn value(run: &RunId, change: &Change) -> Value {
    json!({ "schema": "git-handoff.document/1", "run": run, "document": super::value(change) })
}

fn read_match(text: &str) -> Result<InsteadOf, Failure> {
    if text == "none" {
        return Ok(InsteadOf::Nothing);
    }
    let digest: Option<Digest> = text.parse().or_else(|_| format!("sha256:{text}").parse()).ok();
    let digest = digest.ok_or_else(|| Failure::usage(format!("{text:?} is neither a SHA-256 nor `none`")))?;
    Ok(InsteadOf::Revision(digest))
}
