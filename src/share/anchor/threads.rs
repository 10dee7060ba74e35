//! Verification of threads with anchors.

use crate::model::any_error::AnyError;
use crate::repository::{Repository, Trust};
use crate::thread::verification::{ThreadsToVerify, Which};
use crate::verify::ThreadReport;

use super::missing_runs::{self, Missed};
use super::{Means, ask_all_of_thread};

/// Threads to verify, and missing ones.
pub struct AnchoredThreads<'r> {
    /// The threads to verify.
    pub threads: ThreadsToVerify<'r>,
    /// For all threads: those that a remote showed or an anchor holds and that are missing here,
    /// and the anchors that could not be asked.
    pub missed: Vec<Missed>,
}

impl Repository {
    /// Prepares the verification with everything that is here and that the configured anchors hold;
    /// calls `warn` for ignored files.
    pub fn verify_anchored_threads(
        &self,
        which: Which<'_>,
        trust: &Trust<'_>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<AnchoredThreads<'_>, AnyError> {
        let mut threads = self.verify_threads(which, trust, warn)?;
        let (anchors, means) = (self.anchors(&[])?, Means::from_repository(self));
        let mut missed: Vec<Missed> =
            threads.vanished.iter().map(|vanished| Missed::Deleted(vanished.sentence())).collect();
        if matches!(which, Which::All) {
            let key = self.own_fingerprint();
            let (store, key) = (&self.store, key.as_deref());
            let holders = missing_runs::Holders { store, key, anchors: &anchors, means: &means };
            let lost = missing_runs::look_up_threads(&holders, threads.logs())?;
            // The report of a thread in our own log has this already.
            missed.extend(
                lost.into_iter().filter(|one| !matches!(one, Missed::Gone { reference, .. } if threads.has(reference))),
            );
        }
        threads.ask = Box::new(move |question| ask_all_of_thread(&anchors, &means, question));
        Ok(AnchoredThreads { threads, missed })
    }

    /// Verifies one thread.
    pub fn verify_thread(&self, name: &str, warn: &mut dyn FnMut(&str)) -> Result<ThreadReport, AnyError> {
        let names = [name.to_owned()];
        let AnchoredThreads { threads, .. } =
            self.verify_anchored_threads(Which::Named(&names), &Trust::default(), warn)?;
        let mut reports = threads.reports();
        reports.next().expect("a name means a thread")
    }
}
