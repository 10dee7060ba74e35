//! Pictures as `graph --json` prints them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Edge, Node, Outline, Picture, count_statuses};
use crate::model::name::{ItemId, RunId};
use crate::model::state::RunState;
use crate::run::query::remote_read::RemoteRead;

/// A picture with the names and statuses of its items.
#[derive(Clone, Debug, Serialize)]
pub struct Drawing {
    schema: &'static str,
    /// The run, or `None` for a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
    /// The plan, or `None` for a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<RunId>,
    width: u32,
    height: u32,
    boxes: Vec<BoxShown>,
    edges: Vec<EdgeShown>,
    /// The remote that the run was pushed to or is shared through, if it was to be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    remote: Option<RemoteRead>,
}

/// A box.
#[derive(Clone, Debug, Serialize)]
struct BoxShown {
    label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    members: Vec<ItemId>,
    /// The number of items by status; empty for a plan.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    statuses: BTreeMap<&'static str, u64>,
    layer: usize,
    place: usize,
    x: u32,
    y: u32,
    width: u32,
    height: u32,
}

/// An edge, between positions in the list of boxes.
#[derive(Clone, Debug, Serialize)]
struct EdgeShown {
    from: usize,
    to: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    bend: Option<[u32; 2]>,
}

impl Drawing {
    /// Describes the picture of a run.
    #[must_use]
    pub fn of_run(run: &RunId, state: &RunState, outline: &Outline, picture: &Picture) -> Self {
        Self { run: Some(run.clone()), ..Self::new(outline, picture, Some(state)) }
    }

    /// Describes the picture of a plan.
    #[must_use]
    pub fn of_plan(plan: &RunId, outline: &Outline, picture: &Picture) -> Self {
        Self { plan: Some(plan.clone()), ..Self::new(outline, picture, None) }
    }

    /// Adds the remote of the run.
    #[must_use]
    pub fn with_remote(self, remote: Option<RemoteRead>) -> Self {
        Self { remote, ..self }
    }

    fn new(outline: &Outline, picture: &Picture, state: Option<&RunState>) -> Self {
        let shown = |node: &Node| BoxShown {
            label: node.label.clone(),
            group: node.group.clone(),
            members: node.members.iter().map(|at| outline.items[*at].id.clone()).collect(),
            statuses: state.map(|state| count_statuses(state, &node.members)).unwrap_or_default(),
            layer: node.layer,
            place: node.place,
            x: node.x,
            y: node.y,
            width: node.width,
            height: node.height,
        };
        let line = |edge: &Edge| EdgeShown { from: edge.from, to: edge.to, bend: edge.bend.map(|(x, y)| [x, y]) };
        Self {
            schema: "git-handoff.graph/1",
            run: None,
            plan: None,
            width: picture.width,
            height: picture.height,
            boxes: picture.boxes.iter().map(shown).collect(),
            edges: picture.edges.iter().map(line).collect(),
            remote: None,
        }
    }
}
