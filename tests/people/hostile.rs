//! Excess statements of an authorized person: they have no effect and block nothing.

use std::collections::BTreeMap;

use git_handoff::clock::Clock;
use git_handoff::git::store::{Edit, Store};
use git_handoff::ledger::chain::{self, Draft, Writer};
use git_handoff::model::decision::About;
use git_handoff::model::digest::{Digest, Oid};
use git_handoff::model::entry::{Decision, Event, LogDecided, LogWritten, Product};
use git_handoff::model::format;
use git_handoff::model::name::RunId;
use git_handoff::model::plan::ProductKey;

use super::elsewhere::{bob_says, shared};
use super::{as_person, items, person, signer, statuses};
use crate::common::repo::TestRepo;
use crate::common::report::{find_line, find_row, verdict};

/// A log with statements that no command writes.
struct Log<'a> {
    repo: &'a TestRepo,
    writer: Writer,
    run: RunId,
    first: Digest,
    /// The products of `build`.
    built: BTreeMap<ProductKey, Digest>,
}

impl<'a> Log<'a> {
    fn of_bob(repo: &'a TestRepo) -> Self {
        let store = Store::discover(&repo.path("clone")).unwrap();
        let run: RunId = "r".parse().unwrap();
        let (_, links) = chain::read(&store, "refs/handoff/remotes/origin/runs/r").unwrap().unwrap();
        let (signer, clock) = (signer(&repo.env, "bob"), Clock::System);
        let writer = Writer { store, signer, clock, actor: "human:bob".to_owned() };
        let built = links.iter().find_map(|link| match &link.entry.event {
            Event::ItemReconciled(e) => Some(e.products.iter().map(|(key, is)| (key.clone(), is.sha256)).collect()),
            _ => None,
        });
        Self { repo, writer, run, first: links[0].hash, built: built.unwrap() }
    }

    fn key(&self) -> String {
        self.writer.signer.fingerprint()
    }

    fn say(&self, event: Event, path: String, edit: Edit) {
        let head = chain::tip(&self.writer.store, &format::log_ref(&self.key())).unwrap();
        let draft = Draft { about: self.run.clone().into(), event, bytes: Vec::new(), edits: vec![(path, edit)] };
        let _ = self.writer.append(&head, vec![draft]).unwrap().publish().unwrap();
    }

    /// Says that the products of `build`, or others, are approved or not.
    fn decide(&self, decision: Decision, report: Option<&[u8]>, message: Option<&str>) {
        let mut products = self.built.clone();
        products.extend(report.map(|report| ("outputs/report".parse().unwrap(), Digest::compute(report))));
        let about: About = [("build".parse().unwrap(), products)].into();
        let item = "sign-off".parse().unwrap();
        let path = format::decided_path(&self.run, &item);
        let message = message.map(str::to_owned);
        let event = LogDecided { message, ..LogDecided::new(self.key(), self.first, item, decision, about) };
        let blob = Edit::Bytes(event.canonical());
        self.say(Event::LogDecided(event), path, blob);
    }

    /// Says that a document is what has this name in git.
    fn write(&self, oid: Oid, bytes: &[u8]) {
        let name = "notes".parse().unwrap();
        let path = format::written_path(&self.run, &name);
        let blob = Edit::Blob(self.writer.store.write_blob(bytes).unwrap());
        let product = Product { sha256: Digest::compute(bytes), oid, size: bytes.len() as u64 };
        let event = LogWritten::new(self.key(), self.first, name, product);
        self.say(Event::LogWritten(event), path, blob);
    }

    /// Has git carry it, which looks at nothing.
    fn push(&self, to: &str) {
        let log = format::log_ref(&self.key());
        self.repo.env.git_in("clone", ["push", "--quiet", to, &format!("{log}:{log}")]).success();
    }
}

#[test]
fn withdrawn_decision_stays_withdrawn() {
    let repo = shared(&items(), &[]);
    let bob = Log::of_bob(&repo);
    bob.decide(Decision::Approved, None, None);
    bob.decide(Decision::Approved, Some(b"another report"), None);
    bob.decide(Decision::Rejected, None, Some("on second thought"));
    bob.push("../hub");
    let fetched = repo.env.handoff(["fetch"]);
    insta::assert_snapshot!(fetched.stdout, @"
    taken in  r/sign-off rejected by SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ
    new  run  r
    new  log  SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.8435f068a834
    new  log  SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ
    ");
    // Nor on a retry.
    repo.env.handoff(["retry", "r/sign-off"]).success();
    repo.env.handoff(["run", "r"]).ends(4);
    assert_eq!(statuses(&repo, "r"), "done ready pending");
}

#[test]
fn withdrawn_decision_ignores_older_logs_of_other_remotes() {
    let repo = shared(&items(), &[]);
    repo.env.git_in(".", ["clone", "--quiet", "--bare", "hub", "old"]).success();
    repo.env.git(["remote", "add", "old", "../old"]).success();
    let bob = Log::of_bob(&repo);
    bob.decide(Decision::Approved, None, None);
    bob.push("../old");
    bob.decide(Decision::Rejected, None, Some("on second thought"));
    bob.push("../hub");
    repo.env.handoff(["fetch", "origin"]).success();
    assert_eq!(repo.item("r", "sign-off").status, "failed");
    repo.env.handoff(["retry", "r/sign-off"]).success();
    let fetched = repo.env.handoff(["fetch", "old"]);
    insta::assert_snapshot!(fetched.stdout, @"new  log  SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ");
    repo.env.handoff(["run", "r"]).ends(4);
    assert_eq!(statuses(&repo, "r"), "done ready pending");
}

#[test]
fn older_document_does_not_replace_a_later_one() {
    let repo = shared(&items(), &[]);
    let bob = Log::of_bob(&repo);
    let absent = "1234".repeat(10).parse().unwrap();
    bob.write(absent, b"first");
    bob.write(bob.writer.store.write_blob(b"second").unwrap(), b"second");
    bob.push("../hub");
    let fetched = repo.env.handoff(["fetch"]);
    insta::assert_snapshot!(fetched.stderr, @"
    warning: r: notes by SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ is not taken in: its bytes were not fetched
    hint: git handoff run r
    ");
    insta::assert_snapshot!(fetched.stdout, @"
    taken in  r: notes by SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ
    new  run  r
    new  log  SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.8435f068a834
    new  log  SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ
    ");
    let second_fetched = repo.env.handoff(["fetch"]);
    insta::assert_snapshot!(second_fetched, @"
    ------- stderr -------
    everything is here already
    ");
}

#[test]
fn invalid_log_entry_blocks_no_other() {
    for init in [&[][..], &["--object-format=sha256"]] {
        let repo = shared(&items(), init);
        let bob = Log::of_bob(&repo);
        // Names of no blob: a folder, and one of the other object format.
        let tree = bob.writer.store.empty_tree();
        let run = repo.env.git_in("clone", ["rev-parse", "refs/handoff/remotes/origin/runs/r^{tree}"]).success();
        let foreign = "1f".repeat(if init.is_empty() { 32 } else { 20 });
        for oid in [tree, run.trim().parse().unwrap(), foreign.parse().unwrap()] {
            bob.write(oid, b"");
        }
        // More than an entry has room for, and what no command would record.
        let length = if init.is_empty() { 18 << 20 } else { 65 << 10 };
        bob.decide(Decision::Approved, Some(b"1"), Some(&"m".repeat(length)));
        bob.decide(Decision::Approved, None, Some(&"m".repeat(5000)));
        bob.push("../hub");
        let fetched = repo.env.handoff(["fetch"]).exit(0);
        assert!(fetched.stdout.lines().all(|line| line.starts_with("new  ")), "{fetched}");
        let size = if init.is_empty() { "18875339" } else { "67586" };
        insta::allow_duplicates! {
            insta::assert_snapshot!(fetched.stderr.replace(size, "<size>"), @"
            warning: r: notes by SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ is not taken in: it names an object that is not a blob
            warning: r: notes by SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ is not taken in: it names an object that is not a blob
            warning: r: notes by SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ is not taken in: its bytes were not fetched
            warning: r/sign-off approved by SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ is not taken in: it has <size> bytes besides its products; at most 65536 are recorded
            warning: r/sign-off approved by SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ is not taken in: the message has 5000 bytes; at most 4000 are recorded
            hint: git handoff verify origin/r
            ");
        }
        bob.decide(Decision::Approved, None, Some(&format!("the token is ghp_{}", "a1B2c3".repeat(6))));
        bob.push("../hub");
        let second_fetched = repo.env.handoff(["fetch"]);
        insta::allow_duplicates! {
            insta::assert_snapshot!(second_fetched.to_string().replace(size, "<size>"), @"
            updated  log  SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ
            ------- stderr -------
            warning: r: notes by SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ is not taken in: it names an object that is not a blob
            warning: r: notes by SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ is not taken in: it names an object that is not a blob
            warning: r: notes by SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ is not taken in: its bytes were not fetched
            warning: r/sign-off approved by SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ is not taken in: it has <size> bytes besides its products; at most 65536 are recorded
            warning: r/sign-off approved by SHA256:h8sTEXn8T4EBAWEveBZ+mZkMnSCg0lGckwkkk5OuuYQ is not taken in: secret-found: the message:1 github-pat
            ");
        }
        repo.env.handoff(["run", "r"]).ends(4);
        bob.decide(Decision::Approved, None, None);
        bob.push("../hub");
        repo.env.handoff(["fetch"]).success();
        repo.env.handoff(["run", "r"]).success();
        assert_eq!(statuses(&repo, "r"), "done done done");
        repo.env.handoff(["verify", "r"]).success();
    }
}

#[test]
fn nothing_is_done_at_the_word_of_a_revoked_key() {
    let repo = shared(&items(), &[]);
    bob_says(&repo, &["approve", "origin/r/sign-off"]).success();
    bob_says(&repo, &["push", "--all"]).success();
    let key = signer(&repo.env, "bob").fingerprint();
    let since = " since 2100-01-01T00:00:00.000Z, and no anchor or time stamp proves an earlier date";
    for (line, since_option) in [(key.clone(), ""), (format!("since=2100-01-01T00:00:00Z {key}"), since)] {
        repo.env.write("revoked", &line);
        repo.config("handoff.revoked", repo.path("revoked").to_str().unwrap());
        let fetched = repo.env.handoff(["fetch"]);
        assert_eq!(
            find_line(&fetched.stderr, "warning: "),
            format!("warning: r/sign-off approved by {key} is not taken in: the key {key} is revoked{since_option}")
        );
        repo.env.handoff(["run", "r"]).ends(4);
        assert_eq!(statuses(&repo, "r"), "done ready pending");
    }
    repo.env.git(["config", "--unset", "handoff.revoked"]).success();
    repo.env.handoff(["run", "r"]).success();
}

#[test]
fn a_run_that_a_revoked_key_began_is_not_executed() {
    let repo = TestRepo::new();
    let (bob, eve) = (person(&repo.env, "bob"), person(&repo.env, "eve"));
    let file = repo.plan("r", &items());
    let eve_says = |args: &[&str]| as_person(&repo.env, "repo", "eve", args);
    eve_says(&["submit", &file, "--admit", &format!("{bob}=own,work")]).success();
    let public = repo.env.path().join("home/eve");
    let public = ssh_key::PrivateKey::read_openssh_file(&public).unwrap().public_key().to_openssh().unwrap();
    repo.env.write("signers", &format!("eve {public}\n"));
    repo.env.write("revoked", &eve);
    repo.config("handoff.signers", repo.path("signers").to_str().unwrap());
    repo.config("handoff.revoked", repo.path("revoked").to_str().unwrap());
    let refused = as_person(&repo.env, "repo", "bob", &["run", "r"]).exit(1);
    insta::assert_snapshot!(refused.stderr, @"
    error: run r was begun with the key SHA256:YAyiSIYO9Jl6bQwT7IbrVf7TFwdvUwhzLZeNNgb7xbc, which is not yours
    hint: if you trust that key with the commands that you execute for it: add its `git handoff key` line to the file of handoff.signers or gpg.ssh.allowedSignersFile; if neither is set: git config handoff.signers FILE
    ");
    assert_eq!(statuses(&repo, "r"), "ready pending pending");
    repo.env.git(["config", "--unset", "handoff.revoked"]).success();
    as_person(&repo.env, "repo", "bob", &["run", "r"]).ends(4);
}

#[test]
fn a_proof_of_a_decision_is_trusted_no_more_than_the_key_that_decided() {
    let here = super::waiting("approve");
    as_person(&here.env, "repo", "bob", &["approve", "r/sign-off"]).success();
    let elsewhere = shared(&items(), &[]);
    bob_says(&elsewhere, &["approve", "origin/r/sign-off"]).success();
    bob_says(&elsewhere, &["push", "--all"]).success();
    elsewhere.env.handoff(["fetch"]).success();
    for repo in [here, elsewhere] {
        repo.env.handoff(["run", "r"]).success();
        let proof = repo.env.handoff(["prove", "r/sign-off"]).success();
        repo.env.write("proof.json", &proof);
        repo.env.handoff(["verify", "--proof", "../proof.json"]).success();
        repo.env.write("revoked", &signer(&repo.env, "bob").fingerprint());
        let refused = repo.env.handoff(["verify", "--proof", "../proof.json", "--revoked", "../revoked"]).exit(3);
        assert_eq!(verdict(&refused.stdout), "✗ UNTRUSTED");
        let verify_refused = repo.env.handoff(["verify", "--proof", "../proof.json", "--require-trusted"]).exit(3);
        assert_eq!(
            find_row(&verify_refused.stdout, "signature"),
            "✗ signature  entry 0: the key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg is not known to the signers (and 2 more)"
        );
    }
}
