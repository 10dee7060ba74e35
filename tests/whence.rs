//! Tracing commits and lines to items: found, proven, and neither.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

mod lines;
mod mixed;
mod random;
mod screen;
mod trust;

use serde_json::{Value, json};

use crate::common::place::Place;

const FIRST: (&str, &str, Option<&str>) = ("first", "sed -i s/one/ONE/ main.txt", None);
const LAST: (&str, &str, Option<&str>) = ("last", "sed -i s/five/FIVE/ main.txt; echo new > new.txt", None);
/// Builds on the patch of `first`, and rewrites the line that it changed.
const BUILD: (&str, &str, Option<&str>) =
    ("build", "git apply --index inputs/patch && sed -i 's/ONE/1/; s/three/THREE/' main.txt", Some("first"));

/// A repository with a run of two items that are on the branch `feature`, which is checked out.
fn applied() -> Place {
    let place = Place::new();
    place.done("r", &[FIRST, LAST]);
    place.git(&["checkout", "--quiet", "-b", "feature"]);
    let (code, stdout, stderr) = place.handoff(&["apply", "r", "--commit"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    place
}

/// Goes on with `main`, and comes back.
fn go_on(place: &Place, text: &str) {
    place.git(&["checkout", "--quiet", "main"]);
    place.write("main.txt", text);
    place.git(&["commit", "--quiet", "-am", "Go on"]);
    place.git(&["checkout", "--quiet", "feature"]);
}

/// Returns the exit code of `verify --commits`, with the verdict and the items of every commit.
fn verified(place: &Place, range: &str) -> (i32, Vec<(String, String)>) {
    let (code, answer) = place.answer(&["verify", "--commits", range]);
    assert_eq!(answer["schema"], "git-handoff.verify-commits/1");
    assert_eq!(answer["passed"], json!(code == 0), "{answer}");
    (code, answer["commits"].as_array().unwrap().iter().map(told).collect())
}

/// Returns the exit code of `whence`, with the verdict and the items of every commit.
fn whence(place: &Place, asked: &str) -> (i32, Vec<(String, String)>) {
    let (code, answer) = place.answer(&["whence", asked]);
    assert_eq!(answer["proven"], json!(code == 0), "{answer}");
    (code, answer["commits"].as_array().unwrap().iter().map(told).collect())
}

fn told(commit: &Value) -> (String, String) {
    let items = commit["items"].as_array().unwrap().iter().map(|item| item["item"].as_str().unwrap());
    (commit["verdict"].as_str().unwrap().to_owned(), items.collect::<Vec<_>>().join("+"))
}

fn of(told: &[(&str, &str)]) -> Vec<(String, String)> {
    told.iter().map(|(verdict, items)| ((*verdict).to_owned(), (*items).to_owned())).collect()
}

#[test]
fn what_was_applied_is_the_items_and_says_how_it_was_made() {
    let place = applied();
    assert_eq!(verified(&place, "main..feature"), (0, of(&[("product", "first"), ("product", "last")])));
    assert_eq!(verified(&place, "main.."), verified(&place, "main..feature"));
    let (code, answer) = place.answer(&["whence", "feature"]);
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
    let (_, shown) = place.answer(&["show", "r/last"]);
    assert_eq!(made["prompt"]["digest"], shown["manifest"]["inputs"]);
    assert_eq!(item["product"], shown["resultRef"]);
}

#[test]
fn nothing_is_written_and_nothing_moves() {
    let place = applied();
    let before = (place.git(&["count-objects", "-v"]), place.git(&["for-each-ref"]), place.git(&["status", "-s"]));
    assert_eq!(whence(&place, "main..feature").0, 0);
    assert_eq!(verified(&place, "main..feature").0, 0);
    assert_eq!(whence(&place, "main.txt").0, 1);
    assert_eq!(
        (place.git(&["count-objects", "-v"]), place.git(&["for-each-ref"]), place.git(&["status", "-s"])),
        before
    );
}

#[test]
fn a_rebase_leaves_it_what_it_is() {
    let place = applied();
    // The surrounding lines change.
    go_on(&place, "one\ntwo\nand a half\n3\nfour\nfive\n");
    place.git(&["rebase", "--quiet", "main"]);
    assert_eq!(verified(&place, "main..feature"), (0, of(&[("product", "first"), ("product", "last")])));
    // Without the words that say where to look, by what it does.
    place.git(&["commit", "--quiet", "--amend", "-m", "Something"]);
    let (code, answer) = place.answer(&["whence", "feature"]);
    assert_eq!((code, &answer["commits"][0]["by"]), (0, &json!("tree")), "{answer}");
    assert_eq!(answer["commits"][0]["items"][0]["item"], "last");
}

#[test]
fn a_rebase_that_only_moves_lines_leaves_the_patch_id() {
    let place = Place::new();
    let lines = (0..30).map(|line| line.to_string()).collect::<Vec<_>>().join("\n") + "\n";
    place.write("main.txt", &lines);
    place.git(&["commit", "--quiet", "-am", "Lines"]);
    place.done("r", &[("edit", "sed -i 20s/19/twenty/ main.txt", None)]);
    assert_eq!(place.handoff(&["apply", "r", "--branch", "feature"]).0, 0);
    place.git(&["checkout", "--quiet", "feature"]);
    go_on(&place, &format!("before\n{lines}"));
    place.git(&["rebase", "--quiet", "main"]);
    place.git(&["commit", "--quiet", "--amend", "-m", "Something"]);
    assert_eq!(verified(&place, "main..feature"), (0, of(&[("product", "edit")])));
}

#[test]
fn a_cherry_pick_leaves_it_what_it_is() {
    let place = applied();
    go_on(&place, "one\ntwo\nand a half\n3\nfour\nfive\n");
    place.git(&["checkout", "--quiet", "-b", "picked", "main"]);
    place.git(&["cherry-pick", "feature"]);
    assert_eq!(verified(&place, "main..picked"), (0, of(&[("product", "last")])));
    place.git(&["commit", "--quiet", "--amend", "-m", "Pick"]);
    assert_eq!(verified(&place, "main..picked"), (0, of(&[("product", "last")])));
}

#[test]
fn its_lines_elsewhere_are_found_by_the_patch_id() {
    let place = Place::new();
    let lines = "a\nb\nc\nd\ne\nf\ng\n".repeat(2);
    place.write("main.txt", &lines);
    place.git(&["commit", "--quiet", "-am", "Twice"]);
    place.done("r", &[("edit", "sed -i 4s/d/D/ main.txt", None)]);
    let (_, patch, _) = place.handoff(&["cat", "r/edit:patch"]);
    place.write("patch", &patch.replace("@@ -1,7 +1,7 @@", "@@ -8,7 +8,7 @@"));
    place.git(&["apply", "patch"]);
    assert_eq!(place.read("main.txt").lines().nth(10), Some("D"));
    place.git(&["commit", "--quiet", "-am", "The other one"]);
    let (code, answer) = place.answer(&["whence", "HEAD"]);
    assert_eq!((code, &answer["commits"][0]["by"]), (0, &json!("patch-id")), "{answer}");
}

#[test]
fn a_squash_is_what_its_items_come_to() {
    for message in [&["--no-edit"][..], &["-m", "All of it"]] {
        let place = applied();
        go_on(&place, "one\ntwo\nand a half\n3\nfour\nfive\n");
        place.git(&["checkout", "--quiet", "main"]);
        place.git(&["merge", "--squash", "feature"]);
        place.git(&[&["commit", "--quiet"], message].concat());
        assert_eq!(verified(&place, "main~1..main"), (0, of(&[("product", "first+last")])), "{message:?}");
    }
}

#[test]
fn a_squash_of_items_of_two_runs_is_what_they_come_to() {
    let place = applied();
    place.done("s", &[("more", "echo more > more.txt", None)]);
    assert_eq!(place.handoff(&["apply", "s", "--commit"]).0, 0);
    place.git(&["checkout", "--quiet", "main"]);
    place.git(&["merge", "--squash", "feature"]);
    place.git(&["commit", "--quiet", "-m", "All of it"]);
    let (code, told) = verified(&place, "main~1..main");
    assert_eq!((code, told[0].0.as_str()), (0, "product"));
    let mut items: Vec<_> = told[0].1.split('+').collect();
    items.sort_unstable();
    assert_eq!(items, ["first", "last", "more"]);
}

#[test]
fn an_item_that_builds_on_another_is_found_with_it_and_without() {
    let place = Place::new();
    place.done("r", &[FIRST, BUILD]);
    assert_eq!(place.handoff(&["apply", "r", "--branch", "both"]).0, 0);
    assert_eq!(verified(&place, "main..both"), (0, of(&[("product", "first"), ("product", "build")])));
    assert_eq!(place.handoff(&["apply", "r/build", "--branch", "alone"]).0, 0);
    assert_eq!(verified(&place, "main..alone"), (0, of(&[("product", "build")])));
}

#[test]
fn what_was_changed_after_it_was_applied_is_found() {
    type Change = fn(&Place);
    let cases: [(&str, Change); 5] = [
        ("a line more", |place| place.write("new.txt", "new\nmore\n")),
        ("a file more", |place| place.write("main.sh", "echo\n")),
        ("white space", |place| place.write("new.txt", "new \n")),
        ("a mode", |place| drop(place.git(&["update-index", "--chmod=+x", "new.txt"]))),
        ("part of it", |place| drop(place.git(&["checkout", "main", "main.txt"]))),
    ];
    for (what, change) in cases {
        let place = applied();
        change(&place);
        if what != "a mode" {
            place.git(&["add", "--all"]);
        }
        place.git(&["commit", "--quiet", "--amend", "--no-edit"]);
        assert_eq!(verified(&place, "main..feature"), (3, of(&[("product", "first"), ("changed", "last")])), "{what}");
        assert_eq!(whence(&place, "feature"), (3, of(&[("changed", "last")])), "{what}");
    }
}

#[test]
fn what_differs_in_white_space_alone_is_no_items_and_said() {
    let place = applied();
    place.write("new.txt", "new \n");
    place.git(&["commit", "--quiet", "--amend", "-am", "Mine"]);
    let (code, answer) = place.answer(&["verify", "--commits", "main..feature"]);
    assert_eq!(
        (code, &answer["commits"][1]["detail"]),
        (3, &json!("but for white space it is what r/last handed over"))
    );
}

#[test]
fn words_alone_make_no_commit_an_items() {
    let place = applied();
    let (_, shown) = place.answer(&["show", "r/first"]);
    let product = shown["resultRef"].as_str().unwrap().to_owned();
    let message = |run: &str, item: &str, product: &str| {
        format!("x\n\nHandoff-Run: {run}\nHandoff-Item: {item}\nHandoff-Product: {product}\n")
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
    for (at, (message, verdict)) in cases.into_iter().enumerate() {
        place.write("mine.txt", &format!("{at}\n"));
        place.git(&["add", "mine.txt"]);
        place.git(&["commit", "--quiet", "-m", &message]);
        let (code, told) = verified(&place, "HEAD~1..HEAD");
        assert_eq!((code, told[0].0.as_str()), (3, verdict), "{message}");
        let (code, _) = whence(&place, "HEAD");
        assert_eq!(code, if verdict == "changed" { 3 } else { 1 }, "{message}");
    }
    // One that changes nothing is no item's either.
    place.git(&["commit", "--quiet", "--allow-empty", "-m", &message("r", "first", &product)]);
    assert_eq!(verified(&place, "HEAD~1..HEAD").0, 3);
    // Nor is what one item handed over another's.
    place.git(&["checkout", "--quiet", "-b", "other", "feature"]);
    let last = place.git(&["log", "--format=%H", "--grep", "^last: ", "feature"]);
    place.git(&["checkout", "--quiet", "-b", "swapped", last.trim()]);
    place.git(&["commit", "--quiet", "--amend", "-m", &message("r", "first", &product)]);
    let (code, answer) = place.answer(&["verify", "--commits", "HEAD~1..HEAD"]);
    assert_eq!((code, &answer["commits"][0]["verdict"]), (3, &json!("changed")));
}

#[test]
fn what_people_do_is_theirs() {
    let place = applied();
    place.git(&["revert", "--no-edit", "HEAD"]);
    place.write("main.txt", "ONE\n2\nthree\nfour\nfive\n");
    place.git(&["commit", "--quiet", "-am", "By hand"]);
    place.git(&["commit", "--quiet", "--allow-empty", "-m", "Nothing"]);
    let people = [("person", ""), ("person", ""), ("person", "")];
    assert_eq!(verified(&place, "HEAD~3..HEAD"), (0, of(&people)));
    assert_eq!(whence(&place, "HEAD~3..HEAD"), (1, of(&people)));
    let (_, answer) = place.answer(&["whence", "HEAD~1"]);
    assert_eq!(answer["commits"][0]["author"], "Ada <ada@example.com>");
    // The first commit has nothing before it.
    assert_eq!(whence(&place, "HEAD~5"), (1, of(&[("person", "")])));
}

#[test]
fn a_part_of_a_patch_that_somebody_committed_is_theirs_until_the_rest_comes() {
    let place = Place::new();
    place.done("r", &[("two", "sed -i 's/one/ONE/; s/five/FIVE/' main.txt; echo new > new.txt", None)]);
    assert_eq!(place.handoff(&["apply", "r"]).0, 0);
    place.git(&["commit", "--quiet", "-m", "A part", "main.txt"]);
    place.git(&["commit", "--quiet", "-am", "The rest"]);
    assert_eq!(verified(&place, "HEAD~2..HEAD"), (0, of(&[("person", ""), ("product", "two")])));
}

#[test]
fn what_somebody_committed_himself_is_the_items_by_what_it_holds() {
    let place = Place::new();
    place.done("r", &[LAST]);
    place.done("again", &[LAST]);
    assert_eq!(place.handoff(&["apply", "r"]).0, 0);
    place.git(&["commit", "--quiet", "-m", "Mine"]);
    let (code, answer) = place.answer(&["whence", "HEAD"]);
    assert_eq!(code, 0, "{answer}");
    // Two runs handed over the same, and nothing tells them apart.
    let commit = &answer["commits"][0];
    let runs = [&commit["items"][0]["run"], &commit["others"][0]["run"]];
    assert!(runs.contains(&&json!("r")) && runs.contains(&&json!("again")), "{answer}");
}

#[test]
fn files_of_every_kind_are_known_again() {
    let place = Place::new();
    place.write("gone.txt", "gone\n");
    place.write("old.txt", "a\nb\nc\nd\ne\nf\n");
    place.write(".gitattributes", "*.dat binary\n");
    place.git(&["add", "."]);
    place.git(&["commit", "--quiet", "-m", "More"]);
    let script = r"printf '\000\377bin' > bin; echo text > some.dat; rm gone.txt; mv old.txt moved.txt; ln -s main.txt link;
        printf '#!/bin/sh\n' > tool; chmod +x tool; printf '\344' > 'sp ace'; printf x > 'ü:3'";
    place.done("r", &[("all", script, None)]);
    assert_eq!(place.handoff(&["apply", "r", "--commit"]).0, 0);
    assert_eq!(verified(&place, "HEAD~1..HEAD"), (0, of(&[("product", "all")])));
    place.git(&["commit", "--quiet", "--amend", "-m", "Mine"]);
    assert_eq!(verified(&place, "HEAD~1..HEAD"), (0, of(&[("product", "all")])));
    place.git(&["update-index", "--chmod=-x", "tool"]);
    place.git(&["commit", "--quiet", "--amend", "--no-edit"]);
    assert_eq!(verified(&place, "HEAD~1..HEAD"), (0, of(&[("person", "")])));
}

#[test]
fn a_merge_is_what_it_brings() {
    let place = applied();
    go_on(&place, "one\ntwo\n3\nfour\nfive\n");
    place.git(&["checkout", "--quiet", "main"]);
    place.git(&["merge", "--quiet", "--no-ff", "-m", "Merge", "feature"]);
    let (code, told) = verified(&place, "main~1..main");
    assert_eq!((code, told.len()), (0, 3));
    assert_eq!(told[2], ("product".to_owned(), "first+last".to_owned()));
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let place = applied();
    for (asked, code, word) in [
        ("nothing", 1, "no-such-thing"),
        ("main.txt:0", 1, "no-such-thing"),
        ("main.txt:x", 1, "no-such-thing"),
        ("../main.txt", 1, "no-such-thing"),
        ("nothing..feature", 1, "no-such-thing"),
        ("main.txt:99", 1, "no-such-thing"),
        ("--help-me", 2, "usage"),
    ] {
        let (found, _, stderr) = place.handoff(&["whence", "--json", asked]);
        let error: Value = serde_json::from_str(&stderr).unwrap();
        assert_eq!((found, &error["code"]), (code, &json!(word)), "{asked}: {error}");
    }
    assert_eq!(place.handoff(&["verify", "--commits", "feature"]).0, 2);
    assert_eq!(place.handoff(&["verify", "--commits", "main...feature"]).0, 2);
    assert_eq!(place.handoff(&["verify", "--commits", "main..nothing"]).0, 1);
    assert_eq!(place.handoff(&["verify", "--commits", "main..feature", "r"]).0, 2);
    assert_eq!(verified(&place, "feature..main"), (0, Vec::new()));
}

#[test]
fn what_did_not_pass_its_check_is_shown_to_be_red() {
    let place = Place::new();
    let red = r#"echo red > red.txt; echo '{"verify":{"passed":false}}' > "$HANDOFF_RESULT""#;
    let plan = place.plan("r", &[("red", red, None)]);
    let (code, ..) = place.handoff(&["run", &plan]);
    assert_eq!(code, 4);
    place.git(&["checkout", "--quiet", "-b", "feature"]);
    assert_eq!(place.handoff(&["apply", "r", "--commit", "--allow-red"]).0, 0);
    let (code, listed, _) = place.handoff(&["verify", "--commits", "main..feature"]);
    assert!(code == 4 && listed.starts_with("! ") && listed.contains("product  r/red, red"), "{listed}");
    assert!(listed.ends_with("main..feature: 1 of 1 commits pass, 1 red\n"), "{listed}");
    let (code, answer) = place.answer(&["verify", "--commits", "main..feature"]);
    assert_eq!((code, &answer["passed"], &answer["red"]), (4, &json!(true), &json!(true)), "{answer}");
    assert_eq!(place.handoff(&["verify", "--allow-partial", "--commits", "main..feature"]).0, 0);
    // An altered commit matters more than a failed check.
    place.write("red.txt", "mine\n");
    place.git(&["commit", "--quiet", "-a", "--amend", "--no-edit"]);
    assert_eq!(place.handoff(&["verify", "--commits", "main..feature"]).0, 3);
    place.git(&["reset", "--quiet", "--hard", "HEAD@{1}"]);
    let (code, shown, _) = place.handoff(&["whence", "feature"]);
    assert!(code == 0 && shown.starts_with("! ") && shown.contains("red, attempt 1, done, red "), "{shown}");
}
