//! Starts the attempts that were dispatched.

use tokio::sync::watch;

use crate::engine::attempt::spec::AttemptSpec;
use crate::engine::attempt::{self, AttemptResult, Ended, Verdict};
use crate::engine::finished_attempt::FinishedAttempt;
use crate::engine::slots::HeldSlots;
use crate::model::item_index::ItemIndex;

use super::{Driver, Running};

impl Driver<'_> {
    /// Starts an attempt whose dispatch is recorded.
    pub(super) fn start(&mut self, at: ItemIndex, spec: AttemptSpec, slots: HeldSlots) {
        let (cancel, cancelled) = watch::channel(false);
        self.running.insert(at, Running { attempt: spec.attempt, cancel, _slots: slots });
        if let Some(short) = &mut self.short {
            short.begin_trial(at);
        }
        let reports = self.reports.clone();
        let pinned = self.run.writer().clock.is_pinned();
        let store = self.run.store().clone();
        let handles = self.machine.handles();
        let result = AttemptResult::not_begun(spec.run.clone(), spec.item.clone(), spec.attempt);
        let folders = self.machine.host.written_folders();
        let attempt = tokio::spawn(async move { attempt::run(&handles, spec, cancelled).await });
        tokio::spawn(async move {
            // The driver gets a report even if the attempt panicked, so that it never waits for
            // ever.
            let mut ended = match attempt.await {
                Ok(Ok(ended)) => ended,
                Ok(Err(wrong)) => {
                    let mut verdict = Verdict::from_error("", &wrong, Verdict::hopeless).unless_short(&folders);
                    verdict.describe_shortage(&folders);
                    Ended::without_work(result, verdict)
                }
                Err(error) => {
                    let lost = format!("the attempt was lost: {error}");
                    Ended::without_work(result, Verdict::failed(lost))
                }
            };
            // Under a pinned clock no time passes, so that equal runs have equal entries.
            if pinned {
                ended.result.forget_times();
            }
            // This fails only if the driver is being dropped.
            let _ = reports.send(FinishedAttempt::take_over(&store, at, ended));
        });
    }
}
