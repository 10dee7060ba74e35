//! Hints for failures of runs that are shared through a remote.

use git_handoff::model::hints;
use git_handoff::run::operate::{self, drivers, sharing};

use super::hint_table;

hint_table! {
    sharing::Error as E {
        E::Nowhere { remote, .. } => hints::submit_then_share(remote);
        E::Other { run, .. } | E::NotARun(run) => hints::verify(run);
        E::Elsewhere { run, known: Some(known), .. } => hints::run_via(run, known);
        E::NoBase { remote, base, .. } => hints::push_base(remote, base);
    }
    drivers::Error as E {
        E::NotShared(run) => hints::run_via(run, "REMOTE");
    }
    operate::Denied as E {
        E::Shared(run) => hints::run_via(run, "REMOTE");
        E::Offline { .. } => hints::without_offline();
        E::Unread { .. } => hints::with_offline();
        E::Twice { run, remote, .. } => hints::keep_one(run, remote);
    }
}
