//! Places outside whose clock and the run's contradict one another, and who must be known for the
//! strongest claim.

use git_handoff::ledger::sign::allowed_signers_line;
use git_handoff::model::entry::Event;
use git_handoff::model::name::RunId;
use git_handoff::model::time::Moment;
use git_handoff::verify::{
    Answer, AtHand, Claim, Failure, Guarantee, Held, Logs, Now, Options, Question, Report, Requirements, Seal, Signers,
    State, Witness, verify_with,
};

use crate::common::forge::Forge;

/// Verifies an honest run, its times from 2026-06-04T02:00:00Z on, that a vault holds since some
/// time.
fn held_since(forge: &Forge, since: Option<&str>, answer: Option<Answer>, options: &Options) -> Report {
    let chain = forge.honest();
    let last = chain.links.last().unwrap();
    let Event::RunSealed(e) = &last.entry.event else { panic!("a run ends with its seal") };
    let seal = Seal { root: e.root, entries: last.entry.seq, seal: last.hash, commit: last.commit };
    let key = forge.signer.fingerprint();
    let since: Option<Moment> = since.map(|since| since.parse().unwrap());
    let answer = std::cell::RefCell::new(answer);
    let ask = |_: &Question<'_>| {
        let vault = Witness {
            anchor: "vault".to_owned(),
            kind: "s3".to_owned(),
            guarantee: Guarantee::ExternalImmutable,
            since,
            notes: Vec::new(),
            answer: Answer::Seals(vec![Held { key: key.clone(), seal: seal.clone() }]),
        };
        let stamp = answer.borrow_mut().take().map(|answer| Witness {
            anchor: "authority".to_owned(),
            kind: "rfc3161".to_owned(),
            guarantee: Guarantee::Detect,
            since: None,
            notes: Vec::new(),
            answer,
        });
        [vault].into_iter().chain(stamp).collect()
    };
    let logs = Logs::read(&forge.store).unwrap();
    let run = RunId::parse("handoff-dag-1").unwrap();
    let at_hand = AtHand { logs: &logs, ask: &ask, bases: None };
    verify_with(&forge.store, &at_hand, &run, "refs/handoff/runs/handoff-dag-1", options).unwrap()
}

fn known(forge: &Forge) -> Options {
    let line = allowed_signers_line("ada@example.com", forge.signer.public()).unwrap();
    Options { signers: Some(Signers::parse(&line, &jiff::tz::TimeZone::UTC).unwrap()), ..forge.options() }
}

#[test]
fn an_anchor_older_than_what_it_holds_deserves_a_word() {
    let word = "; vault held the seal at 2019-01-01T00:00:00.000Z, and the run dates its first entry \
                2026-06-04T02:00:00.000Z: one of the two clocks is wrong";
    let forge = Forge::new();
    let report = held_since(&forge, Some("2019-01-01T00:00:00.000Z"), None, &known(&forge));
    let row = &report.rows.anchor;
    assert!(report.intact && row.state == State::Ok, "{}", report.to_text(false));
    assert_eq!(row.detail, format!("vault: s3 (external-immutable){word}"));
    assert_eq!(report.to_json()["checks"]["anchor"]["detail"], row.detail);
    // Clocks that differ by minutes, and what is anchored later, are worth none.
    for since in
        [Some("2026-06-04T01:30:00.000Z"), Some("2026-06-04T02:00:01.000Z"), Some("2031-01-01T00:00:00.000Z"), None]
    {
        let since_forge = Forge::new();
        let since_report = held_since(&since_forge, since, None, &known(&since_forge));
        assert_eq!(since_report.rows.anchor.detail, "vault: s3 (external-immutable)", "{since:?}");
    }
    // So is a time stamp.
    let stamp_forge = Forge::new();
    let stamp = Answer::Time(Ok("2026-06-03T00:00:00.000Z".parse().unwrap()));
    let stamp_report = held_since(&stamp_forge, None, Some(stamp), &known(&stamp_forge));
    let detail = &stamp_report.rows.anchor.detail;
    insta::assert_snapshot!(detail, @"vault: s3 (external-immutable); authority held the seal at 2026-06-03T00:00:00.000Z, and the run dates its first entry 2026-06-04T02:00:00.000Z: one of the two clocks is wrong");
}

#[test]
fn dates_ahead_of_the_verifiers_clock_deserve_a_word() {
    let now = |at: &str, pinned| Some(Now { at: at.parse().unwrap(), pinned });
    let forge = Forge::new();
    let sealed = forge.honest().links.last().unwrap().entry.at;
    let pinned = forge.honest().links.last().unwrap().entry.pinned;
    let detail = |checked_at: Option<Now>, since: Option<&str>| {
        let second_forge = Forge::new();
        let report = held_since(&second_forge, since, None, &Options { now: checked_at, ..known(&second_forge) });
        assert!(report.intact, "{}", report.to_text(false));
        report.rows.anchor.detail.clone()
    };
    let plain = "vault: s3 (external-immutable)";
    let early = now("2026-06-01T00:00:00.000Z", pinned);
    let word = format!(
        "the run dates its seal {sealed}, and it is 2026-06-01T00:00:00.000Z here: one of the two clocks is wrong"
    );
    assert_eq!(detail(early, None), format!("{plain}; {word}"));
    // An hour, and a clock of another kind, are no contradiction.
    for fine in [now("2026-06-04T01:30:00.000Z", pinned), now("2026-06-01T00:00:00.000Z", !pinned), None] {
        assert_eq!(detail(fine, None), plain);
    }
    // An anchor's date after the verifier's clock is a contradiction, unless the clock is pinned.
    let since = Some("2031-01-01T00:00:00.000Z");
    let later = "vault held the seal at 2031-01-01T00:00:00.000Z, and it is 2030-01-01T00:00:00.000Z here: one of the two clocks is wrong";
    assert_eq!(detail(now("2030-01-01T00:00:00.000Z", false), since), format!("{plain}; {later}"));
    assert_eq!(detail(now("2030-01-01T00:00:00.000Z", true), since), plain);
    assert_eq!(detail(now("2031-01-01T00:00:00.000Z", false), since), plain);
}

#[test]
fn nothing_is_tamper_evident_without_signers_that_name_its_keys() {
    let forge = Forge::new();
    let mut own = held_since(&forge, None, None, &forge.options());
    assert_eq!((own.intact, own.claim, own.headline), (true, Claim::TamperDetecting, "INTACT · tamper-detecting"));
    insta::assert_snapshot!(own.rows.signature.detail, @"ed25519 SHA256:fe8… · this repository's key");
    own.require(&Requirements { claim: Claim::TamperEvident, ..Requirements::default() });
    assert_eq!((own.failure, own.headline), (Some(Failure::Required), "MISMATCH"));
    let why = format!(
        "tamper-evident was required; it takes trusted signers and an anchor that cannot be rewritten: your signers do \
         not name the key {}",
        forge.signer.fingerprint()
    );
    assert_eq!(own.unmet.as_ref(), Some(&why));
    // Signers that name others are as good as none.
    let second_forge = Forge::new();
    let other = crate::common::forge::key(second_forge.path(), 9);
    let line = allowed_signers_line("eve@example.com", other.public()).unwrap();
    let signers = Some(Signers::parse(&line, &jiff::tz::TimeZone::UTC).unwrap());
    let others = held_since(&second_forge, None, None, &Options { signers, ..second_forge.options() });
    assert_eq!((others.intact, others.claim), (true, Claim::TamperDetecting));
    let third_forge = Forge::new();
    let mut evident = held_since(&third_forge, None, None, &known(&third_forge));
    assert_eq!((evident.claim, evident.headline), (Claim::TamperEvident, "INTACT · tamper-evident"));
    evident.require(&Requirements { claim: Claim::TamperEvident, ..Requirements::default() });
    assert!(evident.intact && evident.unmet.is_none());
}
