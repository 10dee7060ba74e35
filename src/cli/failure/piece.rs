//! Failures of reading a piece of a run.

use git_handoff::model::hints;
use git_handoff::run::piece;

use super::Failure;

impl From<piece::Error> for Failure {
    fn from(error: piece::Error) -> Self {
        match error {
            piece::Error::NotSaid => Self::usage(error.to_string()),
            piece::Error::NoSuchThing { ref run, .. } => Self::of("no-such-thing", &error).hint(hints::show(run)),
            piece::Error::NoCheck(_)
            | piece::Error::NoAttempt { .. }
            | piece::Error::NotEnded(_)
            | piece::Error::NoTranscript { remote: None, .. } => Self::of("no-transcript", &error),
            piece::Error::NoTranscript { remote: Some(ref remote), .. } => {
                Self::of("no-transcript", &error).hint(hints::fetch_transcripts(remote))
            }
            piece::Error::Target(inner) => inner.into(),
            piece::Error::Run(inner) => inner.into(),
            piece::Error::Store(inner) => inner.into(),
            piece::Error::Ref(inner) => inner.into(),
        }
    }
}
