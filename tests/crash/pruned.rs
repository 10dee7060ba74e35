//! git's own housekeeping at its most eager, beside a run and right in the middle of one write.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use git_handoff::git::refs;
use git_handoff::git::store::{Batch, Edit, Store, object_oid};
use git_handoff::model::digest::Digest;
use git_handoff::model::digest::Oid;
use git_handoff::model::entry::{DocumentWritten, Event, Product};
use git_handoff::model::name::{FilePath, RunId};
use git_handoff::run::operate::{NewEntry, OpenRun};
use serde_json::json;

use super::windows::writer;
use crate::common::repo::{TestRepo, item, pause};

/// Commands that delete unreachable objects and repack the others.
const EAGER: [&[&str]; 4] = [
    &["prune", "--expire=now"],
    &["gc", "--quiet", "--prune=now"],
    &["repack", "-a", "-d", "-q"],
    &["repack", "--cruft", "--cruft-expiration=now", "-d", "-q"],
];

/// Returns the files in the folder of packs that end like this.
fn packs(repo: &TestRepo, extension: &str) -> Vec<PathBuf> {
    let folder = fs::read_dir(repo.env.repo().join(".git/objects/pack")).unwrap();
    let files = folder.map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

fn make_sha256(repo: &TestRepo) {
    fs::remove_dir_all(repo.env.repo()).unwrap();
    fs::create_dir(repo.env.repo()).unwrap();
    repo.env.git(["init", "--quiet", "--object-format=sha256"]).success();
    repo.env.write("repo/a.txt", "one\n");
    repo.env.git(["add", "--all"]).success();
    repo.env.git(["commit", "--quiet", "--message", "Start"]).success();
}

/// Items with products and transcripts, of which some fail once, so that their work is salvaged.
fn workload() -> Vec<serde_json::Value> {
    let items = (0..24).map(|at| {
        let retried = if at % 4 == 0 { "test $HANDOFF_ATTEMPT = 2" } else { "true" };
        let script = format!("echo {at} >>a.txt; echo out {at} >outputs/o; echo said {at}; {retried}");
        let mut item = item(&format!("i{at}"), &script);
        item["maxAttempts"] = json!(2);
        item
    });
    items.collect()
}

#[test]
fn run_survives_eager_housekeeping() {
    for (eager, sha256) in [(EAGER[0], false), (EAGER[1], false), (EAGER[1], true), (EAGER[2], true), (EAGER[3], false)]
    {
        let repo = TestRepo::new();
        if sha256 {
            make_sha256(&repo);
        }
        repo.config("handoff.queue.default.concurrency", "4");
        repo.submit("r", &workload());
        let over = AtomicBool::new(false);
        let mut git = repo.env.command("git", "repo");
        git.args(eager);
        let output = std::thread::scope(|scope| {
            // It may lose to what the run does meanwhile, and is simply tried again.
            let second_eager = scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    git.output().unwrap();
                }
            });
            let output = repo.env.handoff(["run", "r"]);
            over.store(true, Ordering::SeqCst);
            second_eager.join().unwrap();
            output
        });
        assert_eq!(output.status, Some(0), "{eager:?}: {output}");
        repo.is_clean();
        repo.is_intact("r");
        for (id, item) in repo.items("r") {
            let at: u64 = id[1..].parse().unwrap();
            assert_eq!(
                (item.status.as_str(), item.attempts),
                ("done", if at.is_multiple_of(4) { 2 } else { 1 }),
                "{eager:?} {id}"
            );
        }
        let salvaged = repo.env.git(["ls-tree", "-r", "--name-only", "refs/handoff/salvage/r"]).success();
        assert!(salvaged.contains("a.txt"), "{salvaged}");
        assert_eq!(packs(&repo, "keep"), Vec::<PathBuf>::new());
        repo.env.git(["gc", "--quiet"]).success();
        assert!(packs(&repo, "pack").len() <= 2);
        assert_eq!(repo.env.handoff(["doctor"]).exit(0).stdout, "");
    }
}

/// Records a document while `meanwhile` happens between the write of its entry and the swap of the
/// ref.
fn between_write_and_swap(repo: &TestRepo, meanwhile: impl FnOnce(&TestRepo)) {
    repo.submit("r", &[item("a", "true")]);
    let writer = writer(repo);
    let mut open = OpenRun::open(&writer, &RunId::parse("r").unwrap()).unwrap();
    let mut batch = writer.store.batch();
    let oid = batch.write_blob(b"text").unwrap();
    let guard = batch.keep().unwrap();
    let product = Product { sha256: Digest::compute(b"text"), oid, size: 4 };
    let written = DocumentWritten::new(FilePath::parse("notes").unwrap(), 1, product, "human:ada".to_owned());
    // The swap waits, because a young lock is in use.
    let lock = repo.env.repo().join(".git/refs/handoff/runs/r.lock");
    fs::write(&lock, "").unwrap();
    std::thread::scope(|scope| {
        let recording = scope.spawn(|| open.record(&[NewEntry::plain(Event::DocumentWritten(written))]).map(drop));
        let until = Instant::now() + Duration::from_secs(20);
        while packs(repo, "keep").len() < 2 || packs(repo, "idx").len() < packs(repo, "keep").len() {
            assert!(Instant::now() < until, "nothing was written");
            pause();
        }
        meanwhile(repo);
        // It may have been taken for a dead process's by now.
        let _ = fs::remove_file(&lock);
        recording.join().unwrap().unwrap();
    });
    drop(guard);
    repo.is_sound();
    assert_eq!(repo.env.handoff(["doc", "get", "r", "notes"]).success(), "text");
    repo.env.git(["gc", "--quiet", "--prune=now"]).success();
    repo.env.handoff(["run", "r"]).success();
    repo.is_clean();
    repo.is_intact("r");
}

#[test]
fn prune_spares_unpublished_objects() {
    for sha256 in [false, true] {
        let repo = TestRepo::new();
        if sha256 {
            make_sha256(&repo);
        }
        between_write_and_swap(&repo, |repo| {
            for eager in EAGER {
                repo.env.git(eager).success();
            }
        });
    }
}

#[test]
fn keep_covers_existing_objects() {
    let repo = TestRepo::new();
    let store = Store::discover(&repo.env.repo()).unwrap();
    let loose = store.write_blob(b"here before").unwrap();
    let mut batch = store.batch();
    let oid = batch.write_blob(b"here before").unwrap();
    assert_eq!(oid, loose);
    let guard = batch.keep().unwrap();
    for eager in EAGER {
        repo.env.git(eager).success();
    }
    assert_eq!(store.read_blob(oid).unwrap(), b"here before");
    drop(guard);
    repo.env.git(["gc", "--quiet", "--prune=now"]).success();
    assert!(!Store::discover(&repo.env.repo()).unwrap().contains(oid), "nothing needs it any more");
}

/// Adds one file to the tree that a ref holds.
fn add(store: &Store, tree: Option<Oid>, at: usize, mut batch: Batch) -> Oid {
    let edits = [(format!("f{at}"), Edit::Bytes(format!("{at}\n").into_bytes()))];
    let tree = batch.edit_tree(tree, &edits).unwrap();
    let _kept = batch.keep().unwrap();
    refs::set(store, "refs/handoff/transcripts/r", tree).unwrap();
    tree
}

#[test]
fn packs_are_merged_as_they_gather() {
    let repo = TestRepo::new();
    let store = Store::discover(&repo.env.repo()).unwrap();
    let mut tree = None;
    let mut most = 0;
    // Kept packs are not repacked.
    let mut second_batch = store.batch();
    let lone = second_batch.write_blob(b"lone").unwrap();
    let guard = second_batch.keep().unwrap();
    for at in 0..300 {
        tree = Some(add(&store, tree, at, store.batch()));
        most = most.max(packs(&repo, "pack").len());
    }
    assert!(most <= 22, "{most} packs");
    repo.passes_fsck();
    assert_eq!(repo.env.git(["ls-tree", "refs/handoff/transcripts/r"]).success().lines().count(), 300);
    assert_eq!(packs(&repo, "keep").len(), 1);
    assert_eq!(store.read_blob(lone).unwrap(), b"lone");
    drop(guard);
    repo.env.git(["gc", "--quiet"]).success();
    assert!(packs(&repo, "pack").len() <= 2);
}

#[test]
fn packs_that_a_multi_pack_index_names_are_left_to_git() {
    let repo = TestRepo::new();
    let store = Store::discover(&repo.env.repo()).unwrap();
    let tree = (0..15).fold(None, |tree, at| Some(add(&store, tree, at, store.batch())));
    repo.env.git(["multi-pack-index", "write"]).success();
    let indexed_packs = packs(&repo, "pack");
    (15..60).fold(tree, |tree, at| Some(add(&store, tree, at, store.batch())));
    assert!(indexed_packs.iter().all(|pack| pack.exists()));
    repo.env.git(["multi-pack-index", "verify"]).success();
    repo.passes_fsck();
}

#[test]
fn large_files_pass_through() {
    let repo = TestRepo::new();
    let store = Store::discover(&repo.env.repo()).unwrap();
    let path = repo.path("large");
    let bytes: Vec<u8> = (0..5_000_000_u32).flat_map(|at| (at.wrapping_mul(2_654_435_761)).to_be_bytes()).collect();
    fs::write(&path, &bytes).unwrap();
    let mut batch = store.batch();
    let Product { oid, sha256: digest, size } = batch.write_file(&mut fs::File::open(&path).unwrap()).unwrap();
    let again = batch.write_file(&mut fs::File::open(&path).unwrap()).unwrap().oid;
    assert_eq!((again, digest), (oid, Digest::compute(&bytes)));
    let small = batch.write_blob(b"after it").unwrap();
    let guard = batch.keep().unwrap();
    assert_eq!(size, bytes.len() as u64);
    assert_eq!(object_oid(store.hash_kind(), gix::objs::Kind::Blob, &bytes).unwrap(), oid);
    let mut read = Vec::new();
    store.copy_blob(oid, &mut read).unwrap();
    assert!(read == bytes && store.read_blob(small).unwrap() == b"after it");
    let pack = packs(&repo, "pack").pop().unwrap();
    repo.env.git(["verify-pack", pack.to_str().unwrap()]).success();
    drop(guard);
}
