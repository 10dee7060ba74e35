//! Proofs: checked with nothing else at hand, and worth nothing once a word of them is changed.

use git_handoff::ledger::prove::{self, Error};
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{Again, Event};
use git_handoff::model::plan::ProductKey;
use git_handoff::model::proof::Proof;
use git_handoff::model::role::every_role;
use git_handoff::model::time::Moment;
use git_handoff::verify::{
    Answer, Ask, AtHand, Beside, Guarantee, Held, Logs, Options, Question, Report, Seal, State, Witness, ask_none,
    verify_proof,
};
use serde_json::Value;

use crate::common::Environment;
use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, key, row_of};
use crate::common::report::{find_row, verdict};
use crate::tamper::edits::{changed, taken_out};
use crate::tamper::run::{End, RUN, Scene};

fn check(proof: &Proof) -> Report {
    check_with(proof, Beside::default(), &Options::default())
}

fn check_with(proof: &Proof, supplied: Beside, options: &Options) -> Report {
    verify_proof(proof, supplied, options, &AtHand::logs(&Logs::default()))
}

fn file(bytes: &[u8]) -> Beside {
    Beside { file: Some((Digest::compute(bytes), bytes.len() as u64)), ..Beside::default() }
}

#[test]
fn every_product_can_be_proven() {
    for format in ["sha1", "sha256"] {
        let forge = Forge::with_format(format);
        let chain = forge.finish(ChainBuilder::honest(&forge));
        for (item, product, bytes) in [
            ("edit-a", "patch", &b"diff --git a/x b/x\n"[..]),
            ("edit-a", "outputs/we ird.bin", b"\0\x01\x02"),
            ("edit-b", "outputs/report.md", b"fine\n"),
        ] {
            let key: ProductKey = product.parse().unwrap();
            let proof = prove::item(&forge.store, RUN, &item.parse().unwrap(), Some(&key)).unwrap();
            let read = Proof::parse(&serde_json::to_vec(&proof).unwrap()).unwrap();
            assert_eq!(read, proof);
            let report = check_with(&read, file(bytes), &forge.options());
            assert!(report.intact, "{}", report.to_text(false));
            for row in ["chain", "root", "signature", "content"] {
                assert_eq!(row_of(&report, row).state, State::Ok, "{}", report.to_text(false));
            }
            assert_eq!((report.headline, report.root), ("PROVEN", Some(proof.root)));
            let other = check_with(&read, file(b"another"), &forge.options());
            assert!(!other.intact && other.rows.content.state == State::Failed);
            // The signed commit has the same name in stock git.
            let seal = chain.links.last().unwrap().commit;
            let file = forge.path().join("seal");
            std::fs::write(&file, &proof.last.commit).unwrap();
            assert_eq!(forge.git(&["hash-object", "-t", "commit", "seal"]), seal.to_string());
        }
    }
}

#[test]
fn only_what_was_sealed_and_done_can_be_proven() {
    let scene = Scene::new(End::Closed);
    let item = |name: &str, key: &str| {
        prove::item(&scene.forge.store, RUN, &name.parse().unwrap(), Some(&key.parse().unwrap()))
    };
    assert!(matches!(item("break", "patch"), Err(Error::NotDone(_))));
    assert!(matches!(item("use", "patch"), Err(Error::NoProduct(..))));
    let forge = Forge::new();
    let mut open = ChainBuilder::submit(&forge, crate::common::forge::PLAN);
    open.fire("edit-a");
    open.done("edit-a", &[("patch", b"diff\n")]);
    open.write(&forge.signer);
    let unsealed = prove::item(&forge.store, RUN, &"edit-a".parse().unwrap(), None);
    assert!(matches!(unsealed, Err(Error::NotSealed(_))), "{unsealed:?}");
}

#[test]
fn a_sealed_run_is_proven_to_have_gone_on_from_each_of_its_entries() {
    let forge = Forge::new();
    let mut open = ChainBuilder::submit(&forge, crate::common::forge::PLAN);
    open.fire("edit-a");
    open.done("edit-a", &[("patch", b"diff --git a/x b/x\n"), ("outputs/we ird.bin", b"\0\x01\x02")]);
    open.write(&forge.signer);
    assert!(
        matches!(prove::growth(&forge.store, RUN, 0), Err(Error::NotSealed(_))),
        "nothing signs the root of an open run"
    );
    // The root that `verify` reports for an open run, to compare with a later proof.
    let noted = forge.verify().so_far.unwrap();
    let chain = forge.honest();
    assert_eq!((noted.size, forge.verify().so_far), (3, None));
    let count = chain.links.len() as u64 - 1;
    for since in 0..count {
        let proof = prove::growth(&forge.store, RUN, since).unwrap();
        assert_eq!((proof.entries, proof.since.as_ref().unwrap().entries), (count, since + 1));
        let report = check_with(&proof, Beside::default(), &forge.options());
        assert!(report.intact && report.sealed, "{}", report.to_text(false));
        let extension = report.since.unwrap();
        assert_eq!(
            (extension.head.size, extension.head.root, extension.known),
            (since + 1, proof.since.as_ref().unwrap().root, false)
        );
        let detail = &report.rows.root.detail;
        let (_, extends) = detail.split_once(", ").unwrap();
        let since_root = proof.since.as_ref().unwrap().root;
        assert_eq!(
            extends,
            format!("extends {since_root} over {} entries: compare it with the root that you noted", since + 1)
        );
        let known = check_with(&proof, Beside { since_root: Some(noted.root), ..Beside::default() }, &forge.options());
        assert_eq!(known.intact, since + 1 == noted.size, "{}", known.to_text(false));
        assert_eq!(known.since.unwrap().known, known.intact);
    }
    assert!(matches!(prove::growth(&forge.store, RUN, count), Err(Error::NoEntry { .. })));
    assert!(matches!(prove::growth(&forge.store, RUN, u64::MAX), Err(Error::NoEntry { .. })));
}

#[test]
fn prove_uses_the_final_entry_of_an_item() {
    let forge = Forge::new();
    let mut run = ChainBuilder::submit(&forge, crate::common::forge::PLAN);
    for ended in [None, Some(Again::Failure), Some(Again::Crash), Some(Again::Operator)] {
        run.fire("edit-a");
        if ended.is_none() {
            run.fail("edit-a");
        }
        // An operator gives an item that failed another round.
        run.requeue("edit-a", ended.unwrap_or(Again::Operator));
    }
    run.fire("edit-a");
    run.done("edit-a", &[("patch", b"diff\n")]);
    run.close();
    run.seal();
    forge.finish(run);
    let proof = prove::item(&forge.store, RUN, &"edit-a".parse().unwrap(), Some(&ProductKey::Patch)).unwrap();
    assert_eq!((proof.shown[0].entry["attempt"].as_u64(), proof.shown[1].entry["seq"].as_u64()), (Some(5), Some(11)));
    assert!(check_with(&proof, file(b"diff\n"), &forge.options()).intact);
}

#[test]
fn the_logs_at_hand_have_a_say() {
    let forge = Forge::new();
    let anchor = |logs: &Logs, proof: &Proof| {
        let report = verify_proof(proof, Beside::default(), &forge.options(), &AtHand::logs(logs));
        let row = &report.rows.anchor;
        (report.intact, row.state, row.detail.clone())
    };
    let chain = ChainBuilder::submit(&forge, crate::common::forge::PLAN).write(&forge.signer);
    forge.log(&chain, &forge.signer);
    let before_the_seal = Logs::read(&forge.store).unwrap();
    forge.honest();
    let after = Logs::read(&forge.store).unwrap();
    let item = prove::item(&forge.store, RUN, &"edit-a".parse().unwrap(), None).unwrap();
    for proof in [item, prove::growth(&forge.store, RUN, 1).unwrap()] {
        assert_eq!(
            anchor(&Logs::default(), &proof),
            (true, State::NotApplicable, "no log at hand holds the run".to_owned())
        );
        assert_eq!(anchor(&before_the_seal, &proof).1, State::NotApplicable);
        assert_eq!(anchor(&after, &proof), (true, State::Ok, "local (detect)".to_owned()));
    }
}

#[test]
fn anchored_proof_survives_a_later_revocation() {
    let forge = Forge::new();
    let chain = forge.honest();
    let proof = prove::item(&forge.store, RUN, &"edit-a".parse().unwrap(), None).unwrap();
    let last = chain.links.last().unwrap();
    let seal = Seal { root: proof.root, entries: proof.entries, seal: last.hash, commit: last.commit };
    let revoked = |since: &str| {
        let revoked = [(forge.signer.fingerprint(), Some(since.parse::<Moment>().unwrap()))].into();
        Options { revoked, ..forge.options() }
    };
    let ask = |_: &Question<'_>| {
        vec![Witness {
            anchor: "lock".to_owned(),
            kind: "s3".to_owned(),
            guarantee: Guarantee::ExternalImmutable,
            since: Some("2026-06-05T00:00:00.000Z".parse().unwrap()),
            notes: Vec::new(),
            answer: Answer::Seals(vec![Held { key: forge.signer.fingerprint(), seal: seal.clone() }]),
        }]
    };
    let intact = |since: &str, ask_logs: Ask<'_>| {
        let logs = Logs::default();
        verify_proof(&proof, Beside::default(), &revoked(since), &AtHand { logs: &logs, ask: ask_logs, bases: None })
            .intact
    };
    assert!(intact("2026-06-06T00:00:00.000Z", &ask));
    assert!(!intact("2026-06-04T12:00:00.000Z", &ask) && !intact("2026-06-06T00:00:00.000Z", &ask_none));
}

#[test]
fn a_changed_proof_proves_nothing() {
    let scene = Scene::new(End::Closed);
    let key: ProductKey = "patch".parse().unwrap();
    let store = &scene.forge.store;
    for proof in
        [prove::item(store, RUN, &"make".parse().unwrap(), Some(&key)).unwrap(), prove::growth(store, RUN, 4).unwrap()]
    {
        assert!(check(&proof).intact);
        let honest = serde_json::to_value(&proof).unwrap();
        for path in leaves(&honest, "") {
            for bent in [changed(&honest, &path), taken_out(&honest, &path)] {
                let Ok(bent) = Proof::parse(bent.to_string().as_bytes()) else { continue };
                // The product is optional, and changing the question does not change the evidence.
                if bent.product.is_none() && proof.product.is_some() {
                    continue;
                }
                let report = check(&bent);
                assert!(!report.intact, "{path}\n{}", report.to_text(false));
            }
        }
        // Every byte of what is signed.
        for at in 0..proof.last.commit.len() {
            let mut bytes = proof.last.commit.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(commit) = String::from_utf8(bytes) else { continue };
            let mut bent = proof.clone();
            bent.last.commit = commit;
            assert!(!check(&bent).intact, "byte {at} of the last entry");
        }
    }
}

/// The JSON pointers of all values that hold no others; the elements of paths among them.
fn leaves(value: &Value, at: &str) -> Vec<String> {
    let inside: Vec<(String, &Value)> = match value {
        Value::Object(map) => {
            map.iter().map(|(key, child)| (key.replace('~', "~0").replace('/', "~1"), child)).collect()
        }
        _ => Vec::new(),
    };
    if inside.is_empty() {
        return vec![at.to_owned()];
    }
    inside.into_iter().flat_map(|(key, leaf)| leaves(leaf, &format!("{at}/{key}"))).collect()
}

#[test]
fn a_proof_is_of_one_run_and_one_tree() {
    let (one, other) = (Scene::new(End::Closed), Scene::new(End::Cancelled));
    let patch: ProductKey = "patch".parse().unwrap();
    let prove =
        |scene: &Scene, item: &str| prove::item(&scene.forge.store, RUN, &item.parse().unwrap(), Some(&patch)).unwrap();
    let honest = prove(&one, "make");
    let mixed: [fn(&mut Proof, &Proof); 3] =
        [|p, q| p.last = q.last.clone(), |p, q| p.root = q.root, |p, q| (p.root, p.last) = (q.root, q.last.clone())];
    for mix in mixed {
        let mut proof = honest.clone();
        mix(&mut proof, &prove(&other, "make"));
        assert!(!check(&proof).intact, "{}", check(&proof).to_text(false));
    }
    let mut forged = honest.clone();
    forged.shown = prove(&one, "other").shown;
    assert!(!check(&forged).intact);
    // A forger's run proves itself with an unknown key.
    let stranger = key(one.forge.path(), 9);
    let mut tale = one.tale();
    let Event::RunSubmitted(submitted) = &mut tale[0] else { panic!("a run begins with its submission") };
    submitted.roles = every_role([stranger.fingerprint()]);
    one.tell(tale, &stranger);
    let report = check_with(&prove(&one, "make"), Beside::default(), &one.forge.options());
    assert!(report.intact && !report.signers[0].trusted, "{}", report.to_text(false));
    insta::assert_snapshot!(report.rows.signature.detail, @"valid, key SHA256:doxiASlJnKSD9j+JpVoWpfEFHjUrsF9ZYr+cir4FYjo not known to you");
}

#[test]
fn the_program_proves_and_checks() {
    let env = Environment::example("handoff-dag");
    let _ = env.handoff(["run", "plan.json"]).success();
    let proof = env.handoff(["prove", "handoff-dag-1/edit-a:patch"]).success();
    env.write("proof.json", &proof);
    let patch = env.handoff(["cat", "handoff-dag-1/edit-a:patch"]).success();
    env.write("patch", &patch);
    let report = env.handoff(["verify", "--proof", "../proof.json", "--file", "../patch"]).success();
    assert_eq!(verdict(&report), "✓ PROVEN");
    insta::assert_snapshot!(find_row(&report, "content"), @"✓ content    the file is patch of edit-a");
    // Nothing else is at hand where there is no repository, and our own key is not known there.
    let verify_report = env.handoff_in("home", ["verify", "--proof", "../proof.json", "--file", "../patch"]).success();
    assert_eq!(verdict(&verify_report), "✓ PROVEN");
    env.write("patch", "another\n");
    let second_report = env.handoff(["verify", "--proof", "../proof.json", "--file", "../patch"]).exit(3);
    assert_eq!(verdict(&second_report.stdout), "✗ NOT PROVEN");
    env.write("bad.json", "{}");
    insta::assert_snapshot!(env.handoff(["verify", "--proof", "../bad.json"]).exit(1).stderr, @"
    error: ../bad.json holds no proof: wrong-type: missing field `schema`
    hint: git handoff prove RUN/ITEM:patch
    ");
    env.write("bad.json", &proof.replacen("\"entry\":{", "\"entry\":{\"item\":\"edit-b\",", 1));
    insta::assert_snapshot!(env.handoff(["verify", "--proof", "../bad.json"]).exit(1).stderr, @r#"
    error: ../bad.json holds no proof: duplicate-key at shown[0].entry.item: the key "item" stands here twice
    hint: git handoff prove RUN/ITEM:patch
    "#);
    let _ = env.handoff(["prove", "handoff-dag-1/edit-a:nothing"]).exit(1);
    let _ = env.handoff(["prove", "handoff-dag-1"]).exit(2);
}

#[test]
fn the_program_holds_a_later_proof_against_a_root_that_was_noted() {
    let env = Environment::example("handoff-dag");
    let _ = env.handoff(["submit", "plan.json"]).success();
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let open = json(&env.handoff(["verify", "--json", "handoff-dag-1"]).exit(3).stdout);
    let noted = open["soFar"]["root"].as_str().unwrap().to_owned();
    assert_eq!((&open["soFar"]["entries"], &open["root"]), (&1.into(), &Value::Null));
    let refused = env.handoff(["prove", "handoff-dag-1", "--since", "0"]).exit(1).stderr;
    insta::assert_snapshot!(refused, @"
    error: run handoff-dag-1 is not sealed: no key has signed a root over its entries yet
    hint: git handoff run handoff-dag-1   # or seal it as it is: git handoff close handoff-dag-1
    ");
    let _ = env.handoff(["run", "handoff-dag-1"]).success();
    env.write("grown.json", &env.handoff(["prove", "handoff-dag-1", "--since", "0"]).success());
    let verify = ["verify", "--json", "--proof", "../grown.json"];
    let alone = json(&env.handoff(verify).success());
    let sealed = json(&env.handoff(["verify", "--json", "handoff-dag-1"]).success());
    assert_eq!(alone["root"], sealed["root"]);
    assert_eq!(alone["since"], serde_json::json!({ "entries": 1, "root": noted, "known": false }));
    let known = json(&env.handoff(verify.iter().chain(&["--since-root", &noted])).success());
    assert_eq!(known["since"]["known"], true);
    let other = sealed["root"].as_str().unwrap();
    let report = env.handoff(["verify", "--proof", "../grown.json", "--since-root", other]).exit(3).stdout;
    assert!(report.contains(&format!("✗ root       it extends {noted}, but you gave {other}")), "{report}");
    env.write("item.json", &env.handoff(["prove", "handoff-dag-1/edit-a"]).success());
    let verify_answer = env.handoff(["verify", "--proof", "../item.json", "--since-root", &noted]).exit(3).stdout;
    insta::assert_snapshot!(find_row(&verify_answer, "root"), @"✗ root       the proof is not about an earlier root, but you gave sha256:68db758a648399e09943d0254f2cfd2545869dec8c948a01cabba1ffe923df01");
    // Every requirement is reported.
    for options in [["--since-root", &noted], ["--root", &noted], ["--file", "plan.json"]] {
        let _ = env.handoff(["verify", "handoff-dag-1"].iter().chain(&options)).exit(2);
    }
    let _ = env.handoff(["verify", "--proof", "../item.json", "--root", &noted]).exit(2);
}
