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
            (0..=quorum.rounds).for_each(|index| compile_round(plan, &Round { subject, quorum: &quorum, index }));
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
    let fields = Fields::read(payload, at.clone(), &known, plan.problems)?;
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

/// One round of reviews, counted from 0.
struct Round<'q> {
    subject: &'q str,
    quorum: &'q Quorum,
    index: u64,
}

impl Round<'_> {
    /// Returns the number of the round in the names of its rules.
    fn number(&self) -> u64 {
        self.index + 1
    }

    /// Returns the item that is reviewed.
    fn work(&self) -> String {
        if self.index == 0 { self.subject.to_owned() } else { format!("{}-fix-{}", self.subject, self.index) }
    }

    /// Returns the beginning of the ids of a round's items.
    fn name(&self, round: u64) -> String {
        if round == 0 { self.subject.to_owned() } else { format!("{}~{}", self.subject, round + 1) }
    }

    /// Returns the id of a review.
    fn review(&self, round: u64, nth: usize) -> String {
        format!("{}::rev-{nth}", self.name(round))
    }

    /// Returns the ids of the reviews of this round.
    fn reviews(&self) -> Vec<String> {
        (0..self.quorum.reviewers.len()).map(|nth| self.review(self.index, nth)).collect()
    }

    /// Returns the id of the rule that creates the reviews.
    fn review_rule(&self) -> String {
        format!("{}.review-{}", self.subject, self.number())
    }

    /// Returns the id of the rule that sends the work back.
    fn fix_rule(&self) -> String {
        format!("{}.fix-{}", self.subject, self.number())
    }

    /// Returns the template of the fix, if rejected work is sent back after this round.
    fn fix(&self) -> Option<&Map<String, Value>> {
        self.quorum.fix.as_ref().filter(|_| self.index < self.quorum.rounds)
    }

    /// Returns the condition that compares the number of approvals with the threshold.
    fn approve(&self, op: &str) -> Value {
        json!({ "createdBy": self.review_rule(), "are": "green", "op": op, "value": self.quorum.threshold })
    }

    /// Returns the condition that all reviews have ended.
    ///
    /// Only items created by the rule vote. Once the work was sent back, votes on the earlier
    /// version no longer count.
    fn have_ended(&self) -> Value {
        json!({ "createdBy": self.review_rule(), "are": "ended" })
    }
}

/// Compiles the rules of one round: reviewers, and the items after approval or rejection.
fn compile_round(plan: &mut Plan<'_>, round: &Round<'_>) {
    add_reviews(plan, round);
    add_commit(plan, round);
    let rejected = json!({ "items": [round.have_ended(), round.approve("<")] });
    match round.fix() {
        Some(template) => add_fix(plan, round, template, &rejected),
        None => plan.rule(json!({
            "id": format!("{}.rejected", round.subject),
            "when": rejected,
            "outcome": "rejected",
        })),
    }
}

/// Adds the reviews of a round, and that they are votes.
fn add_reviews(plan: &mut Plan<'_>, round: &Round<'_>) {
    let work = round.work();
    let reviews = round.quorum.reviewers.iter().enumerate().map(|(nth, template)| {
        let mut more = json!({ "needs": { "work": patch_of(&work) } });
        if let Some(before) = round.index.checked_sub(1) {
            more["replaces"] = round.review(before, nth).into();
        }
        json!({ "item": item(template, &round.review(round.index, nth), more) })
    });
    plan.rule(json!({
        "id": round.review_rule(),
        "when": { "items": [{ "items": [work], "are": "done" }] },
        "create": reviews.collect::<Vec<Value>>(),
    }));
    for (nth, id) in round.reviews().iter().enumerate() {
        let vote = json!({ "item": id, "votes": true });
        plan.rule(json!({ "id": format!("{}.vote-{}-{nth}", round.subject, round.number()), "gate": vote }));
    }
}

/// Adds the item after approval.
fn add_commit(plan: &mut Plan<'_>, round: &Round<'_>) {
    let mut enough = vec![round.have_ended(), round.approve(">=")];
    if round.fix().is_some() {
        enough.push(json!({ "createdBy": round.fix_rule(), "count": "rounds", "op": "==", "value": 0 }));
    }
    let id = format!("{}::commit", round.name(round.index));
    plan.rule(json!({
        "id": format!("{}.commit-{}", round.subject, round.number()),
        "when": { "items": enough },
        "create": [{
            "item": item(&round.quorum.commit, &id, json!({ "needs": { "work": patch_of(&round.work()) } })),
        }],
    }));
}

/// Adds the item that fixes rejected work.
fn add_fix(plan: &mut Plan<'_>, round: &Round<'_>, template: &Map<String, Value>, rejected: &Value) {
    let ids = round.reviews();
    let mut needs = Map::from_iter([("work".to_owned(), patch_of(&round.work()))]);
    let findings = ids.iter().enumerate();
    needs.extend(findings.map(|(nth, id)| (format!("findings-{nth}"), output_of(id, "findings"))));
    let optional: Vec<String> = (0..ids.len()).map(|nth| format!("findings-{nth}")).collect();
    let more = json!({ "continues": round.subject, "needs": needs });
    let fix = item(template, &format!("{}-fix-{}", round.subject, round.number()), more);
    plan.rule(json!({
        "id": round.fix_rule(),
        "when": rejected,
        "create": [{ "item": fix, "optional": optional }],
    }));
}
