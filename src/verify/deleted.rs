//! The signed records of runs that were deleted in this repository.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::git::private_files;
use crate::git::store::Store;
use crate::ledger::sign::{self, Signer};
use crate::model::digest::Digest;
use crate::model::format;
use crate::model::name::RunId;
use crate::model::time::Moment;

use super::{Logs, Options};

/// The maximum size of a deletion record, in bytes.
const LONGEST: u64 = 4096;

/// The record of a deliberate deletion, so that the run does not count as lost.
///
/// The record is signed. A missing run is reported unless the key whose log names it signed such a
/// record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Deleted {
    at: Moment,
    by: String,
    /// The leaf hash of the last entry of the run, if it could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Digest>,
    /// The armoured signature over [`Self::payload`].
    #[serde(default)]
    signature: String,
}

impl Deleted {
    /// Signs the record of a deletion.
    pub fn signed(
        signer: &Signer,
        by: String,
        run: &RunId,
        at: Moment,
        last: Option<Digest>,
    ) -> Result<Self, sign::Error> {
        let record = Self { at, by, last, signature: String::new() };
        let signature = signer.sign(&record.payload(run))?;
        Ok(Self { signature, ..record })
    }

    /// Returns the bytes that are signed.
    fn payload(&self, run: &RunId) -> Vec<u8> {
        let Self { at, by, last, .. } = self;
        format::canonical(&json!({ "deleted": run, "at": at, "by": by, "last": last }))
    }

    /// Returns true if the signer may excuse the missing run: the key of every log here that names
    /// it, or this repository's present key if the configured signers contain it. The run must have
    /// ended where the logs record it.
    pub fn is_proven(&self, logs: &Logs, run: &RunId, options: &Options) -> bool {
        let is_its_end = logs.own_seal(run).is_none_or(|seal| self.last == Some(seal));
        let key = self.signer(run);
        is_its_end && key.is_some_and(|key| logs.are_all_by(run, &key) || is_known_own(&key, options))
    }

    /// Returns the key that signed the record.
    fn signer(&self, run: &RunId) -> Option<String> {
        sign::signer(&self.payload(run), Some(&self.signature)).ok()
    }

    /// Returns true if a key deleted the run that ended with this leaf hash.
    pub(super) fn is_of(&self, run: &RunId, key: &str, end: Digest) -> bool {
        self.last == Some(end) && self.signer(run).is_some_and(|signer| signer == key)
    }

    /// Formats when a run was deleted and by whom.
    pub fn sentence(&self, run: &RunId) -> String {
        format!("the run {:?} was deleted at {} by {}", run.as_str(), self.at, self.by)
    }
}

/// Returns true if a key is this repository's own and among the signers.
fn is_known_own(key: &str, options: &Options) -> bool {
    let signers = options.signers.as_ref();
    options.own_key.as_deref() == Some(key) && signers.is_some_and(|signers| signers.principal(key).is_some())
}

/// Returns the deletion record of a run, or `None` if it was not deleted here.
pub fn recorded(store: &Store, run: &RunId) -> Option<Deleted> {
    let bytes =
        private_files::read(&private_files::path(store, private_files::DELETED, &run.encoded()), LONGEST).ok()?;
    serde_json::from_slice(&bytes).ok()
}
