//! The pattern `pipeline`: sequential items, and gates that send work back.

use serde_json::{Map, Value, json};

use super::{Plan, folded, item, output_of, patch_of};
use crate::model::json::JsonPath;
use crate::model::name::fold;
use crate::model::problem::{Code, Problem};
use crate::model::read::Fields;

/// The maximum number of rounds of a gate.
const MOST: u64 = 100;

/// Compiles the gates of a plan.
pub(super) fn compile(plan: &mut Plan<'_>) {
    let gates = plan.payloads("gate");
    for (gate, payload, at) in &gates {
        compile_gate(plan, gate, payload, at);
    }
    if !gates.is_empty() {
        let ids = folded(plan.draft.items.iter().flatten().filter_map(|item| item.id.as_deref()));
        plan.reserve("its gates", |id| {
            let numbered = id.rsplit_once('~').filter(|(_, number)| number.parse::<u64>().is_ok());
            numbered.is_some_and(|(base, _)| ids.contains(base))
        });
    }
}

/// Makes each item without dependencies depend on the previous one.
pub(super) fn chain(plan: &mut Plan<'_>) {
    let mut order = serde_json::Map::new();
    let items: Vec<_> = plan.draft.items.iter().enumerate().collect();
    for pair in items.windows(2) {
        let [(before, Some(first)), (at, Some(item))] = pair else { continue };
        if let (Some(first), Some(id)) = (&first.id, &item.id)
            && item.depends_on.is_empty()
        {
            order.insert(id.clone(), json!([first]));
            plan.made.order.push((*at, *before));
        }
    }
    if !order.is_empty() {
        plan.rule(json!({ "id": "pipeline", "order": order }));
    }
}

fn compile_gate(plan: &mut Plan<'_>, gate: &str, payload: &Value, at: &JsonPath) -> Option<()> {
    let known = ["onRed", "subject", "fixTemplate", "maxFixAttempts"];
    let fields = Fields::read(payload, at.clone(), &known, plan.problems)?;
    ["onRed", "subject"].iter().for_each(|key| _ = fields.required(key, plan.problems));
    let on_red = read_on_red(plan, &fields);
    let subject = read_subject(plan, &fields, gate);
    let most = fields.integer("maxFixAttempts", &(0..=MOST), plan.problems).unwrap_or(1);
    let template = match (on_red, fields.get("fixTemplate")) {
        (Some("advance" | "block"), None) | (None, _) => None,
        (_, template) => plan.template(template, &fields.at("fixTemplate"), &[]),
    };
    let (on_red, subject) = (on_red?, subject?);
    plan.rule(json!({ "id": format!("{gate}.gate"), "gate": { "item": gate, "blocks": on_red != "advance" } }));
    if on_red != "spawn-fix" {
        if fields.get("fixTemplate").is_some() {
            plan.made.warnings.push(format!("{at}.fixTemplate is for onRed spawn-fix alone"));
        }
        return None;
    }
    add_fix_rules(plan, gate, subject, &template?, most);
    Some(())
}

fn read_on_red<'f>(plan: &mut Plan<'_>, fields: &Fields<'f>) -> Option<&'f str> {
    match fields.string("onRed", plan.problems) {
        Some(other) if !["advance", "spawn-fix", "block"].contains(&other) => {
            plan.bad(&fields.at("onRed"), format!("{other:?} is none of advance, spawn-fix and block"))
        }
        on_red => on_red,
    }
}

fn read_subject<'f>(plan: &mut Plan<'_>, fields: &Fields<'f>, gate: &str) -> Option<&'f str> {
    match fields.string("subject", plan.problems) {
        Some(subject) if !plan.has(subject) || subject == gate => {
            let message = format!("there is no item {subject:?} in this run that the gate could be for");
            plan.problems.push(Problem::new(Code::UnknownDependency, &fields.at("subject"), message));
            None
        }
        subject => subject,
    }
}

/// Adds the rule that sends work back when a gate is red, and the outcome after the last attempt.
fn add_fix_rules(plan: &mut Plan<'_>, gate: &str, subject: &str, template: &Map<String, Value>, most: u64) {
    let (fix_rule, red) = (format!("{gate}.fix"), json!({ "items": [gate], "are": ["red", "failed"] }));
    if most > 0 {
        let fix = item(
            template,
            &format!("{gate}-fix-{{{{n}}}}"),
            json!({
                "continues": subject,
                "needs": { "work": patch_of(subject), "findings": output_of(gate, "findings") },
            }),
        );
        plan.rule(json!({
            "id": fix_rule,
            "when": {
                "items": [red, { "createdBy": fix_rule, "are": "cancelled", "op": "==", "value": 0 }],
                "atMost": most,
            },
            "create": [
                { "item": fix, "optional": ["findings"], "reasons": { "gateReason": gate } },
                { "again": gate },
            ],
        }));
        let prefix = fold(&format!("{gate}-fix-"));
        plan.reserve(gate, |id| {
            id.strip_prefix(&prefix).and_then(|n| n.parse::<u64>().ok()).is_some_and(|n| (1..=most).contains(&n))
        });
    }
    let used_up = json!({ "createdBy": fix_rule, "count": "rounds", "op": ">=", "value": most });
    plan.rule(json!({
        "id": format!("{gate}.used-up"),
        "when": { "items": [red, used_up] },
        "outcome": "attempts-used-up",
    }));
}
