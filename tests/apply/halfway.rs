//! Applying that was ended midway: the same is applied again and goes on, and nothing else is taken
//! for what it left.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use super::cut_short;
use crate::common::place::Place;

/// Files that are changed, removed and new, a folder that becomes a file and a file that becomes a
/// folder; `z` comes last.
const SCRIPT: &str = "echo A > a; git rm -q b; mkdir in; echo N > in/n; chmod +x tool; git rm -rq d; echo D > d; \
                      git rm -q f; mkdir f; echo F > f/f; ln -s a link; echo Z > z";

fn ready() -> Place {
    let place = Place::new();
    fs::create_dir(place.root().join("d")).unwrap();
    for file in ["a", "b", "tool", "d/k", "f", "other", "z"] {
        place.write(file, "base\n");
    }
    place.git(&["add", "."]);
    place.git(&["commit", "--quiet", "-m", "More"]);
    place.done("r", &[("e", SCRIPT, None)]);
    place.write("other", "mine\n");
    place
}

/// The state of the index, the files and the branch.
fn state(place: &Place) -> String {
    let status = place.git(&["status", "--porcelain", "--untracked-files=all"]);
    status + &place.git(&["ls-files", "-s"]) + &place.git(&["diff", "HEAD"]) + &place.git(&["log", "--format=%s"])
}

fn hook(place: &Place, script: &str) {
    let path = place.root().join(".git/hooks/pre-commit");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_was_ended_midway_goes_on_when_it_is_applied_again() {
    for (arguments, hooked) in
        [(&["apply", "r"][..], false), (&["apply", "r", "--commit"], false), (&["apply", "r", "--commit"], true)]
    {
        let places = [ready(), ready()];
        let [whole, place] = &places;
        if hooked {
            places.iter().for_each(|place| hook(place, "true"));
        }
        assert_eq!(whole.handoff(arguments).0, 0);
        cut_short(place, arguments, "z");
        assert_eq!(place.read("in/n"), "N\n", "it came so far");
        assert_ne!(state(place), state(whole));
        let midway = state(place);
        let (code, stdout, stderr) = place.handoff(&[arguments, &["--dry-run"]].concat());
        assert_eq!(code, 0, "{stdout}{stderr}");
        assert_eq!(state(place), midway);
        let (code, stdout, stderr) = place.handoff(arguments);
        assert_eq!(code, 0, "{arguments:?}: {stdout}{stderr}");
        assert_eq!(state(place), state(whole), "{arguments:?}");
        assert_eq!(place.read("other"), "mine\n");
        place.git(&["fsck", "--strict"]);
    }
}

#[test]
fn what_was_changed_by_hand_since_is_in_the_way_as_ever() {
    let place = ready();
    cut_short(&place, &["apply", "r"], "z");
    for (file, is) in [("in/n", "N\n"), ("a", "A\n"), ("d", "D\n"), ("f/f", "F\n"), ("z", "")] {
        place.write(file, "precious\n");
        let before = state(&place);
        for arguments in [&["apply", "r"][..], &["apply", "r", "--commit"], &["apply", "r", "--dry-run"]] {
            let (code, stdout, stderr) = place.handoff(arguments);
            assert!(code == 1 && stderr.contains(file), "{file} {arguments:?}: {stdout}{stderr}");
            assert_eq!(state(&place), before, "{file} {arguments:?}");
        }
        if is.is_empty() {
            fs::remove_file(place.root().join(file)).unwrap();
        } else {
            place.write(file, is);
        }
    }
    assert_eq!(place.handoff(&["apply", "r"]).0, 0);
}

#[test]
fn a_hook_that_refuses_leaves_what_it_was_given() {
    let place = ready();
    hook(&place, "exit 1");
    place.write("a", "A\n");
    place.write("z", "Z\n");
    place.git(&["add", "z"]);
    let before = state(&place);
    let (code, stdout, stderr) = place.handoff(&["apply", "r", "--commit"]);
    assert!(code == 1 && stderr.contains("pre-commit"), "{stdout}{stderr}");
    assert_eq!(state(&place), before);
    assert_eq!(place.handoff(&["apply", "r", "--commit", "--no-verify"]).0, 0);
    assert_eq!(place.git(&["status", "--porcelain"]), " M other\n");
}
