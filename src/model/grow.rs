//! Instantiates a rule's templates for the present state of a run. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::bounds;
use super::extension::{Cause, definition};
use super::item_index::ItemIndex;
use super::name::{FilePath, ItemId, clashes};
use super::plan::{Item, Need, ProductKey, Selector, Source};
use super::rule::{Each, KEY, Made, ROUND, Rule, Several, Template};
use super::state::{Phase, RunState};

/// Returns the items that a rule creates now, normalised and ordered by id. An error says why the
/// run cannot have them.
pub fn items(state: &RunState, rule: &Rule, several: &Several) -> Result<Vec<Item>, String> {
    let round = (state.rounds(rule.id()) + 1).to_string();
    let mut growth = Growth { state, round: &round, heirs: BTreeMap::new(), items: Vec::new(), edges: 0, bytes: 0 };
    // Too many are refused before they are made. A template that replaces items may change the
    // outputs for those after it.
    let replaces = |template: &Template| template.item.replaces.is_some() || template.item.continues.is_some();
    let counted = several.made.iter().take_while(|made| matches!(made, Made::Template(one) if !replaces(one)));
    let templates = counted.count();
    let copies = several.for_each.as_ref().map_or(1, |item| growth.outputs_of(item).count());
    within_items(templates.saturating_mul(copies))?;
    for made in &several.made {
        match (made, &several.for_each) {
            (Made::Template(template), None) => growth.template(template, None)?,
            (Made::Template(template), Some(item)) => {
                let keys: Vec<&FilePath> = growth.outputs_of(item).collect();
                keys.into_iter().try_for_each(|key| growth.template(template, Some(key)))?;
            }
            (Made::Again(item), _) => growth.again(item)?,
        }
    }
    let mut items = growth.items;
    items.sort_by(|one, other| one.id.cmp(&other.id));
    let mut ids = BTreeSet::new();
    if let Some(twice) = items.iter().find(|item| !ids.insert(&item.id)) {
        return Err(format!("there would be two items {:?}", twice.id.as_str()));
    }
    // An item to be replaced may be retrying, and will end soon.
    if items
        .iter()
        .filter_map(|item| item.replaces.as_ref())
        .any(|old| state.graph.position(old).is_some_and(|at| !state.items[at].phase.is_terminal()))
    {
        return Ok(Vec::new());
    }
    // Items that the run cannot have are reported as an outcome, not as an error.
    if !items.is_empty() {
        state.would_take(&Cause::Rule(rule.id().clone()), &items).map_err(|illegal| illegal.to_string())?;
    }
    Ok(items)
}

/// Splits an item's name into the name without its round, and the round, 1 by default.
pub fn version(id: &ItemId) -> (&str, u64) {
    let split = id.as_str().rsplit_once('~');
    let numbered = split.and_then(|(base, number)| {
        let plain = number.bytes().all(|byte| byte.is_ascii_digit());
        Some((base, number.parse().ok().filter(|_| plain)?))
    });
    numbered.unwrap_or((id.as_str(), 1))
}

/// The items that one application of a rule adds.
struct Growth<'a> {
    state: &'a RunState,
    round: &'a str,
    /// The existing items that one of them replaces. None of those may have been replaced before;
    /// otherwise the search for the newest item would not end.
    heirs: BTreeMap<ItemId, ItemId>,
    /// The items so far, normalised.
    items: Vec<Item>,
    /// The number of dependencies and needs examined.
    edges: usize,
    /// The total size of their `item.json`.
    bytes: usize,
}

impl<'a> Growth<'a> {
    /// Instantiates a template.
    fn template(&mut self, template: &Template, key: Option<&FilePath>) -> Result<(), String> {
        let written = &template.item;
        let mut item = Item {
            id: self.id(&written.id, key)?,
            replaces: written.replaces.as_ref().map(|id| self.newest(id)),
            continues: written.continues.as_ref().map(|id| self.newest(id)),
            ..written.clone()
        };
        self.look_at(written.depends_on.len() + written.needs.len())?;
        item.depends_on = written.depends_on.iter().map(|id| self.reference(id, key)).collect::<Result<_, _>>()?;
        item.needs = BTreeMap::new();
        for (name, need) in &written.needs {
            let need = self.need(need, key)?;
            if !template.optional.contains(name) || self.has(&need) {
                bind(&mut item, self.path(name, key)?, need)?;
            }
        }
        if let Some(each) = &template.each {
            self.each(each, &mut item)?;
        }
        if let Some(key) = key {
            item.inputs.values_mut().filter(|value| **value == KEY).for_each(|value| *value = key.as_str().into());
        }
        for (input, of) in &template.reasons {
            let failed = self.position(of).map(|at| &self.state.items[at]).filter(|state| state.phase == Phase::Failed);
            let reason = failed.and_then(|state| state.reason.clone());
            item.inputs.extend(reason.map(|reason| (input.clone(), reason.into())));
        }
        for old in item.replaces.iter().chain(&item.continues) {
            self.inherits(old, &item.id);
        }
        self.push(item)
    }

    /// Adds a need for each output of an item.
    fn each(&mut self, each: &Each, item: &mut Item) -> Result<(), String> {
        // A short path can become a long name, once for each output.
        let mut bytes = self.bytes;
        for key in self.outputs_of(&each.outputs_of) {
            self.look_at(1)?;
            let need = Need { from: Source::Item(each.from.clone()), select: each.select.clone(), apply: false };
            let need = self.need(&need, Some(key))?;
            if !each.survivors || self.has(&need) {
                let name = self.path(&each.key, Some(key))?;
                bytes += name.as_str().len();
                within_bytes(bytes)?;
                bind(item, name, need)?;
            }
        }
        Ok(())
    }

    /// Copies an item, and everything that was skipped because of it.
    fn again(&mut self, item: &ItemId) -> Result<(), String> {
        let Some(first) = self.position(item) else { return Err(format!("there is no item {item:?}")) };
        let mut again = BTreeSet::from([first]);
        let mut next = vec![first];
        while let Some(on) = next.pop() {
            for &at in self.state.graph.dependents(on) {
                let is_newest = self.position(&self.state.graph.item(at).id) == Some(at);
                if self.state.items[at].phase == Phase::Skipped && is_newest && again.insert(at) {
                    next.push(at);
                }
            }
        }
        let mut copies = Vec::new();
        for at in again {
            let old = &self.state.graph.item(at).id;
            let (base, number) = version(old);
            let following = number.checked_add(1).ok_or_else(|| format!("there is no number after that of {old:?}"))?;
            let id = ItemId::parse(&format!("{base}~{following}")).map_err(|error| error.to_string())?;
            self.inherits(old, &id);
            copies.push((at, id));
        }
        for (at, id) in copies {
            let old = self.state.graph.item(at);
            // A dependency that only expresses order.
            self.look_at(self.state.graph.dependencies(at).len() + old.needs.len())?;
            let waits_for = self.state.graph.dependencies(at).iter().map(|on| &self.state.graph.item(*on).id);
            let depends_on = waits_for.map(|other| self.newest(other)).collect();
            let needs = old.needs.iter().map(|(key, need)| (key.clone(), self.renewed(need))).collect();
            let replaces = Some(old.id.clone());
            self.push(Item { id, depends_on, needs, replaces, continues: None, ..old.clone() })?;
        }
        Ok(())
    }

    /// Returns a need with the newest item instead of its own.
    fn renewed(&self, need: &Need) -> Need {
        match &need.from {
            Source::Item(id) => Need { from: Source::Item(self.newest(id)), ..need.clone() },
            _ => need.clone(),
        }
    }

    /// Adds an item; fails above the limit.
    fn push(&mut self, item: Item) -> Result<(), String> {
        if let Some((one, other)) = clashes(item.needs.keys().map(FilePath::as_str)).pop() {
            return Err(format!("the inputs {one:?} and {other:?} of {:?} would clash", item.id.as_str()));
        }
        let item = item.normalised();
        self.bytes += definition(&item).len();
        within_bytes(self.bytes)?;
        self.items.push(item);
        within_items(self.items.len())
    }

    /// Counts dependencies and needs before examining them.
    fn look_at(&mut self, edges: usize) -> Result<(), String> {
        self.edges += edges;
        if self.edges > bounds::CREATED_EDGES {
            return Err(format!("there would be more than {} dependencies and needs at once", bounds::CREATED_EDGES));
        }
        Ok(())
    }

    /// Lets a new item replace an existing one. Invalid combinations are reported when all items
    /// exist.
    fn inherits(&mut self, old: &ItemId, new: &ItemId) {
        if self.state.graph.position(old).is_some() && self.state.graph.position(new).is_none() {
            self.heirs.insert(old.clone(), new.clone());
        }
    }

    fn need(&self, need: &Need, key: Option<&FilePath>) -> Result<Need, String> {
        let from = match &need.from {
            Source::Item(id) => Source::Item(self.reference(id, key)?),
            other => other.clone(),
        };
        let select = match &need.select {
            Selector::Output { path } => Selector::Output { path: self.path(path, key)? },
            other => other.clone(),
        };
        Ok(Need { from, select, apply: need.apply })
    }

    /// Returns true if the product of a need exists.
    fn has(&self, need: &Need) -> bool {
        let Source::Item(id) = &need.from else { return false };
        let product: ProductKey = need.select.product_key();
        self.state.graph.position(id).is_some_and(|at| self.state.items[at].products.contains_key(&product))
    }

    /// Returns the newest replacement of an item, including new items.
    fn newest(&self, id: &ItemId) -> ItemId {
        let newest = self.state.newest_id(id);
        self.heirs.get(newest).unwrap_or(newest).clone()
    }

    /// Returns the position of the newest replacement of an item, or `None` if that is a new item.
    fn position(&self, id: &ItemId) -> Option<ItemIndex> {
        self.state.graph.position(&self.newest(id))
    }

    fn outputs_of(&self, item: &ItemId) -> impl Iterator<Item = &'a FilePath> + use<'a> {
        let state = self.state;
        self.position(item).into_iter().flat_map(move |at| state.outputs(at).map(|(path, _)| path))
    }

    fn reference(&self, id: &ItemId, key: Option<&FilePath>) -> Result<ItemId, String> {
        Ok(self.newest(&self.id(id, key)?))
    }

    fn id(&self, written: &ItemId, key: Option<&FilePath>) -> Result<ItemId, String> {
        let text = self.filled(written.as_str(), key);
        ItemId::parse(&text).map_err(|error| format!("an item cannot be called {text:?}: {error}"))
    }

    fn path(&self, written: &FilePath, key: Option<&FilePath>) -> Result<FilePath, String> {
        let text = self.filled(written.as_str(), key);
        FilePath::parse(&text).map_err(|error| format!("an input cannot be called {text:?}: {error}"))
    }

    /// Substitutes placeholders. Keys are substituted last, so that their content is not expanded.
    fn filled(&self, written: &str, key: Option<&FilePath>) -> String {
        let filled = written.replace(ROUND, self.round);
        match key {
            Some(key) => filled.replace(KEY, key.as_str()),
            None => filled,
        }
    }
}

/// Adds a need to an item.
fn bind(item: &mut Item, name: FilePath, need: Need) -> Result<(), String> {
    if item.needs.contains_key(&name) {
        return Err(format!("{:?} would have two inputs {:?}", item.id.as_str(), name.as_str()));
    }
    item.needs.insert(name, need);
    Ok(())
}

fn within_items(count: usize) -> Result<(), String> {
    if count > bounds::CREATED_ITEMS {
        return Err(format!("there would be more than {} items at once", bounds::CREATED_ITEMS));
    }
    Ok(())
}

fn within_bytes(bytes: usize) -> Result<(), String> {
    if bytes > bounds::CREATED_BYTES {
        return Err(format!("the items would come to more than {} bytes at once", bounds::CREATED_BYTES));
    }
    Ok(())
}
