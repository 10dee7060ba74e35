//! Runs in a file.

use std::fs;

use super::{RUN, RUN_REF, json, marks, pushed, shared};
use crate::common::assert_output;
use crate::common::report::{evidence, find_line, find_row, verdict};

#[test]
fn a_bundle_is_verified_where_there_is_no_repository() {
    let env = shared();
    assert_output!(env.handoff(["bundle", "handoff-dag-1", "--output", "../run.bundle"]), @r"
    ------- stderr -------
    wrote 1 run to ../run.bundle
    ");
    fs::create_dir(env.path().join("nowhere")).unwrap();
    fs::remove_dir_all(env.repo()).unwrap();
    assert_output!("bundle_verify", env.handoff_in("nowhere", ["verify", "--bundle", "../run.bundle"]));
    assert_eq!(fs::read_dir(env.path().join("nowhere")).unwrap().count(), 0);
    let one = env.handoff_in("nowhere", ["verify", "--json", "--bundle", "../run.bundle", "handoff-dag-1"]).exit(0);
    assert_eq!(json(&one)["intact"], true);
    assert_output!(env.handoff_in("nowhere", ["verify", "--bundle", "../run.bundle", "x"]).exit(1), @r#"
    ------- stderr -------
    error: there is no run or thread "x" in the bundle
    [exit status: 1]
    "#);
    // The verifier decides whom to trust.
    env.write("nobody", "");
    let strict = ["verify", "--bundle", "../run.bundle", "--signers", "../nobody"];
    assert_eq!(verdict(&env.handoff_in("nowhere", strict).exit(3).stdout), "✗ UNTRUSTED");
    insta::assert_snapshot!(env.handoff_in("nowhere", ["verify", "handoff-dag-1"]).exit(1).stderr, @"
    error: not in a git repository: $TEST/nowhere
    hint: git init
    ");
}

#[test]
fn stock_git_reads_it() {
    let env = shared();
    let out = env.handoff(["bundle", "--all"]).exit(0);
    fs::write(env.path().join("run.bundle"), &out.raw).unwrap();
    env.git_in(".", ["init", "--quiet", "other"]).success();
    let stdout = env.git_in("other", ["bundle", "verify", "../run.bundle"]).exit(0).stdout;
    assert!(stdout.contains("The bundle records a complete history."), "{stdout}");
    env.git_in("other", ["fetch", "--quiet", "../run.bundle", "refs/handoff/*:refs/handoff/remotes/ada/*"]).success();
    env.handoff_in("other", ["verify", "ada/handoff-dag-1"]).success();
    // The base is not included.
    let base = env.git(["rev-parse", "main"]).success();
    assert_ne!(env.git_in("other", ["cat-file", "-e", base.trim()]).status, Some(0));
}

#[test]
fn without_a_log_the_anchor_does_not_apply() {
    let env = shared();
    env.git(["bundle", "create", "--quiet", "../bare.bundle", RUN_REF]).success();
    let report = env.handoff_in("home", ["verify", "--bundle", "../bare.bundle"]).exit(0);
    assert_eq!(marks(&report), "✓✓✓─✓✓✓✓", "{report}");
    assert_eq!(verdict(&report.stdout), "✓ INTACT · tamper-detecting");
    // In a repository that holds the writer's log, that is a witness.
    let verify_report = env.handoff(["verify", "--bundle", "../bare.bundle"]).exit(0);
    assert_eq!(marks(&verify_report), "✓✓✓✓✓✓✓✓", "{verify_report}");
}

#[test]
fn verify_finds_changes_in_a_bundle() {
    let env = shared();
    let tree = format!("{RUN_REF}^{{tree}}");
    let other = env.git(["commit-tree", &tree, "-p", RUN_REF, "-m", "x"]).success();
    env.git(["update-ref", RUN_REF, other.trim()]).success();
    env.handoff(["bundle", "--all", "--output", "../run.bundle"]).exit(0).success();
    assert_eq!(verdict(&env.handoff_in("home", ["verify", "--bundle", "../run.bundle"]).exit(3).stdout), "✗ TAMPERED");
}

#[test]
fn verify_rejects_invalid_bundles() {
    let env = shared();
    env.handoff(["bundle", "--all", "--output", "../run.bundle"]).exit(0).success();
    let whole = fs::read(env.path().join("run.bundle")).unwrap();
    fs::write(env.path().join("cut.bundle"), &whole[..whole.len() - 40]).unwrap();
    env.write("text.bundle", "nothing of the kind\n");
    env.git(["bundle", "create", "--quiet", "../thin.bundle", &format!("{RUN_REF}^..{RUN_REF}")]).success();
    for (file, why) in [
        ("cut.bundle", "error: cannot read the objects in ../cut.bundle"),
        ("text.bundle", "error: ../text.bundle is not a git bundle of version 2 or 3"),
        ("thin.bundle", "error: ../thin.bundle is not complete: it needs 1 commits that are not in it"),
        ("none.bundle", "error: cannot read ../none.bundle"),
    ] {
        let stderr = env.handoff_in("home", ["verify", "--bundle", &format!("../{file}")]).exit(1).stderr;
        assert_eq!(find_line(&stderr, "error: "), why);
    }
    env.git(["config", "--global", "handoff.maxFetchSize", "1k"]).success();
    let stderr = env.handoff_in("home", ["verify", "--bundle", "../run.bundle"]).exit(1).stderr;
    insta::assert_snapshot!(stderr, @"error: ../run.bundle is larger than 1024 bytes");
}

#[test]
fn a_fetched_run_is_handed_on_under_its_own_name() {
    let env = pushed();
    env.handoff_in("clone", ["fetch"]).success();
    env.handoff_in("clone", ["bundle", "origin/handoff-dag-1", "--output", "../run.bundle"]).exit(0).success();
    let heads = env.git_in("clone", ["bundle", "list-heads", "../run.bundle"]).success();
    assert!(heads.lines().all(|line| !line.contains("remotes")) && heads.contains(RUN_REF), "{heads}");
    env.handoff_in("home", ["verify", "--bundle", "../run.bundle"]).success();
}

/// Writes `made.bundle` from another one, its head bent.
fn bend(env: &crate::common::Environment, from: &str, bend: impl FnOnce(String) -> String) {
    let whole = fs::read(env.path().join(from)).unwrap();
    let end = whole.windows(2).position(|pair| pair == b"\n\n").unwrap() + 1;
    let head = bend(String::from_utf8(whole[..end].to_vec()).unwrap());
    fs::write(env.path().join("made.bundle"), [head.as_bytes(), &whole[end..]].concat()).unwrap();
}

#[test]
fn verify_rejects_a_bundle_header_with_extra_lines() {
    let env = shared();
    env.handoff(["bundle", "--all", "--output", "../run.bundle"]).exit(0).success();
    let refused = |why: &str| {
        let output = env.handoff_in("home", ["verify", "--bundle", "../made.bundle"]).exit(1);
        assert_eq!((output.stdout.as_str(), output.stderr), ("", format!("error: ../made.bundle {why}\n")));
    };
    let v3 = |head: String| head.replace("# v2 git bundle\n", "# v3 git bundle\n@object-format=sha1\n");
    for line in [
        "@filter=tree:0",
        "@filter=blob:limit=1g",
        "@filter=blob:limit=",
        "@filter",
        "@mood=good",
        "@object-format=sha256",
    ] {
        bend(&env, "run.bundle", |head| v3(head).replace("sha1\n", &format!("sha1\n{line}\n")));
        refused(&format!("requires the capability {:?}, which verify does not support", &line[1..]));
    }
    bend(&env, "run.bundle", |head| head.replace("bundle\n", "bundle\n@filter=blob:none\n"));
    refused("requires the capability \"filter=blob:none\", which verify does not support");
    let line = |head: &str| head.lines().find(|line| line.ends_with(RUN_REF)).unwrap().to_owned();
    bend(&env, "run.bundle", |head| format!("{head}{}\n", line(&head)));
    refused("is ambiguous: the ref \"refs/handoff/runs/handoff-dag-1\" occurs twice");
    bend(&env, "run.bundle", |head| head.replace(RUN_REF, "refs/handoff/runs/%68andoff-dag-1"));
    refused("is ambiguous: the ref \"refs/handoff/runs/%68andoff-dag-1\" is not the name of a run, thread or log");
    bend(&env, "run.bundle", |head| format!("{head}{} refs/handoff/runs/a/b\n", &line(&head)[..40]));
    refused("is ambiguous: the ref \"refs/handoff/runs/a/b\" is not the name of a run, thread or log");
    bend(&env, "run.bundle", |head| format!("{head}{} refs/handoff/runs/other\n", "0123456789".repeat(4)));
    refused("is ambiguous: the ref \"refs/handoff/runs/other\" names a missing object");
    // Unknown refs are ignored, and redundant logs are accepted.
    bend(&env, "run.bundle", |head| format!("{}{} refs/heads/main\n", v3(head.clone()), &line(&head)[..40]));
    let output = env.handoff_in("home", ["verify", "--bundle", "../made.bundle"]).exit(0);
    insta::assert_snapshot!(output.stderr, @"warning: refs/heads/main is no name of a run, thread or log; it was left aside");
}

/// The manifests and the plan must be there; the products may be left out.
#[test]
fn products_that_a_filter_leaves_out_leave_the_row_open() {
    let env = shared();
    env.handoff(["report", "--content", "none", "--output", "../page.html", "handoff-dag-1"]).exit(0).success();
    let page = fs::read_to_string(env.path().join("page.html")).unwrap();
    fs::write(env.path().join("filtered.bundle"), evidence(&page)).unwrap();
    env.git(["bundle", "verify", "--quiet", "../filtered.bundle"]).success();
    let report = env.handoff_in("home", ["verify", "--bundle", "../filtered.bundle"]).exit(0).stdout;
    insta::assert_snapshot!(find_row(&report, "content"), @"─ content    3 blobs of 3 products are not in this partial clone");
    // Without the line, the same objects are missed.
    bend(&env, "filtered.bundle", |head| head.replace("@filter=blob:none\n", ""));
    let verify_answer = env.handoff_in("home", ["verify", "--bundle", "../made.bundle"]).exit(3).stdout;
    assert_eq!(verdict(&verify_answer), "✗ TAMPERED");
    // A plan that a filter leaves out cannot be judged.
    env.git(["bundle", "create", "--quiet", "--version=3", "../lazy.bundle", "--filter=blob:none", RUN_REF]).success();
    let lazy_report = env.handoff_in("home", ["verify", "--bundle", "../lazy.bundle"]).exit(3).stdout;
    assert_eq!(verdict(&lazy_report), "✗ INCOMPLETE");
}

#[test]
fn objects_that_are_left_out_in_silence_are_missed() {
    let env = shared();
    env.git(["bundle", "create", "--quiet", "--version=3", "../lazy.bundle", "--filter=blob:none", RUN_REF]).success();
    bend(&env, "lazy.bundle", |head| head.replace("@filter=blob:none\n", ""));
    let report = env.handoff_in("home", ["verify", "--bundle", "../made.bundle"]).exit(3).stdout;
    assert_eq!(verdict(&report), "✗ TAMPERED");
    insta::assert_snapshot!(find_row(&report, "plan"), @"✗ plan       plan.json: object 72e2a4a9fdc1b1144116871362c4edb7742521cc is not in the repository");
    let whole = fs::read(env.path().join("lazy.bundle")).unwrap();
    fs::write(env.path().join("made.bundle"), [whole, b"more".to_vec()].concat()).unwrap();
    bend(&env, "made.bundle", |head| head.replace("@filter=blob:none\n", ""));
    env.handoff_in("home", ["verify", "--bundle", "../made.bundle"]).ends(1);
}

#[test]
fn bundles_and_pages_leave_no_log_behind() {
    let env = shared();
    env.shell("repo", "echo x | git handoff checkpoint t --state -").success();
    let logs = || env.git(["for-each-ref", "refs/handoff/logs"]).success();
    // The private log.
    let before = logs();
    assert_eq!(before.lines().count(), 1, "{before}");
    for (name, file) in [(RUN, "one"), (RUN, "two"), ("t", "thread")] {
        env.handoff(["bundle", name, "--output", &format!("../{file}.bundle")]).success();
        let listed = env.git(["bundle", "list-heads", &format!("../{file}.bundle")]).success();
        assert_eq!(listed.matches("refs/handoff/logs/").count(), 1, "{listed}");
    }
    env.handoff(["report", RUN, "--output", "../page.html"]).success();
    assert_eq!(logs(), before);
    // The same run has the same log in each, and at a remote afterwards.
    let of = |file: &str| {
        let listed = env.git(["bundle", "list-heads", &format!("../{file}.bundle")]).success();
        listed.lines().find(|line| line.contains("refs/handoff/logs/")).unwrap().to_owned()
    };
    assert_eq!(of("one"), of("two"));
    env.handoff(["push", "origin", RUN]).success();
    assert_eq!(
        env.git_in("hub", ["for-each-ref", "--format=%(objectname) %(refname)", "refs/handoff/logs"]).success().trim(),
        of("one")
    );
    // A log that a remote has is continued where it names nothing else.
    let pushed = logs();
    env.handoff(["bundle", RUN, "--output", "../three.bundle"]).success();
    assert_eq!((of("three"), logs()), (of("one"), pushed));
    for file in ["one", "three"] {
        env.handoff(["verify", "--bundle", &format!("../{file}.bundle")]).success();
    }
}
