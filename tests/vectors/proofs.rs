//! Proofs that show what they say, and proofs that do not.

use git_handoff::git::codec;
use git_handoff::ledger::sign::Signer;
use git_handoff::ledger::{merkle, prove};
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{Event, Grade, ItemDecided, Role};
use git_handoff::model::format;
use git_handoff::model::plan::ProductKey;
use git_handoff::model::proof::Proof;
use serde_json::{Value, json};

use super::keys::BOTH;
use super::{TRUSTED, holds, stranger, verdict};
use crate::common::Environment;
use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, PLAN, key};
use crate::people::forged::{begun, decided, first, write_statement};
use crate::people::seals::{admission, sealed_by};

const REFERENCE: &str = "refs/handoff/runs/handoff-dag-1";

/// A proof, and the options that its verifier gets.
pub(super) struct Vector {
    name: &'static str,
    what: &'static str,
    arguments: &'static [&'static str],
    holds: bool,
    make: fn(&Forge) -> Proof,
}

impl Vector {
    const fn new(name: &'static str, what: &'static str, holds: bool, make: fn(&Forge) -> Proof) -> Self {
        Self { name, what, arguments: TRUSTED, holds, make }
    }

    const fn with_arguments(self, arguments: &'static [&'static str]) -> Self {
        Self { arguments, ..self }
    }

    pub(super) fn file(&self) -> String {
        format!("{}.proof.json", self.name)
    }
}

pub(super) const VECTORS: &[Vector] = &[
    Vector::new("clean-product", "the patch of an item", true, |forge| {
        forge.honest();
        prove_item(forge, "edit-a", Some("patch"))
    }),
    Vector::new("clean-growth", "how a run went on from its first three entries", true, |forge| {
        forge.honest();
        prove::growth(&forge.store, REFERENCE, 3).unwrap()
    }),
    Vector::new("clean-claimed", "an item of the executor `claimed`", true, |forge| {
        let mut run =
            ChainBuilder::submit(forge, &PLAN.replacen(r#""executor":"command""#, r#""executor":"claimed""#, 1));
        run.fire("edit-a");
        run.done("edit-a", &[("patch", b"diff --git a/x b/x\n")]);
        super::forged::last_end(&mut run).grade = Some(Grade::Claimed);
        run.fire("edit-b");
        run.done("edit-b", &[]);
        run.seal();
        forge.finish(run);
        prove_item(forge, "edit-a", None)
    }),
    Vector::new("clean-admitted", "an item of a run that an admitted key sealed", true, admitted).with_arguments(BOTH),
    Vector::new("clean-decided", "a decision with the statement of the key that made it", true, |forge| {
        decision(forge, true)
    })
    .with_arguments(BOTH),
    Vector::new(
        "clean-decided-by-the-word-of-another",
        "a decision without a statement; another key sealed",
        true,
        |forge| decision(forge, false),
    )
    .with_arguments(BOTH),
    Vector::new("admission-left-out", "the same as clean-admitted without `admitted`", false, |forge| Proof {
        admitted: None,
        ..admitted(forge)
    })
    .with_arguments(BOTH),
    Vector::new("begun-without-own", "entry 0 is signed by a key to which it gives `work` alone", false, |forge| {
        by_roles(forge, &[Role::Work], None)
    })
    .with_arguments(BOTH),
    Vector::new(
        "sealed-without-seal",
        "the seal is signed by a key to which entry 0 gives `document` alone",
        false,
        |forge| by_roles(forge, &[Role::Own, Role::Work], Some(&stranger(forge))),
    )
    .with_arguments(BOTH),
    Vector::new("no-entries", "a number of entries that is 0", false, |forge| {
        forge.honest();
        Proof { entries: 0, ..prove_item(forge, "edit-a", Some("patch")) }
    }),
    Vector::new("another-root", "a root that the seal does not say", false, |forge| {
        forge.honest();
        Proof { root: Digest::compute(b"another"), ..prove_item(forge, "edit-a", Some("patch")) }
    }),
    Vector::new("another-product", "a product that the item did not hand over", false, |forge| {
        forge.honest();
        let mut proof = prove_item(forge, "edit-a", Some("patch"));
        proof.product.as_mut().unwrap().is.size += 1;
        proof
    }),
    Vector::new("another-inclusion-path", "an inclusion path with another digest", false, |forge| {
        forge.honest();
        let mut proof = prove_item(forge, "edit-a", None);
        proof.shown[0].path[0] = Digest::compute(b"another");
        proof
    }),
    Vector::new("another-inclusion-path-of-entry-0", "the same of entry 0", false, |forge| {
        forge.honest();
        let mut proof = prove_item(forge, "edit-a", None);
        proof.first.path.as_mut().unwrap()[0] = Digest::compute(b"another");
        proof
    }),
    Vector::new("another-consistency-path", "a consistency path with another digest", false, |forge| {
        forge.honest();
        let mut proof = prove::growth(&forge.store, REFERENCE, 3).unwrap();
        proof.since.as_mut().unwrap().path[0] = Digest::compute(b"another");
        proof
    }),
    Vector::new("another-earlier-root", "an earlier root that the run did not go on from", false, |forge| {
        forge.honest();
        let mut proof = prove::growth(&forge.store, REFERENCE, 3).unwrap();
        proof.since.as_mut().unwrap().root = Digest::compute(b"another");
        proof
    }),
    Vector::new(
        "entries-that-do-not-link",
        "`prev` of an entry is not the leaf hash of the one before",
        false,
        unlinked,
    ),
    Vector::new(
        "admitted-to-another-run",
        "the admission of the key that sealed names another entry 0",
        false,
        |forge| {
            sealed_by(forge, &stranger(forge), |run, _| {
                run.add(admission(&stranger(forge), Role::Seal, Some(Digest::compute(b"another"))));
            });
            prove_item(forge, "build", None)
        },
    )
    .with_arguments(BOTH),
    Vector::new("admitted-by-a-later-owner", "the admission is signed by an owner that came later", false, |forge| {
        let eve = key(forge.path(), 3);
        sealed_by(forge, &stranger(forge), |run, first| {
            run.add(admission(&eve, Role::Own, None));
            run.add(admission(&stranger(forge), Role::Seal, Some(first)));
            run.by(&eve);
        });
        prove_item(forge, "build", None)
    })
    .with_arguments(BOTH),
    Vector::new("decided-with-another-statement", "the statement in a decision says something else", false, |forge| {
        let bob = stranger(forge);
        let event = decided(&begun(forge, &bob, Role::Approve), &bob);
        let other = ItemDecided { message: Some("only the draft".to_owned()), ..event.clone() };
        let statement = write_statement(forge, &bob, first(forge, &bob), &other);
        let mut run = begun(forge, &bob, Role::Approve);
        run.add(Event::ItemDecided(ItemDecided { said: Some(statement), ..event }));
        run.seal();
        forge.finish(run);
        prove_item(forge, "sign-off", None)
    })
    .with_arguments(BOTH),
];

fn prove_item(forge: &Forge, item: &str, product: Option<&str>) -> Proof {
    let product: Option<ProductKey> = product.map(|product| product.parse().unwrap());
    prove::item(&forge.store, REFERENCE, &item.parse().unwrap(), product.as_ref()).unwrap()
}

/// Returns the text of a proof of an honest run.
pub(super) fn honest_proof(forge: &Forge) -> String {
    text_of(&prove_item(forge, "edit-a", Some("patch")))
}

fn text_of(proof: &Proof) -> String {
    String::from_utf8(format::canonical(proof)).unwrap() + "\n"
}

/// A proof whose entry 2 does not name entry 1, under the root of a seal.
fn unlinked(forge: &Forge) -> Proof {
    let mut links = ChainBuilder::honest(forge).write(&forge.signer).links;
    links[2].entry.prev = Some(Digest::compute(b"another"));
    links[2].hash = links[2].entry.hash();
    let root = merkle::root(links[..5].iter().map(|link| link.hash));
    let parents = [links[4].commit];
    let seal = &mut links[5];
    let Event::RunSealed(e) = &mut seal.entry.event else { panic!() };
    e.root = root;
    seal.hash = seal.entry.hash();
    let signature = forge.signer.sign(&codec::payload(&seal.entry, seal.tree, &parents)).unwrap();
    let raw = codec::signed(&seal.entry, seal.tree, &parents, &signature);
    seal.commit = forge.store.write(gix::objs::Kind::Commit, &raw).unwrap();
    prove::item_of(&forge.store, &links, &"edit-a".parse().unwrap(), None).unwrap()
}

fn admitted(forge: &Forge) -> Proof {
    sealed_by(forge, &stranger(forge), |run, first| {
        run.add(admission(&stranger(forge), Role::Seal, Some(first)));
    });
    prove_item(forge, "build", None)
}

/// Has the other key decide, by a statement or by signing the entry itself.
fn decision(forge: &Forge, by_statement: bool) -> Proof {
    let bob = stranger(forge);
    let event = decided(&begun(forge, &bob, Role::Approve), &bob);
    let statement = by_statement.then(|| write_statement(forge, &bob, first(forge, &bob), &event));
    let mut run = begun(forge, &bob, Role::Approve);
    run.add(Event::ItemDecided(ItemDecided { said: statement, ..event }));
    if !by_statement {
        run.by(&bob);
    }
    run.seal();
    forge.finish(run);
    prove_item(forge, "sign-off", None)
}

/// A run whose entry 0 gives its signer these roles, and the other key the rest.
fn by_roles(forge: &Forge, roles: &[Role], sealer: Option<&Signer>) -> Proof {
    let mut run = ChainBuilder::honest(forge);
    let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
    let other = stranger(forge).fingerprint();
    let rest = if sealer.is_some() { [Role::Document].into() } else { Role::SUBMITTER.into() };
    let own = (forge.signer.fingerprint(), roles.iter().copied().collect());
    e.roles = [own, (other, rest)].into();
    if let Some(sealer) = sealer {
        run.by(sealer);
    }
    forge.finish(run);
    prove_item(forge, "edit-a", Some("patch"))
}

/// Makes the proof, compares it with the file, and returns what stands in the index about it.
pub(super) fn check(vector: &Vector, env: &Environment) -> Value {
    let proof = (vector.make)(&Forge::new());
    holds(&vector.file(), &text_of(&proof));
    env.write("home/proof.json", &text_of(&proof));
    let mut arguments = vec!["verify", "--json", "--proof", "proof.json"];
    arguments.extend(vector.arguments);
    let output = env.handoff_in("home", arguments);
    let mut entry = verdict(vector.name, &output);
    assert_eq!(entry["failure"].is_null(), vector.holds, "{}: {output}", vector.name);
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    if let Some(decisions) = report.get("decisions") {
        entry["decisions"] = decisions.clone();
    }
    entry["file"] = json!(vector.file());
    entry["description"] = json!(vector.what);
    if vector.arguments != TRUSTED {
        entry["arguments"] = json!(vector.arguments);
    }
    entry
}
