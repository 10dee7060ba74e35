//! Tracing commits and lines to items: found, proven, and neither.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

mod lines;
mod mixed;
mod random;
mod screen;
mod trust;

use serde_json::{Value, json};

use crate::common::clone::TestClone;
use crate::common::report::find_line;

const FIRST: (&str, &str, Option<&str>) = ("first", "sed -i s/one/ONE/ main.txt", None);
const LAST: (&str, &str, Option<&str>) = ("last", "sed -i s/five/FIVE/ main.txt; echo new > new.txt", None);
/// Builds on the patch of `first`, and rewrites the line that it changed.
const BUILD: (&str, &str, Option<&str>) =
    ("build", "git apply --index inputs/patch && sed -i 's/ONE/1/; s/three/THREE/' main.txt", Some("first"));

/// A repository with a run of two items that are on the branch `feature`, which is checked out.
fn applied() -> TestClone {
    let clone = TestClone::new();
    clone.done("r", &[FIRST, LAST]);
    clone.git(&["checkout", "--quiet", "-b", "feature"]);
    let (code, stdout, stderr) = clone.handoff(&["apply", "r", "--commit"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    clone
}

/// Goes on with `main`, and comes back.
fn go_on(clone: &TestClone, text: &str) {
    clone.git(&["checkout", "--quiet", "main"]);
    clone.write("main.txt", text);
    clone.git(&["commit", "--quiet", "-am", "Go on"]);
    clone.git(&["checkout", "--quiet", "feature"]);
}

/// Returns the exit code of `verify --commits`, with the verdict and the items of every commit.
fn verified(clone: &TestClone, range: &str) -> (i32, Vec<(String, String)>) {
    let (code, answer) = clone.answer(&["verify", "--commits", range]);
    assert_eq!(answer["schema"], "git-handoff.verify-commits/1");
    assert_eq!(answer["passed"], json!(code == 0), "{answer}");
    (code, answer["commits"].as_array().unwrap().iter().map(verdict_of).collect())
}

/// Returns the exit code of `whence`, with the verdict and the items of every commit.
fn whence(clone: &TestClone, target: &str) -> (i32, Vec<(String, String)>) {
    let (code, answer) = clone.answer(&["whence", target]);
    assert_eq!(answer["proven"], json!(code == 0), "{answer}");
    (code, answer["commits"].as_array().unwrap().iter().map(verdict_of).collect())
}

fn verdict_of(commit: &Value) -> (String, String) {
    let items = commit["items"].as_array().unwrap().iter().map(|item| item["item"].as_str().unwrap());
    (commit["verdict"].as_str().unwrap().to_owned(), items.collect::<Vec<_>>().join("+"))
}

fn verdict_rows(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(verdict, items)| ((*verdict).to_owned(), (*items).to_owned())).collect()
}

#[test]
fn applied_commit_is_proven_with_its_origin() {
    let clone = applied();
    assert_eq!(verified(&clone, "main..feature"), (0, verdict_rows(&[("product", "first"), ("product", "last")])));
    assert_eq!(verified(&clone, "main.."), verified(&clone, "main..feature"));
    let (code, answer) = clone.answer(&["whence", "feature"]);
    assert_eq!((code, &answer["schema"], &answer["proven"]), (0, &json!("git-handoff.whence/1"), &json!(true)));
    let commit = &answer["commits"][0];
    assert_eq!((&commit["by"], &commit["others"]), (&json!("tree"), &json!([])));
    let item = &commit["items"][0];
    assert_eq!(
        (&item["run"], &item["ref"], &item["item"]),
        (&json!("r"), &json!("refs/handoff/runs/r"), &json!("last"))
    );
    assert_eq!(item["standing"], "proven");
    let made = &item["made"];
    assert_eq!((&made["attempt"], &made["executor"], &made["sealed"]), (&json!(1), &json!("command"), &json!(true)));
    assert_eq!(made["argv"], json!(["sh", "-c", LAST.1]));
    assert_eq!(made["prompt"]["text"], LAST.1);
    assert_eq!((&made["check"], &made["sandbox"]), (&json!(null), &json!("none")));
    let (_, details) = clone.answer(&["show", "r/last"]);
    assert_eq!(made["prompt"]["digest"], details["manifest"]["inputs"]);
    assert_eq!(item["product"], details["resultRef"]);
}

#[test]
fn nothing_is_written_and_nothing_moves() {
    let clone = applied();
    let before = (clone.git(&["count-objects", "-v"]), clone.git(&["for-each-ref"]), clone.git(&["status", "-s"]));
    assert_eq!(whence(&clone, "main..feature").0, 0);
    assert_eq!(verified(&clone, "main..feature").0, 0);
    assert_eq!(whence(&clone, "main.txt").0, 1);
    assert_eq!(
        (clone.git(&["count-objects", "-v"]), clone.git(&["for-each-ref"]), clone.git(&["status", "-s"])),
        before
    );
}

#[test]
fn a_rebase_leaves_it_what_it_is() {
    let clone = applied();
    // The surrounding lines change.
    go_on(&clone, "one\ntwo\nand a half\n3\nfour\nfive\n");
    clone.git(&["rebase", "--quiet", "main"]);
    assert_eq!(verified(&clone, "main..feature"), (0, verdict_rows(&[("product", "first"), ("product", "last")])));
    // Without the words that say where to look, by what it does.
    clone.git(&["commit", "--quiet", "--amend", "-m", "Something"]);
    let (code, answer) = clone.answer(&["whence", "feature"]);
    assert_eq!((code, &answer["commits"][0]["by"]), (0, &json!("tree")), "{answer}");
    assert_eq!(answer["commits"][0]["items"][0]["item"], "last");
}

#[test]
fn a_rebase_that_only_moves_lines_leaves_the_patch_id() {
    let clone = TestClone::new();
    let lines = (0..30).map(|line| line.to_string()).collect::<Vec<_>>().join("\n") + "\n";
    clone.write("main.txt", &lines);
    clone.git(&["commit", "--quiet", "-am", "Lines"]);
    clone.done("r", &[("edit", "sed -i 20s/19/twenty/ main.txt", None)]);
    assert_eq!(clone.handoff(&["apply", "r", "--branch", "feature"]).0, 0);
    clone.git(&["checkout", "--quiet", "feature"]);
    go_on(&clone, &format!("before\n{lines}"));
    clone.git(&["rebase", "--quiet", "main"]);
    clone.git(&["commit", "--quiet", "--amend", "-m", "Something"]);
    assert_eq!(verified(&clone, "main..feature"), (0, verdict_rows(&[("product", "edit")])));
}

#[test]
fn a_cherry_pick_leaves_it_what_it_is() {
    let clone = applied();
    go_on(&clone, "one\ntwo\nand a half\n3\nfour\nfive\n");
    clone.git(&["checkout", "--quiet", "-b", "picked", "main"]);
    clone.git(&["cherry-pick", "feature"]);
    assert_eq!(verified(&clone, "main..picked"), (0, verdict_rows(&[("product", "last")])));
    clone.git(&["commit", "--quiet", "--amend", "-m", "Pick"]);
    assert_eq!(verified(&clone, "main..picked"), (0, verdict_rows(&[("product", "last")])));
}

#[test]
fn its_lines_elsewhere_are_found_by_the_patch_id() {
    let clone = TestClone::new();
    let lines = "a\nb\nc\nd\ne\nf\ng\n".repeat(2);
    clone.write("main.txt", &lines);
    clone.git(&["commit", "--quiet", "-am", "Twice"]);
    clone.done("r", &[("edit", "sed -i 4s/d/D/ main.txt", None)]);
    let (_, patch, _) = clone.handoff(&["cat", "r/edit:patch"]);
    clone.write("patch", &patch.replace("@@ -1,7 +1,7 @@", "@@ -8,7 +8,7 @@"));
    clone.git(&["apply", "patch"]);
    assert_eq!(clone.read("main.txt").lines().nth(10), Some("D"));
    clone.git(&["commit", "--quiet", "-am", "The other one"]);
    let (code, answer) = clone.answer(&["whence", "HEAD"]);
    assert_eq!((code, &answer["commits"][0]["by"]), (0, &json!("patch-id")), "{answer}");
}

#[test]
fn a_squash_is_what_its_items_come_to() {
    for message in [&["--no-edit"][..], &["-m", "All of it"]] {
        let clone = applied();
        go_on(&clone, "one\ntwo\nand a half\n3\nfour\nfive\n");
        clone.git(&["checkout", "--quiet", "main"]);
        clone.git(&["merge", "--squash", "feature"]);
        clone.git(&[&["commit", "--quiet"], message].concat());
        assert_eq!(verified(&clone, "main~1..main"), (0, verdict_rows(&[("product", "first+last")])), "{message:?}");
    }
}

#[test]
fn a_squash_of_items_of_two_runs_is_what_they_come_to() {
    let clone = applied();
    clone.done("s", &[("more", "echo more > more.txt", None)]);
    assert_eq!(clone.handoff(&["apply", "s", "--commit"]).0, 0);
    clone.git(&["checkout", "--quiet", "main"]);
    clone.git(&["merge", "--squash", "feature"]);
    clone.git(&["commit", "--quiet", "-m", "All of it"]);
    let (code, commits) = verified(&clone, "main~1..main");
    assert_eq!((code, commits[0].0.as_str()), (0, "product"));
    let mut items: Vec<_> = commits[0].1.split('+').collect();
    items.sort_unstable();
    assert_eq!(items, ["first", "last", "more"]);
}

#[test]
fn an_item_that_builds_on_another_is_found_with_it_and_without() {
    let clone = TestClone::new();
    clone.done("r", &[FIRST, BUILD]);
    assert_eq!(clone.handoff(&["apply", "r", "--branch", "both"]).0, 0);
    assert_eq!(verified(&clone, "main..both"), (0, verdict_rows(&[("product", "first"), ("product", "build")])));
    assert_eq!(clone.handoff(&["apply", "r/build", "--branch", "alone"]).0, 0);
    assert_eq!(verified(&clone, "main..alone"), (0, verdict_rows(&[("product", "build")])));
}

#[test]
fn verify_finds_changes_made_after_apply() {
    type Change = fn(&TestClone);
    let cases: [(&str, Change); 5] = [
        ("a line more", |clone| clone.write("new.txt", "new\nmore\n")),
        ("a file more", |clone| clone.write("main.sh", "echo\n")),
        ("white space", |clone| clone.write("new.txt", "new \n")),
        ("a mode", |clone| drop(clone.git(&["update-index", "--chmod=+x", "new.txt"]))),
        ("part of it", |clone| drop(clone.git(&["checkout", "main", "main.txt"]))),
    ];
    for (what, change) in cases {
        let clone = applied();
        change(&clone);
        if what != "a mode" {
            clone.git(&["add", "--all"]);
        }
        clone.git(&["commit", "--quiet", "--amend", "--no-edit"]);
        assert_eq!(
            verified(&clone, "main..feature"),
            (3, verdict_rows(&[("product", "first"), ("changed", "last")])),
            "{what}"
        );
        assert_eq!(whence(&clone, "feature"), (3, verdict_rows(&[("changed", "last")])), "{what}");
    }
}

#[test]
fn white_space_changes_break_the_proof_and_are_reported() {
    let clone = applied();
    clone.write("new.txt", "new \n");
    clone.git(&["commit", "--quiet", "--amend", "-am", "Mine"]);
    let (code, answer) = clone.answer(&["verify", "--commits", "main..feature"]);
    assert_eq!(
        (code, &answer["commits"][1]["detail"]),
        (3, &json!("but for white space it is what r/last handed over"))
    );
}

#[test]
fn words_alone_make_no_commit_an_items() {
    let clone = applied();
    let (_, details) = clone.answer(&["show", "r/first"]);
    let product = details["resultRef"].as_str().unwrap().to_owned();
    let message = |run: &str, item: &str, handed_product: &str| {
        format!("x\n\nHandoff-Run: {run}\nHandoff-Item: {item}\nHandoff-Product: {handed_product}\n")
    };
    let zeros = format!("sha256:{}", "0".repeat(64));
    let cases = [
        (message("r", "first", &product), "changed"),
        (message("r", "first", &zeros), "changed"),
        (message("r", "last", &product), "changed"),
        (message("r", "nobody", &product), "changed"),
        ("x\n\nHandoff-Run: r\n".to_owned(), "changed"),
        (message("elsewhere", "first", &product), "unknown-run"),
        (message("", "first", &product), "unknown-run"),
        (message("../r", "first", &product), "unknown-run"),
    ];
    for (at, (body, verdict)) in cases.into_iter().enumerate() {
        clone.write("mine.txt", &format!("{at}\n"));
        clone.git(&["add", "mine.txt"]);
        clone.git(&["commit", "--quiet", "-m", &body]);
        let (code, commits) = verified(&clone, "HEAD~1..HEAD");
        assert_eq!((code, commits[0].0.as_str()), (3, verdict), "{body}");
        let (second_code, _) = whence(&clone, "HEAD");
        assert_eq!(second_code, if verdict == "changed" { 3 } else { 1 }, "{body}");
    }
    // One that changes nothing is no item's either.
    clone.git(&["commit", "--quiet", "--allow-empty", "-m", &message("r", "first", &product)]);
    assert_eq!(verified(&clone, "HEAD~1..HEAD").0, 3);
    // Nor is what one item handed over another's.
    clone.git(&["checkout", "--quiet", "-b", "other", "feature"]);
    let last = clone.git(&["log", "--format=%H", "--grep", "^last: ", "feature"]);
    clone.git(&["checkout", "--quiet", "-b", "swapped", last.trim()]);
    clone.git(&["commit", "--quiet", "--amend", "-m", &message("r", "first", &product)]);
    let (code, answer) = clone.answer(&["verify", "--commits", "HEAD~1..HEAD"]);
    assert_eq!((code, &answer["commits"][0]["verdict"]), (3, &json!("changed")));
}

#[test]
fn commits_of_people_belong_to_no_item() {
    let clone = applied();
    clone.git(&["revert", "--no-edit", "HEAD"]);
    clone.write("main.txt", "ONE\n2\nthree\nfour\nfive\n");
    clone.git(&["commit", "--quiet", "-am", "By hand"]);
    clone.git(&["commit", "--quiet", "--allow-empty", "-m", "Nothing"]);
    let people = [("person", ""), ("person", ""), ("person", "")];
    assert_eq!(verified(&clone, "HEAD~3..HEAD"), (0, verdict_rows(&people)));
    assert_eq!(whence(&clone, "HEAD~3..HEAD"), (1, verdict_rows(&people)));
    let (_, answer) = clone.answer(&["whence", "HEAD~1"]);
    assert_eq!(answer["commits"][0]["author"], "Ada <ada@example.com>");
    // The first commit has nothing before it.
    assert_eq!(whence(&clone, "HEAD~5"), (1, verdict_rows(&[("person", "")])));
}

#[test]
fn a_committed_part_of_a_patch_is_theirs_until_the_rest_comes() {
    let clone = TestClone::new();
    clone.done("r", &[("two", "sed -i 's/one/ONE/; s/five/FIVE/' main.txt; echo new > new.txt", None)]);
    assert_eq!(clone.handoff(&["apply", "r"]).0, 0);
    clone.git(&["commit", "--quiet", "-m", "A part", "main.txt"]);
    clone.git(&["commit", "--quiet", "-am", "The rest"]);
    assert_eq!(verified(&clone, "HEAD~2..HEAD"), (0, verdict_rows(&[("person", ""), ("product", "two")])));
}

#[test]
fn a_users_own_commit_is_the_items_by_its_content() {
    let clone = TestClone::new();
    clone.done("r", &[LAST]);
    clone.done("again", &[LAST]);
    assert_eq!(clone.handoff(&["apply", "r"]).0, 0);
    clone.git(&["commit", "--quiet", "-m", "Mine"]);
    let (code, answer) = clone.answer(&["whence", "HEAD"]);
    assert_eq!(code, 0, "{answer}");
    // Two runs have the same product, and nothing distinguishes them.
    let commit = &answer["commits"][0];
    let runs = [&commit["items"][0]["run"], &commit["others"][0]["run"]];
    assert!(runs.contains(&&json!("r")) && runs.contains(&&json!("again")), "{answer}");
}

#[test]
fn files_of_every_kind_are_known_again() {
    let clone = TestClone::new();
    clone.write("gone.txt", "gone\n");
    clone.write("old.txt", "a\nb\nc\nd\ne\nf\n");
    clone.write(".gitattributes", "*.dat binary\n");
    clone.git(&["add", "."]);
    clone.git(&["commit", "--quiet", "-m", "More"]);
    let script = r"printf '\000\377bin' > bin; echo text > some.dat; rm gone.txt; mv old.txt moved.txt; ln -s main.txt link;
        printf '#!/bin/sh\n' > tool; chmod +x tool; printf '\344' > 'sp ace'; printf x > 'ü:3'";
    clone.done("r", &[("all", script, None)]);
    assert_eq!(clone.handoff(&["apply", "r", "--commit"]).0, 0);
    assert_eq!(verified(&clone, "HEAD~1..HEAD"), (0, verdict_rows(&[("product", "all")])));
    clone.git(&["commit", "--quiet", "--amend", "-m", "Mine"]);
    assert_eq!(verified(&clone, "HEAD~1..HEAD"), (0, verdict_rows(&[("product", "all")])));
    clone.git(&["update-index", "--chmod=-x", "tool"]);
    clone.git(&["commit", "--quiet", "--amend", "--no-edit"]);
    assert_eq!(verified(&clone, "HEAD~1..HEAD"), (0, verdict_rows(&[("person", "")])));
}

#[test]
fn a_merge_is_what_it_brings() {
    let clone = applied();
    go_on(&clone, "one\ntwo\n3\nfour\nfive\n");
    clone.git(&["checkout", "--quiet", "main"]);
    clone.git(&["merge", "--quiet", "--no-ff", "-m", "Merge", "feature"]);
    let (code, commits) = verified(&clone, "main~1..main");
    assert_eq!((code, commits.len()), (0, 3));
    assert_eq!(commits[2], ("product".to_owned(), "first+last".to_owned()));
}

#[test]
fn whence_rejects_invalid_targets() {
    let clone = applied();
    for (target, code, word) in [
        ("nothing", 1, "no-such-thing"),
        ("main.txt:0", 1, "no-such-thing"),
        ("main.txt:x", 1, "no-such-thing"),
        ("../main.txt", 1, "no-such-thing"),
        ("nothing..feature", 1, "no-such-thing"),
        ("main.txt:99", 1, "no-such-thing"),
        ("--help-me", 2, "usage"),
    ] {
        let (found, _, stderr) = clone.handoff(&["whence", "--json", target]);
        let error: Value = serde_json::from_str(&stderr).unwrap();
        assert_eq!((found, &error["code"]), (code, &json!(word)), "{target}: {error}");
    }
    assert_eq!(clone.handoff(&["verify", "--commits", "feature"]).0, 2);
    assert_eq!(clone.handoff(&["verify", "--commits", "main...feature"]).0, 2);
    assert_eq!(clone.handoff(&["verify", "--commits", "main..nothing"]).0, 1);
    assert_eq!(clone.handoff(&["verify", "--commits", "main..feature", "r"]).0, 2);
    assert_eq!(verified(&clone, "feature..main"), (0, Vec::new()));
}

#[test]
fn whence_marks_items_with_a_failed_check() {
    let clone = TestClone::new();
    let red = r#"echo red > red.txt; echo '{"verify":{"passed":false}}' > "$HANDOFF_RESULT""#;
    let plan = clone.plan("r", &[("red", red, None)]);
    let (code, ..) = clone.handoff(&["run", &plan]);
    assert_eq!(code, 4);
    clone.git(&["checkout", "--quiet", "-b", "feature"]);
    assert_eq!(clone.handoff(&["apply", "r", "--commit", "--allow-red"]).0, 0);
    let (verify_code, listed, _) = clone.handoff(&["verify", "--commits", "main..feature"]);
    assert_eq!(verify_code, 4, "{listed}");
    assert_eq!(verify_code, 4, "{listed}");
    let tip = clone.git(&["rev-parse", "HEAD"]);
    assert_eq!(listed, format!("! {}  product  r/red, red\nmain..feature: 1 of 1 commits pass, 1 red\n", &tip[..12]));
    assert!(listed.ends_with("main..feature: 1 of 1 commits pass, 1 red\n"), "{listed}");
    let (second_code, answer) = clone.answer(&["verify", "--commits", "main..feature"]);
    assert_eq!((second_code, &answer["passed"], &answer["red"]), (4, &json!(true), &json!(true)), "{answer}");
    assert_eq!(clone.handoff(&["verify", "--allow-partial", "--commits", "main..feature"]).0, 0);
    // An altered commit matters more than a failed check.
    clone.write("red.txt", "mine\n");
    clone.git(&["commit", "--quiet", "-a", "--amend", "--no-edit"]);
    assert_eq!(clone.handoff(&["verify", "--commits", "main..feature"]).0, 3);
    clone.git(&["reset", "--quiet", "--hard", "HEAD@{1}"]);
    let (whence_code, stdout, _) = clone.handoff(&["whence", "feature"]);
    assert_eq!(whence_code, 0, "{stdout}");
    assert_eq!(whence_code, 0, "{stdout}");
    let (item, time) = find_line(&stdout, "  item ").split_at("  item     red, attempt 1, done, red ".len());
    assert!(stdout.starts_with("! ") && time.ends_with("Z, by human:Ada"), "{stdout}");
    assert_eq!(item, "  item     red, attempt 1, done, red ");
}
