//! JSON that two readers could understand differently, or that is made to break one.

use super::{catalog, lines};
use git_handoff::model::json::parse;
use git_handoff::plan::validate::validate;
use proptest::prelude::*;
use serde_json::Value;

fn refused(text: &str) -> Vec<String> {
    lines(&parse(text.as_bytes()).expect_err(text))
}

#[test]
fn ambiguous_json_is_rejected_with_its_path() {
    assert_eq!(
        refused(r#"{"a":{"x y":1,"x y":2},"b":[1,{"c":1,"c":1}]}"#),
        [r#"duplicate-key a["x y"]"#, "duplicate-key b[1].c"]
    );
    assert_eq!(refused(r#"{"a":1,"\u0061":2}"#), ["duplicate-key a"]);
    assert_eq!(refused(r#"{"a":["x","\ud800"]}"#), ["not-json a[1]"]);
    assert_eq!(refused(r#"{"\ud800":1}"#), ["not-json "]);
    assert_eq!(
        refused("[9007199254740991,9007199254740992,-9007199254740992,1e20,18446744073709551616]"),
        ["not-json [1]", "not-json [2]", "not-json [3]", "not-json [4]"]
    );
    assert_eq!(refused(r#"{"n":1e400}"#), ["not-json n"]);
    for text in ["", " ", "{}x", "[1,]", "{'a':1}", "NaN", "\u{feff}{}", "01", "\"\t\"", "nul"] {
        assert_eq!(parse(text.as_bytes()).expect_err(text).len(), 1, "{text:?}");
    }
    assert_eq!(lines(&parse(b"[\"a\xff\"]").unwrap_err()), ["not-json [0]"]);
}

#[test]
fn depth_is_refused_and_not_survived_by_luck() {
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        assert_eq!(parse(deep.as_bytes()).unwrap_err().len(), 1);
        let plan = format!(r#"{{"id":"r","items":{deep}}}"#);
        assert_eq!(validate(plan.as_bytes(), &catalog()).unwrap_err().len(), 1);
        assert!(parse(open.repeat(100_000).as_bytes()).is_err());
        let allowed = format!("{}1{}", open.repeat(100), close.repeat(100));
        assert!(parse(allowed.as_bytes()).is_ok());
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-(1_i64 << 53) + 1..1_i64 << 53).prop_map(Value::from),
        (-1e9..1e9).prop_map(|number: f64| Value::from(number)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn plain_json_matches_other_readers(value in any_json()) {
        prop_assert_eq!(parse(value.to_string().as_bytes()).unwrap(), value);
    }

    #[test]
    fn no_bytes_make_validation_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(validate(&bytes, &catalog()).is_err());
    }

    #[test]
    fn no_json_makes_validation_panic(value in any_json(), other in any_json()) {
        let plan = serde_json::json!({
            "id": "r", "items": [{"id": "a", "executor": "command", "inputs": value, "needs": {"k": other}}],
            "rules": other, "artifacts": value,
        });
        prop_assert!(validate(plan.to_string().as_bytes(), &catalog()).is_err());
    }
}
