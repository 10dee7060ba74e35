//! Pushes and deletes refs of remotes.

use super::outgoing::Outgoing;
use super::porcelain::{self, Answer};
use super::program::{self, Git};
use super::remote::{Error, Reach, transport};
use super::store::Store;
use crate::model::digest::Oid;
use crate::model::printable;

/// The most refs in one call of `git push`.
const MOST_PUSHED: usize = 10_000;

/// The most refs with an expected value in one call: each is named on the command line and compared
/// with every ref.
const MOST_LEASED: usize = 500;

/// git's reasons for refusing all refs of a push that do not depend on their number. Pushing refs
/// one by one would fail alike.
const OTHER_REASONS: [&str; 6] =
    ["unpack", "cannot lock ref", "failed to lock", "failed to update ref", "hidden ref", "shallow update not allowed"];

/// One ref to be pushed.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The new value of the remote's ref.
    pub oid: Oid,
    /// The remote's ref.
    pub to: String,
    /// The old value that it may replace although it is no ancestor. Only for refs that are not
    /// chains.
    pub instead_of: Option<Oid>,
    /// True for a ref that must be pushed before the others if they cannot be pushed atomically.
    pub goes_first: bool,
}

/// Pushes refs to a remote, atomically by batch if it can, and returns the result for each.
///
/// If a remote refuses atomic pushes or several refs in one push, the refs that go first are pushed
/// first. Never forces a chain, never pushes other refs, and runs no hooks.
pub fn push(store: &Store, reach: &Reach, to: &str, specs: &[Spec]) -> Result<(Vec<Answer>, String), Error> {
    let mut done = Done::default();
    let leased = specs.iter().filter(|spec| spec.instead_of.is_some()).count();
    let call = Call { store, reach, to };
    for chunk in specs.chunks(if leased > MOST_LEASED { MOST_LEASED } else { MOST_PUSHED }) {
        let (mut first, others): (Vec<Spec>, Vec<Spec>) = chunk.iter().cloned().partition(|spec| spec.goes_first);
        match call.push(chunk, true)? {
            None => {
                // The others are pushed only after all first refs arrived.
                for part in [&first, &others].into_iter().filter(|part| !part.is_empty()) {
                    if done.answers.iter().all(|answer| answer.accepted) {
                        let part_done = call.push(part, false)?.unwrap_or_default();
                        done.extend(call.one_by_one(part, part_done)?);
                    }
                }
            }
            Some(all) => {
                first.extend(others);
                done.extend(call.one_by_one(&first, all)?);
            }
        }
    }
    Ok((done.answers, done.messages))
}

/// The results for some refs.
#[derive(Default)]
struct Done {
    answers: Vec<Answer>,
    /// The remote's messages about rejected refs.
    messages: String,
}

impl Done {
    fn extend(&mut self, other: Self) {
        self.answers.extend(other.answers);
        if !other.messages.is_empty() {
            self.messages = other.messages;
        }
    }

    /// Returns true if the remote refused every ref for the same reason.
    ///
    /// Hosts that accept one ref per push answer like this.
    fn is_refused_as_a_whole(&self) -> bool {
        let Some(first) = self.answers.first() else { return false };
        let all = self.answers.len() > 1
            && first.is_by_remote()
            && self.answers.iter().all(|answer| !answer.accepted && answer.summary == first.summary);
        all && !OTHER_REASONS.iter().any(|words| first.summary.contains(*words) || self.messages.contains(*words))
    }
}

/// A remote as the target of pushes.
#[derive(Clone, Copy)]
struct Call<'a> {
    store: &'a Store,
    reach: &'a Reach,
    to: &'a str,
}

impl Call<'_> {
    /// Pushes refs in one call, or returns `None` if the remote cannot take all or none of them.
    fn push(self, specs: &[Spec], atomic: bool) -> Result<Option<Done>, Error> {
        let Self { store, reach, to } = self;
        let within = reach.isolated_config.as_ref().map_or(store, |config| config.store());
        let refs = specs.iter().map(|spec| (spec.to.as_str(), spec.oid));
        let outgoing = Outgoing::new(within, refs).map_err(Error::Outgoing)?;
        let (text, error) = push_once(transport(store, reach), to, specs, &outgoing, atomic);
        let answers = porcelain::pushed(&text);
        let messages = match error {
            Some(error) if atomic && porcelain::is_not_atomic(&error.to_string()) => return Ok(None),
            Some(program::Error::Failed { stderr, .. }) if answers.iter().any(|answer| !answer.accepted) => {
                printable::lines(&stderr)
            }
            Some(error) => return Err(Error::of_push(to, error, reach)),
            None => String::new(),
        };
        Ok(Some(Done { answers, messages }))
    }

    /// Deletes refs in one call.
    fn delete(self, refs: &[(String, Oid)]) -> Result<Done, Error> {
        let Self { store, reach, to } = self;
        let leases = refs.iter().map(|(name, old)| format!("--force-with-lease={name}:{old}"));
        let call = transport(store, reach).args(PUSH).args(leases).arg("--").arg(to);
        let mut out = Vec::new();
        let result = call.args(refs.iter().map(|(name, _)| format!(":{name}"))).stream(&mut |chunk| {
            out.extend_from_slice(chunk);
            Ok(())
        });
        let answers = porcelain::pushed(&String::from_utf8_lossy(&out));
        let messages = match result {
            Err(program::Error::Failed { stderr, .. }) if answers.iter().any(|answer| !answer.accepted) => stderr,
            Err(error) => return Err(Error::of_push(to, error, reach)),
            Ok(()) => String::new(),
        };
        Ok(Done { answers, messages })
    }

    /// Pushes each ref alone if the remote refused all together. Returns the results so far.
    ///
    /// Stops at the first rejected ref that must go first.
    fn one_by_one(self, specs: &[Spec], together: Done) -> Result<Done, Error> {
        if specs.len() < 2 || !together.is_refused_as_a_whole() {
            return Ok(together);
        }
        let mut done = Done::default();
        for (at, spec) in specs.iter().enumerate() {
            let alone = self.push(std::slice::from_ref(spec), false)?.unwrap_or_default();
            let is_taken = alone.answers.iter().all(|answer| answer.accepted);
            if !is_taken && (at == 0 || spec.goes_first) {
                // A reason that does not depend on the number of refs applies to each.
                let left = specs[at..].iter().map(|rest| &rest.to).collect::<Vec<_>>();
                done.answers.extend(together.answers.into_iter().filter(|answer| left.contains(&&answer.to)));
                done.messages = alone.messages;
                return Ok(done);
            }
            done.extend(alone);
        }
        Ok(done)
    }
}

/// Deletes refs of a remote that still have the expected values, and returns the result for each.
pub fn delete(store: &Store, reach: &Reach, to: &str, refs: &[(String, Oid)]) -> Result<Vec<Answer>, Error> {
    let call = Call { store, reach, to };
    let mut answers = Vec::new();
    for chunk in refs.chunks(MOST_LEASED) {
        let together = call.delete(chunk)?;
        if !together.is_refused_as_a_whole() {
            answers.extend(together.answers);
            continue;
        }
        for (at, alone) in chunk.iter().enumerate() {
            let alone = call.delete(std::slice::from_ref(alone))?;
            if at == 0 && alone.answers.iter().any(|answer| !answer.accepted) {
                answers.extend(together.answers);
                break;
            }
            answers.extend(alone.answers);
        }
    }
    Ok(answers)
}

/// Pushes only the named refs and runs no hooks.
pub(super) const PUSH: [&str; 6] =
    ["push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no", "--no-signed"];

fn push_once(
    call: Git,
    to: &str,
    specs: &[Spec],
    outgoing: &Outgoing,
    atomic: bool,
) -> (String, Option<program::Error>) {
    let mut call = call.args(PUSH);
    if atomic {
        call = call.arg("--atomic");
    }
    for Spec { to: target, instead_of, .. } in specs {
        if let Some(old) = instead_of {
            call = call.arg(format!("--force-with-lease={target}:{old}"));
        }
    }
    let mut out = Vec::new();
    let result = call.arg("--").arg(to).args(outgoing.patterns()).stream(&mut |chunk| {
        out.extend_from_slice(chunk);
        Ok(())
    });
    (String::from_utf8_lossy(&out).into_owned(), result.err())
}
