//! Pictures of runs and plans: what must be true of every one, however many items it has.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use git_handoff::git::store::Store;
use git_handoff::model::item_index::{ItemIndex, ItemVec};
use git_handoff::model::name::ItemId;
use git_handoff::report::graph::tree::{Needs, rows};
use git_handoff::report::graph::{BOXES, Keys, LABEL, Outline, OutlineItem, Picture, mermaid, text};
use git_handoff::run::query::Target;
use serde_json::json;

use crate::common::repo::{TestRepo, item};

/// Outlines items, each with the positions of its dependencies.
fn outline<I: AsRef<str>>(items: &[(I, Vec<usize>)]) -> Outline {
    let indices: Vec<ItemIndex> = ItemVec::from(vec![(); items.len()]).indices().collect();
    let item = |(id, on): &(I, Vec<usize>)| OutlineItem {
        id: ItemId::parse(id.as_ref()).unwrap(),
        dependencies: on.iter().map(|on| indices[*on]).collect(),
        keys: Keys::default(),
    };
    Outline { items: items.iter().map(item).collect() }
}

/// Returns numbers that are the same in every run of the tests.
fn numbers() -> impl FnMut(usize) -> usize {
    let mut state = 1_u64;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    }
}

/// Items whose names have nothing in common; each depends on up to three items before it.
fn tangle(count: usize) -> Outline {
    let mut number = numbers();
    let mut items: Vec<(String, Vec<usize>)> = Vec::new();
    for at in 0..count {
        let name: String = (0..12).map(|_| char::from(b'a' + u8::try_from(number(26)).unwrap())).collect();
        let on = if at == 0 { Vec::new() } else { (0..number(4)).map(|_| at - 1 - number(at.min(50))).collect() };
        items.push((name, on));
    }
    outline(&items)
}

/// One item, so many after it, and one after all of those.
fn fan(count: usize) -> Outline {
    let mut items = vec![("split".to_owned(), Vec::new())];
    items.extend((1..=count).map(|at| (format!("shard-{at:03}"), vec![0])));
    items.push(("join".to_owned(), (1..=count).collect()));
    outline(&items)
}

/// Items that each depend on the one before.
fn chain_of(names: Vec<String>) -> Outline {
    let after = |(at, name): (usize, String)| (name, at.checked_sub(1).into_iter().collect());
    outline(&names.into_iter().enumerate().map(after).collect::<Vec<_>>())
}

/// Holds what must be true of every picture.
#[track_caller]
fn hold(outline: &Outline, most: usize) -> Picture {
    let picture = Picture::new(outline, most);
    assert_eq!(picture, Picture::new(&outline.clone(), most), "equal outlines have equal pictures");
    assert!(picture.boxes.len() <= most, "{} boxes", picture.boxes.len());
    let members: Vec<ItemIndex> = picture.boxes.iter().flat_map(|node| node.members.clone()).collect();
    assert_eq!(members.len(), outline.items.len(), "each item is in one box");
    assert_eq!(members.iter().copied().collect::<BTreeSet<_>>(), outline.items.indices().collect());
    for (at, node) in picture.boxes.iter().enumerate() {
        assert_eq!(node.group.is_some(), node.members.len() > 1);
        assert!(!node.label.is_empty() && node.label.len() <= LABEL, "{}", node.label);
        assert!(node.label.chars().all(|c| (' '..='~').contains(&c)), "{}", node.label);
        assert!(node.x + node.width < picture.width && node.y + node.height < picture.height);
        for other in &picture.boxes[at + 1..] {
            let side_by_side = node.x + node.width < other.x || other.x + other.width < node.x;
            let above = node.y + node.height < other.y || other.y + other.height < node.y;
            assert!(side_by_side || above, "{node:?} overlaps {other:?}");
            assert_ne!((node.layer, node.place), (other.layer, other.place));
        }
    }
    let mut ends = BTreeSet::new();
    for edge in &picture.edges {
        let (from, to) = (&picture.boxes[edge.from], &picture.boxes[edge.to]);
        assert!(from.layer < to.layer && from.x + from.width < to.x, "{edge:?} goes back");
        assert!(ends.insert((edge.from, edge.to)), "{edge:?} is drawn twice");
        if let Some((x, y)) = edge.bend {
            assert!(x > from.x + from.width && x < to.x && y < picture.height, "{edge:?}");
        }
    }
    let box_of = |item: ItemIndex| picture.boxes.iter().position(|node| node.members.contains(&item)).unwrap();
    let drawn: BTreeSet<(usize, usize)> = outline
        .items
        .indexed()
        .flat_map(|(at, item)| item.dependencies.iter().map(move |on| (*on, at)))
        .map(|(on, at)| (box_of(on), box_of(at)))
        .filter(|(from, to)| from != to)
        .collect();
    assert_eq!(ends, drawn, "the edges are those between items of different boxes");
    hold_rows(&picture);
    picture
}

/// Holds that each box has one row, below everything that it depends on.
#[track_caller]
fn hold_rows(picture: &Picture) {
    let (rows, needs) = (rows(picture), picture.needs());
    let mut listed = BTreeSet::new();
    for row in &rows {
        assert!(needs[row.node].iter().all(|on| listed.contains(on)), "{row:?} is listed before what it needs");
        assert!(listed.insert(row.node), "{row:?} is listed twice");
        if let Needs::Boxes(boxes) = &row.needs {
            assert_eq!(boxes, &needs[row.node]);
        }
    }
    assert_eq!(listed.len(), picture.boxes.len());
}

/// Returns the rows as text.
fn drawn(outline: &Outline, most: usize) -> String {
    let picture = Picture::new(outline, most);
    let line = |row: &git_handoff::report::graph::tree::Row| {
        let needs = match &row.needs {
            Needs::Shown => String::new(),
            Needs::Branches(count) => format!(" < {count} above"),
            Needs::Boxes(boxes) => {
                let labels: Vec<&str> = boxes.iter().map(|at| picture.boxes[*at].label.as_str()).collect();
                format!(" < {}", labels.join(", "))
            }
        };
        format!("{}{}{needs}\n", row.lines, picture.boxes[row.node].label)
    };
    rows(&picture).iter().map(line).collect()
}

#[test]
fn few_items_are_drawn_whole() {
    let diamond = outline(&[("a", vec![]), ("b", vec![0]), ("c", vec![0]), ("d", vec![1, 2])]);
    let picture = hold(&diamond, BOXES);
    let places: Vec<_> = picture.boxes.iter().map(|node| (node.label.as_str(), node.layer, node.place)).collect();
    assert_eq!(places, [("a", 0, 0), ("b", 1, 0), ("c", 1, 1), ("d", 2, 0)]);
    assert!(picture.edges.iter().all(|edge| edge.bend.is_none()));
    assert_eq!((picture.boxes[0].y, picture.boxes[3].y), (41, 41), "a layer is centred");
    assert_eq!(hold(&fan(BOXES - 2), BOXES).boxes.len(), BOXES);
    let none = hold(&Outline::default(), BOXES);
    assert!(none.boxes.is_empty() && none.edges.is_empty());
}

#[test]
fn an_edge_bends_around_a_box_if_it_can() {
    let roots = [("a", vec![]), ("e", vec![]), ("f", vec![])];
    let others = [("b", vec![0]), ("x", vec![3]), ("y", vec![3]), ("c", vec![0, 2, 3])];
    let picture = hold(&outline(&[&roots[..], &others[..]].concat()), BOXES);
    let middle = |at: usize| picture.boxes[at].y + picture.boxes[at].height / 2;
    let bend = |from, to| picture.edges.iter().find(|edge| (edge.from, edge.to) == (from, to)).unwrap().bend;
    // A straight line from a to c would cross b, and so would one that bends at its end.
    assert_eq!(bend(0, 6), Some((picture.boxes[3].x, middle(6))), "{picture:?}");
    assert!(picture.boxes[3].y + picture.boxes[3].height < middle(6));
    assert_eq!((bend(2, 6), bend(3, 6)), (None, None), "a straight line crosses nothing");
}

#[test]
fn barycentres_leave_no_crossing_that_a_ladder_does_not_need() {
    let items = [("a", vec![]), ("b", vec![]), ("c", vec![]), ("x", vec![2]), ("y", vec![1]), ("z", vec![0])];
    let picture = hold(&outline(&items), BOXES);
    for edge in &picture.edges {
        assert_eq!(picture.boxes[edge.from].place, picture.boxes[edge.to].place, "{picture:?}");
    }
}

#[test]
fn numbered_items_share_a_box() {
    let picture = hold(&fan(400), BOXES);
    let labels: Vec<&str> = picture.boxes.iter().map(|node| node.label.as_str()).collect();
    assert_eq!(labels, ["split", "shard-# (400)", "join"]);
    assert_eq!(drawn(&fan(400), BOXES), "split\nshard-# (400)\njoin\n");
}

#[test]
fn the_largest_groups_are_made_first_and_equal_ones_together() {
    let mut items: Vec<(String, Vec<usize>)> = (0..100).map(|at| (format!("big-{at}"), vec![])).collect();
    items.extend((0..30).map(|at| (format!("small-{at}"), vec![])));
    items.extend((0..30).map(|at| (format!("other-{at}"), vec![])));
    let labels = |most: usize| -> Vec<String> {
        let picture = hold(&outline(&items), most);
        picture.boxes.into_iter().filter(|node| node.group.is_some()).map(|node| node.label).collect()
    };
    assert_eq!(labels(150), ["big-# (100)"]);
    assert_eq!(labels(60), ["big-# (100)", "small-# (30)", "other-# (30)"]);
}

#[test]
fn keys_group_before_names() {
    let mut outline = outline(&(0..12).map(|at| (format!("n{at}"), vec![])).collect::<Vec<_>>());
    for (at, item) in outline.items.iter_mut().enumerate() {
        item.keys.rule = (at < 4).then(|| "polish".to_owned());
        item.keys.map = (at < 8).then(|| "split".to_owned());
        item.keys.round = (at == 11).then_some(2);
    }
    let labels =
        |most: usize| -> Vec<String> { hold(&outline, most).boxes.into_iter().map(|node| node.label).collect() };
    assert_eq!(labels(9)[0], "rule polish (4)");
    assert_eq!(labels(6)[..2], ["rule polish (4)", "map of split (4)"]);
    assert_eq!(labels(3), ["rule polish (4)", "map of split (4)", "n# (4)"]);
}

#[test]
fn groups_that_need_each_other_are_split_by_layer() {
    // Each build needs the test before it, so that builds and tests would need each other.
    let mut items: Vec<(String, Vec<usize>)> = Vec::new();
    for at in 0..200 {
        items.push((format!("build-{at}"), if at == 0 { vec![] } else { vec![2 * at - 1] }));
        items.push((format!("test-{at}"), vec![2 * at]));
    }
    hold(&outline(&items), BOXES);
    // Two layers of each, so that groups of the same layer remain.
    let mut second_items: Vec<(String, Vec<usize>)> = Vec::new();
    for at in 0..100 {
        second_items.push((format!("a-{at}"), vec![]));
        second_items.push((format!("b-{at}"), vec![2 * at]));
    }
    for at in 100..200 {
        second_items.push((format!("a-{at}"), vec![2 * (at - 100) + 1]));
        second_items.push((format!("b-{at}"), vec![2 * at]));
    }
    let picture = hold(&outline(&second_items), BOXES);
    let labels: Vec<_> = picture.boxes.iter().map(|node| (node.label.as_str(), node.layer)).collect();
    assert_eq!(labels, [("a-# (100)", 0), ("b-# (100)", 1), ("a-# (100)", 2), ("b-# (100)", 3)]);
}

#[test]
fn a_chain_of_groups_stays_a_box_if_nothing_returns_to_it() {
    let items: Vec<(String, Vec<usize>)> =
        (0..300).map(|at| (format!("step-{at}"), if at == 0 { vec![] } else { vec![at - 1] })).collect();
    let picture = hold(&outline(&items), BOXES);
    assert_eq!((picture.boxes.len(), picture.edges.len()), (1, 0));
}

#[test]
fn thousands_of_items_without_a_name_in_common_are_few_boxes() {
    for (count, within) in [(1_000, Duration::from_secs(3)), (10_000, Duration::from_secs(20))] {
        let outline = tangle(count);
        let began = Instant::now();
        let picture = Picture::new(&outline, BOXES);
        assert!(began.elapsed() < within, "{count} items took {:?}", began.elapsed());
        assert!(picture.boxes.len() > BOXES / 3, "{} boxes", picture.boxes.len());
        hold(&outline, BOXES);
        hold(&outline, 1);
        hold(&outline, 7);
    }
    // A chain has more layers than boxes.
    let names: Vec<String> = tangle(1_000).items.iter().map(|item| item.id.to_string()).collect();
    let picture = hold(&chain_of(names), BOXES);
    assert_eq!((picture.boxes.len(), picture.boxes[0].label.as_str()), (143, "layers 1 to 7 (7)"));
}

#[test]
fn a_forged_cycle_is_cut() {
    let picture = Picture::new(&outline(&[("a", vec![2]), ("b", vec![0]), ("c", vec![1]), ("d", vec![2])]), BOXES);
    let ends: Vec<_> = picture.edges.iter().map(|edge| (edge.from, edge.to)).collect();
    assert_eq!(ends, [(0, 1), (1, 2), (2, 3)]);
}

#[test]
fn rows_continue_a_column_or_branch_off() {
    let chain = outline(&[("a", vec![]), ("b", vec![0]), ("c", vec![1])]);
    assert_eq!(drawn(&chain, BOXES), "a\nb\nc\n");
    let tree = outline(&[("a", vec![]), ("b", vec![0]), ("c", vec![0]), ("d", vec![1])]);
    assert_eq!(drawn(&tree, BOXES), "a\n├─ b\n│  d\n└─ c\n");
    assert_eq!(drawn(&fan(3), BOXES), "split\n├─ shard-001\n├─ shard-002\n├─ shard-003\njoin < 3 above\n");
    let two = outline(&[("a", vec![]), ("b", vec![]), ("c", vec![0, 1]), ("d", vec![2])]);
    assert_eq!(drawn(&two, BOXES), "├─ a\n├─ b\nc < a, b\nd\n");
    // A long spine with a leaf at each step continues the column in the end.
    let mut items = vec![("s0".to_owned(), vec![])];
    for at in 1..60 {
        items.push((format!("leaf{at}"), vec![2 * (at - 1)]));
        items.push((format!("s{at}"), vec![2 * (at - 1)]));
    }
    let widest = rows(&hold(&outline(&items), BOXES)).iter().map(|row| row.lines.chars().count()).max();
    assert!(widest <= Some(30), "{widest:?}");
}

#[test]
fn labels_are_ascii_and_short_whatever_the_name_is() {
    let names =
        ["say \"hi\" <b>&", "a\u{202e}b", "测试一下中文名字很长很长很长很长", "שלום", "e\u{301}\u{316}", "x\\y", "👩‍👩‍👧"];
    let items: Vec<(&str, Vec<usize>)> =
        names.iter().filter(|name| ItemId::parse(name).is_ok()).map(|name| (*name, vec![])).collect();
    assert!(items.len() > 5);
    let picture = hold(&outline(&items), BOXES);
    assert_eq!(picture.boxes[0].label, "say \"hi\" <b>&");
    assert_eq!(picture.boxes[1].label, "a\\u{202e}b");
    assert_eq!(text::label(&"x".repeat(30), LABEL), format!("{}...", "x".repeat(21)));
    assert_eq!(text::counted_label(&"x".repeat(30), 400, LABEL), format!("{}... (400)", "x".repeat(15)));
    assert_eq!(text::plain("a\u{202e}b שׁ 测试"), "a\\u{202e}b \\u{5e9}\\u{5c1} 测试");
}

#[test]
fn mermaid_gets_no_more_than_it_takes() {
    // Every item needs all items of the layer before it: 12 layers of 12.
    let mut items: Vec<(String, Vec<usize>)> = Vec::new();
    let names: Vec<String> = tangle(144).items.iter().map(|item| item.id.to_string()).collect();
    for (at, name) in names.into_iter().enumerate() {
        let layer = at / 12;
        items.push((name, if layer == 0 { vec![] } else { (12 * (layer - 1)..12 * layer).collect() }));
    }
    let text = mermaid::write(&outline(&items), None);
    let edges = text.lines().filter(|line| line.contains("-->")).count();
    assert!(edges > 0 && edges <= mermaid::MOST_EDGES, "{edges} edges");
    // Long names, each letter of which is escaped.
    let long: Vec<(String, Vec<usize>)> = (0..150).map(|at| (format!("{at}{}", "*".repeat(60)), vec![])).collect();
    let second_text = mermaid::write(&outline(&long), None);
    assert!(
        second_text.encode_utf16().count() <= mermaid::MOST_UNITS && second_text.starts_with("flowchart LR\n  n0["),
        "{second_text}"
    );
}

#[test]
fn the_entries_of_a_run_say_which_rule_created_what() {
    let repo = TestRepo::new();
    let mut split = item("split", "echo 1 > outputs/part-1; echo 2 > outputs/part-2");
    split["inputs"]["mapReduce"] = json!({
        "map": { "executor": "command", "inputs": { "command": "cp inputs/input outputs/result" } },
        "reduce": { "executor": "command", "inputs": { "command": "cat inputs/part-* > outputs/all" } },
    });
    let plan = json!({ "id": "r", "pattern": "map-reduce", "items": [split, item("deploy~2", "true")] });
    repo.env.write("plan.json", &plan.to_string());
    repo.env.handoff(["submit", "../plan.json", "--run"]).success();
    let store = Store::discover(&repo.env.repo()).unwrap();
    let view = Target::find(&store, "r").unwrap().view(&store).unwrap();
    let outline = Outline::of_run(&view);
    let keys = |id: &str| &outline.items.iter().find(|item| item.id.as_str() == id).unwrap().keys;
    let map = Keys { map: Some("split".to_owned()), ..Keys::default() };
    assert_eq!((keys("map-part-1"), keys("map-part-2")), (&map, &map));
    assert_eq!(*keys("reduce"), Keys { rule: Some("split.reduce".to_owned()), ..Keys::default() });
    assert_eq!(*keys("deploy~2"), Keys { round: Some(2), ..Keys::default() });
    assert_eq!(*keys("split"), Keys::default());
    assert_eq!(drawn(&outline, 4), "├─ split\n│  map of split (2)\n│  reduce\n└─ deploy~2\n");
}
