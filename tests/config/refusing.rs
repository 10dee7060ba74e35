//! Misspelt settings and invalid values.

use git_handoff::repository::config::Error;
use serde_json::Value;

use super::read;
use crate::common::Environment;
use crate::common::clone::TestClone;
use crate::common::report::find_line;

#[test]
fn misspelt_settings_are_rejected_with_a_suggestion() {
    let clone = TestClone::new();
    let untouched = clone.read(".git/config");
    for (key, meant) in [
        ("handoff.maxItmes", Some("handoff.maxItems")),
        ("handoff.max-items", Some("handoff.maxItems")),
        ("handoff.signer", Some("handoff.signers")),
        ("handoff.singingkey", Some("handoff.signingKey")),
        ("handoff.workspace.rot", Some("handoff.workspace.root")),
        ("handoff.workspaces.root", Some("handoff.workspace.root")),
        ("handoff.Workspace.root", Some("handoff.workspace.root")),
        ("handoff.executor.claude.comand", Some("handoff.executor.claude.command")),
        ("handoff.executer.claude.command", Some("handoff.executor.claude.command")),
        ("handoff.Executor.Claude.v2.command", Some("handoff.executor.Claude.v2.command")),
        ("handoff.subagents.claude.secret-env", Some("handoff.subagent.claude.secretEnv")),
        ("handoff.executor.command", Some("handoff.executor.<name>.command")),
        ("handoff.queue.default.concurency", Some("handoff.queue.default.concurrency")),
        ("handoff.queue.max.maxAttempt", Some("handoff.queue.max.maxAttempts")),
        ("handoff.anchor.vault.garantee", Some("handoff.anchor.vault.guarantee")),
        ("handoff.anchor.vault.retention-days", Some("handoff.anchor.vault.retentionDays")),
        ("handoff.schema.note@1.paths", Some("handoff.schema.note@1.path")),
        ("handoff.shapes.s.path", Some("handoff.shape.s.path")),
        ("handoff..maxItems", None),
        ("handoff.sandbocks", Some("handoff.sandbox")),
        ("handoff.jail", None),
        ("handoff.queue.default.colour", None),
        ("handoff.command.queue.x", None),
    ] {
        clone.write(".git/config", &untouched);
        clone.git(&["config", key, "1"]);
        let Err(Error::Unknown { key: found, origin, nearest }) = read(&clone) else { panic!("{key} is taken") };
        assert!(found.eq_ignore_ascii_case(key), "{found}");
        assert_eq!(origin.unwrap().canonicalize().unwrap(), clone.root().canonicalize().unwrap().join(".git/config"));
        assert_eq!(nearest.as_deref(), meant, "{key}");
    }
}

#[test]
fn foreign_runs_are_left_alone() {
    let clone = TestClone::new();
    for key in ["handoffs.maxItems", "hand.off", "alias.handoff", "remote.handoff.url", "my.handoff.maxItmes"] {
        clone.git(&["config", key, "1"]);
    }
    assert_eq!(read(&clone).unwrap().warnings, [""; 0]);
}

#[test]
fn values_that_make_no_sense_are_refused() {
    let clone = TestClone::new();
    let untouched = clone.read(".git/config");
    for (key, value, why) in [
        ("handoff.maxItems", "many", "is not a whole number"),
        ("handoff.maxItems", "-1", "is not a whole number"),
        ("handoff.maxItems", "", "is not a whole number"),
        ("handoff.maxItems", "18446744073709551616", "is not a whole number"),
        ("handoff.maxProductSize", "1t", "is not a whole number"),
        ("handoff.maxProductSize", "18446744073709551615k", "is not a whole number"),
        ("handoff.maxFetchSize", "2 GiB", "is not a whole number"),
        ("handoff.maxCrashes", "4294967296", "is not a whole number"),
        ("handoff.heartbeat", "5", "is no duration such as `200ms`, `5s` or `2m`"),
        ("handoff.heartbeat", "10ms", "is not a duration from 100 ms to 3600000 ms"),
        ("handoff.executor.x.timeout", "1h", "is not a whole number"),
        ("handoff.executor.x.maxAttempts", "0", "is not between 1 and 100"),
        ("handoff.subagent.x.maxAttempts", "101", "is not between 1 and 100"),
        ("handoff.queue.x.maxAttempts", "1k", "is not between 1 and 100"),
        ("handoff.queue.x.concurrency", "0", "is less than 1"),
        ("handoff.executor.x.env", "NAME", "is not NAME=value"),
        ("handoff.durability", "Strict", "is neither `strict` nor `relaxed`"),
        ("handoff.workspace.keep", "perhaps", "is neither true nor false"),
        ("handoff.workspace.copy", "../x", "is not a path or pattern below the top of the work tree"),
        ("handoff.workspace.copy", "/etc/passwd", "is not a path or pattern below the top of the work tree"),
        ("handoff.workspace.link", ".git/config", "is not a path or pattern below the top of the work tree"),
        ("handoff.workspace.lfs", "perhaps", "is neither true nor false"),
        ("handoff.workspace.inputs", "a/b", "is not the name of one folder"),
        ("handoff.workspace.outputs", "..", "is not the name of one folder"),
        ("handoff.workspace.outputs", "", "is not the name of one folder"),
    ] {
        clone.write(".git/config", &untouched);
        clone.git(&["config", key, value]);
        let error = read(&clone).unwrap_err();
        let Error::Value { key: found, value: found_value, .. } = &error else { panic!("{key} = {value}: {error}") };
        assert!(found.eq_ignore_ascii_case(key) && found_value == value, "{error}");
        let file = clone.root().join(".git/config");
        let expected = format!("the setting `{found}` = {value:?} in {} {why}", file.display());
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn inputs_and_outputs_need_different_folders() {
    let clone = TestClone::new();
    let untouched = clone.read(".git/config");
    for (settings, refused) in [
        (&[("outputs", "inputs")][..], true),
        (&[("inputs", "outputs")], true),
        (&[("inputs", "Outputs")], true),
        (&[("inputs", "\u{e4}x"), ("outputs", "\u{c4}X")], true),
        (&[("inputs", "outputs"), ("outputs", "inputs")], false),
        (&[("inputs", "outputs.d")], false),
    ] {
        clone.write(".git/config", &untouched);
        for (name, folder) in settings {
            clone.git(&["config", &format!("handoff.workspace.{name}"), folder]);
        }
        let found = read(&clone);
        assert_eq!(matches!(found, Err(Error::OneFolder(..))), refused, "{settings:?}: {found:?}");
        assert_eq!(found.is_ok(), !refused, "{settings:?}: {found:?}");
    }
}

#[test]
fn folder_refusal_names_its_setting() {
    let env = Environment::example("handoff-dag");
    env.git(["config", "handoff.workspace.outputs", "INPUTS"]).success();
    let stderr = env.handoff(["runs"]).exit(1).stderr;
    assert!(
        stderr.contains(
            "`handoff.workspace.inputs` = \"inputs\" and `handoff.workspace.outputs` = \"INPUTS\" name one folder"
        ),
        "{stderr}"
    );
    assert!(env.shell("repo", &hint(&env, &stderr)).exit(0).stdout.contains("INPUTS"), "{stderr}");
}

#[test]
fn the_hint_mends_what_was_misspelt_in_the_file_that_it_stands_in() {
    let env = Environment::example("handoff-dag");
    for (file, path) in [
        ("repo/.git/config", "repo/.git/config"),
        ("repo/.handoff/config", "repo/.git/../.handoff/config"),
        ("home/gitconfig", "home/gitconfig"),
    ] {
        env.git(["config", "--file", &format!("../{file}"), "handoff.subagent.it's mine.comand", "echo 'a  b' \"$X\""])
            .success();
        let stderr = env.handoff(["runs"]).exit(1).stderr;
        assert_eq!(
            find_line(&stderr, "error: "),
            format!(
                "error: the setting `handoff.subagent.it's mine.comand` in $TEST/{path} is not known; did you mean \
                 `handoff.subagent.it's mine.command`?"
            )
        );
        assert!(!stderr.contains("echo"), "a value may be a secret: {stderr}");
        let _ = env.shell("repo", &hint(&env, &stderr)).exit(0);
        assert_eq!(env.handoff(["runs"]).success(), "");
        let stored =
            env.git(["config", "--file", &format!("../{file}"), "handoff.subagent.it's mine.command"]).success();
        assert_eq!(stored, "echo 'a  b' \"$X\"\n");
    }
}

#[test]
fn the_hint_removes_unknown_names() {
    let env = Environment::example("handoff-dag");
    env.git(["config", "handoff.jail", "bubblewrap"]).success();
    let stderr = env.handoff(["show", "r"]).exit(1).stderr;
    insta::assert_snapshot!(stderr, @"
    error: the setting `handoff.jail` in $TEST/repo/.git/config is not known
    hint: git config --file $TEST/repo/.git/config --unset-all handoff.jail
    ");
    let _ = env.shell("repo", &hint(&env, &stderr)).exit(0);
    assert_eq!(env.handoff(["runs"]).success(), "");
}

#[test]
fn settings_on_the_command_line_are_checked() {
    let env = Environment::example("handoff-dag");
    let stderr = env.shell("repo", "git -c handoff.maxItmes=1 handoff runs").exit(1).stderr;
    insta::assert_snapshot!(stderr, @"
    error: the setting `handoff.maxitmes` is not known; did you mean `handoff.maxItems`?
    hint: git config --show-origin --get-all handoff.maxitmes
    ");
}

#[test]
fn a_tracked_file_cannot_stop_a_command_by_a_setting_of_an_anchor() {
    let env = Environment::example("handoff-dag");
    env.git(["config", "--file", ".handoff/config", "handoff.anchor.vault.garantee", "detect"]).success();
    let stderr = env.handoff(["runs"]).exit(0).stderr;
    insta::assert_snapshot!(stderr, @"
    warning: `handoff.anchor.vault.garantee` is ignored: a file inside the work tree sets it, and a commit can change that file
    there are no runs here
    ");
}

#[test]
fn hints_quote_names_for_the_shell() {
    let env = Environment::example("handoff-dag");
    let (odd, team) = ("$(touch ran);touch ran", "repo/.handoff/config");
    let plain = std::fs::read_to_string(env.path().join(team)).unwrap();
    let mut messages = vec![env.handoff(["submit", "--queue", odd, "plan.json"]).exit(1).stderr];
    for (field, value) in [("concurrency", "none"), ("concurency", "1"), ("colour", "1")] {
        env.git(["config", "--file", ".handoff/config", &format!("handoff.queue.{odd}.{field}"), value]).success();
        messages.push(env.handoff(["runs"]).exit(1).stderr);
        env.write(team, &plain);
    }
    for message in messages {
        assert!(message.contains(odd), "{message}");
        let _ = env.shell("repo", &hint(&env, &message));
        assert!(!env.repo().join("ran").exists(), "{message}");
    }
}

/// Returns the hint of a failure, as it can be pasted.
fn hint(env: &Environment, stderr: &str) -> String {
    let hint = stderr.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap();
    hint.replace("$TEST", env.path().to_str().unwrap())
}

#[test]
fn doctor_reports_every_invalid_setting() {
    let env = Environment::example("handoff-dag");
    let wrong =
        [("jail", "bubblewrap"), ("network", "everything"), ("workspace.inputs", "outputs"), ("sandbox", "auto")];
    for (key, value) in wrong {
        env.git(["config", &format!("handoff.{key}"), value]).success();
    }
    // A file inside the work tree that counts where it is stricter.
    env.write("repo/tracked.cfg", "[handoff]\n\tsandbox = strikt\n");
    env.git(["config", "include.path", "../tracked.cfg"]).success();
    let answer: Value = serde_json::from_str(&env.handoff(["--json", "doctor"]).exit(3).stdout).unwrap();
    let findings = answer["findings"].as_array().unwrap();
    let messages: Vec<&str> = findings.iter().map(|finding| finding["message"].as_str().unwrap()).collect();
    assert_eq!(
        messages,
        [
            "the setting `handoff.jail` in $TEST/repo/.git/config is not known",
            "the setting `handoff.network` = \"everything\" in $TEST/repo/.git/config is neither `any` nor `loopback` \
             nor `none`",
            "`handoff.workspace.inputs` = \"outputs\" and `handoff.workspace.outputs` = \"outputs\" name one folder: \
             what an item consumes would be taken for what it made",
            "nothing else was looked at, which takes settings that can be read",
        ]
    );
    assert!(findings.iter().filter(|it| it["severity"] == "problem").all(|it| it["hint"].is_string()), "{answer}");
    let text = env.handoff(["doctor"]).exit(3).stdout;
    assert_eq!(text.matches("problem: ").count(), 3, "{text}");
    env.git(["config", "--unset", "handoff.jail"]).success();
    env.git(["config", "--unset", "handoff.network"]).success();
    env.git(["config", "--unset", "handoff.workspace.inputs"]).success();
    insta::assert_snapshot!(env.handoff(["doctor"]), @"
    ------- stderr -------
    warning: `handoff.sandbox` is ignored: a file inside the work tree sets it, and a commit can change that file
    nothing to complain about
    ");
}
