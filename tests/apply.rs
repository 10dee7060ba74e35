//! Applying what a run's items changed: onto a branch, into the index and work tree, and what is
//! refused.

mod dry;
mod halfway;
mod hooks;
mod obstacles;
mod run_by_itself;
mod submodules;
mod threeway;
mod untracked;

use serde_json::json;

use crate::common::clone::TestClone;
use crate::common::report::find_line;

const EDIT: (&str, &str, Option<&str>) = ("edit", "sed -i s/two/TWO/ main.txt", None);
/// Builds on the patch of `edit`, rewrites the line that it changed, and adds a file.
const BUILD: (&str, &str, Option<&str>) =
    ("build", "git apply --index inputs/patch && sed -i s/TWO/2/ main.txt && echo new > new.txt", Some("edit"));

/// Runs the built binary until git begins to write a file of this name; both are killed then, as
/// with the machine's power gone.
#[expect(clippy::unwrap_used, reason = "what must not be fails the test")]
fn cut_short(clone: &TestClone, arguments: &[&str], file: &str) {
    let attributes = clone.root().join(".git/info/attributes");
    std::fs::write(&attributes, "* filter=deadly\n").unwrap();
    let kill = "kill -9 $(cut -d ' ' -f 4 /proc/$PPID/stat) $PPID";
    clone.git(&["config", "filter.deadly.smudge", &format!("case %f in {file}) {kill};; esac; cat")]);
    assert_eq!(clone.start(arguments).wait().unwrap().code(), None, "{arguments:?} was not killed");
    std::fs::remove_file(attributes).unwrap();
    // As git itself recommends.
    let lock = clone.root().join(".git/index.lock");
    std::fs::remove_file(lock).unwrap();
}

#[test]
fn a_branch_gets_a_commit_for_each_item_and_the_work_tree_stays() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT, BUILD]);
    let (code, answer) = clone.answer(&["apply", "r", "--branch", "result"]);
    assert_eq!(code, 0, "{answer}");
    assert_eq!(answer["schema"], "git-handoff.apply/1");
    assert_eq!(answer["branch"], "result");
    assert_eq!(answer["commits"].as_array().unwrap().len(), 2);
    assert_eq!(clone.git(&["show", "result:main.txt"]), "one\n2\nthree\nfour\nfive\n");
    assert_eq!(clone.git(&["show", "result:new.txt"]), "new\n");
    let trailers = clone.git(&["log", "-1", "--format=%an %(trailers:only,unfold)", "result"]);
    let product = answer["items"][1]["product"].as_str().unwrap();
    assert_eq!(trailers.trim(), format!("Ada Handoff-Run: r\nHandoff-Item: build\nHandoff-Product: {product}"));
    assert_eq!(clone.git(&["status", "--porcelain"]), "");
    // Again, there is nothing left to do.
    let tip = clone.git(&["rev-parse", "result"]);
    let (apply_code, apply_answer) = clone.answer(&["apply", "r", "--branch", "result"]);
    assert_eq!((apply_code, &apply_answer["commits"]), (0, &json!([])), "{apply_answer}");
    assert_eq!(clone.git(&["rev-parse", "result"]), tip);
}

#[test]
fn a_message_is_the_persons_and_the_trailers_stay_ours() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT, BUILD]);
    let arguments = ["apply", "r/edit", "--commit", "-m", "Shout \n", "-m", "Because.\n\nAcked-by: Eve"];
    let (code, answer) = clone.answer(&arguments);
    assert_eq!(code, 0, "{answer}");
    let product = answer["items"][0]["product"].as_str().unwrap();
    let trailers = format!("Handoff-Run: r\nHandoff-Item: edit\nHandoff-Product: {product}\n");
    assert_eq!(
        clone.git(&["log", "-1", "--format=%B"]).trim_end(),
        format!("Shout\n\nBecause.\n\nAcked-by: Eve\n{trailers}").trim_end()
    );
    assert_eq!(clone.git(&["log", "-1", "--format=%(trailers)"]).trim(), format!("Acked-by: Eve\n{trailers}").trim());
    let (whence_code, whence) = clone.answer(&["whence", "HEAD"]);
    assert_eq!((whence_code, &whence["commits"][0]["verdict"]), (0, &json!("product")), "{whence}");
    let (apply_code, apply_answer) = clone.answer(&["apply", "r/build", "--commit", "-m", "Build"]);
    assert_eq!((apply_code, apply_answer["commits"].as_array().unwrap().len()), (0, 1), "{apply_answer}");
    assert_eq!(clone.git(&["log", "-2", "--format=%s"]), "Build\nShout\n");
}

#[test]
fn a_message_for_several_commits_or_with_trailers_of_ours_is_refused() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT, BUILD]);
    for (arguments, expected) in [
        (&["apply", "r", "--commit", "-m", "Both"][..], (1, "several-commits")),
        (&["apply", "r", "--branch", "result", "-m", "Both"], (1, "several-commits")),
        (&["apply", "r/edit", "--commit", "-m", "x\n\nhandoff-run: other"], (1, "bad-message")),
        (&["apply", "r/edit", "--commit", "-m", " \n"], (1, "bad-message")),
        (&["apply", "r/edit", "-m", "Nothing is committed"], (2, "usage")),
    ] {
        let (code, _, stderr) = clone.handoff(&[arguments, &["--json"]].concat());
        let error: serde_json::Value = serde_json::from_str(&stderr).unwrap();
        assert_eq!((code, error["code"].as_str().unwrap()), expected, "{stderr}");
    }
    let (_, _, stderr) = clone.handoff(&["apply", "r", "--commit", "-m", "Both"]);
    insta::assert_snapshot!(stderr, @"
    error: there would be 2 commits, but the message is for one; nothing was changed
    hint: git handoff apply r/ITEM --commit -m MESSAGE   # one item after the other
    ");
    assert_eq!(clone.git(&["log", "--format=%s", "--all", "--branches"]).lines().filter(|s| *s == "Both").count(), 0);
    assert_eq!(clone.git(&["branch", "--list", "result"]), "");
    assert_eq!(clone.git(&["status", "--porcelain"]), "");
}

#[test]
fn the_index_takes_the_changes_and_keeps_what_else_is_there() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT, BUILD]);
    clone.write("mine.txt", "mine\n");
    clone.write("other.txt", "staged\n");
    clone.git(&["add", "other.txt"]);
    let (code, stdout, stderr) = clone.handoff(&["apply", "r"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert_eq!(clone.git(&["status", "--porcelain"]), "M  main.txt\nA  new.txt\nA  other.txt\n?? mine.txt\n");
    assert_eq!(clone.read("main.txt"), "one\n2\nthree\nfour\nfive\n");
}

#[test]
fn a_commit_on_head_holds_the_patches_and_nothing_else() {
    let clone = TestClone::new();
    std::fs::create_dir(clone.root().join("sub")).unwrap();
    clone.done("r", &[EDIT, BUILD]);
    clone.write("main.txt", "one\ntwo\nthree\nfour\nfive\nsix\n");
    clone.git(&["commit", "--quiet", "-am", "Go on"]);
    clone.write("other.txt", "staged\n");
    clone.git(&["add", "other.txt"]);
    let (code, stdout, stderr) = clone.handoff_in(&clone.root().join("sub"), &["apply", "r", "--commit"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert_eq!(
        clone.git(&["log", "--format=%s", "-3"]),
        "build: apply the patch of r\nedit: apply the patch of r\nGo on\n"
    );
    assert_eq!(clone.read("main.txt"), "one\n2\nthree\nfour\nfive\nsix\n");
    assert_eq!(clone.git(&["status", "--porcelain"]), "A  other.txt\n");
    assert!(clone.git(&["reflog", "-1", "HEAD"]).contains("handoff: apply r"));
}

#[test]
fn apply_reports_conflicts_per_item_and_changes_nothing() {
    let clone = TestClone::new();
    let other = ("other", "sed -i s/two/zwei/ main.txt", None);
    clone.done("r", &[EDIT, other, ("apart", "echo x > x.txt", None)]);
    for arguments in [&["apply", "r", "--branch", "result"][..], &["apply", "r"], &["apply", "r", "--commit"]] {
        let (code, answer) = clone.answer(arguments);
        assert_eq!(code, 1);
        assert_eq!(answer["conflicts"], json!([{ "item": "other", "paths": ["main.txt"], "with": ["edit"] }]));
        assert_eq!((&answer["items"], &answer["applied"]), (&json!([]), &json!(false)));
    }
    assert_eq!(clone.git(&["branch", "--list", "result"]), "");
    assert_eq!(clone.git(&["status", "--porcelain"]), "");
    // One item alone fits, until HEAD changes the same line.
    let (code, _, stderr) = clone.handoff(&["apply", "r/other", "--commit"]);
    assert_eq!(code, 0, "{stderr}");
    let (apply_code, answer) = clone.answer(&["apply", "r/edit"]);
    assert_eq!((apply_code, &answer["conflicts"][0]["item"]), (1, &json!("edit")));
}

#[test]
fn an_item_that_ignored_the_patch_it_was_given_does_not_undo_it() {
    let clone = TestClone::new();
    let both = ("both", "sed -i 's/two/TWO/; s/five/FIVE/' main.txt", None);
    let careless = ("careless", "sed -i s/two/2/ main.txt", Some("both"));
    clone.done("r", &[both, careless]);
    let (code, answer) = clone.answer(&["apply", "r"]);
    assert_eq!(code, 1);
    assert_eq!(answer["conflicts"][0]["item"], "careless");
}

#[test]
fn files_of_every_kind_arrive_as_they_were() {
    let clone = TestClone::new();
    clone.write("gone.txt", "gone\n");
    clone.write("old.txt", "a\nb\nc\nd\ne\nf\n");
    clone.git(&["add", "."]);
    clone.git(&["commit", "--quiet", "-m", "More"]);
    clone.git(&["config", "apply.whitespace", "fix"]);
    let script = r"printf '\000\377bin' > bin; printf 'a \r\nb\t\n' > crlf.txt; rm gone.txt; mv old.txt moved.txt;
        ln -s main.txt link; printf '#!/bin/sh\n' > tool; chmod +x tool; printf '\344' > 'sp ace'";
    clone.done("r", &[("all", script, None)]);
    let (code, stdout, stderr) = clone.handoff(&["apply", "r"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    let bytes = |path: &str| std::fs::read(clone.root().join(path)).unwrap();
    assert_eq!(bytes("bin"), b"\0\xffbin");
    assert_eq!(bytes("crlf.txt"), b"a \r\nb\t\n");
    assert_eq!(bytes("sp ace"), b"\xe4");
    assert_eq!(bytes("moved.txt"), b"a\nb\nc\nd\ne\nf\n");
    assert!(!clone.root().join("gone.txt").exists() && !clone.root().join("old.txt").exists());
    assert!(clone.root().join("link").is_symlink());
    assert!(clone.git(&["ls-files", "-s", "tool"]).starts_with("100755"));
}

#[test]
fn local_changes_and_ignored_files_are_never_written_over() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT, BUILD]);
    clone.write("main.txt", "mine\n");
    let (code, _, stderr) = clone.handoff(&["apply", "r"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("main.txt"), "{stderr}");
    insta::assert_snapshot!(find_line(&stderr, "error: "), @"error: local changes are in the way; nothing was changed");
    assert_eq!(clone.read("main.txt"), "mine\n");
    clone.git(&["checkout", "--quiet", "main.txt"]);
    clone.write(".git/info/exclude", "new.txt\n");
    clone.write("new.txt", "precious\n");
    let (apply_code, _, apply_stderr) = clone.handoff(&["apply", "r", "--commit"]);
    assert_eq!(apply_code, 1);
    insta::assert_snapshot!(apply_stderr, @"
    error: local changes are in the way; nothing was changed
    caused by: not tracked by git, and in the way: new.txt
    hint: git stash --include-untracked   # or apply onto a branch: --branch NAME
    ");
    assert_eq!(clone.read("new.txt"), "precious\n");
    assert_eq!(clone.git(&["log", "--format=%s"]), "Start\n");
    assert_eq!(clone.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_marked_file_names_the_command_that_removes_its_mark() {
    for (mark, unmark) in [("--skip-worktree", "--no-skip-worktree"), ("--assume-unchanged", "--no-assume-unchanged")] {
        for more in [&[][..], &["--commit"], &["--commit", "--3way"]] {
            let clone = TestClone::new();
            clone.done("r", &[EDIT]);
            clone.git(&["update-index", mark, "main.txt"]);
            clone.write("main.txt", "mine\n");
            let marks = clone.git(&["ls-files", "-v"]);
            let (code, _, stderr) = clone.handoff(&[&["apply", "r"], more].concat());
            let hint = format!("hint: git update-index {unmark} -- main.txt && git stash --include-untracked");
            assert_eq!((code, find_line(&stderr, "hint: ")), (1, hint.as_str()), "{mark} {more:?}: {stderr}");
            assert_eq!((clone.read("main.txt").as_str(), clone.git(&["ls-files", "-v"])), ("mine\n", marks));
            assert_eq!(clone.git(&["status", "--porcelain"]) + &clone.git(&["stash", "list"]), "");
            // The hint is the way out.
            clone.git(&["update-index", unmark, "--", "main.txt"]);
            clone.git(&["stash", "--quiet", "--include-untracked"]);
            let (apply_code, _, apply_stderr) = clone.handoff(&[&["apply", "r"], more].concat());
            assert_eq!(apply_code, 0, "{mark} {more:?}: {apply_stderr}");
            assert_eq!(clone.read("main.txt"), "one\nTWO\nthree\nfour\nfive\n");
            assert_eq!(clone.git(&["show", "stash@{0}:main.txt"]), "mine\n");
        }
    }
}

#[test]
fn apply_omits_unchanged_marked_files() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT, BUILD]);
    clone.write("mark.txt", "x\n");
    clone.git(&["add", "mark.txt"]);
    clone.git(&["update-index", "--skip-worktree", "mark.txt"]);
    clone.write("main.txt", "mine\n");
    let (code, _, stderr) = clone.handoff(&["apply", "r"]);
    assert_eq!(code, 1, "{stderr}");
    insta::assert_snapshot!(find_line(&stderr, "hint: "), @"hint: git stash --include-untracked   # or apply onto a branch: --branch NAME");
    assert!(!stderr.contains("update-index"), "{stderr}");
}

#[test]
fn apply_rejects_used_branches_bad_names_and_bare_repositories() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT, ("nothing", "true", None)]);
    clone.git(&["worktree", "add", "--quiet", "../linked", "-b", "busy"]);
    for (arguments, code_word) in [
        (&["apply", "r", "--branch", "main"][..], "checked-out"),
        (&["apply", "r", "--branch", "busy"], "checked-out"),
        (&["apply", "r", "--branch", "a..b"], "bad-branch"),
        (&["apply", "r/nothing"], "no-patch"),
        (&["apply", "r/nowhere"], "unknown-item"),
        (&["apply", "x"], "unknown-run"),
    ] {
        let (code, _, stderr) = clone.handoff(&[arguments, &["--json"]].concat());
        let error: serde_json::Value = serde_json::from_str(&stderr).unwrap();
        assert_eq!((code, error["code"].as_str().unwrap()), (1, code_word), "{stderr}");
    }
    clone.git(&["config", "core.bare", "true"]);
    let (code, _, stderr) = clone.handoff(&["apply", "r"]);
    assert_eq!(code, 1, "{stderr}");
    insta::assert_snapshot!(stderr, @"
    error: cannot apply: a bare repository has no work tree
    hint: say which branch: --branch NAME
    ");
    let (apply_code, _, apply_stderr) = clone.handoff(&["apply", "r", "--branch", "result"]);
    assert_eq!(apply_code, 0, "{apply_stderr}");
}

#[test]
fn apply_rejects_bytes_that_differ_from_the_chain() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT]);
    let patch = clone.git(&["rev-parse", "refs/handoff/runs/r^{/item.reconciled edit }:patch"]);
    let patch = patch.trim();
    crate::common::loosen(&clone.root());
    let path = clone.root().join(".git/objects").join(&patch[..2]).join(&patch[2..]);
    let other = clone.git(&["hash-object", "-w", "main.txt"]);
    let other = clone.root().join(".git/objects").join(&other[..2]).join(other.trim()[2..].trim());
    std::fs::remove_file(&path).unwrap();
    std::fs::copy(other, &path).unwrap();
    let (code, _, stderr) = clone.handoff(&["apply", "r"]);
    assert_eq!(code, 3, "{stderr}");
    assert_eq!(clone.read("main.txt"), "one\ntwo\nthree\nfour\nfive\n");
}

#[test]
fn a_linked_work_tree_takes_the_changes_and_the_main_one_does_not() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT, BUILD]);
    clone.git(&["worktree", "add", "--quiet", "../linked", "-b", "side"]);
    let linked = clone.root().with_file_name("linked");
    let (code, _, stderr) = clone.handoff_in(&linked, &["apply", "r", "--commit"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(std::fs::read_to_string(linked.join("new.txt")).unwrap(), "new\n");
    assert_eq!(clone.git(&["log", "--format=%s", "-1", "side"]), "build: apply the patch of r\n");
    assert_eq!(clone.git(&["log", "--format=%s", "-1", "main"]), "Start\n");
    assert!(!clone.root().join("new.txt").exists());
}

#[test]
fn a_head_that_holds_the_run_already_stays_as_it_is() {
    let clone = TestClone::new();
    clone.done("r", &[EDIT, BUILD]);
    clone.handoff(&["apply", "r", "--commit"]);
    let before = clone.git(&["rev-parse", "HEAD"]);
    let (code, answer) = clone.answer(&["apply", "r", "--commit"]);
    assert_eq!(code, 0, "{answer}");
    assert!(answer["items"].as_array().unwrap().iter().all(|item| item["changed"] == false), "{answer}");
    assert_eq!(clone.git(&["rev-parse", "HEAD"]), before);
}
