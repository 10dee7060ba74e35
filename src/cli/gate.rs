//! Verification before a command uses the content of a run.

use git_handoff::repository::{Environment, Repository};
use git_handoff::run::query::{Target, VerifiedRun};
use git_handoff::share::anchor::gate;
use git_handoff::verify::Gate;

use super::{Failure, Output};

/// The option to accept an untrusted run.
#[derive(Clone, Copy, Default, clap::Args)]
#[group(skip)]
pub(crate) struct Terms {
    /// Accept a run signed by an untrusted key; a tampered one is always refused
    #[arg(long)]
    pub(crate) accept_untrusted: bool,
}

impl From<Terms> for gate::Terms {
    fn from(terms: Terms) -> Self {
        Self { accept_untrusted: terms.accept_untrusted }
    }
}

/// Creates a gate that uses local logs only, for checking packets offline.
pub(crate) fn at_hand<T>(
    terms: Terms,
    repository: &Repository,
    output: &mut Output,
    pass: impl FnOnce(&Gate<'_>, &mut Output) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let keeper = repository.gatekeeper_at_hand(terms.into(), &mut |text| output.warn(text))?;
    keeper.open(|gate| pass(gate, output))
}

/// Creates the gate of the current repository, or returns `None` outside one.
pub(crate) fn around<T>(
    environment: &Environment,
    output: &mut Output,
    pass: impl FnOnce(Option<&Gate<'_>>, &mut Output) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if environment.store()?.is_none() {
        return pass(None, output);
    }
    let repository = Repository::open(environment.clone())?;
    repository.config.warnings.iter().for_each(|warning| output.warn(warning));
    at_hand(Terms::default(), &repository, output, |gate, output| pass(Some(gate), output))
}

/// Verifies a run, and prints notes for its reader on standard error.
pub(crate) fn vetted(
    target: &Target,
    terms: Terms,
    repository: &Repository,
    output: &mut Output,
) -> Result<VerifiedRun, Failure> {
    Ok(repository.vetted(target, terms.into(), &mut |text| output.warn(text))?)
}
