//! Threads, verified with what anchors hold of them.

use crate::repository::{Repository, Trust};
use crate::thread::verification::{self as threads, ThreadsToVerify, Which};
use crate::verify::ThreadReport;

use super::{Means, gate};

impl Repository {
    /// Begins to verify threads with everything that is here and that the configured anchors hold; `warn` is told of files that are
    /// ignored.
    pub fn verify_anchored_threads(
        &self,
        which: Which<'_>,
        trust: &Trust<'_>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<ThreadsToVerify<'_>, Error> {
        let mut threads = self.verify_threads(which, trust, warn)?;
        let anchors = self.anchors(&[])?;
        if anchors.is_empty() {
            return Ok(threads);
        }
        let (means, keys) = (Means::of(self), threads.owners());
        threads.outside = anchors.iter().filter_map(|anchor| anchor.thread_witness(&means, &keys)).collect();
        Ok(threads)
    }

    /// Verifies one thread so.
    pub fn verify_thread(&self, name: &str, warn: &mut dyn FnMut(&str)) -> Result<ThreadReport, Error> {
        let names = [name.to_owned()];
        let threads = self.verify_anchored_threads(Which::Named(&names), &Trust::default(), warn)?;
        let mut reports = threads.reports();
        Ok(reports.next().expect("a name means a thread")?)
    }
}

/// Why threads cannot be verified.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error(transparent)]
    Anchors(#[from] gate::Error),
    #[error(transparent)]
    Threads(#[from] threads::Error),
}
