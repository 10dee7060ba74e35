//! The run that is tampered with: small, sealed, and with every kind of entry.

use std::collections::BTreeSet;

use git_handoff::git::refs;
use git_handoff::ledger::chain::Draft;
use git_handoff::ledger::sign::Signer;
use git_handoff::model::digest::Digest;
use git_handoff::model::digest::Oid;
use git_handoff::model::driver::{Because, DriverId, RunShared};
use git_handoff::model::entry::{
    Again, Cause, Claims, Decision, Event, Exit, ItemDecided, ItemDropped, Outcome, Role, RunAdmitted, RunConcluded,
    RunDismissed, RunEnded, Transcript, Verified, VerifiedBy,
};
use git_handoff::model::format;
use git_handoff::model::name::ItemId;
use git_handoff::model::time::Moment;
use git_handoff::verify::{Report, State};

use crate::common::chain_builder::{BuiltChain, ChainBuilder, draft};
use crate::common::forge::{Forge, key};

pub(crate) const RUN: &str = "refs/handoff/runs/handoff-dag-1";

pub(crate) const PLAN: &str = r#"{"id":"handoff-dag-1","items":[
{"id":"make","executor":"command","inputs":{"command":["make"]},"resourceLocks":["build"]},
{"id":"other","executor":"command","inputs":{"command":"other"},"produces":[{"kind":"patch"},
{"kind":"document","name":"score","schema":"score@1","path":"score.json"}]},
{"id":"use","executor":"command","inputs":{"command":["use"]},"resourceLocks":["build"],"needs":{
"notes":{"from":"@documents","select":{"kind":"document","name":"notes","schema":"notes@1"}},
"patch":{"from":"make","select":{"kind":"patch"}},
"score":{"from":"other","select":{"kind":"document","name":"score"}},
"spec":{"from":"@artifacts","select":{"kind":"output","path":"spec.md"}}}},
{"id":"break","executor":"command","inputs":{"command":["false"]}},
{"id":"after","executor":"command","inputs":{"command":["true"]},"depends_on":["break"]},
{"id":"never","executor":"command","inputs":{"command":["true"]}},
{"id":"sign-off","executor":"approval","depends_on":["make"]}],
"artifacts":{"spec.md":"spec.md"},
"rules":[{"id":"again","when":{"if":[{"document":"score","pointer":"/score","op":"<","value":8}]},
"create":{"executor":"command","inputs":{"command":["again"]}}},
{"id":"broke","when":{"items":[{"items":["break"],"are":"failed"}]},"outcome":"broken"}]}"#;

/// How the run ends before it is sealed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Closed,
    Cancelled,
}

/// Tells the whole story.
pub(crate) fn story(forge: &Forge, end: End) -> ChainBuilder<'_> {
    let mut run = ChainBuilder::submit(forge, PLAN);
    run.add(Event::RunAdmitted(RunAdmitted::new(key(forge.path(), 4).fingerprint(), Role::Document)));
    run.add(Event::RunShared(RunShared::new(1000, 4000)));
    run.driver = Some(DriverId::from_random([0xd1; 16]));
    run.fire("make");
    run.requeue("make", Again::Failure);
    run.fire("make");
    run.requeue("make", Again::Crash);
    run.fire("make");
    run.take("make", Some(DriverId::from_random([0xd2; 16])), Some(Because::Silent));
    run.fire("make");
    run.done("make", &[("patch", b"diff make\n"), ("outputs/we ird.bin", b"\0\x01\x02")]);
    let decided = ItemDecided {
        message: Some("as agreed".to_owned()),
        ..ItemDecided::new(
            ItemId::parse("sign-off").unwrap(),
            Decision::Approved,
            Outcome::Done,
            run.state.decided_about(run.state.graph.position(&ItemId::parse("sign-off").unwrap()).unwrap()),
            forge.signer.fingerprint(),
        )
    };
    run.add(Event::ItemDecided(decided));
    run.document("notes", Some("notes@1"), b"first\n");
    run.fire("other");
    let score: &[u8] = b"{\"score\":7}\n";
    run.done("other", &[("patch", b"diff other\n"), ("outputs/score.json", score), ("documents/score", score)]);
    let again = run.of_rule(0);
    run.extend(Cause::Rule("again".parse().unwrap()), std::slice::from_ref(&again));
    run.document("notes", Some("notes@1"), b"second\n");
    run.fire(again.id.as_str());
    run.done(again.id.as_str(), &[("outputs/again.md", b"again\n")]);
    run.fire("use");
    run.done("use", &[("outputs/report.md", b"fine\n")]);
    run.document("notes", Some("notes@2"), b"third\n");
    run.add(Event::RunDismissed(RunDismissed::new(key(forge.path(), 4).fingerprint())));
    run.fire("break");
    run.fail("break");
    run.skip("after");
    let concluded = RunConcluded::new("broke".parse().unwrap(), "broken");
    run.add(Event::RunConcluded(concluded));
    let dropped = ItemDropped::new(ItemId::parse("never").unwrap(), 0, "no need");
    run.add(Event::ItemCancelled(dropped));
    let ended = RunEnded::new("enough");
    run.add(if end == End::Closed { Event::RunClosed(ended) } else { Event::RunCancelled(ended) });
    run.seal();
    // Every field that an entry can have is there.
    for draft in &mut run.drafts {
        let transcript = Some(Transcript { sha256: Digest::compute(b"said\n"), size: 5 });
        match &mut draft.event {
            Event::ItemFired(e) => {
                e.claims = Claims { host: Some("node7".to_owned()), job: Some("4711".to_owned()), ..Claims::default() }
                    .stated();
            }
            Event::ItemReconciled(e) => {
                let code = i32::from(e.status == Outcome::Failed);
                e.exit = Some(Exit { code: Some(code), signal: None });
                e.verify = Some(Verified { passed: true, by: VerifiedBy::Command });
                e.transcript = transcript;
            }
            Event::ItemRetried(e) | Event::ItemRequeued(e) => {
                e.exit = Some(Exit { code: None, signal: Some(9) });
                e.duration_ms = Some(7);
                e.transcript = transcript;
                e.not_before = Some(Moment::from_millis(1_780_538_400_000));
            }
            _ => {}
        }
    }
    run
}

#[test]
fn the_two_of_them_have_every_kind_of_entry() {
    let scenes = [End::Closed, End::Cancelled].map(Scene::new);
    let drafts = scenes.iter().flat_map(|scene| &scene.drafts);
    assert_eq!(drafts.map(|draft| draft.event.kind()).collect::<BTreeSet<_>>(), crate::model::kinds_of_runs());
}

/// A repository with the run in it, and its entries.
pub(crate) struct Scene {
    pub(crate) forge: Forge,
    pub(crate) chain: BuiltChain,
    pub(crate) drafts: Vec<Draft>,
    log: Oid,
}

impl Scene {
    pub(crate) fn new(end: End) -> Self {
        let forge = Forge::new();
        let chain_builder = story(&forge, end);
        let drafts = chain_builder.drafts.clone();
        let chain = forge.finish(chain_builder);
        let log = refs::read(&forge.store, &log_ref(&forge)).unwrap().unwrap();
        let scene = Self { forge, chain, drafts, log };
        crate::common::forge::assert_intact(&scene.forge.verify());
        scene
    }

    /// Returns the honest story's events.
    pub(crate) fn tale(&self) -> Vec<Event> {
        self.drafts.iter().map(|draft| draft.event.clone()).collect()
    }

    /// Restores the log.
    pub(crate) fn keep_log(&self) {
        refs::set(&self.forge.store, &log_ref(&self.forge), self.log).unwrap();
    }

    /// Rewrites the logs consistently.
    pub(crate) fn rewrite_log(&self, chain: &BuiltChain, signer: &Signer) {
        for (name, head) in refs::list(&self.forge.store, format::LOG_REFS).unwrap() {
            refs::delete(&self.forge.store, &name, head).unwrap();
        }
        self.forge.log(chain, signer);
    }

    /// Tells a bent tale as if it had happened: each state follows, links, seal and signatures are
    /// true.
    pub(crate) fn tell(&self, tale: Vec<Event>, signer: &Signer) -> BuiltChain {
        let mut chain_builder = ChainBuilder::submit(&self.forge, PLAN);
        chain_builder.drafts.clear();
        let run = chain_builder.plan.id.clone();
        for event in tale {
            if matches!(event, Event::RunSubmitted(_)) {
                chain_builder.drafts.push(draft(&run, event));
            } else {
                chain_builder.add(event);
            }
        }
        chain_builder.write(signer)
    }
}

pub(crate) fn log_ref(forge: &Forge) -> String {
    format::log_ref(&forge.signer.fingerprint())
}

/// The names of the rows that fail, in order.
pub(crate) fn failing(report: &Report) -> String {
    let rows = report.rows.iter().filter(|row| row.state == State::Failed).map(|row| row.name);
    rows.collect::<Vec<_>>().join(", ")
}
