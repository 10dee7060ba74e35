//! Proofs that show what they say, and proofs that do not.

use git_handoff::ledger::prove;
use git_handoff::ledger::sign::Signer;
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{Event, ItemDecided, Role};
use git_handoff::model::format;
use git_handoff::model::plan::ProductKey;
use git_handoff::model::proof::Proof;
use serde_json::{Value, json};

use super::keys::BOTH;
use super::{TRUSTED, holds, stranger, verdict};
use crate::common::Environment;
use crate::common::lab::Lab;
use crate::common::teller::Teller;
use crate::people::forged::{begun, decided, first, said};
use crate::people::seals::{admission, sealed_by};

const REFERENCE: &str = "refs/handoff/runs/handoff-dag-1";

/// A proof, and what is asked of who checks it.
pub(super) struct Vector {
    name: &'static str,
    what: &'static str,
    arguments: &'static [&'static str],
    holds: bool,
    make: fn(&Lab) -> Proof,
}

impl Vector {
    const fn new(name: &'static str, what: &'static str, holds: bool, make: fn(&Lab) -> Proof) -> Self {
        Self { name, what, arguments: TRUSTED, holds, make }
    }

    const fn asked(self, arguments: &'static [&'static str]) -> Self {
        Self { arguments, ..self }
    }

    pub(super) fn file(&self) -> String {
        format!("{}.proof.json", self.name)
    }
}

pub(super) const VECTORS: &[Vector] = &[
    Vector::new("clean-product", "the patch of an item", true, |lab| {
        lab.honest();
        of(lab, "edit-a", Some("patch"))
    }),
    Vector::new("clean-growth", "how a run went on from its first three entries", true, |lab| {
        lab.honest();
        prove::growth(&lab.store, REFERENCE, 3).unwrap()
    }),
    Vector::new("clean-admitted", "an item of a run that an admitted key sealed", true, admitted).asked(BOTH),
    Vector::new("clean-decided", "a decision with the statement of the key that made it", true, |lab| {
        decision(lab, true)
    })
    .asked(BOTH),
    Vector::new(
        "clean-decided-by-the-word-of-another",
        "a decision without a statement; another key sealed",
        true,
        |lab| decision(lab, false),
    )
    .asked(BOTH),
    Vector::new("admission-left-out", "the same as clean-admitted without `admitted`", false, |lab| Proof {
        admitted: None,
        ..admitted(lab)
    })
    .asked(BOTH),
    Vector::new("begun-without-own", "entry 0 is signed by a key to which it gives `work` alone", false, |lab| {
        by_roles(lab, &[Role::Work], None)
    })
    .asked(BOTH),
    Vector::new(
        "sealed-without-seal",
        "the seal is signed by a key to which entry 0 gives `document` alone",
        false,
        |lab| by_roles(lab, &[Role::Own, Role::Work], Some(&stranger(lab))),
    )
    .asked(BOTH),
    Vector::new("another-root", "a root that the seal does not say", false, |lab| {
        lab.honest();
        Proof { root: Digest::of(b"another"), ..of(lab, "edit-a", Some("patch")) }
    }),
    Vector::new("another-product", "a product that the item did not hand over", false, |lab| {
        lab.honest();
        let mut proof = of(lab, "edit-a", Some("patch"));
        proof.product.as_mut().unwrap().is.size += 1;
        proof
    }),
];

fn of(lab: &Lab, item: &str, product: Option<&str>) -> Proof {
    let product: Option<ProductKey> = product.map(|product| product.parse().unwrap());
    prove::item(&lab.store, REFERENCE, &item.parse().unwrap(), product.as_ref()).unwrap()
}

fn admitted(lab: &Lab) -> Proof {
    sealed_by(lab, &stranger(lab), |run, first| {
        run.add(admission(&stranger(lab), Role::Seal, Some(first)), Vec::new());
    });
    of(lab, "build", None)
}

/// Has the other key decide, by a statement or by signing the entry itself.
fn decision(lab: &Lab, by_statement: bool) -> Proof {
    let bob = stranger(lab);
    let event = decided(&begun(lab, &bob, Role::Approve), &bob);
    let statement = by_statement.then(|| said(lab, &bob, first(lab, &bob), &event));
    let mut run = begun(lab, &bob, Role::Approve);
    run.add(Event::ItemDecided(ItemDecided { said: statement, ..event }), Vec::new());
    if !by_statement {
        run.by(&bob);
    }
    run.seal();
    lab.finish(run);
    of(lab, "sign-off", None)
}

/// A run whose entry 0 gives its signer these roles, and the other key the rest.
fn by_roles(lab: &Lab, roles: &[Role], sealer: Option<&Signer>) -> Proof {
    let mut run = Teller::honest(lab);
    let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
    let other = stranger(lab).fingerprint();
    let rest = if sealer.is_some() { [Role::Document].into() } else { Role::SUBMITTER.into() };
    let own = (lab.signer.fingerprint(), roles.iter().copied().collect());
    e.writers.push(other.clone());
    e.roles = Some([own, (other, rest)].into());
    if let Some(sealer) = sealer {
        run.by(sealer);
    }
    lab.finish(run);
    of(lab, "edit-a", Some("patch"))
}

/// Makes the proof, compares it with the file, and returns what stands in the index about it.
pub(super) fn check(vector: &Vector, env: &Environment) -> Value {
    let proof = (vector.make)(&Lab::new());
    let text = String::from_utf8(format::canonical(&proof)).unwrap() + "\n";
    holds(&vector.file(), &text);
    env.write("home/proof.json", &text);
    let mut arguments = vec!["verify", "--json", "--proof", "proof.json"];
    arguments.extend(vector.arguments);
    let said = env.handoff_in("home", arguments);
    let mut entry = verdict(vector.name, &said);
    assert_eq!(entry["failure"].is_null(), vector.holds, "{}: {said}", vector.name);
    let report: Value = serde_json::from_str(&said.stdout).unwrap();
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
