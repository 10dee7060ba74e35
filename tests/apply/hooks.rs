//! The person's hooks, where apply commits: which run, what they see, what they may change, and
//! what is left where they refuse.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use super::{BUILD, EDIT};
use crate::common::place::Place;

/// Writes a hook.
fn hook(place: &Place, name: &str, script: &str) {
    script_at(place, &format!(".git/hooks/{name}"), script);
}

fn script_at(place: &Place, path: &str, script: &str) {
    place.write(path, &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(place.root().join(path), Permissions::from_mode(0o755)).unwrap();
}

/// The state of the index, the files, the branch and the stash.
fn state(place: &Place) -> String {
    let mut state = String::new();
    for arguments in [
        &["status", "--porcelain=v2", "--branch", "--untracked-files=all"][..],
        &["ls-files", "-s"],
        &["diff", "HEAD"],
        &["reflog", "--format=%H %gs"],
    ] {
        state += &place.git(arguments);
    }
    place.git(&["fsck", "--strict"]);
    state
}

#[test]
fn only_the_hooks_of_a_commit_run_and_only_where_one_is_made_on_head() {
    let place = Place::new();
    place.done("r", &[EDIT]);
    let others = [
        "post-checkout",
        "post-index-change",
        "reference-transaction",
        "applypatch-msg",
        "pre-applypatch",
        "post-rewrite",
    ];
    for name in others {
        hook(&place, name, "touch \"$HOME/ran\"");
    }
    for name in ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"] {
        hook(&place, name, &format!("echo {name} \"$#\" >> \"$HOME/order\"\necho said by {name}"));
    }
    place.handoff(&["apply", "r", "--branch", "result"]);
    place.handoff(&["apply", "r", "--commit", "--dry-run"]);
    assert_eq!(place.handoff(&["apply", "r"]).0, 0);
    place.git(&["reset", "--quiet", "--hard"]);
    assert_eq!(place.handoff(&["apply", "r", "--commit", "--no-verify"]).0, 0);
    let (ran, order) = (place.home().join("ran"), place.home().join("order"));
    assert!(!order.exists(), "{:?}", std::fs::read_to_string(order));
    place.git(&["reset", "--quiet", "--hard", "HEAD~"]);
    // git itself runs some of the others.
    std::fs::remove_file(&ran).unwrap();
    let (code, stdout, stderr) = place.handoff(&["apply", "r", "--commit"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(!ran.exists());
    let order = std::fs::read_to_string(place.home().join("order")).unwrap();
    assert_eq!(order, "pre-commit 0\nprepare-commit-msg 2\ncommit-msg 1\npost-commit 0\n");
    insta::assert_snapshot!(stderr, @"
    said by pre-commit
    said by prepare-commit-msg
    said by commit-msg
    said by post-commit
    ");
}

#[test]
fn each_commit_is_shown_to_hooks_as_git_would() {
    let place = Place::new();
    place.done("r", &[EDIT, BUILD]);
    place.write("other.txt", "staged\n");
    place.git(&["add", "other.txt"]);
    place.write("mine.txt", "mine\n");
    hook(
        &place,
        "pre-commit",
        "pwd >> \"$HOME/seen\"\necho \"$GIT_EDITOR ${GIT_DIR-none}\" >> \"$HOME/seen\"\n\
         git diff --cached --name-only >> \"$HOME/seen\"\ngit diff --name-only >> \"$HOME/seen\"\nsed -n 2p main.txt >> \"$HOME/seen\"",
    );
    hook(&place, "commit-msg", "sed -n 1p \"$1\" >> \"$HOME/seen\"");
    hook(
        &place,
        "post-commit",
        "git log --format=%s -3 >> \"$HOME/seen\"\ngit diff --cached --name-only >> \"$HOME/seen\"",
    );
    std::fs::create_dir(place.root().join("sub")).unwrap();
    let (code, stdout, stderr) = place.handoff_in(&place.root().join("sub"), &["apply", "r", "--commit"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    let top = place.root();
    let top = top.to_str().unwrap();
    assert_eq!(
        std::fs::read_to_string(place.home().join("seen")).unwrap(),
        format!(
            "{top}\n: none\nmain.txt\nTWO\nedit: apply the patch of r\n\
             {top}\n: none\nmain.txt\nnew.txt\n2\nbuild: apply the patch of r\n\
             build: apply the patch of r\nedit: apply the patch of r\nStart\nother.txt\n"
        )
    );
    assert_eq!(place.git(&["status", "--porcelain"]), "A  other.txt\n?? mine.txt\n");
    let (code, whence) = place.answer(&["whence", "HEAD~2..HEAD"]);
    assert_eq!((code, whence["proven"].as_bool()), (0, Some(true)), "{whence}");
}

#[test]
fn a_hook_that_refuses_leaves_everything_as_it_was() {
    let place = Place::new();
    place.write("gone.txt", "gone\n");
    place.git(&["add", "."]);
    place.git(&["commit", "--quiet", "-m", "More"]);
    let more = ("more", "git rm -q gone.txt && mkdir d && echo x > 'd/a*b' && echo y > d/y", None);
    place.done("r", &[EDIT, more, BUILD]);
    place.write("other.txt", "staged\n");
    place.git(&["add", "other.txt"]);
    place.write("mine.txt", "mine\n");
    let before = state(&place);
    // The second of three commits; what the hook did to files that were put there is undone as
    // well.
    hook(&place, "pre-commit", "test -e gone.txt && exit 0\necho x >> main.txt\necho not like this >&2\nexit 7");
    let (code, _, stderr) = place.handoff(&["apply", "r", "--commit"]);
    assert_eq!(code, 1, "{stderr}");
    insta::assert_snapshot!(stderr, @"
    error: a hook refused the commit; nothing was changed
    caused by: pre-commit ended with exit code 7: not like this
    hint: git handoff apply RUN   # into the index alone, to commit it by yourself; or without hooks: --no-verify
    ");
    assert_eq!(state(&place), before);
    hook(&place, "pre-commit", "exit 0");
    hook(&place, "commit-msg", "grep -q JIRA \"$1\" || { echo no ticket; exit 1; }");
    let (code, _, stderr) = place.handoff(&["apply", "r", "--commit", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&stderr).unwrap();
    assert_eq!((code, error["code"].as_str()), (1, Some("hook")), "{stderr}");
    assert_eq!(state(&place), before);
    let (code, _, stderr) = place.handoff(&["apply", "r/edit", "--commit", "-m", "JIRA-1: shout"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(place.git(&["status", "--porcelain"]), "A  other.txt\n?? mine.txt\n");
}

#[test]
fn what_the_person_had_staged_already_is_not_lost() {
    let place = Place::new();
    place.done("r", &[EDIT, BUILD]);
    // Just what the first item makes of the file, and then something else.
    place.write("main.txt", "one\nTWO\nthree\nfour\nfive\n");
    place.git(&["add", "main.txt"]);
    place.write("main.txt", "one\nTWO\nthree\nfour\nfive\nsix\n");
    let before = state(&place);
    hook(&place, "pre-commit", "exit 1");
    for arguments in [&["apply", "r/edit", "--commit"][..], &["apply", "r", "--commit"]] {
        assert_eq!(place.handoff(arguments).0, 1);
        assert_eq!(state(&place), before, "{arguments:?}");
    }
}

#[test]
fn a_hook_may_change_the_message_but_not_what_names_the_item_nor_the_files() {
    let place = Place::new();
    place.done("r", &[EDIT]);
    let before = state(&place);
    let refused = [
        ("pre-commit", "echo x >> main.txt\ngit add main.txt"),
        ("commit-msg", "echo x > more\ngit add more; rm more"),
        ("commit-msg", "sed -i /Handoff-Product/d \"$1\""),
        ("prepare-commit-msg", "echo Handoff-Item: other >> \"$1\""),
    ];
    for (name, script) in refused {
        hook(&place, name, script);
        let (code, _, stderr) = place.handoff(&["apply", "r", "--commit", "--json"]);
        let error: serde_json::Value = serde_json::from_str(&stderr).unwrap();
        assert_eq!((code, error["code"].as_str()), (1, Some("hook-changed")), "{stderr}");
        assert_eq!(state(&place), before, "{name} {script}");
        std::fs::remove_file(place.root().join(".git/hooks").join(name)).unwrap();
    }
    hook(&place, "prepare-commit-msg", "test \"$2\" = message && sed -i '1s/^/[T-1] /' \"$1\"");
    hook(&place, "commit-msg", "echo 'Change-Id: I1' >> \"$1\"");
    hook(&place, "post-commit", "echo late; exit 3");
    let (code, answer) = place.answer(&["apply", "r", "--commit"]);
    assert_eq!(code, 0, "{answer}");
    let product = answer["items"][0]["product"].as_str().unwrap();
    assert_eq!(
        place.git(&["log", "-1", "--format=%B"]).trim_end(),
        format!(
            "[T-1] edit: apply the patch of r\n\nHandoff-Run: r\nHandoff-Item: edit\nHandoff-Product: {product}\nChange-Id: I1"
        )
    );
    assert_eq!(place.handoff(&["whence", "HEAD"]).0, 0);
}

#[test]
fn hooks_that_are_what_is_applied_do_not_run() {
    let place = Place::new();
    std::fs::create_dir(place.root().join("checks")).unwrap();
    script_at(&place, "checks/pre-commit", "exit 0");
    place.git(&["add", "."]);
    place.git(&["commit", "--quiet", "-m", "Checks"]);
    let sly = ("sly", "echo 'touch \"$HOME/ran\"' >> checks/pre-commit", None);
    place.done("r", &[sly, EDIT]);
    place.git(&["config", "core.hooksPath", "checks"]);
    let before = state(&place);
    for _ in 0..2 {
        let (code, _, stderr) = place.handoff(&["apply", "r", "--commit"]);
        assert_eq!(code, 1, "{stderr}");
        assert_eq!(
            stderr,
            "error: \"checks/pre-commit\" is one of the hooks that would be run, or leads to one, and what is applied changes it; nothing was changed\nhint: git handoff apply RUN   # into the index alone, to commit it by yourself; or without hooks: --no-verify\n"
        );
        assert_eq!(state(&place), before);
        // The same file, called from where git looks by itself.
        place.git(&["config", "--replace-all", "core.hooksPath", ".git/hooks"]);
        let _ = std::os::unix::fs::symlink("../../checks/pre-commit", place.root().join(".git/hooks/pre-commit"));
    }
    assert_eq!(place.handoff(&["apply", "r/edit", "--commit"]).0, 0);
    assert_eq!(place.handoff(&["apply", "r/sly", "--commit", "--no-verify"]).0, 0);
    assert!(!place.home().join("ran").exists());
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
    let place = Place::new();
    for folder in ["impl/hooks", "tools", "other", "more"] {
        std::fs::create_dir_all(place.root().join(folder)).unwrap();
    }
    script_at(&place, "impl/hooks/check", "exit 0");
    place.write("tracked.config", "");
    let links = [
        ("../impl/hooks", "tools/hooks"),
        ("../../other/link", "impl/hooks/pre-commit"),
        ("../../other/none", "impl/hooks/commit-msg"),
        ("../impl/hooks/check", "other/link"),
    ];
    for (to, at) in links {
        std::os::unix::fs::symlink(to, place.root().join(at)).unwrap();
    }
    place.git(&["add", "."]);
    place.git(&["commit", "--quiet", "-m", "Hooks"]);
    place.git(&["config", "include.path", "../tracked.config"]);
    place.git(&["config", "core.hooksPath", "tools/hooks"]);
    let before = state(&place);
    for (nth, way) in ways.iter().enumerate() {
        let id = format!("r{nth}");
        let included = way.contains("config");
        if included {
            // It has the last word.
            place.git(&["config", "--unset", "core.hooksPath"]);
            std::fs::copy(place.root().join("impl/hooks/check"), place.root().join(".git/hooks/pre-commit")).unwrap();
        }
        place.done(&id, &[("sly", &format!("{evil} && {way}"), None)]);
        let (code, _, stderr) = place.handoff(&["apply", &id, "--commit", "--json"]);
        let error: serde_json::Value = serde_json::from_str(&stderr).unwrap_or_default();
        assert_eq!((code, error["code"].as_str()), (1, Some("own-hooks")), "{way}: {stderr}");
        assert_eq!(state(&place), before, "{way}");
    }
    assert!(!place.home().join("ran").exists());
    // A file beside a parent folder is not a hook.
    place.done("beside", &[("fine", "echo fine >tools/fine && echo fine >impl/fine", None)]);
    let (code, _, stderr) = place.handoff(&["apply", "beside", "--commit"]);
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn a_branch_that_moves_while_hooks_run_is_left_to_who_moved_it() {
    let place = Place::new();
    place.done("r", &[EDIT]);
    let sly = "git update-ref HEAD $(git commit-tree -p HEAD -m Meanwhile HEAD^{tree})";
    hook(&place, "commit-msg", sly);
    let (code, _, stderr) = place.handoff(&["apply", "r", "--commit"]);
    assert!(code != 0, "{stderr}");
    insta::assert_snapshot!(stderr, @"
    error: refs/heads/main was moved by another process meanwhile
    hint: run the same command again
    ");
    assert_eq!(place.git(&["log", "--format=%s"]), "Meanwhile\nStart\n");
    assert_eq!(place.git(&["status", "--porcelain"]), "");
}

#[test]
fn hooks_of_a_linked_work_tree_and_of_a_bare_repository() {
    let place = Place::new();
    place.done("r", &[EDIT]);
    hook(
        &place,
        "pre-commit",
        "git rev-parse --abbrev-ref HEAD >> \"$HOME/seen\"\nsed -n 2p main.txt >> \"$HOME/seen\"",
    );
    place.git(&["worktree", "add", "--quiet", "../linked", "-b", "side"]);
    let linked = place.root().with_file_name("linked");
    let (code, _, stderr) = place.handoff_in(&linked, &["apply", "r", "--commit"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(std::fs::read_to_string(place.home().join("seen")).unwrap(), "side\nTWO\n");
    place.git(&["config", "core.bare", "true"]);
    let (code, _, stderr) = place.handoff(&["apply", "r", "--branch", "result"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(std::fs::read_to_string(place.home().join("seen")).unwrap(), "side\nTWO\n");
}
