//! Growth that cannot have happened, written with true links, a true seal and good signatures.

use git_handoff::model::digest::Oid;
use git_handoff::model::entry::{Cause, Event, Product};
use git_handoff::model::extension::definition;
use git_handoff::model::plan::Item;
use git_handoff::verify::Report;
use serde_json::{Value, json};

use super::rule;
use crate::common::chain_builder::{ChainBuilder, point_to};
use crate::common::forge::{Forge, assert_fails, assert_intact, assert_says, blob, gone};

fn plan(more: &Value) -> String {
    let polish = json!({ "present": ["draft"], "if": [
        { "document": "review", "pointer": "/score", "op": "<", "value": 8 }], "atMost": 2 });
    let mut plan = json!({ "id": "handoff-dag-1", "rules": [rule("polish", &polish)], "items": [
        { "id": "first", "executor": "command", "inputs": { "command": ["true"] } }] });
    for (key, value) in more.as_object().unwrap() {
        plan[key] = value.clone();
    }
    plan.to_string()
}

fn open_ended() -> String {
    plan(&json!({ "rules": [], "openEnded": true }))
}

impl ChainBuilder<'_> {
    fn polish(&mut self) -> String {
        let item = self.of_rule(0);
        self.extend(by("polish"), std::slice::from_ref(&item));
        item.id.to_string()
    }

    fn does(&mut self, item: &str) {
        self.fire(item);
        self.done(item, &[]);
    }
}

fn by(rule: &str) -> Cause {
    Cause::Rule(rule.parse().unwrap())
}

fn item(id: &str, more: &Value) -> Item {
    let mut item = json!({ "id": id, "executor": "command", "inputs": { "command": ["true"] } });
    for (key, value) in more.as_object().unwrap() {
        item[key] = value.clone();
    }
    git_handoff::plan::parse_item(item.to_string().as_bytes()).unwrap()
}

#[track_caller]
fn tell(plan: &str, story: impl FnOnce(&Forge, &mut ChainBuilder<'_>)) -> Report {
    let forge = Forge::new();
    let mut chain_builder = ChainBuilder::submit(&forge, plan);
    story(&forge, &mut chain_builder);
    forge.finish(chain_builder);
    forge.verify()
}

/// A run in which the first item is done and the documents are such that the rule creates.
#[track_caller]
fn low(story: impl FnOnce(&Forge, &mut ChainBuilder<'_>)) -> Report {
    tell(&plan(&json!({})), |forge, run| {
        run.does("first");
        run.document("draft", None, "a draft".as_bytes());
        run.document("review", None, r#"{"score":5}"#.as_bytes());
        story(forge, run);
    })
}

#[test]
fn a_run_that_grew_by_its_rules_is_intact() {
    let report = low(|_, run| {
        let first = run.polish();
        run.does(&first);
        run.document("review", None, r#"{"score":6}"#.as_bytes());
        let second = run.polish();
        run.does(&second);
        run.seal();
    });
    assert_intact(&report);
    assert!(report.rows.plan.detail.starts_with("3 of 3 items"));
    assert!(report.rows.manifest.detail.starts_with("3 manifests"));
}

#[test]
fn an_open_ended_run_that_grew_is_intact_once_it_is_closed() {
    let grown = |closed: bool| {
        tell(&open_ended(), |_, run| {
            let needs = json!({ "needs": { "x": { "from": "first", "select": { "kind": "output", "path": "x" } } } });
            run.extend(Cause::Actor, &[item("later", &needs), item("latest", &json!({ "depends_on": ["later"] }))]);
            run.fire("first");
            run.done("first", &[("outputs/x", b"x")]);
            run.does("later");
            run.does("latest");
            if closed {
                run.close();
            }
            run.seal();
        })
    };
    assert_intact(&grown(true));
    assert_says(&grown(false), "plan", "entry 8: the run was sealed before every item had ended");
}

#[test]
fn a_rule_creates_only_what_the_documents_make_it_create() {
    let high = tell(&plan(&json!({})), |_, run| {
        run.does("first");
        run.document("draft", None, "a draft".as_bytes());
        run.document("review", None, r#"{"score":9}"#.as_bytes());
        run.polish();
    });
    assert_says(&high, "plan", "entry 5: the rule polish creates nothing here");
    let absent = tell(&plan(&json!({})), |_, run| drop(run.polish()));
    assert_says(&absent, "plan", "entry 1: the rule polish creates nothing here");
    let too_late = low(|_, run| {
        let item = run.of_rule(0);
        run.document("review", None, r#"{"score":6}"#.as_bytes());
        run.extend(by("polish"), &[item]);
    });
    assert_says(&too_late, "plan", "entry 6: the rule polish creates something else here, polish-…");
    let bent = |change: fn(&mut Item)| {
        low(|_, run| {
            let mut item = run.of_rule(0);
            change(&mut item);
            run.extend(by("polish"), &[item]);
        })
    };
    let command = bent(|item| drop(item.inputs.insert("command".to_owned(), json!(["evil"]))));
    assert_says(&command, "plan", "entry 5: the rule polish creates something else here, polish-…");
    let renamed = bent(|item| item.id = "polish-0123456789ab".parse().unwrap());
    assert_says(&renamed, "plan", "entry 5: the rule polish creates something else here, polish-…");
    let strange = low(|_, run| {
        let item = run.of_rule(0);
        run.extend(by("stranger"), &[item]);
    });
    assert_says(&strange, "plan", "entry 5: an item was created by the rule \"stranger\", which the run does not have");
    let two = low(|_, run| {
        let created = run.of_rule(0);
        run.extend(by("polish"), &[item("more", &json!({})), created]);
    });
    assert_says(&two, "plan", "entry 5: the rule polish creates something else here, polish-…");
}

#[test]
fn a_rule_creates_not_more_than_it_may() {
    let report = low(|_, run| {
        for score in 5..8 {
            run.document("review", None, json!({ "score": score }).to_string().as_bytes());
            run.polish();
        }
    });
    assert_says(&report, "plan", "entry 10: the rule polish creates nothing here");
    let twice = low(|_, run| {
        run.polish();
        run.polish();
    });
    assert_says(&twice, "plan", "entry 6: the rule polish creates nothing here");
}

#[test]
fn no_run_seals_itself_while_a_rule_has_something_to_create() {
    let sealed = low(|_, run| run.seal());
    assert_says(&sealed, "plan", "the run was sealed before its rules had created polish-…");
    let closed = low(|_, run| {
        run.close();
        run.seal();
    });
    assert_intact(&closed);
}

#[test]
fn only_an_open_ended_run_that_has_not_ended_is_extended() {
    let added = low(|_, run| run.extend(Cause::Actor, &[item("more", &json!({}))]));
    assert_says(&added, "plan", "entry 5: items were added by an actor to a run that is not open-ended");
    let closed = low(|_, run| {
        run.close();
        run.polish();
    });
    assert_says(&closed, "plan", "entry 6: items were added after the run was closed or cancelled");
}

#[test]
fn extension_must_match_the_plan() {
    let added = |items: &[Item]| tell(&open_ended(), |_, run| run.extend(Cause::Actor, items));
    assert_says(
        &added(&[item("first", &json!({}))]),
        "plan",
        "entry 1: item \"first\" was added, and there is one already",
    );
    assert_says(
        &added(&[item("a", &json!({ "depends_on": ["ghost"] }))]),
        "plan",
        "entry 1: item \"a\" was added and depends on \"ghost\", which does not exist",
    );
    let circle = [item("a", &json!({ "depends_on": ["b"] })), item("b", &json!({ "depends_on": ["a"] }))];
    assert_says(&added(&circle), "plan", "entry 1: item \"a\" was added and waits for itself");
    assert_fails(&added(&[]), "chain", "entry");
    let document = |name: &str| json!({ "produces": [{ "kind": "document", "name": name, "path": "x" }] });
    assert_says(
        &added(&[item("a", &document("d")), item("b", &document("D"))]),
        "plan",
        "entry 1: the documents \"D\" and \"d\" cannot stand side by side",
    );
}

#[test]
fn an_added_item_is_the_one_that_its_entry_names() {
    let bent = |bytes: fn(&Forge) -> Oid| {
        tell(&open_ended(), |forge, run| {
            run.extend(Cause::Actor, &[item("more", &json!({}))]);
            point_to(&mut run.drafts.last_mut().unwrap().event, "items/more.json", bytes(forge));
        })
    };
    let other = bent(|forge| blob(forge, &definition(&item("more", &json!({ "timeout": 5 })))));
    assert_fails(&other, "plan", "bytes, entry 1, item more");
    let spaced = bent(|forge| blob(forge, b"{}"));
    assert_fails(&spaced, "plan", "bytes, entry 1, item more");
    assert_fails(&bent(gone), "plan", "bytes-missing, entry 1, item more");
    // Bytes that mean the same are not the normalised item.
    let loose = tell(&open_ended(), |forge, run| {
        let added = item("more", &json!({}));
        run.extend(Cause::Actor, std::slice::from_ref(&added));
        let bytes = added.to_json().to_string() + "\n";
        let Event::RunExtended(e) = &mut run.drafts.last_mut().unwrap().event else { panic!() };
        e.items.insert(added.id, crate::common::forge::store_product(forge, bytes.as_bytes()));
    });
    assert_says(&loose, "plan", "entry 1: item.json of item more is not a normalised item");
}

#[test]
fn an_added_item_is_dispatched_as_it_was_added() {
    let report = low(|_, run| {
        let id = run.polish();
        run.fire_with(&id, |manifest| manifest.argv = vec!["evil".to_owned()]);
        run.done(&id, &[]);
        run.seal();
    });
    assert_says(&report, "manifest", "the manifest of polish-… #1: argv is not the plan's");
}

#[test]
fn a_document_that_a_rule_saw_is_what_it_was() {
    let report = low(|forge, run| {
        let id = run.polish();
        run.does(&id);
        run.seal();
        let forged = forge.store.write_blob(br#"{"score":1}"#).unwrap();
        let Event::DocumentWritten(e) = &mut run.drafts[4].event else { panic!() };
        e.oid = forged;
    });
    assert_says(&report, "plan", "entry 5: a document of the rule polish: its bytes hash to …, and the entry names …");
}

#[test]
fn the_rules_of_the_queue_are_those_that_were_sealed() {
    let plan = plan(&json!({ "rules": [] }));
    let added = json!([rule("more", &json!({ "present": ["draft"] }))]).to_string();
    let with = |sealed_text: &str, stored_text: Option<&str>| {
        let forge = Forge::new();
        let mut run = ChainBuilder::submit(&forge, &plan);
        let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
        let oid = stored_text.map_or_else(|| gone(&forge), |text| blob(&forge, text.as_bytes()));
        e.rules = Some(Product { oid, ..forge.store.compute_product(sealed_text.as_bytes()).unwrap() });
        let submitted = e.clone();
        let rules = git_handoff::plan::parse_rules(added.as_bytes()).unwrap();
        run.state = git_handoff::model::state::RunState::new(submitted, &run.plan).with_rules(rules);
        run.does("first");
        run.document("draft", None, "a draft".as_bytes());
        let created = run.of_rule(0);
        run.extend(by("more"), std::slice::from_ref(&created));
        run.does(created.id.as_str());
        run.seal();
        forge.finish(run);
        forge.verify()
    };
    assert_intact(&with(&added, Some(&added)));
    let other = added.replace("draft", "drift");
    assert_fails(&with(&added, Some(&other)), "plan", "rules-invalid, entry 0");
    assert_says(&with(&other, Some(&other)), "plan", "entry 4: the rule more creates nothing here");
    assert_fails(&with(&added, None), "plan", "rules-invalid, entry 0");
    assert_says(&with("{}", Some("{}")), "plan", "rules.json holds no rules: bad-rule: expected an array of rules");
    assert_says(&with("[]", Some("[]")), "plan", "rules.json holds no rules, and yet entry 0 names it");
}
