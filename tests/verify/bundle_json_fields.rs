//! Every field of an audit bundle of another orchestrator, renamed, dropped, doubled, changed, and
//! fields that are too many: either it is no pass, or the report names what nothing vouches for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use git_handoff::report::export::verify_bundle_json;
use git_handoff::verify::{Failure, Options, Report, State};
use serde_json::{Map, Value, json};

use super::bundle_json::{BUNDLE, bundle, check, trusting};
use crate::tamper::table;

/// A key that is doubled is first given this name beside itself, and then in the text the same one.
const TWIN: &str = "\u{1}";

/// Where a value stands in the bundle.
type Place = Vec<Step>;

#[derive(Clone, Debug)]
enum Step {
    Key(String),
    Index(usize),
}

fn walk(value: &Value, at: &Place, each: &mut impl FnMut(&Place, &Value)) {
    each(at, value);
    let mut below = |step: Step, child: &Value| walk(child, &[at.clone(), vec![step]].concat(), each);
    match value {
        Value::Object(map) => map.iter().for_each(|(key, member)| below(Step::Key(key.clone()), member)),
        Value::Array(list) => list.iter().enumerate().for_each(|(index, element)| below(Step::Index(index), element)),
        _ => {}
    }
}

fn reach<'v>(bundle: &'v mut Value, place: &[Step]) -> &'v mut Value {
    place.iter().fold(bundle, |value, step| match step {
        Step::Key(key) => &mut value[key],
        Step::Index(at) => &mut value[*at],
    })
}

/// Returns the place as a report names it: with the index of each element, and without.
fn paths(place: &[Step]) -> [String; 2] {
    [false, true].map(|exact| {
        place.iter().fold(String::new(), |path, step| match step {
            Step::Key(key) if key.contains(' ') => format!("{path}[{}]", json!(key)),
            Step::Key(key) if path.is_empty() => key.clone(),
            Step::Key(key) => format!("{path}.{key}"),
            Step::Index(at) if exact => format!("{path}[{at}]"),
            Step::Index(_) => format!("{path}[]"),
        })
    })
}

/// Returns the kind of object that a field stands in.
fn above(place: &[Step]) -> String {
    paths(&place[..place.len() - 1])[0].clone()
}

/// Whether the report says of this place, or of one above it, that nothing vouches for it.
fn names(report: &Report, place: &[Step]) -> bool {
    (1..=place.len()).any(|end| {
        let above = paths(&place[..end]);
        report.uncovered.iter().any(|uncovered| above.contains(&uncovered.path))
    })
}

/// The results by kind of forgery: the numbers refused, failed and named.
#[derive(Default)]
struct Tried(BTreeMap<&'static str, [usize; 3]>);

impl Tried {
    /// Holds that a bundle is refused, or that its report, or that of the true one, names what was
    /// done to it.
    #[track_caller]
    fn is_told(&mut self, text: &str, place: &[Step], what: &'static str) {
        static HEALTHY: LazyLock<(Options, Report, String)> =
            LazyLock::new(|| (trusting(), check(&bundle()), bundle().to_string()));
        let (options, healthy, same) = &*HEALTHY;
        if text == same {
            return;
        }
        let outcome = match verify_bundle_json(text.as_bytes(), None, None, options) {
            Err(_) => 0,
            Ok(report) if !report.intact => 1,
            Ok(report) => {
                let is_reported = names(&report, place) || names(healthy, place);
                assert!(is_reported, "{what}: {}:\n{}", paths(place)[1], report.to_text(false));
                2
            }
        };
        self.0.entry(what).or_default()[outcome] += 1;
    }

    fn check(self, table: &str) {
        let row = |(what, counts): (&str, [usize; 3])| {
            let counts = counts.map(|count| count.to_string());
            std::iter::once(what.to_owned()).chain(counts).collect::<Vec<_>>()
        };
        let rows: Vec<_> = self.0.into_iter().map(row).collect();
        table::check(table, &["what was done", "is no bundle", "a row fails", "is named as not covered"], &rows);
    }
}

/// Does something to the object at a place that has this field.
fn with(place: &[Step], change: impl FnOnce(&mut Map<String, Value>, &str)) -> String {
    let (Some(Step::Key(key)), above) = (place.last(), &place[..place.len() - 1]) else { panic!("it is no field") };
    let mut bundle = bundle();
    change(reach(&mut bundle, above).as_object_mut().expect("a field stands in an object"), key);
    bundle.to_string()
}

fn changed(value: &Value) -> Value {
    match value {
        Value::String(text) => format!("{text}x").into(),
        Value::Number(number) => json!(number.as_f64().expect("a number") + 1.0),
        Value::Bool(flag) => json!(!flag),
        Value::Array(list) => list.iter().chain([&json!("x")]).cloned().collect(),
        Value::Object(map) => map.iter().map(|(key, child)| (format!("{key}x"), child.clone())).collect(),
        Value::Null => json!("x"),
    }
}

#[test]
fn no_field_is_forged_unnoticed() {
    let whole = bundle();
    let mut places = Vec::new();
    // The names that an object of this kind can have.
    let mut keys: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    walk(&whole, &Vec::new(), &mut |place, value| {
        if let Some(Step::Key(key)) = place.last() {
            keys.entry(above(place)).or_default().insert(key.clone());
            places.push((place.clone(), value.clone()));
        }
    });
    let mut tried = Tried::default();
    for (place, value) in &places {
        let path = &paths(place)[1];
        // One byte of the root is as another, and so are these entries and manifests as those
        // before them.
        let again = ["entries[3]", "entries[5]", "entries[9]", "entries[12]", "manifests[1]", "manifests[3]"];
        let byte = path.starts_with("auditLog.root.root.") && !path.ends_with('1');
        if byte || again.iter().any(|part| path.contains(part)) {
            continue;
        }
        for name in keys[&above(place)].iter().chain([&"other".to_owned()]) {
            tried.is_told(
                &with(place, |map, key| {
                    if !map.contains_key(name) {
                        let second_value = map.remove(key).expect("it is there");
                        map.insert(name.clone(), second_value);
                    } else if name != key {
                        let (one, other) = (map[key].clone(), map[name].clone());
                        (map[key], map[name]) = (other, one);
                    } else {
                        map.remove(key);
                    }
                }),
                place,
                "a field renamed, exchanged with another, or taken out",
            );
        }
        for other in [changed(value), Value::Null, json!(""), json!({}), json!(0)] {
            let text = with(place, |map, key| map[key] = other);
            tried.is_told(&text, place, "another value in a field");
        }
        let twin = |first: bool| {
            with(place, |map, key| {
                // The twin stands behind its sibling, whose name it begins with.
                let (one, two) = if first { (changed(value), value.clone()) } else { (value.clone(), changed(value)) };
                map.insert(key.to_owned(), one);
                map.insert(format!("{key}{TWIN}"), two);
            })
        };
        for text in [twin(true), twin(false)] {
            let spelled = text.replace("\\u0001\":", "\":");
            tried.is_told(&spelled, place, "a field twice, with its own value and another");
        }
    }
    tried.check("tamper_audit_fields");
}

#[test]
fn nothing_is_added_unnoticed() {
    let whole = bundle();
    let mut objects = Vec::new();
    let mut elements = Vec::new();
    walk(&whole, &Vec::new(), &mut |place, value| {
        if value.is_object() {
            objects.push(place.clone());
        }
        if matches!(place.last(), Some(Step::Index(_))) {
            elements.push(place.clone());
        }
    });
    let fields = [
        ("x", json!(1)),
        ("odd key", json!("x")),
        ("authorization", json!({})),
        ("outputRefs", json!({})),
        ("outputRefs", json!({"x": "pangolin://default/artifact/x/sha256:00"})),
        ("resultRef", json!("pangolin://default/artifact/x/sha256:00")),
        ("status", json!("done")),
        ("itemId", json!("edit")),
        ("inputRefs", json!({})),
        ("signature", json!({"alg": "ed25519", "bytes": ""})),
        ("timestamp", json!({})),
        ("actor", Value::Null),
        ("outputRefs", Value::Null),
    ];
    let mut tried = Tried::default();
    for place in &objects {
        for (key, value) in &fields {
            let mut bundle = bundle();
            let map = reach(&mut bundle, place).as_object_mut().expect("an object");
            // An item that is shown with no outputs is shown with none.
            let empty = *value == json!({}) || value.is_null();
            let none = empty && *key == "outputRefs" && paths(place)[0] == "items[]";
            if map.contains_key(*key) || none {
                continue;
            }
            map.insert((*key).to_owned(), value.clone());
            let below = [place.clone(), vec![Step::Key((*key).to_owned())]].concat();
            tried.is_told(&bundle.to_string(), &below, "a field more in an object");
        }
    }
    for place in &elements {
        let (Some(Step::Index(at)), above) = (place.last(), &place[..place.len() - 1]) else { unreachable!() };
        let (mut less, mut more) = (bundle(), bundle());
        drop(reach(&mut less, above).as_array_mut().expect("a list").remove(*at));
        tried.is_told(&less.to_string(), place, "an element of a list taken out");
        let list = reach(&mut more, above).as_array_mut().expect("a list");
        list.insert(*at, list[*at].clone());
        tried.is_told(&more.to_string(), place, "an element of a list twice");
    }
    tried.check("tamper_audit_more");
}

#[test]
fn products_do_not_vanish_under_another_name() {
    let mut bundle = bundle();
    let entry = bundle["auditLog"]["entries"][10].as_object_mut().expect("an entry");
    let outputs = entry.remove("outputRefs").expect("the last item that is done has outputs only");
    entry.insert("authorization".to_owned(), outputs);
    let row = bundle["items"][4].as_object_mut().expect("the item");
    row.remove("outputRefs");
    let report = check(&bundle);
    assert_eq!(report.failure, Some(Failure::Chain), "{}", report.to_text(false));
    assert_eq!(
        report.rows.chain.detail,
        "entry 10 has an authorization where only outputRefs can stand, and both hash alike"
    );
    // And the other way about: a decision that becomes a product.
    let mut second_bundle = super::bundle_json::bundle();
    let second_entry = second_bundle["auditLog"]["entries"][8].as_object_mut().expect("an entry");
    let decision = second_entry.remove("authorization").expect("it was denied");
    second_entry.insert("outputRefs".to_owned(), decision);
    assert_eq!(check(&second_bundle).failure, Some(Failure::Chain));
}

#[test]
fn items_without_an_entry_are_rejected_or_reported() {
    let ghost = |status: &str| {
        let mut bundle = bundle();
        let items = bundle["items"].as_array_mut().expect("the items");
        items.push(json!({"id": "ghost", "status": status, "attempts": 1}));
        check(&bundle)
    };
    for status in ["done", "skipped", "denied", "cancelled", "running", "ready", "pending", "other"] {
        let report = ghost(status);
        assert_eq!(report.failure, Some(Failure::Plan), "{}", report.to_text(false));
    }
    let report = ghost("failed");
    assert!(report.intact, "it may have failed before it was dispatched");
    let missing = report.uncovered.iter().find(|uncovered| uncovered.path == "items[6]").expect("it is named");
    assert_eq!(missing.detail, r#""ghost" is shown as failed, and no entry says so"#);
    let line = format!("─ uncovered  items[6]: {}", missing.detail);
    assert!(report.to_text(false).lines().any(|text| text == line), "{}", report.to_text(false));
    let listed = report.to_json()["uncovered"].as_array().expect("they are listed").clone();
    assert!(listed.contains(&json!({"path": "items[6]", "detail": missing.detail})), "{listed:?}");
    // Beside the entries' own word, what is displayed has no say.
    for (item, field) in [(0, "manifestRef"), (0, "resultRef"), (1, "manifestRef"), (2, "resultRef"), (5, "resultRef")]
    {
        let mut bundle = bundle();
        bundle["items"][item][field] = json!("pangolin://default/artifact/edit/sha256:00");
        assert_eq!(check(&bundle).failure, Some(Failure::Plan), "{item} {field}");
    }
}

#[test]
fn more_than_a_few_are_counted() {
    let mut bundle = bundle();
    for at in 0..30 {
        bundle[format!("x{at}")] = json!(at);
    }
    let report = check(&bundle);
    let text = report.to_text(false);
    assert_eq!(text.matches("─ uncovered ").count(), 21, "{text}");
    assert!(text.contains(&format!("and {} more, which --json lists", report.uncovered.len() - 20)), "{text}");
}

/// Equal content has an equal verdict.
#[test]
fn another_spelling_of_the_same_bundle_is_no_forgery() {
    let healthy = check(&bundle());
    assert!(healthy.intact && healthy.rows.manifest.state == State::Ok);
    let reversed = {
        fn write(value: &Value, out: &mut String) {
            match value {
                Value::Object(map) => {
                    let members = map.iter().rev().map(|(key, child)| {
                        let mut text = format!("\n\t{} : ", Value::from(key.as_str()));
                        write(child, &mut text);
                        text
                    });
                    *out += &["{", &members.collect::<Vec<_>>().join(","), "}"].concat();
                }
                Value::Array(list) => {
                    let elements = list.iter().map(|element| {
                        let mut text = String::new();
                        write(element, &mut text);
                        text
                    });
                    *out += &["[", &elements.collect::<Vec<_>>().join(" ,\r\n"), "]"].concat();
                }
                other => out.push_str(&other.to_string()),
            }
        }
        let mut text = String::new();
        write(&bundle(), &mut text);
        text
    };
    let escaped = BUNDLE.replace("outputRefs", r"\u006futput\u0052efs").replace("human:bo", r"human\u003abo");
    let numbers = BUNDLE.replace("0.2", "20e-2").replace("\"schemaVersion\": 1", "\"schemaVersion\": 1.0");
    for text in [reversed, escaped, numbers] {
        let report = verify_bundle_json(text.as_bytes(), None, None, &trusting()).expect("it is a bundle");
        assert_eq!(report.to_json(), healthy.to_json());
    }
    // An integer that is spelled as none is not taken for one.
    let seq = BUNDLE.replacen("\"seq\": 3", "\"seq\": 3.0", 1);
    assert!(verify_bundle_json(seq.as_bytes(), None, None, &trusting()).is_err());
}
