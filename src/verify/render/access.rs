//! The places that workers could reach besides their worktrees.

use crate::model::manifest::places_in_words;
use crate::verify::Report;

impl Report {
    /// Returns the words of the last line about them.
    pub(super) fn access_in_words(&self) -> Vec<String> {
        let home = self.real_home.then(|| "home: real".to_owned());
        let count = self.writable.len();
        home.into_iter().chain((count > 0).then(|| places_in_words("writable", count))).collect()
    }
}
