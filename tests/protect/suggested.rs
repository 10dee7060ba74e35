//! The files that `plan new` and `doctor` suggest to protect.

use std::fs;

use git_handoff::model::protectable::{FURTHER, RUNNERS, Runner, listed};
use git_handoff::model::quote::quoted;
use serde_json::{Value, json};

use crate::common::repo::{TestRepo, item};

const CODE: &str = "checks-unprotected";

/// Commits files to a new repository in which `command` has a check.
fn repository(files: &[&str]) -> TestRepo {
    let repo = TestRepo::new();
    files.iter().for_each(|file| repo.env.write(&format!("repo/{file}"), "x\n"));
    repo.env.git(["add", "-A"]).success();
    repo.env.git(["commit", "-qm", "Files", "--allow-empty"]).success();
    repo.config("handoff.executor.command.verify", "true");
    repo
}

/// Returns doctor's finding, which leaves the exit code at 0.
fn finding(repo: &TestRepo) -> Option<Value> {
    let answer: Value = serde_json::from_str(&repo.env.handoff(["doctor", "--json"]).success()).unwrap();
    answer["findings"].as_array().unwrap().iter().find(|finding| finding["code"] == CODE).cloned()
}

/// Returns the lines of `plan new`: what its items protect, and the hint.
fn hints(repo: &TestRepo) -> Vec<String> {
    let stderr = repo.env.handoff(["plan", "new", "../new.json"]).exit(0).stderr;
    fs::remove_file(repo.path("new.json")).unwrap();
    stderr.lines().map(str::to_owned).collect()
}

/// Returns the pathspecs that runners protect.
fn files_of(names: &[&str]) -> Vec<&'static str> {
    let runners = RUNNERS.iter().filter(|runner| names.contains(&runner.name));
    runners.flat_map(|runner| runner.files.iter().copied()).collect()
}

#[test]
fn the_files_of_recognised_runners_are_suggested() {
    let repo = repository(&["tests/conftest.py", "pyproject.toml", "Makefile", ".github/ci.yml"]);
    repo.env.write("repo/Cargo.toml", "untracked\n");
    let suggested = [vec!["tests", ".github", "Makefile"], files_of(&["make", "pytest"])].concat();
    let words: Vec<String> = suggested.iter().map(|pathspec| quoted(pathspec)).collect();
    let command = format!("for path in {}; do git config --add handoff.protect \"$path\"; done", words.join(" "));
    let hint = format!("{command}   # restored while the check runs; a change to one makes the item red");
    let found = finding(&repo).unwrap();
    assert_eq!(found["severity"], "note");
    assert_eq!(found["hint"], hint.as_str());
    assert_eq!(
        found["message"],
        "no files are protected from executor \"command\", which can edit what its check rests on"
    );
    let files = "tests, .github, Makefile, the files of make, the files of pytest";
    let note = format!("its items protect {files}, which decide whether work is good");
    let left_out = "not protected, since honest work changes it: pyproject.toml".to_owned();
    assert_eq!(hints(&repo), [note.clone(), left_out, "hint: git handoff run ../new.json".to_owned()]);
    let plan: Value = serde_json::from_str(&repo.env.handoff(["plan", "new", "-"]).success()).unwrap();
    for item in plan["items"].as_array().unwrap() {
        assert_eq!(item["protect"], json!(suggested));
        assert_eq!(item["onProtectedChange"], "judge");
    }
    // From a folder below, the same files are found.
    fs::create_dir(repo.path("repo/below")).unwrap();
    let below = repo.env.handoff_in("repo/below", ["plan", "new", "../../new.json"]).exit(0);
    assert!(below.stderr.starts_with(&note), "{below}");
    fs::remove_file(repo.path("new.json")).unwrap();
    // The command can be pasted, and ends the suggestion.
    repo.env.shell("repo", &hint).success();
    let set = repo.env.git(["config", "--get-all", "handoff.protect"]).success();
    assert_eq!(set.lines().collect::<Vec<_>>(), suggested);
    assert_eq!((finding(&repo), hints(&repo).len()), (None, 1));
}

#[test]
fn one_path_is_one_command() {
    let repo = repository(&["Jenkinsfile"]);
    let hint = finding(&repo).unwrap()["hint"].as_str().unwrap().to_owned();
    assert!(hint.starts_with("git config --add handoff.protect Jenkinsfile   #"), "{hint}");
}

#[test]
fn nothing_is_suggested_without_a_check_or_without_such_files() {
    let repo = repository(&["src/tests.rs"]);
    assert_eq!((finding(&repo), hints(&repo).len()), (None, 1));
    let second_repo = repository(&["tests/a.sh"]);
    assert!(finding(&second_repo).is_some());
    second_repo.env.git(["config", "--unset", "handoff.executor.command.verify"]).success();
    assert_eq!((finding(&second_repo), hints(&second_repo).len()), (None, 1));
    // Settings without effect run no check.
    second_repo.config("handoff.subagent.fix.verify", "true");
    assert_eq!((finding(&second_repo), hints(&second_repo).len()), (None, 1));
    second_repo.config("handoff.subagent.fix.command", "true");
    insta::assert_snapshot!(finding(&second_repo).unwrap()["message"].as_str().unwrap(), @r#"no files are protected from subagent "fix", which can edit what its check rests on"#);
}

#[test]
fn protection_by_any_level_ends_the_suggestion() {
    for key in ["handoff.protect", "handoff.executor.dispatch.protect", "handoff.subagent.fix.protect"] {
        let repo = repository(&["tests/a.sh"]);
        repo.env.git(["config", "--unset", "handoff.executor.command.verify"]).success();
        repo.config("handoff.subagent.fix.command", "true");
        repo.config("handoff.executor.dispatch.verify", "true");
        assert_eq!((finding(&repo).is_some(), hints(&repo).len()), (true, 2));
        repo.config(key, "src");
        assert_eq!((finding(&repo), hints(&repo).len()), (None, 1), "{key}");
    }
    let repo = repository(&["tests/a.sh"]);
    let mut protecting = item("a", "true");
    protecting["protect"] = json!(["tests"]);
    repo.submit("r", &[protecting]);
    assert_eq!((finding(&repo), hints(&repo).len()), (None, 2), "the new plan protects nothing");
}

#[test]
fn nothing_fails_where_nothing_can_be_suggested() {
    let repo = repository(&["tests/a.sh"]);
    // Without a repository, and in one without a commit.
    fs::create_dir(repo.path("apart")).unwrap();
    assert_eq!(repo.env.handoff_in("apart", ["plan", "new"]).exit(0).stderr, "hint: git handoff run plan.json\n");
    repo.env.git_in("apart", ["init", "-q"]).success();
    repo.env.git_in("apart", ["config", "handoff.executor.command.verify", "true"]).success();
    assert_eq!(
        repo.env.handoff_in("apart", ["plan", "new", "b.json"]).exit(0).stderr,
        "hint: git handoff run b.json\n"
    );
    // In a bare repository the files of HEAD count.
    repo.env.git_in("", ["clone", "-q", "--bare", "repo", "bare"]).success();
    repo.env.git_in("bare", ["config", "handoff.executor.command.verify", "true"]).success();
    let bare = repo.env.handoff_in("bare", ["doctor"]).exit(0);
    insta::assert_snapshot!(bare.stdout, @r#"
    note: no files are protected from executor "command", which can edit what its check rests on
      git config --add handoff.protect tests   # restored while the check runs; a change to one makes the item red
    "#);
}

#[test]
fn the_page_has_the_same_table() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/protected-files.md")).unwrap();
    let table = page.split("| runner | files | manifests | if committed |\n|---|---|---|---|\n").nth(1).unwrap();
    let rows: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).collect();
    let cell = |pathspecs: Vec<String>| {
        let quoted: Vec<String> = pathspecs.iter().map(|pathspec| format!("`{pathspec}`")).collect();
        if quoted.is_empty() { "–".to_owned() } else { quoted.join(", ") }
    };
    let names = |pathspecs: &[&str]| cell(pathspecs.iter().map(|pathspec| listed(pathspec)).collect());
    let row = |runner: &Runner| {
        let (files, manifests, built) = (names(&runner.files), names(&runner.manifests), names(&runner.built));
        format!("| {} | {files} | {manifests} | {built} |", runner.name)
    };
    let further = cell(FURTHER.iter().map(|pathspec| (*pathspec).to_owned()).collect());
    let expected = RUNNERS.iter().map(row).chain([format!("| any | – | – | {further} |")]);
    assert_eq!(rows, expected.collect::<Vec<_>>());
}
