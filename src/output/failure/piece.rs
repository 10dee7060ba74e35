//! Failures of reading a piece of a run.

use git_handoff::model::hints;
use git_handoff::run::query::piece;

use super::Failure;

pub(super) fn piece(error: &piece::Error) -> Option<Failure> {
    Some(match error {
        piece::Error::NotSaid => Failure::usage(error.to_string()),
        piece::Error::NoSuchThing { run, .. } => Failure::of("no-such-thing", error).hint(hints::show(run)),
        piece::Error::NoCheck(_)
        | piece::Error::NoAttempt { .. }
        | piece::Error::NotEnded(_)
        | piece::Error::NoTranscript { remote: None, .. } => Failure::of("no-transcript", error),
        piece::Error::NoTranscript { remote: Some(remote), .. } => {
            Failure::of("no-transcript", error).hint(hints::fetch_transcripts(remote))
        }
        _ => return None,
    })
}
