//! What operations on anchors answer, as JSON has it.

use serde::Serialize;

use crate::model::digest::Digest;
use crate::verify::{Anchored, Guarantee, LOCAL, Report, Standing, Timed};

use super::{Anchor, Error, Published};

/// An anchor: what `anchor add --json` prints, and one of those that `anchor list --json` does.
#[derive(Clone, Debug, Serialize)]
pub struct AnchorShown {
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<&'static str>,
    /// Its name in the configuration.
    pub name: String,
    /// Its kind.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// How strong its word is, or `time`.
    pub guarantee: &'static str,
    /// Where it is.
    pub place: String,
}

impl AnchorShown {
    /// Answers how an anchor was configured.
    pub(super) fn added(anchor: &Anchor) -> Self {
        Self { schema: Some("git-handoff.anchor/1"), ..Self::of(anchor) }
    }

    fn of(anchor: &Anchor) -> Self {
        let (name, kind, guarantee) = (anchor.name.clone(), anchor.kind(), anchor.strength());
        Self { schema: None, name, kind, guarantee, place: anchor.place() }
    }

    /// The logs in the repository, which are always there.
    fn local() -> Self {
        let place = "the logs in this repository".to_owned();
        Self { schema: None, name: LOCAL.to_owned(), kind: LOCAL, guarantee: Guarantee::Detect.as_str(), place }
    }
}

/// The anchors that `verify` asks: what `anchor list --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct AnchorList {
    schema: &'static str,
    /// The logs in the repository first.
    pub anchors: Vec<AnchorShown>,
}

impl AnchorList {
    pub(super) fn of(anchors: &[Anchor]) -> Self {
        let anchors = std::iter::once(AnchorShown::local()).chain(anchors.iter().map(AnchorShown::of)).collect();
        Self { schema: "git-handoff.anchors/1", anchors }
    }
}

/// What was handed over: what `anchor push --json` prints.
#[derive(Debug, Serialize)]
pub struct AnchorPush {
    schema: &'static str,
    /// What became of each thing that the anchors are to hold, up to the anchor that failed.
    pub published: Vec<PublishedShown>,
    /// The anchor that took no more, and why; none after it was asked.
    #[serde(skip)]
    pub stopped: Option<(String, Error)>,
}

/// What became of one thing.
#[derive(Clone, Debug, Serialize)]
pub struct PublishedShown {
    /// The anchor.
    pub anchor: String,
    /// `log`, `run`, `thread` or `time stamp`.
    pub kind: &'static str,
    /// The name of the log, run or thread.
    pub name: String,
    /// `new`, `updated`, `up-to-date` or `behind`.
    pub status: &'static str,
}

impl AnchorPush {
    /// Nothing was handed over yet.
    pub(super) fn new() -> Self {
        Self { schema: "git-handoff.anchor-push/1", published: Vec::new(), stopped: None }
    }

    pub(super) fn add(&mut self, anchor: &Anchor, published: Vec<Published>) {
        let of = |Published { kind, name, status }| PublishedShown { anchor: anchor.name.clone(), kind, name, status };
        self.published.extend(published.into_iter().map(of));
    }
}

/// What anchors hold of a run: what `anchor check --json` prints for each.
#[derive(Clone, Debug, Serialize)]
pub struct AnchorCheck {
    schema: &'static str,
    /// The run.
    pub run: String,
    /// Its root; none of a run that is not sealed.
    pub root: Option<Digest>,
    /// Whether every place outside holds it, and one place at least does.
    pub ok: bool,
    /// What each anchor says.
    pub anchors: Vec<Anchored>,
    /// What time-stamping authorities say.
    pub times: Vec<Timed>,
    /// Whether it is sealed: of others no anchor can hold anything yet.
    #[serde(skip)]
    pub sealed: bool,
}

impl AnchorCheck {
    /// Answers what was found of a run.
    pub(super) fn of(report: Report) -> Self {
        let holds = holds(&report.anchors) && report.times.iter().all(|timed| timed.at.is_ok());
        let Report { run, root, sealed, anchors, times, .. } = report;
        Self { schema: "git-handoff.anchor-check/1", run, root, ok: sealed && holds, anchors, times, sealed }
    }
}

/// Returns whether every place outside holds the run, and one place at least does.
fn holds(anchors: &[Anchored]) -> bool {
    let held = |anchored: &Anchored| anchored.standing == Standing::Holds;
    let local = |anchored: &Anchored| anchored.kind == LOCAL && anchored.standing == Standing::Missing;
    anchors.iter().any(held) && anchors.iter().all(|anchored| held(anchored) || local(anchored))
}
