//! Untracked files in a folder that an item replaces by a file: they stay, and applying is refused.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

use std::fs;

use crate::common::place::Place;

/// A folder and what is in it become a file, and there is a new file; both are no conflict with
/// anything.
const ITEM: (&str, &str, Option<&str>) = ("e", "git rm -rq d && echo theirs > d && echo theirs > n", None);

fn ready() -> Place {
    let place = Place::new();
    fs::create_dir(place.root().join("d")).unwrap();
    place.write("d/k", "k\n");
    place.write(".gitignore", "*.ign\n");
    place.git(&["add", "."]);
    place.git(&["commit", "--quiet", "-m", "More"]);
    place.done("r", &[ITEM]);
    place
}

#[test]
fn what_is_ignored_in_a_folder_that_becomes_a_file_is_not_thrown_away() {
    let place = ready();
    let precious = |path: &str| {
        fs::create_dir_all(place.root().join(path).parent().unwrap()).unwrap();
        place.write(path, "precious\n");
    };
    let status = || place.git(&["status", "--porcelain", "--ignored", "--untracked-files=all"]);
    for path in ["d/y.ign", "d/deep/er/.env.ign", "d/plain", "d/repo/f", "n", "n/z.ign"] {
        precious(path);
        if path == "d/repo/f" {
            place.git(&["init", "--quiet", "d/repo"]);
            place.write(".git/info/exclude", "d/repo\n");
        }
        let before = status();
        for more in [&[][..], &["--commit"], &["--commit", "--3way"], &["--dry-run"], &["--commit", "--dry-run"]] {
            let (code, stdout, stderr) = place.handoff(&[&["apply", "r"][..], more].concat());
            assert!(code == 1 && stderr.contains(path), "{path} {more:?}: {stdout}{stderr}");
            assert_eq!(place.read(path), "precious\n", "{more:?}");
            assert_eq!(status(), before, "{path} {more:?}");
        }
        let top = place.root().join(path.split('/').take(2).collect::<Vec<_>>().join("/"));
        fs::remove_file(&top).or_else(|_| fs::remove_dir_all(&top)).unwrap();
    }
    // Folders with nothing in them are nothing to git either.
    fs::create_dir(place.root().join("d/empty")).unwrap();
    let (code, stdout, stderr) = place.handoff(&["apply", "r", "--commit"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert_eq!((place.read("d"), place.read("n")), ("theirs\n".to_owned(), "theirs\n".to_owned()));
}

#[test]
fn what_is_ignored_stops_conflicts_from_being_written() {
    let place = ready();
    place.done("s", &[("main", "sed -i s/two/TWO/ main.txt; git rm -rq d; echo theirs > d", None)]);
    place.write("main.txt", "one\nzwei\nthree\nfour\nfive\n");
    place.git(&["commit", "--quiet", "-am", "Go on"]);
    place.write("d/y.ign", "precious\n");
    let (code, stdout, stderr) = place.handoff(&["apply", "s", "--commit", "--3way"]);
    assert_eq!(code, 1, "{stdout}{stderr}");
    insta::assert_snapshot!(stderr, @"
    error: local changes are in the way; nothing was changed
    caused by: not tracked by git, and in the way: d/y.ign
    hint: git stash --include-untracked   # or apply onto a branch: --branch NAME
    ");
    assert_eq!(place.read("d/y.ign"), "precious\n");
    assert_eq!(place.git(&["status", "--porcelain"]), "");
}
