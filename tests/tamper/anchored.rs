//! Runs rewritten with their logs, compared with anchors that have the original.

use git_handoff::model::role::every_role;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use git_handoff::clock::Clock;
use git_handoff::git::remote::Reach;
use git_handoff::ledger::sign::Signer;
use git_handoff::model::entry::Event;
use git_handoff::model::format;
use git_handoff::model::time::Moment;
use git_handoff::share::anchor::{self, Anchor, Evidence, Means, Sealing, ask_all};
use git_handoff::verify::{AtHand, Logs, Options, Question, Report, Seal, Signers, verify_with};

use super::run::{End, Scene, failing};
use super::table;
use crate::anchor::moto::Moto;
use crate::common::chain_builder::BuiltChain;
use crate::common::forge::{Forge, key};

/// Both kinds of places outside, which hold the first story.
struct Outside {
    means: Means,
    git: Anchor,
    s3: Anchor,
    // Serves until it is dropped.
    moto: Moto,
}

pub(super) fn settings(of: &[(&str, &str)]) -> BTreeMap<String, String> {
    of.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

impl Outside {
    fn new(scene: &Scene) -> Self {
        let forge = &scene.forge;
        let vault = forge.path().join("vault.git");
        forge.git(&["init", "-q", "--bare", vault.to_str().unwrap()]);
        let moto = Moto::start();
        moto.bucket("evidence");
        let reach = Reach {
            protocols: "file".to_owned(),
            prompt: false,
            largest: 1 << 30,
            within: Some(Duration::from_secs(30)),
            idle: None,
            unless: None,
            isolated_config: None,
        };
        let rights =
            [("AWS_ACCESS_KEY_ID", "x"), ("AWS_SECRET_ACCESS_KEY", "x")].map(|(name, x)| (name.to_owned(), x.into()));
        let path = std::env::var_os("PATH").map(|path| ("PATH".to_owned(), path));
        let clock = Clock::Pinned(Moment::from_millis(1_780_538_400_000));
        let variables = Arc::new(rights.into_iter().chain(path).collect());
        let means = Means { store: forge.store.clone(), reach, settings: Vec::new(), clock, variables, writer: None };
        let git = settings(&[("type", "git"), ("url", vault.to_str().unwrap())]);
        let s3 = settings(&[("type", "s3"), ("bucket", "evidence"), ("endpoint", &moto.url())]);
        let mut own = Self {
            git: anchor::read("vault", &git, &[]).unwrap(),
            s3: anchor::read("lock", &s3, &[]).unwrap(),
            means,
            moto,
        };
        own.publish(forge, &scene.chain, &forge.signer);
        own
    }

    fn publish(&mut self, forge: &Forge, chain: &BuiltChain, signer: &Signer) {
        self.means.writer = Some(forge.writer_with(signer));
        let last = chain.links.last().unwrap();
        let Event::RunSealed(sealed) = &last.entry.event else { panic!() };
        let seal = Seal { root: sealed.root, entries: last.entry.seq, seal: last.hash, commit: last.commit };
        let sealing = Sealing { run: chain.run.clone(), seal, fingerprint: signer.fingerprint() };
        for anchor in [&self.git, &self.s3] {
            let evidence = Evidence { sealings: vec![sealing.clone()], threads: Vec::new() };
            anchor.publish(&self.means, &evidence, &|_| Ok(())).unwrap();
        }
    }

    /// Returns how the run reads: with the logs alone, and with each of the places.
    fn read(&self, scene: &Scene, what: &str) -> Vec<String> {
        self.read_as(scene, what, &scene.forge.options())
    }

    fn read_as(&self, scene: &Scene, what: &str, options: &Options) -> Vec<String> {
        let mut row = vec![what.to_owned()];
        for anchors in [&[][..], std::slice::from_ref(&self.git), std::slice::from_ref(&self.s3)] {
            let report = self.report(scene, anchors, options);
            let fails = failing(&report);
            let mark = if report.intact { '✓' } else { '✗' };
            let fails = if fails.is_empty() { String::new() } else { format!(" ({fails})") };
            row.push(format!("`{mark} {}`{fails}", report.headline));
        }
        row
    }

    fn report(&self, scene: &Scene, anchors: &[Anchor], options: &Options) -> Report {
        let forge = &scene.forge;
        let logs = Logs::read(&forge.store).unwrap();
        let ask = |question: &Question<'_>| ask_all(anchors, &self.means, question);
        let (run, at_hand) = (&scene.chain.run, AtHand { logs: &logs, ask: &ask, bases: None });
        verify_with(&forge.store, &at_hand, run, &format::run_ref(run), options).unwrap()
    }
}

#[test]
fn a_run_rewritten_with_its_log_contradicts_outside_places() {
    let scene = Scene::new(End::Closed);
    let mut outside = Outside::new(&scene);
    let mut rows = vec![outside.read(&scene, "nothing")];
    let mut tale = scene.tale();
    for event in &mut tale {
        if let Event::ItemReconciled(e) = event {
            e.duration_ms += 1;
        }
    }
    let chain = scene.tell(tale, &scene.forge.signer);
    scene.rewrite_log(&chain, &scene.forge.signer);
    rows.push(outside.read(&scene, "another story, told from entry 0 on with the right key, and the log with it"));
    let path = outside.moto.only_object("evidence");
    let over =
        [("x-amz-object-lock-mode", "GOVERNANCE"), ("x-amz-object-lock-retain-until-date", "2036-01-01T00:00:00Z")];
    outside.moto.send("PUT", &path, &over, "{}");
    outside.moto.send("DELETE", &path, &[], "");
    rows.push(outside.read(&scene, "the same, and the object in the bucket overwritten and deleted"));
    let stranger = key(scene.forge.path(), 9);
    let mut second_tale = scene.tale();
    let Event::RunSubmitted(e) = &mut second_tale[0] else { panic!() };
    e.roles = every_role([stranger.fingerprint()]);
    let strangers_chain = scene.tell(second_tale, &stranger);
    scene.rewrite_log(&strangers_chain, &stranger);
    rows.push(
        outside.read(
            &scene,
            "the same story told with another key, with a log of that key in the place of the right one's",
        ),
    );
    // Both places would take the other's word beside the right one's, if they were asked about the
    // writers of entry 0 alone.
    outside.publish(&scene.forge, &strangers_chain, &stranger);
    let line = |key: &ssh_key::PublicKey| format!("* {}\n", key.to_openssh().unwrap());
    let both = line(scene.forge.signer.public()) + &line(stranger.public());
    let signers = Signers::parse(&both, &jiff::tz::TimeZone::UTC).unwrap();
    let options = Options { signers: Some(signers), strict_signers: true, ..Options::default() };
    rows.push(outside.read_as(&scene, "the same, by a key that is trusted too, and published", &options));
    table::check(
        "tamper_anchored",
        &["what was done", "the logs at hand", "and a `git` anchor", "and an `s3` anchor"],
        &rows,
    );
}
