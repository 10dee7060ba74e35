//! Saves a state as the next checkpoint of a thread, or as the first of a new one.

use super::{Error, Made, OpenThread, create};
use crate::chain::Writer;
use crate::model::entry::{Content, Event, RunTie, ThreadCheckpointed};
use crate::model::name::ThreadId;
use crate::verify::{self, Logs, Options};

/// Saves `content`, whose objects are in the repository.
///
/// A run that does not verify is not tied. Objects, then a sync, then one swap of the ref: a failure leaves at most objects that
/// git will prune.
pub fn checkpoint(writer: &Writer, thread: &ThreadId, content: &Content, run: Option<RunTie>) -> Result<Made, Error> {
    if let Some(tie) = &run {
        let options = Options { own_key: Some(writer.signer.fingerprint()), ..Options::default() };
        let logs = Logs::read(&writer.store).map_err(super::vouch::Error::from)?;
        verify::tied_run(&writer.store, &logs, (&tie.id, tie.commit), &options)
            .map_err(|finding| Error::Tie { run: tie.id.clone(), finding })?;
    }
    let event = Event::ThreadCheckpointed(ThreadCheckpointed::new(run, content.clone()));
    match OpenThread::find(writer, thread)? {
        Some(open) => open.append(event, content),
        None => create(writer, thread, event, content),
    }
}
