//! `git handoff init`: what it writes, what it asks, and what it leaves alone.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

use std::ffi::OsStr;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use git_handoff::repository::config::PRESETS;
use serde_json::{Value, json};

use crate::common::report::find_line;
use crate::common::{Environment, Output, assert_output, program_path};

/// Returns an environment with a repository that has files, a commit, and no settings of its own.
fn plain(files: &[(&str, &str)]) -> Environment {
    let env = Environment::empty();
    env.git_in(".", ["init", "--quiet", "repo"]).success();
    for (path, text) in files {
        env.write(&format!("repo/{path}"), text);
    }
    env.git(["add", "--all"]).success();
    env.git(["commit", "--quiet", "--allow-empty", "--message", "Start"]).success();
    // Only the commands that the tests name are found.
    fs::create_dir(env.path().join("bin")).unwrap();
    for program in ["git", "sh", "script"] {
        let found = env.shell(".", &format!("command -v {program}")).success();
        symlink(found.trim(), env.path().join("bin").join(program)).unwrap();
    }
    env
}

fn cargo() -> Environment {
    plain(&[("Cargo.toml", "[package]\n"), ("tests/it.rs", ""), ("src/lib.rs", "")])
}

/// Puts a program on the `PATH` that [`command`] gives.
fn install(env: &Environment, program: &str, text: &str) {
    let path = env.path().join("bin").join(program);
    let _ = fs::remove_file(&path);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Returns a command that finds the programs of the environment's `bin`, ours, and no others.
fn command(env: &Environment, program: impl AsRef<OsStr>, dir: &str) -> Command {
    let own = Path::new(program_path()).parent().unwrap();
    let mut command = env.command(program, dir);
    command.env("PATH", format!("{}:{}", env.path().join("bin").display(), own.display()));
    command
}

/// Runs `git handoff init` with these options.
fn init(env: &Environment, options: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = command(env, program_path(), "repo");
    command.arg("init").args(options).envs(variables.iter().copied());
    let output = env.ended(command);
    Output { stderr: without_presets(&output.stderr), ..output }
}

/// Replaces what changes with the known agents.
fn without_presets(text: &str) -> String {
    let known: Vec<&str> = PRESETS.keys().map(String::as_str).collect();
    text.replace(&known.join(", "), "$KNOWN").replace(&PRESETS["claude"].pass.join(" "), "$PASS")
}

/// Runs `git handoff init` on a terminal. Each of the keys is typed after a question.
/// Returns the screen and the exit code.
fn typed(env: &Environment, options: &str, keys: &[&str]) -> (String, i32) {
    let stty = env.shell(".", "command -v stty").success();
    let line = format!("{} -echo rows 50 cols 400; git handoff init {options}", stty.trim());
    let mut command = command(env, env.path().join("bin/script"), "repo");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("TERM", "xterm").env("SHELL", "/bin/sh");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut keyboard, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut received, mut keys, mut piece) = (Vec::new(), keys.iter(), [0; 4096]);
    loop {
        let length = screen.read(&mut piece).unwrap();
        received.extend_from_slice(&piece[..length]);
        if length == 0 {
            break;
        }
        if received.ends_with(b"]\r\n") || received.ends_with(b".git/config:\r\n") {
            let key = keys.next().unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&received)));
            keyboard.write_all(key.as_bytes()).unwrap();
        }
    }
    assert_eq!(keys.next(), None, "{}", String::from_utf8_lossy(&received));
    let text = String::from_utf8(received).unwrap().replace('\r', "");
    let normalised = text.replace(&env.path().display().to_string(), "$TEST");
    (without_presets(&normalised), child.wait().unwrap().code().unwrap())
}

/// Returns the repository's own settings of git-handoff and its remotes.
fn settings(env: &Environment) -> String {
    let keys = "^(handoff|remote)[.]";
    let listed = env.git(["config", "--local", "--get-regexp", keys]).stdout;
    without_commands(&listed)
}

/// Leaves out the command lines of agents, which change with their versions.
fn without_commands(text: &str) -> String {
    let is_other = |line: &&str| !line.contains(".codex.command ") && !line.contains(".claude.command ");
    without_presets(&text.lines().filter(is_other).collect::<Vec<_>>().join("\n"))
}

#[test]
fn options_write_the_lines_and_the_same_options_change_nothing() {
    let env = cargo();
    install(&env, "claude", "#!/bin/sh\n");
    fs::create_dir(env.path().join("home/.claude")).unwrap();
    let options =
        ["--yes", "--agent", "claude", "--check", "cargo test", "--protect", "tests", "--protect", "Cargo.toml"];
    let key = [("ANTHROPIC_API_KEY", "secret")];
    let first = init(&env, &options, &key).exit(0);
    assert!(first.stdout.ends_with("in this directory. Read inputs/, write results to outputs/.'\n"), "{first}");
    assert!(
        first.stderr.contains("in $TEST/repo/.git/config\nhint: git handoff record --agent claude TASK "),
        "{first}"
    );
    assert_output!(settings(&env), @r"
    handoff.subagent.claude.env IS_SANDBOX=1
    handoff.subagent.claude.versioncommand claude --version
    handoff.subagent.claude.passenv $PASS
    handoff.subagent.claude.secretenv ANTHROPIC_API_KEY
    handoff.subagent.claude.private ~/.claude
    handoff.subagent.claude.verify cargo test
    handoff.protect tests
    handoff.protect Cargo.toml
    ");
    let before = fs::read(env.repo().join(".git/config")).unwrap();
    assert_output!(init(&env, &options, &key), @r"
    ------- stderr -------
    nothing to change: $TEST/repo/.git/config has these lines already
    ");
    assert_eq!(fs::read(env.repo().join(".git/config")).unwrap(), before);
    // The agent is registered for plans.
    env.handoff(["doctor"]).success();
}

#[test]
fn other_answers_replace_lines_and_show_them_and_what_a_person_added_stays() {
    let env = cargo();
    init(&env, &["--yes", "--agent", "codex", "--check", "cargo test", "--protect", "tests"], &[]).ends(0);
    for (key, value) in [
        ("handoff.subagent.codex.readable", "/opt/data"),
        ("handoff.subagent.codex.secretEnv", "CODEX_API_KEY=!pass show codex"),
        ("handoff.subagent.codex.timeout", "60"),
        ("handoff.protect", "ci"),
    ] {
        env.git(["config", "--add", key, value]).success();
    }
    let key = [("CODEX_API_KEY", "secret")];
    // Without --protect, there is no question about protected files.
    let stdout = init(&env, &["--yes", "--agent", "codex", "--check", "make test"], &key).success();
    assert_output!(without_commands(&stdout), @r"
    - handoff.subagent.codex.verify = cargo test
    + handoff.subagent.codex.verify = make test
      handoff.subagent.codex.versionCommand = codex --version
      handoff.subagent.codex.readable = /opt/data
      handoff.subagent.codex.secretEnv = CODEX_API_KEY=!pass show codex
      handoff.subagent.codex.timeout = 60
      handoff.protect = tests
      handoff.protect = ci
    ");
    let answer = init(&env, &["--yes", "--agent", "codex", "--check", "", "--protect", "ci", "--json"], &key);
    let answer: Value = serde_json::from_str(&answer.success()).unwrap();
    assert_eq!(answer["schema"], "git-handoff.init/1");
    assert_eq!(answer["added"], json!([]));
    assert_eq!(
        answer["removed"],
        json!([
            {"key": "handoff.subagent.codex.verify", "value": "make test"},
            {"key": "handoff.protect", "value": "tests"},
        ])
    );
    let unchanged: Vec<&str> =
        answer["kept"].as_array().unwrap().iter().map(|it| it["key"].as_str().unwrap()).collect();
    assert!(
        unchanged.contains(&"handoff.subagent.codex.secretEnv") && unchanged.contains(&"handoff.protect"),
        "{unchanged:?}"
    );
    assert_output!(settings(&env), @r"
    handoff.subagent.codex.versioncommand codex --version
    handoff.subagent.codex.readable /opt/data
    handoff.subagent.codex.secretenv CODEX_API_KEY=!pass show codex
    handoff.subagent.codex.timeout 60
    handoff.protect ci
    ");
}

#[test]
fn wrong_answers_are_refused_and_nothing_is_written() {
    let env = cargo();
    let before = fs::read(env.repo().join(".git/config")).unwrap();
    assert_output!(init(&env, &[], &[]), @r"
    ------- stderr -------
    error: init needs --yes where there is no terminal to ask on; nothing was written
    hint: git handoff init --yes --agent NAME --check COMMAND
    [exit status: 2]
    ");
    assert_output!(init(&env, &["--yes"], &[]), @r"
    ------- stderr -------
    error: --yes needs an answer: --agent, --check, --protect or --share; nothing was written
    hint: git handoff init --yes --agent NAME --check COMMAND
    [exit status: 2]
    ");
    assert_output!(init(&env, &["--yes", "--agent", "Cladue", "--check", "true"], &[]), @r#"
    ------- stderr -------
    error: the agent "Cladue" is unknown; known agents: $KNOWN
    hint: did you mean "claude"?
    [exit status: 1]
    "#);
    assert_output!(init(&env, &["--yes", "--agent", "xyz"], &[]), @r#"
    ------- stderr -------
    error: the agent "xyz" is unknown; known agents: $KNOWN
    hint: git config handoff.subagent.NAME.command 'COMMAND'
    [exit status: 1]
    "#);
    assert_output!(init(&env, &["--yes", "--agent", "claude", "--protect", "../x"], &[]), @r#"
    ------- stderr -------
    error: the pathspec "../x" leads out of the repository; name a path from its top
    [exit status: 1]
    "#);
    assert_output!(init(&env, &["--yes", "--share"], &[]), @r"
    ------- stderr -------
    error: cannot share runs: the repository has no remote
    hint: git remote add origin URL
    [exit status: 1]
    ");
    assert_eq!(fs::read(env.repo().join(".git/config")).unwrap(), before);
    let mut outside = command(&env, program_path(), "home");
    outside.args(["init", "--yes", "--check", "true"]);
    assert_output!(env.ended(outside), @r"
    ------- stderr -------
    error: not in a git repository: $TEST/home
    hint: git init
    [exit status: 1]
    ");
}

#[test]
fn a_failed_write_names_what_is_in() {
    let env = cargo();
    let git = fs::canonicalize(env.path().join("bin/git")).unwrap();
    let broken = format!(
        "#!/bin/sh\ncase \"$*\" in *--add*handoff.protect*) echo no >&2; exit 4 ;; esac\nexec {} \"$@\"\n",
        git.display()
    );
    install(&env, "git", &broken);
    let options = ["--yes", "--agent", "codex", "--check", "cargo test", "--protect", "tests"];
    let failed = init(&env, &options, &[]).exit(1);
    let expected = "error: cannot write the setting `handoff.protect`; these were written before it: \
                  `handoff.subagent.codex.versionCommand`, `handoff.subagent.codex.verify`\n";
    assert!(failed.stderr.contains(expected), "{failed}");
    assert!(failed.stderr.ends_with("hint: run the same command again\n"), "{failed}");
    // Nothing is registered before everything else is in.
    assert!(!fs::read_to_string(env.repo().join(".git/config")).unwrap().contains("command"));
    fs::remove_file(env.path().join("bin/git")).unwrap();
    symlink(git, env.path().join("bin/git")).unwrap();
    env.write("repo/.git/config.lock", "");
    let locked = init(&env, &options, &[]);
    insta::assert_snapshot!(find_line(&locked.stderr, "caused by: cannot write"), @"caused by: cannot write the setting `handoff.protect`; nothing was written");
    fs::remove_file(env.repo().join(".git/config.lock")).unwrap();
    init(&env, &options, &[]).ends(0);
    assert_output!(settings(&env), @r"
    handoff.subagent.codex.versioncommand codex --version
    handoff.subagent.codex.verify cargo test
    handoff.protect tests
    ");
}

#[test]
fn worktrees_subdirectories_and_bare_repositories_are_set_up() {
    let env = cargo();
    env.git(["worktree", "add", "--quiet", "-b", "odd", "../an odd  näme"]).success();
    env.git_in(".", ["clone", "--quiet", "--bare", "repo", "bare"]).success();
    for (dir, config) in
        [("repo/src", "repo/.git/config"), ("an odd  näme", "repo/.git/config"), ("bare", "bare/config")]
    {
        let mut command = command(&env, program_path(), dir);
        command.args(["init", "--json", "--yes", "--check", &format!("check {dir}")]);
        let answer: Value = serde_json::from_str(&env.ended(command).success()).unwrap();
        assert_eq!(answer["file"], format!("$TEST/{config}"), "{dir}");
        let verify = env.git_in(dir, ["config", "--local", "handoff.executor.command.verify"]).success();
        assert_eq!(verify, format!("check {dir}\n"));
    }
}

#[test]
fn the_questions_offer_what_is_there() {
    let env = cargo();
    install(&env, "codex", "#!/bin/sh\n");
    let (screen, code) = typed(&env, "", &["\n", "\n", "\n", "yes\n"]);
    assert_output!(without_commands(&screen), @r"
    Enter takes the answer in brackets.
    Known agents: $KNOWN. On PATH: codex.
    Which agent does the work? A name, or none: [codex]
    Which command checks the work? [cargo test]
    Files that decide whether work is good:
      tests
      Cargo: /.cargo, .cargo/**, /build.rs, /crates/*/build.rs, /crates/*/tests/**, rust-toolchain, rust-toolchain.toml, .config/nextest.toml, clippy.toml, .clippy.toml, rustfmt.toml, .rustfmt.toml
    Which files must workers not change? Pathspecs, or none: [these]
    warning: Codex CLI has neither a key nor a login here: set CODEX_API_KEY or log in, and run `git handoff init` again
    not protected, since honest work changes it: Cargo.toml; protect it with git config --add handoff.protect Cargo.toml
    + handoff.subagent.codex.versionCommand = codex --version
    + handoff.subagent.codex.verify = cargo test
    + handoff.protect = tests
    + handoff.protect = 12 lines for Cargo: /.cargo, .cargo/**, /build.rs, /crates/*/build.rs, /crates/*/tests/**, rust-toolchain, rust-toolchain.toml, .config/nextest.toml, clippy.toml, .clippy.toml, rustfmt.toml, .rustfmt.toml
    + handoff.onProtectedChange = judge
    type yes to make these changes in $TEST/repo/.git/config:
    changed 17 lines in $TEST/repo/.git/config
    hint: git handoff record --agent codex TASK   # or write a plan: git handoff plan new
    ");
    assert_eq!(code, 0);
    assert_output!(settings(&env), @r"
    handoff.subagent.codex.versioncommand codex --version
    handoff.subagent.codex.verify cargo test
    handoff.protect tests
    handoff.protect .cargo
    handoff.protect :(glob)**/.cargo/**
    handoff.protect build.rs
    handoff.protect :(glob)crates/*/build.rs
    handoff.protect :(glob)crates/*/tests/**
    handoff.protect :(glob)**/rust-toolchain
    handoff.protect :(glob)**/rust-toolchain.toml
    handoff.protect :(glob)**/.config/nextest.toml
    handoff.protect :(glob)**/clippy.toml
    handoff.protect :(glob)**/.clippy.toml
    handoff.protect :(glob)**/rustfmt.toml
    handoff.protect :(glob)**/.rustfmt.toml
    handoff.onprotectedchange judge
    ");
    // The answers of before are offered.
    let (second_screen, second_code) = typed(&env, "", &["\n", "\n", "\n"]);
    assert_output!(second_screen, @r"
    Enter takes the answer in brackets.
    Known agents: $KNOWN. On PATH: codex.
    Which agent does the work? A name, or none: [codex]
    Which command checks the work? [cargo test]
    Files that decide whether work is good:
      tests
      Cargo: /.cargo, .cargo/**, /build.rs, /crates/*/build.rs, /crates/*/tests/**, rust-toolchain, rust-toolchain.toml, .config/nextest.toml, clippy.toml, .clippy.toml, rustfmt.toml, .rustfmt.toml
    Which files must workers not change? Pathspecs, or none: [these]
    warning: Codex CLI has neither a key nor a login here: set CODEX_API_KEY or log in, and run `git handoff init` again
    nothing to change: $TEST/repo/.git/config has these lines already
    ");
    assert_eq!(second_code, 0);
}

#[test]
fn a_no_the_end_of_input_and_ctrl_c_write_nothing() {
    let env = cargo();
    let before = fs::read(env.repo().join(".git/config")).unwrap();
    for (keys, expected_code) in [
        (&["\n", "\n", "\n", "no\n"][..], 1),
        (&["\n", "\n", "\n", "\n"], 1),
        (&["\n", "\x04"], 1),
        (&["\n", "\n", "\n", "\x04"], 1),
        (&["\n", "\x03"], 130),
        (&["\n", "\n", "\n", "\x03"], 130),
    ] {
        let (screen, code) = typed(&env, "", keys);
        assert_eq!(code, expected_code, "{keys:?}: {screen}");
        assert_eq!(expected_code == 1, screen.lines().last() == Some("nothing was written"), "{keys:?}: {screen}");
        assert_eq!(fs::read(env.repo().join(".git/config")).unwrap(), before, "{keys:?}");
    }
}

#[test]
fn init_repeats_wrong_answers_and_skips_given_options() {
    let env = cargo();
    env.git_in(".", ["init", "--quiet", "--bare", "hub"]).success();
    env.git(["remote", "add", "origin", "../hub"]).success();
    let keys = ["gpt\n", "none\n", "'open\n", "/etc\n", "'tests' \"my docs\"\n", "perhaps\n", "yes\n", "yes\n"];
    let (screen, code) = typed(&env, "--check 'make check'", &keys);
    assert_output!(screen, @r#"
    Enter takes the answer in brackets.
    Known agents: $KNOWN. On PATH: none.
    Which agent does the work? A name, or none: [none]
    warning: "gpt" is no known agent
    Which agent does the work? A name, or none: [none]
    Files that decide whether work is good:
      tests
      Cargo: /.cargo, .cargo/**, /build.rs, /crates/*/build.rs, /crates/*/tests/**, rust-toolchain, rust-toolchain.toml, .config/nextest.toml, clippy.toml, .clippy.toml, rustfmt.toml, .rustfmt.toml
    Which files must workers not change? Pathspecs, or none: [these]
    warning: a quote is not closed
    Which files must workers not change? Pathspecs, or none: [these]
    warning: the pathspec "/etc" leads out of the repository; name a path from its top
    Which files must workers not change? Pathspecs, or none: [these]
    Remotes: origin.
    Should git fetch bring runs? yes, no, or a remote: [no]
    warning: "perhaps" is neither yes nor no nor a remote
    Should git fetch bring runs? yes, no, or a remote: [no]
    warning: the pathspec "my docs" selects no committed file, so it protects nothing yet
    + handoff.executor.command.verify = make check
    + handoff.protect = tests
    + handoff.protect = my docs
    + remote.origin.fetch = refs/handoff/*:refs/handoff/remotes/origin/*
    type yes to make these changes in $TEST/repo/.git/config:
    changed 4 lines in $TEST/repo/.git/config
    hint: git handoff plan new
    "#);
    assert_eq!(code, 0);
    assert_output!(settings(&env), @r"
    remote.origin.url ../hub
    remote.origin.fetch +refs/heads/*:refs/remotes/origin/*
    remote.origin.fetch refs/handoff/*:refs/handoff/remotes/origin/*
    handoff.executor.command.verify make check
    handoff.protect tests
    handoff.protect my docs
    ");
    // A no takes the refspec out, and shows it.
    let (refused_screen, second_code) =
        typed(&env, "--agent none --check 'make check' --protect tests", &["no\n", "yes\n"]);
    assert!(
        refused_screen.contains("- remote.origin.fetch = refs/handoff/*:refs/handoff/remotes/origin/*\n"),
        "{refused_screen}"
    );
    assert_eq!(second_code, 0);
    assert!(!settings(&env).contains("refs/handoff"));
}

#[test]
fn a_check_is_offered_only_if_it_is_plain() {
    let offered = |files: &[(&str, &str)]| {
        let (screen, _) = typed(&plain(files), "", &["\n", "\x04"]);
        let question = screen.split_once("Which command checks the work? [").unwrap().1;
        question.split_once("]\n").unwrap().0.to_owned()
    };
    let cargo = ("Cargo.toml", "[package]\n");
    let node = ("package.json", r#"{"scripts": {"test": "vitest run"}}"#);
    let make = ("Makefile", "all:\n\ttrue\ntest: all\n\ttrue\n");
    for (files, expected) in [
        (&[cargo][..], "cargo test"),
        (&[node], "npm test"),
        (&[("go.mod", "module m\n")], "go test ./..."),
        (&[("tests/conftest.py", "")], "pytest"),
        (&[("pyproject.toml", "[tool.pytest.ini_options]\n")], "pytest"),
        (&[cargo, node], "none"),
        (&[cargo, make], "make test"),
        (&[("package.json", "{}"), ("pyproject.toml", "[project]\n"), ("Makefile", "all:\n")], "none"),
    ] {
        assert_eq!(offered(files), expected, "{files:?}");
    }
}

#[test]
fn sharing_lets_git_fetch_bring_runs_and_keep_them() {
    let env = Environment::example("handoff-dag");
    env.git_in(".", ["clone", "--quiet", "--bare", "repo", "hub"]).success();
    env.git(["remote", "add", "origin", "../hub"]).success();
    env.git_in(".", ["clone", "--quiet", "hub", "other"]).success();
    env.handoff(["submit", "--run", "plan.json"]).success();
    env.handoff(["push", "origin", "handoff-dag-1"]).success();
    env.git_in("other", ["config", "fetch.prune", "true"]).success();
    let stdout = env.handoff_in("other", ["init", "--yes", "--share"]).success();
    assert_output!(stdout, @r"
    + remote.origin.fetch = refs/handoff/*:refs/handoff/remotes/origin/*
    + remote.origin.prune = false
    ");
    env.git_in("other", ["fetch", "--quiet"]).success();
    env.handoff_in("other", ["verify", "origin/handoff-dag-1"]).success();
    // Runs that the remote loses survive.
    env.git_in("hub", ["update-ref", "-d", "refs/handoff/runs/handoff-dag-1"]).success();
    env.git_in("other", ["fetch", "--quiet"]).success();
    env.handoff_in("other", ["verify", "origin/handoff-dag-1"]).success();
    env.handoff_in("other", ["init", "--yes", "--share=origin"]).success();
    assert_output!(env.handoff_in("other", ["init", "--yes", "--share=hub"]), @r#"
    ------- stderr -------
    error: cannot share runs: the repository has no remote "hub"
    hint: git remote --verbose
    [exit status: 1]
    "#);
}

#[test]
fn the_overview_points_to_init_until_something_is_configured() {
    let env = cargo();
    assert_output!(env.handoff([""; 0]), @r"
    there are no runs here yet
    ------- stderr -------
    hint: git handoff init
    ");
    init(&env, &["--yes", "--check", "true"], &[]).ends(0);
    assert_output!(env.handoff([""; 0]), @r"
    there are no runs here yet
    ------- stderr -------
    hint: git handoff submit PLAN --run
    ");
}

#[test]
fn a_check_runs_in_a_fresh_worktree_where_dependencies_lie_in_the_work_tree() {
    let note = "setup runs twice";
    for (files, setup) in [
        (&[("package.json", "{}"), ("package-lock.json", "{}")][..], "npm ci"),
        (&[("pnpm-lock.yaml", "")], "pnpm install --frozen-lockfile"),
        (&[("uv.lock", "")], "uv sync --frozen"),
        (&[("composer.lock", "{}")], "composer install --no-interaction"),
    ] {
        let env = plain(files);
        let output = init(&env, &["--yes", "--check", "make test"], &[]);
        assert!(output.status == Some(0) && output.stderr.starts_with(note), "{}", output.stderr);
        let written = settings(&env);
        assert!(written.contains(&format!("handoff.executor.command.setup {setup}\n")), "{written}");
        assert!(written.contains("handoff.executor.command.verifyin fresh"), "{written}");
        // The second time it is chosen already.
        env.git(["config", "handoff.executor.command.verifyIn", "worktree"]).success();
        let again = init(&env, &["--yes", "--check", "make all"], &[]);
        assert!(!again.stderr.contains(note) && settings(&env).contains("verifyin worktree"), "{}", again.stderr);
    }
    // The setup that is configured is the one that is known.
    let own = plain(&[("package-lock.json", "{}")]);
    own.git(["config", "handoff.executor.command.setup", "make install"]).success();
    assert_eq!(init(&own, &["--yes", "--check", "make test"], &[]).status, Some(0));
    let written = settings(&own);
    assert!(written.contains("setup make install\n") && written.contains("verifyin fresh"), "{written}");
    for (files, options) in [
        // Cargo and Go install outside of the work tree, and committed dependencies need no setup.
        (&[("Cargo.toml", ""), ("Cargo.lock", "")][..], &[][..]),
        (&[("go.mod", ""), ("go.sum", "")], &[]),
        (&[("composer.lock", "{}"), ("vendor/a.php", "")], &[]),
        // It is not plain which of them installs.
        (&[("package-lock.json", "{}"), ("pnpm-lock.yaml", "")], &[]),
        (&[("yarn.lock", ""), (".yarnrc.yml", "")], &[]),
        (&[("requirements.txt", "")], &[]),
        // The worktree has them anyway, or nothing can be installed.
        (&[("package-lock.json", "{}")], &["handoff.workspace.link", "node_modules"]),
        (&[("package-lock.json", "{}")], &["handoff.network", "none"]),
    ] {
        let env = plain(files);
        if let [key, value] = options {
            env.git(["config", key, value]).success();
        }
        let output = init(&env, &["--yes", "--check", "make test"], &[]);
        let second_written = settings(&env);
        assert!(!output.stderr.contains(note) && !second_written.contains("verifyin"), "{second_written}");
        assert!(!second_written.contains(".setup"), "{second_written}");
    }
}
