//! Scans objects for secrets before they are stored or sent.

use std::collections::BTreeMap;
use std::io;

use super::program::{self, Git};
use crate::model::credential::gate::{Gate, Scan, Secret};
use crate::model::credential::patch::PatchScan;
use crate::model::digest::Oid;

/// The objects to scan: those reachable from `tips` but not from `known`.
#[derive(Clone, Debug, Default)]
pub struct Range {
    /// The new objects.
    pub tips: Vec<Oid>,
    /// The objects that exist already.
    pub known: Vec<String>,
}

/// Returns the ids of all new blobs and commits that contain a secret.
///
/// `git` returns a command that sees the objects. In patches of items, only added lines are
/// scanned, as at capture.
pub fn new_objects(git: &dyn Fn() -> Git, range: &Range, gate: &Gate) -> Result<Vec<(String, Secret)>, program::Error> {
    let tips = range.tips.iter().map(|tip| format!("{tip}\n"));
    let known = range.known.iter().map(|known| format!("^{known}\n"));
    let revisions: String = tips.chain(known).collect();
    let listed = git()
        .env("GIT_NO_LAZY_FETCH", "1")
        .args(["rev-list", "--objects", "--missing=allow-any", "--ignore-missing", "--stdin"])
        .input(revisions)
        .run()?;
    let listed = String::from_utf8_lossy(&listed);
    let names: BTreeMap<&str, &str> = listed.lines().map(|line| line.split_once(' ').unwrap_or((line, ""))).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let oids: String = names.keys().flat_map(|oid| [*oid, "\n"]).collect();
    let mut reader = Reader { gate, names: &names, found: Vec::new(), header: Vec::new(), left: 0, now: Now::Skip };
    let call = git().env("GIT_NO_LAZY_FETCH", "1").args(["cat-file", "--batch", "--buffer"]).input(oids);
    call.stream(&mut |chunk| {
        reader.push(chunk);
        Ok::<(), io::Error>(())
    })?;
    reader.found.sort();
    Ok(reader.found)
}

/// The scan of the current object.
enum Now<'g> {
    Skip,
    Plain(String, Scan<'g>),
    Patch(String, PatchScan<'g>),
    /// A commit, with its bytes so far.
    Commit(String, Scan<'g>, Vec<u8>),
}

/// The most bytes of a commit that are read to blank its signature; no larger one is signed.
const COMMIT: u64 = 1 << 20;

/// Parses the output of `git cat-file --batch`: a line with id, kind and size, the bytes, and a
/// newline.
struct Reader<'g, 'n> {
    gate: &'g Gate,
    names: &'n BTreeMap<&'n str, &'n str>,
    found: Vec<(String, Secret)>,
    header: Vec<u8>,
    /// The remaining bytes of the object.
    left: u64,
    now: Now<'g>,
}

impl Reader<'_, '_> {
    fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.left > 0 {
                let count = usize::try_from(self.left).map_or(bytes.len(), |left| left.min(bytes.len()));
                self.body(&bytes[..count]);
                self.left -= count as u64;
                bytes = &bytes[count..];
                if self.left == 0 {
                    self.end();
                }
                continue;
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            self.header.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
            bytes = end.map_or(&[], |end| &bytes[end + 1..]);
            if end.is_some() {
                let header = std::mem::take(&mut self.header);
                self.begin(&String::from_utf8_lossy(&header));
            }
        }
    }

    fn begin(&mut self, header: &str) {
        let mut words = header.split(' ');
        let (Some(oid), Some(kind), Some(size)) = (words.next(), words.next(), words.next()) else { return };
        self.left = size.parse().unwrap_or(0);
        let path = self.names.get(oid).copied().unwrap_or_default();
        let name = if path.is_empty() { format!("{kind} {oid}") } else { path.to_owned() };
        self.now = match kind {
            "blob" if path == "patch" => Now::Patch(oid.to_owned(), PatchScan::new(self.gate)),
            "blob" | "commit" | "tag" => match self.gate.scan(&name) {
                Ok(scan) if kind == "commit" && self.left <= COMMIT => Now::Commit(oid.to_owned(), scan, Vec::new()),
                Ok(scan) => Now::Plain(oid.to_owned(), scan),
                Err(secret) => self.refuse(oid.to_owned(), secret),
            },
            _ => Now::Skip,
        };
        if self.left == 0 {
            self.end();
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        let result = match &mut self.now {
            Now::Skip => Ok(()),
            Now::Plain(_, scan) => scan.push(bytes),
            Now::Patch(_, scan) => scan.push(bytes),
            Now::Commit(_, _, read) => {
                read.extend_from_slice(bytes);
                Ok(())
            }
        };
        if let Err(secret) = result {
            self.end_with(secret);
        }
    }

    fn end(&mut self) {
        let (name, result) = match std::mem::replace(&mut self.now, Now::Skip) {
            Now::Skip => return,
            Now::Plain(name, scan) => (name, scan.finish()),
            Now::Patch(name, scan) => (name, scan.finish()),
            Now::Commit(name, mut scan, read) => {
                let pushed = scan.push(&without_signature(read));
                (name, pushed.and_then(|()| scan.finish()))
            }
        };
        if let Err(secret) = result {
            self.found.push((name, secret));
        }
    }

    fn end_with(&mut self, secret: Secret) {
        if let Now::Plain(name, _) | Now::Patch(name, _) | Now::Commit(name, ..) =
            std::mem::replace(&mut self.now, Now::Skip)
        {
            self.found.push((name, secret));
        }
    }

    fn refuse<'g>(&mut self, name: String, secret: Secret) -> Now<'g> {
        self.found.push((name, secret));
        Now::Skip
    }
}

/// Blanks a commit's signature, whose random letters can look like a token.
///
/// Blanks only characters of a signature, so that no other text can hide there.
fn without_signature(mut commit: Vec<u8>) -> Vec<u8> {
    let (mut at, mut inside) = (0, false);
    while at < commit.len() {
        let end = commit[at..].iter().position(|byte| *byte == b'\n').map_or(commit.len(), |end| at + end);
        let line = &mut commit[at..end];
        match line.strip_prefix(b" ") {
            _ if line.starts_with(b"gpgsig") => inside = line.ends_with(b" -----BEGIN SSH SIGNATURE-----"),
            Some(encoded)
                if inside && encoded.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte)) =>
            {
                line.fill(b' ');
            }
            _ => inside = false,
        }
        at = end + 1;
    }
    commit
}
