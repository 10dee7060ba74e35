//! The picture of a run or a plan: boxes in layers, and the edges between them.
//!
//! An [`Outline`] lists the items with their dependencies. [`Picture::new`] groups them until at
//! most [`BOXES`] boxes are left, and places the boxes. [`tree`] lists the same boxes as rows of
//! text, [`dot`], [`mermaid`] and [`svg`] write them for other programs. Pure and deterministic:
//! equal outlines give equal pictures.
//!
//! # Groups
//!
//! An outline with at most as many items as boxes is drawn whole. Otherwise items are grouped, one
//! kind of group after another, until few enough boxes are left:
//!
//! 1. items that one rule created, other than copies of a map;
//! 2. items that rules created for the outputs of one item (copies of a map);
//! 3. items whose ids differ in numbers alone: `shard-001` to `shard-400` are `shard-#`;
//! 4. items whose ids have the same beginning, up to the first digit or separator: `test/a` and
//!    `test/b` are `test*`;
//! 5. items of the same round, from the second one on;
//! 6. items of the same layer, widest layer first, and at last adjacent layers.
//!
//! The large groups of a kind are made first, and groups of equal size together; an item belongs
//! to one group. If groups depend on each other in a cycle, each of them is split by layer, so
//! that its members are in the same layer. Edges within a group are not drawn.

pub mod answer;
mod boxes;
pub mod dot;
mod layout;
pub mod mermaid;
mod outline;
mod standing;
pub mod svg;
pub mod text;
pub mod tree;

pub use answer::Drawing;
pub use outline::{Keys, Outline, OutlineItem};
pub use standing::{ItemStatus, Standing, count_statuses, worst};

use serde::Serialize;

use crate::model::item_index::ItemIndex;

/// The number of boxes of a picture that people can still read.
pub const BOXES: usize = 150;

/// The width of a box.
pub const BOX_WIDTH: u32 = 200;

/// The height of a box.
pub const BOX_HEIGHT: u32 = 34;

/// The maximum number of columns of a label.
pub const LABEL: usize = 24;

/// A picture. All lengths are whole pixels, from the upper left corner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The boxes, in the order of their first items.
    pub boxes: Vec<Node>,
    /// The edges, each once, by their ends.
    pub edges: Vec<Edge>,
    /// The width of the picture with its margin.
    pub width: u32,
    /// The height of the picture with its margin.
    pub height: u32,
}

/// A box: an item or a group of items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Node {
    /// Printable ASCII of at most [`LABEL`] columns; other characters are escaped.
    #[cfg_attr(feature = "schemas", schemars(extend("pattern" = "^[ -~]+$", "maxLength" = 24)))]
    pub label: String,
    /// The items, at least one; more than one for a group.
    #[serde(skip)]
    pub members: Vec<ItemIndex>,
    /// The name of a group, or `None` for an item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The layer from 0: one more than the greatest layer among the boxes that it depends on.
    pub layer: usize,
    /// The place in the layer, from 0 at the top.
    pub place: usize,
    /// The left side.
    pub x: u32,
    /// The upper side.
    pub y: u32,
    /// The width, always [`BOX_WIDTH`].
    pub width: u32,
    /// The height, always [`BOX_HEIGHT`].
    pub height: u32,
}

/// An edge from a box to one that depends on it, which is in a later layer.
///
/// It is drawn from the middle of the right side of one to the middle of the left side of the
/// other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Edge {
    /// The box that is depended on, by position.
    pub from: usize,
    /// The dependent box, by position.
    pub to: usize,
    /// The point at which the line bends, or `None` for a straight line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bend: Option<(u32, u32)>,
}

impl Picture {
    /// Draws an outline with at most `most` boxes, at least one.
    #[must_use]
    pub fn new(outline: &Outline, most: usize) -> Self {
        layout::place(boxes::gather(outline, most.max(1)))
    }

    /// Returns the boxes that each box depends on, by position and in order.
    #[must_use]
    pub fn needs(&self) -> Vec<Vec<usize>> {
        let mut needs = vec![Vec::new(); self.boxes.len()];
        self.edges.iter().for_each(|edge| needs[edge.to].push(edge.from));
        needs
    }
}
