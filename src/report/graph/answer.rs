//! Pictures as `graph --json` prints them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Edge, Node, Outline, Picture, count_statuses};
use crate::model::name::{ItemId, RunId};
use crate::model::state::RunState;
use crate::run::query::remote_read::RemoteRead;

/// A picture with the names and statuses of its items.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(extend("oneOf" = [{ "required": ["run"] }, { "required": ["plan"] }])))]
#[serde(tag = "schema", rename = "git-handoff.graph/1")]
pub struct Drawing {
    /// The run, or `None` for a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
    /// The plan, or `None` for a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<RunId>,
    /// The width of the picture with its margin.
    width: u32,
    /// The height of the picture with its margin.
    height: u32,
    /// The boxes, in the order of their first items.
    boxes: Vec<BoxShown>,
    /// The edges, each once.
    edges: Vec<Edge>,
    /// The remote that the run was pushed to or is shared through, if it was to be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    remote: Option<RemoteRead>,
}

/// A box with the ids and statuses of its items.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct BoxShown {
    #[serde(flatten)]
    node: Node,
    /// The items; more than one for a group.
    #[cfg_attr(feature = "schemas", schemars(length(min = 1)))]
    members: Vec<ItemId>,
    /// The number of items by status; empty for a plan.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    statuses: BTreeMap<&'static str, u64>,
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
        Self {
            run: None,
            plan: None,
            width: picture.width,
            height: picture.height,
            boxes: picture
                .boxes
                .iter()
                .map(|node| BoxShown {
                    node: node.clone(),
                    members: node.members.iter().map(|at| outline.items[*at].id.clone()).collect(),
                    statuses: state.map(|state| count_statuses(state, &node.members)).unwrap_or_default(),
                })
                .collect(),
            edges: picture.edges.clone(),
            remote: None,
        }
    }
}
