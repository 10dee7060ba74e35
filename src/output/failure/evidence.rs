//! Hints for failed proofs, exports and readings of a piece of a run.

use git_handoff::ledger::prove;
use git_handoff::model::hints;
use git_handoff::report::export::operations;
use git_handoff::run::import::lineage;
use git_handoff::run::query::piece;

use super::hint_table;

hint_table! {
    operations::Error as E {
        E::NotOfRun { commit, .. } => hints::whence(commit);
    }
    prove::Error as E {
        E::NotSealed(run) => hints::run_or_close(run);
    }
    lineage::Error as E {
        E::NoProduct(text) => hints::show(text.rsplit_once(':').map_or(text.as_str(), |(item, _)| item));
    }
    piece::Error as E {
        E::NoSuchThing { run, .. } => hints::show(run);
        E::NoTranscript { remote: Some(remote), .. } => hints::fetch_transcripts(remote);
    }
}
