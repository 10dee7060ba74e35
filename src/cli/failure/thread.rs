//! What threads and their handing over can fail of.

use git_handoff::git::quarantine;
use git_handoff::model::quote::quoted;
use git_handoff::packet::Classification;
use git_handoff::thread::{gate, vouch};
use git_handoff::{thread, verify};

use super::Failure;

impl From<verify::Unsound> for Failure {
    fn from(unsound: verify::Unsound) -> Self {
        Self::of("unsound", &unsound).hint(format!("git handoff thread verify {}", quoted(unsound.thread.as_str())))
    }
}

impl From<gate::Error> for Failure {
    fn from(error: gate::Error) -> Self {
        let failure = Self::of("packet", &error);
        match error {
            gate::Error::Unclean { report, .. } => {
                let class = report.classification;
                let exit = if class == Classification::Critical { 4 } else { 3 };
                Self { exit, report: Some(report), ..failure }
                    .hint(format!("to go on all the same, which is recorded: --accept {}", class.as_str()))
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
            vouch::Error::Untrusted { .. } => failure.hint(
                "add the key to the file of handoff.signers if it is good; to insist this once: --accept-untrusted",
            ),
            vouch::Error::Logs(inner) => inner.into(),
            vouch::Error::Ref(inner) => inner.into(),
        }
    }
}

impl From<thread::Error> for Failure {
    fn from(error: thread::Error) -> Self {
        let failure = Self::of("thread", &error);
        match error {
            thread::Error::Unknown(_) => Self { code: "unknown-thread", ..failure }.hint("git handoff thread list"),
            thread::Error::Exists(_) => {
                Self { code: "thread-exists", ..failure }.hint("choose another name: --as NAME")
            }
            thread::Error::Gone(thread) | thread::Error::Shortened(thread) => Self { code: "vanished", ..failure }
                .hint(format!("git handoff thread verify {}", quoted(thread.as_str()))),
            thread::Error::NoCheckpoint { thread, .. } => Self { code: "unknown-checkpoint", ..failure }
                .hint(format!("git handoff thread log {}", quoted(thread.as_str()))),
            thread::Error::NotOurs { thread, .. } => Self { code: "not-a-writer", ..failure }
                .hint(format!("git handoff fork {} --as NAME", quoted(thread.as_str()))),
            thread::Error::Altered(_) => Self { code: "altered", ..failure },
            thread::Error::Packet(inner) => inner.into(),
            thread::Error::Unsound(inner) => inner.into(),
            thread::Error::Vouch(inner) => inner.into(),
            thread::Error::Tie { run, .. } => {
                Self { code: "unsound-run", ..failure }.hint(format!("git handoff verify {}", quoted(run.as_str())))
            }
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
                let hint = format!("if that is you: --me {}", quoted(to));
                return Self { code: "wrong-recipient", ..failure }.hint(hint);
            }
            E::Expired(_) => "expired",
            E::UnknownSigner(_) => {
                return Self { code: "unknown-signer", ..failure }.hint(
                    "add the sender's `git handoff key` line to the file of handoff.signers, or --accept-unknown-signer",
                );
            }
            E::UnknownLineage { .. } => {
                return Self { code: "unknown-signer", ..failure }
                    .hint("ask whose it is; to adopt it all the same, which is recorded: --accept-unknown-signer");
            }
            E::NotThere { .. } => {
                return Self { code: "not-there", ..failure }
                    .hint("whoever offers it has to hand it over first: git handoff push");
            }
            E::Distrusted { .. } | E::OtherKey { .. } | E::Untrusted(_) => "distrusted",
            E::ObjectFormat { .. } => "object-format",
            E::Used => "used",
            E::NoSource(_) => return Self { code: "no-source", ..failure }.hint("say where it is: --from PLACE"),
            E::Forged(_) => "forged",
            E::Unsound(_) => "unsound",
            E::Quarantine(quarantine::Error::NoRef { .. }) => {
                return Self { code: "source", ..failure }
                    .hint("whoever offers it has to hand it over first: git handoff push");
            }
            E::Quarantine(_) => "source",
            E::Nonce(_) => "nonce",
            E::Record(_) => "unreadable-thread",
            E::Logs(inner) => return inner.into(),
            E::Remotes(inner) => return inner.into(),
            E::Checkout(inner) => return inner.into(),
            E::Unfinished { ref thread, .. } => {
                let hint = format!("git handoff resume {} --checkout   # does the rest", quoted(thread.as_str()));
                return Self { code: "unfinished", ..failure }.hint(hint);
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
                Self { code: "other-base", ..failure }.hint(format!("git switch --detach {base}"))
            }
            thread::checkout::Error::LocalChanges(_) => {
                Self { code: "local-changes", ..failure }.hint("git stash --include-untracked")
            }
            thread::checkout::Error::NoWorktree => Self { code: "no-worktree", ..failure },
            _ => failure,
        }
    }
}

impl From<thread::worktree::Error> for Failure {
    fn from(error: thread::worktree::Error) -> Self {
        Self::of("worktree", &error)
    }
}
