//! How commands come through the gate in front of what runs hold.

use git_handoff::anchor::Means;
use git_handoff::anchor::ask_all;
use git_handoff::model::quote::quoted;
use git_handoff::run::Vetted;
use git_handoff::verify::{Admitted, Ask, AtHand, Barred, Gate, Logs, Question, Report, nobody};

use super::target::Target;
use super::verify::{Trust, trust};
use super::{Failure, Output, anchor};
use git_handoff::repository::{Environment, Repository};

/// What a person may insist on.
#[derive(Clone, Copy, Default, clap::Args)]
#[group(skip)]
pub(crate) struct Terms {
    /// Take it although the run is signed by a key that is not trusted here; never what was tampered with
    #[arg(long)]
    pub(crate) accept_untrusted: bool,
}

/// Opens the gate: with the keys, the logs and the anchors that `verify` goes by. Nobody is asked for a password.
pub(crate) fn with<T>(
    terms: Terms,
    repository: &Repository,
    output: &mut Output,
    pass: impl FnOnce(&Gate<'_>, &mut Output) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let anchors = anchor::chosen(&[], repository)?;
    let mut means = Means::of(repository);
    means.reach.prompt = false;
    let ask = |question: &Question<'_>| ask_all(&anchors, &means, question);
    open(terms, repository, &ask, output, pass)
}

/// Opens the gate with the logs at hand alone, for the check of packets, which reaches nobody.
pub(crate) fn at_hand<T>(
    terms: Terms,
    repository: &Repository,
    output: &mut Output,
    pass: impl FnOnce(&Gate<'_>, &mut Output) -> Result<T, Failure>,
) -> Result<T, Failure> {
    open(terms, repository, &nobody, output, pass)
}

fn open<T>(
    terms: Terms,
    repository: &Repository,
    ask: Ask<'_>,
    output: &mut Output,
    pass: impl FnOnce(&Gate<'_>, &mut Output) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let options = trust(&Trust::default(), repository, output)?;
    let logs = Logs::read(&repository.store)?;
    let at_hand = AtHand { logs: &logs, ask };
    let accept_untrusted = terms.accept_untrusted;
    pass(&Gate { store: &repository.store, at_hand: &at_hand, options: &options, accept_untrusted }, output)
}

/// Opens the gate of the repository around the current directory; where there is none, there is no gate either.
pub(crate) fn around<T>(
    environment: &Environment,
    output: &mut Output,
    pass: impl FnOnce(Option<&Gate<'_>>, &mut Output) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if environment.store().is_none() {
        return pass(None, output);
    }
    let repository = Repository::open(environment.clone())?;
    repository.config.warnings.iter().for_each(|warning| output.warn(warning));
    at_hand(Terms::default(), &repository, output, |gate, output| pass(Some(gate), output))
}

/// Reads a run that was let through, and says on standard error what its reader should know of it.
pub(crate) fn read(gate: &Gate<'_>, admitted: &Admitted, output: &mut Output) -> Result<Vetted, Failure> {
    admitted.cautions().iter().for_each(|caution| output.warn(caution));
    Ok(Vetted::read(gate.store, admitted)?)
}

/// Takes a run through an open gate whose story is to be told on: with the bytes of all its products.
pub(crate) fn believed(gate: &Gate<'_>, target: &Target, output: &mut Output) -> Result<Vetted, Failure> {
    read(gate, &gate.admit_whole(&target.run, &target.reference)?, output)
}

/// Takes a run through the gate, and says on standard error what its reader should know of it.
pub(crate) fn vetted(
    target: &Target,
    terms: Terms,
    repository: &Repository,
    output: &mut Output,
) -> Result<Vetted, Failure> {
    with(terms, repository, output, |gate, output| read(gate, &gate.admit(&target.run, &target.reference)?, output))
}

impl From<Barred> for Failure {
    fn from(barred: Barred) -> Self {
        let failure = Self { exit: 3, ..Self::of("not-intact", &barred) };
        let look = |report: &Report| format!("git handoff verify {}", quoted(&report.run));
        match barred {
            Barred::Tampered { report, .. } => Self { code: "tampered", ..failure }.hint(look(&report)),
            Barred::Untrusted { report, .. } => Self { code: "untrusted", ..failure }
                .hint(format!("{}   # to take it all the same: --accept-untrusted", look(&report))),
            Barred::NotIntact(report) => Self { exit: 1, ..failure }.hint(look(&report)),
            Barred::Verify(inner) => inner.into(),
        }
    }
}
