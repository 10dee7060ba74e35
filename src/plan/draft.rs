//! A plan as far as it could be read.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::str::FromStr as _;

use crate::model::json::JsonPath;
use crate::model::name::{FilePath, ItemId, NameError, RunId, clashes};
use crate::model::plan::{Item, Need, Plan, Produced, Selector, Source};
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::model::read::{Fields, text};
use crate::plan::rule::{DraftRule, check_ids, read_rules};
use crate::plan::{MAX_PLAN_ITEMS, item};

/// A plan whose ids and references are as written, and whose wrong fields are absent.
///
/// References stay text so that one to a badly named item is not reported again as unknown.
pub(crate) struct Draft {
    pub(crate) id: Option<String>,
    pub(crate) queue: String,
    pub(crate) base: Option<String>,
    pub(crate) open_ended: bool,
    pub(crate) rules: Vec<DraftRule>,
    pub(crate) artifacts: BTreeMap<FilePath, String>,
    /// One for each element of `items`, so that positions are the author's.
    pub(crate) items: Vec<Option<DraftItem>>,
}

/// An item of a [`Draft`].
pub(crate) struct DraftItem {
    /// Where it stands; the root for one that stands in no plan that is being read.
    pub(crate) path: ItemPath,
    pub(crate) id: Option<String>,
    pub(crate) executor: Option<String>,
    pub(crate) inputs: Option<Map<String, Value>>,
    pub(crate) depends_on: Vec<Option<String>>,
    pub(crate) resource_locks: Vec<String>,
    pub(crate) subagent_shape: Option<String>,
    pub(crate) needs: BTreeMap<String, DraftNeed>,
    pub(crate) produces: Option<Vec<Produced>>,
    /// Whether it declares products that could not be read.
    pub(crate) products_unread: bool,
    pub(crate) timeout: Option<u64>,
    pub(crate) max_attempts: Option<u32>,
}

/// A need of a [`DraftItem`].
pub(crate) struct DraftNeed {
    pub(crate) from: Option<String>,
    pub(crate) select: Option<Selector>,
}

/// The place of an item's field.
pub(crate) struct ItemPath(pub(crate) JsonPath);

impl ItemPath {
    /// The item as a whole.
    pub(crate) fn itself(&self) -> &JsonPath {
        &self.0
    }

    /// A field of the item.
    pub(crate) fn key(&self, key: &str) -> JsonPath {
        self.0.key(key)
    }

    /// A field of one of the item's needs.
    pub(crate) fn need(&self, key: &str, field: &str) -> JsonPath {
        self.0.key("needs").key(key).key(field)
    }
}

impl Draft {
    /// The plan; `None` if anything of it is missing or no valid name.
    pub(crate) fn finish(self) -> Option<Plan> {
        let items = self.items.into_iter().map(|item| item?.finish());
        Some(Plan {
            id: RunId::parse(&self.id?).ok()?,
            queue: self.queue,
            base: self.base,
            open_ended: self.open_ended,
            rules: self.rules.into_iter().map(DraftRule::finish).collect::<Option<_>>()?,
            artifacts: self.artifacts,
            items: items.collect::<Option<_>>()?,
        })
    }
}

impl DraftItem {
    /// Reports references that no item can answer to, where nothing is known of the other items.
    pub(crate) fn check_references(&self, problems: &mut Problems) {
        let path = &self.path;
        let mut report = |error: NameError, at: JsonPath| {
            problems.push(Problem::new(Code::BadId, &at, error.to_string()));
        };
        for (index, id) in self.depends_on.iter().enumerate() {
            if let Some(Err(error)) = id.as_deref().map(ItemId::parse) {
                report(error, path.key("depends_on").index(index));
            }
        }
        for (key, need) in &self.needs {
            if let Some(Err(error)) = need.from.as_deref().map(Source::from_str) {
                report(error, path.need(key, "from"));
            }
        }
    }

    /// The item; `None` if anything of it is missing or no valid name.
    pub(crate) fn finish(self) -> Option<Item> {
        let depends_on = self.depends_on.into_iter();
        let needs = self.needs.into_iter();
        Some(Item {
            id: ItemId::parse(&self.id?).ok()?,
            executor: self.executor?,
            inputs: self.inputs?,
            depends_on: depends_on.map(|id| ItemId::parse(&id?).ok()).collect::<Option<_>>()?,
            resource_locks: self.resource_locks,
            subagent_shape: self.subagent_shape,
            needs: needs
                .map(|(key, need)| Some((FilePath::parse(&key).ok()?, need.finish()?)))
                .collect::<Option<_>>()?,
            produces: self.produces,
            timeout: self.timeout,
            max_attempts: self.max_attempts,
        })
    }
}

impl From<Item> for DraftItem {
    fn from(item: Item) -> Self {
        let need = |need: Need| DraftNeed { from: Some(need.from.into()), select: Some(need.select) };
        let needs = item.needs.into_iter();
        Self {
            path: ItemPath(JsonPath::root()),
            id: Some(item.id.into()),
            executor: Some(item.executor),
            inputs: Some(item.inputs),
            depends_on: item.depends_on.into_iter().map(|id| Some(id.into())).collect(),
            resource_locks: item.resource_locks,
            subagent_shape: item.subagent_shape,
            needs: needs.map(|(key, value)| (key.into(), need(value))).collect(),
            produces: item.produces,
            products_unread: false,
            timeout: item.timeout,
            max_attempts: item.max_attempts,
        }
    }
}

impl DraftNeed {
    fn finish(self) -> Option<Need> {
        Some(Need { from: self.from?.parse().ok()?, select: self.select? })
    }
}

/// Reads the object of a plan.
pub(crate) fn read(value: &Value, problems: &mut Problems) -> Option<Draft> {
    let known = ["id", "queue", "base", "openEnded", "rules", "artifacts", "items"];
    let fields = Fields::of(value, JsonPath::root(), &known, problems)?;
    let id = fields.required("id", problems);
    let id = id.and_then(|id| read_id(id, &fields.at("id"), RunId::parse, problems));
    let queue = fields.text("queue", problems).unwrap_or("default");
    let rules = fields.get("rules");
    let rules = rules.map_or_else(Vec::new, |rules| read_rules(rules, &fields.at("rules"), problems));
    check_ids(&[], &rules, problems);
    Some(Draft {
        id,
        queue: queue.to_owned(),
        base: fields.text("base", problems).map(str::to_owned),
        open_ended: fields.boolean("openEnded", problems).unwrap_or(false),
        rules,
        artifacts: read_artifacts(&fields, problems),
        items: read_items(&fields, problems),
    })
}

/// Reads an id, and keeps it if it is at least a string.
pub(crate) fn read_id<T>(
    value: &Value,
    at: &JsonPath,
    parse: fn(&str) -> Result<T, NameError>,
    problems: &mut Problems,
) -> Option<String> {
    let id = crate::model::read::string(value, at, problems)?;
    if let Err(error) = parse(id) {
        let code = match error {
            NameError::Reserved => Code::ReservedId,
            _ => Code::BadId,
        };
        problems.push(Problem::new(code, at, error.to_string()));
    }
    Some(id.to_owned())
}

fn read_items(fields: &Fields<'_>, problems: &mut Problems) -> Vec<Option<DraftItem>> {
    fields.required("items", problems);
    let Some(list) = fields.list("items", problems) else {
        return Vec::new();
    };
    if list.len() > MAX_PLAN_ITEMS {
        let message = format!("{} items; at most {MAX_PLAN_ITEMS} are read", list.len());
        problems.push(Problem::new(Code::TooManyItems, &fields.at("items"), message));
        return Vec::new();
    }
    if list.is_empty() {
        let message = "a plan has at least one item";
        problems.push(Problem::new(Code::NoItems, &fields.at("items"), message));
    }
    let items = list.iter().enumerate();
    items.map(|(index, value)| item::read(value, fields.at("items").index(index), problems)).collect()
}

fn read_artifacts(fields: &Fields<'_>, problems: &mut Problems) -> BTreeMap<FilePath, String> {
    let Some(map) = fields.object("artifacts", problems) else {
        return BTreeMap::new();
    };
    let at = fields.at("artifacts");
    let mut artifacts = BTreeMap::new();
    for (key, value) in map {
        let path = read_key(key, &at, problems);
        let file = text(value, &at.key(key), problems);
        artifacts.extend(path.zip(file.map(str::to_owned)));
    }
    report_clashes(map, &at, problems);
    artifacts
}

/// Checks a key that becomes a file.
pub(crate) fn read_key(key: &str, at: &JsonPath, problems: &mut Problems) -> Option<FilePath> {
    let path = FilePath::parse(key);
    if let Err(error) = &path {
        let problem = Problem::new(Code::BadInputKey, &at.key(key), error.to_string());
        problems.push(problem);
    }
    path.ok()
}

/// Reports the keys that cannot be files of one folder together.
pub(crate) fn report_clashes(map: &Map<String, Value>, at: &JsonPath, problems: &mut Problems) {
    // What is no path at all was reported, and could have any length.
    let paths = map.keys().filter(|key| FilePath::parse(key).is_ok());
    for (first, second) in clashes(paths.map(String::as_str)) {
        let message = format!("the keys {first:?} and {second:?} cannot be files side by side everywhere");
        problems.push(Problem::new(Code::BadInputKey, &at.key(&second), message));
    }
}
