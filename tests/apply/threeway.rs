//! Items that conflict, resolved by a person: what is written, what goes on, what is undone, and
//! what is left when it is killed.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::{Value, json};

use super::{BUILD, EDIT};
use crate::chaos::kill_step;
use crate::common::clone::TestClone;
use crate::common::report::find_line;

const APPLY: [&str; 4] = ["apply", "r", "--commit", "--3way"];

/// Beside `edit`, which conflicts with `HEAD`, and `build`, which builds on it: an item before and
/// one after them.
fn ready() -> TestClone {
    let clone = TestClone::new();
    let first = ("a-first", "echo first > first.txt", None);
    clone.done("r", &[first, EDIT, BUILD, ("later", "echo later > later.txt", None)]);
    clone.write("main.txt", "one\nzwei\nthree\nfour\nfive\nsix\n");
    clone.write("other.txt", "other\n");
    clone.git(&["add", "."]);
    clone.git(&["commit", "--quiet", "-am", "Go on"]);
    // Unrelated to any item.
    clone.write("other.txt", "changed\n");
    clone.write("mine.txt", "mine\n");
    clone
}

/// The state of the index, the files and the branch.
fn state(clone: &TestClone) -> String {
    let mut state = String::new();
    for arguments in [
        &["status", "--porcelain=v2", "--branch", "--untracked-files=all"][..],
        &["ls-files", "-s"],
        &["diff", "HEAD"],
        &["for-each-ref"],
    ] {
        state += &clone.git(arguments);
    }
    clone.git(&["fsck", "--strict"]);
    assert!(!underway(clone));
    state
}

fn code(clone: &TestClone, arguments: &[&str]) -> (i32, String) {
    let (exit, _, stderr) = clone.handoff(&[arguments, &["--json"]].concat());
    let last = stderr.lines().last().unwrap_or_default();
    let error: Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{arguments:?}: {stderr}"));
    (exit, error["code"].as_str().unwrap().to_owned())
}

fn subjects(clone: &TestClone) -> String {
    clone.git(&["log", "--format=%s"]).replace(": apply the patch of r", "").replace('\n', " ")
}

#[test]
fn conflict_hint_appears_before_and_during_the_wait() {
    let clone = ready();
    let (exit, _, stderr) = clone.handoff(&["apply", "r"]);
    assert_eq!(exit, 1, "{stderr}");
    insta::assert_snapshot!(stderr, @"
    nothing was changed
    hint: git handoff cat r/edit:patch
    hint: git handoff apply r --commit --3way   # to resolve the conflicts in the work tree
    ");
    assert_eq!(clone.handoff(&APPLY).0, 1);
    let (_, stdout, second_stderr) = clone.handoff(&[]);
    insta::assert_snapshot!(stdout, @"
    being applied
      r  conflicts to resolve
    1 run sealed, done and green by what they record
    ");
    insta::assert_snapshot!(second_stderr, @"hint: edit the files, `git add` them and `git handoff apply --continue`   # or give up: git handoff apply --abort");
    assert_eq!(clone.handoff(&["apply", "--abort"]).0, 0);
    insta::assert_snapshot!(clone.handoff(&[]).1, @"1 run sealed, done and green by what they record");
}

#[test]
fn a_conflict_is_left_as_git_leaves_one_and_is_gone_on_from() {
    let clone = ready();
    let (exit, stdout, stderr) = clone.handoff(&APPLY);
    assert_eq!(exit, 1, "{stdout}{stderr}");
    insta::assert_snapshot!(find_line(&stdout, "conflict: "), @"conflict: edit: main.txt: changed differently by what is there");
    insta::assert_snapshot!(stderr, @"
    the conflicts are in the work tree
    hint: edit the files, `git add` them and `git handoff apply --continue`   # or give up: git handoff apply --abort
    ");
    assert_eq!(subjects(&clone), "a-first Go on Start ");
    assert_eq!(clone.git(&["status", "--porcelain"]), "UU main.txt\n M other.txt\n?? mine.txt\n");
    let picked = clone.git(&["rev-parse", "--short", "CHERRY_PICK_HEAD"]);
    assert_eq!(
        clone.read("main.txt"),
        format!(
            "one\n<<<<<<< HEAD\nzwei\n=======\nTWO\n>>>>>>> {} (edit: apply the patch of r)\nthree\nfour\nfive\nsix\n",
            picked.trim()
        )
    );
    assert_eq!(clone.git(&["show", ":1:main.txt"]), "one\ntwo\nthree\nfour\nfive\n");
    assert_eq!(clone.git(&["show", ":3:main.txt"]), "one\nTWO\nthree\nfour\nfive\n");
    // Nothing else begins, and nothing is committed with what is unresolved.
    for other in [&APPLY[..], &["apply", "r", "--branch", "x"], &["apply", "r", "--dry-run"]] {
        assert_eq!(code(&clone, other), (1, "underway".to_owned()));
    }
    assert_eq!(code(&clone, &["apply", "--continue"]), (1, "unmerged".to_owned()));

    clone.write("main.txt", "one\nTWO and zwei\nthree\nfour\nfive\nsix\n");
    clone.git(&["add", "main.txt"]);
    let (apply_exit, answer) = clone.answer(&["apply", "--continue"]);
    // The next one rewrites that line as well.
    assert_eq!(
        (apply_exit, &answer["stopped"], &answer["conflicts"][0]["item"]),
        (1, &json!(true), &json!("build")),
        "{answer}"
    );
    assert_eq!((&answer["items"][0]["item"], &answer["items"][0]["resolved"]), (&json!("edit"), &json!(true)));
    assert_eq!(subjects(&clone), "edit a-first Go on Start ");
    assert!(clone.read("main.txt").contains("TWO and zwei\n=======\n2\n"), "{}", clone.read("main.txt"));
    clone.write("main.txt", "one\n2 and zwei\nthree\nfour\nfive\nsix\n");
    clone.git(&["add", "main.txt"]);
    let (second_exit, apply_stdout, apply_stderr) = clone.handoff(&["apply", "--continue"]);
    assert_eq!(second_exit, 0, "{apply_stdout}{apply_stderr}");
    let built = clone.git(&["rev-parse", "HEAD~1"]);
    assert_eq!(
        find_line(&apply_stdout, "build: "),
        format!("build: committed as {}, with conflicts resolved by hand", built.trim())
    );
    assert_eq!(subjects(&clone), "later build edit a-first Go on Start ");
    assert_eq!(clone.git(&["status", "--porcelain"]), " M other.txt\n?? mine.txt\n");
    assert_eq!(clone.read("new.txt"), "new\n");
    state(&clone);

    // Only products are attributed to items.
    let product = answer["items"][0]["product"].as_str().unwrap();
    let trailers = clone.git(&["log", "-1", "--format=%(trailers:only)", "HEAD~2"]);
    assert_eq!(trailers.trim(), format!("Handoff-Resolved: r/edit {product}"));
    let (_, whence) = clone.answer(&["whence", "HEAD~4..HEAD"]);
    let verdicts: Vec<&str> =
        whence["commits"].as_array().unwrap().iter().map(|commit| commit["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["product", "person", "person", "product"], "{whence}");
    let detail = whence["commits"][1]["detail"].as_str().unwrap();
    insta::assert_snapshot!(detail, @"no item handed this over; its author says to have resolved conflicts of r/edit");
    let (verify_exit, verify_stdout, _) = clone.handoff(&["verify", "--commits", "HEAD~4..HEAD"]);
    assert_eq!(verify_exit, 0, "{verify_stdout}");
    assert_eq!(code(&clone, &["apply", "--continue"]), (1, "nothing-underway".to_owned()));
}

#[test]
fn giving_up_goes_back_exactly_to_where_it_stood() {
    let clone = ready();
    let before = state(&clone);
    assert_eq!(clone.handoff(&APPLY).0, 1);
    assert_eq!(clone.handoff(&["apply", "--abort"]).0, 0);
    assert_eq!(state(&clone), before);
    // After a resolution, with more of the person's work in the index than there was.
    assert_eq!(clone.handoff(&APPLY).0, 1);
    clone.write("main.txt", "resolved\n");
    clone.git(&["add", "."]);
    clone.git(&["rm", "--quiet", "--cached", "first.txt"]);
    assert_eq!(clone.handoff(&["apply", "--abort"]).0, 0);
    assert_eq!(state(&clone), before);
    assert_eq!(code(&clone, &["apply", "--abort"]), (1, "nothing-underway".to_owned()));
    // After the second conflict, with a commit that rests on the first.
    assert_eq!(clone.handoff(&APPLY).0, 1);
    clone.write("main.txt", "resolved\n");
    clone.git(&["add", "main.txt"]);
    assert_eq!(clone.handoff(&["apply", "--continue"]).0, 1);
    let (exit, answer) = clone.answer(&["apply", "--abort"]);
    assert_eq!((exit, &answer["aborted"], &answer["applied"]), (0, &json!(true), &json!(false)));
    assert_eq!(state(&clone), before);
    assert!(clone.git(&["reflog", "-1"]).contains("given up"));
}

#[test]
fn giving_up_throws_away_nothing_that_was_done_by_hand_since() {
    let clone = TestClone::new();
    clone.write("gone.txt", "gone\n");
    clone.git(&["add", "."]);
    clone.git(&["commit", "--quiet", "-m", "More"]);
    let first = ("a-first", "echo first > first.txt; git rm -q gone.txt; mkdir in; echo x > in/x", None);
    let edit = ("edit", "sed -i s/two/TWO/ main.txt; echo also > also.txt", None);
    clone.done("r", &[first, edit]);
    clone.write("main.txt", "one\nzwei\nthree\nfour\nfive\n");
    clone.git(&["commit", "--quiet", "-am", "Go on"]);
    let before = state(&clone);
    assert_eq!(clone.handoff(&APPLY).0, 1);
    // A file of an item that is committed, one of the item that conflicts, one that was removed,
    // and one in place of a folder's.
    let by_hand: [(&str, &dyn Fn()); 5] = [
        ("first.txt", &|| clone.write("first.txt", "first\nprecious\n")),
        ("also.txt", &|| clone.write("also.txt", "precious\n")),
        ("gone.txt", &|| clone.write("gone.txt", "precious\n")),
        ("gone.txt/y", &|| {
            std::fs::create_dir(clone.root().join("gone.txt")).unwrap();
            clone.write("gone.txt/y", "precious\n");
        }),
        ("in/x", &|| {
            clone.write("in/x", "precious\n");
            clone.git(&["add", "in/x"]);
        }),
    ];
    let tree = |copy: &TestClone| copy.git(&["status", "--porcelain=v2", "--branch"]) + &copy.git(&["ls-files", "-s"]);
    for (file, change) in by_hand {
        let stopped = tree(&clone);
        change();
        let changed = tree(&clone);
        let (exit, _, stderr) = clone.handoff(&["apply", "--abort"]);
        let lost = format!("error: changed by hand since, and --abort would lose that: {file}; nothing was restored");
        assert_eq!((exit, find_line(&stderr, "error: ")), (1, lost.as_str()));
        assert!(clone.read(file).contains("precious"), "{file}");
        assert_eq!(tree(&clone), changed, "{file}");
        if file.starts_with("gone") {
            let path = clone.root().join("gone.txt");
            std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path)).unwrap();
        } else if file == "also.txt" {
            clone.git(&["restore", file]);
        } else {
            clone.git(&["restore", "--staged", "--worktree", file]);
        }
        assert_eq!(tree(&clone), stopped, "{file}");
    }
    // Conflicting files are reset, and files deleted by hand are restored.
    clone.write("main.txt", "half resolved\n");
    std::fs::remove_file(clone.root().join("first.txt")).unwrap();
    assert_eq!(clone.handoff(&["apply", "--abort"]).0, 0);
    assert_eq!(state(&clone), before);
}

#[test]
fn giving_up_that_failed_throws_nothing_away_when_it_is_tried_again() {
    let clone = ready();
    let before = state(&clone);
    assert_eq!(clone.handoff(&APPLY).0, 1);
    let lock = clone.root().join(".git/index.lock");
    std::fs::write(&lock, "").unwrap();
    let (exit, _, stderr) = clone.handoff(&["apply", "--abort"]);
    assert!(exit == 1 && stderr.contains("index.lock"), "{stderr}");
    std::fs::remove_file(lock).unwrap();
    // Nothing was restored: it continues as before.
    clone.write("main.txt", "one\nTWO and zwei\nthree\nfour\nfive\nsix\n");
    clone.git(&["add", "main.txt"]);
    let (apply_exit, stdout, apply_stderr) = clone.handoff(&["apply", "--continue"]);
    assert_eq!(apply_exit, 1, "{stdout}{apply_stderr}");
    insta::assert_snapshot!(find_line(&stdout, "conflict: "), @"conflict: build: main.txt: changed differently by what is there");
    for _ in 0..2 {
        clone.write("first.txt", "precious\n");
        assert_eq!(code(&clone, &["apply", "--abort"]), (1, "local-changes".to_owned()));
        assert_eq!(clone.read("first.txt"), "precious\n");
    }
    clone.git(&["restore", "first.txt"]);
    assert_eq!(clone.handoff(&["apply", "--abort"]).0, 0);
    assert_eq!(state(&clone), before);
}

#[test]
fn conflicts_of_every_kind_are_undone() {
    let clone = TestClone::new();
    for (path, text) in [("gone.txt", "g\n"), ("kept.txt", "k\n"), ("bin", "\0a"), ("sp *?.txt", "s\n")] {
        clone.write(path, text);
    }
    clone.git(&["add", "."]);
    clone.git(&["commit", "--quiet", "-m", "More"]);
    let script = r"echo theirs > gone.txt; rm kept.txt; printf '\000b' > bin; echo theirs > 'sp *?.txt'; echo t > both.txt; mkdir folder; echo t > folder/x";
    clone.done("r", &[("all", script, None)]);
    clone.git(&["rm", "--quiet", "gone.txt"]);
    for (path, text) in
        [("kept.txt", "ours\n"), ("bin", "\0c"), ("sp *?.txt", "o\n"), ("both.txt", "o\n"), ("folder", "file\n")]
    {
        clone.write(path, text);
    }
    clone.git(&["add", "."]);
    clone.git(&["commit", "--quiet", "-m", "Ours"]);
    let before = state(&clone);
    assert_eq!(clone.handoff(&APPLY).0, 1);
    let unmerged = clone.git(&["diff", "--name-only", "--diff-filter=U"]);
    for path in ["gone.txt", "kept.txt", "bin", "both.txt", "sp *?.txt"] {
        assert!(unmerged.contains(path), "{unmerged}");
    }
    let (exit, _, stderr) = clone.handoff(&["apply", "--abort"]);
    assert_eq!(exit, 0, "{stderr}");
    assert_eq!(state(&clone), before);
    // Taking ours of everything leaves nothing to commit.
    assert_eq!(clone.handoff(&APPLY).0, 1);
    clone.git(&["read-tree", "--reset", "-u", "HEAD"]);
    let (apply_exit, answer) = clone.answer(&["apply", "--continue"]);
    assert_eq!(
        (apply_exit, &answer["items"][0]["changed"], &answer["commits"]),
        (0, &json!(false), &json!([])),
        "{answer}"
    );
    assert_eq!(state(&clone), before);
}

#[test]
fn apply_reports_obstacles_before_any_change() {
    let clone = ready();
    clone.git(&["add", "mine.txt"]);
    let before = state(&clone);
    assert_eq!(code(&clone, &APPLY), (1, "staged".to_owned()));
    assert_eq!(state(&clone), before);
    clone.git(&["reset", "--quiet"]);
    // An item that conflicts, and one that fits: what changed before is undone.
    for path in ["main.txt", "first.txt"] {
        clone.write(path, "mine\n");
        let second_before = state(&clone);
        assert_eq!(code(&clone, &APPLY), (1, "local-changes".to_owned()), "{path}");
        assert_eq!(state(&clone), second_before, "{path}");
    }
    // The same for an ignored file, which git would overwrite.
    clone.write(".git/info/exclude", "first.txt\n");
    assert_eq!(code(&clone, &APPLY), (1, "local-changes".to_owned()));
    assert_eq!(clone.read("first.txt"), "mine\n");
    std::fs::remove_file(clone.root().join("first.txt")).unwrap();
    clone.git(&["checkout", "--quiet", "main.txt"]);
    assert_eq!(code(&clone, &[&APPLY[..], &["-m", "All"]].concat()), (1, "several-commits".to_owned()));
    for wrong in
        [&["apply", "r", "--3way"][..], &["apply", "r", "--commit", "--3way", "-n"], &["apply", "r", "--continue"]]
    {
        assert_eq!(code(&clone, wrong), (2, "usage".to_owned()));
    }
    // A file without a conflict needs no resolution.
    assert_eq!(clone.handoff(&["apply", "r/later", "--commit", "--3way", "-m", "Later"]).0, 0);
    assert!(subjects(&clone).starts_with("Later Go on"));
}

#[test]
fn git_runs_the_hooks_of_a_cherry_pick_and_none_that_an_item_changes() {
    let clone = ready();
    for (name, script) in [
        ("pre-commit", "exit 1"),
        ("commit-msg", "exit 1"),
        ("prepare-commit-msg", "echo prepared >> .git/ran"),
        ("post-commit", "env | grep -c ^GIT_WORK_TREE= >> .git/ran"),
    ] {
        let hook = clone.root().join(".git/hooks").join(name);
        std::fs::write(&hook, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&hook, Permissions::from_mode(0o755)).unwrap();
    }
    assert_eq!(clone.handoff(&APPLY).0, 1);
    assert_eq!(subjects(&clone), "a-first Go on Start ");
    assert_eq!(std::fs::read_to_string(clone.root().join(".git/ran")).unwrap(), "prepared\n0\n");
    assert_eq!(clone.handoff(&["apply", "--abort"]).0, 0);
    std::fs::remove_file(clone.root().join(".git/ran")).unwrap();
    assert_eq!(clone.handoff(&[&APPLY[..], &["--no-verify"]].concat()).0, 1);
    assert!(!clone.root().join(".git/ran").exists());
    assert_eq!(clone.handoff(&["apply", "--abort"]).0, 0);
    // A file of an item never runs as a hook.
    let second_clone = TestClone::new();
    std::fs::create_dir(second_clone.root().join("hooks")).unwrap();
    second_clone.write("hooks/keep", "");
    second_clone.git(&["add", "."]);
    second_clone.git(&["commit", "--quiet", "-m", "Hooks"]);
    second_clone.git(&["config", "core.hooksPath", "hooks"]);
    let script =
        "printf '#!/bin/sh\\ntouch ran\\n' > hooks/post-commit; chmod +x hooks/post-commit; sed -i s/two/TWO/ main.txt";
    second_clone.done("r", &[("evil", script, None)]);
    second_clone.write("hooks/pre-commit", "#!/bin/sh\n");
    std::fs::set_permissions(second_clone.root().join("hooks/pre-commit"), Permissions::from_mode(0o755)).unwrap();
    second_clone.write("main.txt", "one\nzwei\nthree\nfour\nfive\n");
    second_clone.git(&["commit", "--quiet", "-am", "Go on"]);
    assert_eq!(code(&second_clone, &[&APPLY[..], &["--with-hooks"]].concat()), (1, "own-hooks".to_owned()));
    assert!(!underway(&second_clone) && !second_clone.root().join("ran").exists());
    assert_eq!(second_clone.handoff(&[&APPLY[..], &["--no-verify", "--with-hooks"]].concat()).0, 1);
}

#[test]
fn a_message_and_hooks_are_for_what_is_resolved_as_well() {
    let clone = ready();
    let hook = clone.root().join(".git/hooks/pre-commit");
    std::fs::write(&hook, "#!/bin/sh\n! git grep --cached -q zwei -- main.txt\n").unwrap();
    std::fs::set_permissions(&hook, Permissions::from_mode(0o755)).unwrap();
    assert_eq!(clone.handoff(&["apply", "r/edit", "--commit", "--3way", "-m", "By hand"]).0, 1);
    clone.write("main.txt", "one\nzwei, TWO\nthree\nfour\nfive\nsix\n");
    clone.git(&["add", "main.txt"]);
    // The hook refuses, and the resolution stays.
    for _ in 0..2 {
        assert_eq!(code(&clone, &["apply", "--continue"]), (1, "hook".to_owned()));
    }
    assert_eq!(clone.git(&["status", "--porcelain"]), "M  main.txt\n M other.txt\n?? mine.txt\n");
    assert_eq!(clone.handoff(&["apply", "--continue", "--no-verify"]).0, 0);
    assert_eq!(subjects(&clone), "By hand Go on Start ");
    assert!(clone.git(&["log", "-1", "--format=%B"]).contains("\n\nHandoff-Resolved: r/edit sha256:"));
}

/// Runs `git cherry-pick`, which may stop for a conflict.
fn may_stop(clone: &TestClone, arguments: &str) {
    clone.git(&["-c", &format!("alias.pick=!git cherry-pick {arguments} || :"), "pick"]);
}

#[test]
fn git_itself_goes_on_and_gives_up() {
    let clone = ready();
    let before = state(&clone);
    assert_eq!(clone.handoff(&APPLY).0, 1);
    clone.git(&["cherry-pick", "--abort"]);
    assert_eq!(state(&clone), before);
    assert_eq!(code(&clone, &["apply", "--abort"]), (1, "nothing-underway".to_owned()));
    // The first conflict by git, the second by us, and then both by git.
    for by_git in [false, true] {
        assert_eq!(clone.handoff(&APPLY).0, 1);
        for (text, resolved_by_git) in [("TWO and zwei", true), ("2 and zwei", by_git)] {
            clone.write("main.txt", &format!("one\n{text}\nthree\nfour\nfive\nsix\n"));
            clone.git(&["add", "main.txt"]);
            if resolved_by_git {
                may_stop(&clone, "--continue");
            } else {
                assert_eq!(clone.handoff(&["apply", "--continue"]).0, 0);
            }
        }
        assert_eq!(subjects(&clone), "later build edit a-first Go on Start ");
        let (_, whence) = clone.answer(&["whence", "HEAD~4..HEAD"]);
        let commits = whence["commits"].as_array().unwrap();
        let verdicts: Vec<&str> = commits.iter().map(|commit| commit["verdict"].as_str().unwrap()).collect();
        assert_eq!(verdicts, ["product", "person", "person", "product"], "{whence}");
        assert_eq!(clone.handoff(&["verify", "--commits", "HEAD~4..HEAD"]).0, 0);
        clone.git(&["reset", "--quiet", "--keep", "HEAD~4"]);
    }
    assert_eq!(state(&clone), before);
}

#[test]
fn conflict_from_a_resolution_claims_no_product() {
    let clone = ready();
    assert_eq!(clone.handoff(&["apply", "r", "--commit", "--3way"]).0, 1);
    clone.write("main.txt", "one\nTWO and zwei\nthree\nfour\nfive\nsix\n");
    clone.write("later.txt", "sooner\n");
    clone.git(&["add", "main.txt", "later.txt"]);
    assert_eq!(clone.handoff(&["apply", "--continue"]).0, 1);
    clone.write("main.txt", "one\n2 and zwei\nthree\nfour\nfive\nsix\n");
    clone.git(&["add", "main.txt"]);
    let (exit, answer) = clone.answer(&["apply", "--continue"]);
    assert_eq!((exit, &answer["conflicts"][0]["item"]), (1, &json!("later")), "{answer}");
    clone.write("later.txt", "sooner and later\n");
    clone.git(&["add", "later.txt"]);
    clone.git(&["-c", "core.editor=true", "cherry-pick", "--continue"]);
    let trailers = clone.git(&["log", "-1", "--format=%(trailers:only)"]);
    assert!(
        trailers.starts_with("Handoff-Resolved: r/later sha256:") && !trailers.contains("Handoff-Item"),
        "{trailers}"
    );
    let (_, whence) = clone.answer(&["whence", "HEAD"]);
    assert_eq!(whence["commits"][0]["verdict"], "person", "{whence}");
}

#[test]
fn a_cherry_pick_of_the_users_own_is_left_alone() {
    let clone = ready();
    clone.git(&["stash", "--quiet"]);
    clone.git(&["checkout", "--quiet", "-b", "side", "HEAD~1"]);
    clone.write("main.txt", "one\ndeux\nthree\nfour\nfive\n");
    clone.git(&["commit", "--quiet", "-am", "Side"]);
    clone.git(&["checkout", "--quiet", "-"]);
    may_stop(&clone, "side");
    for arguments in [&["apply", "--abort"][..], &["apply", "--continue"]] {
        assert_eq!(code(&clone, arguments), (1, "nothing-underway".to_owned()));
    }
    clone.git(&["checkout", "--quiet", "--ours", "main.txt"]);
    clone.git(&["add", "main.txt"]);
    assert_eq!(code(&clone, &APPLY), (1, "underway".to_owned()));
    assert_eq!(clone.git(&["rev-parse", "CHERRY_PICK_HEAD"]), clone.git(&["rev-parse", "side"]));
    assert_eq!(subjects(&clone), "Go on Start ");
}

#[test]
fn a_head_that_was_moved_meanwhile_is_left_where_it_is() {
    let clone = ready();
    assert_eq!(clone.handoff(&APPLY).0, 1);
    clone.write("main.txt", "resolved\n");
    clone.git(&["commit", "--quiet", "-m", "By hand", "-a"]);
    assert_eq!(code(&clone, &["apply", "--continue"]), (1, "moved".to_owned()));
    let (exit, _, stderr) = clone.handoff(&["apply", "--abort"]);
    assert_eq!(exit, 0, "{stderr}");
    insta::assert_snapshot!(stderr, @"warning: HEAD was moved since it stopped; it stays there, and index and files stay as they are");
    assert_eq!(subjects(&clone), "By hand a-first Go on Start ");
    state(&clone);
}

#[test]
fn a_linked_work_tree_has_its_own() {
    let clone = ready();
    clone.git(&["worktree", "add", "--quiet", "../linked", "-b", "side"]);
    let linked = clone.root().with_file_name("linked");
    assert_eq!(clone.handoff_in(&linked, &APPLY).0, 1);
    assert_eq!(code(&clone, &["apply", "--continue"]), (1, "nothing-underway".to_owned()));
    assert_eq!(clone.handoff_in(&linked, &["apply", "--abort"]).0, 0);
    assert_eq!(clone.git(&["log", "-1", "--format=%s", "side"]), "Go on\n");
}

/// Runs the built binary so that it is killed at its nth call of git, before or after that; returns
/// whether it came so far.
fn killed(clone: &TestClone, arguments: &[&str], nth: usize, before: bool) -> bool {
    let bin = clone.home().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let real = Command::new("sh").args(["-c", "command -v git"]).output().unwrap().stdout;
    let real = String::from_utf8(real).unwrap();
    let (kill, run) = ("kill -9 $PPID", format!("{} \"$@\"", real.trim()));
    let hit = if before { kill.to_owned() } else { format!("{run}\n{kill}") };
    let script = format!(
        "#!/bin/sh\nn=$(cat \"$HOME/calls\")\nn=$((n+1))\necho $n > \"$HOME/calls\"\n\
         if [ $n = {nth} ]; then\n{hit}\nexit 1\nfi\nexec {run}\n"
    );
    std::fs::write(bin.join("git"), script).unwrap();
    std::fs::set_permissions(bin.join("git"), Permissions::from_mode(0o755)).unwrap();
    std::fs::write(clone.home().join("calls"), "0").unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_git-handoff"));
    command.args(arguments).current_dir(clone.root()).env_clear();
    let output = command.env("PATH", path).env("HOME", clone.home()).env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
    output.status.code().is_none()
}

fn underway(clone: &TestClone) -> bool {
    ["CHERRY_PICK_HEAD", "sequencer"].iter().any(|name| clone.root().join(".git").join(name).exists())
}

#[test]
fn whenever_it_is_killed_it_can_be_given_up() {
    let clone = ready();
    let before = state(&clone);
    let mut rounds = 0;
    for nth in (1..).step_by(kill_step(5)) {
        if !killed(&clone, &APPLY, nth, rounds % 2 == 0) {
            break;
        }
        rounds += 1;
        if underway(&clone) {
            let (exit, _, stderr) = clone.handoff(&["apply", "--abort"]);
            assert_eq!(exit, 0, "{nth}: {stderr}");
        }
        assert_eq!(state(&clone), before, "{nth}");
    }
    assert!(rounds > 8, "{rounds}");
    // It stopped for the conflict in the last round; giving up may be killed as well.
    for nth in (1..).step_by(kill_step(2)) {
        if !killed(&clone, &["apply", "--abort"], nth, nth % 4 == 1) {
            break;
        }
        if !underway(&clone) {
            break;
        }
    }
    if underway(&clone) {
        assert_eq!(clone.handoff(&["apply", "--abort"]).0, 0);
    }
    assert_eq!(state(&clone), before);
}

#[test]
fn whenever_it_is_killed_it_can_go_on() {
    let clone = ready();
    let start = clone.git(&["rev-parse", "HEAD"]);
    let assert_status = |copy: &TestClone| {
        assert_eq!(copy.git(&["status", "--porcelain"]), "UU main.txt\n M other.txt\n?? mine.txt\n");
        assert!(copy.read("main.txt").contains("<<<<<<< HEAD\nzwei\n=======\nTWO\n"));
        assert_eq!(subjects(copy), "a-first Go on Start ");
    };
    let mut rounds = 0;
    for nth in (2..).step_by(kill_step(7)) {
        let killed = killed(&clone, &APPLY, nth, nth % 2 == 1);
        if underway(&clone) {
            // Where it had stopped in all but its answer, it says what is unresolved.
            let (exit, _, stderr) = clone.handoff(&["apply", "--continue"]);
            assert_eq!(exit, 1, "{nth}: {stderr}");
            assert_status(&clone);
            rounds += 1;
            assert_eq!(clone.handoff(&["apply", "--abort"]).0, 0, "{nth}");
        }
        assert_eq!(clone.git(&["rev-parse", "HEAD"]), start);
        if !killed {
            break;
        }
    }
    assert!(rounds > 1, "{rounds}");
    // And while it goes on with what was resolved.
    for nth in (1..).step_by(kill_step(5)) {
        assert_eq!(clone.handoff(&APPLY).0, 1);
        clone.write("main.txt", "one\nTWO and zwei\nthree\nfour\nfive\nsix\n");
        clone.git(&["add", "main.txt"]);
        let was_killed = killed(&clone, &["apply", "--continue"], nth, nth % 2 == 0);
        if was_killed {
            let (exit, _, stderr) = clone.handoff(&["apply", "--continue"]);
            assert_eq!(exit, 1, "{nth}: {stderr}");
        }
        assert_eq!(subjects(&clone), "edit a-first Go on Start ", "{nth}");
        assert_eq!(clone.git(&["show", "HEAD:main.txt"]), "one\nTWO and zwei\nthree\nfour\nfive\nsix\n");
        assert_eq!(
            clone.git(&["status", "--porcelain"]),
            "UU main.txt\nA  new.txt\n M other.txt\n?? mine.txt\n",
            "{nth}"
        );
        assert_eq!(clone.handoff(&["apply", "--abort"]).0, 0);
        assert_eq!(clone.git(&["rev-parse", "HEAD"]), start);
        if !was_killed {
            break;
        }
    }
    state(&clone);
}
