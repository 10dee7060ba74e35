//! Pathspecs that protect nothing, because they select no file.

use serde_json::{Value, json};

use crate::common::repo::{TestRepo, item};

const WARNING: &str = "warning: the pathspec \"Dir\" selects no file of the base, so it protects nothing";

fn repo(pathspec: &str) -> TestRepo {
    let repo = TestRepo::new();
    repo.config("handoff.protect", pathspec);
    repo.config("handoff.executor.command.verify", "true");
    repo.env.write("plan.json", &json!({"id": "r", "items": [item("a", "echo x >x.md")]}).to_string());
    repo
}

fn warnings(stderr: &str) -> Vec<&str> {
    stderr.lines().filter(|line| line.contains("protects nothing")).collect()
}

#[test]
fn a_pathspec_that_selects_no_file_is_warned_of_everywhere() {
    let repo = repo("Dir");
    let validated = repo.env.handoff(["validate", "../plan.json"]).exit(0);
    assert_eq!(warnings(&validated.stderr), [WARNING]);
    assert_eq!(warnings(&repo.env.handoff(["submit", "../plan.json"]).exit(0).stderr), [WARNING]);
    let answer = repo.env.handoff(["validate", "--json", "../plan.json"]).success();
    let answer: Value = serde_json::from_str(&answer).expect("it is JSON");
    assert_eq!(answer["warnings"], json!([WARNING.trim_start_matches("warning: ")]));
    let recorded = repo.env.handoff(["record", "--as", "s", "--", "sh", "-c", "echo y >y.txt"]).exit(0);
    assert_eq!(warnings(&recorded.stderr), [WARNING]);
    let verified = repo.env.handoff(["verify", "s"]).success();
    assert!(verified.contains(", record protects 0 files\n"), "{verified}");
    let found = repo.env.handoff(["doctor"]).exit(0);
    assert_eq!(
        found.stdout.lines().chain(found.stderr.lines()).filter(|line| line.contains("\"Dir\"")).count(),
        1,
        "{found}"
    );
}

#[test]
fn pathspecs_of_items_and_executors_are_looked_at_each_for_itself() {
    let repo = repo("dir");
    repo.config("handoff.executor.command.protect", "none.txt");
    let mut guarded = item("a", "echo x >x.txt");
    guarded["protect"] = json!(["a.txt", "also-none"]);
    repo.env.write("plan.json", &json!({"id": "r", "items": [guarded]}).to_string());
    let validated = repo.env.handoff(["validate", "../plan.json"]).exit(0);
    let expected = ["also-none", "none.txt"]
        .map(|name| format!("warning: the pathspec \"{name}\" selects no file of the base, so it protects nothing"));
    assert_eq!(warnings(&validated.stderr), expected);
    // Together they protect files, so that `verify` has nothing to say.
    repo.env.handoff(["run", "../plan.json"]).success();
    assert!(!repo.env.handoff(["verify", "r"]).success().contains("protects 0 files"));
}

#[test]
fn a_pathspec_that_selects_files_is_not_warned_of() {
    for pathspec in ["dir", "dir/", ":(icase)DIR", "*.txt", ":/a.txt"] {
        let repo = repo(pathspec);
        let ran = repo.env.handoff(["run", "../plan.json"]).exit(0);
        assert_eq!(warnings(&ran.stderr), Vec::<&str>::new(), "{pathspec}");
        assert!(!repo.env.handoff(["verify", "r"]).success().contains("protects 0 files"), "{pathspec}");
        let found = repo.env.handoff(["doctor", "--json"]).exit(0);
        assert!(!found.stdout.contains("protects-nothing"), "{found}");
    }
}
