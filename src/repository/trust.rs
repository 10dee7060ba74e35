//! The trust that verification starts from: given explicitly, else by the configuration.

use std::io;
use std::path::{Path, PathBuf};

use crate::ledger::sign;
use crate::model::json;
use crate::model::log_name::is_fingerprint;
use crate::repository::config::is_in_work_tree;
use crate::verify::{Now, Options, Revoked, Signers, revoked};

use super::{Repository, read_up_to};

/// The maximum size of a file of signers or revoked keys, in bytes.
const SIGNERS_LIMIT: u64 = 16 << 20;

/// Explicitly given trust; the configuration completes it.
#[derive(Clone, Copy, Default)]
pub struct Trust<'a> {
    /// The allowed-signers file.
    pub signers: Option<&'a Path>,
    /// The file of revoked keys.
    pub revoked: Option<&'a Path>,
    /// Whether every signature must be by a key in the allowed-signers file.
    pub require: bool,
    /// The only principal to trust, or `None` for all.
    pub signer: Option<&'a str>,
}

impl Repository {
    /// Returns the keys that the verifier knows, from the given files or the configuration.
    ///
    /// Calls `warn` for an ignored file.
    pub fn options(&self, requested: &Trust<'_>, warn: &mut dyn FnMut(&str)) -> Result<Options, Error> {
        let config = &self.config;
        let configured = |key: &str, path: Option<&Path>| path.map(|path| self.outside_of(key, path)).transpose();
        let strict_file = match requested.signers {
            Some(path) => Some(path.to_owned()),
            None => configured("handoff.signers", config.signers.as_deref())?,
        };
        let mut file = strict_file.clone();
        if file.is_none()
            && let Some(path) = &config.allowed_signers
        {
            // This file only names keys, so it may be missing. It could explain unknown keys,
            // though.
            match self.outside_of("gpg.ssh.allowedSignersFile", path) {
                Ok(path) if path.exists() => file = Some(path),
                Ok(path) => warn(&format!("gpg.ssh.allowedSignersFile names {}, which is not there", path.display())),
                Err(inside) => warn(&format!("{inside}; it is ignored")),
            }
        }
        let signers = match &file {
            Some(path) => {
                let parsed = Signers::parse(&text(path)?, &(self.environment.zone)());
                let parsed = parsed.map_err(|e| bad_file(path, e.to_string()))?;
                parsed.skipped().iter().for_each(|line| warn(&format!("{}: {line}; it is skipped", path.display())));
                Some(parsed)
            }
            None => None,
        };
        let revoked_file = match requested.revoked {
            Some(path) => Some(path.to_owned()),
            None => configured("handoff.revoked", config.revoked.as_deref())?,
        };
        let revoked = match &revoked_file {
            Some(path) => revoked(&text(path)?).map_err(|e| bad_file(path, e.to_string()))?,
            None => Revoked::new(),
        };
        let signer = requested.signer.map(|text| sign::public_fingerprint(text).unwrap_or_else(|_| text.to_owned()));
        if signer.as_ref().is_some_and(|signer| !is_fingerprint(signer)) && signers.is_none() {
            return Err(Error::NoSigners);
        }
        Ok(Options {
            own_key: self.own_fingerprint(),
            signers,
            signer,
            strict_signers: strict_file.is_some() || requested.require,
            revoked,
            now: Some(self.now()),
            ..Options::default()
        })
    }

    /// Returns the local time, by which the dates of entries are judged.
    pub(crate) fn now(&self) -> Now {
        Now { at: self.environment.clock.now(), pinned: self.environment.clock.is_pinned() }
    }

    /// Returns the path of a setting, or `None` if it lies inside the work tree, where a commit
    /// could change it.
    pub fn outside_of(&self, key: &str, path: &Path) -> Result<PathBuf, Error> {
        let path = self.below_top(path);
        if is_in_work_tree(&self.store, &path) {
            return Err(Error::Inside { key: key.to_owned(), path });
        }
        Ok(path)
    }
}

fn bad_file(path: &Path, why: String) -> Error {
    Error::Bad { path: path.to_owned(), why }
}

fn text(path: &Path) -> Result<String, Error> {
    let bytes = read_up_to(path, SIGNERS_LIMIT).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    if json::is_utf16(&bytes) {
        return Err(Error::Bad { path: path.to_owned(), why: "it is UTF-16; save it as UTF-8".to_owned() });
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

errors! {
    /// An error while reading what to trust.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    NoSigners "no-signers": "no allowed-signers file names the signer's keys";
    Inside { key: String, path: PathBuf } "untrusted-file":
        "`{key}` names {}, which lies inside the work tree" [path.display()];
    Bad { path: PathBuf, why: String } "bad-signers": "{} cannot be used: {why}" [path.display()];
    Read { path: PathBuf, source: io::Error } "io": "{} could not be read" [path.display()];
}
