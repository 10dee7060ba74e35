//! Numbers of JSON are compared by their exact value.

use std::cmp::Ordering;

use git_handoff::model::json::compare;
use proptest::prelude::*;

#[test]
fn numbers_compare_by_their_value_and_not_by_their_spelling() {
    let ascending = [
        "-1e400",
        "-917204512345678901.5",
        "-917204512345678901",
        "-0.1",
        "-1e-400",
        "0",
        "1e-99999999999999999999999",
        "1e-400",
        "0.79999999999999999999999999999999999999",
        "0.8",
        "0.80000000000000000000000000000000000001",
        "9007199254740992",
        "9007199254740993",
        "917204512345678901",
        "917204512345678902",
        "1e400",
        "1e99999999999999999999999",
    ];
    for (i, one) in ascending.iter().enumerate() {
        for (j, other) in ascending.iter().enumerate() {
            assert_eq!(compare(one, other), i.cmp(&j), "{one} {other}");
        }
    }
    for (one, other) in [
        ("0", "-0.000"),
        ("0e99999999999999999999", "0"),
        ("8", "8.0"),
        ("0.8", "80E-2"),
        ("1e3", "1000.0e0"),
        ("0.00012", "12e-5"),
        ("100", "1e+2"),
        ("-12.50", "-0.125e2"),
    ] {
        assert_eq!((compare(one, other), compare(other, one)), (Ordering::Equal, Ordering::Equal), "{one} {other}");
    }
}

proptest! {
    #[test]
    fn integers_and_doubles_compare_as_such(one: i64, other: i64, x in -1e30..1e30, y in -1e-3..1e-3) {
        prop_assert_eq!(compare(&one.to_string(), &other.to_string()), one.cmp(&other));
        let text = |value: f64| serde_json::Value::from(value).to_string();
        prop_assert_eq!(Some(compare(&text(x), &text(y))), x.partial_cmp(&y));
        prop_assert_eq!(compare(&text(x), &format!("{x:e}")), Ordering::Equal);
    }
}
