//! The pattern `map-reduce`: an item for each output of another, and one that combines the results.

use serde_json::{Map, Value, json};

use super::{Plan, item, output_of};
use crate::model::json::JsonPath;
use crate::model::name::fold;
use crate::model::read::Fields;
use crate::model::rule::KEY;

/// The maximum number of maps.
const MOST: u64 = 1 << 18;

pub(super) fn compile(plan: &mut Plan<'_>) {
    let splitters = plan.payloads("mapReduce");
    let alone = splitters.len() == 1;
    for (splitter, payload, at) in splitters {
        let prefix = if alone { String::new() } else { format!("{splitter}-") };
        if let Some(work) = read(plan, splitter, prefix, payload, &at) {
            add_map_rule(plan, &work);
            add_reduce_rules(plan, &work);
        }
    }
}

/// The payload of a splitter.
struct MapReduce<'p> {
    splitter: &'p str,
    /// The beginning of the ids of the items that it creates.
    prefix: String,
    map: Map<String, Value>,
    reduce: Map<String, Value>,
    /// The input key of a map.
    needs_key: String,
    /// The output path of a map.
    output: String,
    /// The beginning of the input keys of the reduce.
    key_prefix: String,
    success: Success,
}

/// The condition under which the results are combined.
#[derive(Clone, Copy)]
enum Success {
    /// Every map is done.
    All,
    /// All maps have ended, and at least so many are done.
    AtLeast(u64),
}

fn read<'p>(
    plan: &mut Plan<'_>,
    splitter: &'p str,
    prefix: String,
    payload: &Value,
    at: &JsonPath,
) -> Option<MapReduce<'p>> {
    let fields = Fields::read(payload, at.clone(), &["map", "reduce", "onMapFailure", "minSuccess"], plan.problems)?;
    let map = plan.template(fields.get("map"), &fields.at("map"), &["needsKey", "outputPath"]);
    let reduce = plan.template(fields.get("reduce"), &fields.at("reduce"), &["keyPrefix"]);
    let (maps, reduced) = (fold(&format!("{prefix}map-")), fold(&format!("{prefix}reduce")));
    plan.reserve(splitter, |id| id.starts_with(&maps) || id == reduced);
    let success = read_success(plan, &fields)?;
    let word = |reading: &mut Plan<'_>, of: &str, key: &str, default: &str| -> Option<String> {
        // A value that is not an object was already reported.
        let part = Fields::open(fields.get(of)?.as_object()?, fields.at(of));
        Some(part.text(key, reading.problems).unwrap_or(default).to_owned())
    };
    let needs_key = word(plan, "map", "needsKey", "input")?;
    let output = word(plan, "map", "outputPath", "result")?;
    let key_prefix = word(plan, "reduce", "keyPrefix", "part")?;
    Some(MapReduce { splitter, prefix, map: map?, reduce: reduce?, needs_key, output, key_prefix, success })
}

fn read_success(plan: &mut Plan<'_>, fields: &Fields<'_>) -> Option<Success> {
    let survivors = match fields.string("onMapFailure", plan.problems).unwrap_or("fail") {
        "fail" => false,
        "reduce-survivors" => true,
        other => {
            return plan.bad(&fields.at("onMapFailure"), format!("{other:?} is none of fail and reduce-survivors"));
        }
    };
    let least = fields.integer("minSuccess", &(1..=MOST), plan.problems);
    if least.is_some() && !survivors {
        plan.bad::<()>(
            &fields.at("minSuccess"),
            "it is for onMapFailure reduce-survivors: otherwise all of them count",
        );
    }
    Some(if survivors { Success::AtLeast(least.unwrap_or(1)) } else { Success::All })
}

impl MapReduce<'_> {
    /// Returns the id of the rule that creates the maps.
    fn map_rule(&self) -> String {
        format!("{}.map", self.splitter)
    }

    /// Returns the id of a map, with a placeholder for the key.
    fn map_id(&self) -> String {
        format!("{}map-{KEY}", self.prefix)
    }
}

fn add_map_rule(plan: &mut Plan<'_>, work: &MapReduce<'_>) {
    let splitter = work.splitter;
    let needs = json!({ "needs": { &work.needs_key: output_of(splitter, KEY) } });
    plan.rule(json!({
        "id": work.map_rule(),
        "when": { "items": [{ "items": [splitter], "are": "done" }] },
        "forEach": { "outputsOf": splitter },
        "create": [{ "item": item(&work.map, &work.map_id(), needs) }],
    }));
}

/// Adds the rule that combines the results, and those for results that cannot be combined.
fn add_reduce_rules(plan: &mut Plan<'_>, work: &MapReduce<'_>) {
    let (splitter, maps) = (work.splitter, work.map_rule());
    let all = |words: Value| json!({ "createdBy": maps, "are": words });
    let counted =
        |words: Value, op: &str, value: u64| json!({ "createdBy": maps, "are": words, "op": op, "value": value });
    let lost = json!(["failed", "skipped", "cancelled"]);
    let (enough, outcome, too_few) = match work.success {
        Success::AtLeast(least) => {
            let enough = vec![all(json!("ended")), counted(json!("done"), ">=", least)];
            (enough, "too-few-maps", vec![all(json!("ended")), counted(json!("done"), "<", least)])
        }
        Success::All => (vec![all(json!("done"))], "map-failed", vec![all(json!("ended")), counted(lost, ">=", 1)]),
    };
    let id = format!("{}reduce", work.prefix);
    plan.rule(json!({
        "id": format!("{splitter}.reduce"),
        "when": { "items": enough },
        "create": [{
            "item": item(&work.reduce, &id, json!({})),
            "each": {
                "outputsOf": splitter,
                "key": format!("{}-{KEY}", work.key_prefix),
                "from": work.map_id(),
                "select": { "kind": "output", "path": work.output },
                "survivors": matches!(work.success, Success::AtLeast(_)),
            },
        }],
    }));
    plan.rule(json!({ "id": format!("{splitter}.lost"), "when": { "items": too_few }, "outcome": outcome }));
    plan.rule(json!({
        "id": format!("{splitter}.empty"),
        "when": { "items": [
            { "items": [splitter], "are": "done" },
            { "items": [splitter], "count": "outputs", "op": "==", "value": 0 },
        ] },
        "outcome": "no-outputs",
    }));
}
