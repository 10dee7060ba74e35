//! Long answers on a terminal go through a pager, as git decides it; `script` is the terminal.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::report::find_line;
use crate::common::{Environment, finished};

/// A pager that marks each line.
const MARKS: &str = "sed 's/^/> /'";

/// Runs a line of shell on a terminal; returns what the terminal showed, and the exit code.
pub(super) fn on_terminal(env: &Environment, line: &str, variables: &[(&str, &str)]) -> (String, i32) {
    let mut command: Command = env.command("script", "repo");
    command.env("TERM", "xterm").envs(variables.iter().copied());
    let output = command.args(["--quiet", "--return", "--command", line, "/dev/null"]).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap().replace('\r', "");
    (stdout, output.status.code().unwrap())
}

/// Returns whether every line, of which there are some, went through [`MARKS`].
fn is_marked(screen: &str) -> bool {
    !screen.is_empty() && screen.lines().all(|line| line.starts_with("> "))
}

#[test]
fn long_answers_are_paged_and_others_are_not() {
    let env = finished();
    env.write("state", "gathered\n");
    env.handoff(["checkpoint", "research", "--state", "../state"]).success();
    let paged = ["runs", "status R", "log R", "show R", "show R/make", "verify R", "lineage R/make", "whence HEAD"];
    let threads = ["thread list", "thread show research", "thread log research", "thread verify research"];
    for line in paged.into_iter().chain(threads) {
        let line = format!("git-handoff {}", line.replace('R', "handoff-dag-1").replace("make", "edit-a"));
        let plain = env.shell("repo", &line);
        let (screen, code) = on_terminal(&env, &line, &[("PAGER", MARKS)]);
        assert!(is_marked(&screen), "{line}: {screen}");
        assert_eq!(Some(code), plain.status, "{line}");
        // The same in a pipe, and without marks if git uses no pager.
        assert!(!plain.stdout.contains("> "), "{plain}");
        assert!(!on_terminal(&env, &line, &[("PAGER", "cat")]).0.contains("> "));
    }
    for line in
        ["verify handoff-dag-1 --json", "log -f handoff-dag-1", "watch handoff-dag-1", "thread cat research", "key"]
    {
        let (screen, code) = on_terminal(&env, &format!("git-handoff {line}"), &[("PAGER", MARKS)]);
        assert!(code == 0 && !screen.is_empty() && !screen.contains("> "), "{line}: {screen}");
    }
}

#[test]
fn pager_follows_git_configuration() {
    let env = finished();
    let by = |name: &str| format!("sed 's/^/{name}> /'");
    let pager_of = |line: &str, variables: &[(&str, &str)]| {
        let (screen, code) = on_terminal(&env, line, variables);
        assert_eq!(code, 0, "{line}: {screen}");
        screen.split_once("> ").map_or_else(|| "none".to_owned(), |(name, _)| name.to_owned())
    };
    let (pager, git_pager) = (by("PAGER"), by("GIT_PAGER"));
    let both = [("PAGER", pager.as_str()), ("GIT_PAGER", git_pager.as_str())];
    let one = &both[..1];
    for program in ["git handoff", "git-handoff"] {
        let line = format!("{program} runs");
        assert_eq!(pager_of(&line, one), "PAGER");
        assert_eq!(pager_of(&line, &both), "GIT_PAGER");
        assert_eq!(pager_of(&line, &[("PAGER", "")]), "none");
        // No second pager inside a pager.
        assert_eq!(pager_of(&line, &[both[0], ("GIT_PAGER_IN_USE", "true")]), "none");
        env.git(["config", "core.pager", &by("core")]).success();
        assert_eq!(pager_of(&line, one), "core");
        for (value, expected) in [("true", "core"), ("false", "none"), (by("own").as_str(), "own")] {
            env.git(["config", "pager.handoff", value]).success();
            assert_eq!(pager_of(&line, one), expected, "{line} {value}");
        }
        env.git(["config", "--unset", "pager.handoff"]).success();
        env.git(["config", "core.pager", "cat"]).success();
        assert_eq!(pager_of(&line, one), "none");
        env.git(["config", "--unset", "core.pager"]).success();
    }
    assert_eq!(pager_of("git --no-pager handoff runs", one), "none");
    // Here git begins the pager itself.
    assert_eq!(pager_of("git --paginate handoff key", one), "PAGER");
    assert_eq!(on_terminal(&env, "git --paginate handoff runs", one).0.matches("PAGER> ").count(), 1);
}

#[test]
fn pager_gets_the_environment_and_colour_of_git() {
    let env = finished();
    let pager_output = |variables: &[(&str, &str)]| on_terminal(&env, "git-handoff runs", variables).0;
    let echo = "sh -c 'cat >/dev/null; echo $LESS $LV'";
    assert_eq!(pager_output(&[("PAGER", echo)]), "FRX -c\n");
    assert_eq!(pager_output(&[("PAGER", echo), ("LESS", "R"), ("LV", "")]), "R\n");
    let colours = |line: &str, more: &str| {
        let line = format!("env -u NO_COLOR {more} {line}");
        on_terminal(&env, &line, &[("PAGER", MARKS)]).0.contains("\u{1b}[32m")
    };
    for line in ["git-handoff verify handoff-dag-1", "git --paginate handoff verify handoff-dag-1"] {
        assert!(colours(line, "") && !colours(line, "NO_COLOR=1") && !colours(line, "TERM=dumb"), "{line}");
        env.git(["config", "color.pager", "false"]).success();
        assert!(!colours(line, ""), "{line}");
        env.git(["config", "color.handoff", "always"]).success();
        assert!(colours(line, ""), "{line}");
        env.git(["config", "--unset", "color.handoff"]).success();
        env.git(["config", "--unset", "color.pager"]).success();
    }
}

#[test]
fn exit_code_ignores_the_pager() {
    let env = finished();
    env.git(["update-ref", "refs/handoff/logs/none", "HEAD"]).success();
    let exact = env.handoff(["verify", "handoff-dag-1", "none"]).status.unwrap();
    assert_ne!(exact, 0, "something is to be told by it");
    for pager in ["head -c 1", "exec <&-; exit 3", "sh -c 'kill -9 $$'", MARKS] {
        let (screen, code) = on_terminal(&env, "git-handoff verify handoff-dag-1 none", &[("PAGER", pager)]);
        assert_eq!(code, exact, "{pager}: {screen}");
        assert!(
            !screen.contains("Broken pipe") && !screen.lines().any(|line| line.starts_with("error: ")),
            "{pager}: {screen}"
        );
        assert_eq!(on_terminal(&env, "git-handoff verify handoff-dag-1", &[("PAGER", pager)]).1, 0, "{pager}");
    }
}

#[test]
fn messages_stand_where_the_answer_does() {
    let env = Environment::example("handoff-dag");
    env.write("state", "gathered\n");
    for thread in ["research", "writing"] {
        env.handoff(["checkpoint", thread, "--state", "../state"]).success();
    }
    env.git(["update-ref", "-d", "refs/handoff/threads/writing"]).success();
    let (screen, code) = on_terminal(&env, "git-handoff thread verify --all", &[("PAGER", MARKS)]);
    assert!(code == 3 && is_marked(&screen), "{screen}");
    insta::assert_snapshot!(find_line(&screen, "> error: "), @"> error: the ref refs/handoff/threads/writing is gone, but the log refs/handoff/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg holds the thread");
    let (redirected_screen, _) =
        on_terminal(&env, "git-handoff thread verify --all 2>said; cat said", &[("PAGER", MARKS)]);
    // Output that goes to a file stays plain.
    insta::assert_snapshot!(find_line(&redirected_screen, "error: "), @"error: the ref refs/handoff/threads/writing is gone, but the log refs/handoff/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg holds the thread");
    // An early failure starts no pager.
    let (error_screen, second_code) = on_terminal(&env, "git-handoff thread show writing", &[("PAGER", MARKS)]);
    assert!(second_code == 1 && error_screen.starts_with("error:"), "{error_screen}");
}

#[test]
fn missing_pager_is_reported() {
    let env = finished();
    let (screen, code) = on_terminal(&env, "git-handoff runs", &[("PAGER", "no-such-pager")]);
    assert_eq!(code, 0, "{screen}");
    insta::assert_snapshot!(screen, @"
    warning: the pager could not be started, and the answer comes without: No such
      file or directory (os error 2)
    handoff-dag-1  default  sealed  2026-06-04 02:00Z  human:ada  2 done
    ");
    let (quiet_screen, second_code) = on_terminal(&env, "git-handoff runs", &[("PAGER", "no-such-pager --quiet")]);
    assert_eq!(second_code, 0, "{quiet_screen}");
    insta::assert_snapshot!(quiet_screen, @r#"
    sh: 1: no-such-pager: not found
    warning: the pager "no-such-pager --quiet" is no command that can be run, and
      the answer was lost with it
    hint: git --no-pager handoff   # or name another: git config core.pager less
    "#);
}

#[test]
fn an_interrupt_gets_the_terminal_back_from_the_pager() {
    let env = finished();
    let pager = "trap '' INT; cat >/dev/null; kill -INT $PPID; sleep 1; echo the pager ended";
    let began = Instant::now();
    let (screen, code) = on_terminal(&env, "git-handoff runs", &[("PAGER", pager)]);
    assert_eq!(screen, "the pager ended\n");
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert!(matches!(code, 0 | 130), "{code}");
}
