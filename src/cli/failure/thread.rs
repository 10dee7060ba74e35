//! Failures of threads.

use git_handoff::git::quarantine;
use git_handoff::model::hints;
use git_handoff::thread::packet::{Classification, State};
use git_handoff::thread::{gate, vouch};
use git_handoff::{thread, verify};

use super::{Failure, refusal};

impl From<verify::Unsound> for Failure {
    fn from(unsound: verify::Unsound) -> Self {
        Self::of("unsound", &unsound).hint(hints::verify_thread(&unsound.thread))
    }
}

impl From<gate::Error> for Failure {
    fn from(error: gate::Error) -> Self {
        let failure = Self::of("packet", &error);
        match error {
            gate::Error::Unclean { report, .. } => {
                let class = report.classification;
                let exit = if class == Classification::Critical { 4 } else { 3 };
                let stale = report.row("freshness").is_some_and(|row| row.state == State::Failed);
                let hint = match class {
                    Classification::Operational if stale => hints::confirm(class.as_str()),
                    _ => hints::accept(class.as_str()),
                };
                Self { exit, report: Some(report), ..failure }.hint(hint)
            }
            gate::Error::Altered(_) => Self { code: "altered", ..failure },
            gate::Error::Used(_) => Self { code: "unreadable-thread", ..failure },
            gate::Error::Logs(inner) => inner.into(),
            gate::Error::Store(inner) => inner.into(),
        }
    }
}

impl From<vouch::Error> for Failure {
    fn from(error: vouch::Error) -> Self {
        let failure = Self::of("untrusted", &error);
        match error {
            vouch::Error::Tampered(inner) => inner.into(),
            vouch::Error::Untrusted { .. } => failure.hint(hints::know_writer()),
            vouch::Error::Logs(inner) => inner.into(),
            vouch::Error::Ref(inner) => inner.into(),
        }
    }
}

impl From<thread::Error> for Failure {
    fn from(error: thread::Error) -> Self {
        let failure = Self::of("thread", &error);
        match error {
            thread::Error::Unknown(_) => Self { code: "unknown-thread", ..failure }.hint(hints::threads()),
            thread::Error::Exists(_) => Self { code: "thread-exists", ..failure }.hint(hints::other_name()),
            thread::Error::Gone(thread) | thread::Error::Shortened(thread) => {
                Self { code: "vanished", ..failure }.hint(hints::verify_thread(thread))
            }
            thread::Error::NoCheckpoint { thread, .. } => {
                Self { code: "unknown-checkpoint", ..failure }.hint(hints::checkpoints(thread))
            }
            thread::Error::NotOurs { thread, .. } => Self { code: "not-a-writer", ..failure }.hint(hints::fork(thread)),
            thread::Error::Altered(_) => Self { code: "altered", ..failure },
            thread::Error::Packet(inner) => inner.into(),
            thread::Error::Unsound(inner) => inner.into(),
            thread::Error::Vouch(inner) => inner.into(),
            thread::Error::Tie { run, .. } => Self { code: "unsound-run", ..failure }.hint(hints::verify(run)),
            thread::Error::Nonce(_) => Self { code: "nonce", ..failure },
            thread::Error::Checkout(inner) => inner.into(),
            thread::Error::Worktree(inner) => inner.into(),
            thread::Error::Sign(inner) => inner.into(),
            thread::Error::Chain(inner) => inner.into(),
            thread::Error::Store(inner) => inner.into(),
            thread::Error::Ref(inner) => inner.into(),
            thread::Error::Log(inner) => inner.into(),
        }
    }
}

impl From<thread::adopt::Error> for Failure {
    fn from(error: thread::adopt::Error) -> Self {
        use thread::adopt::Error as E;
        let failure = Self::of("adopt", &error);
        let code = match error {
            E::Thread(inner) => return inner.into(),
            E::Packet(inner) => return inner.into(),
            E::Ref(inner) => return inner.into(),
            E::Descriptor(_) => "bad-descriptor",
            E::Signature(_) => "bad-signature",
            E::Recipient { ref to, .. } => {
                return Self { code: "wrong-recipient", ..failure }.hint(hints::me(to));
            }
            E::Expired(_) => "expired",
            E::UnknownSigner(_) => {
                return Self { code: "unknown-signer", ..failure }.hint(hints::know_sender());
            }
            E::UnknownLineage { .. } => {
                return Self { code: "unknown-signer", ..failure }.hint(hints::accept_lineage());
            }
            E::NotThere { .. } => {
                return Self { code: "not-there", ..failure }.hint(hints::ask_to_push());
            }
            E::Distrusted { .. } | E::OtherKey { .. } | E::Untrusted(_) => "distrusted",
            E::ObjectFormat { .. } => "object-format",
            E::Used => "used",
            E::NoSource(_) => return Self { code: "no-source", ..failure }.hint(hints::from()),
            E::Forged(_) => "forged",
            E::Unsound(_) => "unsound",
            E::Quarantine(quarantine::Error::NoRef { .. }) => {
                return Self { code: "source", ..failure }.hint(hints::ask_to_push());
            }
            E::Quarantine(quarantine::Error::Refused(ref said)) => {
                return Self { code: "source", ..failure }.hint_if(refusal::of_check(said));
            }
            E::Quarantine(quarantine::Error::Unreachable(_, ref why)) => {
                return Self { code: "source", ..failure }.hint_if(refusal::of_remote(why));
            }
            E::Quarantine(_) => "source",
            E::Nonce(_) => "nonce",
            E::Record(_) => "unreadable-thread",
            E::Logs(inner) => return inner.into(),
            E::Remotes(inner) => return inner.into(),
            E::Checkout(inner) => return inner.into(),
            E::Unfinished { ref thread, .. } => {
                return Self { code: "unfinished", ..failure }.hint(hints::checkout(thread));
            }
        };
        Self { code, ..failure }
    }
}

impl From<thread::checkout::Error> for Failure {
    fn from(error: thread::checkout::Error) -> Self {
        let failure = Self::of("checkout", &error);
        match error {
            thread::checkout::Error::OtherBase { base: Some(base), .. } => {
                Self { code: "other-base", ..failure }.hint(hints::switch(base))
            }
            thread::checkout::Error::LocalChanges { marks, .. } => {
                let hint = hints::unmark_and_stash(&marks.skipped, &marks.assumed);
                Self { code: "local-changes", ..failure }.hint(hint)
            }
            thread::checkout::Error::NoWorktree => Self { code: "no-worktree", ..failure },
            _ => failure,
        }
    }
}

impl From<thread::worktree::Error> for Failure {
    fn from(error: thread::worktree::Error) -> Self {
        let hint = match &error {
            thread::worktree::Error::Quarantine(quarantine::Error::Refused(said)) => refusal::of_check(said),
            _ => None,
        };
        Self::of("worktree", &error).hint_if(hint)
    }
}
