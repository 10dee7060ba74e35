//! Documents of a run: puts revisions on it, finds them, and says who made them what they are.

use std::io::Write;

use crate::git::checked;
use crate::git::store::{self, Store};
use crate::model::digest::{Digest, Oid};
use crate::model::document::{Drift, Revision};
use crate::model::entry::{DocumentWritten, Event, Product};
use crate::model::name::{FilePath, RunId};
use crate::model::schema::{Schema, Wanted};
use crate::model::state::Illegal;
use crate::model::time::Moment;
use crate::plan::schemas::{self, MAX_CHECKED, Schemas, Unfit};
use crate::run::{self, NewEntry, OpenRun, Vetted, View};

/// A revision that is to be put on a run; its bytes are in the repository.
#[derive(Clone, Debug)]
pub struct Put {
    /// The document.
    pub name: FilePath,
    /// Its bytes.
    pub product: Product,
    /// What it claims to be.
    pub schema: Option<Schema>,
    /// What must stand there now, if that matters.
    pub instead_of: Option<InsteadOf>,
    /// Who wrote it, with the commit that says so, where that is taken in from somebody's log.
    pub said: Option<(String, String)>,
}

/// What a revision is to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsteadOf {
    /// The document does not exist yet.
    Nothing,
    /// The highest revision has this digest.
    Revision(Digest),
}

/// A revision with the entry that introduced it.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The document.
    pub name: FilePath,
    /// The revision.
    pub revision: Revision,
    /// When it was recorded.
    pub at: Moment,
    /// The commit of the entry.
    pub commit: Oid,
}

/// Puts a revision on a run, after checking that it is what it claims to be.
///
/// Who else appends meanwhile is taken in, and the revision follows theirs, unless it says what it follows. After an error
/// the run is as its last visible entry says.
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
        // None: somebody else appended first. What the revision follows is looked at anew.
        let Some(links) = recorded else { continue };
        if let (Some(link), Some(ours)) = (links.first(), run.state.documents.latest(&put.name)) {
            let (at, commit) = (link.entry.at, link.commit);
            return Ok(Change { name: put.name.clone(), revision: ours.clone(), at, commit });
        }
    }
}

/// Makes sure that a revision is of the schema that it claims.
pub(super) fn check(store: &Store, put: &Put, schema: &Schema, known: &Schemas) -> Result<(), Error> {
    let unfit = |unfit| Error::Unfit(put.name.clone(), Box::new(unfit));
    if put.product.size > MAX_CHECKED {
        return Err(unfit(Unfit::TooLarge(schema.clone())));
    }
    schemas::check(known, schema, &store.read_blob(put.product.oid)?).map_err(unfit)
}

/// Returns the highest revision of every document, in the order of their names.
pub fn list(view: &View) -> Vec<Change> {
    let documents = &view.state.documents;
    documents.names().filter_map(|name| Some(change(view, name, documents.latest(name)?))).collect()
}

/// Returns all revisions of a document, the first one first.
pub fn log(view: &View, name: &FilePath) -> Result<Vec<Change>, Error> {
    let revisions = view.state.documents.revisions(name);
    if revisions.is_empty() {
        return Err(Error::Unknown { run: view.run.clone(), name: name.clone() });
    }
    Ok(revisions.iter().map(|revision| change(view, name, revision)).collect())
}

/// Returns one revision of a document; without a number, the highest.
pub fn find(view: &View, name: &FilePath, number: Option<u64>) -> Result<Change, Error> {
    let mut all = log(view, name)?;
    let Some(number) = number else { return Ok(all.pop().expect("a document that exists has a revision")) };
    let highest = all.len() as u64;
    let found = all.into_iter().find(|change| change.revision.number == number);
    found.ok_or_else(|| Error::NoRevision { name: name.clone(), number, highest })
}

/// Makes sure that a revision is what its reader wants.
pub fn expect(view: &View, change: &Change, wanted: &Wanted) -> Result<(), Error> {
    let Some(drift) = view.state.documents.drift(&change.name, change.revision.number, wanted) else { return Ok(()) };
    let introduced = self::change(view, &change.name, &drift.since);
    Err(Error::Drift { drift: Box::new(drift), at: introduced.at, commit: introduced.commit })
}

/// Copies the bytes of a revision, after making sure that they are what was recorded: of others, not one leaves.
pub fn give(store: &Store, run: &Vetted, change: &Change, out: &mut dyn Write) -> Result<(), Error> {
    let product = change.revision.product;
    run.product(product.oid).that_is(product.sha256).copy(store, out).map_err(|error| match error {
        checked::Error::Store(inner) => Error::Store(inner),
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

/// What can go wrong with a document.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("the run {run:?} has no document {name:?}")]
    Unknown { run: RunId, name: FilePath },
    #[error("the document {name:?} has no revision {number}; the highest is {highest}")]
    NoRevision { name: FilePath, number: u64, highest: u64 },
    #[error("{}", drift.headline())]
    Drift { drift: Box<Drift>, at: Moment, commit: Oid },
    #[error("revision {number} of the document {name:?} is not the one that was recorded")]
    Altered { name: FilePath, number: u64, source: Box<checked::Error> },
    #[error("the document {0:?} cannot be put there")]
    Unfit(FilePath, #[source] Box<Unfit>),
    #[error("the document {name:?} is not what it is to follow: {}", standing(.found.as_ref()))]
    Changed { name: FilePath, found: Option<Digest> },
    #[error("the document {0:?} cannot be put there")]
    Illegal(FilePath, #[source] Illegal),
    #[error(transparent)]
    Run(run::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
}

fn standing(found: Option<&Digest>) -> String {
    found.map_or_else(|| "it does not exist".to_owned(), |digest| format!("it is {digest}"))
}
