//! Work trees that cannot be written: the reason is named, everything is as before, and the same
//! command goes on when the reason is gone.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::{Value, json};

use crate::bad_days::mount::Mount;
use crate::common::clone::TestClone;
use crate::common::report::find_line;

/// The ways to apply to a work tree.
const WAYS: [&[&str]; 3] = [&["apply", "r"], &["apply", "r", "--commit"], &["apply", "r", "--commit", "--3way"]];

/// Changed, removed and new files in and beside `data`, a folder that becomes a file and one that
/// becomes a link; `data/new` is larger than the rest together.
const SCRIPT: &str = "seq 60000 >data/new; seq 20000 >>data/a; mkdir -p data/deep/er; echo N >data/deep/er/n; \
    git rm -q data/gone; git rm -rq data/sub; echo F >data/sub; git rm -rq dir; ln -s main.txt dir; \
    echo six >>main.txt; echo T >top";

fn ready() -> TestClone {
    let clone = TestClone::new();
    for folder in ["data/sub", "dir"] {
        fs::create_dir_all(clone.root().join(folder)).unwrap();
    }
    for file in ["data/a", "data/gone", "data/sub/k", "data/z", "dir/k", "other"] {
        clone.write(file, "base\n");
    }
    clone.git(&["add", "."]);
    clone.git(&["commit", "--quiet", "-m", "More"]);
    clone.done("r", &[("e", SCRIPT, None)]);
    clone.write("other", "mine\n");
    clone.write("data/untracked", "mine\n");
    clone
}

/// The state of branch, index and files.
fn state(clone: &TestClone) -> String {
    let list = "find . -path ./.git -prune -o ! -name filler -type f -exec sha256sum {} + -o -type l -print | sort";
    let files = Command::new("sh").args(["-c", list]).current_dir(clone.root()).output().unwrap();
    clone.git(&["status", "--porcelain", "--untracked-files=all"])
        + &clone.git(&["ls-files", "-s"])
        + &clone.git(&["log", "--format=%s"])
        + &String::from_utf8(files.stdout).unwrap()
}

/// Mounts a small disk at `data` with the same files.
fn small_disk(clone: &TestClone) -> Option<Mount> {
    let mount = Mount::tmpfs("300k", &clone.root().join("data"))?;
    clone.git(&["checkout", "--quiet", "--force", "--", "data"]);
    clone.write("data/untracked", "mine\n");
    Some(mount)
}

#[track_caller]
fn refused(clone: &TestClone, way: &[&str]) -> Value {
    let before = state(clone);
    let (code, stdout, stderr) = clone.handoff(&[way, &["--json"]].concat());
    assert_eq!((code, stdout.as_str()), (1, ""), "{way:?}: {stderr}");
    assert_eq!(state(clone), before, "{way:?}: {stderr}");
    serde_json::from_str(&stderr).unwrap()
}

#[track_caller]
fn is_applied(clone: &TestClone, way: &[&str]) {
    let (code, stdout, stderr) = clone.handoff(way);
    assert_eq!(code, 0, "{way:?}: {stdout}{stderr}");
    assert_eq!(
        clone.read("data/deep/er/n") + &clone.read("data/sub") + &clone.read("dir"),
        "N\nF\n".to_owned() + &clone.read("main.txt")
    );
    assert_eq!((clone.read("other"), clone.read("data/untracked")), ("mine\n".to_owned(), "mine\n".to_owned()));
    assert!(!clone.root().join("data/gone").exists() && clone.read("data/new").ends_with("\n60000\n"));
    assert_eq!(clone.git(&["diff", "--name-only"]), "other\n");
}

#[test]
fn apply_resumes_after_a_full_disk() {
    for way in WAYS {
        let clone = ready();
        let Some(mount) = small_disk(&clone) else { return };
        let failure = refused(&clone, way);
        let (message, hint) = (failure["message"].as_str().unwrap(), &failure["hint"]);
        assert!(
            message.starts_with(
                "cannot write the files of the work tree: No space left on device (os error 28); \
                 written and taken back: "
            ) && message.contains("data/new")
                && message.ends_with(", main.txt, top"),
            "{message}"
        );
        assert_eq!(
            (&failure["code"], hint),
            (&json!("work-tree"), &json!("free some space, then run the same command again"))
        );
        assert!(failure["causes"][0].as_str().unwrap().contains("unable to write file data/new"), "{failure}");
        // The same again says the same.
        assert_eq!(refused(&clone, way)["message"], failure["message"]);
        mount.remount_with("size=4m");
        is_applied(&clone, way);
    }
}

#[test]
fn apply_reports_a_read_only_file_system_before_writing() {
    for way in WAYS {
        let clone = ready();
        let data = clone.root().join("data");
        let Some(mount) = Mount::new(&["--bind", data.to_str().unwrap()], &data) else { return };
        mount.remount("ro");
        for more in [&[][..], &["--dry-run"]].iter().take(if way.contains(&"--3way") { 1 } else { 2 }) {
            let failure = refused(&clone, &[way, *more].concat());
            let message = format!("cannot write into the folder {}; nothing was changed", data.display());
            assert_eq!((&failure["code"], &failure["message"]), (&json!("work-tree"), &json!(message)), "{more:?}");
            assert_eq!(failure["causes"], json!(["Read-only file system (os error 30)"]));
            let hint = "make the files and the file system of the work tree writable, then run the same command again";
            assert_eq!(failure["hint"], hint);
        }
        mount.remount("rw");
        is_applied(&clone, way);
    }
}

#[test]
fn apply_hints_at_a_folder_without_permission() {
    let clone = ready();
    let data = clone.root().join("data");
    fs::set_permissions(&data, Permissions::from_mode(0o555)).unwrap();
    if fs::write(data.join("probe"), "").is_ok() {
        // Modes do not bind root.
        fs::remove_file(data.join("probe")).unwrap();
        return;
    }
    let failure = refused(&clone, WAYS[0]);
    assert_eq!(failure["hint"], format!("chmod u+wx {}   # then run the same command again", data.display()));
    fs::set_permissions(&data, Permissions::from_mode(0o755)).unwrap();
    is_applied(&clone, WAYS[0]);
}

#[test]
fn apply_rolls_back_when_a_file_cannot_be_replaced() {
    let clone = ready();
    let file = clone.root().join("data/a");
    let set = |flag| Command::new("chattr").arg(flag).arg(&file).output().is_ok_and(|output| output.status.success());
    if !set("+i") {
        return;
    }
    let failure = refused(&clone, WAYS[0]);
    assert!(set("-i"));
    let message = "cannot write the files of the work tree; written and taken back: data/deep/er/n, data/gone, data/new, data/sub, data/sub/k, dir, dir/k, main.txt, top";
    assert_eq!(failure["message"], message);
    assert!(failure["causes"][0].as_str().unwrap().contains("'data/a': Operation not permitted"), "{failure}");
    let hint = "make the files and the file system of the work tree writable, then run the same command again";
    assert_eq!(failure["hint"], hint);
    is_applied(&clone, WAYS[0]);
}

#[test]
fn a_full_disk_while_a_conflict_is_written_leaves_nothing() {
    let clone = ready();
    clone.done("s", &[("main", "sed -i s/two/TWO/ main.txt; seq 60000 >data/new", None)]);
    clone.write("main.txt", "one\nzwei\nthree\nfour\nfive\n");
    clone.git(&["commit", "--quiet", "-m", "Go on", "main.txt"]);
    let Some(mount) = small_disk(&clone) else { return };
    let way = ["apply", "s", "--commit", "--3way"];
    let failure = refused(&clone, &way);
    let message = "cannot write the files of the work tree: No space left on device (os error 28); \
        written and taken back: data/new, main.txt";
    assert_eq!((&failure["code"], &failure["message"]), (&json!("work-tree"), &json!(message)));
    assert_eq!(failure["hint"], "free some space, then run the same command again", "{failure}");
    mount.remount_with("size=4m");
    let (code, stdout, stderr) = clone.handoff(&way);
    assert_eq!(code, 1, "{stdout}{stderr}");
    assert!(clone.read("main.txt").contains("<<<<<<<"), "{stdout}{stderr}");
}

#[test]
fn a_link_of_a_person_in_the_place_of_a_folder_is_not_replaced() {
    for way in WAYS {
        let clone = ready();
        let (data, elsewhere) = (clone.root().join("data"), clone.root().with_file_name("elsewhere"));
        fs::rename(&data, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &data).unwrap();
        let failure = refused(&clone, way);
        assert_eq!(
            (&failure["code"], &failure["causes"]),
            (&json!("local-changes"), &json!(["not tracked by git, and in the way: data"]))
        );
        assert_eq!(fs::read_link(&data).unwrap(), elsewhere);
        // A link beside what changes is left alone.
        fs::remove_file(&data).unwrap();
        fs::rename(&elsewhere, &data).unwrap();
        std::os::unix::fs::symlink("other", clone.root().join("mine")).unwrap();
        is_applied(&clone, way);
        assert!(clone.root().join("mine").is_symlink());
    }
}

#[test]
fn local_changes_still_are_local_changes() {
    let clone = ready();
    clone.write("main.txt", "mine\n");
    let (code, _, stderr) = clone.handoff(WAYS[0]);
    let expected = "hint: git stash --include-untracked   # or apply onto a branch: --branch NAME";
    assert_eq!((code, find_line(&stderr, "hint: ")), (1, expected), "{stderr}");
    assert_eq!(find_line(&stderr, "error: "), "error: local changes are in the way; nothing was changed");
}
