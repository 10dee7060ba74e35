//! Moves and deletes refs of other repositories.

use super::outgoing::Outgoing;
use super::porcelain::{self, Answer};
use super::program::{self, Git};
use super::remote::{Error, Reach, transport};
use super::store::Store;
use crate::model::digest::Oid;
use crate::model::printable;

/// The most refs in one call of `git push`.
const MOST_PUSHED: usize = 10_000;

/// The most of them that are to be moved away from something: each is named on the command line, and held against every ref.
const MOST_LEASED: usize = 500;

/// One ref to be pushed.
#[derive(Clone, Debug)]
pub struct Spec {
    /// What the remote's ref is to point at.
    pub oid: Oid,
    /// The remote's ref.
    pub to: String,
    /// What it may be moved away from although that is no ancestor; only for what is no chain.
    pub instead_of: Option<Oid>,
}

/// Moves refs of a remote, all or none of a batch where it can do that; returns what became of each.
///
/// Nothing is ever forced that is a chain, nothing goes but what the specs name, and no hook of ours runs.
pub fn push(store: &Store, reach: &Reach, to: &str, specs: &[Spec]) -> Result<(Vec<Answer>, String), Error> {
    let mut answers = Vec::new();
    let mut said = String::new();
    let leased = specs.iter().filter(|spec| spec.instead_of.is_some()).count();
    for specs in specs.chunks(if leased > MOST_LEASED { MOST_LEASED } else { MOST_PUSHED }) {
        let within = reach.apart.as_ref().map_or(store, |apart| apart.store());
        let refs = specs.iter().map(|spec| (spec.to.as_str(), spec.oid));
        let outgoing = Outgoing::new(within, refs).map_err(Error::Outgoing)?;
        let push = |atomic| push_once(transport(store, reach), to, (specs, &outgoing), atomic);
        let (mut text, mut error) = push(true);
        let no_atomic = |error: &program::Error| error.to_string().contains("does not support --atomic");
        if error.as_ref().is_some_and(no_atomic) {
            (text, error) = push(false);
        }
        let told = porcelain::pushed(&text);
        match error {
            Some(program::Error::Failed { said: words, .. }) if told.iter().any(|answer| !answer.taken) => {
                said = printable::lines(&words);
            }
            Some(error) => return Err(Error::of_push(to, error, reach)),
            None => {}
        }
        answers.extend(told);
    }
    Ok((answers, said))
}

/// Deletes refs of a remote, each only where it still points at what is said; returns what became of each.
pub fn delete(store: &Store, reach: &Reach, to: &str, refs: &[(String, Oid)]) -> Result<Vec<Answer>, Error> {
    let mut answers = Vec::new();
    for refs in refs.chunks(MOST_LEASED) {
        let leases = refs.iter().map(|(name, old)| format!("--force-with-lease={name}:{old}"));
        let call = transport(store, reach).args(PUSH).args(leases).arg("--").arg(to);
        let mut out = Vec::new();
        let result = call.args(refs.iter().map(|(name, _)| format!(":{name}"))).stream(&mut |chunk| {
            out.extend_from_slice(chunk);
            Ok(())
        });
        let told = porcelain::pushed(&String::from_utf8_lossy(&out));
        match result {
            Err(program::Error::Failed { .. }) if told.iter().any(|answer| !answer.taken) => {}
            Err(error) => return Err(Error::of_push(to, error, reach)),
            Ok(()) => {}
        }
        answers.extend(told);
    }
    Ok(answers)
}

/// Nothing goes but what is named, and no hook of ours runs.
const PUSH: [&str; 6] =
    ["push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no", "--no-signed"];

fn push_once(
    call: Git,
    to: &str,
    (specs, outgoing): (&[Spec], &Outgoing),
    atomic: bool,
) -> (String, Option<program::Error>) {
    let mut call = call.args(PUSH);
    if atomic {
        call = call.arg("--atomic");
    }
    for Spec { to, instead_of, .. } in specs {
        if let Some(old) = instead_of {
            call = call.arg(format!("--force-with-lease={to}:{old}"));
        }
    }
    let mut out = Vec::new();
    let result = call.arg("--").arg(to).args(outgoing.patterns()).stream(&mut |chunk| {
        out.extend_from_slice(chunk);
        Ok(())
    });
    (String::from_utf8_lossy(&out).into_owned(), result.err())
}
