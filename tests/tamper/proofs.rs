//! Proofs made up, bent and mixed, and what the checker says of each.

use std::rc::Rc;

use git_handoff::merkle;
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{Entry, Event, RunSubmitted};
use git_handoff::model::name::RunId;
use git_handoff::model::proof::Proof;
use git_handoff::model::time::Moment;
use git_handoff::sign::{Signer, allowed_signers_line};
use git_handoff::verify::{
    Answer, AtHand, Beside, Guarantee, Logs, Options, Question, Report, Seal, Signers, Witness, verify_proof,
};
use serde_json::{Value, json};

use super::forger::{Forger, MAKE, list, of_entry, verdict, with, without};
use super::table;

const HEAD: [&str; 3] = ["the proof", "reads", "rows that fail"];

/// A forgery, with its name.
type Forgery = (&'static str, Value);

/// How a path is bent, with what that is called.
type Bend<'a> = (&'static str, &'a dyn Fn(&mut Vec<Value>));

fn check(forger: &Forger, name: &str, forgeries: Vec<Forgery>) {
    let rows: Vec<Vec<String>> = forgeries.into_iter().map(|forgery| forger.row(forgery)).collect();
    table::check(name, &HEAD, &rows);
}

#[test]
fn roots_that_no_seal_says() {
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
    check(&forger, "proofs: roots", forgeries);
}

#[test]
fn signatures_of_others_and_of_nobody() {
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
    e.writers.push(forger.stranger.fingerprint());
    let own = forger.sealed_over(&shared, &item, &forger.commit_as(at, &own_seal(&shared), stranger));
    let begun = |signer| with(&own, |proof| proof["first"]["commit"] = forger.commit_as(0, &shared[0], signer).into());
    let end = |which: &str, commit: String| with(&forger.patch, |proof| proof[which]["commit"] = commit.into());
    let exchanged = |commit: &str, by: &str| {
        let armour = |commit: &str| commit[commit.find("gpgsig").unwrap()..commit.find("\n\n").unwrap()].to_owned();
        commit.replace(&armour(commit), &armour(by))
    };
    let (of_first, of_seal) = (forger.commit(&forger.links()[0]), forger.commit(&forger.links()[at]));
    let forgeries = vec![
        ("entry 0 signed by nobody", end("first", forger.commit_as(0, first, None))),
        ("entry 0 signed by a key that is no writer", end("first", forger.commit_as(0, first, stranger))),
        ("entry 0 with the signature of the seal", end("first", exchanged(&of_first, &of_seal))),
        ("the seal signed by nobody", end("last", forger.commit_as(at, seal, None))),
        ("the seal signed by a key that is no writer", end("last", forger.commit_as(at, seal, stranger))),
        ("the seal with the signature of entry 0", end("last", exchanged(&of_seal, &of_first))),
        ("a made-up end of an item, and a seal over it signed by nobody", made_up_under(None)),
        ("the same, signed by a key that is no writer", made_up_under(stranger)),
        ("the same, and an entry 0 that makes that key a writer, signed by nobody", begun(None)),
        ("the same, and the true entry 0", own.clone()),
    ];
    let mut rows: Vec<Vec<String>> = forgeries.into_iter().map(|forgery| forger.row(forgery)).collect();
    let whole = begun(stranger);
    assert!(forger.report(&whole).intact, "it is a sound proof of a stranger's run");
    let known = signers(&forger.scene.lab.signer);
    let strict = Options { signers: Some(known), strict_signers: true, ..Options::default() };
    rows.push(verdict(
        "the same, that entry 0 signed by that key, for a verifier who says whom he trusts",
        &asked(&whole, Beside::default(), &strict, &Logs::default(), None),
    ));
    table::check("proofs: signatures", &HEAD, &rows);
}

#[test]
fn what_no_run_holds() {
    let forger = Forger::new();
    let (right, at) = (Some(&forger.scene.lab.signer), forger.links().len() - 1);
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
    let another = Some(Digest::of(b"another"));
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
                let Event::ItemReconciled(e) = &mut entries[ended].event else { panic!() };
                e.attempt = 0;
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
        ("an entry 0 that says another format of object names", submitted(&|e| e.object_format = "sha256".to_owned())),
        ("an entry 0 that says no such format", submitted(&|e| e.object_format = "md5".to_owned())),
        ("an entry 0 with a base of another format", submitted(&|e| e.base = "1".repeat(64).parse().unwrap())),
        ("an entry 0 without writers", submitted(&|e| e.writers.clear())),
        ("a seal without a parent", last(forger.commit_as(0, &seal(&forger.entries()), right))),
        ("a seal that follows nothing", bent(&|seal| seal.prev = None)),
        ("a seal with another place than it has", bent(&|seal| seal.seq += 1)),
        (
            "a seal over another number of entries",
            bent(&|seal| {
                let Event::RunSealed(e) = &mut seal.event else { panic!() };
                e.entries += 1;
            }),
        ),
        ("a seal dated before what it seals", bent(&|seal| seal.at = Moment::from_millis(0))),
        ("a seal of a run of another name", bent(&|seal| seal.about = "another".parse::<RunId>().unwrap().into())),
    ];
    check(&forger, "proofs: right key", forgeries);
}

/// A list that holds the key.
fn signers(signer: &Signer) -> Signers {
    let line = allowed_signers_line("ada@example.com", signer.public()).unwrap();
    Signers::parse(&line, &jiff::tz::TimeZone::UTC).unwrap()
}

#[test]
fn entries_that_are_not_the_items() {
    let forger = Forger::new();
    let seqs =
        |matches: &dyn Fn(&Event) -> bool| forger.entries().iter().position(|entry| matches(&entry.event)).unwrap();
    let shown =
        |of: &[usize]| with(&forger.patch, |proof| proof["shown"] = of.iter().map(|at| forger.leaf(*at)).collect());
    let [fired, ended] = MAKE;
    let retried = seqs(&|event| matches!(event, Event::ItemRetried(_)));
    let other = seqs(&|event| matches!(event, Event::ItemFired(e) if e.item.as_str() == "other"));
    let broken = seqs(&|event| matches!(event, Event::ItemFired(e) if e.item.as_str() == "break"));
    let failed = with(&shown(&[broken, broken + 1]), |proof| {
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
        ("the end before the dispatch", shown(&[ended, fired])),
        ("the end alone", shown(&[ended])),
        ("the dispatch alone", shown(&[fired])),
        ("the end twice", shown(&[ended, ended])),
        ("the dispatch twice", shown(&[fired, fired])),
        ("no entries", without(&forger.patch, &["shown"])),
        ("one entry more, of the run", shown(&[fired, ended, other])),
        ("entry 0 once more", shown(&[0, fired, ended])),
        ("the dispatch of the first attempt", shown(&[1, ended])),
        ("the dispatch of an attempt that a crash ended", shown(&[3, ended])),
        ("a retry in the place of the end", shown(&[1, retried])),
        ("a retry in the place of the dispatch", shown(&[retried, ended])),
        ("the dispatch of another item", shown(&[other, ended])),
        ("the end of another item", shown(&[fired, other + 1])),
        ("dispatch and end of another item", shown(&[other, other + 1])),
        ("dispatch and end of an item that failed, shown as the one that is done", shown(&[broken, broken + 1])),
        ("the same, shown as what it is", failed),
        ("of a run in which the item was done before its dispatch, as it stands there", backwards([ended, fired])),
        ("the same, in that order", backwards([fired, ended])),
        ("another item named", with(&forger.patch, |proof| proof["item"] = "other".into())),
        (
            "entries of an item in a proof of an earlier root",
            with(&forger.grown, |proof| proof["shown"] = forger.patch["shown"].clone()),
        ),
    ];
    check(&forger, "proofs: entries", forgeries);
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
        ("the seal of a run of the same name, told anew", take(patch, twin, &["last"])),
        ("seal and root of a run of the same name, told anew", take(patch, twin, &["last", "root"])),
        ("the entries of a run of the same name, told anew", take(patch, twin, &["shown"])),
        ("an earlier root, and seal and root of the run told anew", take(grown, twin, &["last", "root"])),
        ("the same, and the paths of that run", without(&grown_twin, &["item", "product", "shown"])),
    ];
    check(&forger, "proofs: runs", forgeries);
}

#[test]
fn paths_that_lead_elsewhere() {
    let forger = Forger::new();
    let another = || json!(Digest::of(b"another"));
    let (patch, grown) = (&forger.patch, &forger.grown);
    let entries = patch["entries"].as_u64().unwrap();
    let set = |proof: &Value, at: &str, value: Value| with(proof, |proof| *proof.pointer_mut(at).unwrap() = value);
    let mut forgeries = Vec::new();
    for (proof, of) in [(patch, ""), (grown, ", of a proof of an earlier root")] {
        for (what, number) in
            [("one more", entries + 1), ("one less", entries - 1), ("none", 0), ("2^53−1", (1 << 53) - 1)]
        {
            forgeries.push((format!("number of entries: {what}{of}"), set(proof, "/entries", number.into())));
        }
        forgeries.push((format!("another root{of}"), set(proof, "/root", another())));
        forgeries.push((
            format!("entry 0 without its path{of}"),
            with(proof, |proof| drop(proof["first"].as_object_mut().unwrap().remove("path"))),
        ));
    }
    for (at, of) in [
        ("/first/path", "entry 0"),
        ("/shown/0/path", "the dispatch"),
        ("/shown/1/path", "the end"),
        ("/since/path", "the earlier root"),
    ] {
        let proof = if at == "/since/path" { grown } else { patch };
        let length = proof.pointer(at).unwrap().as_array().unwrap().len();
        let bends: [Bend<'_>; 6] = [
            ("one hash longer", &|path| path.push(another())),
            ("one hash longer at its start", &|path| path.insert(0, another())),
            ("one hash shorter", &|path| drop(path.pop())),
            ("one hash shorter at its start", &|path| drop(path.remove(0))),
            ("empty", &Vec::clear),
            ("with 1,000 hashes", &|path| path.resize(1000, another())),
        ];
        for (how, bend) in bends {
            forgeries.push((format!("the path of {of} {how}"), with(proof, |proof| bend(list(proof, at)))));
        }
        for hash in 0..length {
            forgeries.push((
                format!("the path of {of}, another hash in it"),
                with(proof, |proof| list(proof, at)[hash] = another()),
            ));
        }
    }
    for (what, number) in
        [("none", 0), ("one more", 6), ("one less", 4), ("all", entries), ("more than there are", entries + 1)]
    {
        forgeries
            .push((format!("entries under the earlier root: {what}"), set(grown, "/since/entries", number.into())));
    }
    let of_nothing = json!({ "entries": 0, "root": merkle::root([]), "path": [] });
    forgeries.push(("the root of no entries as the earlier one".to_owned(), set(grown, "/since", of_nothing)));
    forgeries.push(("another earlier root".to_owned(), set(grown, "/since/root", another())));
    let all = json!({ "entries": entries, "root": grown["since"]["root"], "path": [] });
    forgeries.push(("another earlier root, over all entries".to_owned(), set(grown, "/since", all)));
    // Hashes of one path read alike.
    let mut rows: Vec<Vec<String>> = forgeries.iter().map(|(what, proof)| forger.row((what, proof.clone()))).collect();
    rows.dedup();
    table::check("proofs: paths", &HEAD, &rows);
}

#[test]
fn products_that_were_not_handed_over() {
    let forger = Forger::new();
    let patch = &forger.patch;
    let is = |field: &str, value: Value| with(patch, |proof| proof["product"]["is"][field] = value);
    let other = forger.leaf(MAKE[1])["entry"]["products"]["outputs/we ird.bin"].clone();
    let forgeries = vec![
        ("another digest", is("sha256", json!(Digest::of(b"another")))),
        ("another size", is("size", 1.into())),
        ("another object name", is("oid", "1".repeat(40).into())),
        (
            "digest, size and object name of another product of the item",
            with(patch, |proof| proof["product"]["is"] = other),
        ),
        (
            "the key of another product of the item",
            with(patch, |proof| proof["product"]["key"] = "outputs/we ird.bin".into()),
        ),
        ("a key that is not among the products", with(patch, |proof| proof["product"]["key"] = "outputs/none".into())),
        ("a product without an item", without(patch, &["item", "shown"])),
        (
            "a product in a proof of an earlier root",
            with(&forger.grown, |proof| proof["product"] = patch["product"].clone()),
        ),
    ];
    check(&forger, "proofs: products", forgeries);
}

#[test]
fn files_that_read_two_ways() {
    let forger = Forger::new();
    let (patch, grown) = (&forger.patch, &forger.grown);
    let (text, since) = (patch.to_string(), grown.to_string());
    let put = |text: &str, before: &str, more: &str| {
        let bent = text.replacen(before, &format!("{more}{before}"), 1);
        assert_ne!(bent, text, "{before}");
        bent.into_bytes()
    };
    let instead = |text: &str, old: &str, new: &str| {
        let bent = text.replacen(old, new, 1);
        assert_ne!(bent, text, "{old}");
        bent.into_bytes()
    };
    let number = |proof: &Value, at: &str, number: &str| {
        let marked = with(proof, |proof| *proof.pointer_mut(at).unwrap() = "@".into());
        instead(&marked.to_string(), "\"@\"", number)
    };
    let bytes = |proof: Value| proof.to_string().into_bytes();
    let deep = "[".repeat(200) + &"]".repeat(200);
    let files: Vec<(&str, Vec<u8>)> = vec![
        ("a key of the proof twice", put(&text, "\"item\":\"make\"", "\"item\":\"other\",")),
        ("a key of an end twice", put(&text, "\"commit\"", "\"commit\":\"\",")),
        ("a key of an entry twice", put(&text, "\"kind\"", "\"item\":\"other\",")),
        ("a key of an entry twice, the same", put(&text, "\"kind\":\"item.fired\"", "\"kind\":\"item.fired\",")),
        (
            "a key of an entry twice, once written with an escape",
            put(&text, "\"kind\"", "\"\\u006bind\":\"run.closed\","),
        ),
        ("a key of a product in an entry twice", put(&text, "\"oid\"", "\"oid\":\"\",")),
        ("a key of the product twice", put(&text, "\"key\"", "\"key\":\"outputs/x\",")),
        ("a key of the earlier state twice", put(&since, "\"entries\":5", "\"entries\":4,")),
        ("a field that there is not", bytes(with(patch, |proof| proof["more"] = true.into()))),
        ("a field that there is not, at an end", bytes(with(patch, |proof| proof["last"]["more"] = true.into()))),
        (
            "a field that there is not, in an entry",
            bytes(with(patch, |proof| proof["shown"][1]["entry"]["more"] = true.into())),
        ),
        ("`null` for a field that is absent", bytes(with(grown, |proof| proof["item"] = Value::Null))),
        ("`null` for the path of the seal", bytes(with(patch, |proof| proof["last"]["path"] = Value::Null))),
        ("`null` in an entry", bytes(with(patch, |proof| proof["shown"][1]["entry"]["reason"] = Value::Null))),
        ("an empty list of entries", bytes(with(grown, |proof| proof["shown"] = json!([])))),
        (
            "an array for an end",
            bytes(with(patch, |proof| proof["first"] = json!([proof["first"]["commit"], proof["first"]["path"]]))),
        ),
        (
            "an array for the product",
            bytes(with(patch, |proof| proof["product"] = json!([proof["product"]["key"], proof["product"]["is"]]))),
        ),
        (
            "a string for an entry",
            bytes(with(patch, |proof| proof["shown"][1]["entry"] = proof["shown"][1]["entry"].to_string().into())),
        ),
        ("a number with a fraction", number(patch, "/entries", "22.0")),
        ("a number with an exponent", number(patch, "/entries", "22e0")),
        ("a number below nought", number(patch, "/entries", "-1")),
        ("a number of 2^53", number(patch, "/entries", "9007199254740992")),
        ("a number of 2^53, in an entry", number(patch, "/shown/1/entry/durationMs", "9007199254740993")),
        ("a number of 2^64", number(grown, "/since/entries", "18446744073709551621")),
        ("half a surrogate pair", instead(&text, "human:ada\",\"at", "human:\\ud800\",\"at")),
        (
            "bytes that are not UTF-8",
            text.clone().into_bytes().iter().map(|b| if *b == b'@' { 0xff } else { *b }).collect(),
        ),
        (
            "200 arrays in one another, in an entry",
            instead(&text, "\"durationMs\":12", &format!("\"durationMs\":{deep}")),
        ),
        ("two proofs", format!("{text}{since}").into_bytes()),
        ("a proof, and a proof in an array", format!("[{text}]").into_bytes()),
        ("a byte order mark", format!("\u{feff}{text}").into_bytes()),
        ("another schema", bytes(with(patch, |proof| proof["schema"] = "git-handoff.proof/2".into()))),
        ("an item that is no name", bytes(with(patch, |proof| proof["item"] = "@make".into()))),
        ("nothing", Vec::new()),
    ];
    let row = |(what, bytes): (&str, Vec<u8>)| match Proof::parse(&bytes) {
        Err(problem) => vec![what.to_owned(), format!("no proof: `{}`", problem.code), "–".to_owned()],
        Ok(proof) => forger.row((what, serde_json::to_value(proof).unwrap())),
    };
    table::check("proofs: files", &HEAD, &files.into_iter().map(row).collect::<Vec<_>>());
}

/// What a place outside answers, which can be given more than once.
#[derive(Clone)]
enum Says {
    Seals(Vec<Seal>),
    Logs(Rc<Logs>),
    Nothing(&'static str),
}

fn witness(says: &Says) -> Vec<Witness> {
    let answer = match says {
        Says::Seals(seals) => Answer::Seals(seals.clone()),
        Says::Logs(logs) => Answer::Logs(vec![Rc::clone(logs)]),
        Says::Nothing(why) => Answer::None((*why).to_owned()),
    };
    let (anchor, kind, guarantee) = ("vault".to_owned(), "s3", Guarantee::ExternalImmutable);
    vec![Witness { anchor, kind, guarantee, since: None, notes: Vec::new(), answer }]
}

/// Checks a proof as it stands for a verifier who asks for something.
fn asked(proof: &Value, beside: Beside, options: &Options, logs: &Logs, says: Option<&Says>) -> Report {
    let read = Proof::parse(proof.to_string().as_bytes()).unwrap();
    let ask = |_: &Question<'_>| says.map(witness).unwrap_or_default();
    verify_proof(&read, beside, options, &AtHand { logs, ask: &ask })
}

#[test]
fn what_the_verifier_asks_for() {
    let forger = Forger::new();
    let lab = &forger.scene.lab;
    let (own, none) = (lab.signer.fingerprint(), Beside::default());
    let known = Options { strict_signers: true, signers: Some(signers(&lab.signer)), ..Options::default() };
    let line = allowed_signers_line("ada@example.com", lab.signer.public()).unwrap();
    let line = line.replace("namespaces=", "valid-before=\"20200101Z\",namespaces=");
    let expired = Signers::parse(&line, &jiff::tz::TimeZone::UTC).unwrap();
    let options: [(&str, Options); 7] = [
        (
            "keys that are known, and this one is not",
            Options { signers: Some(signers(&forger.stranger)), ..known.clone() },
        ),
        ("a principal who has another key", Options { signer: Some("eve@example.com".to_owned()), ..known.clone() }),
        ("keys within their validity", Options { signers: Some(expired), ..known.clone() }),
        (
            "keys that are not revoked, and this one is",
            Options { revoked: [(own.clone(), None)].into(), ..known.clone() },
        ),
        ("another base", Options { base: Some("1".repeat(40).parse().unwrap()), ..known.clone() }),
        ("another plan", Options { plan: Some(b"{}".to_vec()), ..known.clone() }),
        (
            "another plan and another principal",
            Options { plan: Some(b"{}".to_vec()), signer: Some("eve@example.com".to_owned()), ..known.clone() },
        ),
    ];
    let last = forger.links().last().unwrap();
    let Event::RunSealed(e) = &last.entry.event else { panic!() };
    let held = Seal { root: e.root, entries: e.entries, seal: last.hash, commit: last.commit };
    let another = Digest::of(b"another");
    let places = [
        ("an anchor, which holds another root", Says::Seals(vec![Seal { root: another, ..held.clone() }])),
        ("an anchor, which holds another number of entries", Says::Seals(vec![Seal { entries: 3, ..held.clone() }])),
        ("an anchor, which holds another seal", Says::Seals(vec![Seal { seal: another, ..held.clone() }])),
        (
            "an anchor, which holds the same and another",
            Says::Seals(vec![held.clone(), Seal { root: another, ..held.clone() }]),
        ),
        ("an anchor, which holds nothing of the run", Says::Seals(Vec::new())),
        ("an anchor, which cannot be reached", Says::Nothing("no route to host")),
        ("an anchor, which holds no log of a writer", Says::Logs(Rc::default())),
    ];
    let (no_logs, logs) = (Logs::default(), Rc::new(Logs::read(&lab.store).unwrap()));
    let mut rows = Vec::new();
    for (of, proof) in [("a product", &forger.patch), ("an earlier root", &forger.grown)] {
        let fine = asked(proof, none, &known, &logs, Some(&Says::Seals(vec![held.clone()])));
        assert!(fine.intact, "{}", fine.to_text(false));
        let mut row = |what: &str, report: Report| {
            let mut row = verdict(what, &report);
            row.insert(0, of.to_owned());
            rows.push(row);
        };
        for (what, options) in &options {
            row(what, asked(proof, none, options, &no_logs, None));
        }
        for (what, says) in &places {
            row(what, asked(proof, none, &known, &no_logs, Some(says)));
        }
        let file = Beside { file: Some((another, 8)), ..none };
        row("a file, which is another", asked(proof, file, &known, &no_logs, None));
        let since = Beside { since_root: Some(another), ..none };
        row("an earlier root, which is another", asked(proof, since, &known, &no_logs, None));
    }
    for (what, at_hand, says) in [
        ("the logs at hand, where the run's log holds the first story", &*logs, None),
        ("an anchor, which holds the log of the first story", &no_logs, Some(Says::Logs(Rc::clone(&logs)))),
    ] {
        let mut row = verdict(what, &asked(&forger.twin, none, &known, at_hand, says.as_ref()));
        row.insert(0, "a product of the run told anew with the right key".to_owned());
        rows.push(row);
    }
    table::check("proofs: asked", &["a true proof of", "the verifier asks for", "reads", "rows that fail"], &rows);
}
