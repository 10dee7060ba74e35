//! Checks that every reader understands the file of packed refs in the same way.
//!
//! git uses a binary search and other programs a linear one. If a name occurs twice, or the order
//! is not as the header says, they find different values. git never writes such a file.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::SystemTime;

use super::store::Store;

/// The metadata that identifies a state of the file.
#[derive(PartialEq, Eq)]
pub(super) struct Seen {
    written: Option<SystemTime>,
    length: u64,
    inode: u64,
}

impl Seen {
    fn from_metadata(meta: &fs::Metadata) -> Self {
        Self { written: meta.modified().ok(), length: meta.len(), inode: std::os::unix::fs::MetadataExt::ino(meta) }
    }
}

/// Refuses a file of packed refs that two readers could read differently. Accepts a missing file.
///
/// If the file is not the one of the last check, the values that gix remembers are read again. gix
/// does so only for a file with a later date, and after a clock was set back it is earlier.
pub fn check(store: &Store) -> Result<(), Error> {
    let path = store.common_dir().join("packed-refs");
    let failed = |error| Error::Read(path.clone(), error);
    let version = match fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        meta => Seen::from_metadata(&meta.map_err(failed)?),
    };
    let mut good = store.known.packed.lock().unwrap_or_else(PoisonError::into_inner);
    if good.as_ref() == Some(&version) {
        return Ok(());
    }
    let bytes = fs::read(&path).map_err(failed)?;
    read(&bytes).map_err(|(line, what)| Error::Ambiguous(path.clone(), line, what))?;
    store.local().refs.force_refresh_packed_buffer().map_err(|error| failed(io::Error::other(error)))?;
    *good = Some(version);
    Ok(())
}

/// Returns the number and fault of the first line that git would not have written.
fn read(bytes: &[u8]) -> Result<(), (usize, String)> {
    let mut names = HashSet::new();
    let mut last: &[u8] = b"";
    let (mut sorted, mut peelable) = (false, false);
    let mut number = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        number += 1;
        let wrong = |what: String| Err((number, what));
        let Some(line) = line.strip_suffix(b"\n") else { return wrong("it has no end".into()) };
        if number == 1 && line.starts_with(b"#") {
            sorted = line.split(|byte| *byte == b' ').any(|word| word == b"sorted");
            continue;
        }
        if let Some(peeled) = line.strip_prefix(b"^") {
            if !(peelable && is_oid(peeled)) {
                return wrong("it peels nothing".into());
            }
            peelable = false;
            continue;
        }
        let at = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
        let (oid, name) = (&line[..at], line.get(at + 1..).unwrap_or_default());
        if !is_oid(oid) || name.is_empty() || name.iter().any(|byte| byte.is_ascii_control() || *byte == b' ') {
            return wrong("it is not an object and a name".into());
        }
        let text = || String::from_utf8_lossy(name).into_owned();
        if !names.insert(name) {
            return wrong(format!("{} is named twice", text()));
        }
        if sorted && name <= last {
            return wrong(format!("{} is not in its place", text()));
        }
        (last, peelable) = (name, true);
    }
    Ok(())
}

fn is_oid(text: &[u8]) -> bool {
    matches!(text.len(), 40 | 64) && text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

errors! {
    /// Why the file of packed refs is refused.
    #[derive(Debug, thiserror::Error)] pub enum Error = "packed-refs";
    Read(PathBuf, #[source] io::Error): "{} could not be read" [.0.display()];
    Ambiguous(PathBuf, usize, String): "{} is ambiguous: line {}: {}" [.0.display(), .1, .2];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_accepts_only_what_git_writes() {
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        let head = "# pack-refs with: peeled fully-peeled sorted \n";
        for good in [
            String::new(),
            head.to_owned(),
            format!("{head}{a} refs/heads/main\n{b} refs/tags/x\n^{a}\n"),
            format!("# pack-refs with: peeled \n{a} refs/tags/x\n{b} refs/heads/main\n"),
            format!("{a} refs/heads/z\n{b} refs/heads/b\u{fc}\n"),
        ] {
            assert_eq!(read(good.as_bytes()), Ok(()), "{good}");
        }
        for (bad, line, what) in [
            (format!("{head}{a} refs/x\n{b} refs/x\n"), 3, "named twice"),
            (format!("{a} refs/x\n{b} refs/y\n{b} refs/x\n"), 3, "named twice"),
            (format!("{head}{a} refs/y\n{b} refs/x\n"), 3, "not in its place"),
            (format!("{head}{a} refs/y"), 2, "no end"),
            (format!("{head}{a} refs/y\r\n"), 2, "an object and a name"),
            (format!("{a} refs/y\n# {b} refs/x\n"), 2, "an object and a name"),
            (format!("{head}{a}  refs/y\n"), 2, "an object and a name"),
            (format!("{head}{} refs/y\n", a.to_uppercase()), 2, "an object and a name"),
            (format!("{head}^{a}\n"), 2, "peels nothing"),
            (format!("{head}{a} refs/y\n^{a}\n^{b}\n"), 4, "peels nothing"),
            (format!("{a} refs/y\n\n"), 2, "an object and a name"),
        ] {
            let found = read(bad.as_bytes()).expect_err(&bad);
            assert!(found.0 == line && found.1.contains(what), "{bad}: {found:?}");
        }
    }
}
