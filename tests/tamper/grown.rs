//! Logs that only grew: a retold story beside the true one, and garbage on top of what would
//! contradict it.

use git_handoff::model::role::every_role;
use std::sync::Arc;
use std::time::Duration;

use git_handoff::clock::Clock;
use git_handoff::git::refs;
use git_handoff::git::remote::Reach;
use git_handoff::ledger::chain;
use git_handoff::ledger::sign::Signer;
use git_handoff::model::digest::Oid;
use git_handoff::model::entry::Event;
use git_handoff::model::format;
use git_handoff::model::log_name::LogName;
use git_handoff::model::time::Moment;
use git_handoff::share::anchor::{self, Means, ask_all};
use git_handoff::verify::{AtHand, Logs, Options, Question, Report, Signers, verify_with};
use gix::objs::Kind;

use super::anchored::settings;
use super::run::{End, Scene, failing, log_ref};
use super::table;
use crate::common::chain_builder::BuiltChain;
use crate::common::forge::key;
use crate::common::report::masked;

/// More commits than are decoded at once.
const MANY: usize = 4200;

/// A run, and another repository that accepts every continuation.
struct Growing {
    scene: Scene,
    vault: String,
    /// The true log.
    log: Oid,
    rows: Vec<Vec<String>>,
}

impl Growing {
    fn new() -> Self {
        let scene = Scene::new(End::Closed);
        let vault = scene.forge.path().join("vault.git").to_str().unwrap().to_owned();
        scene.forge.git(&["init", "-q", "--bare", &vault]);
        scene.forge.git(&["-C", &vault, "config", "receive.denyNonFastForwards", "true"]);
        scene.forge.git(&["-C", &vault, "config", "receive.denyDeletes", "true"]);
        let log = refs::read(&scene.forge.store, &log_ref(&scene.forge)).unwrap().unwrap();
        let growing = Self { scene, vault, log, rows: Vec::new() };
        growing.push(log, &log_ref(&growing.scene.forge));
        growing
    }

    fn push(&self, oid: Oid, to: &str) {
        self.scene.forge.git(&["push", "-q", &self.vault, &format!("{oid}:{to}")]);
    }

    /// Reads the run with the logs at hand, and with the other repository.
    fn read(&mut self, what: &str, options: &Options) -> [Report; 2] {
        let reports = [false, true].map(|with_anchor| self.report(with_anchor, options));
        let cell = |report: &Report| {
            let fails = failing(report);
            let mark = if report.intact { '✓' } else { '✗' };
            let fails = if fails.is_empty() { fails } else { format!(" ({fails})") };
            format!("`{mark} {}`{fails}", report.headline)
        };
        self.rows.push(std::iter::once(what.to_owned()).chain(reports.iter().map(cell)).collect());
        reports
    }

    fn report(&self, with_anchor: bool, options: &Options) -> Report {
        let forge = &self.scene.forge;
        let reach = Reach {
            protocols: "file".to_owned(),
            prompt: false,
            largest: 1 << 30,
            within: Some(Duration::from_secs(60)),
            idle: None,
            unless: None,
            isolated_config: None,
        };
        let clock = Clock::Pinned(Moment::from_millis(1_780_538_400_000));
        let means = Means {
            store: forge.store.clone(),
            reach,
            settings: Vec::new(),
            clock,
            variables: Arc::default(),
            writer: None,
        };
        let git = anchor::read("vault", &settings(&[("type", "git"), ("url", &self.vault)]), &[]).unwrap();
        let anchors = if with_anchor { vec![git] } else { Vec::new() };
        let ask = |question: &Question<'_>| ask_all(&anchors, &means, question);
        let (run, logs) = (&self.scene.chain.run, Logs::read(&forge.store).unwrap());
        verify_with(&forge.store, &AtHand { logs: &logs, ask: &ask, bases: None }, run, &format::run_ref(run), options)
            .unwrap()
    }

    /// Rewrites the run with a key; returns the head of its log, and the log's possible alternative
    /// name.
    fn retell(&self, signer: &Signer) -> (Oid, String) {
        let (forge, mut tale) = (&self.scene.forge, self.scene.tale());
        for event in &mut tale {
            match event {
                Event::ItemReconciled(e) => e.duration_ms += 1,
                Event::RunSubmitted(e) => e.roles = every_role([signer.fingerprint()]),
                Event::ItemDecided(e) => e.by = signer.fingerprint(),
                _ => {}
            }
        }
        let chain = self.scene.tell(tale, signer);
        self.log_of(&chain, signer, forge.signer.fingerprint() == signer.fingerprint())
    }

    fn log_of(&self, chain: &BuiltChain, signer: &Signer, further: bool) -> (Oid, String) {
        let (store, name) = (&self.scene.forge.store, format::log_ref(&signer.fingerprint()));
        if let Some(old) = refs::read(store, &name).unwrap() {
            refs::delete(store, &name, old).unwrap();
        }
        self.scene.forge.log(chain, signer);
        let (head, links) = chain::read(store, &name).unwrap().unwrap();
        let log_name = LogName::with_entry(&signer.fingerprint(), links[0].hash);
        (head.commit.unwrap(), if further { log_name.reference() } else { name })
    }

    /// Makes a commit that is no entry.
    fn garbage(&self, parents: &[Oid], text: &str) -> Oid {
        let store = &self.scene.forge.store;
        let parents = parents.iter().map(|parent| format!("parent {parent}\n")).collect::<Vec<_>>().concat();
        let who = "mallory <mallory@example.com> 1780538400 +0000";
        let raw = format!("tree {}\n{parents}author {who}\ncommitter {who}\n\n{text}\n", store.empty_tree());
        store.write(Kind::Tree, b"").unwrap();
        store.write(Kind::Commit, raw.as_bytes()).unwrap()
    }
}

#[test]
fn grown_log_confirms_earlier_entries() {
    let mut it = Growing::new();
    let own = log_ref(&it.scene.forge);
    let options = it.scene.forge.options();
    it.read("nothing", &options);

    let stranger = key(it.scene.forge.path(), 7);
    let honest = refs::read(&it.scene.forge.store, super::run::RUN).unwrap().unwrap();
    let (others, name) = it.retell(&stranger);
    it.scene.forge.git(&["update-ref", "-d", &name]);
    refs::set(&it.scene.forge.store, super::run::RUN, honest).unwrap();
    it.push(others, &name);
    let fetched = name.replace("refs/handoff/", "refs/handoff/remotes/origin/");
    it.scene.forge.git(&["update-ref", &fetched, &others.to_string()]);
    let [here, there] = it.read("a stranger's log, there and fetched, which holds another run by this name", &options);
    assert!(here.intact && there.intact, "{}", there.to_text(false));
    let broken = it.garbage(&[others], "x");
    it.push(broken, &name);
    it.scene.forge.git(&["update-ref", &fetched, &broken.to_string()]);
    let [garbage_here, garbage_there] = it.read("garbage on top of a stranger's log, there and fetched", &options);
    assert!(garbage_here.intact && garbage_there.intact, "{}", garbage_there.to_text(false));

    let signer = it.scene.forge.signer.clone();
    let (retold, further) = it.retell(&signer);
    it.push(retold, &further);
    it.read(
        "the run rewritten with the right key, its log in the place of the true one here, beside it there",
        &options,
    );
    let mut top = it.garbage(&[it.log], "x");
    it.push(top, &own);
    let [_, true_there] = it.read("the same, and a commit of garbage on top of the true log there", &options);
    let detail = true_there.rows.anchor.detail.clone();
    insta::assert_snapshot!(detail, @"vault: refs/handoff/logs/SHA256%3Afe85JkIjo8VPe%2BXqXJGH5Mau1EMFdK1OdKvJUFicyA8 holds the root 6cb71356, recomputed is 0e532647");
    for at in 0..MANY {
        top = it.garbage(&[top], &at.to_string());
    }
    it.scene.forge.git(&["update-ref", "refs/keep/garbage", &top.to_string()]);
    it.scene.forge.git(&["update-ref", "refs/keep/honest", &honest.to_string()]);
    it.scene.forge.git(&["repack", "-a", "-d", "-q"]);
    it.push(top, &own);
    it.read("the same with 4,200 commits of garbage", &options);
    it.scene.forge.git(&["update-ref", &own, &top.to_string()]);
    it.scene.forge.git(&["update-ref", &further, &retold.to_string()]);
    it.read("the same here: garbage on top of the true log, the retold one beside it", &options);
    it.scene.forge.git(&["update-ref", "-d", &further]);
    refs::set(&it.scene.forge.store, super::run::RUN, honest).unwrap();
    let [true_here, _] = it.read("the true run, and garbage on top of its log here and there", &options);
    let second_detail = true_here.rows.anchor.detail.clone();
    insta::assert_snapshot!(second_detail, @"refs/handoff/logs/SHA256%3Afe85JkIjo8VPe%2BXqXJGH5Mau1EMFdK1OdKvJUFicyA8 is broken: commit 588237e: the commit is not an entry: the message is not a subject and an entry; its statements up to entry 1 count");
    table::check(
        "tamper_grown",
        &["what was done", "the logs at hand", "and a `git` anchor that only grows"],
        &it.rows,
    );
}

#[test]
fn hidden_log_is_no_pass() {
    let mut it = Growing::new();
    let own = log_ref(&it.scene.forge);
    let options = it.scene.forge.options();
    let signer = it.scene.forge.signer.clone();
    let (retold, further) = it.retell(&signer);
    it.push(retold, &further);
    let root = it.garbage(&[], "no story at all");
    let hidden = it.garbage(&[root, it.log], "both");
    it.push(hidden, &own);
    let [_, there] = it.read("rewritten, and the true log there hidden as the second parent of garbage", &options);
    assert!(!there.intact, "{}", there.to_text(false));
    // A ref that cannot be read is a log that is broken.
    it.scene.forge.git(&["update-ref", "-d", &own]);
    it.scene.forge.git(&["update-ref", &further, &retold.to_string()]);
    for (what, text) in [("a symbolic ref", "ref: refs/heads/main\n"), ("garbage", "garbage\n"), ("nothing", "")] {
        std::fs::write(it.scene.forge.path().join(".git").join(&own), text).unwrap();
        let [here, _] =
            it.read(&format!("rewritten, its log beside the true one here, whose ref is {what} now"), &options);
        assert!(!here.intact, "{}", here.to_text(false));
    }
    table::check(
        "tamper_hidden",
        &["what was done", "the logs at hand", "and a `git` anchor that only grows"],
        &it.rows,
    );
}

#[test]
fn a_name_that_another_trusted_writer_took_is_in_conflict() {
    let mut it = Growing::new();
    let bo = key(it.scene.forge.path(), 5);
    let own = log_ref(&it.scene.forge);
    let line = |signer: &Signer, who: &str| format!("{who} {}\n", signer.public().to_openssh().unwrap());
    let both = line(&it.scene.forge.signer, "ada@example.com") + &line(&bo, "bo@example.com");
    let signers = Some(Signers::parse(&both, &jiff::tz::TimeZone::UTC).unwrap());
    let options = Options { signers, strict_signers: true, ..it.scene.forge.options() };
    let (log, name) = it.retell(&bo);
    it.push(log, &name);
    it.scene.forge.git(&["update-ref", "-d", &own]);
    let [_, there] = it.read("the name taken by another trusted writer, whose log is the only one here", &options);
    let detail = there.rows.anchor.detail.clone();
    assert_eq!(
        masked(&detail),
        "vault: a log holds another run by this name: that of SHA256:… (ada@example.com) began with sha256:…; that of \
         SHA256:… began with sha256:…"
    );
    assert!([&bo, &it.scene.forge.signer].iter().all(|key| detail.contains(&key.fingerprint())), "{detail}");
    let fetched = own.replace("refs/handoff/", "refs/handoff/remotes/origin/");
    it.scene.forge.git(&["update-ref", &fetched, &it.log.to_string()]);
    let [here, _] = it.read("the same, and the true log was fetched from somewhere", &options);
    assert!(!here.intact, "{}", here.to_text(false));
    let top = it.garbage(&[it.log], "x");
    it.push(top, &own);
    it.scene.forge.git(&["update-ref", &fetched, &top.to_string()]);
    it.read("the same, and garbage on top of the true log in both places", &options);
    it.scene.forge.git(&["update-ref", "-d", &fetched]);
    let one = Signers::parse(&line(&bo, "bo@example.com"), &jiff::tz::TimeZone::UTC).unwrap();
    let options = Options { signers: Some(one), ..options };
    it.read("the same, to a verifier that trusts only the other writer", &options);
    table::check(
        "tamper_taken",
        &["what was done", "the logs at hand", "and a `git` anchor that only grows"],
        &it.rows,
    );
}
