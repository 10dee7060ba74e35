//! Features of the program that a build can leave out.

/// The error about a feature that this build lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this build of git-handoff lacks the feature `{0}`")]
pub struct LeftOut(pub &'static str);
