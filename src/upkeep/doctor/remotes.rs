//! Settings of remotes that let plain git delete shared runs, here or there.

use std::collections::BTreeMap;

use crate::git::program;
use crate::git::store::Store;
use crate::model::any_error::AnyError;
use crate::model::format::REFS;
use crate::model::hints;

use super::Finding;

pub(super) fn examine(store: &Store) -> Result<Vec<Finding>, AnyError> {
    let mut findings = mirrors(store)?;
    findings.extend(prunes(store)?);
    Ok(findings)
}

/// Finds remotes on which a plain `git push` deletes every ref that is missing here.
fn mirrors(store: &Store) -> Result<Vec<Finding>, AnyError> {
    let settings = settings(store, &["--type=bool"], r"^remote\..*\.mirror$")?;
    let mirrors = settings.iter().filter(|(_, value)| value == "true");
    let findings = mirrors.filter_map(|(key, _)| {
        let remote = key.strip_prefix("remote.")?.strip_suffix(".mirror")?;
        let message = format!(
            "`{key}`: a plain `git push` to {remote:?} deletes all runs, threads and logs there that are not here"
        );
        Some(Finding::problem("mirror", message).hint(hints::no_mirror(remote)))
    });
    Ok(findings.collect())
}

/// Finds remotes for which a plain `git fetch` deletes our refs that the remote lacks.
fn prunes(store: &Store) -> Result<Vec<Finding>, AnyError> {
    let switches: BTreeMap<_, _> =
        settings(store, &["--type=bool"], r"^(fetch|remote\..*)\.prune$")?.into_iter().collect();
    let is_on = |key: &str| switches.get(key).map(|value| value == "true");
    let refspecs = settings(store, &[], r"^remote\..*\.fetch$")?;
    let findings = refspecs.iter().filter_map(|(key, refspec)| {
        let remote = key.strip_prefix("remote.")?.strip_suffix(".fetch")?;
        let own = format!("remote.{remote}.prune");
        // The remote's own setting takes precedence.
        let (switch, on) = is_on(&own).map_or_else(|| ("fetch.prune", is_on("fetch.prune")), |on| (&*own, Some(on)));
        if on != Some(true) || !reaches_ours(refspec) {
            return None;
        }
        let message = format!(
            "`{switch}` with {key} = {refspec}: a plain `git fetch` deletes the refs of evidence here that {remote:?} shows no more"
        );
        Some(Finding::problem("prune-evidence", message).hint(hints::no_prune(remote)))
    });
    Ok(findings.collect())
}

/// Returns true if a refspec writes our refs, so that pruning it deletes them.
fn reaches_ours(refspec: &str) -> bool {
    let Some((_, written)) = refspec.split_once(':') else { return false };
    match written.split_once('*') {
        Some((before, _)) => before.starts_with(REFS) || REFS.starts_with(before),
        None => written.starts_with(REFS),
    }
}

/// Returns the values of matching keys, in git's order.
fn settings(store: &Store, options: &[&str], keys: &str) -> Result<Vec<(String, String)>, AnyError> {
    let call = store.git().arg("config").args(options).args(["-z", "--get-regexp", keys]);
    let listed = match call.run() {
        Ok(listed) => String::from_utf8_lossy(&listed).into_owned(),
        Err(program::Error::Failed { .. }) => return Ok(Vec::new()),
        Err(other) => return Err(other.into()),
    };
    let settings = listed.split('\0').filter_map(|setting| setting.split_once('\n'));
    Ok(settings.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
}
