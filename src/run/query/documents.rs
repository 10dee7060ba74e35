//! Lists and reads the documents of a run.

use std::io::Write;

use serde::Serialize;

use crate::model::any_error::AnyError;
use crate::model::name::{FilePath, NameError, RunId};
use crate::model::schema::Wanted;
use crate::repository::Repository;

use super::revisions::{self, Change};
use super::target::Target;
use super::{VerifiedRun, View};

/// The highest revisions of all documents, as `doc list --json` prints them.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.documents/1")]
pub struct Documents {
    /// The run.
    pub run: RunId,
    /// In order of name.
    pub documents: Vec<Change>,
}

/// The revisions of a document, as `doc log --json` prints them.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.document-log/1")]
pub struct DocumentLog {
    /// The run.
    pub run: RunId,
    /// The document.
    pub name: FilePath,
    /// Newest first.
    pub revisions: Vec<Change>,
}

/// A revision to read, as people write it.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct WantedRevision<'a> {
    pub run: &'a str,
    pub name: &'a str,
    /// The number of the revision, or `None` for the highest.
    pub revision: Option<u64>,
    /// The schema that it must have.
    pub expect: Option<&'a str>,
}

impl WantedRevision<'_> {
    /// Parses the name and the expected schema.
    pub fn read(&self) -> Result<(FilePath, Option<Wanted>), AnyError> {
        Ok((name(self.name)?, self.expect.map(Wanted::parse_loose).transpose()?))
    }

    /// Finds the revision in a run, or returns an error if it does not match the expected schema.
    pub fn find(&self, run: &VerifiedRun, name: &FilePath, schema: Option<&Wanted>) -> Result<Change, AnyError> {
        let change =
            revisions::find(run, name, self.revision).map_err(|source| Error::document(self.run, self.name, source))?;
        if let Some(schema) = schema {
            revisions::expect(run, &change, schema).map_err(|source| Error::document(self.run, self.name, source))?;
        }
        Ok(change)
    }
}

impl Repository {
    /// Lists the highest revisions of all documents of a run, ours or a fetched one.
    pub fn documents(&self, run: &str) -> Result<Documents, AnyError> {
        let view = self.view(run)?;
        let documents = revisions::list(&view);
        Ok(Documents { run: view.run, documents })
    }

    /// Lists the revisions of a document, newest first.
    pub fn document_log(&self, run: &str, document: &str) -> Result<DocumentLog, AnyError> {
        let name = name(document)?;
        let view = self.view(run)?;
        let mut revisions = revisions::log(&view, &name).map_err(|source| Error::document(run, document, source))?;
        revisions.reverse();
        Ok(DocumentLog { run: view.run, name, revisions })
    }

    /// Copies the bytes of a revision after checking them.
    pub fn give_document(&self, run: &VerifiedRun, change: &Change, out: &mut dyn Write) -> Result<(), AnyError> {
        let given = revisions::give(&self.store, run, change, out);
        Ok(given.map_err(|source| Error::document(run.run.as_str(), change.name.as_str(), source))?)
    }

    fn view(&self, run: &str) -> Result<View, AnyError> {
        Ok(Target::find(&self.store, run)?.view(&self.store)?)
    }
}

/// Parses the name of a document.
pub fn name(text: &str) -> Result<FilePath, Error> {
    FilePath::parse_document(text).map_err(|source| Error::Name { name: text.to_owned(), source })
}

errors! {
    /// Failures to read documents.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Name { name: String, source: NameError }: "{name:?} cannot be a document's name: {source}";
    Document { run: String, name: String, source: Box<revisions::Error> }: "{source}";
}

impl Error {
    fn document(run: &str, name: &str, source: revisions::Error) -> Self {
        Self::Document { run: run.to_owned(), name: name.to_owned(), source: Box::new(source) }
    }
}
