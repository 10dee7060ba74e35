//! Failures of finding and verifying a target.

use git_handoff::model::hints;
use git_handoff::model::place::Kind;
use git_handoff::model::printable::cut;
use git_handoff::repository::trust;
use git_handoff::run::target;
use git_handoff::share::anchor::{gate, held};
use git_handoff::thread::{operations, target as thread_target, vouch};
use git_handoff::verify::Barred;

use super::Failure;

impl From<target::Error> for Failure {
    fn from(error: target::Error) -> Self {
        match error {
            target::Error::Unknown { ref near, .. } => {
                Self::of("unknown-run", &error).did_you_mean(near.as_deref(), hints::runs())
            }
            target::Error::UnknownItem { ref run, ref near, .. } => {
                Self::of("unknown-item", &error).did_you_mean(near.as_deref(), hints::items(run))
            }
            target::Error::Ambiguous { ref places, kind, .. } => {
                let failure = Self::of("ambiguous", &error);
                match places.first() {
                    Some(first) if kind == Kind::Thread => failure.hint(hints::verify_thread(first)),
                    Some(first) => failure.hint(hints::verify(first)),
                    None => failure,
                }
            }
            target::Error::Run(inner) => inner.into(),
            target::Error::Ref(inner) => inner.into(),
        }
    }
}

impl From<thread_target::Error> for Failure {
    fn from(error: thread_target::Error) -> Self {
        match error {
            thread_target::Error::Name { .. } => Self::usage(error.to_string()),
            thread_target::Error::Unknown { ref near, .. } => {
                Self::of("unknown-thread", &error).did_you_mean(near.as_deref(), hints::threads())
            }
            thread_target::Error::Vouch { named, source } => {
                let judged = matches!(source, vouch::Error::Tampered(_) | vouch::Error::Untrusted { .. });
                let failure = Self::from(source);
                if judged { failure.hint(hints::verify_thread(named)) } else { failure }
            }
            thread_target::Error::Target(inner) => inner.into(),
            thread_target::Error::Unsound(inner) => inner.into(),
            thread_target::Error::Trust(inner) => inner.into(),
            thread_target::Error::Thread(inner) => inner.into(),
            thread_target::Error::Repository(inner) => inner.into(),
            thread_target::Error::Ref(inner) => inner.into(),
        }
    }
}

impl From<operations::Error> for Failure {
    fn from(error: operations::Error) -> Self {
        match error {
            operations::Error::Summary | operations::Error::Agent => Self::usage(error.to_string()),
            operations::Error::UnknownSigner { ref named, .. } => {
                Self::of("unknown-signer", &error).hint(hints::fork(named))
            }
            operations::Error::TooLarge { ref thread, .. } => Self::of("too-large", &error).hint(hints::resume(thread)),
            operations::Error::Target(inner) => inner.into(),
            operations::Error::Run(inner) => inner.into(),
            operations::Error::Ref(inner) => inner.into(),
            operations::Error::Thread(inner) => inner.into(),
            operations::Error::Adopt(inner) => inner.into(),
            operations::Error::Worktree(inner) => inner.into(),
            operations::Error::Packet(inner) => {
                let failure = Self::from(*inner);
                Self {
                    message: cut(format!("cannot write the packet of the checkpoint: {}", failure.message)),
                    ..failure
                }
            }
            operations::Error::Head(_) => Self::of("head", &error),
            operations::Error::Git(inner) => inner.into(),
            operations::Error::Trust(inner) => inner.into(),
            operations::Error::Repository(inner) => inner.into(),
        }
    }
}

impl From<trust::Error> for Failure {
    fn from(error: trust::Error) -> Self {
        match error {
            trust::Error::NoSigners => Self::of("no-signers", &error).hint(hints::verify_by_signer()),
            trust::Error::Inside { .. } => Self::of("untrusted-file", &error).hint(hints::move_out()),
            trust::Error::Bad { .. } => Self::of("bad-signers", &error),
            trust::Error::Read { .. } => Self::of("io", &error),
        }
    }
}

impl From<gate::Error> for Failure {
    fn from(error: gate::Error) -> Self {
        match error {
            gate::Error::Unknown(_) => Self::of("unknown-anchor", &error).hint(hints::anchors()),
            gate::Error::Setting(inner) => inner.into(),
            gate::Error::Trust(inner) => inner.into(),
            gate::Error::Barred(inner) => inner.into(),
            gate::Error::Verify(inner) => inner.into(),
            gate::Error::Target(inner) => inner.into(),
            gate::Error::Piece(inner) => inner.into(),
            gate::Error::Run(inner) => inner.into(),
        }
    }
}

impl From<Barred> for Failure {
    fn from(barred: Barred) -> Self {
        let failure = Self { exit: 3, ..Self::of("not-intact", &barred) };
        match barred {
            Barred::Tampered { report, .. } => Self { code: "tampered", ..failure }.hint(hints::verify(&report.run)),
            Barred::Untrusted { report, .. } => {
                Self { code: "untrusted", ..failure }.hint(hints::verify_or_accept(&report.run))
            }
            Barred::Conflict { report, .. } => {
                let place = report.remote.as_ref().map(|remote| format!("{remote}/")).unwrap_or_default();
                let name = format!("{place}{}", report.run);
                Self { code: "conflict", ..failure }.hint(hints::decide_or_accept(name))
            }
            Barred::NotIntact(report) => Self { exit: 1, ..failure }.hint(hints::verify(&report.run)),
            Barred::Verify(inner) => inner.into(),
        }
    }
}

impl From<held::Missed> for Failure {
    fn from(missed: held::Missed) -> Self {
        let code = match missed {
            held::Missed::Log(_) => "broken-log",
            held::Missed::Silent { .. } => "anchor-missing",
            held::Missed::Archived { .. } => "archive",
            held::Missed::Gone { .. } | held::Missed::Deleted(_) => "vanished",
        };
        Self { exit: 3, ..Self::of(code, &missed) }
    }
}
