//! How two JSON documents differ, field by field.

use git_handoff::model::json::changes::{Changes, Kind};
use proptest::prelude::*;
use serde_json::{Value, json};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..3).prop_map(Value::from),
        "[ab/~01 ]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[ab/~01]{0,2}", inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Applies changes to a document: removals and replacements from the last to the first, so that
/// arrays shrink from their ends, then additions in order.
fn apply(document: &mut Value, changes: &Changes) {
    let split = |pointer: &str| {
        let (above, name) = pointer.rsplit_once('/').expect("it is not the whole document");
        (above.to_owned(), name.replace("~1", "/").replace("~0", "~"))
    };
    for change in changes.listed.iter().rev().filter(|change| change.kind != Kind::Added) {
        let place = document.pointer_mut(&change.pointer).expect("it is there");
        assert_eq!(Some(&*place), change.before.as_ref());
        if let Some(after) = &change.after {
            *place = after.clone();
            continue;
        }
        let (above, name) = split(&change.pointer);
        match document.pointer_mut(&above).expect("it is there") {
            Value::Object(fields) => drop(fields.remove(&name)),
            Value::Array(list) => assert_eq!(list.pop(), change.before),
            _ => panic!("nothing stands in {above}"),
        }
    }
    for change in changes.listed.iter().filter(|change| change.kind == Kind::Added) {
        assert_eq!((document.pointer(&change.pointer), &change.before), (None, &None));
        let (above, name) = split(&change.pointer);
        let after = change.after.clone().expect("it came");
        match document.pointer_mut(&above).expect("it is there") {
            Value::Object(fields) => drop(fields.insert(name, after)),
            Value::Array(list) => {
                assert_eq!(name, list.len().to_string());
                list.push(after);
            }
            _ => panic!("nothing stands in {above}"),
        }
    }
}

proptest! {
    #[test]
    fn changes_turn_the_old_value_into_the_new(old in value(), new in value()) {
        let changes = Changes::from_values(&old, &new);
        let mut made = old.clone();
        apply(&mut made, &changes);
        prop_assert_eq!(&made, &new);
        prop_assert_eq!(changes.listed.is_empty(), old == new);
        prop_assert_eq!(changes.more, 0);
    }
}

#[test]
fn each_line_is_a_field() {
    let old = json!({"b": 1, "a": {"x/y": [1, 2, 3], "gone": null}, "same": [{}]});
    let new = json!({"b": "1", "a": {"x/y": [1, 7], "~": {"k": "v"}}, "same": [{}]});
    let lines = Changes::from_values(&old, &new).lines();
    assert_eq!(
        lines,
        ["- /a/gone  null", "~ /a/x~1y/1  2 -> 7", "- /a/x~1y/2  3", "+ /a/~0  {\"k\":\"v\"}", "~ /b  1 -> \"1\"",]
    );
    assert_eq!(Changes::from_values(&json!(1), &json!([])).lines(), ["~ \"\"  1 -> []"]);
    let long = Changes::from_values(&json!({}), &json!({"a": "ä".repeat(300)})).lines();
    assert_eq!(long, [format!("+ /a  \"{}…", "ä".repeat(199))]);
}

#[test]
fn changes_are_bounded_and_the_rest_is_counted() {
    let many = Changes::from_values(&json!([]), &json!(vec![0; 1000 + 5]));
    assert_eq!((many.listed.len(), many.more), (1000, 5));
    assert_eq!(many.lines().last().map(String::as_str), Some("… and 5 more"));
    let large = Changes::from_values(&json!({}), &json!({"a": 1, "b": "x".repeat(256 << 10), "c": 1}));
    assert_eq!((large.listed.len(), large.more), (1, 2));
}

#[test]
fn only_json_that_everybody_reads_alike_is_compared() {
    assert_eq!(Changes::between(b"{\"a\": 1}", b"{ \"a\":1 }\n").map(|changes| changes.listed), Some(Vec::new()));
    for other in ["", "draft", "{\"a\": 1, \"a\": 2}", "{} {}", "\"\\ud800\""] {
        assert_eq!(Changes::between(b"{}", other.as_bytes()), None, "{other}");
        assert_eq!(Changes::between(other.as_bytes(), b"{}"), None, "{other}");
    }
}
