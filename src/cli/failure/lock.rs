//! Lock files of git that are in the way, by what git says of them.

use std::fs;
use std::path::Path;

use git_handoff::git::porcelain;
use git_handoff::model::hints;
use git_handoff::model::packet::Age;

use super::Failure;

impl Failure {
    /// Names the lock file that it failed of, if there is one, with its age and the way out.
    ///
    /// Whether a git command goes on there cannot be told from the file. A race keeps its exit code
    /// and its hint.
    pub(crate) fn naming_lock(mut self) -> Self {
        let named = std::iter::once(&self.message).chain(&self.causes).find_map(|text| porcelain::lock_named(text));
        let Some((lock, age)) = named.and_then(|lock| Some((lock.clone(), age(&lock)?))) else { return self };
        let shown = format!("{} is in the way, {age} old", lock.display());
        if self.code == "lost-race" {
            self.causes.push(shown);
            return self;
        }
        let why = format!("{shown}: a git command goes on there, or one that was killed left it");
        let before = std::mem::replace(&mut self.message, why);
        // git could not look for local changes.
        self.causes.insert(0, if self.code == "local-changes" { "nothing was changed".to_owned() } else { before });
        Self { code: "locked", hint: Some(hints::remove_lock(lock.display())), ..self }
    }
}

/// Returns the age of a file, or `None` if it is gone.
fn age(path: &Path) -> Option<Age> {
    let modified = fs::symlink_metadata(path).ok()?.modified().ok()?;
    Some(Age::seconds(modified.elapsed().unwrap_or_default().as_secs()))
}
