//! Lines of files.

use serde_json::{Value, json};

use super::{BUILD, FIRST, applied};
use crate::common::clone::TestClone;
use crate::common::report::find_line;

/// Returns the exit code of `whence`, with the numbers and the items of the lines.
fn lines(clone: &TestClone, target: &str) -> (i32, Vec<String>) {
    let (code, answer) = clone.answer(&["whence", target]);
    (code, answer["lines"].as_array().unwrap_or_else(|| panic!("{answer}")).iter().map(line_text).collect())
}

fn line_text(line: &Value) -> String {
    let items = line["items"].as_array().unwrap().iter().map(|item| item["item"].as_str().unwrap());
    let items = items.collect::<Vec<_>>().join("+");
    format!("{}-{} {}{items}", line["from"], line["to"], if line["proven"] == json!(true) { "" } else { "?" })
}

fn squashed(clone: &TestClone) {
    clone.git(&["checkout", "--quiet", "main"]);
    clone.git(&["merge", "--squash", "feature"]);
    clone.git(&["commit", "--quiet", "-m", "All of it"]);
}

#[test]
fn a_line_is_the_items_whose_commit_brought_it() {
    let clone = applied();
    assert_eq!(lines(&clone, "main.txt"), (1, vec!["1-1 first".into(), "2-4 ?".into(), "5-5 last".into()]));
    assert_eq!(lines(&clone, "main.txt:1"), (0, vec!["1-1 first".into()]));
    assert_eq!(lines(&clone, "main.txt:3"), (1, vec!["3-3 ?".into()]));
    assert_eq!(lines(&clone, "new.txt"), (0, vec!["1-1 last".into()]));
    assert_eq!(lines(&clone, "main:main.txt:1"), (1, vec!["1-1 ?".into()]));
    assert_eq!(lines(&clone, "feature~1:main.txt:1"), (0, vec!["1-1 first".into()]));
}

#[test]
fn line_of_a_squash_belongs_to_its_item() {
    let clone = applied();
    squashed(&clone);
    assert_eq!(lines(&clone, "main.txt"), (1, vec!["1-1 first".into(), "2-4 ?".into(), "5-5 last".into()]));
}

#[test]
fn a_line_that_came_in_with_anothers_patch_is_its_makers() {
    let clone = TestClone::new();
    let add = ("add", "echo 'by add' >> main.txt", None);
    let more = ("more", "git apply --index inputs/patch && echo 'by more' >> main.txt", Some("add"));
    clone.done("r", &[add, more]);
    assert_eq!(clone.handoff(&["apply", "r/more", "--commit"]).0, 0);
    assert_eq!(lines(&clone, "main.txt:6"), (0, vec!["6-6 add".into()]));
    assert_eq!(lines(&clone, "main.txt:7"), (0, vec!["7-7 more".into()]));
    let second_clone = TestClone::new();
    second_clone.done("r", &[FIRST, BUILD]);
    assert_eq!(second_clone.handoff(&["apply", "r/build", "--commit"]).0, 0);
    assert_eq!(lines(&second_clone, "main.txt:1"), (0, vec!["1-1 build".into()]));
}

#[test]
fn a_line_that_several_made_is_of_all_of_them() {
    let clone = TestClone::new();
    let import = "sed -i '1i import' main.txt";
    clone.done(
        "r",
        &[
            ("a", &format!("{import}; echo end >> main.txt"), None),
            ("b", &format!("{import}; echo b > b.txt"), None),
            ("c", "sed -i '3i end' main.txt", None),
        ],
    );
    clone.git(&["checkout", "--quiet", "-b", "feature"]);
    let (code, stdout, stderr) = clone.handoff(&["apply", "r", "--commit"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    squashed(&clone);
    assert_eq!(lines(&clone, "main.txt:1"), (0, vec!["1-1 a+b".into()]));
    // Two lines that read the same, each of which is one's alone.
    assert_eq!(clone.read("main.txt"), "import\none\ntwo\nend\nthree\nfour\nfive\nend\n");
    assert_eq!(lines(&clone, "main.txt:8"), (0, vec!["8-8 a".into()]));
    assert_eq!(lines(&clone, "main.txt:4"), (0, vec!["4-4 c".into()]));
}

#[test]
fn line_numbers_follow_the_displayed_text() {
    let clone = applied();
    clone.write("main.txt", "mine\nONE\ntwo\nthree\nfour\nFIVE\n");
    let all = ["1-1 ?", "2-2 first", "3-5 ?", "6-6 last"].map(String::from).to_vec();
    assert_eq!(lines(&clone, "main.txt"), (1, all));
    let (code, stdout, _) = clone.handoff(&["whence", "main.txt:1"]);
    assert_eq!((code, stdout.as_str()), (1, "main.txt:1\n? not committed yet\n"));
    // A file deleted from the work tree is still in HEAD.
    std::fs::remove_file(clone.root().join("main.txt")).unwrap();
    assert_eq!(lines(&clone, "main.txt:1"), (0, vec!["1-1 first".into()]));
}

#[test]
fn odd_paths_and_places_are_found() {
    let clone = TestClone::new();
    std::fs::create_dir(clone.root().join("sub")).unwrap();
    clone.done("r", &[("odd", "mkdir -p sub; printf 'x\\ny\\n' > a:3; echo z > 'sub/ü \"q\"'; echo m > main", None)]);
    assert_eq!(clone.handoff(&["apply", "r", "--commit"]).0, 0);
    assert_eq!(lines(&clone, "a:3"), (0, vec!["1-2 odd".into()]));
    assert_eq!(lines(&clone, "a:3:2"), (0, vec!["2-2 odd".into()]));
    assert_eq!(lines(&clone, "sub/ü \"q\":1"), (0, vec!["1-1 odd".into()]));
    // A name of a commit means the commit.
    assert!(clone.answer(&["whence", "main"]).1["lines"].is_null());
    assert_eq!(lines(&clone, "./main"), (0, vec!["1-1 odd".into()]));
    let below = clone.root().join("sub");
    for target in ["ü \"q\"", "../a:3:1", "./ü \"q\":1", clone.root().join("a:3").to_str().unwrap()] {
        let (code, stdout, stderr) = clone.handoff_in(&below, &["whence", target]);
        assert_eq!(code, 0, "{target}: {stdout}{stderr}");
    }
    assert_eq!(clone.handoff_in(&below, &["whence", "a:3"]).0, 1);
}

#[test]
fn a_renamed_file_keeps_its_lines() {
    let clone = applied();
    clone.git(&["mv", "main.txt", "moved.txt"]);
    clone.git(&["commit", "--quiet", "-m", "Move"]);
    assert_eq!(lines(&clone, "moved.txt:5"), (0, vec!["5-5 last".into()]));
}

#[test]
fn nothing_that_is_replaced_has_a_say() {
    let clone = applied();
    let tip = clone.git(&["rev-parse", "HEAD"]);
    let first = clone.git(&["rev-parse", "main"]);
    clone.git(&["replace", tip.trim(), first.trim()]);
    assert_eq!(lines(&clone, "new.txt:1"), (0, vec!["1-1 last".into()]));
    clone.git(&["replace", "-d", tip.trim()]);
}

#[test]
fn whence_skips_and_lists_ignored_commits() {
    let clone = TestClone::new();
    clone.done("r", &[("made", "printf 'def f():\\n    return    1\\n\\nx = 1\\n' >m.py", None)]);
    assert_eq!(clone.handoff(&["apply", "r", "--commit"]).0, 0);
    clone.write("m.py", "def f():\n    return 1\n\nx = 1\n");
    clone.git(&["commit", "--quiet", "--all", "-m", "style: format"]);
    let style = clone.git(&["rev-parse", "HEAD"]).trim().to_owned();
    clone.write(".git-blame-ignore-revs", &style);
    std::fs::create_dir(clone.root().join("sub")).unwrap();
    assert_eq!(lines(&clone, "m.py:2").0, 1, "a person's");
    clone.git(&["config", "blame.ignoreRevsFile", ".git-blame-ignore-revs"]);
    assert_eq!(lines(&clone, "m.py"), (0, vec!["1-1 made".into(), "2-2 made".into(), "3-4 made".into()]));
    for (folder, target) in [(".", "m.py:2"), (".", "HEAD:m.py:2"), ("sub", "../m.py:2")] {
        let (code, stdout, stderr) = clone.handoff_in(&clone.root().join(folder), &["whence", target]);
        assert_eq!(code, 0, "{target}: {stdout}{stderr}");
        let style = &style[..12];
        let made = "proven: the patch of r/made makes exactly this tree of its parent";
        assert_eq!(
            find_line(&stdout, "  proven: "),
            format!("  {made}; {style} changed the lines since, and blame.ignoreRevsFile passes over it"),
            "{target}"
        );
    }
    let answer = clone.answer(&["whence", "m.py"]).1;
    let passed: Vec<_> = answer["lines"].as_array().unwrap().iter().map(|line| line["passedOver"].as_str()).collect();
    assert_eq!(passed, [None, Some(style.as_str()), None]);
    // A list that is not there is an error of git's as well.
    clone.git(&["config", "blame.ignoreRevsFile", "nowhere"]);
    let (code, _, stderr) = clone.handoff(&["whence", "m.py:2"]);
    assert_eq!(code, 1, "{stderr}");
    insta::assert_snapshot!(find_line(&stderr, "hint: "), @"hint: git config --show-origin --get-all blame.ignoreRevsFile");
    clone.git(&["config", "blame.ignoreRevsFile", ""]);
    assert_eq!(lines(&clone, "m.py:2").0, 1);
}

#[test]
fn a_linked_worktree_has_lines_of_its_own() {
    let clone = applied();
    let other = clone.home().join("linked");
    clone.git(&["worktree", "add", "--quiet", other.to_str().unwrap(), "main"]);
    assert_eq!(clone.handoff_in(&other, &["whence", "main.txt:1"]).0, 1);
    assert_eq!(clone.handoff_in(&other, &["whence", "feature"]).0, 0);
    clone.git(&["-C", other.to_str().unwrap(), "merge", "--quiet", "feature"]);
    assert_eq!(clone.handoff_in(&other, &["whence", "main.txt:1"]).0, 0);
}
