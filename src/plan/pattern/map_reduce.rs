//! The pattern `map-reduce`: an item for each output of another, and one that combines the results.

use serde_json::{Value, json};

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
        compile_splitter(plan, (splitter, &prefix), payload, &at);
    }
}

fn compile_splitter(
    plan: &mut Plan<'_>,
    (splitter, prefix): (&str, &str),
    payload: &Value,
    at: &JsonPath,
) -> Option<()> {
    let fields = Fields::of(payload, at.clone(), &["map", "reduce", "onMapFailure", "minSuccess"], plan.problems)?;
    let map = plan.template(fields.get("map"), &fields.at("map"), &["needsKey", "outputPath"]);
    let reduce = plan.template(fields.get("reduce"), &fields.at("reduce"), &["keyPrefix"]);
    let (maps, reduced) = (fold(&format!("{prefix}map-")), fold(&format!("{prefix}reduce")));
    plan.reserve(splitter, |id| id.starts_with(&maps) || id == reduced);
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
    let least = least.unwrap_or(1);
    let word = |plan: &mut Plan<'_>, of: &str, key: &str, default: &str| -> Option<String> {
        // A value that is not an object was already reported.
        let part = Fields::open(fields.get(of)?.as_object()?, fields.at(of));
        Some(part.text(key, plan.problems).unwrap_or(default).to_owned())
    };
    let needs_key = word(plan, "map", "needsKey", "input")?;
    let output = word(plan, "map", "outputPath", "result")?;
    let key_prefix = word(plan, "reduce", "keyPrefix", "part")?;
    let (map, reduce) = (map?, reduce?);

    let (maps, one_map) = (format!("{splitter}.map"), format!("{prefix}map-{KEY}"));
    let needs = json!({ "needs": { needs_key: output_of(splitter, KEY) } });
    plan.rule(json!({
        "id": maps,
        "when": { "items": [{ "items": [splitter], "are": "done" }] },
        "forEach": { "outputsOf": splitter },
        "create": [{ "item": item(&map, &one_map, needs) }],
    }));
    let all = |words: Value| json!({ "createdBy": maps, "are": words });
    let counted =
        |words: Value, op: &str, value: u64| json!({ "createdBy": maps, "are": words, "op": op, "value": value });
    let lost = json!(["failed", "skipped", "cancelled"]);
    let (enough, outcome, too_few) = if survivors {
        let enough = vec![all(json!("ended")), counted(json!("done"), ">=", least)];
        (enough, "too-few-maps", vec![all(json!("ended")), counted(json!("done"), "<", least)])
    } else {
        (vec![all(json!("done"))], "map-failed", vec![all(json!("ended")), counted(lost, ">=", 1)])
    };
    let id = format!("{prefix}reduce");
    plan.rule(json!({
        "id": format!("{splitter}.reduce"),
        "when": { "items": enough },
        "create": [{
            "item": item(&reduce, &id, json!({})),
            "each": {
                "outputsOf": splitter,
                "key": format!("{key_prefix}-{KEY}"),
                "from": one_map,
                "select": { "kind": "output", "path": output },
                "survivors": survivors,
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
    Some(())
}
