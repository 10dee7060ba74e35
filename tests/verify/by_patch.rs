//! Changes to protected files, read from patches: the program and the page's verifier read them as
//! git does.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Command, Stdio};

use git_handoff::git::patch_paths::{self, Change, Side};
use serde_json::{Value, json};

use crate::common::Environment;
use crate::common::repo::{TestRepo, item};
use crate::common::report::{find_row, verdict};

/// Paths without a folder and a file of the same name; the last two are submodules.
const PATHS: &[&str] = &[
    ".npmrc",
    "-x",
    "A/b",
    "Makefile",
    "a b/c",
    "a*b",
    "a.b.c",
    "a/b/c.py",
    "a/b.py",
    "ab/[x]",
    "b\\c",
    "docs/a/tests/x",
    "q?",
    "src/test_x.py",
    "src/x.Test.js",
    "tests/check.sh",
    "tests/parts/.two.sh",
    "tests/x y",
    "tests2/x",
    "x.py",
    "ä/ö",
    "~",
    "vendor/lib",
    "tests/lib",
];

const PATHSPECS: &[&str] = &[
    ".",
    "./",
    "tests",
    "tests/",
    "tests//",
    "./tests/./",
    "tests/c",
    "tests/*.sh",
    "tests/**/*.sh",
    "*",
    "**",
    "*.py",
    "*test*",
    "a*",
    "a*b",
    "a\\*b",
    "q?",
    "?",
    "a/?/*",
    "[ab]*",
    "[!a]*",
    "[^a-z]*",
    "[[:upper:]]*",
    "[[:nope:]]*",
    "[",
    "[a",
    "a/[b-]*",
    "[]a]*",
    "b\\c",
    "b\\\\c",
    "ä",
    "?/ö",
    "??/ö",
    "vendor/lib",
    "vendor/lib/",
    "vendor/lib/x",
    "TESTS",
    ":(icase)TESTS",
    ":(icase)*TEST*",
    ":(icase)[A]*",
    ":(glob)*.py",
    ":(glob)**/*.py",
    ":(glob)a/**",
    ":(glob)a**",
    ":(glob)**",
    ":(glob)**/",
    ":(glob)tests/*",
    ":(glob)docs/**/x",
    ":(glob,icase)**/TESTS/*",
    ":(literal)a*b",
    ":(literal)a*",
    ":(literal,glob)a",
    ":(top)tests",
    ":/tests",
    ":/./tests",
    ":(top,glob)*",
    ":(,top,)x.py",
    ":()x.py",
    ":",
    "::",
    "::x.py",
    ":x.py",
    ":-x",
    ":/-x",
    ":(nope)x",
    ":(prefix:0)tests",
];

fn node(question: &Value) -> Value {
    let mut command = Command::new("node");
    command.current_dir(env!("CARGO_MANIFEST_DIR")).arg("tests/interop/protected.mjs");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("node is installed");
    child.stdin.take().unwrap().write_all(question.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{question}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn pathspecs_select_what_git_selects() {
    let env = TestRepo::new().env;
    let is_submodule = |path: &str| path.ends_with("/lib");
    for path in PATHS {
        let mode = if is_submodule(path) { "160000" } else { "100644" };
        let info = format!("{mode},e69de29bb2d1d6434b8b29ae775ad8c2e48c5391,{path}");
        env.git(["update-index", "--add", "--cacheinfo", &info]).success();
    }
    let paths: Vec<Value> =
        PATHS.iter().map(|path| json!({ "path": path, "isSubmodule": is_submodule(path) })).collect();
    let answer = node(&json!({ "paths": paths, "pathspecs": PATHSPECS }));
    for (pathspec, selected) in PATHSPECS.iter().zip(answer.as_array().unwrap()) {
        let listed = env.git(["ls-files", "-z", "--", pathspec]);
        let of_git: Option<BTreeSet<&str>> =
            (listed.status == Some(0)).then(|| listed.stdout.split('\0').filter(|path| PATHS.contains(path)).collect());
        let own: Option<BTreeSet<&str>> =
            selected.as_array().map(|list| list.iter().map(|path| path.as_str().unwrap()).collect());
        assert_eq!(own, of_git, "{pathspec}");
    }
}

/// Everything that a worktree can change, in the folder `repo`.
const CHANGES: &str = "mkdir -p kept gone 'a b' folder link\n\
    printf 'one\\ntwo\\n' >kept/x; printf 'x\\n' >gone/y; printf '\\0\\1\\2' >binary; echo m >mode; echo t >type\n\
    printf 'no end' >end; printf 'a\\r\\n' >crlf; : >empty; echo z >'a b/c'; echo z >'ta\tb'; echo z >'qu\"o'; echo z >ä\n\
    echo z >folder/x; echo z >file; printf -- '-- a\\n++ b\\n' >marks; echo z >link/x\n\
    git add -A; git update-index --add --cacheinfo 160000,e69de29bb2d1d6434b8b29ae775ad8c2e48c5391,module\n\
    git commit -qm before; git update-index --cacheinfo 160000,5626abf0f72e58d7a153368ba57db4c673c0e171,module\n\
    printf 'one\\n2\\n' >kept/x; rm gone/y; printf '\\0\\3' >binary; chmod +x mode; ln -sf kept type\n\
    printf 'no end\\n' >end; printf 'a\\n' >crlf; : >new; rm empty; for f in 'a b/c' 'ta\tb' 'qu\"o' ä; do echo y >\"$f\"; done\n\
    rm -r folder; echo z >folder; rm file; mkdir file; echo z >file/x; printf -- '-- c\\n++ d\\n' >marks; mv link moved\n\
    chmod +x crlf; git add -A; git commit -qm after";

/// The changes of a patch as git lists them: each path with its old and new mode and object.
fn changes_of_git(env: &Environment, options: &[&str]) -> BTreeMap<String, [Value; 2]> {
    let raw = [&["diff-tree", "-r", "-z", "--raw", "--no-abbrev"], options, &["HEAD~1", "HEAD"]].concat();
    let listed = env.git(raw).success();
    let mut fields = listed.split('\0').filter(|field| !field.is_empty());
    let mut changes = BTreeMap::new();
    while let Some(about) = fields.next() {
        let parts: Vec<&str> = about.trim_start_matches(':').split(' ').collect();
        let side = |mode: &str, oid: &str| match mode {
            "000000" => Value::Null,
            _ => json!({ "mode": u32::from_str_radix(mode, 8).unwrap(), "oid": oid }),
        };
        let (old, new) = (side(parts[0], parts[2]), side(parts[1], parts[3]));
        let path = fields.next().unwrap().to_owned();
        if parts[4].starts_with('R') {
            changes.insert(path, [old, Value::Null]);
            changes.insert(fields.next().unwrap().to_owned(), [Value::Null, new]);
        } else {
            changes.insert(path, [old, new]);
        }
    }
    changes
}

/// Returns a side without what the patch does not state: the object of what only has another mode
/// or another name.
fn as_stated(side: &Value, stated: &Value) -> Value {
    let mut side = side.clone();
    for field in ["mode", "oid"] {
        if stated.is_object() && stated[field].is_null() {
            side[field] = Value::Null;
        }
    }
    side
}

#[test]
fn patches_change_what_git_lists() {
    let env = TestRepo::new().env;
    env.shell("repo", CHANGES).success();
    for options in [&["--no-renames"][..], &["-M"]] {
        let arguments = [&["diff-tree", "-p", "--binary", "--full-index"], options, &["HEAD~1", "HEAD"]].concat();
        let patch = env.git(arguments).exit(0).raw;
        let of_git = changes_of_git(&env, options);
        assert!(of_git.len() > 15, "{of_git:?}");
        let side = |side: &Side| match side {
            Side::Absent => Value::Null,
            Side::Present(mode, oid) => json!({ "mode": mode, "oid": oid.map(|oid| oid.to_string()) }),
        };
        let pair = |(path, Change { old, new }): (_, &Change)| (ToString::to_string(path), [side(old), side(new)]);
        let own: BTreeMap<String, [Value; 2]> = patch_paths::read(&patch).unwrap().iter().map(pair).collect();
        let answer = node(&json!({ "patch": base64(&env, &patch) }));
        let triple = |each: &Value| (each[0].as_str().unwrap().to_owned(), [each[1].clone(), each[2].clone()]);
        let of_page: BTreeMap<String, [Value; 2]> = answer.as_array().unwrap().iter().map(triple).collect();
        assert_eq!(own, of_page);
        let stated: BTreeMap<_, _> = of_git
            .into_iter()
            .map(|(path, sides)| {
                let known = [0, 1].map(|at| own.get(&path).map_or(Value::Null, |own| as_stated(&sides[at], &own[at])));
                (path, known)
            })
            .collect();
        assert_eq!(own, stated);
    }
}

fn base64(env: &Environment, bytes: &[u8]) -> String {
    std::fs::write(env.path().join("patch"), bytes).unwrap();
    env.shell(".", "base64 -w0 patch").success().trim().to_owned()
}

#[test]
fn lines_that_git_does_not_write_are_refused() {
    let env = Environment::empty();
    let section = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
    let cases: &[(String, usize)] = &[
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n".to_owned(), 1),
        (format!("From: me\n{section}"), 1),
        (format!("{section}--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n"), 8),
        (section.replace("--- a/x", "--- a/y"), 7),
        (section.replace("+++ b/x", "+++ y"), 4),
        (section.replace("--- a/x", "--- /dev/null"), 3),
        (section.replace("b/x\nindex", "b/y\nindex"), 7),
        (section.replace("-1 +1", "-1,2 +1"), 7),
        (section.replace("-1 +1", "-1,18446744073709551616 +1"), 5),
        (section.replace("+b", "*b"), 7),
        (format!("{section}\n"), 8),
        (section.replace("index 1..2 100644", "mode 7"), 2),
        ("diff --git a/x b/y\nrename from x\n".to_owned(), 2),
        ("diff --git a/ b/\nold mode 100644\nnew mode 100755\n".to_owned(), 3),
        ("diff --git a/x b/x\nGIT binary patch\nliteral 1\nIc mb\n".to_owned(), 4),
    ];
    for (patch, line) in cases {
        assert_eq!(patch_paths::read(patch.as_bytes()), Err(patch_paths::Malformed(*line)), "{patch}");
        let answer = node(&json!({ "patch": base64(&env, patch.as_bytes()) }));
        assert_eq!(answer, format!("line {line} of the patch is not as git writes it"), "{patch}");
    }
}

/// A run whose item protects `tests` and changes a file there, with its bundle beside the
/// repository.
fn bundled() -> TestRepo {
    let repo = TestRepo::new();
    repo.env.shell("repo", "mkdir tests; echo one >tests/x; git add -A; git commit -qm tests").success();
    let mut edit = item("edit", "echo two >tests/x");
    edit["protect"] = json!(["tests"]);
    repo.drive("change", &[edit]).ends(4);
    repo.env.handoff(["bundle", "change", "-o", "../run.bundle"]).success();
    std::fs::create_dir(repo.env.path().join("nowhere")).unwrap();
    repo
}

#[test]
fn without_the_base_the_row_is_open_and_may_be_required() {
    let env = bundled().env;
    let verify =
        |folder: &str, more: &[&str]| env.handoff_in(folder, [&["verify", "--bundle", "../run.bundle"], more].concat());
    let report = verify("nowhere", &[]).exit(4);
    insta::assert_snapshot!(find_row(&report.stdout, "plan"), @"─ plan       1 of 1 item accounted for, every transition legal, protected files of edit not recomputed without the base");
    let answer: Value = serde_json::from_str(&verify("nowhere", &["--json"]).exit(4).stdout).unwrap();
    assert_eq!(answer["notRecomputed"], json!([{ "item": "edit", "reason": "without the base" }]));
    let required = verify("nowhere", &["--require", "protected"]).exit(3);
    assert_eq!(verdict(&required.stdout), "✗ MISMATCH");
    insta::assert_snapshot!(find_row(&required.stdout, "required"), @"✗ required   protected was required: protected files of edit not recomputed without the base");
    // The repository that it is called in has the base.
    let second_report = verify("repo", &["--require", "protected"]).exit(4);
    insta::assert_snapshot!(find_row(&second_report.stdout, "plan"), @"✓ plan       1 of 1 item accounted for, every transition legal, protected files of 1 item recomputed");
}
