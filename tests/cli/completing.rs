//! Completions of a command line.

use std::process::Stdio;

use crate::common::repo::{TestRepo, item};

fn completions(repo: &TestRepo, words: &[&str]) -> Vec<String> {
    let stdout = repo.env.handoff([&["complete", "--"], words].concat()).success();
    stdout.lines().map(str::to_owned).collect()
}

/// A repository with two runs of ours, one fetched, a thread and a remote.
fn repo() -> TestRepo {
    let repo = TestRepo::new();
    repo.drive("alpha", &[item("one", "true"), item("two", "true")]).ends(0);
    repo.env.git_in(".", ["init", "--quiet", "--bare", "hub"]).success();
    repo.env.git(["remote", "add", "origin", "../hub"]).success();
    repo.env.git(["push", "--quiet", "origin", "main"]).success();
    repo.env.handoff(["push", "origin", "--all"]).success();
    repo.env.handoff(["fetch", "origin"]).success();
    repo.submit("beta", &[item("one", "true")]);
    repo.env.write("state", "x");
    repo.env.handoff(["checkpoint", "login", "--state", "../state"]).success();
    repo
}

#[test]
fn complete_lists_commands_flags_and_local_names() {
    let repo = repo();
    for (words, expected) in [
        (&["sta"][..], &["status"][..]),
        (&["thread", "l"], &["list", "log"]),
        (&["verify", "--require-t"], &["--require-trusted"]),
        (&["verify", "--require", "tamper-"], &["tamper-detecting", "tamper-evident"]),
        (&["status", ""], &["@", "alpha", "beta", "origin/alpha"]),
        (&["verify", "alpha", "be"], &["beta"]),
        (&["show", "alpha/"], &["alpha/one", "alpha/two"]),
        (&["show", "origin/alpha/t"], &["origin/alpha/two"]),
        (&["retry", "b"], &["beta"]),
        (&["push", "or"], &["origin"]),
        (&["push", "origin", ""], &["@", "alpha", "beta", "login", "origin/alpha"]),
        (&["checkpoint", "l"], &["login"]),
        (&["resume", "--json", "lo"], &["login"]),
        (&["completions", ""], &["bash", "fish", "zsh"]),
        (&["submit", "--queue", ""], &[]),
        (&["no-such-command", "x"], &[]),
        (&[], &[]),
    ] {
        assert_eq!(completions(&repo, words), expected, "{words:?}");
    }
    assert!(!completions(&repo, &[""]).iter().any(|word| word == "complete"));
    // Outside a repository, commands are still completed.
    let stdout = repo.env.handoff_in("home", ["complete", "--", "sta"]).success();
    assert_eq!(stdout, "status\n");
    repo.env.handoff(["completions", "tcsh"]).ends(2);
}

#[test]
fn bash_asks_for_the_words_of_its_line() {
    let repo = repo();
    let script = repo.env.handoff_in("home", ["completions", "bash"]).success();
    repo.env.write("completion.bash", &script);
    let bash = |line: &str| {
        let mut command = repo.env.command("bash", "repo");
        let line = format!("source ../completion.bash; {line}; printf '%s\\n' \"${{COMPREPLY[@]}}\"");
        let output = command.args(["--norc", "-ec", &line]).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(
        bash("COMP_WORDS=(git-handoff show alpha/); COMP_CWORD=2; _git_handoff_alone"),
        "alpha/one\nalpha/two\n"
    );
    assert_eq!(
        bash("COMP_WORDS=(git-handoff status ''); COMP_CWORD=2; _git_handoff_alone"),
        "@\nalpha\nbeta\norigin/alpha\n"
    );
    // As git's own completion calls it.
    let git = "words=(git -C . handoff status b); cword=5; __git_cmd_idx=3; _git_handoff";
    assert_eq!(bash(git), "beta\n");
}

#[test]
fn the_scripts_are_ones_that_their_shells_read() {
    let repo = TestRepo::new();
    for (shell, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let script = repo.env.handoff(["completions", shell]).success();
        assert!(script.contains("git-handoff complete --"), "{script}");
        repo.env.write("script", &script);
        let mut command = repo.env.command(shell, ".");
        match command.args([check, "script"]).stdin(Stdio::null()).output() {
            Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
            Err(error) => println!("{shell} is not here: {error}"),
        }
    }
}
