//! Saves a state as the next checkpoint of a thread, or as the first of a new one.

use super::{Error, Made, OpenThread, begin};
use crate::git::race;
use crate::ledger::chain::Writer;
use crate::model::entry::{Content, Event, RunTie, ThreadCheckpointed};
use crate::model::name::ThreadId;
use crate::verify::{self, Logs, Options};

/// Saves `content`, whose objects are in the repository.
///
/// Of many who save at the same time all do, one after the other. A run that does not verify is not tied. Objects, then a sync, then one swap of the ref: a failure leaves at most objects that
/// git will prune.
pub fn checkpoint(writer: &Writer, thread: &ThreadId, content: &Content, run: Option<RunTie>) -> Result<Made, Error> {
    if let Some(tie) = &run {
        let options = Options { own_key: Some(writer.signer.fingerprint()), ..Options::default() };
        let logs = Logs::read(&writer.store).map_err(super::vouch::Error::from)?;
        verify::tied_run(&writer.store, &logs, (&tie.id, tie.commit), &options)
            .map_err(|finding| Error::Tie { run: tie.id.clone(), finding })?;
    }
    let event = Event::ThreadCheckpointed(ThreadCheckpointed::new(run, content.clone()));
    race::run(|| match OpenThread::find(writer, thread)? {
        Some(open) => open.append(event.clone(), content),
        None => begin(writer, thread, event.clone(), content),
    })
}
