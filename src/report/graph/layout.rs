//! Places boxes in layers from left to right, and bends edges around boxes.

use super::boxes::{Boxes, layers};
use super::{BOX_HEIGHT, BOX_WIDTH, Edge, LABEL, Node, Picture, text};

/// The space between two layers.
const GAP_X: u32 = 64;

/// The space between two boxes of a layer.
const GAP_Y: u32 = 16;

/// The space around the picture.
const MARGIN: u32 = 16;

/// How often the boxes of all layers are put in order, in alternating direction.
const SWEEPS: usize = 4;

/// Places boxes.
pub(super) fn place(boxes: Boxes) -> Picture {
    let layer_of = layers(&boxes.needs);
    let mut rows = vec![Vec::new(); layer_of.iter().max().map_or(0, |last| last + 1)];
    layer_of.iter().enumerate().for_each(|(at, layer)| rows[*layer].push(at));
    order(&mut rows, &boxes.needs);

    let tallest = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut nodes: Vec<Node> = Vec::with_capacity(layer_of.len());
    for ((members, name), layer) in boxes.members.into_iter().zip(boxes.names).zip(&layer_of) {
        let label = match &name {
            Some(name) => text::counted_label(name, members.len(), LABEL),
            None => text::label(boxes.ids[members[0].get()].as_str(), LABEL),
        };
        let (width, height) = (BOX_WIDTH, BOX_HEIGHT);
        nodes.push(Node { label, members, group: name, layer: *layer, place: 0, x: 0, y: 0, width, height });
    }
    for (layer, row) in rows.iter().enumerate() {
        // A layer is centred.
        let above = pixels(tallest - row.len()) * (BOX_HEIGHT + GAP_Y) / 2;
        for (place, at) in row.iter().enumerate() {
            let node = &mut nodes[*at];
            node.place = place;
            node.x = MARGIN + pixels(layer) * (BOX_WIDTH + GAP_X);
            node.y = MARGIN + above + pixels(place) * (BOX_HEIGHT + GAP_Y);
        }
    }
    let needs = boxes.needs.iter().enumerate();
    let mut ends: Vec<(usize, usize)> = needs.flat_map(|(to, on)| on.iter().map(move |from| (*from, to))).collect();
    ends.sort_unstable();
    let edges = ends.into_iter().map(|(from, to)| Edge { from, to, bend: bend(&nodes, &rows, from, to) }).collect();
    Picture {
        edges,
        width: extent(rows.len(), BOX_WIDTH, GAP_X),
        height: extent(tallest, BOX_HEIGHT, GAP_Y),
        boxes: nodes,
    }
}

/// Returns the length of so many boxes with the space around them.
fn extent(count: usize, size: u32, gap: u32) -> u32 {
    2 * MARGIN + pixels(count) * size + pixels(count.saturating_sub(1)) * gap
}

fn pixels(count: usize) -> u32 {
    u32::try_from(count).expect("a picture has few boxes")
}

/// Orders the boxes of each layer by the barycentre of the boxes that they are connected with.
fn order(rows: &mut [Vec<usize>], needs: &[Vec<usize>]) {
    let mut dependents = vec![Vec::new(); needs.len()];
    for (at, on) in needs.iter().enumerate() {
        on.iter().for_each(|on| dependents[*on].push(at));
    }
    let mut heights = vec![0; needs.len()];
    rows.iter().for_each(|row| measure(row, &mut heights));
    for sweep in 0..SWEEPS {
        let (forward, count) = (sweep % 2 == 0, rows.len());
        for step in 0..count {
            let row = &mut rows[if forward { step } else { count - 1 - step }];
            let neighbours = if forward { needs } else { &dependents };
            let mut keyed: Vec<(Ratio, usize)> =
                row.iter().map(|at| (Ratio::mean(&neighbours[*at], &heights, heights[*at]), *at)).collect();
            // The sort is stable: boxes of equal barycentre keep their order.
            keyed.sort_by(|(one, _), (other, _)| one.compare(other));
            row.clear();
            row.extend(keyed.into_iter().map(|(_, at)| at));
            measure(row, &mut heights);
        }
    }
}

/// Sets the height of each box of a layer: twice its distance from the middle.
fn measure(row: &[usize], heights: &mut [i64]) {
    let count = i64::try_from(row.len()).expect("a layer has few boxes");
    for (place, at) in (0..count).zip(row) {
        heights[*at] = 2 * place - (count - 1);
    }
}

/// A mean as a fraction, so that it is exact.
struct Ratio {
    sum: i64,
    count: i64,
}

impl Ratio {
    /// Returns the mean height of boxes, or `own` without any.
    fn mean(boxes: &[usize], heights: &[i64], own: i64) -> Self {
        match i64::try_from(boxes.len()) {
            Ok(count) if count > 0 => Self { sum: boxes.iter().map(|at| heights[*at]).sum(), count },
            _ => Self { sum: own, count: 1 },
        }
    }

    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        (self.sum * other.count).cmp(&(other.sum * self.count))
    }
}

/// Returns where an edge bends: beside its start or its end, if it then crosses fewer boxes than a
/// straight line. In a dense picture a long edge still crosses boxes, and is drawn behind them.
fn bend(nodes: &[Node], rows: &[Vec<usize>], from: usize, to: usize) -> Option<(u32, u32)> {
    let (first, last) = (&nodes[from], &nodes[to]);
    if last.layer - first.layer < 2 {
        return None;
    }
    let start = (first.x + first.width, first.y + first.height / 2);
    let end = (last.x, last.y + last.height / 2);
    let ways = [None, Some((end.0 - GAP_X, start.1)), Some((start.0 + GAP_X, end.1))];
    ways.into_iter()
        .min_by_key(|bend| {
            let middle = bend.unwrap_or(start);
            let between = rows[first.layer + 1..last.layer].iter().flatten().map(|at| &nodes[*at]);
            between.filter(|node| crosses(node, start, middle) || crosses(node, middle, end)).count()
        })
        .flatten()
}

/// Returns true if a line, drawn from left to right, crosses a box.
fn crosses(node: &Node, start: (u32, u32), end: (u32, u32)) -> bool {
    let (left, right) = (node.x.max(start.0), (node.x + node.width).min(end.0));
    if left >= right {
        return false;
    }
    // Between two sides the line is monotone, so its heights at both sides bound it.
    let height = |x: u32| {
        let (rise, run) = (i64::from(end.1) - i64::from(start.1), i64::from(end.0 - start.0));
        i64::from(start.1) + rise * i64::from(x - start.0) / run
    };
    let (one, other) = (height(left), height(right));
    one.max(other) >= i64::from(node.y) && one.min(other) <= i64::from(node.y + node.height)
}
