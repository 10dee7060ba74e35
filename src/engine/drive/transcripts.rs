//! Drives a run, and pushes its transcripts meanwhile if that was requested.

use tokio::sync::watch;

use crate::engine::event::Progress;
use crate::engine::machine::Machine;
use crate::engine::run_lock::RunLock;
use crate::engine::transcript_push::TranscriptPush;
use crate::run::operate::OpenRun;

use super::{Error, Joining, Settled, drive_locked};

/// Drives a run until it settles or is interrupted.
///
/// A run that a crash interrupted is continued: its attempts are salvaged, recorded and dispatched
/// again. After an error the run is as its last entry says, no process is left running, and driving
/// it again continues it.
pub(crate) async fn drive(
    run: &mut OpenRun,
    machine: Machine,
    mut joining: Option<Joining<'_>>,
    interrupt: watch::Receiver<bool>,
    tell: &mut dyn FnMut(Progress<'_>),
) -> Result<Settled, Error> {
    let _lock = RunLock::take(&run.store().common_dir(), run.id())?;
    let transcripts = joining.as_mut().and_then(|joining| joining.transcripts.take()).map(TranscriptPush::start);
    let result = Box::pin(drive_locked(run, machine, joining, interrupt, &mut |progress: Progress<'_>| {
        transcripts.iter().flat_map(TranscriptPush::warnings).for_each(|warning| tell(Progress::Note(warning)));
        tell(progress);
    }))
    .await;
    let Some(mut transcripts) = transcripts else { return result };
    // Other runs of this process are driven meanwhile.
    let last_push = tokio::task::spawn_blocking(move || {
        transcripts.finish();
        transcripts
    });
    if let Ok(pushed) = last_push.await {
        pushed.warnings().for_each(|warning| tell(Progress::Note(warning)));
    }
    result
}
