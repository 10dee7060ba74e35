//! How commands come through the gate in front of what runs hold.

use git_handoff::anchor::gate;
use git_handoff::repository::{Environment, Repository};
use git_handoff::run::{Target, Vetted};
use git_handoff::verify::Gate;

use super::{Failure, Output};

/// What a person may insist on.
#[derive(Clone, Copy, Default, clap::Args)]
#[group(skip)]
pub(crate) struct Terms {
    /// Take it although the run is signed by a key that is not trusted here; never what was tampered with
    #[arg(long)]
    pub(crate) accept_untrusted: bool,
}

impl From<Terms> for gate::Terms {
    fn from(terms: Terms) -> Self {
        Self { accept_untrusted: terms.accept_untrusted }
    }
}

/// Opens the gate with the logs at hand alone, for the check of packets, which reaches nobody.
pub(crate) fn at_hand<T>(
    terms: Terms,
    repository: &Repository,
    output: &mut Output,
    pass: impl FnOnce(&Gate<'_>, &mut Output) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let keeper = repository.gatekeeper_at_hand(terms.into(), &mut |text| output.warn(text))?;
    keeper.open(|gate| pass(gate, output))
}

/// Opens the gate of the repository around the current directory; where there is none, there is no gate either.
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

/// Takes a run through the gate, and says on standard error what its reader should know of it.
pub(crate) fn vetted(
    target: &Target,
    terms: Terms,
    repository: &Repository,
    output: &mut Output,
) -> Result<Vetted, Failure> {
    Ok(repository.vetted(target, terms.into(), &mut |text| output.warn(text))?)
}
