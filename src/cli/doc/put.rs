//! `git handoff doc put`

use std::path::PathBuf;

use git_handoff::document::{self, Error, InsteadOf, Put};
use git_handoff::model::digest::Digest;
use git_handoff::model::quote::quoted;
use git_handoff::model::schema::Schema;
use serde_json::json;

use super::super::steer;
use super::{Context, Ending, Failure, Output};

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
pub(super) fn run(arguments: &Arguments, context: &Context, output: &mut Output) -> Result<Ending, Failure> {
    let name = super::name(&arguments.name)?;
    let schema: Option<Schema> = arguments.schema.as_deref().map(str::parse).transpose()?;
    let instead_of = arguments.if_match.as_deref().map(read_match).transpose()?;
    let (mut open, item) = steer::open(&arguments.run, context)?;
    if item.is_some() {
        return Err(Failure::usage("a document is put on a run, not on an item".into()));
    }
    let put = Put { name, product: context.save(&arguments.file)?, schema, instead_of };
    let change = document::put(&mut open, &put, &context.schemas()?).map_err(|error| {
        let look = match error {
            Error::Changed { found: Some(_), .. } => {
                format!("log {} {}", quoted(&arguments.run), quoted(&arguments.name))
            }
            Error::Changed { found: None, .. } => format!("list {}", quoted(&arguments.run)),
            other => return Failure::from(other),
        };
        Failure::from(error).hint(format!("git handoff doc {look}"))
    })?;
    if output.json {
        output.value(&json!({
            "schema": "git-handoff.document/1", "run": open.run(), "document": super::value(&change),
        }));
    } else {
        let (number, digest) = (change.revision.number, change.revision.product.sha256);
        output.line(&format!("{}: {} revision {number} {digest}", open.run(), change.name));
    }
    Ok(Ending::Done)
}

fn read_match(text: &str) -> Result<InsteadOf, Failure> {
    if text == "none" {
        return Ok(InsteadOf::Nothing);
    }
    let digest: Option<Digest> = text.parse().or_else(|_| format!("sha256:{text}").parse()).ok();
    let digest = digest.ok_or_else(|| Failure::usage(format!("{text:?} is neither a SHA-256 nor `none`")))?;
    Ok(InsteadOf::Revision(digest))
}
