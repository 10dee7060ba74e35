//! Asks git which paths it ignores.

use std::collections::BTreeSet;

use gix::bstr::BString;

use super::program::{Error, Git};

/// A path relative to the work tree, so that a name that starts with a colon is no pathspec.
const HERE: &[u8] = b"./";

/// The number of paths in one question.
const AT_ONCE: usize = 50_000;

/// Returns the paths that git ignores, out of some that are relative to the top of the work tree of
/// `git`.
pub fn ignored(git: impl Fn() -> Git, paths: &[impl AsRef<[u8]>]) -> Result<BTreeSet<BString>, Error> {
    let mut ignored = BTreeSet::new();
    for chunk in paths.chunks(AT_ONCE) {
        let input = chunk.iter().flat_map(|path| [HERE, path.as_ref(), b"\0"]).collect::<Vec<_>>().concat();
        let answer = match git().args(["check-ignore", "-z", "--stdin"]).input(input).run() {
            // No path is ignored.
            Err(Error::Failed { code: Some(1), .. }) => continue,
            answer => answer?,
        };
        ignored.extend(answer.split(|byte| *byte == 0).filter_map(|path| path.strip_prefix(HERE)).map(BString::from));
    }
    Ok(ignored)
}
