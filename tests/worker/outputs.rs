//! Outputs: taken whole, or refused with the reason.

use std::fs;

use git_handoff::model::digest::Digest;
use git_handoff::model::name::FilePath;
use git_handoff::worktree::capture::{Error, capture};

use crate::worker::harness::{FORMATS, Repo};

#[test]
fn outputs_preserve_exact_bytes() {
    for format in FORMATS {
        let repo = Repo::new(format);
        let captured = repo
            .captured("printf 'a\\r\\n' >outputs/a.win; mkdir -p outputs/d/e; : >outputs/d/e/empty; ln outputs/a.win outputs/hard")
            .unwrap();
        assert_eq!(captured.patch, None);
        let names: Vec<&str> = captured.outputs.keys().map(FilePath::as_str).collect();
        assert_eq!(names, ["a.win", "d/e/empty", "hard"]);
        let first = captured.outputs.values().next().unwrap();
        assert_eq!((first.sha256, first.size), (Digest::compute(b"a\r\n"), 3));
        assert_eq!(repo.git(&["cat-file", "-s", &first.oid.to_string()]), "3");
    }
}

#[test]
fn invalid_outputs_are_rejected_by_name() {
    let repo = Repo::new("sha1");
    let refusal = |path: &str, why: &str| format!("the output {path:?} cannot be taken: {why}");
    let segment = |name: &str| {
        format!("a path must not have the segment {name:?}: none may be empty, `.`, `..` or a spelling of `.git`")
    };
    let most = "a name has at most 200 bytes a segment and 1024 in all once encoded, where a byte outside [A-Za-z0-9_.-] \
                counts three";
    for (script, why) in [
        ("ln -s /etc/passwd outputs/l", "the output `outputs/l` is a symbolic link"),
        ("mkdir outputs/d; ln -s /etc outputs/d/l", "the output `outputs/d/l` is a symbolic link"),
        ("mkfifo outputs/f", "the output `outputs/f` is no plain file"),
        ("mknod outputs/n c 1 3 || mkfifo outputs/n", "the output `outputs/n` is no plain file"),
        ("git init -q outputs/r", &refusal("outputs/r/.git", &segment(".git"))),
        ("mkdir outputs/.GIT", &refusal("outputs/.GIT", &segment(".GIT"))),
        ("echo >\"$(printf 'outputs/\\351')\"", "the name of the output \"\u{fffd}\" in `outputs/` is not UTF-8"),
        (
            "echo >\"$(printf 'outputs/e\\314\\201')\"",
            &refusal("outputs/e\u{301}", "a name must be in Unicode normalisation form C (NFC)"),
        ),
        (
            "echo >\"$(printf 'outputs/new\\nline')\"",
            &refusal("outputs/new\nline", "a name must not hold control characters"),
        ),
        (
            "echo >'outputs/back\\slash'",
            &refusal("outputs/back\\slash", "a path is written with `/` and must not hold `\\`"),
        ),
        ("echo >'outputs/ space'", &refusal("outputs/ space", "a name must not begin or end with space")),
        (
            "echo >outputs/README; echo >outputs/readme",
            "`outputs/README` and `outputs/readme` cannot stand side by side",
        ),
        ("rmdir outputs; ln -s /etc outputs", "`outputs` is no folder any more"),
        ("rmdir outputs; echo >outputs", "`outputs` is no folder any more"),
        (
            "p=outputs; for i in 1 2 3 4 5 6 7 8 9; do p=$p/$(printf '%0150d' 1); done; mkdir -p $p; echo >$p/x",
            &refusal(&format!("outputs{}", format!("/{:0150}", 1).repeat(7)), most),
        ),
    ] {
        let sentence = repo.refused(script);
        assert_eq!(sentence, why, "{script}");
    }
    assert!(repo.captured("rmdir outputs").unwrap().outputs.is_empty());
}

#[test]
fn too_many_and_too_large_are_refused_fast() {
    let repo = Repo::new("sha1");
    let mut host = repo.host();
    let workspace = repo.workspace(&host);
    for number in 0..10_000 {
        fs::File::create(workspace.outputs().join(number.to_string())).unwrap();
    }
    assert_eq!(capture(&workspace, &host).unwrap().outputs.len(), 10_000);
    fs::File::create(workspace.outputs().join("one more")).unwrap();
    let started = std::time::Instant::now();
    let Err(Error::Refused(sentence)) = capture(&workspace, &host) else { panic!("an output more is captured") };
    insta::assert_snapshot!(sentence, @"there are more than 10000 files in `outputs`");
    assert!(started.elapsed().as_secs() < 60);
    workspace.remove().unwrap();

    host.settings.max_product = 100;
    let second_workspace = repo.workspace(&host);
    fs::File::create(second_workspace.outputs().join("a")).unwrap().set_len(100).unwrap();
    assert_eq!(capture(&second_workspace, &host).unwrap().outputs.len(), 1);
    fs::File::create(second_workspace.outputs().join("sparse")).unwrap().set_len(1 << 40).unwrap();
    let Err(Error::Refused(second_sentence)) = capture(&second_workspace, &host) else {
        panic!("a sparse output is captured")
    };
    insta::assert_snapshot!(second_sentence, @"the output `outputs/sparse` has 1099511627776 bytes, more than the 100 that are taken");
    second_workspace.remove().unwrap();
}
