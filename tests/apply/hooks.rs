//! The person's hooks, where apply commits: which run, what they see, what they may change, and
//! what is left where they refuse.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use super::{BUILD, EDIT};
use crate::common::clone::TestClone;

/// Writes a hook.
fn hook(clone: &TestClone, name: &str, script: &str) {
    script_at(clone, &format!(".git/hooks/{name}"), script);
}

fn script_at(clone: &TestClone, path: &str, script: &str) {
    clone.write(path, &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(clone.root().join(path), Permissions::from_mode(0o755)).unwrap();
}

/// The state of the index, the files, the branch and the stash.
fn state(clone: &TestClone) -> String {
    let mut state = String::new();
    for arguments in [
        &["status", "--porcelain=v2", "--branch", "--untracked-files=all"][..],
        &["ls-files", "-s"],
        &["diff", "HEAD"],
        &["reflog", "--format=%H %gs"],
    ] {
        state += &clone.git(arguments);
    }
    clone.git(&["fsck", "--strict"]);
    state
}

#[test]
fn only_the_hooks_of_a_commit_run_and_only_where_one_is_made_on_head() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT]);
    let others = [
        "post-checkout",
        "post-index-change",
        "reference-transaction",
        "applypatch-msg",
        "pre-applypatch",
        "post-rewrite",
    ];
    for name in others {
        hook(&clone, name, "touch \"$HOME/ran\"");
    }
    for name in ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"] {
        hook(&clone, name, &format!("echo {name} \"$#\" >> \"$HOME/order\"\necho said by {name}"));
    }
    clone.handoff(&["apply", "r", "--branch", "result"]);
    clone.handoff(&["apply", "r", "--commit", "--dry-run"]);
    assert_eq!(clone.handoff(&["apply", "r"]).0, 0);
    clone.git(&["reset", "--quiet", "--hard"]);
    assert_eq!(clone.handoff(&["apply", "r", "--commit", "--no-verify"]).0, 0);
    let (ran, order) = (clone.home().join("ran"), clone.home().join("order"));
    assert!(!order.exists(), "{:?}", std::fs::read_to_string(order));
    clone.git(&["reset", "--quiet", "--hard", "HEAD~"]);
    // git itself runs some of the others.
    std::fs::remove_file(&ran).unwrap();
    let (code, stdout, stderr) = clone.handoff(&["apply", "r", "--commit"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(!ran.exists());
    let second_order = std::fs::read_to_string(clone.home().join("order")).unwrap();
    assert_eq!(second_order, "pre-commit 0\nprepare-commit-msg 2\ncommit-msg 1\npost-commit 0\n");
    insta::assert_snapshot!(stderr, @"
    said by pre-commit
    said by prepare-commit-msg
    said by commit-msg
    said by post-commit
    ");
}

#[test]
fn hooks_see_each_commit_as_under_git() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT, BUILD]);
    clone.write("other.txt", "staged\n");
    clone.git(&["add", "other.txt"]);
    clone.write("mine.txt", "mine\n");
    hook(
        &clone,
        "pre-commit",
        "pwd >> \"$HOME/seen\"\necho \"$GIT_EDITOR ${GIT_DIR-none}\" >> \"$HOME/seen\"\n\
         git diff --cached --name-only >> \"$HOME/seen\"\ngit diff --name-only >> \"$HOME/seen\"\nsed -n 2p main.txt >> \"$HOME/seen\"",
    );
    hook(&clone, "commit-msg", "sed -n 1p \"$1\" >> \"$HOME/seen\"");
    hook(
        &clone,
        "post-commit",
        "git log --format=%s -3 >> \"$HOME/seen\"\ngit diff --cached --name-only >> \"$HOME/seen\"",
    );
    std::fs::create_dir(clone.root().join("sub")).unwrap();
    let (code, stdout, stderr) = clone.handoff_in(&clone.root().join("sub"), &["apply", "r", "--commit"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    let top = clone.root();
    let top = top.to_str().unwrap();
    assert_eq!(
        std::fs::read_to_string(clone.home().join("seen")).unwrap(),
        format!(
            "{top}\n: none\nmain.txt\nTWO\nedit: apply the patch of r\n\
             {top}\n: none\nmain.txt\nnew.txt\n2\nbuild: apply the patch of r\n\
             build: apply the patch of r\nedit: apply the patch of r\nStart\nother.txt\n"
        )
    );
    assert_eq!(clone.git(&["status", "--porcelain"]), "A  other.txt\n?? mine.txt\n");
    let (whence_code, whence) = clone.answer(&["whence", "HEAD~2..HEAD"]);
    assert_eq!((whence_code, whence["proven"].as_bool()), (0, Some(true)), "{whence}");
}

#[test]
fn a_hook_that_refuses_leaves_everything_as_it_was() {
    let clone = TestClone::new();
    clone.write("gone.txt", "gone\n");
    clone.git(&["add", "."]);
    clone.git(&["commit", "--quiet", "-m", "More"]);
    let more = ("more", "git rm -q gone.txt && mkdir d && echo x > 'd/a*b' && echo y > d/y", None);
    clone.done("r", &[EDIT, more, BUILD]);
    clone.write("other.txt", "staged\n");
    clone.git(&["add", "other.txt"]);
    clone.write("mine.txt", "mine\n");
    let before = state(&clone);
    // The second of three commits; what the hook did to files that were put there is undone as
    // well.
    hook(&clone, "pre-commit", "test -e gone.txt && exit 0\necho x >> main.txt\necho not like this >&2\nexit 7");
    let (code, _, stderr) = clone.handoff(&["apply", "r", "--commit"]);
    assert_eq!(code, 1, "{stderr}");
    insta::assert_snapshot!(stderr, @"
    error: a hook refused the commit; nothing was changed
    caused by: pre-commit ended with exit code 7: not like this
    hint: git handoff apply RUN   # into the index alone, to commit it by yourself; or without hooks: --no-verify
    ");
    assert_eq!(state(&clone), before);
    hook(&clone, "pre-commit", "exit 0");
    hook(&clone, "commit-msg", "grep -q JIRA \"$1\" || { echo no ticket; exit 1; }");
    let (apply_code, _, apply_stderr) = clone.handoff(&["apply", "r", "--commit", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&apply_stderr).unwrap();
    assert_eq!((apply_code, error["code"].as_str()), (1, Some("hook")), "{apply_stderr}");
    assert_eq!(state(&clone), before);
    let (second_code, _, second_stderr) = clone.handoff(&["apply", "r/edit", "--commit", "-m", "JIRA-1: shout"]);
    assert_eq!(second_code, 0, "{second_stderr}");
    assert_eq!(clone.git(&["status", "--porcelain"]), "A  other.txt\n?? mine.txt\n");
}

#[test]
fn apply_preserves_staged_changes() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT, BUILD]);
    // Just what the first item makes of the file, and then something else.
    clone.write("main.txt", "one\nTWO\nthree\nfour\nfive\n");
    clone.git(&["add", "main.txt"]);
    clone.write("main.txt", "one\nTWO\nthree\nfour\nfive\nsix\n");
    let before = state(&clone);
    hook(&clone, "pre-commit", "exit 1");
    for arguments in [&["apply", "r/edit", "--commit"][..], &["apply", "r", "--commit"]] {
        assert_eq!(clone.handoff(arguments).0, 1);
        assert_eq!(state(&clone), before, "{arguments:?}");
    }
}

#[test]
fn a_hook_may_change_the_message_but_not_what_names_the_item_nor_the_files() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT]);
    let before = state(&clone);
    let refused = [
        ("pre-commit", "echo x >> main.txt\ngit add main.txt"),
        ("commit-msg", "echo x > more\ngit add more; rm more"),
        ("commit-msg", "sed -i /Handoff-Product/d \"$1\""),
        ("prepare-commit-msg", "echo Handoff-Item: other >> \"$1\""),
    ];
    for (name, script) in refused {
        hook(&clone, name, script);
        let (code, _, stderr) = clone.handoff(&["apply", "r", "--commit", "--json"]);
        let error: serde_json::Value = serde_json::from_str(&stderr).unwrap();
        assert_eq!((code, error["code"].as_str()), (1, Some("hook-changed")), "{stderr}");
        assert_eq!(state(&clone), before, "{name} {script}");
        std::fs::remove_file(clone.root().join(".git/hooks").join(name)).unwrap();
    }
    hook(&clone, "prepare-commit-msg", "test \"$2\" = message && sed -i '1s/^/[T-1] /' \"$1\"");
    hook(&clone, "commit-msg", "echo 'Change-Id: I1' >> \"$1\"");
    hook(&clone, "post-commit", "echo late; exit 3");
    let (code, answer) = clone.answer(&["apply", "r", "--commit"]);
    assert_eq!(code, 0, "{answer}");
    let product = answer["items"][0]["product"].as_str().unwrap();
    assert_eq!(
        clone.git(&["log", "-1", "--format=%B"]).trim_end(),
        format!(
            "[T-1] edit: apply the patch of r\n\nHandoff-Run: r\nHandoff-Item: edit\nHandoff-Product: {product}\nChange-Id: I1"
        )
    );
    assert_eq!(clone.handoff(&["whence", "HEAD"]).0, 0);
}

#[test]
fn hooks_that_are_what_is_applied_do_not_run() {
    let clone = TestClone::new();
    std::fs::create_dir(clone.root().join("checks")).unwrap();
    script_at(&clone, "checks/pre-commit", "exit 0");
    clone.git(&["add", "."]);
    clone.git(&["commit", "--quiet", "-m", "Checks"]);
    let sly = ("sly", "echo 'touch \"$HOME/ran\"' >> checks/pre-commit", None);
    clone.done("r", &[sly, EDIT]);
    clone.git(&["config", "core.hooksPath", "checks"]);
    let before = state(&clone);
    for _ in 0..2 {
        let (code, _, stderr) = clone.handoff(&["apply", "r", "--commit", "--with-hooks"]);
        assert_eq!(code, 1, "{stderr}");
        assert_eq!(
            stderr,
            "error: \"checks/pre-commit\" is one of the hooks that would be run, or leads to one, and what is applied changes it; nothing was changed\nhint: git handoff apply RUN   # into the index alone, to commit it by yourself; or without hooks: --no-verify\n"
        );
        assert_eq!(state(&clone), before);
        // The same file, called from where git looks by itself.
        clone.git(&["config", "--replace-all", "core.hooksPath", ".git/hooks"]);
        let _ = std::os::unix::fs::symlink("../../checks/pre-commit", clone.root().join(".git/hooks/pre-commit"));
    }
    assert_eq!(clone.handoff(&["apply", "r/edit", "--commit"]).0, 0);
    assert_eq!(clone.handoff(&["apply", "r/sly", "--commit", "--no-verify", "--with-hooks"]).0, 0);
    assert!(!clone.home().join("ran").exists());
}

#[test]
fn nor_do_hooks_to_which_what_is_applied_leads() {
    let evil = "mkdir evil && printf '#!/bin/sh\\ntouch \"$HOME/ran\"\\n' >evil/pre-commit && cp evil/pre-commit evil/commit-msg && chmod +x evil/*";
    // The folder is a link; a hook is one, over another; one leads to what is not there yet; a
    // folder above becomes a link; and the configuration includes a file that is tracked.
    let ways = [
        "rm -f tools/hooks && ln -s ../evil tools/hooks",
        "rm -f other/link && ln -s ../evil/pre-commit other/link",
        "cp evil/commit-msg other/none",
        "rm -rf tools && ln -s evil tools && mv evil hooks && mkdir evil && mv hooks evil/hooks",
        "printf '[core]\\n\\thooksPath = evil\\n' >tracked.config",
    ];
    let clone = TestClone::new();
    for folder in ["impl/hooks", "tools", "other", "more"] {
        std::fs::create_dir_all(clone.root().join(folder)).unwrap();
    }
    script_at(&clone, "impl/hooks/check", "exit 0");
    clone.write("tracked.config", "");
    let links = [
        ("../impl/hooks", "tools/hooks"),
        ("../../other/link", "impl/hooks/pre-commit"),
        ("../../other/none", "impl/hooks/commit-msg"),
        ("../impl/hooks/check", "other/link"),
    ];
    for (to, at) in links {
        std::os::unix::fs::symlink(to, clone.root().join(at)).unwrap();
    }
    clone.git(&["add", "."]);
    clone.git(&["commit", "--quiet", "-m", "Hooks"]);
    clone.git(&["config", "include.path", "../tracked.config"]);
    clone.git(&["config", "core.hooksPath", "tools/hooks"]);
    let before = state(&clone);
    for (nth, way) in ways.iter().enumerate() {
        let id = format!("r{nth}");
        let included = way.contains("config");
        if included {
            // It has the last word.
            clone.git(&["config", "--unset", "core.hooksPath"]);
            std::fs::copy(clone.root().join("impl/hooks/check"), clone.root().join(".git/hooks/pre-commit")).unwrap();
        }
        clone.done(&id, &[("sly", &format!("{evil} && {way}"), None)]);
        let (code, _, stderr) = clone.handoff(&["apply", &id, "--commit", "--with-hooks", "--json"]);
        let error: serde_json::Value = serde_json::from_str(&stderr).unwrap_or_default();
        assert_eq!((code, error["code"].as_str()), (1, Some("own-hooks")), "{way}: {stderr}");
        assert_eq!(state(&clone), before, "{way}");
    }
    assert!(!clone.home().join("ran").exists());
    // A file beside a parent folder is not a hook.
    clone.done("beside", &[("fine", "echo fine >tools/fine && echo fine >impl/fine", None)]);
    let (code, _, stderr) = clone.handoff(&["apply", "beside", "--commit"]);
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn a_branch_that_moves_while_hooks_run_is_left_to_who_moved_it() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT]);
    let sly = "git update-ref HEAD $(git commit-tree -p HEAD -m Meanwhile HEAD^{tree})";
    hook(&clone, "commit-msg", sly);
    let (code, _, stderr) = clone.handoff(&["apply", "r", "--commit"]);
    assert!(code != 0, "{stderr}");
    insta::assert_snapshot!(stderr, @"
    error: refs/heads/main was moved by another process meanwhile
    hint: run the same command again
    ");
    assert_eq!(clone.git(&["log", "--format=%s"]), "Meanwhile\nStart\n");
    assert_eq!(clone.git(&["status", "--porcelain"]), "");
}

#[test]
fn hooks_of_a_linked_work_tree_and_of_a_bare_repository() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT]);
    hook(
        &clone,
        "pre-commit",
        "git rev-parse --abbrev-ref HEAD >> \"$HOME/seen\"\nsed -n 2p main.txt >> \"$HOME/seen\"",
    );
    clone.git(&["worktree", "add", "--quiet", "../linked", "-b", "side"]);
    let linked = clone.root().with_file_name("linked");
    let (code, _, stderr) = clone.handoff_in(&linked, &["apply", "r", "--commit"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(std::fs::read_to_string(clone.home().join("seen")).unwrap(), "side\nTWO\n");
    clone.git(&["config", "core.bare", "true"]);
    let (apply_code, _, apply_stderr) = clone.handoff(&["apply", "r", "--branch", "result"]);
    assert_eq!(apply_code, 0, "{apply_stderr}");
    assert_eq!(std::fs::read_to_string(clone.home().join("seen")).unwrap(), "side\nTWO\n");
}
