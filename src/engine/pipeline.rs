//! Reads an attempt's pipeline by its digest.

use crate::git::store::{self, Store};
use crate::model::digest::{Digest, Oid};
use crate::model::pipeline::{MAX_BYTES, Spec};
use crate::model::problems::Problems;

/// Reads the bytes sealed with the run, checks their hash and parses them as strictly as at
/// submission.
///
/// Call this before the attempt starts. Bytes with another hash are an error.
pub fn load(store: &Store, oid: Oid, expected: Digest) -> Result<Spec, Error> {
    let bytes = store.read_blob_of(oid, MAX_BYTES).map_err(|source| Error::Read { expected, source })?;
    let actual = Digest::compute(&bytes);
    if actual != expected {
        return Err(Error::Mismatch { expected, actual });
    }
    Spec::parse(&bytes).map_err(|problems| Error::Invalid { expected, first: first(&problems) })
}

fn first(problems: &Problems) -> String {
    problems.first().map(ToString::to_string).unwrap_or_default()
}

errors! {
    /// Why a pipeline cannot be loaded.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Read { expected: Digest, source: store::Error }: "integrity: the pipeline {expected} cannot be read";
    Mismatch { expected: Digest, actual: Digest }:
        "integrity: the pipeline {expected} differs from the one sealed with the run: it hashes to {actual}";
    Invalid { expected: Digest, first: String }: "integrity: the sealed pipeline {expected} is invalid: {first}";
}
