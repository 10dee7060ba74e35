//! Every byte of every object that the run reaches, and of every commit of its log, loose and
//! packed, and every such object taken away.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use git_handoff::git::store::Store;
use git_handoff::model::digest::Oid;
use git_handoff::model::name::RunId;
use git_handoff::verify::{Report, verify};
use gix::objs::Kind;

use super::run::{End, RUN, Scene, failing, log_ref};
use super::{everything, flips, table};

/// An object of the run or of its log.
struct Object {
    oid: Oid,
    kind: Kind,
    content: Vec<u8>,
    role: &'static str,
    file: PathBuf,
}

/// Tells the run with each of its objects in a file of its own, and with no pack open any more.
fn loose() -> Scene {
    let mut scene = Scene::new(End::Closed);
    crate::common::loosen(scene.forge.path());
    scene.forge.store = Store::discover(scene.forge.path()).unwrap();
    scene
}

fn objects(scene: &Scene) -> Vec<Object> {
    let mut found: Vec<Object> = Vec::new();
    for (reference, of_log) in [(RUN.to_owned(), false), (log_ref(&scene.forge), true)] {
        for line in scene.forge.git(&["rev-list", "--objects", &reference]).lines() {
            let (id, path) = line.split_once(' ').unwrap_or((line, ""));
            let oid: Oid = id.parse().unwrap();
            if found.iter().any(|object| object.oid == oid) {
                continue;
            }
            let (kind, content) = scene.forge.store.read(oid).unwrap();
            // Trees are not judged, and nothing of a log but its commits.
            if kind == Kind::Tree || of_log && kind != Kind::Commit {
                continue;
            }
            let role = match (kind, of_log) {
                (_, true) => "a commit of the log",
                (Kind::Commit, _) => "an entry's commit",
                _ => role(path),
            };
            let file = scene.forge.path().join(".git/objects").join(&id[..2]).join(&id[2..]);
            found.push(Object { oid, kind, content, role, file });
        }
    }
    found.sort_by_key(|object| object.role);
    found
}

fn role(path: &str) -> &'static str {
    match path.rsplit('/').next().unwrap() {
        "plan.json" => "`plan.json`",
        "manifest.json" => "a `manifest.json`",
        _ if path.starts_with("items/") => "an `item.json`",
        "patch" => "a patch",
        "spec.md" => "an artifact",
        "notes" | "score" => "a document",
        _ => "an output",
    }
}

/// The results of changes to one kind of object.
#[derive(Default)]
struct Outcome {
    tried: usize,
    same: usize,
    caught: BTreeMap<String, usize>,
}

impl Outcome {
    fn add(&mut self, other: Self) {
        self.tried += other.tried;
        self.same += other.same;
        for (rows, count) in other.caught {
            *self.caught.entry(rows).or_default() += count;
        }
    }

    #[track_caller]
    fn take(&mut self, report: &Report, what: &str) {
        let rows = failing(report);
        assert!(!report.intact && !rows.is_empty(), "not caught: {what}\n{}", report.to_text(false));
        *self.caught.entry(rows).or_default() += 1;
    }

    /// The sets of rows that said so, without numbers where these hang on how things are
    /// compressed.
    fn rows(&self) -> String {
        self.caught.keys().cloned().collect::<Vec<_>>().join("; or ")
    }
}

/// Does `work` with the objects of the run, on a repository for each core, and sums up by role.
fn each(work: impl Fn(&Scene, &Object) -> Outcome + Sync) -> BTreeMap<&'static str, Outcome> {
    const THREADS: usize = 2;
    let one = |nth: usize| {
        let scene = loose();
        let mut outcomes: BTreeMap<&'static str, Outcome> = BTreeMap::new();
        for object in objects(&scene).iter().skip(nth).step_by(THREADS) {
            outcomes.entry(object.role).or_default().add(work(&scene, object));
        }
        crate::common::forge::assert_intact(&scene.forge.verify());
        outcomes
    };
    let one = &one;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|nth| scope.spawn(move || one(nth))).collect();
        let mut all: BTreeMap<&'static str, Outcome> = BTreeMap::new();
        for thread in threads {
            for (role, outcome) in thread.join().unwrap() {
                all.entry(role).or_default().add(outcome);
            }
        }
        all
    })
}

/// Flips one bit of a byte, another one from byte to byte.
fn flip(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut flipped = bytes.to_vec();
    flipped[at] ^= 1 << ((at + at / 8) % 8);
    flipped
}

#[test]
fn every_byte_of_every_object() {
    let outcomes = each(|scene, object| {
        let original = fs::read(&object.file).unwrap();
        fs::remove_file(&object.file).unwrap();
        let whole = [format!("{} {}\0", object.kind, object.content.len()).as_bytes(), &object.content].concat();
        let mut outcome = Outcome::default();
        for at in 0..whole.len() {
            fs::write(&object.file, stored(&flip(&whole, at))).unwrap();
            outcome.tried += 1;
            assert!(!reads_the_same(&scene.forge.store, object), "byte {at} of {} {}", object.role, object.oid);
            if wants_a_report(at) {
                outcome.take(&scene.forge.verify(), &format!("byte {at} of {} {}", object.role, object.oid));
            }
        }
        fs::remove_file(&object.file).unwrap();
        fs::write(&object.file, original).unwrap();
        outcome
    });
    let rows =
        outcomes.iter().map(|(role, outcome)| vec![(*role).to_owned(), outcome.tried.to_string(), outcome.rows()]);
    table::check(
        "tamper_bytes",
        &["a byte of", "bytes, each flipped in turn", "rows that fail"],
        &rows.collect::<Vec<_>>(),
    );
}

#[test]
fn every_byte_of_every_loose_file() {
    let outcomes = each(|scene, object| {
        let original = fs::read(&object.file).unwrap();
        fs::remove_file(&object.file).unwrap();
        let mut outcome = Outcome::default();
        for at in 0..original.len() {
            fs::write(&object.file, flip(&original, at)).unwrap();
            outcome.tried += 1;
            if reads_the_same(&scene.forge.store, object) {
                outcome.same += 1;
                continue;
            }
            if wants_a_report(at) {
                outcome
                    .take(&scene.forge.verify(), &format!("byte {at} of the file of {} {}", object.role, object.oid));
            }
        }
        fs::remove_file(&object.file).unwrap();
        fs::write(&object.file, original).unwrap();
        outcome
    });
    let rows = outcomes.iter().map(|(role, outcome)| {
        assert!(outcome.same * 4 < outcome.tried, "{} of {} bytes of {role} mean nothing", outcome.same, outcome.tried);
        vec![(*role).to_owned(), outcome.rows()]
    });
    table::check("tamper_files", &["a byte of the file of", "rows that fail"], &rows.collect::<Vec<_>>());
}

#[test]
fn every_object_that_is_gone() {
    let outcomes = each(|scene, object| {
        let backup = object.file.with_extension("aside");
        fs::rename(&object.file, &backup).unwrap();
        let mut outcome = Outcome { tried: 1, ..Outcome::default() };
        let report = scene.forge.verify();
        outcome.take(&report, &format!("{} {} is gone", object.role, object.oid));
        assert_ne!(report.headline, "INCOMPLETE", "this is no partial clone");
        fs::rename(&backup, &object.file).unwrap();
        outcome
    });
    let rows =
        outcomes.iter().map(|(role, outcome)| vec![(*role).to_owned(), outcome.tried.to_string(), outcome.rows()]);
    table::check(
        "tamper_gone",
        &["what is gone", "objects, each in turn", "rows that fail"],
        &rows.collect::<Vec<_>>(),
    );
}

#[test]
fn every_byte_of_the_pack() {
    every_byte_of_packed("pack");
}

#[test]
fn every_byte_of_the_index_of_the_pack() {
    every_byte_of_packed("idx");
}

fn every_byte_of_packed(extension: &str) {
    let scene = loose();
    let objects = objects(&scene);
    let file = pack(&scene, &objects, extension);
    let original = fs::read(&file).unwrap();
    let mut outcome = Outcome::default();
    let run = RunId::parse("handoff-dag-1").unwrap();
    // Neighbouring bytes mostly are of one object: the one that the last flip damaged is read
    // first.
    let mut suspect = 0;
    for at in (0..original.len()).step_by(if everything() { 1 } else { 4 }) {
        fs::remove_file(&file).unwrap();
        fs::write(&file, flip(&original, at)).unwrap();
        outcome.tried += 1;
        // A pack that is open already would not be read again.
        let store = Store::discover(scene.forge.path()).unwrap();
        let mut in_turn = (suspect..objects.len()).chain(0..suspect);
        let Some(damaged) = in_turn.find(|nth| !reads_the_same(&store, &objects[*nth])) else {
            outcome.same += 1;
            continue;
        };
        suspect = damaged;
        if wants_a_report(at) {
            let report = verify(&store, &run, RUN, &scene.forge.options()).unwrap();
            outcome.take(&report, &format!("byte {at} of {}", file.display()));
        }
    }
    // Names no table: how git packs differs from version to version.
    let rows: BTreeSet<&str> = outcome.caught.keys().flat_map(|rows| rows.split(", ")).collect();
    assert!(rows.contains("chain") && outcome.tried > outcome.same, "{rows:?}");
}

/// Puts the objects into one pack and takes the loose ones away; the base commit stays loose.
fn pack(scene: &Scene, objects: &[Object], extension: &str) -> PathBuf {
    let folder = scene.forge.path().join(".git/objects/pack");
    let listed: Vec<String> = objects.iter().map(|object| object.oid.to_string()).collect();
    let script =
        format!("printf '%s\\n' {} | git -c pack.threads=1 pack-objects -q .git/objects/pack/pack", listed.join(" "));
    let done = std::process::Command::new("sh").args(["-c", &script]).current_dir(scene.forge.path()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    for object in objects {
        fs::remove_file(&object.file).unwrap();
    }
    let has = |path: &Path| path.extension().is_some_and(|found| found == extension);
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).find(|path| has(path)).unwrap()
}

/// Whether the run is verified after this flip. Every flip is read back, and what verify says of an
/// object that does not read as what its name says hangs on the object alone; so it is asked now
/// and then, or each time.
fn wants_a_report(at: usize) -> bool {
    at.is_multiple_of(flips())
}

fn reads_the_same(store: &Store, object: &Object) -> bool {
    store.read(object.oid).is_ok_and(|(kind, content)| kind == object.kind && content == object.content)
}

/// Returns bytes as zlib has them without compression.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("the objects here are small");
    let (mut low, mut high) = (1u32, 0u32);
    for byte in bytes {
        low = (low + u32::from(*byte)) % 65521;
        high = (high + low) % 65521;
    }
    let checksum = (high << 16 | low).to_be_bytes();
    [&[0x78, 0x01, 0x01], &length.to_le_bytes()[..], &(!length).to_le_bytes()[..], bytes, &checksum].concat()
}
