//! Names and their one encoding.

use git_handoff::model::name::{FilePath, ItemId, NameError, RunId, clashes, decode_segment, encode_segment};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn the_encoding_is_the_documented_one() {
    for (name, encoded) in [
        ("nightly@2026-06-04T02:00:00Z", "nightly%402026-06-04T02%3A00%3A00Z"),
        ("we ird.bin", "we%20ird.bin"),
        (".gitmodules", "%2Egitmodules"),
        ("edit-a_1.txt", "edit-a_1.txt"),
        (".", "%2E"),
        ("..", "%2E%2E"),
        ("a..b", "a.%2Eb"),
        ("a...b", "a.%2E.b"),
        ("x.lock", "x%2Elock"),
        ("x.LOCK", "x%2ELOCK"),
        ("x.lock.y", "x.lock.y"),
        ("end.", "end%2E"),
        ("a/b", "a%2Fb"),
        ("100%", "100%25"),
        ("é", "%C3%A9"),
    ] {
        assert_eq!(encode_segment(name), encoded);
        assert_eq!(decode_segment(encoded).as_deref(), Some(name));
    }
    for wrong in ["%", "%2", "%2e", "%41", "%FF", "a b", "a%2Eb", "%+1", "x.lock", "é"] {
        assert_eq!(decode_segment(wrong), None, "{wrong}");
    }
}

#[test]
fn ids_hold_only_what_an_id_may_hold() {
    for good in ["a", "x y", "été", "a.lock", "..", "a-rf", "日本", &"x".repeat(128)] {
        assert_eq!(RunId::decode(&RunId::parse(good).unwrap().encoded()).unwrap().as_str(), good);
        assert!(ItemId::parse(good).is_ok());
    }
    for (bad, error) in [
        ("", NameError::Empty),
        ("@a", NameError::Reserved),
        (" a", NameError::Space),
        ("a\u{a0}", NameError::Space),
        ("a\nb", NameError::Control),
        ("a\0b", NameError::Control),
        ("a\u{9b}b", NameError::Control),
        ("e\u{301}", NameError::NotNormalized),
        (&"x".repeat(129), NameError::TooLong),
        (&"é".repeat(64), NameError::EncodedTooLong),
    ] {
        assert_eq!(RunId::parse(bad), Err(error.clone()), "{bad:?}");
        assert_eq!(ItemId::parse(bad), Err(error), "{bad:?}");
    }
    assert_eq!(RunId::parse("a/b"), Err(NameError::Slash));
    // A hint that is pasted would have it for an option.
    assert_eq!(RunId::parse("--all"), Err(NameError::Dash));
    assert!(ItemId::parse("--all").is_ok());
    assert_eq!(ItemId::parse("a/../b").unwrap().encoded(), "a%2F.%2E%2Fb");
}

#[test]
fn paths_hold_no_segment_that_is_more_than_a_file() {
    for good in ["a", "src/main.rs", "a b/c", ".gitignore", ".github/x", "git", "...", "~"] {
        let path = FilePath::parse(good).unwrap();
        assert_eq!(FilePath::decode(&path.encoded()).unwrap(), path);
    }
    for bad in [
        "",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "a/../b",
        "a/./b",
        ".git",
        "a/.GIT/config",
        ".git.",
        ".git ..",
        ".git. /x",
        "git~1",
        "GIT~1/x",
        ".g\u{200c}it",
        "\u{feff}.git",
        ".git::$INDEX_ALLOCATION",
        ".git:x",
        "a\\b",
        "a\0b",
        "a\nb",
        "e\u{301}",
        " a",
    ] {
        assert!(FilePath::parse(bad).is_err(), "{bad:?}");
    }
    assert!(FilePath::parse(&"x".repeat(201)).is_err());
    let long = vec!["x".repeat(200); 5].join("/");
    assert_eq!(FilePath::parse(&format!("{long}/{}", "x".repeat(19))).unwrap().encoded().len(), 1024);
    assert!(FilePath::parse(&format!("{long}/{}", "x".repeat(20))).is_err());
    assert!(FilePath::parse_document(&"x".repeat(129)).is_err());
}

#[test]
fn names_check_themselves_when_they_are_read() {
    assert!(serde_json::from_str::<RunId>(r#""a""#).is_ok());
    assert!(serde_json::from_str::<RunId>(r#""a/b""#).is_err());
    let keyed = serde_json::from_str::<std::collections::BTreeMap<FilePath, u8>>(r#"{"a/../b":1}"#);
    assert!(keyed.is_err());
}

#[test]
fn clashes_are_found_across_case_and_folders() {
    let pairs = |names: &[&str]| {
        let found = clashes(names.iter().copied());
        found.into_iter().map(|(a, b)| format!("{a}|{b}")).collect::<Vec<_>>()
    };
    assert_eq!(pairs(&["a", "b", "a.b", "c/d", "c/e"]), Vec::<String>::new());
    assert_eq!(pairs(&["X", "x", "É", "é"]), ["X|x", "É|é"]);
    assert_eq!(pairs(&["x/y/z", "X/y", "x"]), ["x|x/y/z", "X/y|x/y/z", "x|X/y"]);
}

/// Names made of what git refuses somewhere in a ref or a tree.
fn nasty() -> BTreeSet<String> {
    let parts = [
        "a", ".", "..", ".lock", "lock", "@", "@{", "{", "~1", "^", ":", "?", "*", "[", " ", "%", "-", "é", ".git",
        "HEAD",
    ];
    let pairs = parts.iter().flat_map(|a| parts.map(|b| format!("{a}{b}")));
    pairs.chain(parts.map(str::to_owned)).collect()
}

#[test]
fn git_takes_every_encoded_name() {
    let refs: Vec<String> = nasty().iter().map(|name| format!("refs/x/{}", encode_segment(name))).collect();
    // Creating the refs makes the check of `check-ref-format` for all of them in one process.
    let repository = crate::common::folder();
    let git = |arguments: &[&str], input: &str| {
        use std::io::Write as _;
        let mut child = Command::new("git")
            .arg("-C")
            .arg(repository.path())
            .args(["-c", "core.protectHFS=true", "-c", "core.protectNTFS=true"])
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "git {arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "--quiet", "--bare"], "");
    let blob = git(&["hash-object", "-w", "--stdin"], "x");
    let blob = blob.trim();
    let updates: String = refs.iter().flat_map(|name| ["create ", name, " ", blob, "\n"]).collect();
    git(&["update-ref", "--stdin"], &updates);
    assert_eq!(git(&["for-each-ref", "--format=%(refname)"], "").lines().count(), refs.len());
    // The same names in a tree pass the checks that a strict server makes.
    let lines: Vec<String> = nasty().iter().map(|name| format!("100644 {blob}\t{}\n", encode_segment(name))).collect();
    git(&["update-index", "--index-info"], &lines.concat());
    git(&["write-tree"], "");
    git(&["fsck", "--strict"], "");
    git(&["check-ref-format", &refs[0]], "");
}

proptest! {
    #[test]
    fn encoding_is_reversible_so_no_two_names_share_one(name in "([a-z]|\\.|lock|\\PC|%|@){1,12}") {
        let encoded = encode_segment(&name);
        prop_assert!(encoded.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-%".contains(&byte)));
        prop_assert!(!encoded.starts_with('.') && !encoded.ends_with('.'));
        prop_assert!(!encoded.to_lowercase().ends_with(".lock"));
        prop_assert!(!encoded.contains(".."));
        prop_assert_eq!(decode_segment(&encoded), Some(name));
    }

    #[test]
    fn decoded_names_encode_back(segment in "([a-z.]|%2E|%[0-9A-F]{2}){1,8}") {
        if let Some(name) = decode_segment(&segment) {
            prop_assert_eq!(encode_segment(&name), segment);
        }
    }

    #[test]
    fn a_path_survives_its_encoding(path in "(\\PC|/|\\.){1,20}") {
        if let Ok(path) = FilePath::parse(&path) {
            prop_assert_eq!(FilePath::decode(&path.encoded()), Some(path));
        }
    }
}
