//! The allowed-signers line for this repository's signing key.

use serde::Serialize;

use crate::ledger::sign;
use crate::model::any_error::AnyError;

use super::{Error, Repository};

/// The output of `key --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.key/1", rename_all = "camelCase")]
pub struct KeyLine {
    /// `SHA256:<base64>` of the key.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Fingerprint"))]
    pub fingerprint: String,
    /// The principal.
    pub principal: String,
    /// The line for an allowed-signers file.
    pub allowed_signers: String,
}

impl Repository {
    /// Returns the allowed-signers line for our key, with a given name or the email address of `git
    /// config`.
    pub fn key_line(&self, principal: Option<&str>) -> Result<KeyLine, AnyError> {
        let signer = self.signer()?;
        let email = self.config.user.as_ref().map(|(_, email)| email.as_str());
        let principal = principal.or(email).unwrap_or("git-handoff").to_owned();
        if principal.is_empty() || principal.contains(|c: char| c.is_whitespace() || c == ',' || c == '"') {
            return Err(Error::Principal(principal).into());
        }
        let allowed_signers = sign::allowed_signers_line(&principal, signer.public())?;
        Ok(KeyLine { fingerprint: signer.fingerprint(), principal, allowed_signers })
    }
}
