//! The items of a run or of a plan, with their dependencies and what groups them.

use std::collections::BTreeMap;

use crate::model::entry::{Cause, Event};
use crate::model::graph::Graph;
use crate::model::grow::version;
use crate::model::item_index::{ItemIndex, ItemVec};
use crate::model::name::ItemId;
use crate::model::rule::{Rule, Then};
use crate::model::state::RunState;
use crate::plan::validate::ValidPlan;
use crate::run::query::View;

/// The items to draw, by position in the graph of the run or the plan.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// The items.
    pub items: ItemVec<OutlineItem>,
}

/// An item to draw.
#[derive(Clone, Debug)]
pub struct OutlineItem {
    /// The id.
    pub id: ItemId,
    /// The items that it depends on.
    pub dependencies: Vec<ItemIndex>,
    /// The groups that it may belong to.
    pub keys: Keys,
}

/// The groups that an item may belong to, other than by its id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// The rule that created it, unless it is a copy of a map.
    pub rule: Option<String>,
    /// The item for one of whose outputs a rule created it.
    pub map: Option<String>,
    /// The round, if later than the first.
    pub round: Option<u64>,
}

impl Outline {
    /// Lists the items of a run.
    #[must_use]
    pub fn of_run(view: &View) -> Self {
        let mut outline = Self::of_graph(&view.state.graph);
        let mut acted: BTreeMap<&ItemId, u64> = BTreeMap::new();
        for link in &view.links {
            let Event::RunExtended(e) = &link.entry.event else { continue };
            let Cause::Rule(rule) = &e.cause else { continue };
            let time = acted.entry(rule).or_default();
            *time += 1;
            for at in e.items.keys().filter_map(|id| view.state.graph.position(id)) {
                let keys = &mut outline.items[at].keys;
                keys.map = mapped(&view.state, rule).map(ToString::to_string);
                keys.rule = Some(rule.to_string()).filter(|_| keys.map.is_none());
                keys.round = keys.round.or_else(|| Some(*time).filter(|time| *time > 1));
            }
        }
        outline
    }

    /// Lists the items of a plan, before rules add any.
    #[must_use]
    pub fn of_plan(valid: &ValidPlan) -> Self {
        let graph = Graph::new(valid.plan());
        let mut outline = Self::of_graph(&graph);
        let added = valid.added_rules().and_then(|bytes| crate::plan::parse_rules(bytes).ok()).unwrap_or_default();
        for rule in valid.plan().rules.iter().chain(&added) {
            let Then::Order(edges) = &rule.then else { continue };
            for (item, waits_for) in edges {
                let Some(at) = graph.position(item) else { continue };
                let dependencies = &mut outline.items[at].dependencies;
                dependencies.extend(waits_for.iter().filter_map(|on| graph.position(on)));
            }
        }
        outline
    }

    fn of_graph(graph: &Graph) -> Self {
        Self {
            items: graph
                .items()
                .indices()
                .map(|at| {
                    let id = &graph.item(at).id;
                    let round = Some(version(id).1).filter(|round| *round > 1);
                    let keys = Keys { round, ..Keys::default() };
                    OutlineItem { id: id.clone(), dependencies: graph.dependencies(at).to_vec(), keys }
                })
                .collect(),
        }
    }
}

/// Returns the item for whose outputs a rule creates items, or `None`.
fn mapped<'s>(state: &'s RunState, rule: &ItemId) -> Option<&'s ItemId> {
    match state.rule(rule).map(|rule: &Rule| &rule.then) {
        Some(Then::Several(several)) => several.for_each.as_ref(),
        _ => None,
    }
}
