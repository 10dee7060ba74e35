//! Checks for secrets before a push.

use crate::git::secret_scan::{self, Range};
use crate::git::store::Store;
use crate::git::work_tree;
use crate::model::any_error::AnyError;
use crate::model::format;

use super::push::{Error, Moved, Request, Status, moving};

/// Refuses to push new objects that contain a secret. The user's own commits are not checked.
pub(super) fn check_secrets(store: &Store, request: &Request, moves: &[Moved]) -> Result<(), AnyError> {
    if moving(moves).next().is_none() {
        return Ok(());
    }
    // An archived run was on the remote before.
    let known = moves.iter().filter(|moved| moved.status != Status::UpToDate);
    let known = known.filter_map(|moved| moved.old).filter(|old| store.contains(*old)).map(|old| old.to_string());
    let mut range = Range { tips: moving(moves).map(|moved| moved.new).collect(), known: known.collect() };
    let call = store.git().args(["for-each-ref", "--format=%(objectname)^{tree}"]);
    let own = call.args(["refs/heads", "refs/remotes", &format::bases()]).run()?;
    let own = String::from_utf8_lossy(&own).into_owned();
    range.known.extend(own.lines().map(str::to_owned));
    range.known.extend(work_tree::head(store).map_err(Error::Head)?.map(|(head, _)| format!("{head}^{{tree}}")));
    range.known.sort();
    range.known.dedup();
    match secret_scan::new_objects(&|| store.git(), &range, &request.gate)?.into_iter().next() {
        Some((_, secret)) => Err(secret.into()),
        None => Ok(()),
    }
}
