//! Puts documents on a run.

use serde::Serialize;

use crate::ledger::chain::Writer;
use crate::ledger::log;
use crate::model::any_error::AnyError;
use crate::model::digest::Digest;
use crate::model::entry::{Event, LogWritten, Product, Role};
use crate::model::judge;
use crate::model::name::{FilePath, ItemId, RunId};
use crate::model::rule::{MAX_CONDITION_BYTES, Rule};
use crate::model::schema::Schema;
use crate::repository::Repository;
use crate::run::query::VerifiedRun;
use crate::run::query::documents as read;
use crate::run::query::revisions::Change;
use crate::run::query::target::Target;
use crate::run::query::view::is_sealed;

use super::revisions::{self, InsteadOf, Put};
use super::{OpenRun, people, steer};

/// A recorded document, as `doc put --json` prints it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.document/1")]
pub struct DocumentPut {
    /// The run.
    pub run: RunId,
    /// The revision.
    pub document: Change,
    /// Conditions of rules that cannot be checked against this revision; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schemas", schemars(length(min = 1)))]
    pub uncompared: Vec<Uncompared>,
}

/// A condition of a rule that cannot be checked against a document.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Uncompared {
    /// The rule.
    pub rule: ItemId,
    /// The condition, with the value that it cannot be compared with, or why the document is
    /// unreadable.
    pub reason: String,
}

/// A document in the log of our key, for a run of another key, as `doc put --json` prints it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.document-said/1")]
pub struct DocumentSaid {
    /// The run.
    pub run: RunId,
    /// The document.
    pub name: FilePath,
    /// The digest of its bytes.
    pub sha256: Digest,
    /// Their number.
    pub size: u64,
    /// The key in whose log it is.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Fingerprint"))]
    pub by: String,
    /// Conditions of rules that cannot be checked against it; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schemas", schemars(length(min = 1)))]
    pub uncompared: Vec<Uncompared>,
}

/// A revision to record, as people write it.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct NewRevision<'a> {
    pub run: &'a str,
    pub name: &'a str,
    pub schema: Option<&'a str>,
    /// The digest of the revision that it must follow, or `none`.
    pub if_match: Option<&'a str>,
}

impl NewRevision<'_> {
    fn failed(&self, source: revisions::Error) -> AnyError {
        Error::Document { run: self.run.to_owned(), name: self.name.to_owned(), source: Box::new(source) }.into()
    }
}

/// A parsed [`NewRevision`].
struct Parsed {
    name: FilePath,
    schema: Option<Schema>,
    instead_of: Option<InsteadOf>,
}

impl Repository {
    /// Puts a document on a run as its next revision. `bytes` stores its content, after all other
    /// checks.
    pub fn put_document<E: From<AnyError>>(
        &self,
        request: &NewRevision<'_>,
        bytes: impl FnOnce() -> Result<Product, E>,
    ) -> Result<DocumentPut, E> {
        let Parsed { name, schema, instead_of } = self.parse(request)?;
        let mut open = self.open_for_documents(request.run)?;
        let put = Put { name, product: bytes()?, schema, instead_of, statement: None };
        let uncompared = self.uncompared(request, &open.state.rules, &put)?;
        let change = revisions::put(&mut open, &put, &self.schemas());
        let document = change.map_err(|source| request.failed(source))?;
        Ok(DocumentPut { run: open.id().clone(), document, uncompared })
    }

    /// Writes a document for a fetched and verified run, in the log of our own key. The run's
    /// driver accepts it from there.
    pub fn write_elsewhere<E: From<AnyError>>(
        &self,
        run: &VerifiedRun,
        request: &NewRevision<'_>,
        bytes: impl FnOnce() -> Result<Product, E>,
    ) -> Result<DocumentSaid, E> {
        let Parsed { name, schema, instead_of } = self.parse(request)?;
        let previous = match instead_of {
            Some(InsteadOf::Nothing) => return Err(AnyError::from(Error::NothingElsewhere).into()),
            Some(InsteadOf::Revision(digest)) => Some(digest),
            None => None,
        };
        let writer = self.writer_elsewhere(run)?;
        let log = writer.signer.fingerprint();
        let first = run.links[0].hash;
        let put = Put { name, product: bytes()?, schema, instead_of: None, statement: None };
        if let Some(put_schema) = &put.schema {
            let fits = revisions::check(&self.store, &put, put_schema, &self.schemas());
            fits.map_err(|source| request.failed(source))?;
        }
        let uncompared = self.uncompared(request, &run.state.rules, &put)?;
        let Put { name: put_name, product, schema: put_schema, .. } = put;
        let Product { sha256, size, .. } = product;
        let by = log.clone();
        let statement =
            LogWritten { schema: put_schema, previous, ..LogWritten::new(log, first, put_name.clone(), product) };
        log::record_statement(&writer, &run.run, &Event::LogWritten(statement)).map_err(AnyError::from)?;
        let run = run.run.clone();
        Ok(DocumentSaid { run, name: put_name, sha256, size, by, uncompared })
    }

    fn parse(&self, request: &NewRevision<'_>) -> Result<Parsed, AnyError> {
        self.free_of_secrets("document name", request.name)?;
        let (name, schema) = (read::name(request.name)?, request.schema.map(Schema::parse_loose).transpose()?);
        Ok(Parsed { name, schema, instead_of: request.if_match.map(read_match).transpose()? })
    }

    fn open_for_documents(&self, run: &str) -> Result<OpenRun, AnyError> {
        let (target, rest) = Target::with_rest(&self.store, run)?;
        if rest.is_some() {
            return Err(Error::OnItem.into());
        }
        steer::refuse_foreign(&target)?;
        if is_sealed(&self.store, &target.reference) {
            return Err(steer::Error::Sealed(target.run).into());
        }
        let open = self.opened_by_anyone(&target.run).map_err(|denied| denied.lacking(&[Role::Document]));
        Ok(open?)
    }

    /// Returns our writer if its key can write documents for a run that it does not drive.
    fn writer_elsewhere(&self, run: &VerifiedRun) -> Result<Writer, AnyError> {
        if run.state.sealed {
            return Err(steer::Error::Sealed(run.run.clone()).into());
        }
        let writer = self.writer()?;
        people::expect_role(&run.state, &run.run, &writer.signer.fingerprint(), Role::Document)?;
        Ok(writer)
    }

    /// Returns the conditions of rules that cannot be checked against a new revision.
    fn uncompared(&self, request: &NewRevision<'_>, rules: &[Rule], put: &Put) -> Result<Vec<Uncompared>, AnyError> {
        if !rules.iter().any(|rule| rule.when.conditions.iter().any(|condition| condition.document == put.name)) {
            return Ok(Vec::new());
        }
        let is_read = put.product.size <= MAX_CONDITION_BYTES;
        let bytes = is_read.then(|| self.store.read_blob(put.product.oid)).transpose();
        let bytes = bytes.map_err(|source| request.failed(source.into()))?;
        let found = judge::uncompared(rules, &put.name, bytes.as_deref());
        Ok(found.into_iter().map(|(rule, reason)| Uncompared { rule, reason }).collect())
    }
}

fn read_match(text: &str) -> Result<InsteadOf, Error> {
    if text == "none" {
        return Ok(InsteadOf::Nothing);
    }
    let digest: Option<Digest> = text.parse().or_else(|_| format!("sha256:{text}").parse()).ok();
    digest.map(InsteadOf::Revision).ok_or_else(|| Error::Match(text.to_owned()))
}

errors! {
    /// Failures to put a document.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Match(String) "usage" 2: "{0:?} is neither a SHA-256 nor `none`";
    OnItem "usage" 2: "a document is put on a run, not on an item";
    NothingElsewhere "usage" 2: "--if-match needs the SHA-256 of a revision, because another key drives the run";
    Document { run: String, name: String, source: Box<revisions::Error> }: "{source}";
}
