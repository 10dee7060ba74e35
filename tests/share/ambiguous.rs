//! Names that could mean two things.

use std::fs;

use super::{RUN, RUN_REF, pushed};
use crate::common::assert_output;
use crate::common::report::find_line;

#[test]
fn a_name_that_two_remotes_have_is_ambiguous() {
    let env = pushed();
    env.write("state", "draft");
    env.handoff(["checkpoint", "research", "--state", "../state"]).success();
    env.handoff(["push", "--all"]).success();
    env.git_in("clone", ["remote", "add", "other", "../hub"]).success();
    env.handoff_in("clone", ["fetch", "origin"]).success();
    env.handoff_in("clone", ["verify", RUN]).success();
    env.handoff_in("clone", ["fetch", "other"]).success();
    assert_output!(env.handoff_in("clone", ["verify", RUN]).exit(1), @r#"
    ------- stderr -------
    error: "handoff-dag-1" was fetched from more than one remote: it may be origin/handoff-dag-1 or other/handoff-dag-1
    hint: git handoff verify origin/handoff-dag-1
    [exit status: 1]
    "#);
    assert_output!(env.handoff_in("clone", ["thread", "verify", "research"]).exit(1), @r#"
    ------- stderr -------
    error: "research" was fetched from more than one remote: it may be origin/research or other/research
    hint: git handoff thread verify origin/research
    [exit status: 1]
    "#);
    for command in [["status", RUN], ["show", RUN], ["bundle", RUN], ["bundle", "research"]] {
        let refusal = env.handoff_in("clone", command).exit(1).stderr;
        assert!(refusal.contains("origin/") && refusal.contains("other/"), "{refusal}");
    }
    for name in ["origin/handoff-dag-1", "other/handoff-dag-1"] {
        env.handoff_in("clone", ["verify", name]).success();
    }
    // The name means our own run, even if others have one.
    env.git_in("clone", ["update-ref", RUN_REF, "refs/handoff/remotes/origin/runs/handoff-dag-1"]).success();
    env.handoff_in("clone", ["status", RUN]).success();
}

#[test]
fn packed_refs_that_two_readers_read_differently_are_refused() {
    let env = pushed();
    let older = env.git(["rev-parse", &format!("{RUN_REF}^")]).success();
    env.git(["pack-refs", "--all"]).success();
    env.handoff(["verify", RUN]).success();
    let path = env.repo().join(".git/packed-refs");
    let honest = fs::read_to_string(&path).unwrap();
    let line = honest.lines().find(|line| line.ends_with(RUN_REF)).unwrap();
    let other = format!("{} {RUN_REF}", older.trim());
    let bare: String = honest.split_inclusive('\n').skip(1).collect();
    fs::write(&path, honest.replace(line, &format!("{other}\n{line}"))).unwrap();
    assert_output!(env.handoff(["verify", RUN]).exit(3), @r"
    ------- stderr -------
    error: $TEST/repo/.git/packed-refs is ambiguous: line 6: refs/handoff/runs/handoff-dag-1 is named twice
    hint: git for-each-ref refs/handoff   # what git reads there; what was meant, only you can say
    [exit status: 3]
    ");
    for text in [
        honest.replace(line, &format!("{line}\n{other}")),
        bare.replace(line, &format!("{other}\n{line}")),
        format!("{honest}{other}\n"),
        format!("{bare}{other}\n"),
        format!("{honest}{other}"),
        honest.replace(line, &format!("{line}\r")),
    ] {
        fs::write(&path, &text).unwrap();
        let why = "error: $TEST/repo/.git/packed-refs is ambiguous: line ";
        let verify_stderr = env.handoff(["verify", "--all"]).exit(3).stderr;
        assert!(find_line(&verify_stderr, "error: ").starts_with(why), "{verify_stderr}");
        let runs_stderr = env.handoff(["runs"]).exit(1).stderr;
        assert!(find_line(&runs_stderr, "error: ").starts_with(why), "{runs_stderr}");
    }
    // Not sorted, and not said to be; and a loose ref beside a packed one, which is the one that
    // counts.
    let mut lines: Vec<&str> = bare.lines().collect();
    lines.reverse();
    fs::write(&path, lines.into_iter().filter(|row| !row.starts_with('^')).fold(String::new(), |t, l| t + l + "\n"))
        .unwrap();
    env.handoff(["verify", RUN]).success();
    fs::write(&path, honest.replace(line, &other)).unwrap();
    env.handoff(["verify", RUN]).ends(3);
    env.git(["update-ref", RUN_REF, &line[..40]]).success();
    env.handoff(["verify", RUN]).success();
}
