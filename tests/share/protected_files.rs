//! Bundles with the protected files of the runs' bases: verified where there is no base.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use git_handoff::git::extent::{Extent, extent};
use git_handoff::model::entry::{Event, ItemReconciled};
use git_handoff::model::protect_rule::ProtectRule;
use git_handoff::model::protected::{ChangeKind, ProtectedChange};
use serde_json::{Value, json};

use crate::common::Environment;
use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{Forge, PLAN};
use crate::common::repo::{TestRepo, item};
use crate::common::report::find_row;

/// The ref of the protected files of the run `r`.
const PROTECTED: &str = "refs/handoff/protected/r";

const HOLDS: &str =
    "✓ plan       1 of 1 item accounted for, every transition legal, protected files of 1 item recomputed";
const NO_BASE: &str = "─ plan       1 of 1 item accounted for, every transition legal, protected files of edit not recomputed without the base";
const NO_FILES: &str = "─ plan       1 of 1 item accounted for, every transition legal, protected files of edit not recomputed without all files of the base";

/// A repository whose base has the folders `tests`, which is protected, and `src`.
fn base(init: &[&str]) -> TestRepo {
    let repo = TestRepo::with_options(Environment::empty(), init);
    let script = "mkdir tests src nowhere; echo one >tests/x; echo same >tests/same; ln -s x tests/link; \
         printf 'a\\nb\\nc\\n' >src/lib; echo private >src/private; mv nowhere ..; git add -A; git commit -qm tests";
    repo.env.shell("repo", script).success();
    repo
}

fn protecting(id: &str, script: &str) -> Value {
    let mut item = item(id, script);
    item["protect"] = json!(["tests"]);
    item
}

/// Returns an item that begins on the patches of others.
fn on(mut item: Value, others: &[&str]) -> Value {
    let need = |from: &str| json!({ "from": from, "select": { "kind": "patch" }, "apply": true });
    item["needs"] =
        others.iter().map(|from| ((*from).to_owned(), need(from))).collect::<serde_json::Map<_, _>>().into();
    item
}

fn bundle(env: &Environment) {
    env.handoff(["bundle", "r", "--protected", "--output", "../r.bundle"]).success();
}

/// Verifies `r.bundle` where there is no repository, and returns the row `plan`.
#[track_caller]
fn plan_row(env: &Environment, code: i32) -> String {
    let report = env.handoff_in("nowhere", ["verify", "--bundle", "../r.bundle"]).exit(code);
    find_row(&report.stdout, "plan").to_owned()
}

fn required(env: &Environment) -> i32 {
    let args = ["verify", "--bundle", "../r.bundle", "--require", "protected", "--allow-partial"];
    env.handoff_in("nowhere", args).status.unwrap()
}

/// Returns the objects in the pack of a bundle.
fn objects(env: &Environment, init: &[&str]) -> BTreeSet<String> {
    env.git_in(".", [&["init", "--quiet", "--bare"], init, &["unpacked"]].concat()).success();
    env.git_in("unpacked", ["bundle", "unbundle", "../r.bundle"]).success();
    let listed = env.git_in("unpacked", ["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]).success();
    fs::remove_dir_all(env.path().join("unpacked")).unwrap();
    listed.lines().map(str::to_owned).collect()
}

fn object(env: &Environment, name: &str) -> String {
    env.git(["rev-parse", name]).success().trim().to_owned()
}

/// Writes `r.bundle` again, with another tree of the protected files. `changed` is a line of shell
/// that turns the output of `git ls-tree -r` into the input of `git update-index --index-info`.
fn bend(env: &Environment, changed: &str) {
    env.git_in(".", ["init", "--quiet", "--bare", "bent"]).success();
    env.git_in("bent", ["fetch", "--quiet", "../r.bundle", "refs/*:refs/*"]).success();
    let script = format!(
        "git ls-tree -r {PROTECTED} | {changed} | GIT_INDEX_FILE=bent git update-index --index-info && \
         git update-ref {PROTECTED} $(GIT_INDEX_FILE=bent git write-tree) && \
         git bundle create --quiet ../r.bundle --all"
    );
    env.shell("bent", &script).success();
    fs::remove_dir_all(env.path().join("bent")).unwrap();
}

#[test]
fn the_row_holds_where_the_base_is_not() {
    for init in [&[][..], &["--object-format=sha256"]] {
        let repo = base(init);
        repo.drive("r", &[protecting("edit", "sed -i s/b/B/ src/lib; rm src/private; echo new >src/new")]).ends(0);
        let env = &repo.env;
        let printed = env.handoff(["bundle", "r", "--protected", "--output", "../r.bundle"]).exit(0);
        let notes = "wrote 1 run to ../r.bundle\nit includes 3 files of the code that the runs start from\n";
        assert_eq!(printed.stderr, notes);
        assert_eq!((plan_row(env, 0).as_str(), required(env)), (HOLDS, 0));
        // Only protected files are in it, and no object names one that is missing.
        let carried = objects(env, init);
        for file in ["tests/x", "tests/same", "tests/link"] {
            assert!(carried.contains(&object(env, &format!("HEAD:{file}"))), "{file}");
        }
        for hidden in ["HEAD", "HEAD^{tree}", "HEAD:src/lib", "HEAD:src/private", "HEAD:a.txt"] {
            assert!(!carried.contains(&object(env, hidden)), "{hidden}");
        }
        // Without the flag there is nothing of the base.
        env.handoff(["bundle", "r", "--output", "../r.bundle"]).success();
        assert_eq!((plan_row(env, 0).as_str(), required(env)), (NO_BASE, 3));
        assert!(!objects(env, init).contains(&object(env, "HEAD:tests/x")));
    }
}

#[test]
fn stock_git_reads_the_bundle() {
    for init in [&[][..], &["--object-format=sha256"]] {
        let repo = base(init);
        repo.drive("r", &[protecting("edit", "echo more >>src/lib")]).ends(0);
        let env = &repo.env;
        bundle(env);
        env.git_in(".", [&["init", "--quiet"], init, &["other"]].concat()).success();
        let stdout = env.git_in("other", ["bundle", "verify", "../r.bundle"]).exit(0).stdout;
        assert!(stdout.contains("The bundle records a complete history."), "{stdout}");
        env.git_in("other", ["config", "fetch.fsckObjects", "true"]).success();
        env.git_in("other", ["fetch", "--quiet", "../r.bundle", "refs/*:refs/*"]).success();
        env.git_in("other", ["gc", "--quiet", "--prune=now"]).success();
        let checked = env.git_in("other", ["fsck", "--strict", "--full"]);
        let unborn = "notice: HEAD points to an unborn branch (main)\n";
        assert_eq!((checked.status, checked.stdout.as_str(), checked.stderr.as_str()), (Some(0), "", unborn));
        // A server that checks connectivity takes them, and the run verifies after a round trip.
        env.git_in(".", [&["init", "--quiet", "--bare"], init, &["hub"]].concat()).success();
        env.git_in("hub", ["config", "receive.fsckObjects", "true"]).success();
        env.git_in("other", ["push", "--quiet", "../hub", "refs/handoff/*:refs/handoff/*"]).success();
        env.git_in("hub", ["bundle", "create", "--quiet", "../r.bundle", "--all"]).success();
        assert_eq!((plan_row(env, 0).as_str(), required(env)), (HOLDS, 0));
        // The program takes the run from it, and nothing else.
        env.git_in(".", [&["init", "--quiet"], init, &["third"]].concat()).success();
        let fetched = env.handoff_in("third", ["fetch", "../r.bundle"]).exit(0);
        assert!(!fetched.stderr.contains("protected"), "{fetched}");
        assert!(!super::refs(env, "third").contains("protected"));
    }
}

#[test]
fn changes_to_protected_files_are_recomputed() {
    let repo = base(&[]);
    let script = "echo two >>tests/x; rm tests/same; ln -sf y tests/link; echo new >tests/new; echo d >>src/lib";
    repo.drive("r", &[protecting("edit", script)]).ends(4);
    bundle(&repo.env);
    assert_eq!((plan_row(&repo.env, 4).as_str(), required(&repo.env)), (HOLDS, 0));
}

#[test]
fn names_that_git_quotes_and_submodules_are_protected_as_others() {
    let repo = base(&[]);
    let script = "git init -q tests/lib && git -C tests/lib commit -q --allow-empty -m lib && git add tests/lib && \
         n=\"$(printf 'tests/a\\nb \\042\\303\\244')\" && echo 1 >\"$n\" && b=\"$(printf 'tests/\\377')\" && echo 2 >\"$b\" && \
         git add -A && git commit -qm odd";
    repo.env.shell("repo", script).success();
    let change = "n=\"$(printf 'tests/a\\nb \\042\\303\\244')\"; echo 3 >\"$n\"; b=\"$(printf 'tests/\\377')\"; rm \"$b\"; \
         echo e >>src/lib";
    repo.drive("r", &[protecting("edit", change)]).ends(4);
    bundle(&repo.env);
    assert_eq!((plan_row(&repo.env, 4).as_str(), required(&repo.env)), (HOLDS, 0));
}

#[test]
fn a_protected_file_may_take_the_place_of_a_folder() {
    let repo = base(&[]);
    let mut edit = item("edit", "rm -r src; echo now a file >src; echo y >>tests/x");
    edit["protect"] = json!([":(glob)src", "tests"]);
    repo.drive("r", &[edit]).ends(4);
    bundle(&repo.env);
    assert_eq!((plan_row(&repo.env, 4).as_str(), required(&repo.env)), (HOLDS, 0));
}

#[test]
fn items_that_begin_on_patches_are_recomputed() {
    let repo = base(&[]);
    // Both change one file, so that their merge needs its content.
    repo.env
        .shell("repo", "echo 'src/list merge=union' >.gitattributes; echo x >src/list; git add -A; git commit -qm a")
        .success();
    let items = [
        item("one", "echo 1 >>src/list; sed -i s/a/A/ src/lib; echo t >>tests/x"),
        item("two", "echo 2 >>src/list; sed -i s/c/C/ src/lib"),
        on(protecting("three", "echo 3 >>src/list; echo u >>tests/same"), &["one", "two"]),
        on(protecting("four", "echo 4 >>src/lib"), &["three"]),
    ];
    repo.drive("r", &items).ends(4);
    let env = &repo.env;
    bundle(env);
    let holds =
        "✓ plan       4 of 4 items accounted for, every transition legal, protected files of 2 items recomputed";
    assert_eq!((plan_row(env, 4).as_str(), required(env)), (holds, 0));
    // The files that the applied patches change are in it, and no others.
    let carried = objects(env, &[]);
    assert!(carried.contains(&object(env, "HEAD:src/list")) && !carried.contains(&object(env, "HEAD:src/private")));
    // How they are merged takes the attributes.
    let attributes = object(env, "HEAD:.gitattributes");
    bend(env, &format!("grep -v {attributes}"));
    let open = "─ plan       4 of 4 items accounted for, every transition legal, protected files of three and 1 more item not recomputed without all files of the base";
    assert_eq!((plan_row(env, 4).as_str(), required(env)), (open, 3));
}

#[test]
fn a_consumed_patch_is_part_of_the_reference_state() {
    let repo = base(&[]);
    let mut next = protecting("next", "git apply inputs/p; echo mine >>tests/same");
    next["needs"] = json!({ "p": { "from": "edit", "select": { "kind": "patch" } } });
    repo.drive("r", &[item("edit", "echo two >>tests/x; echo d >>src/lib"), next]).ends(4);
    bundle(&repo.env);
    let holds = "✓ plan       2 of 2 items accounted for, every transition legal, protected files of 1 item recomputed";
    assert_eq!((plan_row(&repo.env, 4).as_str(), required(&repo.env)), (holds, 0));
}

#[test]
fn an_incomplete_or_false_base_leaves_the_row_open() {
    let repo = base(&[]);
    repo.drive("r", &[protecting("edit", "echo more >>src/lib")]).ends(0);
    let env = &repo.env;
    let [same, tree] = ["HEAD:tests/same", "HEAD:tests"].map(|name| object(env, name));
    let other = object(env, "HEAD:a.txt");
    for (changed, row) in [
        ("cat".to_owned(), HOLDS),
        // The names in the tree mean nothing.
        (format!("sed s,files/{same},files/{other},"), HOLDS),
        (format!("grep -v {same}"), NO_FILES),
        // Other bytes under the name of a file.
        (format!("sed 's/blob {same}/blob {}/'", object(env, "HEAD:tests/x")), NO_FILES),
        (format!("grep -v trees/{tree}"), NO_BASE),
        ("grep -v commit".to_owned(), NO_BASE),
        (format!("sed '/commit/s/blob [0-9a-f]*/blob {}/'", object(env, "HEAD:tests/x")), NO_BASE),
        ("grep files".to_owned(), NO_BASE),
    ] {
        bundle(env);
        bend(env, &changed);
        assert_eq!(plan_row(env, 0), row, "{changed}");
        assert_eq!(required(env), if row == HOLDS { 0 } else { 3 }, "{changed}");
        // The repository that it is called in has what is missing.
        let here = env.handoff(["verify", "--bundle", "../r.bundle", "--require", "protected"]).exit(0);
        assert_eq!(find_row(&here.stdout, "plan"), HOLDS, "{changed}");
    }
    env.handoff(["bundle", "r", "--output", "../r.bundle"]).success();
    let answer = env.handoff_in("nowhere", ["verify", "--json", "--bundle", "../r.bundle"]).exit(0);
    let answer: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(answer["notRecomputed"], json!([{ "item": "edit", "reason": "without the base" }]));
    let hint = "hint: ask its owner for: git handoff bundle r --protected --output FILE\n";
    assert_eq!(env.handoff_in("nowhere", ["verify", "--bundle", "../r.bundle"]).exit(0).stderr, hint);
}

/// Writes the run of [`PLAN`], whose first item protects `tests`, into a bundle with the protected
/// files of its base.
fn forged(patch: &str, bend: impl FnOnce(&Forge, &mut ItemReconciled)) -> String {
    let mut forge = Forge::new();
    let folder = forge.path().join("tests");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("x"), "one\n").unwrap();
    forge.git(&["add", "tests"]);
    forge.git(&["commit", "-qm", "tests"]);
    forge.base = forge.git(&["rev-parse", "HEAD"]).parse().unwrap();
    let mut run = ChainBuilder::submit(&forge, PLAN);
    run.fire_with("edit-a", |manifest| {
        manifest.protect = [ProtectRule::Pathspec("tests".to_owned())].into();
    });
    run.done("edit-a", &[("patch", patch.as_bytes())]);
    let Some(Event::ItemReconciled(e)) = run.drafts.last_mut().map(|draft| &mut draft.event) else { panic!() };
    e.reference = Some(forge.git(&["rev-parse", "HEAD^{tree}"]).parse().unwrap());
    bend(&forge, e);
    run.fire("edit-b");
    run.done("edit-b", &[("outputs/report.md", b"fine\n")]);
    run.seal();
    forge.finish(run);
    row_of_bundle(&forge, None)
}

/// Bundles the run of a forge, with the protected files of its base or with a tree of them, and
/// returns the row `plan` of its report.
fn row_of_bundle(forge: &Forge, carried: Option<&str>) -> String {
    let env = Environment::empty();
    let file = env.path().join("r.bundle");
    let protected = "refs/handoff/protected/handoff-dag-1";
    if let Some(tree) = carried {
        forge.git(&["update-ref", protected, tree]);
        forge.git(&["bundle", "create", "-q", file.to_str().unwrap(), "--glob=refs/handoff"]);
    } else {
        let mut command = env.command(crate::common::program_path(), ".");
        command.current_dir(forge.path()).args(["bundle", "handoff-dag-1", "--protected", "-o"]).arg(&file);
        env.ended(command).success();
    }
    let report = env.handoff_in(".", ["verify", "--bundle", "r.bundle"]);
    find_row(&report.stdout, "plan").to_owned()
}

#[test]
fn verify_finds_a_forged_record() {
    let modified = "diff --git a/tests/x b/tests/x\n--- a/tests/x\n+++ b/tests/x\n@@ -1 +1 @@\n-one\n+two\n";
    let change = || vec![ProtectedChange { path: "tests/x".to_owned(), change: ChangeKind::Modified }];
    let honest = forged(modified, |_, e| e.protected = change());
    assert_eq!(
        honest,
        "✓ plan       2 of 2 items accounted for, every transition legal, protected files of 1 item recomputed"
    );
    let bent = [
        (modified.to_owned(), vec![], None, "the patch changes 1, and the entry lists 0 or others (and 1 more)"),
        (modified.to_owned(), change(), Some(()), "the entry names another reference state"),
    ];
    for (patch, changes, is_other, why) in bent {
        let row = forged(&patch, |forge, e| {
            e.protected = changes;
            if is_other.is_some() {
                e.reference = Some(forge.store.empty_tree());
            }
        });
        assert_eq!(row, format!("✗ plan       the protected files of edit-a #1: {why}"));
    }
    // The patch does not apply to the file that it changes.
    let row = forged(&modified.replace("-one", "-ane"), |_, e| e.protected = change());
    let fails = "`git apply --cached --whitespace=nowarn --no-ignore-whitespace -p1 -` failed with exit code 1: error: patch failed: tests/x:1\u{fffd}error: tests/x: patch does not apply";
    assert_eq!(row, format!("✗ plan       the protected files of edit-a #1: {fails}"));
}

/// Writes a tree.
fn mktree(forge: &Forge, lines: &str) -> String {
    let mut child = Command::new("git");
    child.args(["mktree"]).current_dir(forge.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim_end().to_owned()
}

#[test]
fn a_base_of_billions_of_paths_is_not_read() {
    let mut forge = Forge::new();
    let mut entry = format!("100644 blob {}\tx", forge.store.write_blob(b"x").unwrap());
    let mut trees = Vec::new();
    for _ in 0..12 {
        let lines: String = (0..10).map(|n| entry.replace('\t', &format!("\t{n}")) + "\n").collect();
        let tree = mktree(&forge, &lines);
        entry = format!("040000 tree {tree}\tx");
        trees.push(tree);
    }
    let top = trees.last().unwrap();
    let (size, all) = extent(&forge.store, top.parse().unwrap()).unwrap();
    assert_eq!((size.paths, all.len()), (1_000_000_000_000, 12));
    assert!(!size.is_bounded() && Extent::default().is_bounded());
    let base = forge.git(&["commit-tree", "-m", "large", top]);
    forge.base = base.parse().unwrap();
    let mut run = ChainBuilder::submit(&forge, PLAN);
    run.fire_with("edit-a", |manifest| {
        manifest.protect = [ProtectRule::Pathspec("x".to_owned())].into();
    });
    run.done("edit-a", &[("patch", b"")]);
    let Some(Event::ItemReconciled(e)) = run.drafts.last_mut().map(|draft| &mut draft.event) else { panic!() };
    e.reference = Some(forge.store.empty_tree());
    run.fire("edit-b");
    run.done("edit-b", &[("outputs/report.md", b"fine\n")]);
    run.seal();
    forge.finish(run);
    let blob = |kind: &str, name: &str| {
        let raw = forge.store.read(name.parse().unwrap()).unwrap();
        assert_eq!(raw.0.to_string(), kind);
        forge.store.write_blob(&raw.1).unwrap()
    };
    let line = |tree: &String| format!("100644 blob {}\t{tree}\n", blob("tree", tree));
    let lines = trees.iter().map(line).collect::<Vec<_>>().concat();
    let folder = mktree(&forge, &lines);
    let second_lines = format!("100644 blob {}\tcommit\n040000 tree {folder}\ttrees\n", blob("commit", &base));
    let carried = mktree(&forge, &second_lines);
    let row = row_of_bundle(&forge, Some(&carried));
    assert_eq!(
        row,
        "─ plan       2 of 2 items accounted for, every transition legal, protected files of edit-a not recomputed in a base of this size"
    );
}

#[test]
fn verify_reports_a_missing_base_in_a_clone() {
    let repo = base(&[]);
    repo.drive("r", &[protecting("edit", "echo more >>src/lib")]).ends(0);
    let env = &repo.env;
    env.git_in(".", ["init", "--quiet", "--bare", "hub"]).success();
    env.git_in("hub", ["config", "uploadpack.allowFilter", "true"]).success();
    env.git(["push", "--quiet", "../hub", "HEAD:refs/heads/main"]).success();
    env.handoff(["push", "../hub", "r"]).success();
    let refused = |folder: &str| {
        let printed = env.handoff_in(folder, ["bundle", "origin/r", "--protected", "-o", "../none.bundle"]).exit(1);
        assert!(!env.path().join("none.bundle").exists());
        printed.stderr.replace(object(env, "HEAD").as_str(), "BASE")
    };
    env.git_in(".", ["init", "--quiet", "bare"]).success();
    env.git_in("bare", ["remote", "add", "origin", "../hub"]).success();
    env.handoff_in("bare", ["fetch", "origin"]).success();
    insta::assert_snapshot!(refused("bare"), @r#"
    error: cannot bundle the protected files of the run "r": its base BASE is not here
    hint: git fetch origin BASE   # in a shallow clone: git fetch --unshallow
    "#);
    let url = format!("file://{}/hub", env.path().display());
    env.git_in(".", ["clone", "--quiet", "--no-checkout", "--filter=blob:none", &url, "lazy"]).success();
    env.handoff_in("lazy", ["fetch", "--content"]).success();
    insta::assert_snapshot!(refused("lazy"), @r#"
    error: cannot bundle the protected files of the run "r": its base BASE is here without tests/link
    hint: git fetch --refetch --no-filter   # or bundle without --protected
    "#);
    // Both work again once the files are there, also in a shallow clone.
    env.git_in("bare", ["fetch", "--quiet", "--depth=1", "origin", "main"]).success();
    env.handoff_in("bare", ["bundle", "origin/r", "--protected", "-o", "../r.bundle"]).success();
    assert_eq!(plan_row(env, 0), HOLDS);
    env.git_in("lazy", ["fetch", "--quiet", "--refetch", "--no-filter"]).success();
    env.handoff_in("lazy", ["bundle", "origin/r", "--protected", "-o", "../r.bundle"]).success();
    assert_eq!(plan_row(env, 0), HOLDS);
}

#[test]
fn a_run_without_protected_files_gets_nothing_extra() {
    let repo = base(&[]);
    repo.drive("r", &[item("edit", "echo more >>src/lib")]).ends(0);
    let env = &repo.env;
    let listed = |args: &[&str]| {
        let printed = env.handoff([&["bundle", "r", "--output", "../r.bundle"], args].concat()).exit(0).stderr;
        (printed, env.git(["bundle", "list-heads", "../r.bundle"]).success(), objects(env, &[]))
    };
    assert_eq!(listed(&["--protected"]), listed(&[]));
}

#[test]
fn all_runs_of_a_repository_have_their_files() {
    let repo = base(&[]);
    repo.drive("r", &[protecting("edit", "echo more >>src/lib")]).ends(0);
    repo.env.shell("repo", "echo other >tests/x; git commit -qam other").success();
    repo.drive("s", &[protecting("edit", "echo more >>src/lib")]).ends(0);
    let env = &repo.env;
    env.handoff(["bundle", "--all", "--protected", "--output", "../r.bundle"]).success();
    let report = env.handoff_in("nowhere", ["verify", "--bundle", "../r.bundle", "--require", "protected"]).exit(0);
    assert_eq!(report.stdout.lines().filter(|line| *line == HOLDS).count(), 2, "{report}");
}

#[test]
fn content_none_is_not_for_bundles() {
    let env = base(&[]).env;
    let _ = env.handoff(["bundle", "r", "--protected", "--content", "none"]).exit(2);
    let _ = env.handoff(["report", "r", "--protected", "--content", "none"]).exit(2);
}

/// A pipe that is closed, and a disk that is full, leave no file.
#[test]
fn unwritable_output_is_an_error() {
    let repo = base(&[]);
    repo.drive("r", &[protecting("edit", "echo more >>src/lib")]).ends(0);
    let program = crate::common::program_path();
    if Path::new("/dev/full").exists() {
        let full = repo.env.shell("repo", &format!("{program} bundle r --protected >/dev/full"));
        assert_eq!(full.status, Some(1), "{full}");
    }
    let closed = repo.env.shell("repo", &format!("{program} bundle r --protected | head -c 1 | wc -c"));
    assert_eq!((closed.status, closed.stdout.trim()), (Some(0), "1"), "{closed}");
    repo.is_clean();
}
