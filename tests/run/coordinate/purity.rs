//! Determinism: the same documents make the same items, each once, in any order and by any process.

use git_handoff::model::role::every_role;
use std::convert::Infallible;

use git_handoff::model::digest::{Digest, Oid};
use git_handoff::model::entry::{Cause, DocumentWritten, Event, Product, RunExtended, RunSubmitted};
use git_handoff::model::judge::{self, Act};
use git_handoff::model::state::RunState;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{name, rule};

const DOCUMENTS: [&str; 3] = ["draft", "review", "release"];
const TEXTS: [&str; 5] = [r#"{"score":3}"#, r#"{"score":8}"#, r#"{"score":"high"}"#, "no JSON", "{}"];

fn rules() -> Vec<Value> {
    let score = |op: &str| json!([{ "document": "review", "pointer": "/score", "op": op, "value": 8 }]);
    vec![
        rule("start", &json!({ "absent": ["draft"] })),
        rule("review", &json!({ "present": ["draft"], "atMost": 4 })),
        rule("polish", &json!({ "present": ["review"], "absent": ["release"], "if": score("<"), "atMost": 2 })),
        rule("release", &json!({ "absent": ["release"], "if": score(">=") })),
    ]
}

fn fresh() -> RunState {
    let plan = json!({ "id": "r", "rules": rules(), "items": [
        { "id": "a", "executor": "command", "inputs": { "command": ["true"] } }] });
    let plan = git_handoff::plan::parse(plan.to_string().as_bytes()).unwrap();
    let submitted = RunSubmitted::new(
        Product::from_bytes(b"plan", gix::hash::Kind::Sha1).unwrap(),
        oid(),
        every_role(["SHA256:x".into()]),
    );
    RunState::new(submitted, &plan).with_rules(plan.rules)
}

fn oid() -> Oid {
    "0123456789012345678901234567890123456789".parse().unwrap()
}

fn write(state: &mut RunState, document: &str, text: &str) {
    let latest = state.documents.latest(&name(document)).map(|latest| (latest.number, latest.product.sha256));
    let product = Product { sha256: Digest::compute(text.as_bytes()), oid: oid(), size: text.len() as u64 };
    let revision = latest.map_or(1, |(number, _)| number + 1);
    let event = DocumentWritten {
        previous: latest.map(|(_, digest)| digest),
        ..DocumentWritten::new(name(document), revision, product, "human:ada".into())
    };
    state.apply(&Event::DocumentWritten(event)).unwrap();
}

/// Applies the rules in an order, one after the other; returns how many items there came.
fn coordinate(state: &mut RunState, order: &[usize]) -> usize {
    let mut created = 0;
    for at in order {
        let rule = state.rules[*at].clone();
        let read = |_: &_, revision: &git_handoff::model::document::Revision| {
            let text = TEXTS.into_iter().find(|text| Digest::compute(text.as_bytes()) == revision.product.sha256);
            Ok::<_, Infallible>(text.unwrap().as_bytes().to_vec())
        };
        let judged = judge::judge(state, &rule, read).unwrap();
        let acts = judge::acts(state, &rule, read).unwrap();
        let fires = judged.fires();
        assert_eq!(acts, judged.act.filter(|_| fires), "what is explained is what is done");
        if let Some(Act::Create(items)) = acts {
            created += items.len();
            let event = RunExtended::new(Cause::Rule(rule.id().clone()), &items, gix::hash::Kind::Sha1).unwrap();
            state.extend(&event, items).unwrap();
        }
    }
    created
}

fn ids(state: &RunState) -> Vec<String> {
    let mut ids: Vec<String> = state.graph.items().iter().map(|item| item.id.to_string()).collect();
    ids.sort();
    ids
}

proptest! {
    #[test]
    fn the_same_documents_create_the_same_items_once(
        writes in prop::collection::vec((0..DOCUMENTS.len(), 0..TEXTS.len()), 0..12),
        order in Just(vec![0, 1, 2, 3]).prop_shuffle(),
    ) {
        let (mut one, mut other) = (fresh(), fresh());
        for state in [&mut one, &mut other] {
            coordinate(state, &[0, 1, 2, 3]);
        }
        for (document, text) in writes {
            write(&mut one, DOCUMENTS[document], TEXTS[text]);
            write(&mut other, DOCUMENTS[document], TEXTS[text]);
            coordinate(&mut one, &[0, 1, 2, 3]);
            coordinate(&mut other, &order);
            prop_assert_eq!(ids(&one), ids(&other));
            prop_assert_eq!(coordinate(&mut other, &order), 0);
        }
        for rule in &one.rules {
            prop_assert!(one.created_by(rule.id()).len() as u64 <= rule.when.at_most);
        }
        let created: usize = one.rules.iter().map(|rule| one.created_by(rule.id()).len()).sum();
        prop_assert_eq!(created + 1, one.graph.items().len());
    }
}

#[test]
fn a_revision_is_read_once_for_all_rules_that_compare_it() {
    let mut state = fresh();
    let again = state.rules[2].clone();
    state.rules.extend(std::iter::repeat_n(again, 40));
    write(&mut state, "draft", TEXTS[0]);
    let mut reads = 0;
    for text in [TEXTS[0], TEXTS[2], TEXTS[3]] {
        write(&mut state, "review", text);
        for _ in 0..2 {
            let mut read = |_: &_, _: &git_handoff::model::document::Revision| {
                reads += 1;
                Ok::<_, Infallible>(text.as_bytes().to_vec())
            };
            for rule in &state.rules {
                judge::acts(&state, rule, &mut read).unwrap();
            }
            judge::stopped(&state, &mut read).unwrap();
        }
    }
    assert_eq!(reads, 3);
}
