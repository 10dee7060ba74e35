//! The graph of a run as facts for the page's SVG.
//!
//! Places of boxes are the writer's choice, so they come with the page. The page's own script
//! checks that each item is in one box, that no two boxes overlap, and that the edges are the
//! dependencies.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::facts::RunPage;
use crate::model::item_index::ItemIndex;
use crate::report::graph::ItemStatus;
use crate::report::graph::{self, Outline};
use crate::run::query::View;

/// The longest label, in characters.
const LABEL: usize = 22;

/// A drawn box: `x`, `y`, width, height, and the positions of its items.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Placed(pub(super) i64, pub(super) i64, pub(super) i64, pub(super) i64, pub(super) Vec<usize>);

/// An edge between two boxes by position, straight or with one bend.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Drawn(pub(super) usize, pub(super) usize, pub(super) Option<(i64, i64)>);

/// The places of boxes and edges.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Picture {
    pub(super) boxes: Vec<Placed>,
    pub(super) edges: Vec<Drawn>,
    pub(super) width: i64,
    pub(super) height: i64,
}

impl Picture {
    /// Places the items of a run.
    pub(super) fn draw(view: &View) -> Self {
        let placed = graph::Picture::new(&Outline::of_run(view), graph::BOXES);
        let boxes = placed.boxes.iter().map(|node| {
            Placed(
                node.x.into(),
                node.y.into(),
                node.width.into(),
                node.height.into(),
                node.members.iter().map(|at| at.get()).collect(),
            )
        });
        let edges =
            placed.edges.iter().map(|edge| Drawn(edge.from, edge.to, edge.bend.map(|(x, y)| (x.into(), y.into()))));
        Self {
            boxes: boxes.collect(),
            edges: edges.collect(),
            width: placed.width.into(),
            height: placed.height.into(),
        }
    }
}

/// Returns the facts of the drawn graph.
pub(super) fn facts(page: &RunPage<'_>, picture: &Picture) -> Value {
    let indices: Vec<ItemIndex> = page.view.state.graph.items().indices().collect();
    let boxes: Vec<Value> =
        picture.boxes.iter().zip(0..).map(|(placed, number)| drawn(page, &indices, placed, number)).collect();
    let edges: Vec<String> = picture.edges.iter().filter_map(|edge| path(picture, edge)).collect();
    json!({ "width": picture.width, "height": picture.height, "boxes": boxes, "edges": edges })
}

fn drawn(page: &RunPage<'_>, indices: &[ItemIndex], placed: &Placed, number: usize) -> Value {
    let Placed(x, y, width, height, members) = placed;
    let members: Vec<ItemIndex> = members.iter().filter_map(|at| indices.get(*at).copied()).collect();
    let mut counts: BTreeMap<ItemStatus, usize> = BTreeMap::new();
    members.iter().for_each(|at| *counts.entry(page.status(*at)).or_default() += 1);
    // The worst status colours the box.
    let worst = counts.keys().next().copied().unwrap_or(ItemStatus::Pending);
    let words: Vec<String> = counts.iter().map(|(status, count)| format!("{count} {}", status.word())).collect();
    let ids: Vec<&str> = members.iter().map(|at| page.id(*at)).collect();
    let (caption, name, title) = match ids.as_slice() {
        [id] => (label(id), (*id).to_owned(), worst.word().to_owned()),
        ids => (label(&format!("{}… {}", prefix(ids), ids.len())), prefix(ids) + "…", words.join(", ")),
    };
    let standing = worst.standing();
    let (fill, stroke) = standing.colors();
    let (anchor, group) = match members.as_slice() {
        [at] => (page.anchor(*at), Value::Null),
        members => {
            let anchor = page.group_anchor(number);
            let group =
                json!({ "anchor": anchor, "members": members.iter().map(|at| member(page, *at)).collect::<Vec<_>>() });
            (anchor, group)
        }
    };
    json!({
        "x": x, "y": y, "width": width, "height": height, "textX": x + 10, "textY": y + height / 2 + 5,
        "label": format!("{} {caption}", standing.mark()),
        "name": name,
        "title": title,
        "anchor": anchor,
        "fill": fill,
        "stroke": stroke,
        "lineWidth": if group.is_null() { 1 } else { 3 },
        "group": group,
    })
}

fn member(page: &RunPage<'_>, at: ItemIndex) -> Value {
    json!({ "anchor": page.anchor(at), "id": page.id(at), "mark": page.status(at).standing().mark() })
}

/// Returns the path of an edge from the right side of a box to the left side of another.
fn path(picture: &Picture, Drawn(from, to, bend): &Drawn) -> Option<String> {
    let (from, to) = (picture.boxes.get(*from)?, picture.boxes.get(*to)?);
    let bend = bend.map(|(x, y)| format!(" L{x} {y}")).unwrap_or_default();
    Some(format!("M{} {}{bend} L{} {}", from.0 + from.2, from.1 + from.3 / 2, to.0, to.1 + to.3 / 2))
}

/// Shortens a name for a box.
pub(super) fn label(id: &str) -> String {
    crate::model::printable::cut_to(id.to_owned(), LABEL)
}

/// Returns the longest common beginning of the ids.
fn prefix(ids: &[&str]) -> String {
    let Some((first, rest)) = ids.split_first() else { return String::new() };
    let length = rest
        .iter()
        .map(|other| first.chars().zip(other.chars()).take_while(|(a, b)| a == b).count())
        .min()
        .unwrap_or(0);
    first.chars().take(length).collect()
}
