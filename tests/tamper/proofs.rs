//! Proofs made up, bent and mixed, and what the checker says of each.

use git_handoff::ledger::merkle;
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{Entry, Event, RunSubmitted};
use git_handoff::model::name::RunId;
use git_handoff::model::role::every_role;
use git_handoff::model::time::Moment;
use git_handoff::verify::{Beside, Logs, Options};
use serde_json::{Value, json};

use super::forger::{Forger, MAKE, of_entry, verdict, with, without};
use super::proof_asked::{signers, verify_with};
use super::table;

/// The heads of a table's columns.
pub(super) const HEAD: [&str; 3] = ["the proof", "reads", "rows that fail"];

/// A forgery, with its name.
pub(super) type Forgery = (&'static str, Value);

/// Compares how forgeries read with a table.
pub(super) fn check(forger: &Forger, name: &str, forgeries: Vec<Forgery>) {
    let rows: Vec<Vec<String>> = forgeries.into_iter().map(|forgery| forger.row(forgery)).collect();
    table::check(name, &HEAD, &rows);
}

#[test]
fn roots_outside_any_seal() {
    let forger = Forger::new();
    let (made_up, honest) = (forger.made_up(), forger.entries());
    let seal = forger.commit(forger.links().last().unwrap());
    let (item, since) = (json!({ "item": "make" }), json!({ "since": { "entries": 12 } }));
    let both = json!({ "item": "make", "since": { "entries": 12 } });
    let old_root = json!(merkle::root(honest[..12].iter().map(Entry::hash)));
    let path = |proof: &mut Value| proof["last"]["path"] = json!([]);
    let forgeries = vec![
        (
            "a made-up end of an item and a signed latest entry under a root of its own, `item` and `since` at once",
            forger.over(&made_up, &both),
        ),
        ("the same, `item` alone", forger.over(&made_up, &item)),
        ("the same, `since` alone", forger.over(&made_up, &since)),
        (
            "the same, `since` the root that the run had",
            with(&forger.over(&made_up, &since), |proof| proof["since"]["root"] = old_root),
        ),
        ("true entries and a signed latest entry under a true root, `item`", forger.over(&honest, &item)),
        ("the same, `since`", forger.over(&honest, &since)),
        ("a made-up end of an item, and the true seal", forger.sealed_over(&made_up, &item, &seal)),
        ("the same, `item` and `since` at once", forger.sealed_over(&made_up, &both, &seal)),
        ("a made-up course of the run, and the true seal", forger.sealed_over(&made_up, &since, &seal)),
        ("true entries and the true seal, `item` and `since` at once", forger.sealed_over(&honest, &both, &seal)),
        (
            "a true proof of an item, and the path of an earlier root",
            with(&forger.patch, |proof| proof["since"] = forger.grown["since"].clone()),
        ),
        ("a true proof of an item, and a path at the seal", with(&forger.patch, path)),
        ("a true proof of an earlier root, and a path at the seal", with(&forger.grown, path)),
        ("a true proof, about nothing", without(&forger.grown, &["since"])),
    ];
    check(&forger, "tamper_proof_roots", forgeries);
}

#[test]
fn foreign_and_missing_signatures() {
    let forger = Forger::new();
    let (made_up, item) = (forger.made_up(), json!({ "item": "make" }));
    let at = forger.links().len() - 1;
    let (first, seal) = (&forger.links()[0].entry, &forger.links()[at].entry);
    let stranger = Some(&forger.stranger);
    let own_seal = |entries: &[Entry]| forger.seal_of(merkle::root(entries.iter().map(Entry::hash)));
    let made_up_under =
        |signer| forger.sealed_over(&made_up, &item, &forger.commit_as(at, &own_seal(&made_up), signer));
    // The same run, as a stranger would have begun it who lets the right key write too.
    let mut shared = made_up.clone();
    let Event::RunSubmitted(e) = &mut shared[0].event else { panic!() };
    e.roles.extend(every_role([forger.stranger.fingerprint()]));
    let own = forger.sealed_over(&shared, &item, &forger.commit_as(at, &own_seal(&shared), stranger));
    let begun = |signer| with(&own, |proof| proof["first"]["commit"] = forger.commit_as(0, &shared[0], signer).into());
    let end = |which: &str, commit: String| with(&forger.patch, |proof| proof[which]["commit"] = commit.into());
    let exchanged = |commit: &str, by: &str| {
        let armour = |commit_text: &str| {
            commit_text[commit_text.find("gpgsig").unwrap()..commit_text.find("\n\n").unwrap()].to_owned()
        };
        commit.replace(&armour(commit), &armour(by))
    };
    let (of_first, of_seal) = (forger.commit(&forger.links()[0]), forger.commit(&forger.links()[at]));
    let forgeries = vec![
        ("entry 0 unsigned", end("first", forger.commit_as(0, first, None))),
        ("entry 0 signed by a key that is no writer", end("first", forger.commit_as(0, first, stranger))),
        ("entry 0 with the signature of the seal", end("first", exchanged(&of_first, &of_seal))),
        ("the seal unsigned", end("last", forger.commit_as(at, seal, None))),
        ("the seal signed by a key that is no writer", end("last", forger.commit_as(at, seal, stranger))),
        ("the seal with the signature of entry 0", end("last", exchanged(&of_seal, &of_first))),
        ("a made-up end of an item, and a seal over it unsigned", made_up_under(None)),
        ("the same, signed by a key that is no writer", made_up_under(stranger)),
        ("the same, and an entry 0 that makes that key a writer, unsigned", begun(None)),
        ("the same, and the true entry 0", own.clone()),
    ];
    let mut rows: Vec<Vec<String>> = forgeries.into_iter().map(|forgery| forger.row(forgery)).collect();
    let whole = begun(stranger);
    assert!(forger.report(&whole).intact, "it is a sound proof of a stranger's run");
    let known = signers(&forger.scene.forge.signer);
    let strict = Options { signers: Some(known), strict_signers: true, ..Options::default() };
    rows.push(verdict(
        "the same, that entry 0 signed by that key, for a verifier who says whom he trusts",
        &verify_with(&whole, Beside::default(), &strict, &Logs::default(), None),
    ));
    table::check("tamper_proof_signatures", &HEAD, &rows);
}

#[test]
fn entries_outside_any_run() {
    let forger = Forger::new();
    let (right, at) = (Some(&forger.scene.forge.signer), forger.links().len() - 1);
    let seal = |entries: &[Entry]| forger.seal_of(merkle::root(entries.iter().map(Entry::hash)));
    let under = |bend: &dyn Fn(&mut Vec<Entry>)| {
        let mut entries = forger.entries();
        bend(&mut entries);
        let end = forger.commit_as(at, &seal(&entries), right);
        let mut proof = forger.sealed_over(&entries, &json!({ "item": "make" }), &end);
        proof["first"]["commit"] = forger.commit_as(0, &entries[0], right).into();
        proof
    };
    let last = |commit: String| with(&forger.patch, |proof| proof["last"]["commit"] = commit.into());
    let bent = |bend: &dyn Fn(&mut Entry)| {
        let mut seal = seal(&forger.entries());
        bend(&mut seal);
        last(forger.commit_as(at, &seal, right))
    };
    let submitted = |bend: &dyn Fn(&mut RunSubmitted)| {
        under(&|entries| {
            let Event::RunSubmitted(e) = &mut entries[0].event else { panic!() };
            bend(e);
        })
    };
    let [fired, ended] = MAKE;
    let another = Some(Digest::compute(b"another"));
    assert!(forger.report(&under(&|_| {})).intact);
    let forgeries = vec![
        ("an end that does not follow the dispatch before it", under(&|entries| entries[ended].prev = another)),
        ("an end without what it follows", under(&|entries| entries[ended].prev = None)),
        ("an end dated before its dispatch", under(&|entries| entries[ended].at = Moment::from_millis(0))),
        (
            "a dispatch dated after the seal",
            under(&|entries| {
                (entries[fired].at, entries[ended].at) =
                    (Moment::from_millis(4_000_000_000_000), Moment::from_millis(4_000_000_000_000));
            }),
        ),
        ("an end with another place than it has", under(&|entries| entries[ended].seq += 1)),
        (
            "an attempt 0",
            under(&|entries| {
                let Event::ItemFired(e) = &mut entries[fired].event else { panic!() };
                e.attempt = 0;
                let Event::ItemReconciled(reconciled) = &mut entries[ended].event else { panic!() };
                reconciled.attempt = 0;
            }),
        ),
        ("an entry 0 that follows another", under(&|entries| entries[0].prev = another)),
        ("an entry 0 with another place than it has", under(&|entries| entries[0].seq = 1)),
        (
            "an entry 0 with a parent",
            with(&forger.patch, |proof| {
                proof["first"]["commit"] = forger.commit_as(1, &forger.links()[0].entry, right).into();
            }),
        ),
        ("an entry 0 with a base of another format", submitted(&|e| e.base = "1".repeat(64).parse().unwrap())),
        ("an entry 0 without writers", submitted(&|e| e.roles.clear())),
        ("a seal without a parent", last(forger.commit_as(0, &seal(&forger.entries()), right))),
        ("a seal that follows nothing", bent(&|bent_seal| bent_seal.prev = None)),
        ("a seal with another place than it has", bent(&|bent_seal| bent_seal.seq += 1)),
        ("a seal dated before what it seals", bent(&|bent_seal| bent_seal.at = Moment::from_millis(0))),
        (
            "a seal of a run of another name",
            bent(&|bent_seal| bent_seal.about = "another".parse::<RunId>().unwrap().into()),
        ),
    ];
    check(&forger, "tamper_proof_right_key", forgeries);
}

#[test]
fn entries_that_are_not_the_items() {
    let forger = Forger::new();
    let seqs =
        |matches: &dyn Fn(&Event) -> bool| forger.entries().iter().position(|entry| matches(&entry.event)).unwrap();
    let showing =
        |of: &[usize]| with(&forger.patch, |proof| proof["shown"] = of.iter().map(|at| forger.leaf(*at)).collect());
    let [fired, ended] = MAKE;
    let retried = seqs(&|event| matches!(event, Event::ItemRetried(_)));
    let other = seqs(&|event| matches!(event, Event::ItemFired(e) if e.item.as_str() == "other"));
    let broken = seqs(&|event| matches!(event, Event::ItemFired(e) if e.item.as_str() == "break"));
    let failed = with(&showing(&[broken, broken + 1]), |proof| {
        proof["item"] = "break".into();
        proof.as_object_mut().unwrap().remove("product");
    });
    let backwards = |order: [usize; 2]| {
        let leaves: Vec<Digest> = forger.backwards.iter().map(|link| link.hash).collect();
        let (seal, leaves) = leaves.split_last().unwrap();
        let path = |at: usize| merkle::inclusion(leaves, at).unwrap();
        let leaf = |at: usize| json!({ "entry": of_entry(&forger.backwards[at].entry), "path": path(at) });
        assert_eq!(*seal, forger.backwards.last().unwrap().hash);
        with(&forger.patch, |proof| {
            proof["root"] = json!(merkle::root(leaves.iter().copied()));
            proof["first"]["path"] = json!(path(0));
            proof["last"]["commit"] = forger.commit(forger.backwards.last().unwrap()).into();
            proof["shown"] = order.iter().map(|at| leaf(*at)).collect();
        })
    };
    let forgeries = vec![
        ("the end before the dispatch", showing(&[ended, fired])),
        ("the end alone", showing(&[ended])),
        ("the dispatch alone", showing(&[fired])),
        ("the end twice", showing(&[ended, ended])),
        ("the dispatch twice", showing(&[fired, fired])),
        ("no entries", without(&forger.patch, &["shown"])),
        ("one entry more, of the run", showing(&[fired, ended, other])),
        ("entry 0 once more", showing(&[0, fired, ended])),
        ("the dispatch of the first attempt", showing(&[1, ended])),
        ("the dispatch of an attempt that a crash ended", showing(&[3, ended])),
        ("a retry in the place of the end", showing(&[1, retried])),
        ("a retry in the place of the dispatch", showing(&[retried, ended])),
        ("the dispatch of another item", showing(&[other, ended])),
        ("the end of another item", showing(&[fired, other + 1])),
        ("dispatch and end of another item", showing(&[other, other + 1])),
        ("dispatch and end of an item that failed, shown as the one that is done", showing(&[broken, broken + 1])),
        ("the same, shown as what it is", failed),
        ("of a run in which the item was done before its dispatch, as it stands there", backwards([ended, fired])),
        ("the same, in that order", backwards([fired, ended])),
        ("another item named", with(&forger.patch, |proof| proof["item"] = "other".into())),
        (
            "entries of an item in a proof of an earlier root",
            with(&forger.grown, |proof| proof["shown"] = forger.patch["shown"].clone()),
        ),
    ];
    check(&forger, "tamper_proof_entries", forgeries);
}

#[test]
fn parts_of_other_runs() {
    let forger = Forger::new();
    let take = |proof: &Value, from: &Value, fields: &[&str]| {
        with(proof, |proof| fields.iter().for_each(|field| proof[*field] = from[*field].clone()))
    };
    let Forger { patch, grown, twin, sibling, .. } = &forger;
    let grown_twin = take(twin, grown, &["since"]);
    let forgeries = vec![
        ("entry 0 of a run of another name", take(patch, sibling, &["first"])),
        ("the seal of a run of another name", take(patch, sibling, &["last"])),
        (
            "seal, root and number of entries of a run of another name",
            take(patch, sibling, &["last", "root", "entries"]),
        ),
        ("the entries of a run of another name", take(patch, sibling, &["shown", "product"])),
        ("everything of a run of another name but that", take(sibling, patch, &["run"])),
        ("the seal of a rewritten run of the same name", take(patch, twin, &["last"])),
        ("seal and root of a rewritten run of the same name", take(patch, twin, &["last", "root"])),
        ("the entries of a rewritten run of the same name", take(patch, twin, &["shown"])),
        ("an earlier root, and seal and root of the rewritten run", take(grown, twin, &["last", "root"])),
        ("the same, and the paths of that run", without(&grown_twin, &["item", "product", "shown"])),
    ];
    check(&forger, "tamper_proof_runs", forgeries);
}
