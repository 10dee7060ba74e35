//! Failures of finding and verifying a target.

use git_handoff::model::hints;
use git_handoff::model::place::Kind;
use git_handoff::model::printable::cut;
use git_handoff::repository::trust;
use git_handoff::run::query::target;
use git_handoff::share::anchor::{gate, held};
use git_handoff::thread::{operations, target as thread_target, vouch};
use git_handoff::verify::{Barred, Unsound};

use super::Failure;

pub(super) fn target(error: &target::Error) -> Option<Failure> {
    Some(match error {
        target::Error::Unknown { near, .. } => {
            Failure::of("unknown-run", error).did_you_mean(near.as_deref(), hints::runs())
        }
        target::Error::UnknownItem { run, near, .. } => {
            Failure::of("unknown-item", error).did_you_mean(near.as_deref(), hints::items(run))
        }
        target::Error::Ambiguous { places, kind, .. } => {
            let failure = Failure::of("ambiguous", error);
            match places.first() {
                Some(first) if *kind == Kind::Thread => failure.hint(hints::verify_thread(first)),
                Some(first) => failure.hint(hints::verify(first)),
                None => failure,
            }
        }
        _ => return None,
    })
}

pub(super) fn thread_target(error: &thread_target::Error) -> Failure {
    match error {
        thread_target::Error::Name { .. } => Failure::usage(error.to_string()),
        thread_target::Error::Unknown { near, .. } => {
            Failure::of("unknown-thread", error).did_you_mean(near.as_deref(), hints::threads())
        }
        thread_target::Error::Vouch { named, source } => {
            let judged = source.is::<vouch::Error>() || source.is::<Unsound>();
            let failure = Failure::new(&**source);
            if judged { failure.hint(hints::verify_thread(named)) } else { failure }
        }
    }
}

pub(super) fn operations(error: &operations::Error) -> Failure {
    match error {
        operations::Error::Summary | operations::Error::Agent => Failure::usage(error.to_string()),
        operations::Error::UnknownSigner { named, .. } => Failure::of("unknown-signer", error).hint(hints::fork(named)),
        operations::Error::NotResumed(thread) => Failure::of("not-resumed", error).hint(hints::resume(thread)),
        operations::Error::Packet(inner) => {
            let failure = Failure::new(&**inner);
            Failure {
                message: cut(format!("cannot write the packet of the checkpoint: {}", failure.message)),
                ..failure
            }
        }
        operations::Error::Head(_) => Failure::of("head", error),
    }
}

pub(super) fn trust(error: &trust::Error) -> Failure {
    match error {
        trust::Error::NoSigners => Failure::of("no-signers", error).hint(hints::verify_by_signer()),
        trust::Error::Inside { .. } => Failure::of("untrusted-file", error).hint(hints::move_out()),
        trust::Error::Bad { .. } => Failure::of("bad-signers", error),
        trust::Error::Read { .. } => Failure::of("io", error),
    }
}

pub(super) fn gate(error: &gate::Error) -> Failure {
    Failure::of("unknown-anchor", error).hint(hints::anchors())
}

pub(super) fn barred(barred: &Barred) -> Option<Failure> {
    let failure = Failure { exit: 3, ..Failure::of("not-intact", barred) };
    Some(match barred {
        Barred::Tampered { report, .. } => Failure { code: "tampered", ..failure }.hint(hints::verify(&report.run)),
        Barred::Untrusted { report, .. } => {
            Failure { code: "untrusted", ..failure }.hint(hints::verify_or_accept(&report.run))
        }
        Barred::Conflict { report, .. } => {
            let place = report.remote.as_ref().map(|remote| format!("{remote}/")).unwrap_or_default();
            let name = format!("{place}{}", report.run);
            Failure { code: "conflict", ..failure }.hint(hints::decide_or_accept(name))
        }
        Barred::NotIntact(report) => Failure { exit: 1, ..failure }.hint(hints::verify(&report.run)),
        Barred::Verify(_) => return None,
    })
}

pub(super) fn missed(missed: &held::Missed) -> Failure {
    let code = match missed {
        held::Missed::Log(_) => "broken-log",
        held::Missed::Silent { .. } => "anchor-missing",
        held::Missed::Archived { .. } => "archive",
        held::Missed::Gone { .. } | held::Missed::Deleted(_) => "vanished",
    };
    Failure { exit: 3, ..Failure::of(code, missed) }
}
