//! Entries dropped, doubled and put in another order, products and manifests exchanged: told again
//! with true links, a true seal and good signatures, with another key and with the right one.

use git_handoff::model::role::every_role;
use std::collections::BTreeMap;

use git_handoff::ledger::sign::Signer;
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{Event, ItemFired};
use git_handoff::model::manifest::Manifest;
use git_handoff::model::plan::ProductKey;
use git_handoff::verify::{Options, Signers, State};

use super::both::Both;
use super::run::{End, PLAN, Scene, failing};
use super::{everything, table};
use crate::common::chain_builder::{BuiltChain, point_to};
use crate::common::forge::{Forge, blob, key, path, store_product};

pub(super) type Tale = Vec<Event>;

/// The results by kind of change: failed rows, by key and state of the log.
#[derive(Default)]
pub(super) struct Found {
    rows: Vec<Vec<String>>,
    cells: BTreeMap<String, usize>,
    both: Both,
}

impl Found {
    /// Signs a tale with the right key, verifies it with the old and a rewritten log, and with
    /// another key.
    pub(super) fn tell(&mut self, scene: &Scene, what: &str, tale: &Tale) {
        self.tell_as(scene, what, |signer| scene.tell(tale.clone(), signer));
    }

    /// Tells the honest tale with a seal that is not its own.
    pub(super) fn tell_false_seal(&mut self, scene: &Scene, what: &str, seal: &Event) {
        self.tell_as(scene, what, |signer| {
            let mut chain_builder = super::run::story(&scene.forge, End::Closed);
            chain_builder.drafts.last_mut().unwrap().event = seal.clone();
            chain_builder.true_seal = false;
            chain_builder.write(signer)
        });
    }

    fn tell_as(&mut self, scene: &Scene, what: &str, tell: impl Fn(&Signer) -> BuiltChain) {
        let forge = &scene.forge;
        let chain = tell(&forge.signer);
        scene.keep_log();
        let report = forge.verify();
        assert!(!report.intact, "{what}, against the log that was kept:\n{}", report.to_text(false));
        scene.rewrite_log(&chain, &forge.signer);
        let renewed = forge.verify();
        self.both.note(forge, what);
        scene.keep_log();
        tell(&key(forge.path(), 9));
        let other = forge.verify();
        self.both.note(forge, &format!("{what}, by another key"));
        let rows = failing(&other);
        assert!(!other.intact, "{what}, by another key:\n{}", other.to_text(false));
        let right = if renewed.intact { POSSIBLE.to_owned() } else { failing(&renewed) };
        let row = vec![what.to_owned(), right, failing(&report), rows];
        match self.rows.iter().position(|known| *known == row) {
            Some(_) => {}
            None => self.rows.push(row.clone()),
        }
        *self.cells.entry(row.join("|")).or_default() += 1;
    }

    /// Holds that what a part of the changes led to stands in the table of all of them.
    pub(super) fn check_sample(&self, name: &str) {
        self.both.compare();
        table::check_sample(name, &self.rows);
    }

    /// Compares the whole table, or a sample of its rows unless [`everything`] was done.
    fn check_all(self, name: &str, what: &str) {
        if everything() { self.check(name, what) } else { self.check_sample(name) }
    }

    pub(super) fn check(self, name: &str, what: &str) {
        self.both.compare();
        let rows = self.rows.into_iter().map(|mut row| {
            row.insert(1, self.cells[&row.join("|")].to_string());
            row
        });
        let head = [what, "tried", "right key, log rewritten", "right key, log as it was", "another key"];
        table::check(name, &head, &rows.collect::<Vec<_>>());
    }
}

/// The cell's text if only the log contradicts.
pub(super) const POSSIBLE: &str = "– (could have happened)";

/// Returns the places of every second entry, or of all.
fn sampled(first: usize, entries: usize) -> impl Iterator<Item = usize> {
    let (first, step) = if everything() { (0, 1) } else { (first, 2) };
    (first..entries).step_by(step)
}

#[test]
fn every_entry_dropped() {
    let scene = Scene::new(End::Closed);
    let mut found = Found::default();
    for at in sampled(0, scene.tale().len()) {
        let mut tale = scene.tale();
        let event = tale.remove(at);
        found.tell(&scene, &format!("`{}`", event.kind()), &tale);
    }
    found.check_all("tamper_dropped", "dropped");
}

#[test]
fn every_entry_doubled() {
    let scene = Scene::new(End::Closed);
    let mut found = Found::default();
    for at in sampled(1, scene.tale().len()) {
        let mut tale = scene.tale();
        let again = tale[at].clone();
        let kind = again.kind();
        tale.insert(at, again);
        found.tell(&scene, &format!("`{kind}`"), &tale);
    }
    found.check_all("tamper_doubled", "doubled");
}

#[test]
fn every_two_entries_exchanged() {
    let scene = Scene::new(End::Closed);
    let mut found = Found::default();
    let count = scene.tale().len();
    for first in 0..count {
        for second in first + 1..count {
            // Every second pair of neighbours and every 32nd of others, or all.
            let every = if second == first + 1 { 2 } else { 32 };
            if (first * 7 + second / 2) % every != 0 && !everything() {
                continue;
            }
            let mut tale = scene.tale();
            tale.swap(first, second);
            let next = if second == first + 1 { "two neighbours" } else { "two others" };
            let ends = if first == 0 {
                ", one of them the first"
            } else if second == count - 1 {
                ", one of them the seal"
            } else {
                ""
            };
            found.tell(&scene, &format!("{next}{ends}"), &tale);
        }
    }
    found.rows.sort();
    found.check_all("tamper_exchanged", "exchanged");
}

#[test]
fn exchanged_products() {
    let scene = Scene::new(End::Closed);
    let mut found = Found::default();
    let mut tell = |what: &str, bend: Bend<'_>| {
        let mut tale = scene.tale();
        bend(&scene.forge, &mut tale);
        found.tell(&scene, what, &tale);
    };
    tell("the patches of two items exchanged", &|_, tale| {
        let (make, other) = (done(tale, "make"), done(tale, "other"));
        let patches = [patch(tale, make), patch(tale, other)];
        set_patch(tale, make, patches[1]);
        set_patch(tale, other, patches[0]);
    });
    tell("a patch exchanged for other bytes", &|forge, tale| {
        let make = done(tale, "make");
        set_patch(tale, make, store_product(forge, b"evil\n"));
    });
    tell("an item that consumed another's patch", &|_, tale| {
        let other = done(tale, "other");
        let stolen = patch(tale, other).sha256;
        refire(&scene.forge, tale, "use", &|fired| {
            fired.input_refs.get_mut(&path("patch")).unwrap().digest = stolen;
        });
    });
    tell("an item that consumed another artifact", &|_, tale| {
        refire(&scene.forge, tale, "use", &|fired| {
            fired.input_refs.get_mut(&path("spec")).unwrap().digest = Digest::compute(b"# Another\n");
        });
    });
    tell("an item that did not consume what it needs", &|_, tale| {
        refire(&scene.forge, tale, "use", &|fired| drop(fired.input_refs.pop_last()));
    });
    for (what, revision) in [("an older revision", b"first\n".as_slice()), ("a later revision", b"third\n")] {
        tell(&format!("an item that consumed {what} of a document"), &|_, tale| {
            refire(&scene.forge, tale, "use", &|fired| {
                fired.input_refs.get_mut(&path("notes")).unwrap().digest = Digest::compute(revision);
            });
        });
    }
    tell("a revision of a document exchanged for other bytes", &|forge, tale| {
        let at = tale.iter().position(|event| matches!(event, Event::DocumentWritten(_))).unwrap();
        let Event::DocumentWritten(e) = &mut tale[at] else { panic!() };
        (e.sha256, e.oid, e.size) = (Digest::compute(b"evil\n"), blob(forge, b"evil\n"), 5);
    });
    tell("the document of an item that is not its output", &|forge, tale| {
        let other = done(tale, "other");
        let Event::ItemReconciled(e) = &mut tale[other] else { panic!() };
        *e.products.get_mut(&"documents/score".parse().unwrap()).unwrap() = store_product(forge, b"evil\n");
    });
    tell("a manifest of another command", &|_, tale| {
        refire(&scene.forge, tale, "make", &|fired| {
            let read = scene.forge.store.read_blob(fired.manifest.oid).unwrap();
            let manifest = Manifest { argv: vec!["evil".to_owned()], ..Manifest::parse(&read).unwrap() };
            fired.manifest = store_product(&scene.forge, &manifest.canonical());
        });
    });
    tell("other bytes of a manifest than the entry names", &|forge, tale| {
        let at = tale.iter().position(|event| matches!(event, Event::ItemFired(_))).unwrap();
        point_to(&mut tale[at], "manifest.json", blob(forge, b"{}"));
    });
    what_was_added(&mut tell);
    tell("a plan of other commands, named by entry 0", &|forge, tale| {
        replace_plan(forge, tale, &PLAN.replace("[\"make\"]", "[\"evil\"]"));
    });
    tell("a plan with one item more, named by entry 0", &|forge, tale| {
        let more = r#"[{"id":"more","executor":"command","inputs":{"command":["true"]}},"#;
        replace_plan(forge, tale, &PLAN.replacen('[', more, 1));
    });
    tell("a plan with one dependency more, named by entry 0", &|forge, tale| {
        let more = r#""other","depends_on":["never"],"#;
        replace_plan(forge, tale, &PLAN.replacen(r#""other","#, more, 1));
    });
    tell("a plan of another run, named by entry 0", &|forge, tale| {
        replace_plan(forge, tale, &PLAN.replace("handoff-dag-1", "handoff-dag-2"));
    });
    tell("other bytes of the plan than entry 0 names", &|forge, tale| {
        point_to(&mut tale[0], "plan.json", blob(forge, b"{}"));
    });
    tell("other bytes of an artifact than entry 0 names", &|forge, tale| {
        point_to(&mut tale[0], "artifacts/spec.md", blob(forge, b"# Another\n"));
    });
    tell("an artifact exchanged, named by entry 0", &|forge, tale| {
        let Event::RunSubmitted(e) = &mut tale[0] else { panic!() };
        e.artifacts.values_mut().for_each(|sealed| *sealed = store_product(forge, b"# Another\n"));
    });
    found.check("tamper_exchanges", "the story");
}

/// A modification of a tale.
type Bend<'a> = &'a dyn Fn(&Forge, &mut Tale);

/// The item that a rule added exchanged, and the document that the rule saw.
fn what_was_added(tell: &mut dyn FnMut(&str, Bend<'_>)) {
    let extended = |tale: &Tale| tale.iter().position(|event| matches!(event, Event::RunExtended(_))).unwrap();
    tell("an added item of another command, named by its entry", &|forge, tale| {
        let at = extended(tale);
        let Event::RunExtended(e) = &mut tale[at] else { panic!() };
        for item in e.items.values_mut() {
            let text = String::from_utf8(forge.store.read_blob(item.oid).unwrap()).unwrap();
            *item = store_product(forge, text.replace("[\"again\"]", "[\"evil\"]").as_bytes());
        }
    });
    tell("an added item of another command, not named by its entry", &|forge, tale| {
        let at = extended(tale);
        let Event::RunExtended(e) = &mut tale[at] else { panic!() };
        e.items.values_mut().for_each(|item| item.oid = blob(forge, b"{}"));
    });
    tell("a document that would not have made its rule add anything", &|forge, tale| {
        let at = done(tale, "other");
        let Event::ItemReconciled(e) = &mut tale[at] else { panic!() };
        let high = b"{\"score\":9}\n";
        for product in e.products.iter_mut().filter(|(key, _)| **key != ProductKey::Patch).map(|(_, product)| product) {
            *product = store_product(forge, high);
        }
        refire(forge, tale, "use", &|fired| {
            let score = fired.input_refs.iter_mut().find(|(key, _)| key.as_str() == "score").unwrap();
            score.1.digest = Digest::compute(high);
        });
    });
}

/// A run made entirely by another person with their own log, and its verdict.
#[test]
fn a_whole_run_by_another_key() {
    let scene = Scene::new(End::Closed);
    let stranger = key(scene.forge.path(), 9);
    let mut tale = scene.tale();
    let Event::RunSubmitted(e) = &mut tale[0] else { panic!() };
    e.roles = every_role([stranger.fingerprint()]);
    let chain = scene.tell(tale, &stranger);
    scene.keep_log();
    let mut rows = Vec::new();
    let mut read = |what: &str, report: &git_handoff::verify::Report| {
        assert!(report.signers.iter().all(|signer| !signer.trusted), "{}", report.to_text(false));
        let signature = &report.rows.signature;
        let detail = signature.detail.replace(&stranger.fingerprint(), "SHA256:…");
        let mark = if signature.state == State::Failed { '✗' } else { '─' };
        let fails = failing(report);
        rows.push(vec![
            what.to_owned(),
            format!("`{}`", report.headline),
            if fails.is_empty() { "none".to_owned() } else { fails },
            format!("{mark} {detail}"),
        ]);
    };
    read("beside the log of the right key", &scene.forge.verify());
    scene.forge.log(&chain, &stranger);
    read("beside the logs of both keys", &scene.forge.verify());
    let own = super::run::log_ref(&scene.forge);
    scene.forge.git(&["update-ref", "-d", &own]);
    let alone = scene.forge.verify();
    read("beside a log of the other key alone", &alone);
    assert_eq!(alone.guarantee.as_str(), "detect");
    let line = git_handoff::ledger::sign::allowed_signers_line("ci@example.com", scene.forge.signer.public()).unwrap();
    let strict = Options {
        signers: Some(Signers::parse(&line, &jiff::tz::TimeZone::UTC).unwrap()),
        strict_signers: true,
        ..scene.forge.options()
    };
    read("the same, and the verifier names whom he trusts", &scene.forge.verify_with(&strict));
    table::check("tamper_forged", &["the forged run", "reads", "rows that fail", "signature"], &rows);
}

fn done(tale: &Tale, item: &str) -> usize {
    let made = |event: &Event| matches!(event, Event::ItemReconciled(e) if e.item.as_str() == item);
    tale.iter().position(made).unwrap()
}

fn patch(tale: &Tale, at: usize) -> git_handoff::model::entry::Product {
    let Event::ItemReconciled(e) = &tale[at] else { panic!() };
    e.products[&ProductKey::Patch]
}

fn set_patch(tale: &mut Tale, at: usize, product: git_handoff::model::entry::Product) {
    let Event::ItemReconciled(e) = &mut tale[at] else { panic!() };
    e.products.insert(ProductKey::Patch, product);
}

/// Dispatches an item with other inputs.
fn refire(forge: &Forge, tale: &mut Tale, item: &str, bend: &dyn Fn(&mut ItemFired)) {
    let mut chain_builder = super::run::story(forge, End::Closed);
    let made = chain_builder
        .drafts
        .iter()
        .position(|draft| matches!(&draft.event, Event::ItemFired(e) if e.item.as_str() == item));
    let at = made.unwrap();
    let Event::ItemFired(mut fired) = chain_builder.drafts.remove(at).event else { panic!() };
    bend(&mut fired);
    tale[at] = Event::ItemFired(fired);
}

fn replace_plan(forge: &Forge, tale: &mut Tale, plan: &str) {
    let Event::RunSubmitted(e) = &mut tale[0] else { panic!() };
    e.plan = store_product(forge, plan.as_bytes());
}
