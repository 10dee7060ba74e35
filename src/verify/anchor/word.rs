//! What logs and places outside say of a run, before it is summed up.

use crate::model::printable::cut;
use crate::verify::Guarantee;
use crate::verify::same_id::OtherRun;
use crate::verify::witness::{Anchored, LOCAL, Standing, Witness};

/// Statements about a run by the logs of one place, or by a place outside.
#[derive(Default)]
pub(super) struct Word {
    /// How it contradicts the run.
    pub(super) findings: Vec<String>,
    /// What a reader should know besides.
    pub(super) notes: Vec<String>,
    /// Which logs of writers are not sound to their end: what else they hold is not known.
    pub(super) broken: Vec<String>,
    /// Which of them could not be read, in a repository that leaves things out.
    pub(super) unread: Vec<String>,
    /// Whether it holds the seal.
    pub(super) holds: bool,
    /// Whether it knows the run at all.
    pub(super) knows: bool,
    /// Other runs that it names by the id of this one.
    pub(super) others: Vec<OtherRun>,
    /// Why it says nothing.
    pub(super) silent: Option<String>,
}

/// An anchor, and its word.
pub(super) struct Weighed {
    pub(super) anchored: Anchored,
    pub(super) word: Word,
}

impl Word {
    /// Adds the other runs that it names.
    pub(super) fn beside(self, others: Vec<OtherRun>) -> Self {
        Self { others, ..self }
    }

    fn standing(&self) -> Standing {
        match self {
            Self { silent: Some(_), .. } => Standing::Unreachable,
            Self { findings, .. } if !findings.is_empty() => Standing::Differs,
            Self { broken, unread, .. } if !(broken.is_empty() && unread.is_empty()) => Standing::Unreachable,
            Self { holds: true, .. } => Standing::Holds,
            _ => Standing::Missing,
        }
    }

    /// Makes it the word of the logs at hand.
    pub(super) fn local(self) -> Weighed {
        let standing = self.standing();
        let detail = match standing {
            Standing::Differs => self.findings.join("; "),
            Standing::Unreachable => [&self.broken[..], &self.unread].concat().join("; "),
            Standing::Missing if self.knows => "a log holds the submission of the run, but not its seal".to_owned(),
            Standing::Missing => "no log at hand holds the run".to_owned(),
            Standing::Holds => String::new(),
        };
        let (name, guarantee, detail) = (LOCAL.to_owned(), Guarantee::Detect, cut(detail));
        Weighed { anchored: Anchored { name, kind: LOCAL, guarantee, standing, detail, since: None }, word: self }
    }

    /// Makes it the word of a place outside.
    pub(super) fn outside(mut self, witness: Witness) -> Weighed {
        let Witness { anchor: name, kind, guarantee, since, notes, .. } = witness;
        let standing = self.standing();
        let detail = match (&self.silent, standing) {
            (Some(why), _) => why.clone(),
            (None, Standing::Differs) => self.findings.join("; "),
            (None, Standing::Unreachable) => [&self.broken[..], &self.unread].concat().join("; "),
            (None, Standing::Missing) if self.knows => {
                "it holds the submission of the run, but not its seal".to_owned()
            }
            (None, Standing::Missing) => "it holds nothing of the run".to_owned(),
            (None, _) => notes.join("; "),
        };
        let detail = cut(detail);
        let named = |text: &String| format!("{name}: {text}");
        self.findings = self.findings.iter().map(named).collect();
        self.notes = self.notes.iter().chain(&notes).map(named).collect();
        let since = since.filter(|_| standing == Standing::Holds);
        Weighed { anchored: Anchored { name, kind, guarantee, standing, detail, since }, word: self }
    }
}
