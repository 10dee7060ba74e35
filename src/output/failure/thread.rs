//! Hints and failures of threads.

use git_handoff::git::quarantine;
use git_handoff::model::hints;
use git_handoff::thread::packet::{Classification, State};
use git_handoff::thread::{adopt, checkout, gate, vouch, worktree};
use git_handoff::{thread, verify};

use super::{Failure, hint_table, refusal};

hint_table! {
    vouch::Error {} else _ => hints::know_writer();
    thread::Error as E {
        E::Unknown(_) => hints::threads();
        E::Exists(_) => hints::other_name();
        E::Gone(thread) | E::Shortened(thread) => hints::verify_thread(thread);
        E::NoCheckpoint { thread, .. } => hints::checkpoints(thread);
        E::NotOurs { thread, .. } => hints::fork(thread);
        E::Tie { run, .. } => hints::verify(run);
    }
    adopt::Error as E {
        E::Recipient { to, .. } => hints::me(to);
        E::UnknownSigner(_) => hints::know_sender();
        E::UnknownLineage { .. } => hints::accept_lineage();
        E::NotThere { .. } | E::Quarantine(quarantine::Error::NoRef { .. }) => hints::ask_to_push();
        E::NoSource(_) => hints::from();
        E::Quarantine(quarantine::Error::Refused(output)) => refusal::of_check(output);
        E::Quarantine(quarantine::Error::Unreachable(_, why)) => refusal::of_remote(why);
    }
    checkout::Error as E {
        E::LocalChanges { marks, .. } => hints::unmark_and_stash(&marks.skipped, &marks.assumed);
    }
    worktree::Error as E {
        E::Quarantine(quarantine::Error::Refused(output)) => refusal::of_check(output);
    }
}

pub(super) fn unsound(unsound: &verify::Unsound) -> Failure {
    Failure::from_error("unsound", unsound).hint(hints::verify_thread(&unsound.thread))
}

pub(super) fn unclean(error: &gate::Error) -> Option<Failure> {
    let gate::Error::Unclean { report, .. } = error else { return None };
    let class = report.classification;
    let exit = if class == Classification::Critical { 4 } else { 3 };
    let stale = report.row("freshness").is_some_and(|row| row.state == State::Failed);
    let hint = match class {
        Classification::Operational if stale => hints::confirm(class.as_str()),
        _ => hints::accept(class.as_str()),
    };
    Some(Failure { exit, report: Some(report.clone()), ..Failure::from_error("packet", error) }.hint(hint))
}

/// The offer is used up, whatever failed afterwards.
pub(super) fn unfinished(error: &adopt::Error) -> Option<Failure> {
    let adopt::Error::Unfinished { thread, .. } = error else { return None };
    Some(Failure { hint: Some(hints::checkout(thread)), ..Failure::from_error("unfinished", error) })
}

pub(super) fn not_written(error: &checkout::Error) -> Option<Failure> {
    match error {
        checkout::Error::OtherBase { base: Some(base), .. } => {
            Some(Failure::from_error("other-base", error).hint(hints::switch(base)))
        }
        checkout::Error::Write(inner) => Some(super::apply::checkout(inner)),
        _ => None,
    }
}
