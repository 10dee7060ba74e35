//! Finds the runs and threads whose log only another key can write, as after a rotation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::git::refs;
use crate::git::store::KeepGuard;
use crate::ledger::sign::Signer;
use crate::ledger::{chain, log};
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::model::entry::Subject;
use crate::model::log_name::LogName;
use crate::model::name::RunId;
use crate::repository::Repository;

use super::compare::RemoteRefs;
use super::push_logs::{Logs, Outbound, place_of};
use super::remote_logs::logs_of;
use super::shared_log::SharedLog;
use super::{Place, push_refs};

/// A run or thread with statements of a key that no shared log has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Unwritten {
    /// The key that can write them.
    pub key: String,
    /// The run or thread.
    #[serde(flatten)]
    pub place: Place,
}

impl Outbound<'_> {
    /// Returns what is pushed and has statements in the private log of another key here, but in
    /// none of the given logs of that key.
    pub(super) fn unwritten(&self, shared: &[(LogName, Oid)]) -> Result<Vec<Unwritten>, log::Error> {
        let own = self.writer.map(|writer| writer.signer.fingerprint());
        let mut unwritten = Vec::new();
        for key in log::keys(self.store)?.into_iter().filter(|key| Some(key) != own.as_ref()) {
            let logs = shared.iter().filter(|(name, _)| name.key() == key);
            let read = logs.filter_map(|(name, head)| {
                let (_, links) = chain::read_at(self.store, &name.reference(), *head).ok()?;
                Some(SharedLog::new(name.clone(), *head, &links))
            });
            let shared_logs: Vec<SharedLog> = read.collect();
            let statements = self.to_say(&key)?;
            let lacking = statements
                .iter()
                .filter(|(about, events)| shared_logs.iter().all(|log| !log.lacks(about, events).is_empty()));
            let places = lacking.filter_map(|(about, _)| place_of(about));
            unwritten.extend(places.map(|place| Unwritten { key: key.clone(), place }));
        }
        Ok(unwritten)
    }
}

/// Returns what is pushed and stays without a log on the remote. Fetches logs of its keys from
/// there, which another clone may have pushed.
pub(super) fn after_push(
    outbound: &Outbound<'_>,
    logs: &Logs,
    there: &RemoteRefs<'_>,
    guard: &mut KeepGuard,
) -> Result<Vec<Unwritten>, AnyError> {
    let unwritten = outbound.unwritten(&logs.heads)?;
    let mut shared = logs.heads.clone();
    for key in unwritten.iter().map(|one| &one.key).collect::<BTreeSet<_>>() {
        for (name, head) in logs_of(&there.has, key) {
            if there.bring(&Place::of_log(&name), head, guard)?.is_none() {
                shared.push((name, head));
            }
        }
    }
    if shared.len() == logs.heads.len() { Ok(unwritten) } else { Ok(outbound.unwritten(&shared)?) }
}

impl Repository {
    /// Returns the runs among these that no shared log here names, and of which only another key
    /// can write one.
    pub fn unwritten(&self, runs: &BTreeSet<RunId>) -> Result<Vec<Unwritten>, AnyError> {
        let (writer, ours) = (self.log_writer()?, push_refs::list_local(&self.store)?);
        let (store, writer, folds, firsts) = (&self.store, writer.as_ref(), false, std::cell::RefCell::default());
        let (there, theirs) = (&BTreeMap::new(), &BTreeMap::new());
        let handed = Some(runs.iter().cloned().map(Subject::Run).collect());
        let outbound = Outbound { store, writer, handed, ours: &ours, there, theirs, folds, firsts };
        let mut shared = Vec::new();
        for name in log::travelling(store)? {
            shared.extend(refs::read(store, &name.reference())?.map(|head| (name, head)));
        }
        Ok(outbound.unwritten(&shared)?)
    }

    /// Returns the value of `handoff.signingKey` for a key whose file is where one would look: the
    /// repository's own, or one in `~/.ssh`.
    pub fn find_key(&self, fingerprint: &str) -> Option<String> {
        if is_key_file(&self.store.common_dir().join("handoff/signing_key"), fingerprint) {
            return Some(String::new());
        }
        let files = std::fs::read_dir(self.environment.expand(Path::new("~/.ssh"))).ok()?;
        let mut files: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
        files.sort();
        let private = files.iter().filter_map(|file| Some(file.to_str()?.strip_suffix(".pub")?.to_owned()));
        private.into_iter().find(|file| is_key_file(&PathBuf::from(format!("{file}.pub")), fingerprint))
    }
}

fn is_key_file(file: &Path, fingerprint: &str) -> bool {
    Signer::from_file(file).is_ok_and(|signer| signer.fingerprint() == fingerprint)
}
