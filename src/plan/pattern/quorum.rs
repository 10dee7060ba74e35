//! The pattern `quorum`: work continues only if enough reviewers approve.

use serde_json::{Map, Value, json};

use super::{Plan, item, output_of, patch_of};
use crate::model::json::JsonPath;
use crate::model::name::fold;
use crate::model::read::Fields;

/// The maximum number of rounds, and of reviewers.
const MOST: u64 = 100;

pub(super) fn compile(plan: &mut Plan<'_>) {
    for (subject, payload, at) in plan.payloads("quorum") {
        if let Some(quorum) = read(plan, payload, &at) {
            (0..=quorum.rounds).for_each(|round| compile_round(plan, subject, &quorum, round));
            let (reviews, fixes) = (fold(&format!("{subject}::")), fold(&format!("{subject}-fix-")));
            let later = fold(&format!("{subject}~"));
            plan.reserve(subject, |id| [&reviews, &fixes, &later].iter().any(|prefix| id.starts_with(*prefix)));
        }
    }
}

/// The payload of a subject.
struct Quorum {
    reviewers: Vec<Map<String, Value>>,
    threshold: u64,
    commit: Map<String, Value>,
    fix: Option<Map<String, Value>>,
    /// The maximum number of rounds.
    rounds: u64,
}

fn read(plan: &mut Plan<'_>, payload: &Value, at: &JsonPath) -> Option<Quorum> {
    let known = ["reviewers", "threshold", "commit", "onReject", "fixTemplate", "maxRounds"];
    let fields = Fields::of(payload, at.clone(), &known, plan.problems)?;
    ["reviewers", "threshold", "commit"].iter().for_each(|key| _ = fields.required(key, plan.problems));
    let list = fields.list("reviewers", plan.problems)?;
    if list.is_empty() || list.len() as u64 > MOST {
        return plan.bad(&fields.at("reviewers"), format!("there are 1 to {MOST} reviewers"));
    }
    let reviewers: Vec<_> = list
        .iter()
        .enumerate()
        .map(|(index, reviewer)| plan.template(Some(reviewer), &fields.at("reviewers").index(index), &[]))
        .collect();
    let threshold = fields.integer("threshold", &(1..=list.len() as u64), plan.problems);
    let commit = plan.template(fields.get("commit"), &fields.at("commit"), &[]);
    let sent_back = match fields.string("onReject", plan.problems).unwrap_or("block") {
        "block" => false,
        "spawn-fix" => true,
        other => return plan.bad(&fields.at("onReject"), format!("{other:?} is none of spawn-fix and block")),
    };
    let rounds = fields.integer("maxRounds", &(0..=MOST), plan.problems).unwrap_or(1);
    let fix = match (sent_back, fields.get("fixTemplate")) {
        (false, None) => None,
        (_, template) => plan.template(template, &fields.at("fixTemplate"), &[]).filter(|_| sent_back),
    };
    let rounds = if sent_back { rounds } else { 0 };
    let reviewers = reviewers.into_iter().collect::<Option<_>>()?;
    Some(Quorum { reviewers, threshold: threshold?, commit: commit?, fix, rounds })
}

/// Compiles the rules of one round: reviewers, and the items after approval or rejection.
fn compile_round(plan: &mut Plan<'_>, subject: &str, quorum: &Quorum, round: u64) {
    let name = |round: u64| if round == 0 { subject.to_owned() } else { format!("{subject}~{}", round + 1) };
    let reviewer = |round: u64, nth: usize| format!("{}::rev-{nth}", name(round));
    let (this, number) = (name(round), round + 1);
    let work = if round == 0 { subject.to_owned() } else { format!("{subject}-fix-{round}") };
    let reviews = quorum.reviewers.iter().enumerate().map(|(nth, template)| {
        let mut more = json!({ "needs": { "work": patch_of(&work) } });
        if round > 0 {
            more["replaces"] = reviewer(round - 1, nth).into();
        }
        json!({ "item": item(template, &reviewer(round, nth), more) })
    });
    let reviews: Vec<Value> = reviews.collect();
    plan.rule(json!({
        "id": format!("{subject}.review-{number}"),
        "when": { "items": [{ "items": [work], "are": "done" }] },
        "create": reviews,
    }));
    let ids: Vec<String> = (0..quorum.reviewers.len()).map(|nth| reviewer(round, nth)).collect();
    for (nth, id) in ids.iter().enumerate() {
        let vote = json!({ "item": id, "votes": true });
        plan.rule(json!({ "id": format!("{subject}.vote-{number}-{nth}"), "gate": vote }));
    }
    // Only items created by the rule vote. Once the work was sent back, votes on the earlier
    // version no longer count.
    let review = format!("{subject}.review-{number}");
    let ended = json!({ "createdBy": review, "are": "ended" });
    let green = |op: &str| json!({ "createdBy": review, "are": "green", "op": op, "value": quorum.threshold });
    let (fix_rule, sent_back) =
        (format!("{subject}.fix-{number}"), quorum.fix.as_ref().filter(|_| round < quorum.rounds));
    let mut enough = vec![ended.clone(), green(">=")];
    if sent_back.is_some() {
        enough.push(json!({ "createdBy": fix_rule, "count": "rounds", "op": "==", "value": 0 }));
    }
    plan.rule(json!({
        "id": format!("{subject}.commit-{number}"),
        "when": { "items": enough },
        "create": [{
            "item": item(&quorum.commit, &format!("{this}::commit"), json!({ "needs": { "work": patch_of(&work) } })),
        }],
    }));
    let rejected = json!({ "items": [ended, green("<")] });
    match sent_back {
        Some(template) => {
            let mut needs = Map::from_iter([("work".to_owned(), patch_of(&work))]);
            let findings = ids.iter().enumerate();
            needs.extend(findings.map(|(nth, id)| (format!("findings-{nth}"), output_of(id, "findings"))));
            let optional: Vec<String> = (0..ids.len()).map(|nth| format!("findings-{nth}")).collect();
            let more = json!({ "continues": subject, "needs": needs });
            let fix = item(template, &format!("{subject}-fix-{number}"), more);
            plan.rule(json!({
                "id": fix_rule,
                "when": rejected,
                "create": [{ "item": fix, "optional": optional }],
            }));
        }
        None => plan.rule(json!({
            "id": format!("{subject}.rejected"),
            "when": rejected,
            "outcome": "rejected",
        })),
    }
}
