//! The documents of a run: named files with a history of revisions.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::digest::{Digest, Oid};
use super::entry::Product;
use super::name::{FilePath, ItemId, fold};
use super::schema::{Schema, Wanted};
use super::time::Moment;

/// The fields of `document.written`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DocumentWritten {
    /// The document.
    #[serde(deserialize_with = "document_name")]
    pub name: FilePath,
    /// The number of the revision, from 1 without gaps.
    pub revision: u64,
    /// The schema it was validated against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Schema>,
    /// The digest of the raw bytes.
    pub sha256: Digest,
    /// The blob.
    pub oid: Oid,
    /// The size in bytes.
    pub size: u64,
    /// The digest of the previous revision; absent in revision 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Digest>,
    /// The author: the actor of the statement, or of the entry, which then does not repeat it.
    #[serde(default)]
    pub author: String,
    /// The commit of the statement in the author's log; absent if that key signed this entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
}

impl DocumentWritten {
    /// Returns a revision without a schema and a predecessor, whose key signs the entry itself.
    pub fn new(name: FilePath, revision: u64, product: Product, author: String) -> Self {
        let Product { sha256, oid, size } = product;
        Self { name, revision, schema: None, sha256, oid, size, previous: None, author, said: None }
    }
}

/// The fields of `log.written`: a revision for a run that another key drives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogWritten {
    /// The fingerprint of the log's key.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Fingerprint"))]
    pub log: String,
    /// The leaf hash of the run's entry 0.
    pub first: Digest,
    /// The document.
    #[serde(deserialize_with = "document_name")]
    pub name: FilePath,
    /// The schema it was validated against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Schema>,
    /// The digest of the raw bytes.
    pub sha256: Digest,
    /// The blob.
    pub oid: Oid,
    /// The size in bytes.
    pub size: u64,
    /// The digest of the revision it must follow, if the author requires one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Digest>,
    /// The time of the revision, if earlier than the entry's, because the log had later entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Moment>,
}

impl LogWritten {
    /// Returns a revision without a schema and a predecessor, which is dated by its entry.
    pub fn new(log: String, first: Digest, name: FilePath, product: Product) -> Self {
        let Product { sha256, oid, size } = product;
        Self { log, first, name, schema: None, sha256, oid, size, previous: None, made: None }
    }

    /// Returns true if an entry of the run beginning with `first` records exactly this.
    pub fn is_recorded_by(&self, first: Digest, e: &DocumentWritten) -> bool {
        let follows = self.previous.is_none() || self.previous == e.previous;
        let is = Product { sha256: self.sha256, oid: self.oid, size: self.size };
        follows && (self.first, &self.name, &self.schema, is) == (first, &e.name, &e.schema, e.product())
    }
}

impl DocumentWritten {
    /// Returns the product of the revision.
    pub fn product(&self) -> Product {
        Product { sha256: self.sha256, oid: self.oid, size: self.size }
    }
}

fn document_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FilePath, D::Error> {
    FilePath::parse_document(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

/// The author of a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Author {
    /// An actor.
    Actor(String),
    /// An item.
    Item(ItemId),
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Actor(actor) => f.write_str(actor),
            Self::Item(item) => write!(f, "item {item}"),
        }
    }
}

/// A revision of a document.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Revision {
    /// The number, from 1.
    #[serde(rename = "revision")]
    pub number: u64,
    /// The product.
    #[serde(flatten)]
    pub product: Product,
    /// The schema it was validated against.
    #[serde(serialize_with = "schema_text")]
    #[cfg_attr(feature = "schemas", schemars(with = "Option<super::formats::SchemaName>"))]
    pub schema: Option<Schema>,
    /// The digest of the previous revision.
    pub previous: Option<Digest>,
    /// The author.
    pub author: Author,
    /// The entry that added it.
    pub entry: u64,
}

#[expect(clippy::ref_option, reason = "what serde calls it with")]
fn schema_text<S: Serializer>(schema: &Option<Schema>, serializer: S) -> Result<S::Ok, S::Error> {
    schema.as_ref().map(ToString::to_string).serialize(serializer)
}

impl Revision {
    /// Formats its schema.
    pub fn is(&self) -> String {
        self.schema.as_ref().map_or_else(|| "without a schema".to_owned(), Schema::to_string)
    }
}

/// All documents of a run, with their histories.
///
/// A name is in use once it is written, or declared by an item of the plan. A name that clashes
/// with it is then refused.
#[derive(Clone, Debug, Default)]
pub struct Documents {
    revisions: BTreeMap<FilePath, Vec<Revision>>,
    /// The names in use, by case folding.
    by_folded: BTreeMap<String, FilePath>,
}

impl Documents {
    /// Returns the names of the documents with a revision.
    pub fn names(&self) -> impl Iterator<Item = &FilePath> {
        self.revisions.keys()
    }

    /// Returns the number of revisions of all documents.
    pub fn count(&self) -> usize {
        self.revisions.values().map(Vec::len).sum()
    }

    /// Returns the revisions of a document, oldest first; empty if it does not exist.
    pub fn revisions(&self, name: &FilePath) -> &[Revision] {
        self.revisions.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the highest revision of a document.
    pub fn latest(&self, name: &FilePath) -> Option<&Revision> {
        self.revisions(name).last()
    }

    /// Compares a revision with a required schema; returns `None` if it matches.
    pub fn drift(&self, name: &FilePath, number: u64, required: &Wanted) -> Option<Drift> {
        let revisions = self.revisions(name);
        let upto = &revisions[..revisions.partition_point(|revision| revision.number <= number)];
        let fit = upto.iter().rposition(|revision| required.admits(revision.schema.as_ref()));
        let since = upto.get(fit.map_or(0, |fit| fit + 1))?;
        let revision = upto.last()?;
        Some(Drift {
            name: name.clone(),
            revision: revision.clone(),
            required: required.clone(),
            since: since.clone(),
            before: fit.map(|fit| upto[fit].clone()),
        })
    }

    /// Returns a name in use that clashes with `name`: another spelling, or a parent or child path.
    pub fn clash(&self, name: &FilePath) -> Option<&FilePath> {
        let folded = fold(name.as_str());
        let whole = self.by_folded.get(&folded).filter(|other| *other != name);
        whole.or_else(|| folded.match_indices('/').find_map(|(end, _)| self.by_folded.get(&folded[..end]))).or_else(
            || {
                let folder = format!("{folded}/");
                let next = self.by_folded.range(folder.clone()..).next();
                next.filter(|(other, _)| other.starts_with(&folder)).map(|(_, other)| other)
            },
        )
    }

    /// Reserves a name; a clashing one is ignored.
    pub(super) fn take(&mut self, name: &FilePath) {
        if self.clash(name).is_none() {
            self.by_folded.entry(fold(name.as_str())).or_insert_with(|| name.clone());
        }
    }

    /// Adds the next revision of a document.
    pub(super) fn push(
        &mut self,
        name: &FilePath,
        product: Product,
        schema: Option<Schema>,
        author: Author,
        entry: u64,
    ) {
        self.take(name);
        let revisions = self.revisions.entry(name.clone()).or_default();
        let number = revisions.len() as u64 + 1;
        let previous = revisions.last().map(|before| before.product.sha256);
        revisions.push(Revision { number, product, schema, previous, author, entry });
    }
}

/// A document that no longer matches its reader's schema, with the revision that changed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    /// The document.
    pub name: FilePath,
    /// The requested revision.
    pub revision: Revision,
    /// The required schema.
    pub required: Wanted,
    /// The first revision that does not match.
    pub since: Revision,
    /// The last revision that matches, if any.
    pub before: Option<Revision>,
}

impl Drift {
    /// Formats the actual and the required schema.
    pub fn headline(&self) -> String {
        let (name, number) = (self.name.as_str(), self.revision.number);
        format!("the document {name:?} is {} in revision {number}, and {} is wanted", self.revision.is(), self.required)
    }

    /// Formats the author and entry of the change.
    pub fn origin(&self) -> String {
        let Revision { number, author, entry, .. } = &self.since;
        match &self.before {
            Some(before) => {
                format!("{author} changed that with revision {number}, entry {entry}; it was {} before", before.is())
            }
            None => format!("it has been so from the beginning: {author} wrote revision {number}, entry {entry}"),
        }
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; produced by {}; {}", self.headline(), self.revision.author, self.origin())
    }
}
