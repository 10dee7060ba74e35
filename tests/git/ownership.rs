//! Repositories of other users: opened only where git opens them.

use std::os::unix::fs::lchown;
use std::path::Path;

use crate::common::{Environment, Output, assert_output, attendant_path, program_path};

/// The user whom such repositories belong to.
const OTHER: u32 = 65534;

/// Gives a path, and all below it, to the other user.
fn give_away(path: &Path) {
    lchown(path, Some(OTHER), Some(OTHER)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        for entry in path.read_dir().unwrap() {
            give_away(&entry.unwrap().path());
        }
    }
}

/// Returns a repository with a folder in it, all of it our own; none to who is not root, and can
/// give nothing away.
#[expect(clippy::print_stderr, reason = "what is not tested is said aloud")]
fn scene() -> Option<Environment> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: repositories of somebody else, which root alone can make");
        return None;
    }
    let env = Environment::empty();
    env.git_in(".", ["init", "--quiet", "repo"]).success();
    env.write("repo/mine/notes.txt", "notes\n");
    env.git(["add", "."]).success();
    env.git(["commit", "--quiet", "--message", "Start"]).success();
    Some(env)
}

/// Runs a program with more variables.
fn with(env: &Environment, program: &str, dir: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = env.command(program, dir);
    command.args(arguments).envs(variables.iter().copied());
    env.ended(command)
}

/// Fails unless git and the program open what is in a folder, or unless neither does; returns
/// whether they do.
#[track_caller]
fn both(env: &Environment, dir: &str, variables: &[(&str, &str)]) -> bool {
    let git = with(env, "git", dir, &["rev-parse", "HEAD"], variables);
    let ours = with(env, "git-handoff", dir, &["runs"], variables);
    assert_eq!(git.status == Some(0), ours.status == Some(0), "{dir} {variables:?}\n{git}{ours}");
    git.status == Some(0)
}

#[test]
fn a_repository_of_another_user_is_not_opened() {
    let Some(env) = scene() else { return };
    give_away(&env.repo().join(".git"));
    assert_output!(env.handoff_in("repo/mine", ["runs"]), @r"
    ------- stderr -------
    error: cannot open $TEST/repo: another user owns it, and programs named in its settings would run as you
    hint: git config --global --add safe.directory $TEST/repo   # if you trust its owner with all that you may do
    [exit status: 1]
    ");
    let output = env.handoff_in("repo/mine", ["check", "notes.txt", "--json"]);
    assert!(output.stdout.is_empty() && output.stderr.contains(r#""code":"foreign-repository""#), "{output}");
    for arguments in [&["status", "r"][..], &["doctor"], &["verify", "--bundle", "x"], &["apply", "r"], &["check", "r"]]
    {
        let second_output = env.handoff_in("repo/mine", arguments);
        assert_eq!(
            second_output.stderr,
            "error: cannot open $TEST/repo: another user owns it, and programs named in its settings would run as you\nhint: git config --global --add safe.directory $TEST/repo   # if you trust its owner with all that you may do\n"
        );
    }
    // A client shows nothing of a server that does not start, so this one starts and says why.
    assert_output!(env.handoff_in("repo/mine", ["mcp"]), @r"
    ------- stderr -------
    warning: every call will fail until this is solved: cannot open $TEST/repo: another user owns it, and programs named in its settings would run as you; ask the operator to run: git config --global --add safe.directory $TEST/repo   # if you trust its owner with all that you may do
    ");
    // A command without a repository works.
    env.handoff_in("repo/mine", ["plan", "new", "p.json"]).success();
}

#[test]
fn git_decides_whether_another_users_repository_is_opened() {
    let Some(env) = scene() else { return };
    let repo = env.repo();
    let path = repo.to_str().unwrap().to_owned();
    env.git(["worktree", "add", "--quiet", "../linked"]).success();
    env.git_in(".", ["clone", "--quiet", "--bare", "repo", "bare"]).success();
    env.git_in(".", ["init", "--quiet", "--separate-git-dir=apart.git", "apart"]).success();
    env.git_in("apart", ["commit", "--quiet", "--allow-empty", "--message", "Start"]).success();
    env.git_in(".", ["clone", "--quiet", "repo", "tree"]).success();
    for dir in ["repo", "repo/mine", "linked", "bare", "apart", "tree"] {
        assert!(both(&env, dir, &[]), "{dir}");
    }
    give_away(&env.path().join("bare"));
    give_away(&env.path().join("apart/.git"));
    lchown(env.path().join("tree"), Some(OTHER), None).unwrap();
    give_away(&repo.join(".git"));
    for dir in ["repo", "repo/mine", "linked", "bare", "apart", "tree"] {
        assert!(!both(&env, dir, &[]), "{dir}");
    }
    let other = OTHER.to_string();
    assert!(both(&env, "repo/mine", &[("SUDO_UID", &other)]));
    assert!(both(&env, "repo/mine", &[("GIT_DIR", "../.git")]));
    assert!(both(&env, "bare", &[("GIT_DIR", ".")]));
    // The repository's own setting is ignored.
    env.shell(".", "git config --file repo/.git/config safe.directory '*'").success();
    assert!(!both(&env, "repo", &[]));
    let below = format!("{}/*", env.path().display());
    for (values, opened) in [
        (vec![path.as_str()], true),
        (vec!["*"], true),
        (vec!["*", ""], false),
        (vec!["", path.as_str()], true),
        (vec!["/elsewhere", "repo"], false),
        (vec!["~/../repo"], true),
    ] {
        set(&env, &values);
        assert_eq!(both(&env, "repo/mine", &[]), opened, "{values:?}");
    }
    // Older versions of git do not know this, and it is theirs to say.
    set(&env, &[&below]);
    both(&env, "repo/mine", &[]);
    // A setting on the command line counts as it does for git.
    set(&env, &[]);
    let safe_directory =
        [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "safe.directory"), ("GIT_CONFIG_VALUE_0", path.as_str())];
    both(&env, "repo/mine", &safe_directory);
}

/// Sets the user's own `safe.directory` to these values.
fn set(env: &Environment, values: &[&str]) {
    let global = env.path().join("home/gitconfig");
    let call = |arguments: &[&str]| {
        let mut command = env.command("git", ".");
        command.args(["config", "--file"]).arg(&global).args(arguments);
        env.ended(command)
    };
    call(&["--unset-all", "safe.directory"]).status.unwrap();
    for value in values {
        call(&["--add", "safe.directory", value]).success();
    }
}

#[test]
fn an_unnamed_bare_repository_is_opened_where_git_opens_it() {
    let env = Environment::empty();
    env.git_in(".", ["init", "--quiet", "--bare", "hub.git"]).success();
    let explicit =
        [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "safe.bareRepository"), ("GIT_CONFIG_VALUE_0", "explicit")];
    let opens = |dir: &str, more: &[(&str, &str)]| {
        let variables = [&explicit[..], more].concat();
        let git = with(&env, "git", dir, &["rev-parse", "--git-dir"], &variables);
        let ours = with(&env, "git-handoff", dir, &["runs"], &variables);
        assert_eq!(git.status == Some(0), ours.status == Some(0), "{dir} {more:?}\n{git}{ours}");
        ours
    };
    env.handoff_in("hub.git", ["runs"]).success();
    let refused = opens("hub.git/refs", &[]);
    assert!(refused.status == Some(1) && refused.stderr.contains("safe.bareRepository"), "{refused}");
    opens(".", &[("GIT_DIR", "hub.git")]).success();
}

#[test]
fn doctor_lists_files_of_root() {
    let Some(env) = scene() else { return };
    env.git(["config", "handoff.signingKey", ""]).success();
    env.handoff(["key"]).success();
    let copied = std::process::Command::new("cp").args([program_path(), attendant_path()]).arg(env.path()).status();
    assert!(copied.unwrap().success());
    give_away(env.path());
    let key = env.repo().join(".git/handoff");
    lchown(&key, Some(0), Some(0)).unwrap();
    lchown(key.join("signing_key"), Some(0), Some(0)).unwrap();
    let program = env.path().join("git-handoff").display().to_string();
    let user = format!("--reuid={OTHER}");
    let as_user = |arguments: &[&str]| {
        let start = ["--clear-groups", &user, "--", &program];
        with(&env, "setpriv", "repo", &[&start[..], arguments].concat(), &[])
    };
    assert_output!(as_user(&["key"]), @r#"
    ------- stderr -------
    error: cannot read the signing key $TEST/repo/.git/handoff/signing_key
    caused by: Permission denied (os error 13)
    hint: sudo chown -R "$(id -u)" $TEST/repo/.git/handoff   # a command of another user left files there
    [exit status: 1]
    "#);
    let findings = as_user(&["doctor", "--json"]);
    assert!(findings.stdout.contains(r#""code":"foreign-files""#), "{findings}");
    assert_output!(as_user(&["doctor"]), @r#"
    problem: $TEST/repo/.git/handoff and 1 other file or folder there belong to another user (uid 0)
      sudo chown -R "$(id -u)" $TEST/repo/.git   # a command of another user left files there
    [exit status: 3]
    "#);
    // Root gets the warning too, with the command for the owner.
    env.git(["config", "--global", "safe.directory", "*"]).success();
    let as_root = |arguments: &[&str]| with(&env, &program, "repo", arguments, &[]);
    assert_output!(as_root(&["doctor"]), @r#"
    problem: $TEST/repo/.git/handoff and 1 other file or folder there belong to uid 0; the repository belongs to uid 65534, who cannot use that
      chown -R 65534 $TEST/repo/.git   # a command that ran as root left files there
    [exit status: 3]
    "#);
    // Files shared with the group are fine.
    env.shell("repo", &format!("chown -R {OTHER}:0 .git && chown -R 0:0 .git/objects && chmod -R g+rwX .git/objects"))
        .success();
    let output = as_root(&["doctor"]);
    insta::assert_snapshot!(output, @"
    ------- stderr -------
    nothing to complain about
    ");
}
