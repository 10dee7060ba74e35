//! What is done with the documents of a run: put, got, listed.

use std::io::Write;

use serde::Serialize;

use crate::git::store;
use crate::ledger::log;
use crate::model::digest::{Digest, Oid};
use crate::model::document::Author;
use crate::model::entry::{Event, LogWritten, Product, Role};
use crate::model::judge;
use crate::model::name::{FilePath, ItemId, NameError, RunId};
use crate::model::rule::{MAX_CONDITION_BYTES, Rule};
use crate::model::schema::{Schema, SchemaError, Wanted};
use crate::model::time::Moment;
use crate::repository::Repository;

use super::revisions::{self, Change, InsteadOf, Put};
use super::target::{self, Target};
use super::{Vetted, View, people, steer};

/// A revision of a document with the entry that introduced it, as answers have it.
#[derive(Clone, Debug, Serialize)]
pub struct DocumentShown {
    /// The document.
    pub name: FilePath,
    /// The number of the revision; the first is 1.
    pub revision: u64,
    /// Its digest.
    pub sha256: Digest,
    /// The blob that holds it.
    pub oid: Oid,
    /// Its size in bytes.
    pub size: u64,
    /// What it claims to be.
    pub schema: Option<String>,
    /// What that is for people.
    #[serde(skip)]
    pub is: String,
    /// The digest of the revision before it.
    pub previous: Option<Digest>,
    /// Who put it there: an item, or somebody.
    pub author: Author,
    /// The number of the entry.
    pub entry: u64,
    /// When it was recorded.
    pub at: Moment,
    /// The commit of the entry.
    pub commit: Oid,
}

impl DocumentShown {
    /// Answers a revision.
    pub fn of(change: &Change) -> Self {
        let Change { name, revision, at, commit } = change;
        Self {
            name: name.clone(),
            revision: revision.number,
            sha256: revision.product.sha256,
            oid: revision.product.oid,
            size: revision.product.size,
            schema: revision.schema.as_ref().map(ToString::to_string),
            is: revision.is(),
            previous: revision.previous,
            author: revision.author.clone(),
            entry: revision.entry,
            at: *at,
            commit: *commit,
        }
    }
}

/// A document that was put: what `doc put --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct DocumentPut {
    schema: &'static str,
    /// The run.
    pub run: RunId,
    /// The revision.
    pub document: DocumentShown,
    /// The conditions of rules that cannot be compared with this revision.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uncompared: Vec<Uncompared>,
}

/// A condition of a rule that cannot be compared with a document.
#[derive(Clone, Debug, Serialize)]
pub struct Uncompared {
    /// The rule.
    pub rule: ItemId,
    /// The condition, with the field and its value, or with what keeps the document from being read.
    pub reason: String,
}

/// A document that was written for a run that somebody else conducts: what `doc put --json` prints then.
#[derive(Clone, Debug, Serialize)]
pub struct DocumentSaid {
    schema: &'static str,
    /// The run.
    pub run: RunId,
    /// The document.
    pub name: FilePath,
    /// The digest of its bytes.
    pub sha256: Digest,
    /// Their number.
    pub size: u64,
    /// The key that says so, in its log.
    pub by: String,
    /// The conditions of rules that cannot be compared with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uncompared: Vec<Uncompared>,
}

/// The documents of a run, each at its highest revision: what `doc list --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Documents {
    schema: &'static str,
    /// The run.
    pub run: RunId,
    /// In order of name.
    pub documents: Vec<DocumentShown>,
}

/// The revisions of a document: what `doc log --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct DocumentLog {
    schema: &'static str,
    /// The run.
    pub run: RunId,
    /// The document.
    pub name: FilePath,
    /// Newest first.
    pub revisions: Vec<DocumentShown>,
}

/// Which document is put where, and as what: as people write it.
#[derive(Clone, Copy, Debug)]
pub struct NewRevision<'a> {
    /// The run.
    pub run: &'a str,
    /// The document's name.
    pub name: &'a str,
    /// What it is.
    pub schema: Option<&'a str>,
    /// What it must follow: a digest, or `none`.
    pub if_match: Option<&'a str>,
}

/// Which revision is read, and what it is expected to be: as people write it.
#[derive(Clone, Copy, Debug)]
pub struct WantedRevision<'a> {
    /// The run.
    pub run: &'a str,
    /// The document's name.
    pub name: &'a str,
    /// The revision; without a number, the highest.
    pub revision: Option<u64>,
    /// The schema.
    pub expect: Option<&'a str>,
}

impl WantedRevision<'_> {
    /// Reads the name, and the schema if one is expected.
    pub fn read(&self) -> Result<(FilePath, Option<Wanted>), Error> {
        Ok((name(self.name)?, self.expect.map(str::parse).transpose()?))
    }

    /// Finds the revision in a run, and refuses one that is not what is expected.
    pub fn find(&self, run: &Vetted, (name, wanted): &(FilePath, Option<Wanted>)) -> Result<Change, Error> {
        let asked = |source| Error::of(self.run, self.name, source);
        let change = revisions::find(run, name, self.revision).map_err(asked)?;
        if let Some(wanted) = wanted {
            revisions::expect(run, &change, wanted).map_err(asked)?;
        }
        Ok(change)
    }
}

impl Repository {
    /// Puts a document on a run as its next revision; `bytes` writes it into the repository, once everything else is in order.
    pub fn put_document<E: From<Error>>(
        &self,
        asked: &NewRevision<'_>,
        bytes: impl FnOnce() -> Result<Product, E>,
    ) -> Result<DocumentPut, E> {
        let name = self.new_name(asked.name)?;
        let schema: Option<Schema> = asked.schema.map(str::parse).transpose().map_err(Error::from)?;
        let instead_of = asked.if_match.map(read_match).transpose()?;
        let (target, rest) = Target::with_rest(&self.store, asked.run).map_err(Error::from)?;
        if rest.is_some() {
            return Err(Error::OnItem.into());
        }
        steer::refuse_foreign(&target).map_err(Error::from)?;
        if steer::is_sealed(&self.store, &target.reference) {
            return Err(Error::from(steer::Error::Sealed(target.run)).into());
        }
        let mut open = self
            .opened_by_anyone(&target.run)
            .map_err(|denied| denied.lacking(&[Role::Document]))
            .map_err(steer::Error::from)
            .map_err(Error::from)?;
        let put = Put { name, product: bytes()?, schema, instead_of, said: None };
        let uncompared = self.uncompared(&open.state.rules, &put).map_err(revisions::Error::from);
        let uncompared = uncompared.map_err(|source| Error::of(asked.run, asked.name, source))?;
        let change = revisions::put(&mut open, &put, &self.schemas())
            .map_err(|source| Error::of(asked.run, asked.name, source))?;
        let document = DocumentShown::of(&change);
        Ok(DocumentPut { schema: "git-handoff.document/1", run: open.id().clone(), document, uncompared })
    }

    /// Finds the conditions of rules that cannot be compared with a document that is to be put.
    fn uncompared(&self, rules: &[Rule], put: &Put) -> Result<Vec<Uncompared>, store::Error> {
        if !rules.iter().any(|rule| rule.when.conditions.iter().any(|condition| condition.document == put.name)) {
            return Ok(Vec::new());
        }
        let is_read = put.product.size <= MAX_CONDITION_BYTES;
        let bytes = if is_read { Some(self.store.read_blob(put.product.oid)?) } else { None };
        let found = judge::uncompared(rules, &put.name, bytes.as_deref());
        Ok(found.into_iter().map(|(rule, reason)| Uncompared { rule, reason }).collect())
    }

    /// Writes a document for a run that was fetched and passed the gate, in the log of our own key: whoever conducts the run takes it in.
    pub fn write_elsewhere<E: From<Error>>(
        &self,
        run: &Vetted,
        asked: &NewRevision<'_>,
        bytes: impl FnOnce() -> Result<Product, E>,
    ) -> Result<DocumentSaid, E> {
        let name = self.new_name(asked.name)?;
        let schema: Option<Schema> = asked.schema.map(str::parse).transpose().map_err(Error::from)?;
        let previous = match asked.if_match.map(read_match).transpose()? {
            Some(InsteadOf::Nothing) => return Err(Error::NothingElsewhere.into()),
            Some(InsteadOf::Revision(digest)) => Some(digest),
            None => None,
        };
        if run.state.sealed {
            return Err(Error::from(steer::Error::Sealed(run.run.clone())).into());
        }
        let writer = self.writer().map_err(people::Error::from).map_err(Error::from)?;
        let key = writer.signer.fingerprint();
        people::expect_role(&run.state, &run.run, &key, Role::Document).map_err(Error::from)?;
        let first = run.links.first().map(|link| link.hash);
        let unknown = || Error::from(steer::Error::from(super::Error::Unknown(run.run.clone())));
        let first = first.ok_or_else(unknown)?;
        let product = bytes()?;
        let put = Put { name: name.clone(), product, schema: schema.clone(), instead_of: None, said: None };
        if let Some(schema) = &schema {
            let fits = revisions::check(&self.store, &put, schema, &self.schemas());
            fits.map_err(|source| Error::of(asked.run, asked.name, source))?;
        }
        let uncompared = self.uncompared(&run.state.rules, &put).map_err(revisions::Error::from);
        let uncompared = uncompared.map_err(|source| Error::of(asked.run, asked.name, source))?;
        let Product { sha256, oid, size } = product;
        let said =
            LogWritten { log: key.clone(), first, name: name.clone(), schema, sha256, oid, size, previous, made: None };
        log::say(&writer, &run.run, &Event::LogWritten(said)).map_err(people::Error::from).map_err(Error::from)?;
        let run = run.run.clone();
        Ok(DocumentSaid { schema: "git-handoff.document-said/1", run, name, sha256, size, by: key, uncompared })
    }

    /// Lists the documents of a run, ours or a fetched one, each at its highest revision.
    pub fn documents(&self, run: &str) -> Result<Documents, Error> {
        let view = self.view(run)?;
        let documents = revisions::list(&view).iter().map(DocumentShown::of).collect();
        Ok(Documents { schema: "git-handoff.documents/1", run: view.run, documents })
    }

    /// Lists the revisions of a document, newest first.
    pub fn document_log(&self, run: &str, document: &str) -> Result<DocumentLog, Error> {
        let name = name(document)?;
        let view = self.view(run)?;
        let changes = revisions::log(&view, &name).map_err(|source| Error::of(run, document, source))?;
        let revisions = changes.iter().rev().map(DocumentShown::of).collect();
        Ok(DocumentLog { schema: "git-handoff.document-log/1", run: view.run, name, revisions })
    }

    /// Copies the bytes of a revision, if they are those that were recorded.
    pub fn give_document(&self, run: &Vetted, change: &Change, out: &mut dyn Write) -> Result<(), Error> {
        revisions::give(&self.store, run, change, out)
            .map_err(|source| Error::of(run.run.as_str(), change.name.as_str(), source))
    }

    /// Reads the name of a document that is to be recorded.
    fn new_name(&self, text: &str) -> Result<FilePath, Error> {
        self.free_of_secrets("document name", text).map_err(people::Error::from)?;
        name(text)
    }

    fn view(&self, run: &str) -> Result<View, Error> {
        Ok(Target::find(&self.store, run)?.view(&self.store)?)
    }
}

/// Reads the name of a document.
pub fn name(text: &str) -> Result<FilePath, Error> {
    FilePath::parse_document(text).map_err(|source| Error::Name { name: text.to_owned(), source })
}

fn read_match(text: &str) -> Result<InsteadOf, Error> {
    if text == "none" {
        return Ok(InsteadOf::Nothing);
    }
    let digest: Option<Digest> = text.parse().or_else(|_| format!("sha256:{text}").parse()).ok();
    digest.map(InsteadOf::Revision).ok_or_else(|| Error::Match(text.to_owned()))
}

/// Why nothing was done with a document.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("{name:?} cannot be a document's name: {source}")]
    Name { name: String, source: NameError },
    #[error("{0:?} is neither a SHA-256 nor `none`")]
    Match(String),
    #[error("a document is put on a run, not on an item")]
    OnItem,
    #[error("for somebody else's run, --if-match takes the SHA-256 of a revision")]
    NothingElsewhere,
    #[error(transparent)]
    People(#[from] people::Error),
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error("{source}")]
    Document { run: String, name: String, source: Box<revisions::Error> },
    #[error(transparent)]
    Steer(#[from] steer::Error),
    #[error(transparent)]
    Target(#[from] target::Error),
}

impl Error {
    fn of(run: &str, name: &str, source: revisions::Error) -> Self {
        Self::Document { run: run.to_owned(), name: name.to_owned(), source: Box::new(source) }
    }
}
