//! True proofs, and verifiers who know better or ask for something else.

use std::rc::Rc;

use git_handoff::ledger::sign::{Signer, allowed_signers_line};
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::Event;
use git_handoff::model::proof::Proof;
use git_handoff::verify::{
    Answer, AtHand, Beside, Guarantee, Held, Logs, Options, Question, Report, Seal, Signers, Witness, verify_proof,
};
use serde_json::Value;

use super::forger::{Forger, verdict};
use super::table;

/// A list that holds the key.
pub(super) fn signers(signer: &Signer) -> Signers {
    let line = allowed_signers_line("ada@example.com", signer.public()).unwrap();
    Signers::parse(&line, &jiff::tz::TimeZone::UTC).unwrap()
}

/// The answer of an anchor; can be given several times.
#[derive(Clone)]
pub(super) enum Says {
    Seals(Vec<Seal>),
    Logs(Rc<Logs>),
    Nothing(&'static str),
}

fn witness(statement: &Says, question: &Question<'_>) -> Vec<Witness> {
    let answer = match statement {
        Says::Seals(seals) => {
            let by_writer = |seal: &Seal| Held { key: question.writers[0].clone(), seal: seal.clone() };
            Answer::Seals(seals.iter().map(by_writer).collect())
        }
        Says::Logs(logs) => Answer::Logs(vec![Rc::clone(logs)]),
        Says::Nothing(why) => Answer::None((*why).to_owned()),
    };
    let (anchor, kind, guarantee) = ("vault".to_owned(), "s3", Guarantee::ExternalImmutable);
    vec![Witness { anchor, kind: kind.to_owned(), guarantee, since: None, notes: Vec::new(), answer }]
}

/// Verifies a proof for a verifier with requirements.
pub(super) fn verify_with(
    proof: &Value,
    supplied: Beside,
    options: &Options,
    logs: &Logs,
    statement: Option<&Says>,
) -> Report {
    let read = Proof::parse(proof.to_string().as_bytes()).unwrap();
    let ask = |question: &Question<'_>| statement.map(|statement| witness(statement, question)).unwrap_or_default();
    verify_proof(&read, supplied, options, &AtHand { logs, ask: &ask, bases: None })
}

#[test]
fn verifier_options_decide_proofs() {
    let forger = Forger::new();
    let forge = &forger.scene.forge;
    let (own, none) = (forge.signer.fingerprint(), Beside::default());
    let known = Options { strict_signers: true, signers: Some(signers(&forge.signer)), ..Options::default() };
    let line = allowed_signers_line("ada@example.com", forge.signer.public()).unwrap();
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
    let seal = Seal { root: e.root, entries: last.entry.seq, seal: last.hash, commit: last.commit };
    let another = Digest::compute(b"another");
    let places = [
        ("an anchor, which holds another root", Says::Seals(vec![Seal { root: another, ..seal.clone() }])),
        ("an anchor, which holds another number of entries", Says::Seals(vec![Seal { entries: 3, ..seal.clone() }])),
        ("an anchor, which holds another seal", Says::Seals(vec![Seal { seal: another, ..seal.clone() }])),
        (
            "an anchor, which holds the same and another",
            Says::Seals(vec![seal.clone(), Seal { root: another, ..seal.clone() }]),
        ),
        ("an anchor, which holds nothing of the run", Says::Seals(Vec::new())),
        ("an anchor, which cannot be reached", Says::Nothing("no route to host")),
        ("an anchor, which holds no log of a writer", Says::Logs(Rc::default())),
    ];
    let (no_logs, logs) = (Logs::default(), Rc::new(Logs::read(&forge.store).unwrap()));
    let mut rows = Vec::new();
    for (of, proof) in [("a product", &forger.patch), ("an earlier root", &forger.grown)] {
        let fine = verify_with(proof, none, &known, &logs, Some(&Says::Seals(vec![seal.clone()])));
        assert!(fine.intact, "{}", fine.to_text(false));
        let mut row = |what: &str, report: Report| {
            let mut row = verdict(what, &report);
            row.insert(0, of.to_owned());
            rows.push(row);
        };
        for (what, verify_options) in &options {
            row(what, verify_with(proof, none, verify_options, &no_logs, None));
        }
        for (what, statement) in &places {
            row(what, verify_with(proof, none, &known, &no_logs, Some(statement)));
        }
        let file = Beside { file: Some((another, 8)), ..none };
        row("a file, which is another", verify_with(proof, file, &known, &no_logs, None));
        let since = Beside { since_root: Some(another), ..none };
        row("an earlier root, which is another", verify_with(proof, since, &known, &no_logs, None));
    }
    for (what, at_hand, statement) in [
        ("the logs at hand, where the run's log holds the first story", &*logs, None),
        ("an anchor, which holds the log of the first story", &no_logs, Some(Says::Logs(Rc::clone(&logs)))),
    ] {
        let mut row = verdict(what, &verify_with(&forger.twin, none, &known, at_hand, statement.as_ref()));
        row.insert(0, "a product of the run rewritten with the right key".to_owned());
        rows.push(row);
    }
    table::check("tamper_proof_asked", &["a true proof of", "the verifier asks for", "reads", "rows that fail"], &rows);
}
