//! Remembers the remotes that runs were pushed to.

use std::io;

use crate::git::remote::{self, Reach};
use crate::git::store::Store;
use crate::git::{history, refs};
use crate::ledger::chain::{self, Writer};
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::name::RunId;
use crate::model::time::Moment;
use crate::run::query::driver_lock::is_driven_here;
use crate::run::query::pushed::Pushed as Record;
use crate::run::query::sharing::Home;
use crate::run::query::view::is_sealed;

use super::Kind;
use super::push::{Moved, Pushed, Request};

/// Records the remote with each pushed run that is not sealed, so that commands read it.
pub(super) fn remember(
    store: &Store,
    reach: &Reach,
    request: &Request,
    pushed: &Pushed,
    writer: Option<&Writer>,
) -> io::Result<()> {
    let at = writer.map(|writer| writer.clock.now());
    for moved in pushed.moved.iter().filter(|moved| moved.place.kind == Kind::Run) {
        remember_one(store, reach, request, moved, at)?;
    }
    Ok(())
}

fn remember_one(store: &Store, reach: &Reach, request: &Request, moved: &Moved, at: Option<Moment>) -> io::Result<()> {
    let Ok(run) = RunId::parse(&moved.place.name) else { return Ok(()) };
    let reference = format::run_ref(&run);
    let is_sealed = is_sealed(store, &reference);
    let is_here = refs::read(store, &reference).is_ok_and(|head| head.is_some());
    if !is_here || (is_sealed && Record::read(store, &run).is_none()) {
        return Ok(());
    }
    let first = history::first(store, moved.new).and_then(|first| chain::decode(store, first).ok());
    let Some(first) = first else { return Ok(()) };
    let mut record = Record::load(store, &run, first.hash);
    record.note_push(&request.remote.given, at);
    let home = Home::find(store).ok();
    let is_over = !is_driven_here(&store.common_dir(), &run);
    if let Some(alone) = record.alone.take_if(|alone| is_over && Some(alone.home) == home) {
        // The beat says that the remote lacks what was done here. It is harmless if it stays.
        let beat = format!("{}{}", format::driver_refs(&run), alone.id);
        let found = remote::list(store, reach, &request.remote.given, &beat).unwrap_or_default();
        let found: Vec<(String, Oid)> = found.into_iter().map(|(oid, name)| (name, oid)).collect();
        if !found.is_empty() {
            let _ = remote::delete(store, reach, &request.remote.given, &found);
        }
    }
    record.keep(store, &run)
}
