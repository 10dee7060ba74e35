//! Answers for unverified runs and unknown keys, and in other kinds of repositories.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{FIRST, LAST, applied, verdict_rows, verified, whence};
use crate::common::clone::TestClone;
use crate::common::report::{find_line, masked};

/// Moves the run's ref to a commit that is none of its chain's.
fn put_on_top(origin: &TestClone) {
    let tip = origin.git(&["rev-parse", "refs/handoff/runs/r"]);
    let junk = origin.git(&["commit-tree", "-p", tip.trim(), "-m", "junk", &format!("{}^{{tree}}", tip.trim())]);
    origin.git(&["update-ref", "refs/handoff/runs/r", junk.trim()]);
}

#[test]
fn a_run_that_does_not_verify_proves_nothing() {
    type Tamper = fn(&TestClone);
    let cases: [(&str, Tamper); 2] = [
        ("an end that is cut off", |origin| {
            origin.git(&["update-ref", "refs/handoff/runs/r", "refs/handoff/runs/r~1"]);
        }),
        ("a commit on top", put_on_top),
    ];
    for (what, tamper) in cases {
        let origin = applied();
        tamper(&origin);
        let (code, commits) = verified(&origin, "main..feature");
        assert_eq!((code, commits[0].0.as_str(), commits[1].0.as_str()), (3, "unproven", "unproven"), "{what}");
        let (whence_code, answer) = origin.answer(&["whence", "feature"]);
        assert_eq!((whence_code, &answer["proven"]), (3, &json!(false)), "{what}: {answer}");
        let (second_code, _, _) = origin.handoff(&["whence", "new.txt:1"]);
        assert_eq!(second_code, 3, "{what}");
    }
    // Where a run cannot be read, that nothing was found is not all that is said.
    let origin = applied();
    put_on_top(&origin);
    origin.git(&["commit", "--quiet", "--amend", "-m", "Mine"]);
    let (code, _, stderr) = origin.handoff(&["whence", "feature"]);
    assert_eq!(code, 1, "{stderr}");
    let junk = origin.git(&["rev-parse", "refs/handoff/runs/r"]);
    let why = format!("cannot read commit {} of the chain", junk.trim());
    assert_eq!(
        stderr,
        format!("warning: refs/handoff/runs/r cannot be read, so nothing was looked for in it: {why}\n")
    );
    // By what it holds, it is not proven either.
    let second_origin = applied();
    second_origin.git(&["commit", "--quiet", "--amend", "-m", "Mine"]);
    second_origin.git(&["update-ref", "refs/handoff/runs/r", "refs/handoff/runs/r~1"]);
    assert_eq!(whence(&second_origin, "feature"), (3, verdict_rows(&[("unproven", "last")])));
}

#[test]
fn a_product_whose_bytes_are_others_proves_nothing() {
    let origin = applied();
    let patch = origin.git(&["rev-parse", "refs/handoff/runs/r^{/item.reconciled last }:patch"]);
    let objects = origin.root().join(".git/objects");
    // Whatever lies in packs comes out of them, and one object is written over.
    let packs: Vec<PathBuf> = std::fs::read_dir(objects.join("pack")).unwrap().map(|e| e.unwrap().path()).collect();
    std::fs::create_dir(origin.home().join("packs")).unwrap();
    for pack in packs {
        std::fs::rename(&pack, origin.home().join("packs").join(pack.file_name().unwrap())).unwrap();
    }
    let second_packs = std::fs::read_dir(origin.home().join("packs")).unwrap().map(|e| e.unwrap().path());
    for pack in second_packs.filter(|pack| pack.extension().is_some_and(|e| e == "pack")) {
        origin.git(&["-c", &format!("alias.u=!git unpack-objects -q < '{}'", pack.display()), "u"]);
    }
    let other = origin.git(&["rev-parse", "refs/handoff/runs/r^{/item.reconciled first }:patch"]);
    let path = |oid: &str| objects.join(&oid[..2]).join(oid[2..].trim());
    std::fs::remove_file(path(&patch)).unwrap();
    std::fs::copy(path(&other), path(&patch)).unwrap();
    let (code, commits) = verified(&origin, "main..feature");
    assert_eq!((code, commits[1].0.as_str()), (3, "unproven"), "{commits:?}");
}

/// Clones the repository, runs included; the clone has a key of its own.
fn cloned(origin: &TestClone) -> PathBuf {
    let clone = origin.home().join("clone");
    origin.git(&["clone", "--quiet", "--no-local", ".", clone.to_str().unwrap()]);
    let (code, stdout, stderr) = origin.handoff_in(&clone, &["fetch"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    clone
}

fn code(origin: &TestClone, folder: &Path, arguments: &[&str]) -> (i32, String) {
    let (code, stdout, stderr) = origin.handoff_in(folder, arguments);
    (code, format!("{stdout}{stderr}"))
}

#[test]
fn fetched_run_proves_commits_when_its_key_is_known() {
    let origin = applied();
    let clone = cloned(&origin);
    let (found, output) = code(&origin, &clone, &["whence", "HEAD"]);
    assert_eq!(found, 3, "{output}");
    insta::assert_snapshot!(masked(find_line(&output, "  not proven: ")), @"  not proven: the patch of origin/r/last makes exactly this tree of its parent, but the run is signed with SHA256:…, not known to you; to make a key known, add the line that `git handoff key` prints for its owner to the file of handoff.signers");
    insta::assert_snapshot!(find_line(&output, "hint: "), @"hint: git handoff verify origin/r");
    assert_eq!(code(&origin, &clone, &["verify", "--commits", "HEAD~2..HEAD"]).0, 3);
    let signers = origin.home().join("signers");
    std::fs::write(&signers, origin.handoff(&["key"]).1).unwrap();
    let given = ["verify", "--commits", "HEAD~2..HEAD", "--signers", signers.to_str().unwrap()];
    let (trusted_code, trusted_output) = code(&origin, &clone, &given);
    assert_eq!(trusted_code, 0, "{trusted_output}");
    origin.git(&["-C", clone.to_str().unwrap(), "config", "handoff.signers", signers.to_str().unwrap()]);
    let (whence_code, whence_output) = code(&origin, &clone, &["whence", "HEAD"]);
    assert_eq!(whence_code, 0, "{whence_output}");
    insta::assert_snapshot!(find_line(&whence_output, "  run  "), @"  run      r, sealed  refs/handoff/remotes/origin/runs/r");
    // Another person's key is not the required one.
    std::fs::write(
        &signers,
        "eve namespaces=\"git\" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICg8sjDRN5f2SzMI7bnNAt+pnqPBOrsD8kozgqkn2RSa\n",
    )
    .unwrap();
    let (revoked_code, revoked_output) = code(&origin, &clone, &given);
    assert_eq!(revoked_code, 3, "{revoked_output}");
    let standings = revoked_output.lines().filter_map(|line| line.strip_prefix("✗ ")?.split("  ").nth(1));
    assert_eq!(standings.collect::<Vec<_>>(), ["unproven", "unproven"], "{revoked_output}");
}

#[test]
fn a_copy_that_verifies_counts_where_ours_does_not() {
    let origin = applied();
    let hub = origin.home().join("hub");
    origin.git(&["init", "--quiet", "--bare", hub.to_str().unwrap()]);
    origin.git(&["remote", "add", "origin", hub.to_str().unwrap()]);
    for command in [&["push", "--all"][..], &["fetch"]] {
        let (code, stdout, stderr) = origin.handoff(command);
        assert_eq!(code, 0, "{stdout}{stderr}");
    }
    put_on_top(&origin);
    let (code, answer) = origin.answer(&["whence", "feature"]);
    assert_eq!(
        (code, &answer["commits"][0]["items"][0]["ref"]),
        (0, &json!("refs/handoff/remotes/origin/runs/r")),
        "{answer}"
    );
}

#[test]
fn a_bare_repository_answers_as_well() {
    let origin = applied();
    let bare = origin.home().join("bare.git");
    copy(&origin.root().join(".git"), &bare);
    origin.git(&["-C", bare.to_str().unwrap(), "config", "core.bare", "true"]);
    for arguments in [
        &["whence", "feature"][..],
        &["whence", "main..feature"],
        &["verify", "--commits", "main..feature"],
        &["whence", "new.txt:1"],
        &["whence", "feature:main.txt:1"],
    ] {
        let (found, output) = code(&origin, &bare, arguments);
        assert_eq!(found, 0, "{arguments:?}: {output}");
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let target = to.join(entry.file_name().unwrap());
        if entry.is_dir() {
            copy(&entry, &target);
        } else {
            std::fs::copy(&entry, &target).unwrap();
        }
    }
}

#[test]
fn a_repository_of_sha256_answers_as_well() {
    let origin = TestClone::new();
    let folder = origin.home().join("sha256");
    let path = folder.to_str().unwrap();
    origin.git(&["init", "--quiet", "--initial-branch=main", "--object-format=sha256", path]);
    std::fs::write(folder.join("main.txt"), "one\ntwo\nthree\nfour\nfive\n").unwrap();
    origin.git(&["-C", path, "add", "."]);
    origin.git(&["-C", path, "commit", "--quiet", "-m", "Start"]);
    let plan = origin.plan("r", &[FIRST, LAST]);
    assert_eq!(code(&origin, &folder, &["run", &plan]).0, 0);
    assert_eq!(code(&origin, &folder, &["apply", "r", "--branch", "feature"]).0, 0);
    assert_eq!(code(&origin, &folder, &["verify", "--commits", "main..feature"]).0, 0);
    // By what it holds, and by its lines.
    origin.git(&["-C", path, "merge", "--quiet", "--squash", "feature"]);
    origin.git(&["-C", path, "commit", "--quiet", "-m", "All"]);
    let (found, output) = code(&origin, &folder, &["whence", "main.txt:5"]);
    assert_eq!(found, 0, "{output}");
    assert!(find_line(&output, "  item ").starts_with("  item     last, attempt 1, done "), "{output}");
    origin.git(&["-C", path, "checkout", "--quiet", "feature"]);
    origin.git(&["-C", path, "commit", "--quiet", "--amend", "-m", "Mine"]);
    assert_eq!(code(&origin, &folder, &["whence", "HEAD"]).0, 0);
}

#[test]
fn commit_without_its_parent_cannot_be_judged() {
    let origin = applied();
    let clone = origin.home().join("shallow");
    let url = format!("file://{}", origin.root().display());
    origin.git(&["clone", "--quiet", "--depth=1", &url, clone.to_str().unwrap()]);
    let (found, output) = code(&origin, &clone, &["whence", "HEAD"]);
    assert_eq!(found, 1, "{output}");
    insta::assert_snapshot!(find_line(&output, "  unknown: "), @"  unknown: its parent is not in this repository");
    assert_eq!(code(&origin, &clone, &["whence", "main.txt:1"]).0, 1);
}

#[test]
fn missing_objects_of_a_partial_clone_are_no_change() {
    let origin = applied();
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    let clone = origin.home().join("partial");
    let url = format!("file://{}", origin.root().display());
    let path = clone.to_str().unwrap();
    origin.git(&["clone", "--quiet", "--filter=blob:none", "--no-checkout", &url, path]);
    let key = origin.root().join(".git/handoff/signing_key");
    origin.git(&["-C", path, "config", "handoff.signingKey", key.to_str().unwrap()]);
    assert_eq!(code(&origin, &clone, &["fetch"]).0, 0);
    let (found, output) = code(&origin, &clone, &["whence", "HEAD"]);
    assert_eq!(found, 1, "{output}");
    insta::assert_snapshot!(find_line(&output, "  unknown: "), @"  unknown: what it changes is not in this partial clone");
    assert_eq!(code(&origin, &clone, &["verify", "--commits", "HEAD~1.."]).0, 3);
    // With everything here, it is proven.
    assert_eq!(code(&origin, &clone, &["fetch", "--content"]).0, 0);
    origin.git(&["-C", path, "log", "-p"]);
    let (whence_found, whence_output) = code(&origin, &clone, &["whence", "HEAD"]);
    assert_eq!(whence_found, 0, "{whence_output}");
}

#[test]
fn without_the_commit_that_a_run_began_at_the_patch_id_is_left() {
    let origin = TestClone::new();
    origin.git(&["checkout", "--quiet", "-b", "begun"]);
    origin.git(&["commit", "--quiet", "--allow-empty", "-m", "Gone soon"]);
    origin.done("r", &[LAST]);
    origin.git(&["checkout", "--quiet", "main"]);
    assert_eq!(origin.handoff(&["apply", "r", "--commit"]).0, 0);
    let hub = origin.home().join("hub");
    let path = hub.to_str().unwrap();
    origin.git(&["init", "--quiet", "--bare", path]);
    origin.git(&["push", "--quiet", path, "main", "refs/handoff/runs/r", "refs/handoff/logs/*"]);
    origin.git(&["-C", path, "symbolic-ref", "HEAD", "refs/heads/main"]);
    let key = origin.root().join(".git/handoff/signing_key");
    origin.git(&["-C", path, "config", "handoff.signingKey", key.to_str().unwrap()]);
    let (found, output) = code(&origin, &hub, &["whence", "main"]);
    assert_eq!(found, 0, "{output}");
    insta::assert_snapshot!(find_line(&output, "  proven: "), @"  proven: it has the patch id of the patch of r/last, and its very lines");
    let (whence_found, whence_output) = code(&origin, &hub, &["whence", "new.txt:1"]);
    assert_eq!(whence_found, 0, "{whence_output}");
    // The other format is unknown here.
    origin.write("new.txt", "another\n");
    origin.git(&["commit", "--quiet", "--amend", "--no-edit", "-a"]);
    origin.git(&["push", "--quiet", "--force", path, "main"]);
    let (verify_found, verify_output) = code(&origin, &hub, &["verify", "--commits", "main~1..main"]);
    assert_eq!(verify_found, 3, "{verify_output}");
    let line = find_line(&verify_output, "✗ ");
    let (tip, base) = (origin.git(&["rev-parse", "main"]), line.split(' ').rev().nth(5).unwrap());
    let why = format!(
        "it says that it is what r/last handed over, and the run's base commit {base} is not in this repository"
    );
    assert_eq!(line, format!("✗ {}  unclear  Ada <ada@example.com>: {why}", &tip[..12]));
}
