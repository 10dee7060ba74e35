//! `HANDOFF_TRACE`: what the program itself does, apart from what it prints.

use std::fs;

use crate::common::Output;
use crate::common::repo::{TestRepo, item, wait_for};

/// Runs the program with this value of `HANDOFF_TRACE`.
fn traced(repo: &TestRepo, value: &str, arguments: &[&str]) -> Output {
    let mut command = repo.env.command(crate::common::program_path(), "repo");
    command.args(arguments).env("HANDOFF_TRACE", value);
    repo.env.ended(command)
}

#[test]
fn a_trace_has_the_programs_that_were_started_and_the_refs_that_were_written() {
    let repo = TestRepo::new();
    let plan = repo.plan("nightly", &[item("one", "true")]);
    let file = repo.path("trace");
    let output = traced(&repo, file.to_str().unwrap(), &["submit", &plan]).exit(0);
    assert!(!output.stdout.contains("git#") && !output.stderr.contains("git#"), "{output}");
    let trace = fs::read_to_string(&file).unwrap();
    assert!(trace.lines().all(|line| line.starts_with("git-handoff[") && !line.ends_with(' ')), "{trace}");
    let has = |text: &str| trace.lines().any(|line| line.contains(text));
    assert!(has(" git#1 starts: ") && has(" git#1 ends: exit status: 0, "), "{trace}");
    let tip = repo.tip("nightly").unwrap();
    assert!(has(&format!(" ref refs/handoff/runs/nightly: none -> {tip}")), "{trace}");
    // Another command adds its lines.
    traced(&repo, file.to_str().unwrap(), &["run", "nightly"]).ends(0);
    let longer = fs::read_to_string(&file).unwrap();
    assert!(longer.starts_with(&trace), "{longer}");
    assert!(longer.contains(&format!(" ref refs/handoff/runs/nightly: {tip} -> ")), "{longer}");
    traced(&repo, file.to_str().unwrap(), &["delete", "nightly", "--yes"]).ends(0);
    let sealed = fs::read_to_string(&file).unwrap();
    assert!(sealed.lines().any(|line| line.contains("runs/nightly: ") && line.ends_with(" -> none")), "{sealed}");
}

#[test]
fn a_trace_on_standard_error_has_no_credentials_and_nothing_is_written_without_one() {
    let repo = TestRepo::new();
    let token = ["ghp_", "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8xC0aB3dE5"].concat();
    for (url, secret) in [
        ("https://ada:open-sesame@127.0.0.1:9/x.git".to_owned(), "open-sesame"),
        (format!("https://{token}@127.0.0.1:9/x.git"), token.as_str()),
    ] {
        for value in ["1", "2"] {
            let output = traced(&repo, value, &["fetch", &url]);
            assert!(output.status != Some(0) && output.stderr.contains("127.0.0.1:9/x.git"), "{output}");
            assert!(output.stderr.contains(" starts: ") && !output.stdout.contains(" starts: "), "{output}");
            assert!(!output.stderr.contains(secret), "{output}");
        }
    }
    let folder = repo.path("folder");
    fs::create_dir(&folder).unwrap();
    let missing = repo.path("missing/trace");
    let plain = repo.env.handoff(["runs"]).exit(0).to_string();
    for value in ["", "0", "false", "trace", folder.to_str().unwrap(), missing.to_str().unwrap(), "/dev/full"] {
        assert_eq!(traced(&repo, value, &["runs"]).exit(0).to_string(), plain, "{value}");
    }
}

#[test]
fn a_trace_names_the_lock_that_is_waited_for() {
    let repo = TestRepo::new();
    repo.submit("nightly", &[item("one", "true")]);
    let (file, lock) = (repo.path("trace"), repo.path("repo/.git/handoff/locks/runs/nightly"));
    fs::create_dir_all(lock.parent().unwrap()).unwrap();
    let lock_file = fs::File::create(&lock).unwrap();
    lock_file.lock().unwrap();
    let driver = repo.start_with(&["run", "nightly"], |command| {
        command.env("HANDOFF_TRACE", &file);
    });
    let waits = || fs::read_to_string(&file).is_ok_and(|trace| trace.contains("waits for "));
    wait_for("the driver waits", waits);
    drop(lock_file);
    let (status, output) = driver.wait();
    assert!(status.success(), "{output}");
    let trace = fs::read_to_string(&file).unwrap();
    assert_eq!(trace.matches("waits for ").count(), 1, "{trace}");
    assert!(trace.contains("/handoff/locks/runs/nightly\n"), "{trace}");
}
