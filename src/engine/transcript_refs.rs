//! Keeps transcripts and salvaged work beside the chain, each kind under a ref of its own.
//!
//! Nothing in the chain depends on these refs; both may be deleted.

use super::finished_attempt::FinishedAttempt;
use crate::git::refs;
use crate::git::retry;
use crate::git::store::{Edit, Store};
use crate::model::any_error::AnyError;
use crate::model::format;
use crate::run::operate::OpenRun;

/// Adds the transcripts and the salvaged work of attempts to their refs.
pub(super) fn add_all(run: &OpenRun, finished: &[FinishedAttempt]) -> Result<(), AnyError> {
    let mut transcripts = Vec::new();
    let mut salvage = Vec::new();
    for one in finished.iter().map(|finished| &finished.result) {
        let path = format::transcript_path(&one.item, one.attempt);
        if let Some(oid) = one.transcript.as_ref().and_then(|stored| stored.oid) {
            transcripts.push((path.clone(), Edit::Blob(oid)));
        }
        for (check, before) in [(&one.check, false), (&one.check_before, true)] {
            if let Some(oid) = check.as_ref().and_then(|check| check.oid) {
                transcripts.push((format::check_path(&one.item, one.attempt, before), Edit::Blob(oid)));
            }
        }
        if let Some(tree) = one.salvaged {
            salvage.push((path, Edit::Tree(tree)));
        }
        if let Some(bundle) = one.commits {
            salvage.push((format::commits_path(&one.item, one.attempt), Edit::Blob(bundle)));
        }
    }
    add(run.store(), &format::transcripts_ref(run.id()), &transcripts)?;
    add(run.store(), &format::salvage_ref(run.id()), &salvage)
}

/// Edits the tree of one of these refs, and tries again if another process moved it meanwhile.
pub(super) fn add(store: &Store, name: &str, edits: &[(String, Edit)]) -> Result<(), AnyError> {
    if edits.is_empty() {
        return Ok(());
    }
    retry::run(|| {
        let before = refs::read(store, name)?;
        let mut batch = store.batch();
        let tree = batch.edit_tree(before, edits)?;
        let _kept = batch.keep()?;
        match before {
            Some(before) => Ok(refs::advance(store, name, before, tree)?),
            None => Ok(refs::begin(store, name, tree)?),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::scratch_repo::ScratchRepo;
    use crate::git::tree;

    #[test]
    fn writers_at_the_same_time_lose_nothing() {
        let scratch = ScratchRepo::new("sha1").expect("there is space");
        let store = scratch.store();
        let name = format!("{}r", format::TRANSCRIPT_REFS);
        let write = |writer: u32| {
            for at in 0..20 {
                add(store, &name, &[(format!("{writer}/{at}"), Edit::Bytes(b"x".to_vec()))]).expect("it is written");
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|writer| _ = scope.spawn(move || write(writer))));
        let tree = refs::read(store, &name).expect("it is readable").expect("it is there");
        assert_eq!(tree::files_below(store, tree).expect("it is readable").len(), 80);
    }
}
