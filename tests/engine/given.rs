//! The commands of an attempt see its base and the refs of the repository, and the run says what
//! its patch does not hold.

use serde_json::{Value, json};

use crate::common::repo::{TestRepo, item};

#[test]
fn setup_worker_and_check_know_the_base() {
    let repo = TestRepo::new();
    let base = repo.env.git(["rev-parse", "HEAD"]).success().trim().to_owned();
    let look =
        |name: &str| format!("test \"$HANDOFF_BASE\" = \"$(git rev-parse HEAD)\"; echo $HANDOFF_BASE >outputs/{name}");
    for (setting, name) in [("setup", "setup"), ("command", "worker"), ("verify", "check")] {
        repo.config(&format!("handoff.executor.looks.{setting}"), &look(name));
    }
    let plan = json!({ "id": "a", "executor": "looks", "inputs": {} });
    // A commit that the worker makes is not the base.
    repo.drive("run", &[plan, item("b", "git commit -q --allow-empty -m x; echo $HANDOFF_BASE >outputs/base")]).ends(0);
    repo.env.git(["commit", "-q", "--allow-empty", "-m", "Later"]).success();
    for output in ["a:outputs/setup", "a:outputs/worker", "a:outputs/check", "b:outputs/base"] {
        assert_eq!(repo.env.handoff(["cat", &format!("run/{output}")]).success().trim(), base, "{output}");
    }
}

#[test]
fn manifest_records_the_refs_of_an_item() {
    for format in ["sha1", "sha256"] {
        let env = crate::common::Environment::empty();
        std::fs::create_dir(env.repo()).unwrap();
        env.git(["init", "--quiet", "--initial-branch=main", "--object-format", format]).success();
        env.git(["commit", "--quiet", "--allow-empty", "--message", "One"]).success();
        env.git(["tag", "-a", "-m", "One", "v1.0"]).success();
        env.git(["branch", "dev"]).success();
        env.git(["commit", "--quiet", "--allow-empty", "--message", "Two"]).success();
        let repo = TestRepo { env };
        let script = "git describe --tags >outputs/version; git diff --stat dev...HEAD; git merge-base main dev
            test \"$(git rev-parse --abbrev-ref HEAD)\" = main; git tag mine; git branch -D dev";
        repo.drive("run", &[item("a", script)]).ends(0);
        let expected = repo.env.git(["describe", "--tags"]).success();
        assert_eq!(repo.env.handoff(["cat", "run/a:outputs/version"]).success(), expected);
        assert!(repo.env.git(["for-each-ref"]).success().contains("refs/heads/dev"));
        let answer: Value = serde_json::from_str(&repo.env.handoff(["show", "--json", "run/a"]).success()).unwrap();
        assert!(answer["manifest"]["claims"]["tags"].as_str().unwrap().starts_with("sha256:"), "{answer}");
        repo.env.handoff(["verify", "run"]).success();
    }
}

#[test]
fn run_reports_nested_repositories() {
    let repo = TestRepo::new();
    let script =
        "git init -q vendor/lib; echo x >vendor/lib/x; git worktree add -q .claude/worktrees/x HEAD; echo y >y";
    let stderr = repo.drive("run", &[item("a", script)]).exit(0).stderr;
    let note = "a: left out of the patch, as git repositories of their own: \".claude/worktrees/x\", \"vendor/lib\"";
    assert!(stderr.lines().any(|line| line == note), "{stderr}");
    let patch = repo.env.handoff(["cat", "run/a:patch"]).success();
    assert!(patch.contains("b/y") && !patch.contains("vendor"), "{patch}");
    // Many are counted.
    let second_stderr = repo.drive("many", &[item("a", "for i in $(seq 12); do git init -q r$i; done")]).exit(0).stderr;
    let second_note = "a: left out of the patch, as git repositories of their own: \"r1\", \"r10\", \"r11\", \"r12\", \"r2\", \
                \"r3\", \"r4\", \"r5\", \"r6\", \"r7\" and 2 more";
    assert!(second_stderr.lines().any(|line| line == second_note), "{second_stderr}");
    // The worktree stays, because they are nowhere else.
    assert!(
        second_stderr.lines().any(|line| line.starts_with("a: the worktree of attempt 1 stays in ")),
        "{second_stderr}"
    );
}
