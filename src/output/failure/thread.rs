//! Failures of threads.

use git_handoff::git::quarantine;
use git_handoff::model::hints;
use git_handoff::thread::packet::{Classification, State};
use git_handoff::thread::{gate, vouch};
use git_handoff::{thread, verify};

use super::{Failure, refusal};

pub(super) fn unsound(unsound: &verify::Unsound) -> Failure {
    Failure::of("unsound", unsound).hint(hints::verify_thread(&unsound.thread))
}

pub(super) fn gate(error: &gate::Error) -> Failure {
    let failure = Failure::of("packet", error);
    match error {
        gate::Error::Unclean { report, .. } => {
            let class = report.classification;
            let exit = if class == Classification::Critical { 4 } else { 3 };
            let stale = report.row("freshness").is_some_and(|row| row.state == State::Failed);
            let hint = match class {
                Classification::Operational if stale => hints::confirm(class.as_str()),
                _ => hints::accept(class.as_str()),
            };
            Failure { exit, report: Some(report.clone()), ..failure }.hint(hint)
        }
        gate::Error::Altered(_) => Failure { code: "altered", ..failure },
    }
}

pub(super) fn vouch(error: &vouch::Error) -> Failure {
    Failure::of("untrusted", error).hint(hints::know_writer())
}

pub(super) fn thread(error: &thread::Error) -> Failure {
    let failure = Failure::of("thread", error);
    match error {
        thread::Error::Unknown(_) => Failure { code: "unknown-thread", ..failure }.hint(hints::threads()),
        thread::Error::Exists(_) => Failure { code: "thread-exists", ..failure }.hint(hints::other_name()),
        thread::Error::Gone(thread) | thread::Error::Shortened(thread) => {
            Failure { code: "vanished", ..failure }.hint(hints::verify_thread(thread))
        }
        thread::Error::NoCheckpoint { thread, .. } => {
            Failure { code: "unknown-checkpoint", ..failure }.hint(hints::checkpoints(thread))
        }
        thread::Error::NotOurs { thread, .. } => Failure { code: "not-a-writer", ..failure }.hint(hints::fork(thread)),
        thread::Error::Altered(_) => Failure { code: "altered", ..failure },
        thread::Error::Tie { run, .. } => Failure { code: "unsound-run", ..failure }.hint(hints::verify(run)),
    }
}

pub(super) fn adopt(error: &thread::adopt::Error) -> Failure {
    use thread::adopt::Error as E;
    let of = |code| Failure::of(code, error);
    match error {
        E::Descriptor(_) => of("bad-descriptor"),
        E::Signature(_) => of("bad-signature"),
        E::Recipient { to, .. } => of("wrong-recipient").hint(hints::me(to)),
        E::Expired(_) => of("expired"),
        E::UnknownSigner(_) => of("unknown-signer").hint(hints::know_sender()),
        E::UnknownLineage { .. } => of("unknown-signer").hint(hints::accept_lineage()),
        E::NotThere { .. } => of("not-there").hint(hints::ask_to_push()),
        E::Distrusted { .. } | E::OtherKey { .. } | E::Untrusted(_) => of("distrusted"),
        E::ObjectFormat { .. } => of("object-format"),
        E::Used => of("used"),
        E::NoSource(_) => of("no-source").hint(hints::from()),
        E::Forged(_) => of("forged"),
        E::Unsound(_) => of("unsound"),
        E::Quarantine(quarantine::Error::NoRef { .. }) => of("source").hint(hints::ask_to_push()),
        E::Quarantine(quarantine::Error::Refused(said)) => of("source").hint_if(refusal::of_check(said)),
        E::Quarantine(quarantine::Error::Unreachable(_, why)) => of("source").hint_if(refusal::of_remote(why)),
        E::Quarantine(_) => of("source"),
        E::Nonce(_) => of("nonce"),
        // The offer is used up.
        E::Unfinished { thread, .. } => Failure { hint: Some(hints::checkout(thread)), ..of("unfinished") },
    }
}

pub(super) fn checkout(error: &thread::checkout::Error) -> Failure {
    let failure = Failure::of("checkout", error);
    match error {
        thread::checkout::Error::OtherBase { base: Some(base), .. } => {
            Failure { code: "other-base", ..failure }.hint(hints::switch(base))
        }
        thread::checkout::Error::LocalChanges { marks, .. } => {
            let hint = hints::unmark_and_stash(&marks.skipped, &marks.assumed);
            Failure { code: "local-changes", ..failure }.hint(hint)
        }
        thread::checkout::Error::Write(inner) => super::apply::checkout(inner),
        thread::checkout::Error::NoWorktree => Failure { code: "no-worktree", ..failure },
        _ => failure,
    }
}

pub(super) fn worktree(error: &thread::worktree::Error) -> Failure {
    let hint = match error {
        thread::worktree::Error::Quarantine(quarantine::Error::Refused(said)) => refusal::of_check(said),
        _ => None,
    };
    Failure::of("worktree", error).hint_if(hint)
}
