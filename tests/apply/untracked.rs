//! Untracked files in a folder that an item replaces by a file: they stay, and applying is refused.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

use std::fs;

use crate::common::clone::TestClone;
use crate::common::report::find_line;

/// A folder and what is in it become a file, and there is a new file; both are no conflict with
/// anything.
const ITEM: (&str, &str, Option<&str>) = ("e", "git rm -rq d && echo theirs > d && echo theirs > n", None);

fn ready() -> TestClone {
    let clone = TestClone::new();
    fs::create_dir(clone.root().join("d")).unwrap();
    clone.write("d/k", "k\n");
    clone.write(".gitignore", "*.ign\n");
    clone.git(&["add", "."]);
    clone.git(&["commit", "--quiet", "-m", "More"]);
    clone.done("r", &[ITEM]);
    clone
}

#[test]
fn apply_preserves_ignored_files_in_a_replaced_folder() {
    let clone = ready();
    let precious = |path: &str| {
        fs::create_dir_all(clone.root().join(path).parent().unwrap()).unwrap();
        clone.write(path, "precious\n");
    };
    let status = || clone.git(&["status", "--porcelain", "--ignored", "--untracked-files=all"]);
    for path in ["d/y.ign", "d/deep/er/.env.ign", "d/plain", "d/repo/f", "n", "n/z.ign"] {
        precious(path);
        if path == "d/repo/f" {
            clone.git(&["init", "--quiet", "d/repo"]);
            clone.write(".git/info/exclude", "d/repo\n");
        }
        let before = status();
        for more in [&[][..], &["--commit"], &["--commit", "--3way"], &["--dry-run"], &["--commit", "--dry-run"]] {
            let (code, stdout, stderr) = clone.handoff(&[&["apply", "r"][..], more].concat());
            let (_, listed) = find_line(&stderr, "caused by: ").rsplit_once(": ").unwrap();
            let is_listed = listed.split(", ").any(|listed| listed == path);
            assert!(code == 1 && is_listed, "{path} {more:?}: {stdout}{stderr}");
            assert_eq!(clone.read(path), "precious\n", "{more:?}");
            assert_eq!(status(), before, "{path} {more:?}");
        }
        let top = clone.root().join(path.split('/').take(2).collect::<Vec<_>>().join("/"));
        fs::remove_file(&top).or_else(|_| fs::remove_dir_all(&top)).unwrap();
    }
    // Folders with nothing in them are nothing to git either.
    fs::create_dir(clone.root().join("d/empty")).unwrap();
    let (code, stdout, stderr) = clone.handoff(&["apply", "r", "--commit"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert_eq!((clone.read("d"), clone.read("n")), ("theirs\n".to_owned(), "theirs\n".to_owned()));
}

#[test]
fn ignored_files_block_conflict_markers() {
    let clone = ready();
    clone.done("s", &[("main", "sed -i s/two/TWO/ main.txt; git rm -rq d; echo theirs > d", None)]);
    clone.write("main.txt", "one\nzwei\nthree\nfour\nfive\n");
    clone.git(&["commit", "--quiet", "-am", "Go on"]);
    clone.write("d/y.ign", "precious\n");
    let (code, stdout, stderr) = clone.handoff(&["apply", "s", "--commit", "--3way"]);
    assert_eq!(code, 1, "{stdout}{stderr}");
    insta::assert_snapshot!(stderr, @"
    error: local changes are in the way; nothing was changed
    caused by: not tracked by git, and in the way: d/y.ign
    hint: git stash --include-untracked   # or apply onto a branch: --branch NAME
    ");
    assert_eq!(clone.read("d/y.ign"), "precious\n");
    assert_eq!(clone.git(&["status", "--porcelain"]), "");
}
