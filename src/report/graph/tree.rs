//! A picture as rows of text, one for each box.
//!
//! A box is listed below the nearest box that all its dependencies lead back to (its immediate
//! dominator), so that everything it needs is listed above it. A row in the column of a row above
//! continues it, as in `git log --graph`; other rows branch off.

use super::Picture;
use crate::model::order::topological;

/// From this depth on, the last branch with rows of its own continues the column.
const DEEP: usize = 6;

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The box, by position.
    pub node: usize,
    /// The lines that lead to it, three columns for each branch.
    pub lines: String,
    /// The boxes that it depends on.
    pub needs: Needs,
}

/// The dependencies of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    /// None, or only the row that it continues or branches off from.
    Shown,
    /// All rows that branch off above it from the same row: so many, and nothing else.
    Branches(usize),
    /// These boxes, by position.
    Boxes(Vec<usize>),
}

/// Lists the boxes of a picture. The caller prints a line for the
/// whole run above them.
#[must_use]
pub fn rows(picture: &Picture) -> Vec<Row> {
    let mut tree = Tree::new(picture.needs());
    let mut rows = Vec::with_capacity(picture.boxes.len());
    // A stack instead of recursion: a picture can be deep.
    let mut open = tree.below(tree.root(), &Lines::default());
    while let Some((node, lines)) = open.pop() {
        rows.push(Row { node, lines: lines.own.clone(), needs: tree.shown_needs(node) });
        open.extend(tree.below(node, &lines));
    }
    rows
}

/// The lines of a row and of the rows below it.
#[derive(Clone, Default)]
struct Lines {
    own: String,
    below: String,
    depth: usize,
}

impl Lines {
    /// Returns the lines of a row that branches off.
    fn branch(&self, own: &str, below: &str) -> Self {
        let before = &self.below;
        Self { own: format!("{before}{own}"), below: format!("{before}{below}"), depth: self.depth + 1 }
    }
}

/// The tree of immediate dominators. Its root is no box, but the whole picture.
struct Tree {
    needs: Vec<Vec<usize>>,
    parent: Vec<usize>,
    /// The children of each box and of the root, in the order of the rows.
    children: Vec<Vec<usize>>,
    /// The number of rows of each box with those below it.
    sizes: Vec<usize>,
}

impl Tree {
    fn new(needs: Vec<Vec<usize>>) -> Self {
        let (root, order) = (needs.len(), topological(&needs));
        let (mut parent, mut depth) = (vec![root; root], vec![0; root + 1]);
        for &at in &order {
            let above = needs[at].iter().copied().reduce(|one, other| common(&parent, &depth, one, other));
            parent[at] = above.unwrap_or(root);
            depth[at] = depth[parent[at]] + 1;
        }
        let mut children = vec![Vec::new(); root + 1];
        order.iter().for_each(|at| children[parent[*at]].push(*at));
        let mut sizes = vec![1; root + 1];
        order.iter().rev().for_each(|at| sizes[parent[*at]] += sizes[*at]);
        Self { needs, parent, children, sizes }
    }

    fn root(&self) -> usize {
        self.needs.len()
    }

    /// Moves the child that should continue the column to the end: one that joins others if there
    /// is one, else, if lines are long, the one with most rows. Nothing may be listed before what
    /// it needs.
    fn choose_last(&mut self, above: usize, depth: usize) {
        let mut needed = vec![false; self.needs.len()];
        for &child in &self.children[above] {
            for &on in self.needs[child].iter().filter(|on| **on != above) {
                needed[self.branch(above, on)] = true;
            }
        }
        let children = &mut self.children[above];
        let free = children.iter().enumerate().filter(|(_, child)| !needed[**child]);
        let (needs, parent, sizes) = (&self.needs, &self.parent, &self.sizes);
        let last = free.max_by_key(|(place, child)| {
            (joins(needs, parent, **child), if depth >= DEEP { sizes[**child] } else { 0 }, *place)
        });
        if let Some((place, _)) = last {
            let child = children.remove(place);
            children.push(child);
        }
    }

    /// Returns the child of `above` that a box is below.
    fn branch(&self, above: usize, mut at: usize) -> usize {
        while self.parent[at] != above {
            at = self.parent[at];
        }
        at
    }

    /// Returns the rows below a row with their lines, the first one last.
    fn below(&mut self, above: usize, lines: &Lines) -> Vec<(usize, Lines)> {
        self.choose_last(above, lines.depth);
        let children = &self.children[above];
        let (base, last) = (&lines.below, children.len().saturating_sub(1));
        children
            .iter()
            .enumerate()
            .map(|(place, &child)| {
                let deep = lines.depth >= DEEP && !self.children[child].is_empty();
                let continues = children.len() == 1 || joins(&self.needs, &self.parent, child) || deep;
                let lines = match (place == last, continues) {
                    (true, true) => Lines { own: base.clone(), below: base.clone(), depth: lines.depth },
                    (true, false) => lines.branch("└─ ", "   "),
                    (false, _) => lines.branch("├─ ", "│  "),
                };
                (child, lines)
            })
            .rev()
            .collect()
    }

    fn shown_needs(&self, at: usize) -> Needs {
        if !joins(&self.needs, &self.parent, at) {
            return Needs::Shown;
        }
        let siblings = &self.children[self.parent[at]];
        let mut above: Vec<usize> = siblings.iter().copied().take_while(|sibling| *sibling != at).collect();
        above.sort_unstable();
        let is_all = above.len() > 2 && above == self.needs[at];
        if is_all { Needs::Branches(above.len()) } else { Needs::Boxes(self.needs[at].clone()) }
    }
}

/// Returns true if a box depends on more than the box that it is listed below.
fn joins(needs: &[Vec<usize>], parent: &[usize], at: usize) -> bool {
    needs[at].iter().any(|on| *on != parent[at])
}

/// Returns the nearest box that two boxes are both below.
fn common(parent: &[usize], depth: &[usize], mut one: usize, mut other: usize) -> usize {
    while one != other {
        if depth[one] >= depth[other] {
            one = parent[one];
        } else {
            other = parent[other];
        }
    }
    one
}
