//! Proofs whose numbers, paths and products are bent, and files that read two ways.

use git_handoff::ledger::merkle;
use git_handoff::model::digest::Digest;
use git_handoff::model::proof::Proof;
use serde_json::{Value, json};

use super::forger::{Forger, MAKE, list, with, without};
use super::proofs::{HEAD, check};
use super::table;

/// How a path is bent, with what that is called.
type Bend<'a> = (&'static str, &'a dyn Fn(&mut Vec<Value>));

#[test]
fn paths_that_lead_elsewhere() {
    let forger = Forger::new();
    let another = || json!(Digest::compute(b"another"));
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
    table::check("tamper_proof_paths", &HEAD, &rows);
}

#[test]
fn products_that_were_not_handed_over() {
    let forger = Forger::new();
    let patch = &forger.patch;
    let is = |field: &str, value: Value| with(patch, |proof| proof["product"]["is"][field] = value);
    let other = forger.leaf(MAKE[1])["entry"]["products"]["outputs/we ird.bin"].clone();
    let forgeries = vec![
        ("another digest", is("sha256", json!(Digest::compute(b"another")))),
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
    check(&forger, "tamper_proof_products", forgeries);
}

#[test]
fn files_that_read_two_ways() {
    let forger = Forger::new();
    let (patch, grown) = (&forger.patch, &forger.grown);
    let (text, since) = (patch.to_string(), grown.to_string());
    let put = |content: &str, before: &str, more: &str| {
        let bent = content.replacen(before, &format!("{more}{before}"), 1);
        assert_ne!(bent, content, "{before}");
        bent.into_bytes()
    };
    let instead = |original: &str, old: &str, new: &str| {
        let bent = original.replacen(old, new, 1);
        assert_ne!(bent, original, "{old}");
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
    let row = |(what, raw): (&str, Vec<u8>)| match Proof::parse(&raw) {
        Err(problem) => vec![what.to_owned(), format!("no proof: `{}`", problem.code), "–".to_owned()],
        Ok(proof) => forger.row((what, serde_json::to_value(proof).unwrap())),
    };
    table::check("tamper_proof_files", &HEAD, &files.into_iter().map(row).collect::<Vec<_>>());
}
