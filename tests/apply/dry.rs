//! `apply --dry-run`: reports, changes nothing, and refuses what `apply` refuses.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use serde_json::json;

use super::{BUILD, EDIT};
use crate::common::clone::TestClone;
use crate::common::report::find_line;

/// Compares two states of the repository.
fn differing(a: &Files, b: &Files) -> Vec<String> {
    let paths: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    paths.into_iter().filter(|path| a.get(*path) != b.get(*path)).cloned().collect()
}

type Files = BTreeMap<String, (SystemTime, Vec<u8>)>;

/// Everything in the repository and its work tree, but for what verifying keeps for itself.
fn everything(clone: &TestClone) -> Files {
    let mut files = Files::new();
    walk(&clone.root(), &mut files);
    files.retain(|path, _| !path.contains(".git/handoff/"));
    files
}

fn walk(folder: &Path, files: &mut Files) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, meta) = (entry.path(), entry.metadata().unwrap());
        if meta.is_dir() {
            walk(&path, files);
        } else {
            let bytes = std::fs::read(&path).unwrap();
            let name = path.to_str().unwrap().to_owned();
            // git gives an object the present time that is to be written and is there already.
            let time = if name.contains("/objects/") { SystemTime::UNIX_EPOCH } else { meta.modified().unwrap() };
            files.insert(name, (time, bytes));
        }
    }
}

#[test]
fn dry_run_reports_the_plan_and_changes_nothing() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT, BUILD]);
    clone.write("main.txt", "one\ntwo\nthree\nfour\nfive\nsix\n");
    clone.git(&["commit", "--quiet", "-am", "Go on"]);
    clone.write("other.txt", "staged\n");
    clone.git(&["add", "other.txt"]);
    let before = everything(&clone);
    let (code, stdout, stderr) = clone.handoff(&["apply", "r", "--commit", "--dry-run"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(
        stdout,
        "edit: would be applied\nbuild: would be applied\n\
         would commit onto main: edit: apply the patch of r\n  M main.txt\n\
         would commit onto main: build: apply the patch of r\n  M main.txt\n  A new.txt\n"
    );
    let (branch_dry_code, answer) = clone.answer(&["apply", "r", "-n", "--branch", "result"]);
    assert_eq!((branch_dry_code, &answer["branch"], &answer["commits"]), (0, &json!("result"), &json!([])), "{answer}");
    assert_eq!(answer["applied"], false);
    assert_eq!(answer["planned"][1]["files"][1], json!({ "change": "A", "path": "new.txt" }));
    let message = answer["planned"][1]["message"].as_str().unwrap().to_owned();
    let (dry_code, dry_stdout, _) = clone.handoff(&["apply", "r/edit", "--dry-run"]);
    assert_eq!((dry_code, dry_stdout.as_str()), (0, "edit: would be applied\nwould change, by edit:\n  M main.txt\n"));
    assert_eq!(differing(&before, &everything(&clone)), [""; 0]);
    // The real ones do what the dry run printed.
    let (branch_code, branch_answer) = clone.answer(&["apply", "r", "--branch", "result"]);
    assert_eq!(
        (branch_code, &branch_answer["applied"], &branch_answer["planned"]),
        (0, &json!(true), &json!(null)),
        "{branch_answer}"
    );
    assert_eq!(clone.git(&["log", "-1", "--format=%B", "result"]).trim(), message.trim());
    clone.handoff(&["apply", "r", "--commit"]);
    assert_eq!(clone.git(&["diff", "--name-status", "HEAD~", "HEAD"]), "M\tmain.txt\nA\tnew.txt\n");
    let (commit_dry_code, commit_dry_stdout, _) = clone.handoff(&["apply", "r", "--commit", "-n"]);
    assert_eq!((commit_dry_code, commit_dry_stdout.as_str()), (0, "edit: is there already\nbuild: is there already\n"));
    let (again_code, again_answer) = clone.answer(&["apply", "r", "-n"]);
    assert_eq!(
        (again_code, &again_answer["applied"], &again_answer["planned"]),
        (0, &json!(false), &json!([])),
        "{again_answer}"
    );
}

#[test]
fn dry_run_refuses_with_the_same_message() {
    let clone = TestClone::new();
    let other = ("other", "sed -i s/two/zwei/ main.txt", None);
    clone.done("r", &[EDIT, other, ("add", "echo new > new.txt", None)]);
    clone.git(&["branch", "taken"]);
    clone.write(".git/info/exclude", "new.txt\n");
    clone.write("new.txt", "precious\n");
    clone.write("main.txt", "mine\n");
    for arguments in [
        &["apply", "r", "--commit"][..],
        &["apply", "r/edit"],
        &["apply", "r/add"],
        &["apply", "r/edit", "--branch", "main"],
        &["apply", "r/edit", "--branch", "taken/away"],
        &["apply", "r/nowhere"],
    ] {
        let before = everything(&clone);
        let dry = clone.handoff(&[arguments, &["--dry-run", "--json"]].concat());
        assert_eq!(differing(&before, &everything(&clone)), [""; 0], "{arguments:?}");
        let real = clone.handoff(&[arguments, &["--json"]].concat());
        assert_eq!((dry.0, real.0), (1, 1), "{arguments:?}: {dry:?} {real:?}");
        let code =
            |stderr: &str| serde_json::from_str::<serde_json::Value>(stderr).map(|error| error["code"].clone()).ok();
        assert_eq!(code(&dry.2), code(&real.2), "{arguments:?}");
        let conflicts =
            |stdout: &str| serde_json::from_str::<serde_json::Value>(stdout).map(|v| v["conflicts"].clone()).ok();
        assert_eq!(conflicts(&dry.1), conflicts(&real.1), "{arguments:?}");
    }
    let (_, stdout, stderr) = clone.handoff(&["apply", "r", "-n"]);
    insta::assert_snapshot!(stdout, @"conflict: other: main.txt: changed differently by edit");
    insta::assert_snapshot!(stderr, @"
    nothing would be changed
    hint: git handoff cat r/other:patch
    hint: git handoff apply r --commit --3way   # to resolve the conflicts in the work tree
    ");
}

#[test]
fn a_missing_identity_is_reported_before_the_commit() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT]);
    clone.git(&["config", "user.useConfigOnly", "true"]);
    std::fs::write(clone.home().join(".gitconfig"), "[handoff]\n\tsandbox = none\n").unwrap();
    let dry = clone.handoff(&["apply", "r", "--commit", "-n"]);
    let real = clone.handoff(&["apply", "r", "--commit"]);
    assert_eq!((dry.0, real.0), (1, 1), "{dry:?} {real:?}");
    insta::assert_snapshot!(find_line(&dry.2, "hint: "), @"hint: git config user.name 'Your Name' && git config user.email you@example.com");
}

#[test]
fn a_file_that_was_written_in_the_moment_of_the_index_is_looked_into() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT]);
    // Same size and time as in the index: only the bytes differ.
    clone.git(&["update-index", "--refresh"]);
    let index = clone.root().join(".git/index");
    clone.write("main.txt", "one\nTOW\nthree\nfour\nfive\n");
    let now = std::fs::metadata(&index).unwrap().modified().unwrap();
    std::fs::File::options().write(true).open(clone.root().join("main.txt")).unwrap().set_modified(now).unwrap();
    let (code, _, stderr) = clone.handoff(&["apply", "r", "-n"]);
    assert_eq!(code, 1, "{stderr}");
    insta::assert_snapshot!(find_line(&stderr, "error: "), @"error: local changes are in the way; nothing was changed");
}
