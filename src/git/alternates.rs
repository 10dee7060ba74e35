//! The object directories of a repository: its own, and those that it borrows from.

use std::path::PathBuf;

use super::file_facts::canonical_or_same;
use super::store::{Error, Store};

impl Store {
    /// Returns the object directory of the repository and those of its alternates, with symbolic
    /// links resolved.
    pub fn object_dirs(&self) -> Result<Vec<PathBuf>, Error> {
        let more = self.local().objects.store_ref().alternate_db_paths();
        let more = more.map_err(|e| Error::Open(self.objects_dir(), Box::new(e)))?;
        Ok(std::iter::once(self.objects_dir()).chain(more).map(canonical_or_same).collect())
    }

    /// Returns the alternates file of a repository that borrows these objects.
    ///
    /// Lists the repository's alternates explicitly: git follows relative ones only in the
    /// repository itself.
    pub fn alternates(&self) -> Result<Vec<u8>, Error> {
        Ok(self
            .object_dirs()?
            .into_iter()
            .flat_map(|dir| {
                let path = dir.as_os_str().as_encoded_bytes();
                let is_plain = !path.contains(&b'\n') && !path.starts_with(b"\"") && !path.starts_with(b"#");
                [if is_plain { path.to_vec() } else { quoted(path) }, b"\n".to_vec()].concat()
            })
            .collect())
    }
}

/// Quotes a value for git's configuration and alternates files.
pub(crate) fn quoted(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![b'"'];
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
    out
}
