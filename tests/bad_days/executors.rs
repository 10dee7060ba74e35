//! Executors that misbehave, each beside one that does not.

use std::fs;

use serde_json::{Value, json};

use crate::common::repo::{TestRepo, after, item};

/// Runs an item that misbehaves with one that waits for it and one beside it; returns status and
/// reason of the first.
#[track_caller]
fn misbehave(repo: &TestRepo, run: &str, mut bad: Value) -> (String, String) {
    bad["id"] = json!("bad");
    let items = [bad, after("next", &["bad"], "true"), item("beside", "echo fine >outputs/fine")];
    let output = repo.drive(run, &items);
    let mut current_items = repo.items(run);
    assert_eq!(current_items["beside"].status, "done", "the rest of the run goes on\n{output}");
    let second_bad = current_items.remove("bad").unwrap();
    let (next, exit) = if second_bad.status == "done" { ("done", 0) } else { ("skipped", 4) };
    assert_eq!(current_items["next"].status, next);
    let output = output.exit(exit);
    if output.stderr.contains(": the worktree of attempt ") {
        // It has files that are saved nowhere else.
        repo.env.handoff(["clean", "--force", "--discard"]).success();
    }
    assert!(
        second_bad.status == "done" || output.stdout.contains(&second_bad.reason),
        "the reason is printed\n{output}"
    );
    repo.is_clean();
    repo.ends_intact(run);
    (second_bad.status, second_bad.reason)
}

fn timed(script: &str, seconds: u64) -> Value {
    let mut item = item("", script);
    item["timeout"] = json!(seconds);
    item
}

#[test]
fn broken_executor_fails_with_its_reason() {
    let repo = TestRepo::new();
    let mut folder = item("", "");
    folder["inputs"]["command"] = json!(["./dir"]);
    let no_right = "cannot start `./dir`: it may not be executed, or a folder of PATH may not be entered: \
                    Permission denied (os error 13)";
    for (run, bad, reason) in [
        ("folder", folder, no_right),
        ("exit-3", item("", "exit 3"), "exited with 3"),
        ("killed", item("", "kill -9 $$"), "was ended by signal 9"),
        ("group", item("", "kill -TERM 0"), "was ended by signal 15"),
    ] {
        let (status, actual) = misbehave(&repo, run, bad);
        assert_eq!((status.as_str(), actual.as_str()), ("failed", reason), "{run}");
    }
}

#[test]
fn missing_local_program_fails_no_item() {
    let repo = TestRepo::new();
    let mut absent = item("program", "");
    absent["inputs"]["command"] = json!(["no-such-program"]);
    let mut unknown = item("executor", "");
    unknown["executor"] = json!("special");
    unknown["inputs"] = json!({});
    let items = [absent, unknown, after("last", &["program", "executor"], "true"), item("beside", "true")];
    repo.config("handoff.executor.special.command", "true");
    repo.submit("r", &items);
    repo.env.git(["config", "--unset", "handoff.executor.special.command"]).success();
    let output = repo.env.handoff(["run", "r"]).exit(4);
    for line in [
        "program: cannot be run here: the program `no-such-program` is not installed here; no attempt is spent",
        "executor: cannot be run here: the executor \"special\" is not registered here; \
         `git config handoff.executor.special.command LINE` registers it; no attempt is spent",
        "2 items wait for what this machine lacks; the next `run` goes on with them",
    ] {
        assert!(output.stderr.lines().any(|printed_line| printed_line == line), "{line}\n{output}");
    }
    let current_items = repo.items("r");
    let rows: Vec<_> =
        current_items.iter().map(|(id, item)| (id.as_str(), item.status.as_str(), item.attempts)).collect();
    assert_eq!(
        rows,
        [("beside", "done", 1), ("executor", "ready", 0), ("last", "pending", 0), ("program", "ready", 0)]
    );
    repo.is_clean();
    // Nothing has to be retried once it is there.
    repo.config("handoff.executor.special.command", "true");
    repo.env.write("bin/no-such-program", "#!/bin/sh\n");
    repo.env.shell("repo", "chmod +x ../bin/no-such-program && PATH=\"$PWD/../bin:$PATH\" git handoff run r").success();
    repo.is_clean();
    repo.is_intact("r");
}

#[test]
fn settings_that_change_count_for_the_next_item() {
    let repo = TestRepo::new();
    repo.config("handoff.executor.special.command", "exit 3");
    let mut next = after("next", &["first"], "");
    next["executor"] = json!("special");
    next["inputs"] = json!({});
    // The driver has read the settings again when a second has passed.
    let change = "git -C \"$HOME/../repo\" config handoff.executor.special.command 'echo new >outputs/x'; sleep 1.5";
    repo.drive("r", &[item("first", change), next]).success();
    assert_eq!(repo.env.handoff(["cat", "r/next:x"]).success(), "new\n");
    repo.is_intact("r");
}

#[test]
fn hanging_executor_is_killed() {
    let repo = TestRepo::new();
    for (run, bad) in [
        ("hangs", timed("sleep 99", 1)),
        ("deaf", timed("trap '' TERM; sleep 99 & while :; do sleep 1; done", 1)),
        ("stopped", timed("kill -STOP $$; sleep 99", 1)),
    ] {
        let (status, reason) = misbehave(&repo, run, bad);
        assert_eq!((status.as_str(), reason.as_str()), ("failed", "ran longer than 1 s"), "{run}");
    }
}

#[test]
fn daemons_are_ended_before_anything_is_captured() {
    let repo = TestRepo::new();
    for (run, script) in [
        ("child", "sleep 99 & echo x >outputs/x"),
        ("session", "setsid sleep 99 </dev/null >/dev/null 2>&1 & echo x >outputs/x"),
        (
            "hidden",
            "setsid env -i PATH=\"$PATH\" sh -c \"cd /; while :; do sleep 99; done; : $HOME\" >/dev/null 2>&1 & echo x >outputs/x",
        ),
        ("writer", "setsid sh -c 'while :; do echo x >>outputs/x; done' >/dev/null 2>&1 & sleep 0.1"),
        ("pipe", "(trap '' HUP TERM; sleep 99) & echo x >outputs/x"),
    ] {
        let (status, reason) = misbehave(&repo, run, item("", script));
        assert_eq!((status.as_str(), reason.as_str()), ("done", ""), "{run}");
        assert_eq!(repo.item(run, "bad").outputs.len(), 1, "{run}");
    }
}

#[test]
fn executor_streams_never_block_the_driver() {
    let repo = TestRepo::new();
    repo.config("handoff.maxProductSize", "1m");
    let (status, _) = misbehave(&repo, "mute", item("", "exec <&- >&- 2>&-; sleep 0.05"));
    assert_eq!(status, "done");
    let (second_status, _) = misbehave(&repo, "flood", item("", "yes 'all work and no play' | head -c 1073741824"));
    assert_eq!(second_status, "done");
    let transcript = repo.env.handoff(["cat", "flood/bad:transcript"]).exit(0).raw;
    assert!(transcript.len() <= 1 << 20, "{}", transcript.len());
    let text = String::from_utf8(transcript).unwrap();
    assert!(text.trim_end().ends_with("more bytes were dropped]"), "{}", &text[text.len() - 200..]);
}

#[test]
fn executor_that_breaks_its_worktree_fails() {
    let repo = TestRepo::new();
    for (run, script, reason) in [
        ("gone", "rm -rf \"$PWD\"", "the item deleted its own worktree"),
        ("gone-and-failed", "rm -rf \"$PWD\"; exit 1", "exited with 1"),
        ("swapped", "cd ..; mv tree t; ln -s /etc tree", "the item replaced its own worktree"),
        ("all-gone", "rm -rf \"$PWD\"/../*", "the item deleted its own worktree"),
        ("link", "ln -s /etc/passwd outputs/passwd", "the output `outputs/passwd` is a symbolic link"),
        ("link-up", "ln -s ../../../.. outputs/up", "the output `outputs/up` is a symbolic link"),
        ("outputs-link", "rmdir outputs; ln -s /etc outputs", "`outputs` is no folder any more"),
        ("pipe", "mkfifo outputs/pipe", "the output `outputs/pipe` is no plain file"),
        (
            "nested-output",
            "git init -q outputs/lib; git -C outputs/lib config core.fsmonitor \"touch '$HOME/../canary'\"",
            "the output \"outputs/lib/.git\" cannot be taken: a path must not have the segment \".git\": none may be \
             empty, `.`, `..` or a spelling of `.git`",
        ),
    ] {
        let (status, actual) = misbehave(&repo, run, item("", script));
        assert_eq!((status.as_str(), actual.as_str()), ("failed", reason), "{run}");
    }
}

#[test]
fn more_outputs_than_may_be_are_refused() {
    let repo = TestRepo::new();
    let (status, reason) = misbehave(&repo, "many", item("", "cd outputs; seq 10001 | xargs touch"));
    assert_eq!(status, "failed");
    assert!(reason.contains("10000") || reason.contains("10,000"), "{reason}");
}

#[test]
fn executor_cannot_damage_the_repository_through_git() {
    let repo = TestRepo::new();
    let canary = "touch '$HOME/../canary'";
    let hostile = format!(
        "git config core.fsmonitor \"{canary}; false\"; git config filter.x.clean \"{canary}; cat\";
         git config core.hooksPath .h; git config alias.status \"!{canary}\"; mkdir -p .git/info .h;
         echo '* filter=x' | tee .gitattributes >.git/info/attributes; printf '#!/bin/sh\\n{canary}\\n' >.h/post-checkout; chmod +x .h/*;"
    );
    let before = repo.env.git(["for-each-ref", "refs/heads", "refs/tags", "refs/stash"]).success();
    let config = fs::read(repo.path("repo/.git/config")).unwrap();
    for (run, script) in [
        ("commits", "echo x >>a.txt; git add -A; git commit -qm x; git branch wild; git tag t; git stash list"),
        ("config", hostile.as_str()),
        ("refs", "git update-ref -d HEAD; git update-ref refs/heads/main HEAD~9; git symbolic-ref HEAD refs/heads/x"),
        ("no-git", "rm -rf .git"),
        (
            "other-git",
            "rm -rf .git; git init -q; git commit -q --allow-empty -m x; git config core.fsmonitor \"touch '$HOME/../canary'\"",
        ),
    ] {
        let script = format!("{script}\necho more >>a.txt");
        let (status, reason) = misbehave(&repo, run, item("", &script));
        assert_eq!((status.as_str(), reason.as_str()), ("done", ""), "{run}");
        let patch = repo.env.handoff(["cat", &format!("{run}/bad:patch")]).success();
        assert!(patch.contains("+more\n"), "{run}: {patch}");
    }
    assert_eq!(repo.env.git(["for-each-ref", "refs/heads", "refs/tags", "refs/stash"]).success(), before);
    assert_eq!(fs::read(repo.path("repo/.git/config")).unwrap(), config);
}

#[test]
fn a_submodule_filled_with_a_hostile_repository_runs_nothing() {
    let repo = TestRepo::new();
    let head = repo.env.git(["rev-parse", "HEAD"]).success();
    let link = format!("160000,{},sub", head.trim());
    repo.env.write("repo/.gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n");
    repo.env.git(["update-index", "--add", "--cacheinfo", &link]).success();
    repo.env.git(["add", ".gitmodules"]).success();
    repo.env.git(["commit", "--quiet", "--message", "A submodule"]).success();
    let script = "git init -q sub; cd sub; canary=\"touch '$HOME/../canary'\"; git config core.fsmonitor \"$canary; false\"
        git config filter.x.clean \"$canary; cat\"; echo '* filter=x' >.gitattributes; echo x >x; cd ..; echo x >>a.txt";
    let (status, reason) = misbehave(&repo, "sub", item("", script));
    assert!(status == "done" || reason.contains("sub"), "{status}: {reason}");
    let failing = format!("{script}; exit 1");
    assert_eq!(misbehave(&repo, "sub-failed", item("", &failing)).0, "failed");
}
