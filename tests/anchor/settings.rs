//! Invalid settings of anchors, each refused with nothing written.

use super::{RUN, sealed};
use crate::common::report::find_line;

#[test]
fn anchor_add_rejects_invalid_arguments() {
    let env = sealed();
    env.git_in("", ["init", "--quiet", "--bare", "vault.git"]).success();
    let before = env.git(["config", "--list", "--local"]).success();
    let name_error = |name: &str| {
        format!(
            "{name:?} is no name for an anchor: letters, digits, `-`, `_` and `.`, and not \"local\", which is always there"
        )
    };
    let nowhere = "\"../nowhere\" is neither a remote of this repository nor a URL nor the path of a repository";
    let itself = "$TEST/repo is this repository itself, which anchors nothing for itself";
    let guarantee = "the setting `handoff.anchor.vault.guarantee` is none of detect, external, external-immutable";
    let timeout = "the setting `handoff.anchor.vault.timeout` is not between 1 and 600 seconds";
    let branches = "the setting `handoff.anchor.vault.branches` cannot begin the name of a branch";
    let refused: &[(&[&str], &str)] = &[
        (&["vault", "git", "../nowhere"], nowhere),
        (&["vault", "git", "."], itself),
        (&["vault", "git", "file:///nowhere.git"], "file:///nowhere.git could not be read or written"),
        (&["local", "git", "../vault.git"], &name_error("local")),
        (&["a b", "git", "../vault.git"], &name_error("a b")),
        (&["vault", "--guarantee", "total", "git", "../vault.git"], guarantee),
        (&["vault", "--timeout", "0", "git", "../vault.git"], timeout),
        (&["vault", "git", "../vault.git", "--branches", "a b"], branches),
    ];
    for (arguments, why) in refused {
        let output = env.handoff(["anchor", "add"].iter().chain(*arguments)).exit(1);
        assert_eq!(find_line(&output.stderr, "error: "), format!("error: {why}"), "{arguments:?}");
        assert_eq!(env.git(["config", "--list", "--local"]).success(), before, "{arguments:?}");
    }
    env.handoff(["anchor", "add", "vault", "git", "../vault.git"]).success();
    insta::assert_snapshot!(env.handoff(["anchor", "add", "vault", "git", "../vault.git"]).exit(1).stderr, @r#"
    error: the anchor "vault" is configured already
    hint: git config --remove-section handoff.anchor.vault
    "#);
}

#[test]
fn misspelt_settings_weaken_no_anchor() {
    let env = sealed();
    for (key, value, why) in [
        ("type", "magic", "the setting `handoff.anchor.vault.type` is no kind of anchor"),
        ("url", "", "the anchor \"vault\" has no setting `handoff.anchor.vault.url`"),
        ("bucket", "b", "the setting `handoff.anchor.vault.bucket` is no setting of such an anchor"),
        (
            "garantee",
            "detect",
            "the setting `handoff.anchor.vault.garantee` in $TEST/repo/.git/config is not known; did you mean \
             `handoff.anchor.vault.guarantee`?",
        ),
    ] {
        env.git(["config", "handoff.anchor.vault.type", "git"]).success();
        env.git(["config", "handoff.anchor.vault.url", "../vault.git"]).success();
        env.git(["config", &format!("handoff.anchor.vault.{key}"), value]).success();
        let output = env.handoff(["verify", RUN]).exit(1);
        assert_eq!(find_line(&output.stderr, "error: "), format!("error: {why}"));
        assert!(find_line(&output.stderr, "hint: ").starts_with("hint: git config --"), "{output}");
        env.git(["config", "--remove-section", "handoff.anchor.vault"]).success();
    }
}

#[test]
fn anchor_add_rejects_unpublishable_settings() {
    let env = sealed();
    insta::assert_snapshot!(env.handoff(["anchor", "push"]).exit(1).stderr, @"
    error: no anchor is configured
    hint: git handoff anchor add NAME git URL
    ");
    env.git_in("", ["init", "--quiet", "--bare", "vault.git"]).success();
    env.handoff(["anchor", "add", "vault", "git", "../vault.git"]).success();
    insta::assert_snapshot!(env.handoff(["anchor", "push", "nobody"]).exit(1).stderr, @r#"
    error: "nobody" is neither an anchor in your configuration nor a run or thread here
    hint: git handoff anchor list && git handoff runs
    "#);
    env.write(
        "repo/open.json",
        r#"{"id":"open","items":[{"id":"a","executor":"command","inputs":{"command":"true"}}]}"#,
    );
    env.handoff(["submit", "open.json"]).success();
    insta::assert_snapshot!(env.handoff(["anchor", "push", "open"]).exit(1).stderr, @r#"
    error: your log holds no seal of the run "open"
    hint: git handoff verify open
    "#);
    insta::assert_snapshot!(env.handoff(["anchor", "check", "open"]).exit(3).stderr, @r#"the run "open" is not sealed, so that no anchor can hold it yet"#);
    assert!(env.git_in("vault.git", ["for-each-ref"]).success().is_empty());
}
