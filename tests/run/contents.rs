//! Consumed patches of files whose contents a filter keeps beside the repository.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::common::repo::{TestRepo, item};
use crate::sandbox::filters::MANY;

/// A filter with the pointers and the store of git-lfs.
const LFS: &str = "#!/bin/sh
set -e
store=$(git config lfs.storage || echo \"$(git rev-parse --absolute-git-dir)/lfs\")
place() { echo \"$store/objects/$(echo $1 | cut -c1-2)/$(echo $1 | cut -c3-4)/$1\"; }
content=$(mktemp)
cat >$content
if [ $1 = clean ]; then
  name=$(sha256sum $content | cut -c1-64)
  mkdir -p $(dirname $(place $name))
  cp $content $(place $name)
  printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize %s\\n' $name $(stat -c %s $content)
else
  name=$(sed -n 's/^oid sha256://p' $content)
  cat $(place $name)
fi
";

/// Writes a program, and returns its path.
fn program(repo: &TestRepo, name: &str, text: &str) -> String {
    repo.env.write(name, text);
    fs::set_permissions(repo.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    repo.path(name).to_str().unwrap().to_owned()
}

/// A repository whose `.dat` files go through a filter of this name.
fn filtered(name: &str) -> TestRepo {
    let repo = TestRepo::new();
    repo.config("handoff.sandbox", "none");
    repo.env.write("repo/.gitattributes", &format!("*.dat filter={name}\n"));
    repo.env.git(["add", "--all"]).success();
    repo.env.git(["commit", "--quiet", "--message", "Attributes"]).success();
    repo
}

/// Returns an item that needs a patch.
fn on(id: &str, from: &str, apply: bool, script: &str) -> Value {
    let mut item = item(id, script);
    item["needs"] = json!({ "work": { "from": from, "select": { "kind": "patch" }, "apply": apply } });
    item["maxAttempts"] = json!(1);
    item
}

fn with_lfs() -> TestRepo {
    let repo = filtered("lfs");
    let lfs = program(&repo, "lfs.sh", LFS);
    repo.config("filter.lfs.clean", &format!("{lfs} clean"));
    repo.config("filter.lfs.smudge", &format!("{lfs} smudge"));
    repo
}

/// Returns the repository's objects of git-lfs.
fn objects(repo: &TestRepo) -> Vec<PathBuf> {
    let listed = repo.env.shell("repo", "find .git/lfs/objects -type f").success();
    listed.lines().map(|path| repo.env.repo().join(path)).collect()
}

#[test]
fn a_worker_can_apply_a_patch_with_objects_of_git_lfs() {
    let repo = with_lfs();
    let spoil = "find .git/lfs/objects -type f | while read file; do echo spoilt >>$file; done";
    let items = [
        item("a", "echo content >x.dat; echo plain >y.txt"),
        on("b", "a", false, "git apply inputs/work && grep -qx content x.dat && echo more >>x.dat"),
        on("c", "a", true, "grep -qx content x.dat && echo z >z.dat"),
        // The worker has a copy.
        on("d", "a", false, &format!("test -n \"$(find .git/lfs/objects -type f)\" && {spoil}; echo d >d.txt")),
    ];
    repo.drive("r", &items).ends(0);
    repo.env.handoff(["verify", "r"]).success();
    for object in objects(&repo) {
        let name = object.file_name().unwrap().to_str().unwrap().to_owned();
        let sum = repo.env.shell("repo", &format!("sha256sum {}", object.display())).success();
        assert!(sum.starts_with(&name), "{sum}");
    }
    repo.env.handoff(["apply", "r/b"]).success();
    assert_eq!(fs::read_to_string(repo.env.repo().join("x.dat")).unwrap(), "content\nmore\n");
}

#[test]
fn transcript_reports_a_missing_object() {
    let repo = with_lfs();
    // The object is lost between the two items.
    let lose = format!("rm -rf {}/.git/lfs/objects", repo.env.repo().display());
    let (mut loses, mut applies) = (item("lose", &lose), on("b", "a", false, "git apply inputs/work"));
    (loses["depends_on"], applies["depends_on"]) = (json!(["a"]), json!(["lose"]));
    repo.drive("s", &[item("a", "echo content >x.dat"), loses, applies]).ends(0);
    let transcript = repo.env.handoff(["cat", "s/b:transcript"]).success();
    assert!(transcript.contains(" of git-lfs, which inputs/work names, is not here\n"), "{transcript}");
}

#[test]
fn a_patch_whose_contents_lie_elsewhere_is_applied_before_the_worker_starts() {
    let repo = filtered("store");
    let many = program(&repo, "many.py", MANY);
    repo.config("filter.store.process", &many);
    let items = [item("a", "echo content >x.dat"), on("applied", "a", true, "grep -q CONTENT x.dat && echo b >b.txt")];
    repo.drive("r", &items).ends(0);
    assert_eq!(repo.item("r", "applied").status, "done", "{:?}", repo.item("r", "applied"));
}
