//! Large and random graphs.

use super::{check, item, lines, plan_of};
use git_handoff::model::graph::Graph;
use git_handoff::plan::validate::Code;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// `n0` waits for `n1`, which waits for `n2`, and so on.
fn chain(length: usize) -> Vec<Value> {
    let waits = (0..length).map(|at| if at + 1 < length { json!([format!("n{}", at + 1)]) } else { json!([]) });
    waits.enumerate().map(|(at, on)| item(&format!("n{at}"), &json!({"depends_on": on}))).collect()
}

#[test]
fn a_long_chain_in_reverse_order_is_quick() {
    let mut items = chain(10_000);
    let started = Instant::now();
    let valid = check(&plan_of(&items)).unwrap();
    let graph = Graph::new(valid.plan());
    let order = graph.order();
    assert_eq!(graph.item(order[0]).id.as_str(), "n9999");
    assert_eq!(graph.item(order[9_999]).id.as_str(), "n0");

    items[9_999]["depends_on"] = json!(["n0"]);
    let problems = check(&plan_of(&items)).unwrap_err();
    assert_eq!(lines(&problems), ["cycle items[0]"]);
    assert!(
        problems[0]
            .message
            .ends_with(": n0 -> n1 -> n2 -> n3 -> n4 -> (9991 more) -> n9996 -> n9997 -> n9998 -> n9999 -> n0"),
        "{}",
        problems[0].message
    );
    // Generous, since the machine may be busy; a quadratic pass takes minutes.
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[test]
fn many_unknown_names_are_quick() {
    let items: Vec<Value> =
        (0..5_000).map(|at| item(&format!("item-{at}"), &json!({"depends_on": [format!("itme-{at}")]}))).collect();
    let started = Instant::now();
    let problems = check(&plan_of(&items)).unwrap_err();
    assert_eq!((problems.count(), problems.len(), problems.more()), (5_000, 1_000, 4_000));
    assert!(problems[0].hint.is_some());
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[test]
fn each_cycle_is_printed_once() {
    let on = |id: &str, on: Value| item(id, &json!({"depends_on": on}));
    let problems = check(&plan_of(&[
        on("before", json!([])),
        on("a", json!(["b", "before"])),
        on("b", json!(["c"])),
        on("c", json!(["a", "b"])),
        on("x", json!(["y", "a"])),
        on("y", json!(["x"])),
        on("after", json!(["y", "a"])),
    ]))
    .unwrap_err();
    let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(
        messages,
        ["these items wait for one another: a -> b -> c -> a", "these items wait for one another: x -> y -> x",]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_random_dag_is_valid_and_an_edge_back_is_one_cycle(
        size in 2_usize..30,
        edges in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<bool>()), 0..80),
        order in any::<u64>(),
    ) {
        // A path from the first to the last, so that the edge back always closes a cycle.
        let mut items: Vec<Value> = (0..size).map(|at| item(&format!("n{at}"), &json!({
            "depends_on": if at == 0 { json!([]) } else { json!([format!("n{}", at - 1)]) }, "needs": {},
        }))).collect();
        for (number, (from, to, need)) in edges.iter().enumerate() {
            let (low, high) = (from.index(size), to.index(size));
            let (low, high) = (low.min(high), low.max(high));
            if low == high {
                continue;
            }
            if *need {
                items[high]["needs"][format!("k{number}")] = json!({"from": format!("n{low}"), "select": {"kind": "patch"}});
            } else {
                items[high]["depends_on"].as_array_mut().unwrap().push(json!(format!("n{low}")));
            }
        }
        let mut shuffled = items.clone();
        shuffled.rotate_left(usize::try_from(order % size as u64).unwrap());
        let valid = check(&plan_of(&shuffled)).unwrap();
        let graph = Graph::new(valid.plan());
        let ordered = graph.order();
        let place = |id: &str| ordered.iter().position(|at| graph.item(*at).id.as_str() == id).unwrap();
        for item in &valid.plan().items {
            for dependency in item.dependencies() {
                prop_assert!(place(dependency.as_str()) < place(item.id.as_str()));
            }
        }

        items[0]["depends_on"] = json!([format!("n{}", size - 1)]);
        let problems = check(&plan_of(&items)).unwrap_err();
        prop_assert_eq!(problems.len(), 1);
        prop_assert_eq!(problems[0].code, Code::Cycle);
    }
}
