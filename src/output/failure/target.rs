//! Hints and failures of finding and verifying a target.

use git_handoff::model::hints;
use git_handoff::model::place::Kind;
use git_handoff::model::printable::cut;
use git_handoff::repository::trust;
use git_handoff::run::query::target;
use git_handoff::share::anchor::gate;
use git_handoff::thread::{operations, target as thread_target, vouch};
use git_handoff::verify::{Barred, Unsound};

use super::{Failure, did_you_mean, hint_table};

hint_table! {
    target::Error as E {
        E::Unknown { near, .. } => did_you_mean(near.as_deref(), hints::runs());
        E::UnknownItem { run, near, .. } => did_you_mean(near.as_deref(), hints::items(run));
        E::Ambiguous { places, kind: Kind::Thread, .. } => places.first().map(hints::verify_thread);
        E::Ambiguous { places, .. } => places.first().map(hints::verify);
    }
    thread_target::Error as E {
        E::Unknown { near, .. } => did_you_mean(near.as_deref(), hints::threads());
    }
    operations::Error as E {
        E::UnknownSigner { name, .. } => hints::fork(name);
        E::NotResumed(thread) => hints::resume(thread);
    }
    trust::Error as E {
        E::NoSigners => hints::verify_by_signer();
        E::Inside { .. } => hints::move_out();
    }
    gate::Error {} else _ => hints::anchors();
    Barred as E {
        E::Tampered { report, .. } | E::NotIntact(report) => hints::verify(&report.run);
        E::Untrusted { report, .. } => hints::verify_or_accept(&report.run);
        E::Conflict { report, .. } => {
            let place = report.remote.as_ref().map(|remote| format!("{remote}/")).unwrap_or_default();
            hints::decide_or_accept(format!("{place}{}", report.run))
        };
    }
}

pub(super) fn vouched(error: &thread_target::Error) -> Option<Failure> {
    match error {
        thread_target::Error::Name { .. } => Some(Failure::usage(error.to_string())),
        thread_target::Error::Unknown { .. } => None,
        thread_target::Error::Vouch { name, source } => {
            let judged = source.is::<vouch::Error>() || source.is::<Unsound>();
            Some(Failure::new(&**source).hint_if(judged.then(|| hints::verify_thread(name))))
        }
    }
}

pub(super) fn packet(error: &operations::Error) -> Option<Failure> {
    let operations::Error::Packet(inner) = error else { return None };
    let failure = Failure::new(&**inner);
    let message = cut(format!("cannot write the packet of the checkpoint: {}", failure.message));
    Some(Failure { message, ..failure })
}
