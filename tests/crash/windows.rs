//! The moments between two writes, made by taking back the later one or by dropping what was
//! written and not published.

use git_handoff::clock::Clock;
use git_handoff::git::refs;
use git_handoff::git::store::Store;
use git_handoff::ledger::chain::{self, Draft, Writer};
use git_handoff::ledger::log;
use git_handoff::ledger::sign::Signer;
use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{
    Again, Event, ItemDropped, ItemEnded, ItemFired, ItemReconciled, Outcome, RunEnded, RunSealed,
};
use git_handoff::model::format;
use git_handoff::model::name::{ItemId, RunId};
use git_handoff::model::time::Moment;
use git_handoff::run::operate::{self, NewEntry, OpenRun};
use git_handoff::run::query;
use std::path::Path;

use crate::common::repo::{TestRepo, after, item};

pub(super) fn writer(repo: &TestRepo) -> Writer {
    Writer {
        store: Store::discover(&repo.env.repo()).unwrap(),
        signer: Signer::from_file(Path::new(&repo.path("home/signing_key"))).unwrap(),
        clock: Clock::Pinned(Moment::from_millis(1_780_538_400_000)),
        actor: "human:ada".to_owned(),
    }
}

fn item_id(id: &str) -> ItemId {
    ItemId::parse(id).unwrap()
}

fn log_ref(repo: &TestRepo) -> String {
    format::log_ref(&writer(repo).signer.fingerprint())
}

#[test]
fn unpublished_entries_have_no_effect() {
    let repo = TestRepo::new();
    repo.submit("r", &[item("a", "true"), after("b", &["a"], "true")]);
    let writer = writer(&repo);
    let run = RunId::parse("r").unwrap();
    let dropped = |id| ItemDropped::new(item_id(id), 0, "because");
    let ended = RunEnded::new("because");
    let events = [
        Event::ItemFired(ItemFired::new(item_id("a"), 1, writer.store.compute_product(b"").unwrap(), [].into())),
        Event::ItemReconciled(ItemReconciled::new(item_id("a"), 1, Outcome::Done)),
        Event::ItemRequeued(ItemEnded::new(item_id("a"), 1, Again::Crash)),
        Event::ItemCancelled(dropped("a")),
        Event::ItemSkipped(dropped("b")),
        Event::RunClosed(ended.clone()),
        Event::RunCancelled(ended),
        Event::RunSealed(RunSealed::new(Digest::compute(b""))),
    ];
    let before = repo.refs();
    for event in events {
        let head = chain::tip(&writer.store, &format::run_ref(&run)).unwrap();
        let kind = event.kind();
        let draft = Draft { about: run.clone().into(), event, bytes: Vec::new(), edits: Vec::new() };
        drop(writer.append(&head, vec![draft]).unwrap());
        assert_eq!(repo.refs(), before, "{kind}");
        let view = query::view(&writer.store, &run, &format::run_ref(&run)).unwrap().unwrap();
        assert_eq!(view.links.len(), 1, "{kind}");
    }
    repo.is_sound();
    repo.env.handoff(["run", "r"]).success();
    repo.is_clean();
    repo.is_intact("r");
}

#[test]
fn a_run_without_its_base_ref_and_log_entry_is_mended_by_run_and_by_doctor() {
    for mend in [&["run", "r"][..], &["run"], &["doctor", "--fix"]] {
        let repo = TestRepo::new();
        repo.submit("r", &[item("a", "true")]);
        let whole = repo.refs();
        // The process died right after the run's own ref was there.
        repo.env.git(["update-ref", "-d", "refs/handoff/bases/r"]).success();
        repo.env.git(["update-ref", "-d", &log_ref(&repo)]).success();
        assert_ne!(repo.refs(), whole);
        let output = repo.env.handoff(mend);
        assert_eq!(output.status, Some(0), "{output}");
        let refs = repo.refs();
        assert!(refs.contains("refs/handoff/bases/r\n") && refs.contains(&log_ref(&repo)), "{refs}");
        repo.env.handoff(["run", "r"]).success();
        repo.is_clean();
        repo.is_intact("r");
    }
}

#[test]
fn a_seal_that_its_log_does_not_hold_yet_is_logged_by_run_and_by_doctor() {
    for mend in [&["run", "r"][..], &["run"], &["doctor", "--fix"]] {
        let repo = TestRepo::new();
        repo.submit("r", &[item("a", "true")]);
        let log = log_ref(&repo);
        let before = repo.env.git(["rev-parse", &log]).success();
        repo.env.handoff(["run", "r"]).success();
        repo.env.git(["update-ref", &log, before.trim()]).success();
        repo.env.handoff(["verify", "r"]).ends(3);
        let output = repo.env.handoff(mend);
        assert_eq!(output.status, Some(0), "{output}");
        repo.is_intact("r");
        let refs = repo.refs();
        repo.env.handoff(["run"]).success();
        assert_eq!(repo.refs(), refs, "mended once, and for good");
    }
}

#[test]
fn worktrees_that_a_crash_after_the_seal_left_are_removed_by_the_next_command() {
    let repo = TestRepo::new();
    repo.drive("r", &[item("a", "echo x >>a.txt")]).ends(0);
    let refs = repo.refs();
    let host = std::fs::read_dir(repo.path("worktrees")).unwrap().next().unwrap().unwrap().path();
    std::fs::create_dir_all(host.join("r/a.1/tree")).unwrap();
    std::fs::write(host.join("r/a.1/index"), "").unwrap();
    assert_eq!(repo.worktrees().len(), 1);
    repo.env.handoff(["run", "r"]).success();
    repo.is_clean();
    assert_eq!(repo.refs(), refs, "what is in the chain is not saved again");
}

#[test]
fn a_run_that_was_ended_and_not_sealed_is_sealed_by_the_next_command() {
    for (mend, code) in [(&["run", "r"][..], 4), (&["run"], 4), (&["close", "r"], 0)] {
        let repo = TestRepo::new();
        repo.drive("r", &[item("a", "false"), after("b", &["a"], "true")]).ends(4);
        let mut open = OpenRun::open(&writer(&repo), &RunId::parse("r").unwrap()).unwrap();
        open.record(&[NewEntry::plain(operate::closed("the process dies after this"))]).unwrap();
        let refused = repo.env.handoff(["retry", "r/a"]).exit(1);
        assert_eq!(
            refused.stderr,
            "error: the event cannot follow the entries before it\ncaused by: item \"a\" was dispatched or retried after the run was closed or cancelled\n"
        );
        repo.env.handoff(mend).ends(code);
        assert!(repo.is_sealed("r"), "{mend:?}");
        repo.is_clean();
        repo.is_intact("r");
    }
}

#[test]
fn an_attempt_that_a_dead_driver_left_running_is_requeued_and_costs_the_item_nothing() {
    let (repo, open) = stranded();
    repo.env.handoff(["run", "r"]).success();
    let items = repo.items("r");
    // The plan allows one attempt; the crash was not the item's.
    assert_eq!((items["once"].status.as_str(), items["once"].attempts), ("done", 2));
    assert_eq!((items["again"].status.as_str(), items["again"].attempts), ("done", 2));
    assert_eq!(items["next"].status, "done");
    let status = repo.env.handoff(["status", "r"]).success();
    insta::assert_snapshot!(status, @"
    ✓ again  done, nothing handed over  2 attempts, 1 crash  2026-06-04 02:00Z  0ms
    ✓ once   done, nothing handed over  2 attempts, 1 crash  2026-06-04 02:00Z  0ms
    ✓ next   done, nothing handed over  1 attempt            2026-06-04 02:00Z  0ms
    submitted 2026-06-04 02:00Z by human:ada
    r: 3 of 3 done, sealed
    ");
    let record = log::find(open.store(), &open.writer().signer.fingerprint(), open.id().clone()).unwrap();
    assert!(record.unwrap().root.is_some());
    repo.is_clean();
    repo.is_intact("r");
}

#[test]
fn an_item_that_takes_its_driver_with_it_too_often_fails_for_good() {
    let (repo, open) = stranded();
    repo.config("handoff.maxCrashes", "0");
    repo.env.handoff(["run", "r"]).ends(4);
    let items = repo.items("r");
    assert_eq!((items["once"].status.as_str(), items["once"].attempts), ("failed", 1));
    insta::assert_snapshot!(items["once"].reason, @"the driver died while the attempt ran, as 0 did before it");
    assert_eq!(items["next"].status, "skipped");
    let record = log::find(open.store(), &open.writer().signer.fingerprint(), open.id().clone()).unwrap();
    assert!(record.unwrap().root.is_none());
    repo.is_clean();
    repo.ends_intact("r");
}

/// A run of which two items were recorded as dispatched when the process died, before it made a
/// worktree.
fn stranded() -> (TestRepo, OpenRun) {
    let repo = TestRepo::new();
    let mut again = item("again", "test $HANDOFF_ATTEMPT = 2");
    again["maxAttempts"] = serde_json::json!(2);
    let mut once = item("once", "true");
    once["maxAttempts"] = serde_json::json!(1);
    repo.submit("r", &[again, once, after("next", &["once"], "true")]);
    let mut open = OpenRun::open(&writer(&repo), &RunId::parse("r").unwrap()).unwrap();
    let head = open.head().clone();
    let output = repo.env.handoff(["run", "r"]);
    let fired: Vec<_> = repo.entries("r").into_iter().filter(|entry| entry["kind"] == "item.fired").collect();
    assert_eq!(fired.len(), 4, "{output}");
    let run_ref = format::run_ref(open.id());
    let entries = chain::read(open.store(), &run_ref).unwrap().unwrap().1;
    let both = entries.iter().filter(|link| link.entry.event.kind() == "item.fired").nth(1).unwrap();
    assert!(open.refresh().unwrap());
    refs::set(open.store(), &run_ref, both.commit).unwrap();
    let log = format::log_ref(&open.writer().signer.fingerprint());
    let first = chain::read(open.store(), &log).unwrap().unwrap().1[0].commit;
    refs::set(open.store(), &log, first).unwrap();
    assert_eq!(head.entries, 1);
    (repo, open)
}
