//! Credentials in whatever is stored, shown or handed on.

mod gitleaks;
mod shapes;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use git_handoff::git::secret_scan::{self, Range};
use git_handoff::git::store::Store;
use git_handoff::model::credential::gate::Gate;
use git_handoff::model::digest::Oid;
use serde_json::json;

use crate::common::repo::{TestRepo, item};
use crate::common::report::find_line;

/// A token as GitHub issues them, in two parts, so that a script that puts them together is none.
const PARTS: (&str, &str) = ("ghp_", "Q7w8E9r0T1y2U3i4O5p6A7s8D9f0G1h2J3k4");

fn token() -> String {
    format!("{}{}", PARTS.0, PARTS.1)
}

/// Returns a line of shell that prints the token.
fn print() -> String {
    format!("printf '%s%s\\n' {} {}", PARTS.0, PARTS.1)
}

/// Fails if any object of the repository, reachable or not, has the bytes in it.
#[track_caller]
fn is_nowhere(repo: &TestRepo, bytes: &str) {
    let script =
        "git cat-file --batch-all-objects --batch --unordered --buffer | grep -a -c -F -e \"$(cat ../needle)\"";
    repo.env.write("needle", bytes);
    let counted = repo.env.shell("repo", script);
    assert_eq!(counted.stdout.trim(), "0", "{bytes} is in the object database");
}

/// Returns what was saved of the first attempt of the item `i`.
fn saved_at(repo: &TestRepo, run: &str) -> String {
    let reference = format!("refs/handoff/salvage/{run}");
    let listed = repo.env.git(["ls-tree", "-r", "-t", "--name-only", &reference]).success();
    let folder = listed.lines().find(|path| path.ends_with("i/1")).expect("its work is saved");
    format!("{reference}:{folder}")
}

#[test]
fn a_product_with_a_secret_fails_its_item_and_reaches_no_object() {
    for (name, script, place) in [
        (
            "output",
            format!("mkdir -p outputs/deep; (echo one; {}) > outputs/deep/report.txt", print()),
            "outputs/deep/report.txt:2",
        ),
        ("binary", format!("(head -c 300000 /dev/zero; printf '\\n'; {}) > outputs/x.bin", print()), "outputs/x.bin:2"),
        ("new", format!("mkdir new; (echo one; echo two; {}) > new/config.toml", print()), "new/config.toml:3"),
        ("changed", format!("{} >> a.txt", print()), "a.txt:3"),
        ("packed", format!("(printf '\\000\\001\\n'; {}) > blob.dat", print()), "blob.dat:2"),
        ("attributes", format!("echo '*.txt binary' > .gitattributes; {} >> a.txt", print()), "a.txt:3"),
        ("glued", format!("printf 'my%s%s,' {} {} > dir/b.txt", PARTS.0, PARTS.1), "dir/b.txt:1"),
        ("many", format!("for i in $(seq 300); do echo $i > f$i; done; {} > g", print()), "g:1"),
        ("link", format!("ln -s \"$({})\" link", print()), "link:1"),
    ] {
        let repo = TestRepo::new();
        let mut with = item("i", &format!("echo clean > kept.txt; {script}"));
        with["maxAttempts"] = json!(3);
        let ran = repo.drive(name, &[with]).exit(4);
        let failed_item = repo.item(name, "i");
        assert_eq!((failed_item.status.as_str(), failed_item.attempts), ("failed", 1), "{name}: {ran}");
        assert_eq!(failed_item.reason, format!("secret-found: {place} github-pat"));
        assert!(!ran.to_string().contains(&token()), "{ran}");
        is_nowhere(&repo, &token());
        let left_out = format!("i: left out of the saved work of attempt 1: secret-found: {place} github-pat");
        assert!(ran.stderr.lines().any(|line| line == left_out) || name == "attributes", "{ran}");
        let saved = repo.env.git(["show", &format!("{}/kept.txt", saved_at(&repo, name))]);
        assert_eq!(saved.stdout, "clean\n", "what has none is saved: {saved}");
        repo.passes_fsck();
    }
}

#[test]
fn the_name_of_a_product_is_looked_at_too() {
    let repo = TestRepo::new();
    repo.drive("r", &[item("i", &format!("touch outputs/\"$({})\"", print()))]).ends(4);
    assert_eq!(repo.item("r", "i").reason, "secret-found: outputs/[redacted:github-token] github-pat");
    is_nowhere(&repo, &token());
}

#[test]
fn work_that_failed_otherwise_is_saved_without_its_secrets() {
    let repo = TestRepo::new();
    let script = format!(
        "echo clean > kept.txt; {} > token.txt; {} >> a.txt; {} > outputs/o; exit 3",
        print(),
        print(),
        print()
    );
    let ran = repo.drive("r", &[item("i", &script)]).exit(4);
    is_nowhere(&repo, &token());
    let saved = repo.env.git(["ls-tree", "-r", "--name-only", &saved_at(&repo, "r")]).success();
    assert_eq!(saved.lines().collect::<Vec<_>>(), ["a.txt", "dir/b.txt", "kept.txt"]);
    assert_eq!(repo.env.git(["show", &format!("{}/a.txt", saved_at(&repo, "r"))]).success(), "one\ntwo\n");
    insta::assert_snapshot!(find_line(&ran.stderr, "i: left out of the saved work of attempt 1: secret-found: token.txt"), @"i: left out of the saved work of attempt 1: secret-found: token.txt:1 github-pat");
}

#[test]
fn removed_or_old_secrets_are_not_reported() {
    let repo = TestRepo::new();
    repo.env.write("repo/old.txt", &format!("one\n{}\nthree\n", token()));
    repo.env.git(["add", "--all"]).success();
    repo.env.git(["commit", "--quiet", "--message", "Leak"]).success();
    repo.drive("away", &[item("i", "echo one > old.txt")]).ends(0);
    repo.drive("beside", &[item("i", "sed -i s/three/four/ old.txt")]).ends(0);
    repo.env.git(["init", "--quiet", "--bare", "../remote.git"]).success();
    repo.env.handoff(["push", "../remote.git", "--all"]).success();
}

#[test]
fn a_value_of_secret_env_is_refused_in_any_encoding() {
    let value = "correct horse/battery";
    for (name, script) in [
        ("plain", "printf '%s' \"$S\""),
        ("base64", "printf 'user:%s' \"$S\" | base64"),
        ("hex", "printf '%s' \"$S\" | od -An -tx1 | tr -d ' \\n'"),
        ("url", "printf 'correct%%20horse%%2Fbattery'"),
    ] {
        let repo = TestRepo::new();
        repo.env.write("secret", &format!("{value}\n"));
        repo.config("handoff.subagent.a.command", &format!("{script} > outputs/x; {script}; echo; {script} >&2"));
        repo.config("handoff.subagent.a.secretEnv", "S=@../secret");
        let ran =
            repo.drive("r", &[json!({ "id": "i", "executor": "dispatch", "inputs": { "subagent": "a" } })]).exit(4);
        assert_eq!(repo.item("r", "i").reason, "secret-found: outputs/x:1 secret-env", "{name}: {ran}");
        let transcript = repo.env.handoff(["show", "r/i", "--transcript"]);
        assert!(!transcript.stdout.contains("battery"), "{transcript}");
        for bytes in [value, "correct%20horse%2Fbattery", "Y29ycmVjdCBob3JzZS9i", "636f727265637420"] {
            is_nowhere(&repo, bytes);
        }
    }
}

#[test]
fn reason_hides_a_secret_in_a_name() {
    let repo = TestRepo::new();
    repo.env.write("secret", "hunter2-Zq81xPlm\n");
    repo.config("handoff.subagent.a.secretEnv", "S=@../secret");
    repo.config("handoff.subagent.a.command", "ln -s /x \"outputs/$S\"");
    repo.config("handoff.subagent.b.secretEnv", "S=@../secret");
    repo.config("handoff.subagent.b.command", "mkfifo \"outputs/$(printf %s \"$S\" | base64)\"");
    let item = |id: &str| json!({ "id": id, "executor": "dispatch", "inputs": { "subagent": id }, "maxAttempts": 1 });
    let ran = repo.drive("r", &[item("a"), item("b")]).exit(4);
    for (id, what) in [("a", "a symbolic link"), ("b", "no plain file")] {
        let reason = repo.item("r", id).reason;
        assert_eq!(reason, format!("the output `outputs/[redacted:secret]` is {what}"));
    }
    for bytes in ["hunter2-Zq81xPlm", "aHVudGVyMi1acTgxeFBsbQ"] {
        assert!(!ran.to_string().contains(bytes), "{ran}");
        is_nowhere(&repo, bytes);
    }
}

#[test]
fn a_secret_comes_from_the_environment_a_command_or_a_file() {
    let repo = TestRepo::new();
    repo.env.write("repo/.secret", "from a file\n");
    repo.config(
        "handoff.subagent.a.command",
        "printf '%s|%s' \"$A\" \"$B\" | sha256sum > outputs/x; env | grep -c HOME",
    );
    repo.config("handoff.subagent.a.secretEnv", "A=!printf x >> ../count; printf 'from $HOME\\n'");
    repo.env.git(["config", "--add", "handoff.subagent.a.secretEnv", "B=@.secret"]).success();
    let dispatch = |id: &str| json!({ "id": id, "executor": "dispatch", "inputs": { "subagent": "a" } });
    repo.drive("r", &[dispatch("i"), dispatch("j")]).ends(0);
    let sum = repo.env.shell("repo", "printf '%s|%s' 'from $HOME' 'from a file' | sha256sum").success();
    assert_eq!(repo.env.handoff(["cat", "r/i:outputs/x"]).success(), sum);
    assert_eq!(fs::read_to_string(repo.path("count")).unwrap(), "x", "the command runs once for a driver");
    let manifest = repo.env.handoff(["show", "--json", "r/i"]).success();
    assert!(manifest.contains("\"secretEnv\":[\"A\",\"B\"]") && !manifest.contains("from a"), "{manifest}");
}

#[test]
fn unavailable_secret_fails_its_item_without_details() {
    for (form, why) in [
        ("S=!echo hunter2; echo hunter2 >&2; exit 3", "its command failed (exit status: 3)"),
        ("S=@nowhere", "cannot read $TEST/repo/nowhere: No such file or directory (os error 2)"),
        ("S=!true", "it is empty, or not valid in an environment variable"),
    ] {
        let repo = TestRepo::new();
        repo.config("handoff.subagent.a.command", "true");
        repo.config("handoff.subagent.a.secretEnv", form);
        let dispatch = json!({ "id": "i", "executor": "dispatch", "inputs": { "subagent": "a" }, "maxAttempts": 1 });
        let ran = repo.drive("r", &[dispatch, item("other", "true")]).exit(4);
        let reason = repo.item("r", "i").reason;
        assert_eq!(reason, format!("cannot read the secret S of `handoff.subagent.a.secretenv`: {why}"));
        assert!(!ran.to_string().contains("hunter2"), "{ran}");
        assert_eq!(repo.item("r", "other").status, "done");
        is_nowhere(&repo, "hunter2");
    }
}

#[test]
fn a_secret_in_a_configuration_is_refused_and_not_repeated() {
    let repo = TestRepo::new();
    for value in ["KEY=hunter2", "KEY=", "KEY=!", "KEY=@", "K Y=hunter2", "=hunter2", "hunter2=!x y", "KEY= hunter2"] {
        repo.config("handoff.subagent.a.secretEnv", value);
        let refused = repo.env.handoff(["runs"]);
        if value == "hunter2=!x y" {
            refused.ends(0);
            continue;
        }
        let refused = refused.exit(1).to_string();
        assert!(!refused.contains("hunter2"), "{refused}");
        let redacted = if value.starts_with("KEY=") { "KEY=..." } else { "..." };
        assert_eq!(
            find_line(&refused, "error: "),
            format!(
                "error: the setting `handoff.subagent.a.secretenv` = \"{redacted}\" in $TEST/repo/.git/config is none of `NAME`, \
                 `NAME=!command` and `NAME=@file`; a secret itself does not belong into a configuration"
            )
        );
    }
}

#[test]
fn plans_documents_and_checkpoints_with_a_secret_are_refused() {
    let repo = TestRepo::new();
    let handoff = |args: &[&str]| repo.env.handoff(args);
    let refused = |args: &[&str], place: &str| {
        let before = repo.refs();
        let message = handoff(args).exit(1).to_string();
        assert!(message.contains(&format!("secret-found: {place} github-pat")), "{args:?}: {message}");
        assert!(!message.contains(&token()), "{message}");
        assert_eq!(repo.refs(), before, "{args:?}");
        is_nowhere(&repo, &token());
    };
    repo.env.write("secret.txt", &format!("one\n{}\n", token()));
    let plan = repo.plan("bad", &[item("i", &format!("echo {}", token()))]);
    refused(&["submit", &plan], "plan:1");
    repo.env.write(
        "art.json",
        &json!({"id": "art", "items": [item("i", "true")], "artifacts": {"x": "secret.txt"}}).to_string(),
    );
    refused(&["submit", "../art.json"], "../secret.txt:2");
    repo.env.write("open.json", &json!({"id": "open", "openEnded": true, "items": [item("i", "true")]}).to_string());
    handoff(&["submit", "../open.json"]).ends(0);
    repo.env.write("more.json", &json!({"id": "open", "items": [item("j", &format!("echo {}", token()))]}).to_string());
    refused(&["extend", "open", "../more.json"], "plan:1");
    refused(&["doc", "put", "open", "note", "../secret.txt"], "../secret.txt:2");
    repo.env.write("state.json", "{}");
    refused(&["checkpoint", "t", "--state", "../secret.txt"], "../secret.txt:2");
    refused(&["checkpoint", "t", "--state", "../state.json", "--packet", "../secret.txt"], "../secret.txt:2");
    refused(&["checkpoint", "t", "--state", "../state.json", "--summary", &token()], "summary:1");
    repo.env.write("repo/sub/left.txt", &format!("one\n{}\n", token()));
    refused(&["checkpoint", "t", "--state", "../state.json", "--worktree"], "sub/left.txt:2");
    // Names, reasons and actors, too.
    refused(&["doc", "put", "open", &token(), "../state.json"], "document name:1");
    refused(&["checkpoint", &token(), "--state", "../state.json"], "thread name:1");
    refused(&["cancel", "open", "--reason", &token()], "reason:1");
    refused(&["abandon", "open", "-m", &token()], "reason:1");
    refused(&["--actor", &format!("agent:{}", token()), "cancel", "open"], "actor:1");
    // One that is let through is stored; a setting in a file of the work tree lets nothing through.
    repo.env.write("repo/.handoff", "[handoff \"secrets\"]\n\tallow = github-pat\n");
    repo.env.git(["config", "include.path", "../.handoff"]).success();
    refused(&["checkpoint", "t", "--state", "../state.json", "--worktree"], "sub/left.txt:2");
    repo.config("handoff.secrets.allow", "github-pat:sub/*");
    handoff(&["checkpoint", "t", "--state", "../state.json", "--worktree"]).ends(0);
}

#[test]
fn a_value_of_secret_env_that_we_hold_is_refused_as_well() {
    let repo = TestRepo::new();
    repo.config("handoff.subagent.x.secretEnv", "SESAME");
    repo.env.write("open.json", &json!({"id": "open", "openEnded": true, "items": [item("i", "true")]}).to_string());
    repo.env.handoff(["submit", "../open.json"]).ends(0);
    repo.env.write("note.txt", "one\nb3BlbiBzZXNhbWUgbm93\n");
    let put =
        |value: &str| repo.env.shell("repo", &format!("SESAME='{value}' git-handoff doc put open note ../note.txt"));
    let message = put("open sesame now").exit(1).to_string();
    insta::assert_snapshot!(message, @"
    ------- stderr -------
    error: secret-found: ../note.txt:2 secret-env
    hint: take it out; a secret reaches a worker by handoff.subagent.NAME.secretEnv
    [exit status: 1]
    ");
    put("another").ends(0);
}

#[test]
fn a_push_looks_again() {
    let repo = TestRepo::new();
    repo.env.git(["init", "--quiet", "--bare", "../remote.git"]).success();
    repo.config("handoff.secrets.allow", "github-pat");
    let script = format!("{} > outputs/x; {} > y", print(), print());
    repo.drive("r", &[item("i", &script)]).ends(0);
    repo.env.git(["config", "--unset", "handoff.secrets.allow"]).success();
    let message = repo.env.handoff(["push", "../remote.git", "--all"]).exit(1).to_string();
    assert!(!message.contains(&token()), "{message}");
    insta::assert_snapshot!(message, @"
    ------- stderr -------
    error: secret-found: outputs/x:1 github-pat
    hint: git config --add handoff.secrets.allow github-pat:outputs/x   # if it is none, or may be known
    [exit status: 1]
    ");
    assert_eq!(repo.env.shell("remote.git", "git for-each-ref | wc -l").success().trim(), "0");
    repo.config("handoff.secrets.allow", "github-pat");
    repo.env.handoff(["push", "../remote.git", "--all"]).success();
}

#[test]
fn the_signature_of_a_commit_is_no_secret_and_hides_none() {
    let repo = TestRepo::new();
    let store = Store::discover(&repo.path("repo")).unwrap();
    let commit = |line: &str, message: &str| {
        let tree = repo.env.git(["rev-parse", "HEAD^{tree}"]).success().trim().to_owned();
        let text = format!(
            "tree {tree}\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\ngpgsig -----BEGIN SSH SIGNATURE-----\n \
             {line}\n -----END SSH SIGNATURE-----\n\n{message}\n"
        );
        store.write(gix::objs::Kind::Commit, text.as_bytes()).unwrap()
    };
    let found = |oid: Oid| {
        let range = Range { tips: vec![oid], known: vec!["HEAD".into()] };
        secret_scan::new_objects(&|| store.git(), &range, &Gate::new(Vec::new())).unwrap().len()
    };
    let like_a_token = "3q/EAAAQ7w8E9r0T1y2U3i4O5p6A7s8D9f0G1h2J3k4L5z6";
    assert_eq!(found(commit(like_a_token, "m")), 0);
    assert_eq!(found(commit("AAAA", like_a_token)), 1);
    // Unsigned data is checked, too.
    assert_eq!(found(commit(&format!("AAAA {like_a_token}"), "m")), 1);
    assert_eq!(found(commit(&token(), "m")), 1);
}

#[test]
fn a_token_in_the_place_of_a_name_is_not_repeated() {
    let repo = TestRepo::new();
    let token = token();
    for args in [
        vec!["show", &token],
        vec!["show", "--json", &token],
        vec!["run", &token],
        vec!["retry", &token],
        vec![&token],
        vec!["thread", "log", &token],
        vec!["doc", "get", &token, &token],
        vec!["push", &token],
        vec!["status", "--json", &token],
    ] {
        let output = repo.env.handoff(&args);
        assert_ne!(output.status, Some(0), "{args:?}");
        assert!(!output.to_string().contains(PARTS.1), "{args:?}: {output}");
        assert!(output.to_string().contains("[redacted:github-token]"), "{args:?}: {output}");
    }
}

#[test]
fn an_attempts_folder_is_closed_and_only_names_of_ignored_files_travel() {
    let repo = TestRepo::new();
    repo.drive("r", &[item("i", "stat -c %a .. > outputs/mode")]).ends(0);
    assert_eq!(repo.env.handoff(["cat", "r/i:outputs/mode"]).success().trim(), "700");
    repo.env.write("repo/.gitignore", ".env\n");
    repo.env.write("repo/.env", "PIN=1234\n");
    repo.env.write("state.json", "{}");
    repo.env.handoff(["checkpoint", "t", "--state", "../state.json", "--worktree"]).success();
    let log = repo.env.handoff(["thread", "show", "--json", "t"]).success();
    let sum = repo.env.shell("repo", "sha256sum < .env").success();
    is_nowhere(&repo, &sum[..64]);
    assert!(log.contains(".env"), "{log}");
    assert_eq!(fs::metadata(repo.path("repo/.env")).unwrap().permissions().mode() & 0o777, 0o644);
}

#[test]
fn unset_secret_fails_the_attempt_by_name() {
    let repo = TestRepo::new();
    repo.config("handoff.executor.command.secretEnv", "GIVEN MISSING");
    let plan = repo.plan("r", &[item("a", "echo ran >$HOME/../ran")]);
    let run = |values: &str| repo.env.shell("repo", &format!("{values} git handoff run {plan}")).status;
    assert_eq!(run("GIVEN=given-value"), Some(4));
    let reason = "cannot read the secret MISSING of `handoff.executor.command.secretenv`: it is not set in the \
                  environment of `git handoff run`, or set to nothing";
    assert_eq!(repo.item("r", "a").reason, reason);
    repo.env.handoff(["retry", "r/a"]).success();
    assert_eq!(run("GIVEN=given-value MISSING="), Some(4));
    assert_eq!(repo.item("r", "a").reason, reason);
    assert!(!repo.path("ran").exists(), "nothing ran without it");
    repo.env.handoff(["retry", "r/a"]).success();
    assert_eq!(run("GIVEN=given-value MISSING=other-value"), Some(0));
}

#[test]
fn manifest_digests_tokens_in_command_lines() {
    let repo = TestRepo::new();
    let token = token();
    repo.config("handoff.executor.mine.command", &format!("test -n {token} && echo x >outputs/x"));
    repo.config("handoff.executor.mine.setup", &format!("true {token}"));
    repo.config("handoff.executor.command.verify", &format!("test -n {token}"));
    let items = [json!({ "id": "i", "executor": "mine" }), item("j", "echo y >outputs/y")];
    repo.drive("r", &items).ends(0);
    is_nowhere(&repo, &token);
    let manifest = |what: &str| -> serde_json::Value {
        serde_json::from_str(&repo.env.handoff(["cat", what]).success()).expect("a manifest is JSON")
    };
    let mine = manifest("r/i:manifest");
    assert_eq!(mine["argv"][2], "test -n [redacted:github-token] && echo x >outputs/x");
    assert_eq!(mine["setup"][2], "true [redacted:github-token]");
    let lines = json!({
        "argv": ["sh", "-c", format!("test -n {token} && echo x >outputs/x")], "setup": ["sh", "-c", format!("true {token}")], "verify": null,
    });
    let digest = git_handoff::model::format::digest_of(&lines);
    assert_eq!(mine["claims"]["commandDigest"], json!(digest));
    let own = manifest("r/j:manifest");
    assert_eq!(
        (&own["argv"][2], &own["verify"][2]),
        (&json!("echo y >outputs/y"), &json!("test -n [redacted:github-token]"))
    );
    repo.ends_intact("r");
    // The same lines are the same task, and another token makes it another one.
    repo.submit("same", &items);
    let same = repo.env.handoff(["run", "--reuse", "same"]).exit(0);
    assert_eq!(same.stdout.matches("done, reused").count(), 2, "{same}");
    let other = token.replace("Q7w8", "Z7z8");
    repo.config("handoff.executor.mine.command", &format!("test -n {other} && echo x >outputs/x"));
    repo.submit("other", &items);
    let run = repo.env.handoff(["run", "--reuse", "other"]).exit(0);
    insta::assert_snapshot!(run.stdout, @"
    ✓ i  done          1 attempt  outputs/x
    ✓ j  done, reused  1 attempt  from r/j; outputs/y
    other: 2 of 2 done, sealed
    check in the worker's worktree (j)
    ✓ check passed
    ─ no check for 1 item
    2 outputs
    proof ✓ intact, 6 entries, your key: git handoff verify other
    ");
    repo.config("handoff.executor.mine.command", "echo x >outputs/x");
    repo.config("handoff.executor.mine.setup", "true");
    repo.drive("plain", &items[..1]).ends(0);
    assert_eq!(manifest("plain/i:manifest").get("commandDigest"), None);
}

#[test]
fn a_token_in_a_plan_is_not_repeated_on_the_screen() {
    let repo = TestRepo::new();
    let token = token();
    let mut needy = item("i", "true");
    needy["depends_on"] = json!([token]);
    let mut mistyped = item("j", "true");
    mistyped["timeout"] = json!(token);
    mistyped[token.as_str()] = json!(1);
    let items = [json!({ "id": "k", "executor": token }), needy, mistyped];
    let plan = repo.plan("r", &items);
    for arguments in
        [vec!["validate", &plan], vec!["--json", "validate", &plan], vec!["submit", &plan], vec!["run", &plan]]
    {
        let output = repo.env.handoff(&arguments).exit(1);
        assert!(!format!("{output}").contains(&token), "{arguments:?}: {output}");
        assert!(output.stdout.matches("[redacted:github-token]").count() >= 3, "{arguments:?}: {output}");
    }
    is_nowhere(&repo, &token);
}
