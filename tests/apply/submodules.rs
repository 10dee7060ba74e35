//! An item's changes to a submodule are reported, not applied.

use serde_json::json;

use crate::common::clone::TestClone;
use crate::common::report::find_line;

/// Why an item fails whose own output lies where the change to a submodule is captured.
const FORGED: &str = "the item left the output `submodules/libs/sub.patch`, where the change to a submodule belongs";
/// Why an item fails that changes a submodule which is not captured.
const CHANGED: &str = "\"libs/sub/lib.txt\" was changed, which is a submodule's: no patch can carry that; \
                       hand it over below outputs/, or change the submodule in its own repository";

/// A repository with a submodule at `libs/sub` that items may change.
fn clone() -> TestClone {
    let clone = TestClone::new();
    clone.git(&["init", "--quiet", "../library"]);
    clone.write("../library/lib.txt", "one\n");
    clone.git(&["-C", "../library", "add", "lib.txt"]);
    clone.git(&["-C", "../library", "commit", "--quiet", "--message", "Library"]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../library", "libs/sub"];
    clone.git(&add);
    clone.git(&["commit", "--quiet", "--message", "A submodule"]);
    clone.git(&["config", "handoff.workspace.submodules", "true"]);
    clone.git(&["config", "handoff.submodules", "capture"]);
    clone
}

#[test]
fn apply_lists_skipped_submodules_with_a_command() {
    let clone = clone();
    let both = ("both", "echo two >> libs/sub/lib.txt; sed -i s/two/TWO/ main.txt", None);
    let inside = (
        "inside",
        "echo 2 >> libs/sub/lib.txt; mkdir -p outputs/submodules; echo x > outputs/submodules/other.patch",
        None,
    );
    clone.done("r", &[both, inside]);
    let (code, stdout, stderr) = clone.handoff(&["apply", "r/both"]);
    assert_eq!((code, stdout.as_str()), (0, "both: applied\n"), "{stderr}");
    insta::assert_snapshot!(stderr, @r#"
    both: its change to the submodule "libs/sub" is not applied
    hint: git handoff cat r/both:outputs/submodules/libs/sub.patch | git -C libs/sub apply --index
    "#);
    assert_eq!(clone.git(&["-C", "libs/sub", "status", "--porcelain"]), "");
    let (cat_code, patch, _) = clone.handoff(&["cat", "r/both:outputs/submodules/libs/sub.patch"]);
    assert_eq!(cat_code, 0);
    clone.write("taken.patch", &patch);
    clone.git(&["-C", "libs/sub", "apply", "--index", "../../taken.patch"]);
    assert_eq!(clone.read("libs/sub/lib.txt"), "one\ntwo\n");
    // An item that changed nothing else has nothing to apply, which is no failure; a file that is
    // only named like one is not told of.
    let (apply_code, _, apply_stderr) = clone.handoff(&["apply", "r/inside"]);
    assert_eq!(apply_code, 0, "{apply_stderr}");
    insta::assert_snapshot!(apply_stderr, @r#"
    no item that is done has a patch; there is nothing to apply
    inside: its change to the submodule "libs/sub" is not applied
    hint: git handoff cat r/inside:outputs/submodules/libs/sub.patch | git -C libs/sub apply --index
    "#);
    assert!(!apply_stderr.contains("other.patch"), "{apply_stderr}");
    let (second_code, answer) = clone.answer(&["apply", "r/inside"]);
    let left = json!([{ "item": "inside", "submodule": "libs/sub", "product": "outputs/submodules/libs/sub.patch" }]);
    assert_eq!((second_code, &answer["submodules"]), (0, &left), "{answer}");
    let (show_code, details) = clone.answer(&["show", "r/both"]);
    assert!(show_code == 0 && details.to_string().contains("submodules/libs/sub.patch"), "{details}");
}

/// Runs a plan in which the second item takes the first one's change to the submodule, with this
/// command.
fn taken_by(clone: &TestClone, run: &str, command: &str) -> (i32, String) {
    let select = json!({ "kind": "output", "path": "submodules/libs/sub.patch" });
    let change = json!({ "command": "echo two >> libs/sub/lib.txt" });
    let plan = json!({ "id": run, "items": [
        { "id": "edit", "executor": "command", "inputs": change, "produces": [select] },
        {
            "id": "take", "executor": "command", "maxAttempts": 1, "inputs": { "command": command },
            "needs": { "change": { "from": "edit", "select": select } },
        },
    ] });
    clone.write("../plan.json", &plan.to_string());
    let (code, stdout, stderr) = clone.handoff(&["run", "../plan.json"]);
    (code, format!("{stdout}{stderr}"))
}

#[test]
fn an_item_takes_the_change_of_another_and_hands_it_over() {
    let clone = clone();
    for (at, command) in [
        "git -C libs/sub apply --index ../../inputs/change",
        "cd libs/sub && git apply ../../inputs/change && git log -1 --format=%s | grep -qx Library",
        "git apply --directory=libs/sub inputs/change",
    ]
    .into_iter()
    .enumerate()
    {
        let run = format!("r{at}");
        let (code, output) = taken_by(&clone, &run, command);
        assert_eq!(code, 0, "{command}: {output}");
        let product = |item: &str| clone.handoff(&["cat", &format!("{run}/{item}:outputs/submodules/libs/sub.patch")]);
        assert_eq!(product("take"), product("edit"), "{command}");
        assert!(product("take").1.contains("+two"));
    }
}

#[test]
fn an_item_that_cannot_take_the_change_fails() {
    let clone = clone();
    for (at, (command, status)) in [
        ("git -C libs/sub apply --index ../../inputs/change; git -C libs/sub apply --index ../../inputs/change", 1),
        ("git -C libs/sub commit -qam nothing", 1),
        ("git submodule foreach -q 'git apply \"$toplevel/inputs/none\"'", 128),
    ]
    .into_iter()
    .enumerate()
    {
        let (code, output) = taken_by(&clone, &format!("r{at}"), command);
        assert_eq!(code, 4, "{command}: {output}");
        assert_eq!(find_line(&output, "✗ take  failed  "), format!("✗ take  failed  1 attempt  exited with {status}"));
    }
    // Nothing is checked out: git finds an empty repository there, and not the one around it.
    clone.git(&["config", "handoff.workspace.submodules", "false"]);
    let patch = "diff --git a/lib.txt b/lib.txt\n--- a/lib.txt\n+++ b/lib.txt\n@@ -1 +1,2 @@\n one\n+two\n";
    clone.write("main.patch", patch);
    clone.git(&["add", "main.patch"]);
    clone.git(&["commit", "--quiet", "--message", "A patch"]);
    for (run, command) in
        [("s", "git -C libs/sub apply ../../main.patch"), ("t", "cd libs/sub && git apply --index ../../main.patch")]
    {
        let (code, stdout, stderr) = clone.handoff(&["run", &clone.plan(run, &[("take", command, None)])]);
        assert!(code == 4 && stderr.contains("lib.txt: "), "{command}: {stdout}{stderr}");
    }
}

/// Runs one failing item, and returns the output.
fn reason(clone: &TestClone, run: &str, script: &str) -> String {
    let (code, stdout, stderr) = clone.handoff(&["run", &clone.plan(run, &[("edit", script, None)])]);
    assert_ne!(code, 0, "{stdout}{stderr}");
    clone.answer(&["show", &format!("{run}/edit")]).1["reason"].as_str().expect("the item failed").to_owned()
}

#[test]
fn an_output_in_its_place_and_a_refusal_fail_the_item() {
    let clone = clone();
    let script =
        "echo two >> libs/sub/lib.txt; mkdir -p outputs/submodules/libs; echo x > outputs/submodules/libs/sub.patch";
    assert_eq!(reason(&clone, "r", script), FORGED);
    // Nor does what a worker makes up stand for a change that there is not.
    let forged = script.split_once("; ").unwrap().1;
    assert_eq!(reason(&clone, "forged", forged), FORGED);
    clone.git(&["config", "handoff.submodules", "false"]);
    assert_eq!(reason(&clone, "forged-again", forged), FORGED);
    clone.git(&["config", "handoff.workspace.submodules", "false"]);
    assert_eq!(reason(&clone, "not-there", forged), FORGED);
    clone.git(&["config", "handoff.workspace.submodules", "true"]);
    assert_eq!(reason(&clone, "s", "echo two >> libs/sub/lib.txt"), CHANGED);
    clone.git(&["config", "handoff.submodules", "sometimes"]);
    let (code, _, stderr) = clone.handoff(&["runs"]);
    assert_ne!(code, 0, "{stderr}");
    let file = clone.root().join(".git/config");
    assert_eq!(
        find_line(&stderr, "error: "),
        format!(
            "error: the setting `handoff.submodules` = \"sometimes\" in {} is neither `refuse` nor `capture`",
            file.display()
        )
    );
}

#[test]
fn a_file_that_grew_is_not_read_to_tell_that_it_did() {
    let clone = clone();
    clone.git(&["config", "handoff.submodules", "refuse"]);
    // Too many bytes to write or store; some file systems do not support such a file.
    clone.git(&["config", "handoff.maxDisk", "1000000g"]);
    let grown = "for size in 900T 15T 1T; do truncate -s $size libs/sub/lib.txt && break; done";
    let large = "in the submodule \"libs/sub\": \"lib.txt\" is larger than ";
    assert!(reason(&clone, "r", grown).starts_with(large));
    clone.done("s", &[("again", "cp libs/sub/lib.txt x; rm libs/sub/lib.txt; mv x libs/sub/lib.txt", None)]);
}
