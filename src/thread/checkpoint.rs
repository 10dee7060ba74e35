//! Saves a state as the next checkpoint of a thread, or the first of a new one.

use super::{Error, Made, OpenThread, begin};
use crate::git::retry;
use crate::ledger::chain::Writer;
use crate::model::entry::{Content, Event, RunTie, ThreadCheckpointed};
use crate::model::name::ThreadId;
use crate::verify::{self, Logs, Options};

/// Saves `content`; its objects must be in the repository.
///
/// Concurrent checkpoints are appended one after the other. A run must verify to be tied. Objects
/// are flushed before the ref moves, so a failure leaves only unreferenced objects.
pub fn checkpoint(writer: &Writer, thread: &ThreadId, content: &Content, run: Option<RunTie>) -> Result<Made, Error> {
    if let Some(tie) = &run {
        let options = Options { own_key: Some(writer.signer.fingerprint()), ..Options::default() };
        let logs = Logs::read(&writer.store).map_err(super::vouch::Error::from)?;
        verify::tied_run(&writer.store, &logs, &tie.id, tie.commit, &options)
            .map_err(|finding| Error::Tie { run: tie.id.clone(), finding })?;
    }
    let event = Event::ThreadCheckpointed(ThreadCheckpointed::new(run, content.clone()));
    retry::run(|| match OpenThread::find(writer, thread)? {
        Some(open) => open.append(event.clone(), content),
        None => begin(writer, thread, event.clone(), content),
    })
}
