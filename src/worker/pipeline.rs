//! Reads the pipeline of an attempt, by its digest and no other way.

use crate::git::store::{self, Store};
use crate::model::digest::{Digest, Oid};
use crate::model::pipeline::{MAX_BYTES, Spec};
use crate::model::problems::Problems;

/// Reads the bytes that were sealed with the run, hashes them again and reads them as strictly as when they were submitted.
///
/// To be called before anything of the attempt runs. What is not what was sealed gives nothing.
pub fn load(store: &Store, oid: Oid, expected: Digest) -> Result<Spec, Error> {
    let bytes = store.read_blob_of(oid, MAX_BYTES).map_err(|source| Error::Read { expected, source })?;
    let actual = Digest::of(&bytes);
    if actual != expected {
        return Err(Error::Mismatch { expected, actual });
    }
    Spec::parse(&bytes).map_err(|problems| Error::Invalid { expected, first: first(&problems) })
}

fn first(problems: &Problems) -> String {
    problems.first().map(ToString::to_string).unwrap_or_default()
}

/// Why an attempt has no pipeline.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("integrity: the pipeline {expected} cannot be read")]
    Read { expected: Digest, source: store::Error },
    #[error("integrity: the pipeline {expected} is not what was sealed with the run: it hashes to {actual}")]
    Mismatch { expected: Digest, actual: Digest },
    #[error("integrity: what was sealed with the run as the pipeline {expected} is none: {first}")]
    Invalid { expected: Digest, first: String },
}
