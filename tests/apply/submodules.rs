//! What an item hands over for a submodule is not applied, and said.

use serde_json::json;

use crate::common::place::Place;

/// A place with a submodule at `libs/sub` that items may change.
fn place() -> Place {
    let place = Place::new();
    place.git(&["init", "--quiet", "../library"]);
    place.write("../library/lib.txt", "one\n");
    place.git(&["-C", "../library", "add", "lib.txt"]);
    place.git(&["-C", "../library", "commit", "--quiet", "--message", "Library"]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../library", "libs/sub"];
    place.git(&add);
    place.git(&["commit", "--quiet", "--message", "A submodule"]);
    place.git(&["config", "handoff.workspace.submodules", "true"]);
    place.git(&["config", "handoff.submodules", "capture"]);
    place
}

#[test]
fn apply_says_which_submodules_it_leaves_and_what_applies_them() {
    let place = place();
    let both = ("both", "echo two >> libs/sub/lib.txt; sed -i s/two/TWO/ main.txt", None);
    let inside = (
        "inside",
        "echo 2 >> libs/sub/lib.txt; mkdir -p outputs/submodules; echo x > outputs/submodules/other.patch",
        None,
    );
    place.done("r", &[both, inside]);
    let (code, stdout, stderr) = place.handoff(&["apply", "r/both"]);
    assert_eq!((code, stdout.as_str()), (0, "both: applied\n"), "{stderr}");
    assert!(stderr.contains("both: its change to the submodule \"libs/sub\" is not applied"), "{stderr}");
    let command = "git handoff cat r/both:outputs/submodules/libs/sub.patch | git -C libs/sub apply --index";
    assert!(stderr.contains(command), "{stderr}");
    assert_eq!(place.git(&["-C", "libs/sub", "status", "--porcelain"]), "");
    let (code, patch, _) = place.handoff(&["cat", "r/both:outputs/submodules/libs/sub.patch"]);
    assert_eq!(code, 0);
    place.write("taken.patch", &patch);
    place.git(&["-C", "libs/sub", "apply", "--index", "../../taken.patch"]);
    assert_eq!(place.read("libs/sub/lib.txt"), "one\ntwo\n");
    // An item that changed nothing else has nothing to apply, which is no failure; a file that is only named like one is not told of.
    let (code, _, stderr) = place.handoff(&["apply", "r/inside"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("nothing to apply") && stderr.contains("r/inside:outputs/submodules/libs/sub.patch"),
        "{stderr}"
    );
    assert!(!stderr.contains("other.patch"), "{stderr}");
    let (code, answer) = place.answer(&["apply", "r/inside"]);
    let left = json!([{ "item": "inside", "submodule": "libs/sub", "product": "outputs/submodules/libs/sub.patch" }]);
    assert_eq!((code, &answer["submodules"]), (0, &left), "{answer}");
    let (code, shown) = place.answer(&["show", "r/both"]);
    assert!(code == 0 && shown.to_string().contains("submodules/libs/sub.patch"), "{shown}");
}

/// Runs one item, which fails, and returns what is said of it.
fn reason(place: &Place, run: &str, script: &str) -> String {
    let (code, stdout, stderr) = place.handoff(&["run", &place.plan(run, &[("edit", script, None)])]);
    assert_ne!(code, 0, "{stdout}{stderr}");
    place.answer(&["show", &format!("{run}/edit")]).1.to_string()
}

#[test]
fn an_output_in_its_place_and_a_refusal_fail_the_item() {
    let place = place();
    let script =
        "echo two >> libs/sub/lib.txt; mkdir -p outputs/submodules/libs; echo x > outputs/submodules/libs/sub.patch";
    assert!(reason(&place, "r", script).contains("where the change to a submodule belongs"));
    // Nor does what a worker makes up stand for a change that there is not.
    let forged = script.split_once("; ").unwrap().1;
    assert!(reason(&place, "forged", forged).contains("where the change to a submodule belongs"));
    place.git(&["config", "handoff.submodules", "false"]);
    assert!(reason(&place, "forged-again", forged).contains("where the change to a submodule belongs"));
    place.git(&["config", "handoff.workspace.submodules", "false"]);
    assert!(reason(&place, "not-there", forged).contains("where the change to a submodule belongs"));
    place.git(&["config", "handoff.workspace.submodules", "true"]);
    assert!(reason(&place, "s", "echo two >> libs/sub/lib.txt").contains("was changed, which is a submodule's"));
    place.git(&["config", "handoff.submodules", "sometimes"]);
    let (code, _, stderr) = place.handoff(&["runs"]);
    assert!(code != 0 && stderr.contains("is neither `refuse` nor `capture`"), "{stderr}");
}

#[test]
fn a_file_that_grew_is_not_read_to_tell_that_it_did() {
    let place = place();
    place.git(&["config", "handoff.submodules", "refuse"]);
    // Nobody waits for so many bytes, nor has room for them. Some file systems hold no file that large.
    place.git(&["config", "handoff.maxDisk", "1000000g"]);
    let grown = "for size in 900T 15T 1T; do truncate -s $size libs/sub/lib.txt && break; done";
    assert!(reason(&place, "r", grown).contains("libs/sub/lib.txt\\\" was changed, which is a submodule's"));
    place.done("s", &[("again", "cp libs/sub/lib.txt x; rm libs/sub/lib.txt; mv x libs/sub/lib.txt", None)]);
}
