//! Places that are not what they were: renamed and copied repositories, file systems without locks,
//! folders of temporary files that cannot be used.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::common::repo::{Driver, TestRepo, item, wait_for};
use crate::common::{Output, program_path};

/// Starts a run whose only attempt has written a file and waits, and kills its driver.
fn killed(repo: &TestRepo) {
    repo.submit("r", &[item("a", "echo work >work.txt; touch ../../../../../started; sleep 60")]);
    let driver: Driver = repo.start(&["run", "r"]);
    wait_for("the attempt", || repo.path("started").exists());
    driver.signal(Signal::KILL);
    driver.wait();
    assert_eq!(attempts(repo).len(), 1);
}

/// Returns the folders of attempts, wherever worktrees are.
fn attempts(repo: &TestRepo) -> Vec<PathBuf> {
    let mut found = repo.worktrees();
    found.retain(|path| path.join("tree").is_dir());
    found
}

fn codes(output: &Output) -> Vec<String> {
    let answer: Value = serde_json::from_str(&output.stdout).unwrap();
    let findings = answer["findings"].as_array().unwrap().iter();
    findings.map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
}

fn rename(repo: &TestRepo, from: &str, to: &str) {
    fs::rename(repo.path(from), repo.path(to)).unwrap();
}

#[test]
fn a_renamed_repository_finds_the_worktrees_of_its_killed_driver() {
    let repo = TestRepo::new();
    killed(&repo);
    rename(&repo, "repo", "renamed");
    let found = repo.env.handoff_in("renamed", ["doctor", "--json"]).exit(3);
    assert_eq!(codes(&found), ["stranded"]);
    repo.env.handoff_in("renamed", ["clean", "--force"]).success();
    assert_eq!(attempts(&repo), Vec::<PathBuf>::new());
    let saved = repo.env.git_in("renamed", ["show", "refs/handoff/salvage/r:ca/a/1/work.txt"]);
    assert_eq!(saved.success(), "work\n");
}

#[test]
fn another_repository_at_the_old_path_has_worktrees_of_its_own() {
    let repo = TestRepo::new();
    killed(&repo);
    rename(&repo, "repo", "renamed");
    fs::create_dir(repo.env.repo()).unwrap();
    repo.make(&[]);
    repo.env.handoff(["record", "--as", "r", "--", "true"]).success();
    repo.env.handoff(["clean", "--force"]).success();
    assert_eq!(attempts(&repo).len(), 1, "those of the renamed repository stay");
    repo.env.handoff_in("renamed", ["clean", "--force"]).success();
    assert_eq!(attempts(&repo), Vec::<PathBuf>::new());
}

#[test]
fn a_copied_repository_has_worktrees_of_its_own() {
    let repo = TestRepo::new();
    killed(&repo);
    assert!(Command::new("cp").args(["-a", "repo", "copy"]).current_dir(repo.env.path()).status().unwrap().success());
    repo.env.handoff_in("copy", ["clean", "--force"]).success();
    assert_eq!(attempts(&repo).len(), 1, "those of the original stay");
    // The name of the original would be that of a repository at its path.
    rename(&repo, "repo", "renamed");
    rename(&repo, "copy", "repo");
    repo.env.handoff(["clean", "--force"]).success();
    assert_eq!(attempts(&repo).len(), 1);
    repo.env.handoff_in("renamed", ["clean", "--force"]).success();
    assert_eq!(attempts(&repo), Vec::<PathBuf>::new());
}

#[test]
fn worktrees_are_found_where_an_earlier_setting_put_them() {
    let repo = TestRepo::new();
    killed(&repo);
    repo.config("handoff.workspace.root", repo.path("elsewhere").to_str().unwrap());
    assert_eq!(codes(&repo.env.handoff(["doctor", "--json"]).exit(3)), ["stranded"]);
    repo.env.handoff(["clean", "--force"]).success();
    assert_eq!(attempts(&repo), Vec::<PathBuf>::new());
    assert_eq!(repo.env.git(["show", "refs/handoff/salvage/r:ca/a/1/work.txt"]).success(), "work\n");
}

/// Builds a library in whose presence no file can be locked.
fn without_locks(repo: &TestRepo) -> PathBuf {
    let source = "#include <errno.h>\n#include <stdlib.h>\n\
        int flock(int file, int operation) { errno = atoi(getenv(\"ERRNO\")); return -1; }\n";
    repo.env.write("no_locks.c", source);
    let library = repo.path("no_locks.so");
    let mut built = Command::new("cc");
    built.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(repo.path("no_locks.c"));
    assert!(built.status().unwrap().success());
    library
}

#[test]
fn file_system_without_locks_is_reported_and_readable() {
    let repo = TestRepo::new();
    repo.env.handoff(["record", "--as", "r", "--", "sh", "-c", "echo x >x.txt"]).success();
    let library = without_locks(&repo);
    let run = |errno: i32, args: &[&str]| {
        let mut command = repo.env.command(program_path(), "repo");
        command.env("LD_PRELOAD", &library).env("ERRNO", errno.to_string()).args(args);
        repo.env.ended(command)
    };
    for (errno, why) in [(37, "No locks available"), (38, "Function not implemented"), (95, "Operation not supported")]
    {
        let failed = run(errno, &["record", "--as", "n", "--", "true"]).exit(1);
        let lines: Vec<&str> = failed.stderr.lines().collect();
        let [error, file_system, cause, hint] = lines[..] else { panic!("{failed}") };
        assert_eq!(error, "error: cannot write a pack");
        let place = file_system.strip_prefix("caused by: the file system at ").unwrap();
        assert!(place.starts_with('/') && place.ends_with(" has no locks"), "{failed}");
        assert_eq!(cause, format!("caused by: {why} (os error {errno})"));
        assert!(hint.starts_with("hint: git clone . FOLDER   # on a disk of this machine"), "{failed}");
        let json = run(errno, &["record", "--json", "--as", "n", "--", "true"]).exit(1);
        assert_eq!(serde_json::from_str::<Value>(&json.stderr).unwrap()["code"], "no-locks");
    }
    repo.env.write("state", "s");
    run(37, &["checkpoint", "t", "--state", "../state"]).ends(1);
    for command in [
        &["verify", "r"][..],
        &["verify", "--all"],
        &["status", "r"],
        &["show", "r/record"],
        &["log", "r"],
        &["runs"],
        &["cat", "r/record:transcript"],
    ] {
        run(37, command).success();
    }
    let found = run(37, &["doctor", "--json"]).exit(3);
    assert_eq!(codes(&found), ["no-locks"]);
    repo.is_sound();
}

/// Records a command that prints its `TMPDIR` and writes below it.
fn temporary(repo: &TestRepo, folder: &Path) -> Output {
    let mut command = repo.env.command(program_path(), "repo");
    let line = "echo x >$TMPDIR/x && echo \"T=$TMPDIR\"";
    command.args(["record", "--", "sh", "-c", line]);
    command.env("TMPDIR", folder);
    repo.env.ended(command).exit(0)
}

/// Returns the lines about temporary files.
fn notes(output: &Output) -> Vec<&str> {
    output.stderr.lines().filter(|line| line.contains("temporary files")).collect()
}

#[test]
fn without_a_folder_for_temporary_files_the_cache_has_one() {
    let repo = TestRepo::new();
    let missing = temporary(&repo, &repo.path("none"));
    assert_eq!(
        notes(&missing),
        ["warning: TMPDIR is no folder that can be written to ($TEST/none); temporary files go to \
             $TEST/home/.cache/git-handoff/tmp"]
    );
    let relative = temporary(&repo, "tmp".as_ref());
    assert_eq!(
        notes(&relative),
        ["warning: TMPDIR is not an absolute path (tmp); temporary files go to $TEST/home/.cache/git-handoff/tmp"]
    );
    for good in ["", "/tmp"] {
        assert_eq!(notes(&temporary(&repo, good.as_ref())), Vec::<&str>::new());
    }
}

/// Returns true if a file system can be mounted here, as the test needs it.
fn can_mount() -> bool {
    let tried = Command::new("unshare").args(["--mount", "mount", "-t", "tmpfs", "-o", "ro", "none", "/tmp"]).output();
    tried.is_ok_and(|output| output.status.success())
}

#[test]
fn a_read_only_tmp_is_not_used() {
    let repo = TestRepo::new();
    if !can_mount() || repo.env.path().starts_with("/tmp") {
        return;
    }
    for folder in [None, Some("/tmp")] {
        // Long enough that a worker's own folder would be elsewhere.
        let root = repo.path(&"d".repeat(80));
        repo.config("handoff.workspace.root", root.to_str().unwrap());
        let mut command = repo.env.command("unshare", "repo");
        let script = "mount -t tmpfs -o ro none /tmp && exec \"$0\" record -- sh -c 'echo x >$TMPDIR/x'";
        command.args(["--mount", "sh", "-c", script, program_path()]);
        folder.map(|path| command.env("TMPDIR", path));
        let output = repo.env.ended(command).exit(0);
        let why = match folder {
            None => "is not set, and /tmp is no folder that can be written to",
            Some(_) => "is no folder that can be written to (/tmp)",
        };
        let [warning] = notes(&output)[..] else { panic!("{output}") };
        assert_eq!(warning, format!("warning: TMPDIR {why}; temporary files go to $TEST/home/.cache/git-handoff/tmp"));
    }
}

#[test]
fn a_long_tmpdir_is_passed_over_with_a_word() {
    let repo = TestRepo::new();
    repo.config("handoff.workspace.root", repo.path(&"d".repeat(80)).to_str().unwrap());
    let long = repo.path(&"t".repeat(40));
    fs::create_dir(&long).unwrap();
    let output = temporary(&repo, &long);
    let user = rustix::process::geteuid().as_raw();
    let expected = format!(
        "TMPDIR is too long for sockets ({}); the temporary files of workers go to /tmp/git-handoff-{user}",
        Path::new("$TEST").join("t".repeat(40)).display()
    );
    let [only] = notes(&output)[..] else { panic!("{output}") };
    assert!(only.ends_with(&expected), "{output}");
    assert!(output.stderr.contains(&format!("T=/tmp/git-handoff-{user}/")), "{output}");
}
