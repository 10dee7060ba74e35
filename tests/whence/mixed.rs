//! Commits that hold what items handed over and changes of a person as well.

use serde_json::{Value, json};

use super::{applied, verified};
use crate::common::clone::TestClone;
use crate::common::report::find_line;

/// The message by which a host squashes: the messages of all commits, one after the other.
fn host_message(clone: &TestClone, range: &str) -> String {
    let all = clone.git(&["log", "--reverse", "--format=* %B", range]);
    format!("Feature (#12)\n\n{all}")
}

/// Squashes `feature` onto `main`, with a fix-up of a person in it.
fn squashed(clone: &TestClone, message: Option<&str>) {
    clone.write("main.txt", "ONE\ntwo\nmine\nfour\nFIVE\nmore\n");
    clone.git(&["commit", "--quiet", "-am", "Fix it"]);
    let default_message = host_message(clone, "main..feature");
    clone.git(&["checkout", "--quiet", "main"]);
    clone.git(&["merge", "--quiet", "--squash", "feature"]);
    clone.git(&["commit", "--quiet", "-m", message.unwrap_or(&default_message)]);
}

fn lines(clone: &TestClone, target: &str) -> (i32, Vec<String>) {
    let (code, answer) = clone.answer(&["whence", target]);
    let line_text = |line: &Value| {
        let items = line["items"].as_array().unwrap().iter().map(|item| item["item"].as_str().unwrap());
        let items = items.collect::<Vec<_>>().join("+");
        let proven = if line["proven"] == json!(true) { "" } else { "?" };
        format!("{}-{} {proven}{items} {}", line["from"], line["to"], line["by"].as_str().unwrap_or("-"))
    };
    (code, answer["lines"].as_array().unwrap_or_else(|| panic!("{answer}")).iter().map(line_text).collect())
}

#[test]
fn untouched_lines_of_a_squash_with_a_fix_up_are_their_items() {
    for message in [None, Some("All of it")] {
        let clone = applied();
        squashed(&clone, message);
        let expected =
            ["1-1 first item", "2-2 ? person", "3-3 ? person", "4-4 ? person", "5-5 last item", "6-6 ? person"];
        assert_eq!(lines(&clone, "main.txt"), (1, expected.map(String::from).to_vec()), "{message:?}");
        assert_eq!(lines(&clone, "main.txt:1"), (0, vec!["1-1 first item".into()]), "{message:?}");
        assert_eq!(lines(&clone, "main.txt:3"), (1, vec!["3-3 ? person".into()]), "{message:?}");
        assert_eq!(lines(&clone, "new.txt"), (0, vec!["1-1 last item".into()]), "{message:?}");
        let (code, stdout, _) = clone.handoff(&["whence", "main.txt:5"]);
        assert_eq!(code, 0, "{stdout}");
        assert!(stdout.starts_with("main.txt:5\n✓ "), "{stdout}");
        assert_eq!(
            find_line(&stdout, "  proven: "),
            "  proven: the patch of r/last makes them; other lines of this commit are a person's"
        );
        assert!(find_line(&stdout, "  item ").starts_with("  item     last, attempt 1, done "), "{stdout}");
        let (whence_code, persons_stdout, _) = clone.handoff(&["whence", "main.txt:3"]);
        assert_eq!(whence_code, 1, "{persons_stdout}");
        let rest: Vec<&str> = persons_stdout.lines().skip(2).collect();
        let words = "  a person's: they differ from what the items of this commit handed over";
        assert_eq!(rest, [words, "  author   Ada <ada@example.com>"], "{persons_stdout}");
    }
}

#[test]
fn message_of_a_host_lists_the_difference() {
    let clone = applied();
    squashed(&clone, None);
    let (code, answer) = clone.answer(&["verify", "--commits", "main~1..main"]);
    let detail =
        r#"it says that it is what r/first and r/last handed over, and differs from it in "main.txt" lines 3 and 6"#;
    assert_eq!((code, &answer["commits"][0]["verdict"]), (3, &json!("changed")), "{answer}");
    assert_eq!(answer["commits"][0]["detail"], detail, "{answer}");
    // Without a fix-up it is just what they handed over.
    let second_clone = applied();
    let message = host_message(&second_clone, "main..feature");
    second_clone.git(&["checkout", "--quiet", "main"]);
    second_clone.git(&["merge", "--quiet", "--squash", "feature"]);
    second_clone.git(&["commit", "--quiet", "-m", &message]);
    assert_eq!(verified(&second_clone, "main~1..main"), (0, vec![("product".to_owned(), "first+last".to_owned())]));
}

#[test]
fn a_few_lines_that_a_person_wrote_as_well_are_the_persons() {
    let clone = TestClone::new();
    let script = "printf 'fn a() {\\n    one();\\n    two();\\n}\\n' > a.rs";
    clone.done("r", &[("code", script, None)]);
    clone.write("a.rs", "fn a() {\n    other();\n    more();\n}\n");
    clone.git(&["add", "a.rs"]);
    clone.git(&["commit", "--quiet", "-m", "Mine"]);
    let (code, actual) = lines(&clone, "a.rs");
    assert_eq!((code, actual), (1, vec!["1-4 ? person".to_owned()]));
}

#[test]
fn the_sentence_names_the_item_whose_patch_makes_the_tree() {
    let clone = TestClone::new();
    let add = ("add", "echo 'by add' >> main.txt", None);
    let more = ("more", "git apply --index inputs/patch && echo 'by more' >> main.txt", Some("add"));
    clone.done("r", &[add, more]);
    clone.git(&["checkout", "--quiet", "-b", "feature"]);
    assert_eq!(clone.handoff(&["apply", "r", "--commit"]).0, 0);
    clone.git(&["checkout", "--quiet", "main"]);
    clone.git(&["merge", "--quiet", "--squash", "feature"]);
    clone.git(&["commit", "--quiet", "-m", "All of it"]);
    let (code, stdout, _) = clone.handoff(&["whence", "main"]);
    assert_eq!(code, 0, "{stdout}");
    let both = "the patch of r/more makes exactly this tree of its parent";
    assert_eq!(find_line(&stdout, "  proven: "), format!("  proven: {both}"));
    let (whence_code, line_stdout, _) = clone.handoff(&["whence", "main.txt:6"]);
    assert_eq!(whence_code, 0, "{line_stdout}");
    assert_eq!(find_line(&line_stdout, "  proven: "), format!("  proven: the patch of r/add makes them, and {both}"));
    assert!(find_line(&line_stdout, "  item ").starts_with("  item     add, attempt 1, done "), "{line_stdout}");
    let (second_code, third_stdout, _) = clone.handoff(&["whence", "main.txt:7"]);
    assert_eq!(second_code, 0, "{third_stdout}");
    assert_eq!(find_line(&third_stdout, "  proven: "), format!("  proven: {both}"));
    assert!(find_line(&third_stdout, "  item ").starts_with("  item     more, attempt 1, done "), "{third_stdout}");
}

#[test]
fn a_line_behind_the_end_is_answered_with_how_many_there_are() {
    let clone = applied();
    clone.write("main.txt", "one\ntwo\n");
    clone.write("empty", "");
    clone.git(&["add", "empty"]);
    clone.git(&["commit", "--quiet", "-m", "Empty"]);
    for (target, why) in [
        ("main.txt:99999", "\"main.txt\" has 2 lines, so there is no line 99999"),
        ("main.txt:3", "\"main.txt\" has 2 lines, so there is no line 3"),
        ("HEAD:main.txt:6", "\"main.txt\" has 5 lines, so there is no line 6"),
        ("new.txt:2", "\"new.txt\" has 1 line, so there is no line 2"),
        ("empty:1", "\"empty\" has 0 lines, so there is no line 1"),
    ] {
        let (code, _, stderr) = clone.handoff(&["--json", "whence", target]);
        let error: Value = serde_json::from_str(&stderr).unwrap();
        assert_eq!(
            (code, &error["code"], &error["message"]),
            (1, &json!("no-such-thing"), &json!(why)),
            "{target}: {error}"
        );
    }
}
