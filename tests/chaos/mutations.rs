//! Stored state of which anything was changed: every command ends soon and says how, and nothing
//! that was changed is said to be verified.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use git_handoff::git::refs;
use git_handoff::git::store::Store;
use git_handoff::model::digest::Oid;
use serde_json::Value;

use super::dice::Dice;
use super::scene::{Kind, Scene};
use super::{MUTATIONS, SEED, number, rounds};
use crate::common::{answers, loosen, program_path};

/// The default number of rounds in each kind of repository.
const ROUNDS: u64 = 4;

/// How long a command may take on state that it cannot make sense of.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many commands are given after each change, of all.
const COMMANDS: usize = 10;

/// Objects that verify only when unchanged.
const EVIDENCE: [(&str, &[&str]); 2] = [
    ("refs/handoff/runs/done", &["verify", "--json", "done"]),
    ("refs/handoff/threads/t", &["thread", "verify", "--json", "t"]),
];

/// The surface, in the repository and where something is changed at the remote.
const SURFACE: [&[&str]; 43] = [
    &["runs"],
    &["status", "done"],
    &["status", "--json", "open"],
    &["log", "done"],
    &["show", "done"],
    &["show", "done/make"],
    &["cat", "done/make:report"],
    &["cat", "done:plan.json"],
    &["verify", "--all"],
    &["verify", "--all", "--json"],
    &["thread", "list"],
    &["thread", "log", "t"],
    &["thread", "show", "t"],
    &["thread", "verify", "--all"],
    &["thread", "cat", "t"],
    &["resume", "t"],
    &["doc", "list", "done"],
    &["doc", "get", "done", "notes"],
    &["doc", "log", "done", "notes"],
    &["doc", "put", "open", "notes", "../document"],
    &["doctor"],
    &["doctor", "--fix"],
    &["clean"],
    &["clean", "--force"],
    &["clean", "done", "--force", "--transcripts", "--salvage"],
    &["submit", "../new.json"],
    &["run", "open"],
    &["run"],
    &["cancel", "open/lone"],
    &["retry", "half/fails"],
    &["close", "half"],
    &["extend", "grows", "../more.json"],
    &["coordinate", "ruled", "--explain"],
    &["coordinate", "ruled"],
    &["checkpoint", "t", "--state", "../state", "--worktree"],
    &["offer", "t"],
    &["fork", "t", "--as", "forked"],
    &["packet", "auto", "--run", "done"],
    &["apply", "done", "--branch", "taken"],
    &["export", "done", "--format", "in-toto"],
    &["prove", "done/make:report"],
    &["bundle", "--all", "--output", "../bundle"],
    &["push", "--all"],
];

/// Commands that read from the remote.
const ABROAD: [(&str, &[&str]); 4] = [
    ("repo", &["push", "--all"]),
    ("other", &["fetch"]),
    ("other", &["verify", "origin/done"]),
    ("other", &["adopt", "../descriptor.json", "--as", "taken", "--from", "../hub"]),
];

#[test]
fn changed_where_every_ref_is_a_file() {
    change(Kind::Plain);
}

#[test]
fn changed_where_refs_are_packed() {
    change(Kind::Packed);
}

#[test]
fn changed_where_objects_use_sha256() {
    change(Kind::Sha256);
}

fn change(kind: Kind) {
    let (scene, seed, began) = (Scene::new(kind), number(SEED, 0), Instant::now());
    let before = EVIDENCE.map(|(name, _)| Evidence::read(&scene, name));
    let mut codes: BTreeMap<i32, u64> = BTreeMap::new();
    let mut verified = 0;
    for number in rounds(MUTATIONS, ROUNDS) {
        scene.restore();
        let mut dice = Dice::new(seed, number);
        let abroad = dice.once_in(4);
        if !abroad && dice.once_in(2) {
            loosen(&scene.repo.env.repo());
        }
        let changes: Vec<String> = (0..=dice.roll(0..2)).map(|_| mutate(&scene, &mut dice, abroad)).collect();
        let description =
            format!("{kind:?}: {SEED}={seed} {MUTATIONS}={number}..{}: {}", number + 1, changes.join(", "));
        eprintln!("{description}");
        if !abroad {
            for ((_, verify), earlier) in EVIDENCE.iter().zip(&before) {
                let (code, printed) = bounded(&scene, "repo", verify, &description);
                let intact = serde_json::from_str::<Value>(printed.lines().next().unwrap_or_default());
                let intact = code == 0 && intact.is_ok_and(|report| report["intact"] == true);
                assert!(
                    !intact || earlier.is_untouched(&scene),
                    "{description}\nverified what was changed:\n{printed}"
                );
                verified += u64::from(intact);
            }
        }
        for _ in 0..COMMANDS {
            let (place, args) = if abroad { *dice.pick(&ABROAD) } else { ("repo", *dice.pick(&SURFACE)) };
            *codes.entry(bounded(&scene, place, args, &description).0).or_default() += 1;
        }
    }
    eprintln!(
        "{kind:?}: {:?}; exit codes {codes:?}; {verified} times the change was none of the evidence's",
        began.elapsed()
    );
}

/// The bytes of all commits and blobs that a ref reaches. No verifier judges trees.
struct Evidence {
    name: &'static str,
    tip: Option<Oid>,
    objects: Vec<(Oid, Vec<u8>)>,
}

impl Evidence {
    fn read(scene: &Scene, name: &'static str) -> Self {
        let git = |args: &[&str]| scene.repo.env.git(args).success();
        let store = Store::discover(&scene.repo.env.repo()).unwrap();
        let ids = git(&["rev-list", "--objects", "--no-object-names", name]);
        let read = |id: &str| {
            let oid = id.parse::<Oid>().unwrap();
            let (kind, bytes) = store.read(oid).unwrap();
            (kind != gix::objs::Kind::Tree).then_some((oid, bytes))
        };
        Self { name, tip: refs::read(&store, name).unwrap(), objects: ids.lines().filter_map(read).collect() }
    }

    /// Returns true if every reader sees the original content; bytes after a loose object do not
    /// count.
    fn is_untouched(&self, scene: &Scene) -> bool {
        let Ok(store) = Store::discover(&scene.repo.env.repo()) else { return false };
        let same = |(oid, bytes): &(Oid, Vec<u8>)| store.read(*oid).is_ok_and(|found| found.1 == *bytes);
        refs::read(&store, self.name).is_ok_and(|tip| tip == self.tip) && self.objects.iter().all(same)
    }
}

/// Gives a command, which must end soon and not in a panic; returns its exit code and what it
/// printed.
fn bounded(scene: &Scene, place: &str, args: &[&str], description: &str) -> (i32, String) {
    let paths = ["printed", "said"].map(|name| scene.repo.path(name));
    let mut command = scene.repo.env.command(program_path(), place);
    command.args(args).stdout(File::create(&paths[0]).unwrap()).stderr(File::create(&paths[1]).unwrap());
    let mut child = command.spawn().unwrap();
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("{description}\n{args:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let [printed, stderr] = paths.map(|path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned());
    let clear = !stderr.contains("panicked at") && matches!(status.code(), Some(0..=5));
    assert!(clear, "{description}\n{args:?} in {place}: {status}\n{printed}{stderr}");
    answers::hold_printed(program_path(), args, [&printed, &stderr], true);
    (status.code().unwrap(), printed)
}

/// Foreign files where the program looks for its own.
const STRAYS: [&str; 9] = [
    "repo/.git/objects/pack/pack-68616e646f66660000000000000000000000000.keep",
    "repo/.git/objects/pack/pack-68616e646f66660000000000000000000000000.idx",
    "repo/.git/objects/pack/tmp_pack_stray",
    "repo/.git/refs/handoff/runs/stray",
    "repo/.git/refs/handoff/runs/open.lock",
    "repo/.git/refs/handoff/threads/%zz",
    "repo/.git/refs/handoff/logs/stray",
    "repo/.git/handoff/nonces/stray.intended",
    "repo/.git/packed-refs.lock",
];

/// Changes something that is stored; returns what.
fn mutate(scene: &Scene, dice: &mut Dice, abroad: bool) -> String {
    if !abroad && dice.once_in(8) {
        let stray = *dice.pick(&STRAYS);
        let path = scene.repo.path(stray);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, garbage(dice)).unwrap();
        return format!("a stray: {stray}");
    }
    let below: &[&str] = if abroad {
        &["hub/refs/handoff", "hub/objects", "hub/packed-refs"]
    } else {
        &[
            "repo/.git/objects",
            "repo/.git/refs/handoff",
            "repo/.git/packed-refs",
            "repo/.git/handoff",
            "worktrees",
            "repo/.git",
        ]
    };
    let files = loop {
        let files = files(&scene.repo.path(dice.pick::<&str>(below)));
        if !files.is_empty() {
            break files;
        }
    };
    let path = dice.pick(&files);
    let bytes = fs::read(path).unwrap();
    // Only we read these; what git reads has to be what git can wait for.
    let ours = path.components().any(|part| part.as_os_str() == "handoff" || part.as_os_str() == "worktrees")
        && !path.components().any(|part| part.as_os_str() == "refs" || part.as_os_str() == "logs");
    let word = match dice.roll(0..if ours { 11 } else { 10 }) {
        0..3 if !bytes.is_empty() => {
            let mut bytes = bytes;
            let at = dice.index(bytes.len());
            bytes[at] ^= 1 << dice.roll(0..8);
            replace(path, &bytes);
            "a bit turned"
        }
        3 => {
            replace(path, &bytes[..dice.index(bytes.len() + 1)]);
            "cut off"
        }
        4 => {
            fs::remove_file(path).unwrap();
            "removed"
        }
        5 => {
            let other = fs::read(dice.pick(&files)).unwrap();
            replace(path, &other);
            "another's bytes"
        }
        6 => {
            replace(path, &garbage(dice));
            "garbage"
        }
        7 => {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
            "a folder"
        }
        8 => {
            fs::remove_file(path).unwrap();
            symlink(if dice.once_in(2) { Path::new("/etc/passwd") } else { path }, path).unwrap();
            "a link"
        }
        9 => {
            let longer = [bytes.as_slice(), &vec![0; 1 << 16]].concat();
            replace(path, &longer);
            "zeros behind it"
        }
        10 => {
            fs::remove_file(path).unwrap();
            rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
            "a pipe"
        }
        _ => {
            replace(path, b"\0");
            "a zero"
        }
    };
    format!("{word}: {}", path.strip_prefix(scene.repo.env.path()).unwrap().display())
}

fn garbage(dice: &mut Dice) -> Vec<u8> {
    (0..dice.roll(0..300)).map(|_| dice.roll(0..256).to_le_bytes()[0]).collect()
}

/// Replaces a file, even a read-only one.
fn replace(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Returns the files below a folder in order, or the file itself; links are not followed.
fn files(at: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![at.to_owned()]);
    if at.is_file() {
        return folders;
    }
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type().unwrap() {
                kind if kind.is_dir() && entry.file_name() != "hooks" => folders.push(entry.path()),
                kind if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found.sort();
    found
}
