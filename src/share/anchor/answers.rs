//! JSON output of operations on anchors.

use serde::Serialize;

use crate::model::any_error::AnyError;
use crate::model::digest::Digest;
use crate::verify::{Anchored, Guarantee, LOCAL, Report, Standing, Timed};

use super::{Anchor, Published};

/// The output of `anchor add --json`, and an element of `anchor list --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct AnchorShown {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(skip))]
    schema: Option<&'static str>,
    /// Its name in the configuration.
    pub name: String,
    /// Its kind.
    #[serde(rename = "type")]
    pub kind: String,
    /// The strength of its evidence, or `time`.
    #[cfg_attr(feature = "schemas", schemars(extend("enum" = ["detect", "external", "external-immutable", "time"])))]
    pub guarantee: &'static str,
    /// The address.
    pub place: String,
}

impl AnchorShown {
    /// Returns the answer for a configured anchor.
    pub(super) fn added(anchor: &Anchor) -> Self {
        Self { schema: Some("git-handoff.anchor/1"), ..Self::from_anchor(anchor) }
    }

    fn from_anchor(anchor: &Anchor) -> Self {
        let (name, kind, guarantee) = (anchor.name.clone(), anchor.kind().to_owned(), anchor.strength());
        Self { schema: None, name, kind, guarantee, place: anchor.place() }
    }

    /// The logs in the repository, which always count.
    fn local() -> Self {
        let place = "the logs in this repository".to_owned();
        Self {
            schema: None,
            name: LOCAL.to_owned(),
            kind: LOCAL.to_owned(),
            guarantee: Guarantee::Detect.as_str(),
            place,
        }
    }
}

/// The output of `anchor list --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.anchors/1")]
pub struct AnchorList {
    /// The anchors, starting with the logs in the repository.
    pub anchors: Vec<AnchorShown>,
}

impl AnchorList {
    pub(super) fn from_anchors(anchors: &[Anchor]) -> Self {
        let anchors =
            std::iter::once(AnchorShown::local()).chain(anchors.iter().map(AnchorShown::from_anchor)).collect();
        Self { anchors }
    }
}

/// The output of `anchor push --json`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.anchor-push/1")]
pub struct AnchorPush {
    /// The results, up to the anchor that failed.
    pub published: Vec<PublishedShown>,
    /// The anchor that failed, with the reason; none is asked after it.
    #[serde(skip)]
    pub stopped: Option<(String, AnyError)>,
}

/// One result.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PublishedShown {
    /// The anchor.
    pub anchor: String,
    /// The kind.
    #[cfg_attr(feature = "schemas", schemars(extend("enum" = ["log", "run", "thread", "time stamp"])))]
    pub kind: &'static str,
    /// The name of the log, run or thread.
    pub name: String,
    /// The result.
    #[cfg_attr(feature = "schemas", schemars(extend("enum" = ["new", "updated", "up-to-date", "behind"])))]
    pub status: &'static str,
}

impl AnchorPush {
    pub(super) fn add(&mut self, anchor: &Anchor, published: Vec<Published>) {
        self.published.extend(published.into_iter().map(|Published { kind, name, status }| PublishedShown {
            anchor: anchor.name.clone(),
            kind,
            name,
            status,
        }));
    }
}

/// The output of `anchor check --json` for each run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.anchor-check/1")]
pub struct AnchorCheck {
    /// The run.
    pub run: String,
    /// Its root; `None` if it is not sealed.
    pub root: Option<Digest>,
    /// Whether there is an anchor and every anchor has the run.
    pub ok: bool,
    /// The answers of anchors.
    pub anchors: Vec<Anchored>,
    /// The time stamps.
    pub times: Vec<Timed>,
    /// Whether it is sealed; anchors have only sealed runs.
    #[serde(skip)]
    pub sealed: bool,
}

impl AnchorCheck {
    /// Returns the answer for a run.
    pub(super) fn from_report(report: Report) -> Self {
        let holds = holds(&report.anchors) && report.times.iter().all(|timed| timed.at.is_ok());
        let Report { run, root, sealed, anchors, times, .. } = report;
        Self { run, root, ok: sealed && holds, anchors, times, sealed }
    }
}

/// Returns true if there is an anchor and every anchor has the run.
fn holds(anchors: &[Anchored]) -> bool {
    anchors.iter().any(is_confirmed)
        && anchors.iter().all(|anchored| {
            is_confirmed(anchored) || (anchored.kind == LOCAL && anchored.standing == Standing::Missing)
        })
}

fn is_confirmed(anchored: &Anchored) -> bool {
    anchored.standing == Standing::Holds
}
