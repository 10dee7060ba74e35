//! Saves a state as the next checkpoint of a thread, or as the first of a new one.

use super::{Error, Made, OpenThread, create};
use crate::chain::Writer;
use crate::model::entry::{Content, Event, RunTie, ThreadCheckpointed};
use crate::model::name::ThreadId;

/// Saves `content`, whose objects are in the repository.
///
/// Objects, then a sync, then one swap of the ref: a failure leaves at most objects that git will prune.
pub fn checkpoint(writer: &Writer, thread: &ThreadId, content: &Content, run: Option<RunTie>) -> Result<Made, Error> {
    let event = Event::ThreadCheckpointed(ThreadCheckpointed::new(run, content.clone()));
    match OpenThread::find(writer, thread)? {
        Some(open) => open.append(event, content),
        None => create(writer, thread, event, content),
    }
}
