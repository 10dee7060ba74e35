//! Values that are looked for in JSON of any size.

use git_handoff::model::json::{Found, look, parse};
use proptest::prelude::*;
use serde_json::json;

/// Looks for one value and says in short what it is.
fn at(text: &str, pointer: &str) -> Result<Option<Found>, String> {
    look(text.as_bytes(), &[pointer]).map(|found| found[0].clone())
}

#[test]
fn lookup_works_next_to_long_numbers() {
    let text = r#" {"id": 917204512345678901, "huge": -1e400, "list": [0.1000000000000000000001, {"a/b": "x"}], "score": 0.90} "#;
    let number = |content: &str| Ok(Some(Found::Number(content.to_owned())));
    assert_eq!(at(text, "/score"), number("0.90"));
    assert_eq!(at(text, "/id"), number("917204512345678901"));
    assert_eq!(at(text, "/huge"), number("-1e400"));
    assert_eq!(at(text, "/list/0"), number("0.1000000000000000000001"));
    assert_eq!(at(text, "/list/1/a~1b"), Ok(Some(Found::Other(json!("x")))));
    assert_eq!(at(text, "/list"), Ok(Some(Found::Other(json!([])))));
    assert_eq!(at(text, ""), Ok(Some(Found::Other(json!({})))));
    for nothing in ["/none", "/list/2", "/list/00", "/score/0", "/list/1/a/b"] {
        assert_eq!(at(text, nothing), Ok(None), "{nothing}");
    }
    assert_eq!(at("[null, true, false]", "/1"), Ok(Some(Found::Other(json!(true)))));
}

#[test]
fn lookup_reports_the_position_of_invalid_json() {
    for (text, why) in [
        ("", "the document ends too early, on line 1"),
        ("fine", "\"fine\" is not JSON, on line 1"),
        ("{\"a\":\n {\"b/c\": NaN}}", "\"NaN\" is not JSON, at /a/b~1c, on line 2"),
        ("[1, -Infinity]", "\"-Infinity\" is not JSON, at /1, on line 1"),
        ("[01]", "\"01\" is not JSON, at /0, on line 1"),
        ("[1.]", "\"1.\" is not JSON, at /0, on line 1"),
        ("[+1]", "\"+1\" is not JSON, at /0, on line 1"),
        ("[1e]", "\"1e\" is not JSON, at /0, on line 1"),
        ("[0x10]", "\"0x10\" is not JSON, at /0, on line 1"),
        ("[1 2]", "\"2\" is not JSON, on line 1"),
        ("[1,]", "\"]\" is not JSON, at /1, on line 1"),
        ("{\"a\" 1}", "\"1\" is not JSON, at /a, on line 1"),
        ("{a: 1}", "\"a\" is not JSON, on line 1"),
        ("{} {}", "\"{\" is not JSON, on line 1"),
        ("[\"a", "the document ends within a text, at /0, on line 1"),
        ("[\"\\ud800\"]", "a text that is no JSON in UTF-8, at /0, on line 1"),
        ("{\"o\": {\"a\": 1, \"b\": 2, \"a\": 3}}", "the key \"a\" stands there twice, at /o, on line 1"),
    ] {
        assert_eq!(at(text, "/x"), Err(why.to_owned()), "{text}");
    }
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(at(&nested(127), "/x"), Ok(None));
    assert!(at(&nested(128), "/x").is_err_and(|why| why.starts_with("more than 127 arrays and objects")));
    assert!(at("[\"\u{e4}\"]", "/0").is_ok());
    assert!(look(b"[\"\xff\"]", &["/0"]).is_err());
}

proptest! {
    /// `look` reads every document that `parse` accepts, and no document that `serde_json` refuses.
    #[test]
    fn it_reads_what_others_read(text in "[\\[\\]{}:,\" a0-9.eE+-]{0,12}|[\\[{](\"[ab]\":|[1,\\]\\}] ?){1,6}") {
        let found = look(text.as_bytes(), &[""]);
        if parse(text.as_bytes()).is_ok() {
            prop_assert!(found.is_ok(), "{:?}", found);
        }
        if found.is_ok() {
            let read = serde_json::from_str::<Box<serde::de::IgnoredAny>>(&text);
            prop_assert!(read.is_ok(), "{}", text);
        }
    }
}
