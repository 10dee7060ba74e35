//! Failures caused by git's lock files.

use std::fs;
use std::path::Path;

use git_handoff::git::porcelain;
use git_handoff::model::hints;
use git_handoff::model::packet::Age;

use super::Failure;

impl Failure {
    /// Names the lock file that caused the failure, if any, with its age and the way out.
    ///
    /// The file does not show whether a git command is still running. A race keeps its exit code
    /// and hint.
    pub(crate) fn naming_lock(mut self) -> Self {
        let path = std::iter::once(&self.message).chain(&self.causes).find_map(|text| porcelain::find_lock(text));
        let Some((lock, age)) = path.and_then(|lock| Some((lock.clone(), age(&lock)?))) else { return self };
        let cause = format!("{} is in the way, {age} old", lock.display());
        if self.code == "lost-race" {
            self.causes.push(cause);
            return self;
        }
        let why = format!("{cause}: a git command goes on there, or one that was killed left it");
        let before = std::mem::replace(&mut self.message, why);
        // git could not check for local changes.
        self.causes.insert(0, if self.code == "local-changes" { "nothing was changed".to_owned() } else { before });
        Self { code: "locked", hint: Some(hints::remove_lock(lock.display())), ..self }
    }
}

/// Returns the age of a file, or `None` if it is gone.
fn age(path: &Path) -> Option<Age> {
    let modified = fs::symlink_metadata(path).ok()?.modified().ok()?;
    Some(Age::seconds(modified.elapsed().unwrap_or_default().as_secs()))
}
