//! Applying that was ended midway: the same is applied again and goes on, and nothing else is taken
//! for what it left.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use super::cut_short;
use crate::common::clone::TestClone;

/// Files that are changed, removed and new, a folder that becomes a file and a file that becomes a
/// folder; `z` comes last.
const SCRIPT: &str = "echo A > a; git rm -q b; mkdir in; echo N > in/n; chmod +x tool; git rm -rq d; echo D > d; \
                      git rm -q f; mkdir f; echo F > f/f; ln -s a link; echo Z > z";

fn ready() -> TestClone {
    let clone = TestClone::new();
    fs::create_dir(clone.root().join("d")).unwrap();
    for file in ["a", "b", "tool", "d/k", "f", "other", "z"] {
        clone.write(file, "base\n");
    }
    clone.git(&["add", "."]);
    clone.git(&["commit", "--quiet", "-m", "More"]);
    clone.done("r", &[("e", SCRIPT, None)]);
    clone.write("other", "mine\n");
    clone
}

/// The state of the index, the files and the branch.
fn state(clone: &TestClone) -> String {
    let status = clone.git(&["status", "--porcelain", "--untracked-files=all"]);
    status + &clone.git(&["ls-files", "-s"]) + &clone.git(&["diff", "HEAD"]) + &clone.git(&["log", "--format=%s"])
}

fn hook(clone: &TestClone, script: &str) {
    let path = clone.root().join(".git/hooks/pre-commit");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn apply_resumes_after_an_interruption() {
    for (arguments, hooked) in
        [(&["apply", "r"][..], false), (&["apply", "r", "--commit"], false), (&["apply", "r", "--commit"], true)]
    {
        let places = [ready(), ready()];
        let [whole, clone] = &places;
        if hooked {
            places.iter().for_each(|copy| hook(copy, "true"));
        }
        assert_eq!(whole.handoff(arguments).0, 0);
        cut_short(clone, arguments, "z");
        assert_eq!(clone.read("in/n"), "N\n", "it came so far");
        assert_ne!(state(clone), state(whole));
        let midway = state(clone);
        let (code, stdout, stderr) = clone.handoff(&[arguments, &["--dry-run"]].concat());
        assert_eq!(code, 0, "{stdout}{stderr}");
        assert_eq!(state(clone), midway);
        let (second_code, second_stdout, second_stderr) = clone.handoff(arguments);
        assert_eq!(second_code, 0, "{arguments:?}: {second_stdout}{second_stderr}");
        assert_eq!(state(clone), state(whole), "{arguments:?}");
        assert_eq!(clone.read("other"), "mine\n");
        clone.git(&["fsck", "--strict"]);
    }
}

#[test]
fn apply_refuses_after_an_interruption_when_files_changed() {
    let clone = ready();
    cut_short(&clone, &["apply", "r"], "z");
    for (file, is) in [("in/n", "N\n"), ("a", "A\n"), ("d", "D\n"), ("f/f", "F\n"), ("z", "")] {
        clone.write(file, "precious\n");
        let before = state(&clone);
        for arguments in [&["apply", "r"][..], &["apply", "r", "--commit"], &["apply", "r", "--dry-run"]] {
            let (code, stdout, stderr) = clone.handoff(arguments);
            // It is either not tracked, or named by git.
            let untracked = format!("caused by: not tracked by git, and in the way: {file}");
            let changed = format!("error: Entry '{file}' not uptodate. Cannot merge.");
            let is_reported = stderr.lines().any(|line| line == untracked || line.ends_with(&changed));
            assert!(code == 1 && is_reported, "{file} {arguments:?}: {stdout}{stderr}");
            assert_eq!(state(&clone), before, "{file} {arguments:?}");
        }
        if is.is_empty() {
            fs::remove_file(clone.root().join(file)).unwrap();
        } else {
            clone.write(file, is);
        }
    }
    assert_eq!(clone.handoff(&["apply", "r"]).0, 0);
}

#[test]
fn a_hook_that_refuses_leaves_what_it_was_given() {
    let clone = ready();
    hook(&clone, "exit 1");
    clone.write("a", "A\n");
    clone.write("z", "Z\n");
    clone.git(&["add", "z"]);
    let before = state(&clone);
    let (code, stdout, stderr) = clone.handoff(&["apply", "r", "--commit"]);
    assert!(code == 1 && stderr.contains("pre-commit"), "{stdout}{stderr}");
    assert_eq!(state(&clone), before);
    assert_eq!(clone.handoff(&["apply", "r", "--commit", "--no-verify"]).0, 0);
    assert_eq!(clone.git(&["status", "--porcelain"]), " M other\n");
}
