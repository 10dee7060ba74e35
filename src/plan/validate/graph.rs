//! Validates ids, references and cycles, without recursion.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::model::json::JsonPath;
use crate::model::name::fold;
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::plan::DraftItem;

/// The number of named items of a cycle; those in the middle are counted.
const MAX_NAMED: usize = 10;

/// The items with their dependencies, by position.
pub(super) struct Graph {
    positions: BTreeMap<String, usize>,
    waits_for: Vec<Vec<usize>>,
}

impl Graph {
    /// Builds the graph; reports problems of ids and edges of the first `added` items.
    pub(super) fn check(
        items: &[Option<DraftItem>],
        added: usize,
        order: &[(usize, usize)],
        problems: &mut Problems,
    ) -> Self {
        let mut graph = Self { positions: positions(items, added, problems), waits_for: vec![Vec::new(); items.len()] };
        for (at, item) in items.iter().enumerate() {
            let mut waits_for = BTreeSet::new();
            for edge in item.iter().flat_map(edges) {
                match graph.resolve(&edge, problems) {
                    Some(to) if to != at => {
                        waits_for.insert(to);
                    }
                    Some(_) => {
                        let message = format!("the item {:?} waits for itself", edge.to);
                        problems.push(Problem::new(Code::SelfDependency, &edge.path(), message));
                    }
                    None => {}
                }
            }
            graph.waits_for[at] = waits_for.into_iter().collect();
        }
        order.iter().filter(|(at, on)| at != on).for_each(|(at, on)| graph.waits_for[*at].push(*on));
        for component in components(&graph.waits_for) {
            problems.push(graph.cycle(&component, items));
        }
        graph
    }

    /// Reports problems of the edges of an item outside the graph; `known` are the ids of its kind.
    pub(super) fn check_created(&self, item: &DraftItem, known: &BTreeSet<&str>, problems: &mut Problems) {
        for edge in edges(item).filter(|edge| !known.contains(edge.to) && !edge.to.contains("{{")) {
            self.resolve(&edge, problems);
        }
    }

    /// Returns the position of an id.
    pub(super) fn position(&self, id: &str) -> Option<usize> {
        self.positions.get(id).copied()
    }

    /// Returns the target of an edge; reports a missing one.
    fn resolve(&self, edge: &Edge<'_>, problems: &mut Problems) -> Option<usize> {
        let found = self.position(edge.to);
        if found.is_none() && !problems.keeps_more() {
            problems.count_more(1);
        } else if found.is_none() {
            let message = format!("there is no item {:?} in this run", edge.to);
            let problem = Problem::new(edge.unknown(), &edge.path(), message);
            if matches!(edge.at, Reference::Need(_)) && edge.to.starts_with('@') {
                problems.push_near(problem, edge.to, ["@artifacts", "@documents"]);
            } else {
                problems.push_near(problem, edge.to, self.positions.keys().map(String::as_str));
            }
        }
        found
    }

    /// Returns the problem of a cycle, with the shortest one through the first item; truncates a
    /// long one.
    fn cycle(&self, component: &[usize], items: &[Option<DraftItem>]) -> Problem {
        let members: BTreeSet<usize> = component.iter().copied().collect();
        let start = *members.first().expect("a component has members");
        let mut came_from: BTreeMap<usize, usize> = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(at) = queue.pop_front() {
            if came_from.contains_key(&start) {
                break;
            }
            for &to in self.waits_for[at].iter().filter(|to| members.contains(to)) {
                came_from.entry(to).or_insert_with(|| {
                    queue.push_back(to);
                    at
                });
            }
        }
        let mut cycle = vec![start];
        let mut at = came_from[&start];
        while at != start {
            cycle.push(at);
            at = came_from[&at];
        }
        cycle.push(start);
        let mut names: Vec<Cow<'_, str>> = cycle
            .iter()
            .rev()
            .filter_map(|member| items[*member].as_ref().and_then(|item| item.id.as_deref()))
            .map(Cow::from)
            .collect();
        if let Some(left_out) = names.len().checked_sub(MAX_NAMED).filter(|count| *count > 1) {
            names.splice(MAX_NAMED / 2..MAX_NAMED / 2 + left_out, [format!("({left_out} more)").into()]);
        }
        let message = format!("these items wait for one another: {}", names.join(" -> "));
        let item_path = items[start].as_ref().map_or_else(JsonPath::root, |item| item.path.itself().clone());
        Problem::new(Code::Cycle, &item_path, message)
    }
}

/// A reference from an item to another.
struct Edge<'i> {
    from: &'i DraftItem,
    to: &'i str,
    at: Reference<'i>,
}

/// The place of a reference.
enum Reference<'i> {
    /// In `depends_on`, at this index.
    Listed(usize),
    /// The source of this need.
    Need(&'i str),
}

impl Edge<'_> {
    /// Returns the path of the reference.
    fn path(&self) -> JsonPath {
        match self.at {
            Reference::Listed(index) => self.from.path.key("depends_on").index(index),
            Reference::Need(key) => self.from.path.need(key, "from"),
        }
    }

    /// Returns the problem code of a missing target.
    fn unknown(&self) -> Code {
        match self.at {
            Reference::Listed(_) => Code::UnknownDependency,
            Reference::Need(_) => Code::UnknownProducer,
        }
    }
}

/// Returns the references of an item; a source outside the run is none.
fn edges(item: &DraftItem) -> impl Iterator<Item = Edge<'_>> {
    let listed = item.depends_on.iter().enumerate();
    let listed = listed.filter_map(|(index, to)| Some((to.as_deref()?, Reference::Listed(index))));
    let needed = item
        .needs
        .iter()
        .filter(|(_, need)| !need.elsewhere)
        .filter_map(|(key, need)| Some((need.from.as_deref()?, Reference::Need(key))));
    let needed = needed.filter(|(to, _)| !matches!(*to, "@artifacts" | "@documents"));
    listed.chain(needed).map(|(to, at)| Edge { from: item, to, at })
}

/// Returns the positions by id; reports duplicates, ignoring case.
fn positions(items: &[Option<DraftItem>], added: usize, problems: &mut Problems) -> BTreeMap<String, usize> {
    let mut positions = BTreeMap::new();
    let mut ids: BTreeMap<String, &str> = BTreeMap::new();
    // Existing items come first.
    for at in (added..items.len()).chain(0..added) {
        let Some((item, id)) = items[at].as_ref().and_then(|item| Some((item, item.id.as_deref()?))) else {
            continue;
        };
        positions.entry(id.to_owned()).or_insert(at);
        let Some(other) = ids.insert(fold(id), id) else {
            continue;
        };
        let message = if other == id {
            format!("another item has the id {id:?}")
        } else {
            format!("the ids {other:?} and {id:?} differ in nothing that every system tells apart")
        };
        problems.push(Problem::new(Code::DuplicateId, &item.path.key("id"), message));
    }
    positions
}

/// Returns the strongly connected components of several nodes (Tarjan, with an explicit stack).
fn components(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let mut number = vec![NEW; edges.len()];
    let mut low = vec![NEW; edges.len()];
    let mut open = vec![false; edges.len()];
    let (mut count, mut stack, mut found) = (0, Vec::new(), Vec::new());
    for root in 0..edges.len() {
        // A frame is a node and its number of followed edges.
        let mut frames = if number[root] == NEW { vec![(root, 0)] } else { Vec::new() };
        while let Some((node, followed)) = frames.pop() {
            if followed == 0 {
                number[node] = count;
                low[node] = count;
                count += 1;
                open[node] = true;
                stack.push(node);
            } else {
                // Returns from the last edge.
                let child = edges[node][followed - 1];
                if open[child] {
                    low[node] = low[node].min(low[child]);
                }
            }
            if let Some(&to) = edges[node].get(followed) {
                frames.push((node, followed + 1));
                if number[to] == NEW {
                    frames.push((to, 0));
                }
            } else if low[node] == number[node] {
                let start = stack.iter().rposition(|at| *at == node);
                let component = stack.split_off(start.expect("an open node is on the stack"));
                for &member in &component {
                    open[member] = false;
                }
                if component.len() > 1 {
                    found.push(component);
                }
            }
        }
    }
    found.sort_by_key(|component| component.iter().copied().min());
    found
}
