//! Reads revisions of a run's documents.

use std::io::Write;

use serde::Serialize;

use crate::git::store::{self, Store};
use crate::git::verified_stream;
use crate::model::digest::Oid;
use crate::model::document::{Drift, Revision};
use crate::model::name::{FilePath, RunId};
use crate::model::schema::Wanted;
use crate::model::time::Moment;

use super::{VerifiedRun, View};

/// A revision, with the entry that recorded it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Change {
    /// The document.
    pub name: FilePath,
    /// The number of the revision; the first is 1.
    #[serde(flatten)]
    pub revision: Revision,
    /// When it was recorded.
    pub at: Moment,
    /// The commit of the entry.
    pub commit: Oid,
}

/// Returns the highest revision of every document, by name.
pub fn list(view: &View) -> Vec<Change> {
    let documents = &view.state.documents;
    documents.names().filter_map(|name| Some(change(view, name, documents.latest(name)?))).collect()
}

/// Returns all revisions of a document, oldest first.
pub fn log(view: &View, name: &FilePath) -> Result<Vec<Change>, Error> {
    let revisions = view.state.documents.revisions(name);
    if revisions.is_empty() {
        return Err(Error::Unknown { run: view.run.clone(), name: name.clone() });
    }
    Ok(revisions.iter().map(|revision| change(view, name, revision)).collect())
}

/// Returns one revision of a document, by default the highest.
pub fn find(view: &View, name: &FilePath, number: Option<u64>) -> Result<Change, Error> {
    let mut all = log(view, name)?;
    let Some(number) = number else { return Ok(all.pop().expect("a document that exists has a revision")) };
    let highest = all.len() as u64;
    let found = all.into_iter().find(|change| change.revision.number == number);
    found.ok_or_else(|| Error::NoRevision { name: name.clone(), number, highest })
}

/// Returns an error if a revision does not match what its reader wants.
pub fn expect(view: &View, change: &Change, schema: &Wanted) -> Result<(), Error> {
    let Some(drift) = view.state.documents.drift(&change.name, change.revision.number, schema) else { return Ok(()) };
    let introduced = self::change(view, &change.name, &drift.since);
    Err(Error::Drift { drift: Box::new(drift), at: introduced.at, commit: introduced.commit })
}

/// Copies the bytes of a revision after checking them. If they do not match the entry, nothing is
/// copied.
pub fn give(store: &Store, run: &VerifiedRun, change: &Change, out: &mut dyn Write) -> Result<(), Error> {
    run.blob(&change.revision.product).copy(store, out).map_err(|error| match error {
        verified_stream::Error::Store(inner) => Error::Store(inner),
        other => {
            let (name, number) = (change.name.clone(), change.revision.number);
            Error::Altered { name, number, source: Box::new(other) }
        }
    })
}

fn change(view: &View, name: &FilePath, revision: &Revision) -> Change {
    let entry = usize::try_from(revision.entry).expect("the number of an entry in memory fits");
    let link = &view.links[entry];
    Change { name: name.clone(), revision: revision.clone(), at: link.entry.at, commit: link.commit }
}

errors! {
    /// Failures to read a revision.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Unknown { run: RunId, name: FilePath } "unknown-document": "the run {run:?} has no document {name:?}";
    NoRevision { name: FilePath, number: u64, highest: u64 } "unknown-revision":
        "the document {name:?} has no revision {number}; the highest is {highest}";
    Drift { drift: Box<Drift>, at: Moment, commit: Oid } "drift": "{}" [drift.headline()];
    Altered { name: FilePath, number: u64, source: Box<verified_stream::Error> } "altered" 3:
        "revision {number} of the document {name:?} was altered after it was recorded";
    #[from] Store(store::Error);
}
