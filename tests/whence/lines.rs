//! Lines of files.

use serde_json::{Value, json};

use super::{BUILD, FIRST, applied};
use crate::common::place::Place;

/// Returns the exit code of `whence`, with the numbers and the items of the lines.
fn lines(place: &Place, asked: &str) -> (i32, Vec<String>) {
    let (code, answer) = place.answer(&["whence", asked]);
    (code, answer["lines"].as_array().unwrap_or_else(|| panic!("{answer}")).iter().map(told).collect())
}

fn told(line: &Value) -> String {
    let items = line["items"].as_array().unwrap().iter().map(|item| item["item"].as_str().unwrap());
    let items = items.collect::<Vec<_>>().join("+");
    format!("{}-{} {}{items}", line["from"], line["to"], if line["proven"] == json!(true) { "" } else { "?" })
}

fn squashed(place: &Place) {
    place.git(&["checkout", "--quiet", "main"]);
    place.git(&["merge", "--squash", "feature"]);
    place.git(&["commit", "--quiet", "-m", "All of it"]);
}

#[test]
fn a_line_is_the_items_whose_commit_brought_it() {
    let place = applied();
    assert_eq!(lines(&place, "main.txt"), (1, vec!["1-1 first".into(), "2-4 ?".into(), "5-5 last".into()]));
    assert_eq!(lines(&place, "main.txt:1"), (0, vec!["1-1 first".into()]));
    assert_eq!(lines(&place, "main.txt:3"), (1, vec!["3-3 ?".into()]));
    assert_eq!(lines(&place, "new.txt"), (0, vec!["1-1 last".into()]));
    assert_eq!(lines(&place, "main:main.txt:1"), (1, vec!["1-1 ?".into()]));
    assert_eq!(lines(&place, "feature~1:main.txt:1"), (0, vec!["1-1 first".into()]));
}

#[test]
fn a_line_of_a_squash_is_told_apart() {
    let place = applied();
    squashed(&place);
    assert_eq!(lines(&place, "main.txt"), (1, vec!["1-1 first".into(), "2-4 ?".into(), "5-5 last".into()]));
}

#[test]
fn a_line_that_came_in_with_anothers_patch_is_its_makers() {
    let place = Place::new();
    let add = ("add", "echo 'by add' >> main.txt", None);
    let more = ("more", "git apply --index inputs/patch && echo 'by more' >> main.txt", Some("add"));
    place.done("r", &[add, more]);
    assert_eq!(place.handoff(&["apply", "r/more", "--commit"]).0, 0);
    assert_eq!(lines(&place, "main.txt:6"), (0, vec!["6-6 add".into()]));
    assert_eq!(lines(&place, "main.txt:7"), (0, vec!["7-7 more".into()]));
    let place = Place::new();
    place.done("r", &[FIRST, BUILD]);
    assert_eq!(place.handoff(&["apply", "r/build", "--commit"]).0, 0);
    assert_eq!(lines(&place, "main.txt:1"), (0, vec!["1-1 build".into()]));
}

#[test]
fn a_line_that_several_made_is_of_all_of_them() {
    let place = Place::new();
    let import = "sed -i '1i import' main.txt";
    place.done(
        "r",
        &[
            ("a", &format!("{import}; echo end >> main.txt"), None),
            ("b", &format!("{import}; echo b > b.txt"), None),
            ("c", "sed -i '3i end' main.txt", None),
        ],
    );
    place.git(&["checkout", "--quiet", "-b", "feature"]);
    let (code, stdout, stderr) = place.handoff(&["apply", "r", "--commit"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    squashed(&place);
    assert_eq!(lines(&place, "main.txt:1"), (0, vec!["1-1 a+b".into()]));
    // Two lines that read the same, each of which is one's alone.
    assert_eq!(place.read("main.txt"), "import\none\ntwo\nend\nthree\nfour\nfive\nend\n");
    assert_eq!(lines(&place, "main.txt:8"), (0, vec!["8-8 a".into()]));
    assert_eq!(lines(&place, "main.txt:4"), (0, vec!["4-4 c".into()]));
}

#[test]
fn lines_are_counted_as_they_are_seen() {
    let place = applied();
    place.write("main.txt", "mine\nONE\ntwo\nthree\nfour\nFIVE\n");
    let all = ["1-1 ?", "2-2 first", "3-5 ?", "6-6 last"].map(String::from).to_vec();
    assert_eq!(lines(&place, "main.txt"), (1, all));
    let (code, stdout, _) = place.handoff(&["whence", "main.txt:1"]);
    assert_eq!((code, stdout.as_str()), (1, "main.txt:1\n? not committed yet\n"));
    // A file deleted from the work tree is still in HEAD.
    std::fs::remove_file(place.root().join("main.txt")).unwrap();
    assert_eq!(lines(&place, "main.txt:1"), (0, vec!["1-1 first".into()]));
}

#[test]
fn odd_paths_and_places_are_found() {
    let place = Place::new();
    std::fs::create_dir(place.root().join("sub")).unwrap();
    place.done("r", &[("odd", "mkdir -p sub; printf 'x\\ny\\n' > a:3; echo z > 'sub/ü \"q\"'; echo m > main", None)]);
    assert_eq!(place.handoff(&["apply", "r", "--commit"]).0, 0);
    assert_eq!(lines(&place, "a:3"), (0, vec!["1-2 odd".into()]));
    assert_eq!(lines(&place, "a:3:2"), (0, vec!["2-2 odd".into()]));
    assert_eq!(lines(&place, "sub/ü \"q\":1"), (0, vec!["1-1 odd".into()]));
    // A name of a commit means the commit.
    assert!(place.answer(&["whence", "main"]).1["lines"].is_null());
    assert_eq!(lines(&place, "./main"), (0, vec!["1-1 odd".into()]));
    let below = place.root().join("sub");
    for asked in ["ü \"q\"", "../a:3:1", "./ü \"q\":1", place.root().join("a:3").to_str().unwrap()] {
        let (code, stdout, stderr) = place.handoff_in(&below, &["whence", asked]);
        assert_eq!(code, 0, "{asked}: {stdout}{stderr}");
    }
    assert_eq!(place.handoff_in(&below, &["whence", "a:3"]).0, 1);
}

#[test]
fn a_renamed_file_keeps_its_lines() {
    let place = applied();
    place.git(&["mv", "main.txt", "moved.txt"]);
    place.git(&["commit", "--quiet", "-m", "Move"]);
    assert_eq!(lines(&place, "moved.txt:5"), (0, vec!["5-5 last".into()]));
}

#[test]
fn nothing_that_is_replaced_has_a_say() {
    let place = applied();
    let tip = place.git(&["rev-parse", "HEAD"]);
    let first = place.git(&["rev-parse", "main"]);
    place.git(&["replace", tip.trim(), first.trim()]);
    assert_eq!(lines(&place, "new.txt:1"), (0, vec!["1-1 last".into()]));
    place.git(&["replace", "-d", tip.trim()]);
}

#[test]
fn a_commit_that_the_user_passes_over_is_passed_over_and_named() {
    let place = Place::new();
    place.done("r", &[("made", "printf 'def f():\\n    return    1\\n\\nx = 1\\n' >m.py", None)]);
    assert_eq!(place.handoff(&["apply", "r", "--commit"]).0, 0);
    place.write("m.py", "def f():\n    return 1\n\nx = 1\n");
    place.git(&["commit", "--quiet", "--all", "-m", "style: format"]);
    let style = place.git(&["rev-parse", "HEAD"]).trim().to_owned();
    place.write(".git-blame-ignore-revs", &style);
    std::fs::create_dir(place.root().join("sub")).unwrap();
    assert_eq!(lines(&place, "m.py:2").0, 1, "a person's");
    place.git(&["config", "blame.ignoreRevsFile", ".git-blame-ignore-revs"]);
    assert_eq!(lines(&place, "m.py"), (0, vec!["1-1 made".into(), "2-2 made".into(), "3-4 made".into()]));
    for (folder, asked) in [(".", "m.py:2"), (".", "HEAD:m.py:2"), ("sub", "../m.py:2")] {
        let (code, told, stderr) = place.handoff_in(&place.root().join(folder), &["whence", asked]);
        let passed = format!("; {} changed the lines since, and blame.ignoreRevsFile passes over it", &style[..12]);
        assert!(code == 0 && told.contains(&passed), "{asked}: {told}{stderr}");
    }
    let answer = place.answer(&["whence", "m.py"]).1;
    let passed: Vec<_> = answer["lines"].as_array().unwrap().iter().map(|line| line["passedOver"].as_str()).collect();
    assert_eq!(passed, [None, Some(style.as_str()), None]);
    // A list that is not there is an error of git's as well.
    place.git(&["config", "blame.ignoreRevsFile", "nowhere"]);
    let (code, _, stderr) = place.handoff(&["whence", "m.py:2"]);
    assert!(code == 1 && stderr.contains("hint: git config --show-origin --get-all blame.ignoreRevsFile"), "{stderr}");
    place.git(&["config", "blame.ignoreRevsFile", ""]);
    assert_eq!(lines(&place, "m.py:2").0, 1);
}

#[test]
fn a_linked_worktree_has_lines_of_its_own() {
    let place = applied();
    let other = place.home().join("linked");
    place.git(&["worktree", "add", "--quiet", other.to_str().unwrap(), "main"]);
    assert_eq!(place.handoff_in(&other, &["whence", "main.txt:1"]).0, 1);
    assert_eq!(place.handoff_in(&other, &["whence", "feature"]).0, 0);
    place.git(&["-C", other.to_str().unwrap(), "merge", "--quiet", "feature"]);
    assert_eq!(place.handoff_in(&other, &["whence", "main.txt:1"]).0, 0);
}
