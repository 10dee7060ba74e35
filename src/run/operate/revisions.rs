//! Writes revisions of a run's documents.
use crate::git::store::{self, Store};
use crate::model::digest::Digest;
use crate::model::entry::{DocumentWritten, Event, Product};
use crate::model::name::FilePath;
use crate::model::schema::Schema;
use crate::model::state::Illegal;
use crate::plan::schemas::{self, MAX_CHECKED, Schemas, Unfit};
use crate::run::operate;
use crate::run::query::revisions::Change;

use super::{NewEntry, OpenRun};

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
    pub statement: Option<(String, String)>,
}

/// The state of a document that a new revision expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsteadOf {
    /// The document does not exist yet.
    Nothing,
    /// The highest revision has this digest.
    Revision(Digest),
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
        let expected = put.instead_of.is_none_or(|replaced| match replaced {
            InsteadOf::Nothing => previous.is_none(),
            InsteadOf::Revision(digest) => previous == Some(digest),
        });
        if !expected {
            return Err(Error::Changed { name: put.name.clone(), found: previous });
        }
        let revision = latest.map_or(1, |latest| latest.number + 1);
        let author = put.statement.as_ref().map_or_else(|| run.writer().actor.clone(), |(author, _)| author.clone());
        let event = DocumentWritten {
            schema: put.schema.clone(),
            previous,
            said: put.statement.as_ref().map(|(_, commit)| commit.clone()),
            ..DocumentWritten::new(put.name.clone(), revision, put.product, author)
        };
        let recorded = run.propose(&[NewEntry::plain(Event::DocumentWritten(event))]);
        let recorded = recorded.map_err(|error| match error {
            operate::Error::Illegal(why) => Error::Illegal(put.name.clone(), why),
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
    if put.product.size > MAX_CHECKED {
        return Err(Error::Unfit(put.name.clone(), Box::new(Unfit::TooLarge(schema.clone()))));
    }
    schemas::check(known, schema, &store.read_blob(put.product.oid)?)
        .map_err(|unfit| Error::Unfit(put.name.clone(), Box::new(unfit)))
}

errors! {
    /// Failures to write a revision.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Unfit(FilePath, #[source] Box<Unfit>) "not-as-declared": "cannot put the document {0:?}";
    Changed { name: FilePath, found: Option<Digest> } "lost-race" 5:
        "the document {name:?} changed: {}" [standing(.found.as_ref())];
    Illegal(FilePath, #[source] Illegal) "document": "cannot put the document {0:?}";
    #[from] Store(store::Error), Run(operate::Error);
}

fn standing(found: Option<&Digest>) -> String {
    found.map_or_else(|| "it does not exist".to_owned(), |digest| format!("it is {digest}"))
}
