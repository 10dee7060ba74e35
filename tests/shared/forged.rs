//! Entries that are legal and signed by a key with a role, and that `verify` would refuse.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common::chain_builder::draft;
use crate::common::forge::next;
use git_handoff::git::{codec, refs};
use std::collections::BTreeMap;

use git_handoff::clock::Clock;
use git_handoff::git::store::{Edit, Store};
use git_handoff::ledger::chain::{Link, Writer};
use git_handoff::ledger::sign::Signer;
use git_handoff::model::digest::Oid;
use git_handoff::model::driver::{DriverId, RunShared};
use git_handoff::model::entry::{Again, Event, ItemEnded, ItemFired, Product};
use git_handoff::model::name::{ItemId, RunId};
use git_handoff::run::query::view;

use super::{Hub, plan, succeeds, works};
use crate::common::repo::{item, wait_for};
use crate::common::report::{find_line, masked};

impl Hub {
    /// Gives the clone `b` a key of its own with the role `work`. Returns the file of the public
    /// key.
    pub(super) fn admit_b(&self) -> String {
        let env = &self.repo.env;
        self.clone("b", &[]);
        env.shell("b", "ssh-keygen -q -t ed25519 -N '' -C '' -f key").success();
        let key = self.repo.path("b/key");
        env.git_in("b", ["config", "handoff.signingKey", key.to_str().unwrap()]).success();
        env.write("signers", &env.handoff(["key"]).success());
        env.git_in("b", ["config", "handoff.signers", self.repo.path("signers").to_str().unwrap()]).success();
        let public = key.with_extension("pub").to_str().unwrap().to_owned();
        env.handoff(["admit", "r", &public, "--as", "work"]).success();
        env.git(["push", "--quiet", "origin", "refs/handoff/runs/r"]).success();
        public
    }

    /// Appends entries by the key of the clone `b`, and pushes them. The tree of the first has one
    /// more file. Returns its commit.
    fn append_with_wrong_tree(&self, events: &[Event]) -> Oid {
        self.append(events, Clock::System, Some(("more".to_owned(), Edit::Bytes(b"{}".to_vec()))))
    }

    /// Appends entries with the key of the clone `b`, and pushes them. The first may have another
    /// tree. Returns its commit.
    pub(super) fn append(&self, events: &[Event], clock: Clock, mut wrong: Option<(String, Edit)>) -> Oid {
        let env = &self.repo.env;
        env.git_in("b", ["fetch", "--quiet", "origin", "+refs/handoff/runs/r:refs/handoff/runs/r"]).success();
        let store = Store::discover(&self.repo.path("b")).unwrap();
        let run = RunId::parse("r").unwrap();
        let before = view(&store, &run, "refs/handoff/runs/r").unwrap().unwrap();
        let signer = Signer::from_file(&self.repo.path("b/key")).unwrap();
        let writer = Writer { store, signer, clock, actor: "human:b".to_owned() };
        // The manifest of a dispatch.
        writer.store.write_blob(b"{}").unwrap();
        let mut state = before.state;
        let (mut head, mut commits) = (before.head, Vec::new());
        for event in events {
            state.apply(event).unwrap();
            let (_, links) = writer.append(&head, vec![draft(&run, event.clone())]).unwrap().place().unwrap();
            let mut link = links[0].clone();
            if let Some(edit) = wrong.take() {
                link = with_tree(&writer, &link, head.commit.unwrap(), edit);
            }
            head = next(&head, &link);
            commits.push(link.commit);
        }
        refs::set(&writer.store, "refs/handoff/runs/r", *commits.last().unwrap()).unwrap();
        env.git_in("b", ["push", "--quiet", "origin", "refs/handoff/runs/r"]).success();
        commits[0]
    }

    pub(super) fn head_of(&self, repository: &str) -> String {
        self.repo.env.git_in(repository, ["rev-parse", "refs/handoff/runs/r"]).success().trim().to_owned()
    }
}

/// Writes an entry again, with another tree.
fn with_tree(writer: &Writer, link: &Link, parent: Oid, edit: (String, Edit)) -> Link {
    let mut batch = writer.store.batch();
    let tree = batch.edit_tree(Some(link.tree), &[edit]).unwrap();
    let signature = writer.signer.sign(&codec::payload(&link.entry, tree, &[parent])).unwrap();
    let raw = codec::signed(&link.entry, tree, &[parent], &signature);
    let commit = batch.write(gix::objs::Kind::Commit, &raw).unwrap();
    // Nothing is pruned before the ref is set.
    drop(batch.keep().unwrap());
    Link { commit, tree, ..link.clone() }
}

/// Returns a dispatch of an item, and the entry that takes it back.
pub(super) fn begun_and_crashed(item: &str) -> [Event; 2] {
    let (item, driver) = (ItemId::parse(item).unwrap(), Some(DriverId::from_random([0x22; 16])));
    let fired =
        ItemFired::new(item.clone(), 1, Product::from_bytes(b"{}", gix::hash::Kind::Sha1).unwrap(), BTreeMap::new());
    let ended = ItemEnded { driver: driver.clone(), ..ItemEnded::new(item, 1, Again::Crash) };
    [Event::ItemFired(ItemFired { driver, ..fired }), Event::ItemRequeued(ended)]
}

/// The driver keeps what it has, and goes on when the ref was set back as the hint says. Meanwhile
/// no command and no fetch moves our ref to the entry.
#[test]
fn an_entry_with_a_wrong_tree_is_refused_and_its_key_can_be_dismissed() {
    let hub = Hub::new(&plan(&[item("i0", &works("12")), item("i1", &works("0"))]));
    hub.repo.env.git(["config", "--global", "handoff.lostAfter", "1h"]).success();
    hub.repo.env.git(["config", "--global", "handoff.queue.default.concurrency", "1"]).success();
    let public = hub.admit_b();
    let driver = hub.drive("repo");
    hub.wait_for("item.fired", "i0");
    wait_for("our ref", || hub.head_of("repo") == hub.head_of("hub.git"));
    let good = hub.head_of("repo");
    hub.append_with_wrong_tree(&begun_and_crashed("i1"));
    let tip = hub.head_of("hub.git");
    let holder = hub.wait_for("item.fired", "i0")["driver"].as_str().unwrap().to_owned();
    for words in [&["dismiss", "r", &public][..], &["lost", "r", "--driver", &holder]] {
        let (code, _, stderr) = hub.command("repo", words);
        assert_eq!(code, Some(3), "{words:?}: {stderr}");
        let error = find_line(&stderr, "error: ");
        let number = error.split("the tree of entry ").nth(1).unwrap().split(' ').next().unwrap();
        let refused = format!(
            "error: origin has the run \"r\" at commit {tip}, which cannot follow {good}: the tree of entry {number} does not \
             have exactly what the entry names"
        );
        assert_eq!(masked(error), refused);
    }
    // A fetch stores the remote copy, and leaves our ref where it was.
    let (_, _, stderr) = hub.command("repo", &["fetch", "origin"]);
    assert_eq!(hub.head_of("repo"), good, "{stderr}");
    let (code, _, dismiss_stderr) = hub.command("repo", &["dismiss", "r", &public]);
    assert_eq!(code, Some(3), "{dismiss_stderr}");
    let hint = find_line(&dismiss_stderr, "hint: ");
    let command = hint.split_once("sets it back: ").unwrap().1;
    assert!(command.contains(&tip) && command.contains(&good), "{command}");
    hub.repo.env.shell("repo", command).success();
    let (dismiss_code, _, second_dismiss_stderr) = hub.command("repo", &["dismiss", "r", &public]);
    assert_eq!(dismiss_code, Some(0), "{second_dismiss_stderr}");
    succeeds(driver);
    hub.ends_well(2);
}

/// A clone that joins does not take the entry either, so that it cannot bring it back later.
#[test]
fn a_clone_does_not_join_behind_an_entry_with_a_wrong_tree() {
    let hub = Hub::new(&plan(&[item("i0", &works("0"))]));
    hub.admit_b();
    hub.append_with_wrong_tree(&[Event::RunShared(RunShared::new(200, 2000))]);
    hub.clone("c", &[]);
    let (code, _, stderr) = hub.command("c", &["run", "r", "--via", "origin"]);
    assert_eq!(code, Some(1), "{stderr}");
    insta::assert_snapshot!(masked(find_line(&stderr, "error: ")), @r#"error: the run "r" of origin cannot be driven here: the tree of entry 2 does not have exactly what the entry names"#);
    let found = hub.repo.env.git_in("c", ["rev-parse", "--verify", "--quiet", "refs/handoff/runs/r"]);
    assert_ne!(found.status, Some(0), "{found}");
}
