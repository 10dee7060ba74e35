//! The line by which others know who signs here.

use serde::Serialize;

use crate::ledger::sign;

use super::{Error, Repository};

/// The key that signs here: what `key --json` prints.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyLine {
    schema: &'static str,
    /// `SHA256:<base64>` of the key.
    pub fingerprint: String,
    /// The name that the key is to be known by.
    pub principal: String,
    /// The line for a file of allowed signers.
    pub allowed_signers: String,
}

impl Repository {
    /// Returns the line by which others know our signatures, under a name; without one, under the email address of `git config`.
    pub fn key_line(&self, principal: Option<&str>) -> Result<KeyLine, Error> {
        let signer = self.signer()?;
        let email = self.config.user.as_ref().map(|(_, email)| email.as_str());
        let principal = principal.or(email).unwrap_or("git-handoff").to_owned();
        if principal.is_empty() || principal.contains(|c: char| c.is_whitespace() || c == ',' || c == '"') {
            return Err(Error::Principal(principal));
        }
        let allowed_signers = sign::allowed_signers_line(&principal, signer.public())?;
        Ok(KeyLine { schema: "git-handoff.key/1", fingerprint: signer.fingerprint(), principal, allowed_signers })
    }
}
