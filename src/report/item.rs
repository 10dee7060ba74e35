//! The facts about one item.

use serde_json::{Value, json};

use super::facts::RunPage;
use super::{content, words};
use crate::model::item_index::ItemIndex;
use crate::model::manifest::places_in_words;
use crate::report::words::Facts;

/// Returns everything that the page shows of an item.
///
/// `entries` are those about the item, oldest first.
pub(super) fn facts(page: &RunPage<'_>, at: ItemIndex, entries: &[&Value]) -> Value {
    let (fired, ended) = (last_entry("item.fired", entries), last_entry("item.reconciled", entries));
    let status = page.status(at);
    let mut value = json!({
        "anchor": page.anchor(at),
        "id": page.id(at),
        "status": status.word(),
        "mark": status.standing().mark(),
        "attempts": page.view.state.items[at].attempts,
        "took": page.timing.took(at),
        "products": ended.map_or(0, |ended| ended["products"].as_object().map_or(0, serde_json::Map::len)),
    });
    if page.has_details(status) {
        value["details"] = json!({
            "facts": item_facts(page, at, fired, ended),
            "inputs": inputs(fired),
            "contents": products(page, ended),
            "protected": ended.map_or(Value::Null, |ended| ended["protected"].clone()),
            "entries": entries.iter().map(|entry| step(entry)).collect::<Vec<_>>(),
        });
    }
    value
}

fn last_entry<'e>(kind: &str, entries: &[&'e Value]) -> Option<&'e Value> {
    entries.iter().rev().find(|entry| entry["kind"] == kind).copied()
}

fn item_facts(page: &RunPage<'_>, at: ItemIndex, fired: Option<&Value>, ended: Option<&Value>) -> Value {
    let (definition, manifest) = (page.definition(at), page.manifest(at));
    let executor = match manifest["subagent"].as_str() {
        Some(subagent) => format!("{} ({subagent})", words::plain(&definition["executor"])),
        None => words::plain(&definition["executor"]),
    };
    let mut facts = Facts::default();
    facts.add_field("Goal", &definition["inputs"], "goal");
    facts.add("Executor", executor);
    facts.add_field("Inputs in the plan", &definition, "inputs");
    facts.add("After", page.dependencies(at).join(", "));
    facts.add("Locks", words::list(&definition["resourceLocks"]));
    add_manifest(&mut facts, &manifest);
    if let Some(fired) = fired {
        facts.add_field("Manifest", &fired["manifest"], "sha256");
    }
    if let Some(ended) = ended {
        add_end(&mut facts, ended);
    }
    facts.add("Protection", ended.map(words::protection).unwrap_or_default());
    facts.add("Check ran", ended.map(|ended| words::check_place(&manifest, ended)).unwrap_or_default());
    if let Some(key) = &page.view.state.items[at].approved_by {
        facts.add("Protected changes approved by", key);
    }
    facts.into_value()
}

fn add_manifest(facts: &mut Facts, manifest: &Value) {
    let claims = &manifest["claims"];
    let version = words::plain(&claims["program"]["version"]);
    let program = describe_file(&claims["program"]);
    facts.add_field("Command", manifest, "argv");
    facts.add_field("Setup", manifest, "setup");
    facts.add_field("Check", manifest, "verify");
    facts.add("Program", if version.is_empty() { program } else { format!("{program}, {version}") });
    facts.add("Interpreter", describe_file(&claims["interpreter"]));
    facts.add_field("Sandbox", claims, "sandbox");
    facts.add_field("Network", claims, "network");
    facts.add("Access", access(claims));
    facts.add("Time limit", manifest["timeout"].as_u64().map(|s| format!("{s} s")).unwrap_or_default());
    facts.add("Protected files", words::list(&manifest["protect"]));
    // The names would make up half of a large page.
    let names = claims["env"].as_array().map_or(0, Vec::len);
    facts.add(
        "Environment",
        if names > 0 { format!("{names} variables, named in the manifest") } else { String::new() },
    );
}

fn describe_file(file: &Value) -> String {
    match file["path"].as_str() {
        Some(path) => format!("{path}, {}", words::digest_and_size(file)),
        None => String::new(),
    }
}

/// Describes what a worker could reach besides its worktree.
fn access(claims: &Value) -> String {
    let home = claims["home"].as_str().map(|home| format!("home: {home}"));
    let lists = ["writable", "readable", "linked", "copied"].into_iter().filter_map(|name| {
        let count = claims[name].as_array()?.len();
        Some(format!("{}: {}", places_in_words(name, count), words::list(&claims[name])))
    });
    home.into_iter().chain(lists).collect::<Vec<_>>().join("; ")
}

fn add_end(facts: &mut Facts, ended: &Value) {
    let claims = &ended["claims"];
    facts.add_field("Summary by the worker", claims, "summary");
    facts.add_field("Model, by its own account", claims, "model");
    facts.add_field("Session", claims, "session");
    facts.add_field("Use, by its own account", ended, "usage");
    facts.add("Left out of the patch", words::list(&claims["excluded"]));
    for (name, field) in [("Check before the work", "checkBefore"), ("Check after the work", "check")] {
        let run = &ended[field];
        let words = [words::plain(&run["argv"]), words::exit(&run["exit"]), words::digest_and_size(&run["output"])];
        facts.add(name, words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", "));
    }
    if let (Some(run), Some(item)) = (ended["reused"]["run"].as_str(), ended["reused"]["item"].as_str()) {
        facts.add("Reused from", format!("{run}/{item}"));
    }
    facts.add_field("Blocks of the pipeline", ended, "blocks");
    facts.add("Transcript, not in this page", words::digest_and_size(&ended["transcript"]));
}

fn inputs(fired: Option<&Value>) -> Vec<Value> {
    let given = fired.and_then(|fired| fired["inputRefs"].as_object());
    given
        .into_iter()
        .flatten()
        .map(|(key, input)| {
            json!({
                "key": key,
                "from": words::plain(&input["from"]),
                "product": words::plain(&input["select"]),
                "sha256": input["ref"],
            })
        })
        .collect()
}

fn products(page: &RunPage<'_>, ended: Option<&Value>) -> Vec<Value> {
    let made = ended.and_then(|ended| ended["products"].as_object());
    made.into_iter()
        .flatten()
        .map(|(name, product)| content::product(page.store, page.omitted, name, product))
        .collect()
}

/// Returns a row of a table of entries.
pub(super) fn step(entry: &Value) -> Value {
    json!({
        "seq": entry["seq"],
        "at": entry["at"],
        "kind": entry["kind"],
        "attempt": entry["attempt"],
        "actor": entry["actor"],
        "note": words::note(entry),
        "hash": entry["hash"],
    })
}
