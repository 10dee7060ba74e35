//! The lines and items in `validate`'s problems, and missing prerequisites of a run.

use serde_json::{Value, json};

use crate::common::repo::{TestRepo, item};

/// Returns what `validate` answers about a plan file.
fn verdict(repo: &TestRepo, words: &[&str], exit: i32) -> Value {
    let output = repo.env.handoff([&["validate", "--json", "../plan.json"], words].concat()).exit(exit);
    serde_json::from_str(&output.stdout).unwrap()
}

#[test]
fn problem_is_reported_with_item_and_line() {
    let repo = TestRepo::new();
    repo.env.write(
        "plan.json",
        r#"{
  "id": "r",
  "items": [
    {"id": "first", "executor": "command", "inputs": {"command": "true"}},
    {
      "id": "second",
      "executor": "nobody",
      "inputs": {},
      "depends_on": ["first",
                     "third"]
    }
  ]
}"#,
    );
    let output = repo.env.handoff(["validate", "../plan.json"]).exit(1);
    for line in [
        "unknown-executor at items[1].executor (item \"second\", line 7): no executor \"nobody\" is registered here",
        "unknown-dependency at items[1].depends_on[1] (item \"second\", line 10): there is no item \"third\" in this run",
    ] {
        assert!(output.stdout.lines().any(|found| found == line), "{line}\n{output}");
    }
    let problems = verdict(&repo, &[], 1)["problems"].clone();
    let found: Vec<_> =
        problems.as_array().unwrap().iter().map(|problem| [&problem["item"], &problem["line"]]).collect();
    assert!(
        found.contains(&[&json!("second"), &json!(7)]) && found.contains(&[&json!("second"), &json!(10)]),
        "{problems}"
    );
    // A submission says the same of the file, under whatever id.
    for words in [&["submit", "../plan.json"][..], &["submit", "../plan.json", "--id", "other"]] {
        let second_output = repo.env.handoff(words).exit(1);
        assert_eq!(
            second_output.stdout,
            "unknown-dependency at items[1].depends_on[1] (item \"second\", line 10): there is no item \"third\" in this run\nunknown-executor at items[1].executor (item \"second\", line 7): no executor \"nobody\" is registered here\n"
        );
    }
}

#[test]
fn a_base_and_artifacts_that_are_not_there_are_found() {
    let repo = TestRepo::new();
    let plan = |base: &str, file: &str| {
        let artifacts = json!({ "spec": file });
        let plan = json!({ "id": "r", "base": base, "artifacts": artifacts, "items": [item("a", "true")] });
        repo.env.write("plan.json", &serde_json::to_string_pretty(&plan).unwrap());
    };
    let codes = |words: &[&str], exit: i32| -> Vec<String> {
        let answer = verdict(&repo, words, exit);
        let problems = answer["problems"].as_array().unwrap();
        problems.iter().map(|p| format!("{} {}", p["code"].as_str().unwrap(), p["path"].as_str().unwrap())).collect()
    };
    repo.env.write("spec.md", "spec\n");
    plan("HEAD", "spec.md");
    assert_eq!(codes(&[], 0), Vec::<String>::new());
    plan("nowhere", "gone.md");
    assert_eq!(codes(&[], 1), ["missing-base base", "missing-artifact artifacts.spec"]);
    // Command-line options take precedence and have no line.
    assert_eq!(codes(&["--base", "HEAD"], 1), ["missing-artifact artifacts.spec"]);
    assert_eq!(codes(&["--base", "elsewhere"], 1), ["missing-base ", "missing-artifact artifacts.spec"]);
    let output = repo.env.handoff(["validate", "../plan.json"]).exit(1);
    insta::assert_snapshot!(output.stdout, @r#"
    missing-base at base (line 5): the base "nowhere" is not a commit here
    missing-artifact at artifacts.spec (line 3): the file ../gone.md cannot be read: No such file or directory (os error 2)
    "#);
    // A folder is no file.
    plan("HEAD", "home");
    assert_eq!(codes(&[], 1), ["missing-artifact artifacts.spec"]);
}
