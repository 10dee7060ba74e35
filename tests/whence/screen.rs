//! Text output, in the example's repository.

use crate::common::{Environment, assert_output, finished};

fn applied() -> Environment {
    let env = Environment::example("whence");
    env.handoff(["run", "plan.json"]).ends(0);
    env.handoff(["apply", "whence-1", "--branch", "feature"]).ends(0);
    env
}

#[test]
fn whence_prints_the_item_of_a_commit() {
    let env = applied();
    assert_output!("whence_commit", env.handoff(["whence", "feature"]));
    assert_output!("whence_json", env.handoff(["whence", "--json", "feature"]));
    assert_output!("whence_range", env.handoff(["whence", "main..feature"]));
}

#[test]
fn lines_of_a_squash_belong_to_their_items() {
    let env = applied();
    env.git(["merge", "--quiet", "--squash", "feature"]).success();
    env.write(
        "repo/src/main.ts",
        &format!("// Mine\n{}", std::fs::read_to_string(env.repo().join("src/main.ts")).expect("it is there")),
    );
    env.git(["commit", "--quiet", "--message", "All of it"]).success();
    assert_output!("whence_lines", env.handoff(["whence", "src/main.ts"]));
    assert_output!("whence_line_json", env.handoff(["whence", "--json", "src/main.test.ts:1"]));
}

#[test]
fn failed_verification_gives_a_reason() {
    let env = applied();
    env.git(["checkout", "--quiet", "feature"]).success();
    env.write("repo/src/main.test.ts", "// Nothing\n");
    env.git(["commit", "--quiet", "--all", "--amend", "--no-edit"]).success();
    env.write("repo/mine.txt", "mine\n");
    env.git(["add", "mine.txt"]).success();
    env.git(["commit", "--quiet", "--message", "Mine"]).success();
    let forged = "Better\n\nHandoff-Run: nightly\nHandoff-Item: edit-a";
    env.git(["commit", "--quiet", "--allow-empty", "--message", forged]).success();
    assert_output!("verify_commits", env.handoff(["verify", "--commits", "main..feature"]));
    assert_output!("whence_changed", env.handoff(["whence", "feature~2"]));
    assert_output!("whence_unknown", env.handoff(["whence", "feature~1"]));
    assert_output!("whence_unknown_run", env.handoff(["whence", "feature"]));
    env.git(["config", "handoff.signingKey", ""]).success();
    assert_output!("whence_unproven", env.handoff(["whence", "feature~3"]));
}

#[test]
fn whence_reports_a_run_whose_fetch_was_rejected() {
    let env = finished();
    env.git(["commit", "--quiet", "--allow-empty", "--message", "x\n\nHandoff-Run: nightly\nHandoff-Item: a"])
        .success();
    env.git_in("", ["clone", "--quiet", "--bare", "repo", "hub"]).success();
    env.git_in("hub", ["update-ref", "refs/handoff/runs/nightly", "main"]).success();
    env.git(["remote", "add", "origin", "../hub"]).success();
    let verified = |environment: &Environment| environment.handoff(["verify", "--commits", "HEAD~1..HEAD"]);
    insta::assert_snapshot!(verified(&env).exit(3).stdout, @r#"
    ✗ e9c8022ab3a7  unknown run  Ada <ada@example.com>: it names the run "nightly", which is not here
    HEAD~1..HEAD: 0 of 1 commits pass
    "#);
    let _ = env.handoff(["fetch"]).exit(1);
    let stdout = verified(&env).exit(3).stdout;
    insta::assert_snapshot!(stdout, @r#"
    ✗ e9c8022ab3a7  unknown run  Ada <ada@example.com>: it names the run "nightly", which is not here; the last fetch from origin refused it: commit e9c8022: the entry is not JSON: expected value at line 1 column 1
    HEAD~1..HEAD: 0 of 1 commits pass
    "#);
    // Once the remote no longer shows it, it is merely not here.
    env.git_in("hub", ["update-ref", "-d", "refs/handoff/runs/nightly"]).success();
    env.handoff(["fetch"]).success();
    insta::assert_snapshot!(verified(&env).exit(3).stdout, @r#"
    ✗ e9c8022ab3a7  unknown run  Ada <ada@example.com>: it names the run "nightly", which is not here
    HEAD~1..HEAD: 0 of 1 commits pass
    "#);
}
