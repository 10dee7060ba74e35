//! The answers of logs and external anchors, before they are combined.

use crate::model::printable::cut;
use crate::verify::Guarantee;
use crate::verify::same_id::OtherRun;
use crate::verify::witness::{Anchored, LOCAL, Standing, Witness};

#[derive(Default)]
pub(super) struct AnchorAnswer {
    pub(super) findings: Vec<String>,
    /// Other seals of this run in writers' logs.
    pub(super) other_seals: Vec<String>,
    pub(super) notes: Vec<String>,
    /// Writers' logs that are not sound to their end; the rest of them is unknown.
    pub(super) broken: Vec<String>,
    /// Writers' logs that a partial clone does not have in full.
    pub(super) unread: Vec<String>,
    /// True if the place holds the seal.
    pub(super) holds: bool,
    /// True if the place knows the run at all.
    pub(super) knows: bool,
    pub(super) others: Vec<OtherRun>,
    /// The reason why the place gave no answer.
    pub(super) silent: Option<String>,
}

pub(super) struct JudgedAnchor {
    pub(super) anchored: Anchored,
    pub(super) answer: AnchorAnswer,
}

impl AnchorAnswer {
    pub(super) fn with_others(self, others: Vec<OtherRun>) -> Self {
        Self { others, ..self }
    }

    fn standing(&self) -> Standing {
        match self {
            Self { silent: Some(_), .. } => Standing::Unreachable,
            Self { findings, other_seals, .. } if !(findings.is_empty() && other_seals.is_empty()) => Standing::Differs,
            Self { broken, unread, .. } if !(broken.is_empty() && unread.is_empty()) => Standing::Unreachable,
            Self { holds: true, .. } => Standing::Holds,
            _ => Standing::Missing,
        }
    }

    /// Returns the answer as that of the logs at hand.
    pub(super) fn local(self) -> JudgedAnchor {
        let standing = self.standing();
        let detail = match standing {
            Standing::Differs => [&self.findings[..], &self.other_seals].concat().join("; "),
            Standing::Unreachable => [&self.broken[..], &self.unread].concat().join("; "),
            Standing::Missing if self.knows => "a log holds the submission of the run, but not its seal".to_owned(),
            Standing::Missing => "no log at hand holds the run".to_owned(),
            Standing::Holds => String::new(),
        };
        let (name, guarantee, detail) = (LOCAL.to_owned(), Guarantee::Detect, cut(detail));
        JudgedAnchor {
            anchored: Anchored { name, kind: LOCAL.to_owned(), guarantee, standing, detail, since: None },
            answer: self,
        }
    }

    /// Returns the answer as that of an external anchor.
    pub(super) fn outside(mut self, witness: Witness) -> JudgedAnchor {
        let Witness { anchor: name, kind, guarantee, since, notes, .. } = witness;
        self.findings.append(&mut self.other_seals);
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
        let prefixed = |text: &String| format!("{name}: {text}");
        self.findings = self.findings.iter().map(prefixed).collect();
        self.notes = self.notes.iter().chain(&notes).map(prefixed).collect();
        let since = since.filter(|_| standing == Standing::Holds);
        JudgedAnchor { anchored: Anchored { name, kind, guarantee, standing, detail, since }, answer: self }
    }
}
