//! Untracked paths that no patch takes, because a known agent leaves them behind.

use std::collections::BTreeSet;

use gix::bstr::{BString, ByteSlice as _};
use gix::glob::wildmatch::Mode;

use crate::model::printable;

/// The most paths to report.
pub const MOST_EXCLUDED: usize = 100;

/// Returns true if a pattern matches a path or a folder above it.
pub(super) fn matches(patterns: &[String], path: &BString) -> bool {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at).chain([path.len()]);
    let matches = |part: &[u8]| {
        let patterns = patterns.iter().map(|pattern| pattern.trim_matches('/'));
        patterns
            .into_iter()
            .any(|pattern| gix::glob::wildmatch(pattern.into(), part.as_bstr(), Mode::NO_MATCH_SLASH_LITERAL))
    };
    !patterns.is_empty() && ends.into_iter().any(|end| matches(&path[..end]))
}

/// The excluded paths that exist: the first ones in order of their bytes.
#[derive(Debug, Default)]
pub(crate) struct Excluded(BTreeSet<BString>);

impl Excluded {
    /// Adds a path. One that is more than can be reported replaces the last.
    pub(super) fn add(&mut self, mut path: BString, is_folder: bool) {
        if is_folder {
            path.push(b'/');
        }
        self.0.insert(path);
        if self.0.len() > MOST_EXCLUDED {
            self.0.pop_last();
        }
    }

    /// Returns the paths as printable text.
    pub(super) fn in_words(self) -> Vec<String> {
        self.0.iter().map(|path| printable::line(&path.to_str_lossy())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_starts_at_the_top_and_covers_what_is_below() {
        let patterns = ["/.aider*".to_owned(), "/.claude/settings.local.json".to_owned()];
        for path in [".aider", ".aider.chat.history.md", ".aider.tags.cache.v4/a/b", ".claude/settings.local.json"] {
            assert!(matches(&patterns, &path.into()), "{path}");
        }
        for path in
            [".claude", ".claude/settings.json", "src/.aider.x", "aider", "x.aider", ".claude/x/settings.local.json"]
        {
            assert!(!matches(&patterns, &path.into()), "{path}");
        }
        assert!(!matches(&[], &".aider".into()));
    }

    #[test]
    fn only_the_first_paths_are_kept() {
        let mut excluded = Excluded::default();
        (0..500).rev().for_each(|at| excluded.add(format!(".aider{at:03}").into(), at == 0));
        let words = excluded.in_words();
        assert_eq!((words.len(), words[0].as_str(), words[99].as_str()), (100, ".aider000/", ".aider099"));
    }
}
