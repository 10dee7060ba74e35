//! Writes and reads revisions of a run's documents.

use std::io::Write;

use crate::git::store::{self, Store};
use crate::git::verified_stream;
use crate::model::digest::{Digest, Oid};
use crate::model::document::{Drift, Revision};
use crate::model::entry::{DocumentWritten, Event, Product};
use crate::model::name::{FilePath, RunId};
use crate::model::schema::{Schema, Wanted};
use crate::model::state::Illegal;
use crate::model::time::Moment;
use crate::plan::schemas::{self, MAX_CHECKED, Schemas, Unfit};
use crate::run::{self, NewEntry, OpenRun, VerifiedRun, View};

/// A revision to record. Its bytes are in the repository.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the types say it")]
pub struct Put {
    pub name: FilePath,
    pub product: Product,
    pub schema: Option<Schema>,
    /// The revision that it must follow, if any.
    pub instead_of: Option<InsteadOf>,
    /// The author and the commit of the log entry that it comes from, if it was written elsewhere.
    pub said: Option<(String, String)>,
}

/// The state of a document that a new revision expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsteadOf {
    /// The document does not exist yet.
    Nothing,
    /// The highest revision has this digest.
    Revision(Digest),
}

/// A revision, with the entry that recorded it.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the types say it")]
pub struct Change {
    pub name: FilePath,
    pub revision: Revision,
    /// When it was recorded.
    pub at: Moment,
    /// The commit of the entry.
    pub commit: Oid,
}

/// Records a revision after checking its schema.
///
/// If another writer appends first, this one follows theirs, unless it names the revision to
/// follow. After an error the run is as its last entry says.
pub fn put(run: &mut OpenRun, put: &Put, known: &Schemas) -> Result<Change, Error> {
    if let Some(schema) = &put.schema {
        check(run.store(), put, schema, known)?;
    }
    loop {
        let latest = run.state.documents.latest(&put.name);
        let previous = latest.map(|latest| latest.product.sha256);
        let expected = put.instead_of.is_none_or(|wanted| match wanted {
            InsteadOf::Nothing => previous.is_none(),
            InsteadOf::Revision(digest) => previous == Some(digest),
        });
        if !expected {
            return Err(Error::Changed { name: put.name.clone(), found: previous });
        }
        let event = DocumentWritten {
            name: put.name.clone(),
            revision: latest.map_or(1, |latest| latest.number + 1),
            schema: put.schema.clone(),
            sha256: put.product.sha256,
            oid: put.product.oid,
            size: put.product.size,
            previous,
            author: put.said.as_ref().map_or_else(|| run.writer().actor.clone(), |(author, _)| author.clone()),
            said: put.said.as_ref().map(|(_, commit)| commit.clone()),
        };
        let recorded = run.propose(&[NewEntry::Plain(Event::DocumentWritten(event))]);
        let recorded = recorded.map_err(|error| match error {
            run::Error::Illegal(why) => Error::Illegal(put.name.clone(), why),
            other => Error::Run(other),
        })?;
        // If another writer appended first, this checks again what it follows.
        let Some(links) = recorded else { continue };
        if let (Some(link), Some(ours)) = (links.first(), run.state.documents.latest(&put.name)) {
            let (at, commit) = (link.entry.at, link.commit);
            return Ok(Change { name: put.name.clone(), revision: ours.clone(), at, commit });
        }
    }
}

/// Returns an error if a revision does not match its schema.
pub(super) fn check(store: &Store, put: &Put, schema: &Schema, known: &Schemas) -> Result<(), Error> {
    let unfit = |unfit| Error::Unfit(put.name.clone(), Box::new(unfit));
    if put.product.size > MAX_CHECKED {
        return Err(unfit(Unfit::TooLarge(schema.clone())));
    }
    schemas::check(known, schema, &store.read_blob(put.product.oid)?).map_err(unfit)
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
pub fn expect(view: &View, change: &Change, wanted: &Wanted) -> Result<(), Error> {
    let Some(drift) = view.state.documents.drift(&change.name, change.revision.number, wanted) else { return Ok(()) };
    let introduced = self::change(view, &change.name, &drift.since);
    Err(Error::Drift { drift: Box::new(drift), at: introduced.at, commit: introduced.commit })
}

/// Copies the bytes of a revision after checking them. If they do not match the entry, nothing is
/// copied.
pub fn give(store: &Store, run: &VerifiedRun, change: &Change, out: &mut dyn Write) -> Result<(), Error> {
    let product = change.revision.product;
    run.product(product.oid).that_is(product.sha256).copy(store, out).map_err(|error| match error {
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

/// Failures to write or read a revision.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("the run {run:?} has no document {name:?}")]
    Unknown { run: RunId, name: FilePath },
    #[error("the document {name:?} has no revision {number}; the highest is {highest}")]
    NoRevision { name: FilePath, number: u64, highest: u64 },
    #[error("{}", drift.headline())]
    Drift { drift: Box<Drift>, at: Moment, commit: Oid },
    #[error("revision {number} of the document {name:?} was altered after it was recorded")]
    Altered { name: FilePath, number: u64, source: Box<verified_stream::Error> },
    #[error("cannot put the document {0:?}")]
    Unfit(FilePath, #[source] Box<Unfit>),
    #[error("the document {name:?} changed: {}", standing(.found.as_ref()))]
    Changed { name: FilePath, found: Option<Digest> },
    #[error("cannot put the document {0:?}")]
    Illegal(FilePath, #[source] Illegal),
    #[error("{0}")]
    Run(#[source] run::Error),
    #[error("{0}")]
    Store(#[from] store::Error),
}

fn standing(found: Option<&Digest>) -> String {
    found.map_or_else(|| "it does not exist".to_owned(), |digest| format!("it is {digest}"))
}
