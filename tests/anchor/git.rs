//! The anchor `git`: another repository that holds the logs.

use std::time::{Duration, Instant};

use super::{RUN, forge, json, know, refs, row, sealed, verify};
use crate::common::report::{find_line, find_row, masked, verdict};
use crate::common::{Environment, assert_output};

/// A sealed run, and a repository beside it that is an anchor with its log.
pub(super) fn anchored() -> Environment {
    let env = sealed();
    env.git_in("", ["init", "--quiet", "--bare", "vault.git"]).success();
    env.handoff(["anchor", "add", "vault", "git", "../vault.git", "--json"]).success();
    env.handoff(["anchor", "push"]).success();
    env
}

fn log(env: &Environment) -> String {
    env.git_in("vault.git", ["for-each-ref", "--format=%(refname)"]).success().trim().to_owned()
}

#[test]
fn from_adding_it_to_asking_it() {
    let env = sealed();
    env.git_in("", ["init", "--quiet", "--bare", "vault.git"]).success();
    assert_output!(env.handoff(["anchor", "add", "vault", "git", "../vault.git"]), @r"
    vault: git (external) at $TEST/vault.git
    ------- stderr -------
    hint: git handoff anchor push vault
    ");
    assert_output!(env.handoff(["anchor", "list"]), @r"
    local  local  detect    the logs in this repository
    vault  git    external  $TEST/vault.git
    ");
    assert_output!("anchor_git_missing", env.handoff(["verify", RUN]).exit(3));
    assert_output!(env.handoff(["anchor", "push"]), @"vault  new  log  SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg.af31cbdef700");
    assert_output!("anchor_git_verify", env.handoff(["verify", RUN]));
    assert_output!(env.handoff(["anchor", "check"]), @r"
    handoff-dag-1  local  detect    holds
    handoff-dag-1  vault  external  holds
    ");
    let again = json(&env.handoff(["anchor", "push", "vault", RUN, "--json"]).exit(0));
    assert_eq!(again["published"][0]["status"], "up-to-date");
    let report = verify(&env, &[], 0);
    assert_eq!((&report["guarantee"], &report["claim"]), (&"external".into(), &"tamper-detecting".into()));
    assert_eq!(report["anchors"][1]["standing"], "holds");
}

#[test]
fn a_forged_run_with_a_forged_log_is_caught_and_not_published() {
    let env = anchored();
    let before = env.git_in("vault.git", ["for-each-ref"]).success();
    forge(&env);
    let report = verify(&env, &[], 3);
    assert_eq!((&report["failure"], report["checks"]["anchor"]["ok"].as_bool()), (&"root".into(), Some(false)));
    assert!(row(&report).starts_with("vault: refs/handoff/logs/"), "{report}");
    let mine = refs(&env);
    let pushed = env.handoff(["anchor", "push"]).exit(3);
    insta::assert_snapshot!(pushed.stderr, @"
    error: vault: it holds the root 686de33f of run handoff-dag-1, ours is 0e52a20b; what it holds was there first
    hint: git handoff anchor check handoff-dag-1
    ");
    assert_eq!(env.git_in("vault.git", ["for-each-ref"]).success(), before);
    assert_eq!(refs(&env), mine);
    assert_eq!(json(&env.handoff(["anchor", "check", "--json"]).exit(3))["anchors"][1]["standing"], "differs");
}

#[test]
fn an_anchor_that_is_gone_or_empty_is_never_a_pass() {
    let env = anchored();
    env.git_in("vault.git", ["update-ref", "-d", &log(&env)]).success();
    let report = verify(&env, &[], 3);
    assert_eq!(report["failure"], "anchor-missing");
    assert_eq!(row(&report), "vault: it holds nothing of the run");
    env.shell("", "mv vault.git elsewhere.git").success();
    let second_report = verify(&env, &[], 3);
    assert_eq!(
        (&second_report["failure"], &second_report["anchors"][1]["standing"]),
        (&"anchor-missing".into(), &"unreachable".into())
    );
    let failed = "could not be read or written: `git ls-remote` failed with exit code 128: ";
    assert!(row(&second_report).starts_with(&format!("vault: $TEST/vault.git {failed}")), "{second_report}");
    // A weaker requirement is met and reported.
    assert_eq!(verify(&env, &["--anchor", "local"], 0)["guarantee"], "detect");
    env.handoff(["verify", "--anchor", "nobody", RUN]).ends(1);
}

#[test]
fn an_anchor_whose_log_was_cut_or_is_broken_does_not_hold_the_run() {
    let env = sealed();
    env.git_in("", ["init", "--quiet", "--bare", "vault.git"]).success();
    env.handoff(["anchor", "add", "vault", "git", "../vault.git", "--json"]).success();
    env.write("state", "first");
    env.handoff(["checkpoint", "t", "--state", "../state"]).success();
    env.handoff(["anchor", "push", "vault", "t"]).success();
    env.handoff(["anchor", "push"]).success();
    let log = log(&env);
    env.git_in("vault.git", ["update-ref", &log, &format!("{log}^")]).success();
    assert_eq!(row(&verify(&env, &[], 3)), "vault: it holds nothing of the run");
    // A writer that still has the log's statements publishes them again.
    env.handoff(["anchor", "push"]).success();
    let tree = env.git_in("vault.git", ["rev-parse", &format!("{log}^{{tree}}")]).success();
    let evil = env.git_in("vault.git", ["commit-tree", tree.trim(), "-p", &log, "-m", "evil"]).success();
    env.git_in("vault.git", ["update-ref", &log, evil.trim()]).success();
    let report = verify(&env, &[], 3);
    assert_eq!(report["failure"], "anchor-missing");
    assert!(row(&report).starts_with("vault: refs/handoff/logs/"), "{report}");
    assert_eq!(
        row(&report),
        "vault: refs/handoff/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.d848bcc22940 is broken: commit faf8d79: the commit is not an entry: the message is not a subject and an entry; its statements up to entry 1 count"
    );
}

#[test]
fn an_anchor_that_never_answers_is_given_up() {
    let env = anchored();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/vault.git", listener.local_addr().unwrap());
    env.git(["config", "handoff.anchor.vault.url", &url]).success();
    env.git(["config", "handoff.anchor.vault.timeout", "1"]).success();
    let start = Instant::now();
    let report = verify(&env, &[], 3);
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    assert_eq!(row(&report), format!("vault: {url} could not be read or written: git was not done after 1 seconds"));
}

#[test]
fn anchor_checks_bundles_proofs_and_fetched_runs() {
    let env = anchored();
    env.handoff(["bundle", RUN, "--output", "run.bundle"]).success();
    let proof = env.handoff(["prove", &format!("{RUN}/edit-a:patch")]).success();
    env.write("repo/proof.json", &proof);
    for what in [["--bundle", "run.bundle"], ["--proof", "proof.json"]] {
        let report = env.handoff(["verify"].iter().chain(&what)).success();
        assert_eq!(find_row(&report, "anchor"), "✓ anchor     vault: git (external)");
    }
    forge(&env);
    env.handoff(["bundle", RUN, "--output", "forged.bundle"]).success();
    let second_proof = env.handoff(["prove", &format!("{RUN}/edit-a:patch")]).success();
    env.write("repo/forged.json", &second_proof);
    let report = env.handoff(["verify", "--bundle", "forged.bundle"]).exit(3).stdout;
    insta::assert_snapshot!(find_row(&report, "anchor"), @"✗ anchor     vault: refs/handoff/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.af31cbdef700 holds another run by this name: that of the key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg began with sha256:68db758a648399e09943d0254f2cfd2545869dec8c948a01cabba1ffe923df01; that of SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg with sha256:34e5e1b6e056070c24483150f2e0d68c1a821d26c95dc488579bbf78b14a0bc4");
    assert_eq!(verdict(&report), "✗ TAMPERED");
    let verify_answer = env.handoff(["verify", "--proof", "forged.json"]).exit(3).stdout;
    insta::assert_snapshot!(find_row(&verify_answer, "anchor"), @"✗ anchor     vault: refs/handoff/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg.af31cbdef700 holds another run by this name: that of the key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg began with sha256:68db758a648399e09943d0254f2cfd2545869dec8c948a01cabba1ffe923df01; that of SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg with sha256:34e5e1b6e056070c24483150f2e0d68c1a821d26c95dc488579bbf78b14a0bc4");
    assert_eq!(verdict(&verify_answer), "✗ NOT PROVEN");
}

#[test]
fn verifier_settings_of_the_host_decide_the_claim() {
    let env = anchored();
    env.git(["config", "handoff.anchor.vault.guarantee", "external-immutable"]).success();
    let claim =
        |environment: &Environment, more: &[&str]| verify(environment, more, 0)["claim"].as_str().unwrap().to_owned();
    // Another verifier needs the signer of the key.
    assert_eq!(claim(&env, &[]), "tamper-detecting");
    let report = env.handoff(["verify", "--require", "tamper-evident", RUN]).exit(3).stdout;
    assert_eq!(verdict(&report), "✗ MISMATCH");
    insta::assert_snapshot!(find_row(&report, "required"), @"✗ required   tamper-evident was required; it takes trusted signers and an anchor that cannot be rewritten: your signers do not name the key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg");
    know(&env);
    assert_eq!(claim(&env, &[]), "tamper-evident");
    let _ = env.handoff(["verify", "--require", "tamper-evident", RUN]).success();
    assert_output!("anchor_git_evident", env.handoff(["verify", RUN]));
    // A key that the verifier does not know, or an unqueried anchor, allows no such claim.
    assert_eq!(claim(&env, &["--anchor", "local"]), "tamper-detecting");
    let verify_answer = env.handoff(["verify", "--require", "tamper-evident", "--anchor", "local", RUN]).exit(3).stdout;
    insta::assert_snapshot!(find_row(&verify_answer, "required"), @"✗ required   tamper-evident was required; it takes trusted signers and an anchor that cannot be rewritten: the strongest guarantee is detect");
    env.git(["config", "--unset", "handoff.signers"]).success();
    env.git(["config", "handoff.signingKey", ""]).success();
    assert_eq!(claim(&env, &[]), "tamper-detecting");
    env.handoff(["verify", "--require", "tamper-evident", RUN]).ends(3);
}

#[test]
fn a_tracked_file_makes_nothing_an_anchor() {
    let env = anchored();
    env.git(["config", "--remove-section", "handoff.anchor.vault"]).success();
    env.write(
        "repo/tracked",
        "[handoff \"anchor.vault\"]\n\ttype = git\n\turl = ../vault.git\n\tguarantee = external-immutable\n",
    );
    env.git(["config", "include.path", "../tracked"]).success();
    let verified = env.handoff(["verify", "--json", RUN]).exit(0);
    assert_eq!(json(&verified)["guarantee"], "detect");
    insta::assert_snapshot!(verified.stderr, @"
    warning: `handoff.anchor.vault.type` is ignored: a file inside the work tree sets it, and a commit can change that file
    warning: `handoff.anchor.vault.url` is ignored: a file inside the work tree sets it, and a commit can change that file
    warning: `handoff.anchor.vault.guarantee` is ignored: a file inside the work tree sets it, and a commit can change that file
    ");
}

#[test]
fn it_works_in_a_repository_of_the_other_object_format_and_with_branches() {
    let env = Environment::example_with("handoff-dag", &["--object-format=sha256"]);
    env.handoff(["run", "plan.json"]).success();
    env.git_in("", ["init", "--quiet", "--bare", "--object-format=sha256", "vault.git"]).success();
    env.git(["remote", "add", "vault", "../vault.git"]).success();
    env.handoff(["anchor", "add", "vault", "git", "vault", "--branches", "evidence"]).success();
    env.handoff(["anchor", "push"]).success();
    assert!(log(&env).starts_with("refs/heads/evidence/logs/SHA256"), "{}", log(&env));
    env.git(["worktree", "add", "--quiet", "--detach", "../linked"]).success();
    for place in ["repo", "linked"] {
        let report = env.handoff_in(place, ["verify", RUN]).success();
        assert_eq!(find_row(&report, "anchor"), "✓ anchor     vault: git (external)");
    }
}

#[test]
fn one_key_in_two_clones_has_one_log_there() {
    let env = anchored();
    env.git_in("", ["clone", "--quiet", "repo", "clone"]).success();
    env.write(
        "clone/other.json",
        r#"{"id":"other","items":[{"id":"a","executor":"command","inputs":{"command":"true"}}]}"#,
    );
    env.handoff_in("clone", ["run", "other.json"]).success();
    env.handoff_in("clone", ["anchor", "add", "vault", "git", "../vault.git"]).success();
    env.handoff_in("clone", ["anchor", "push"]).success();
    assert_eq!(env.git_in("vault.git", ["for-each-ref"]).success().lines().count(), 1);
    for (place, run) in [("repo", RUN), ("clone", "other")] {
        let report = env.handoff_in(place, ["verify", run]).success();
        assert_eq!(find_row(&report, "anchor"), "✓ anchor     vault: git (external)");
    }
    env.handoff(["anchor", "push"]).success();
}

#[test]
fn verify_misses_anchored_runs_when_run_and_log_are_gone() {
    let env = anchored();
    for reference in env.git(["for-each-ref", "--format=%(refname)", "refs/handoff"]).success().lines() {
        env.git(["update-ref", "-d", reference]).success();
    }
    for command in [&["verify", "--all"][..], &["anchor", "check"]] {
        let output = env.handoff(command).exit(3);
        let gone = format!("error: the ref refs/handoff/runs/{RUN} is gone, but the anchor vault holds the run\n");
        assert_eq!(output.stderr, gone);
    }
    let _ = env.handoff(["verify", "--all", "--anchor", "local"]).exit(3);
    env.shell("", "mv vault.git elsewhere.git").success();
    let output = env.handoff(["verify", "--all"]).exit(3);
    let failed = "$TEST/vault.git could not be read or written: `git ls-remote` failed with exit code 128: ";
    let silent = format!("error: the anchor vault does not say what it holds: {failed}");
    assert!(output.stderr.starts_with(&silent), "{output}");
    env.shell("", "mv elsewhere.git vault.git").success();
    // A log of our own key that was fetched says it as well.
    let log = log(&env);
    let fetched = log.replace("refs/handoff/", "refs/handoff/remotes/vault/");
    env.git(["fetch", "--quiet", "../vault.git", &format!("{log}:{fetched}")]).success();
    for command in [&["verify", "--all", "--anchor", "local"][..], &["verify", RUN]] {
        let later_output = env.handoff(command).exit(3);
        let gone = format!("error: the ref refs/handoff/runs/{RUN} is gone, but the log {fetched} holds the run\n");
        assert_eq!(later_output.stderr, gone);
    }
    // A fetched run is compared with it like one that was never deleted.
    env.handoff(["run", "plan.json"]).ends(1);
    env.git(["update-ref", "-d", &fetched]).success();
    env.handoff(["run", "plan.json"]).success();
    let run = format!("refs/handoff/runs/{RUN}");
    env.git(["update-ref", &format!("refs/handoff/remotes/hub/runs/{RUN}"), &run]).success();
    env.git(["update-ref", "-d", &run]).success();
    env.git(["update-ref", "-d", &log]).success();
    let verify_output = env.handoff(["verify", "--all"]).exit(3);
    assert_eq!(verdict(&verify_output.stdout), "✗ TAMPERED");
}

#[test]
fn a_tracked_file_redirects_no_anchor() {
    let env = anchored();
    env.git_in("", ["init", "--quiet", "--bare", "evil.git"]).success();
    forge(&env);
    env.handoff(["push", "../evil.git", RUN]).success();
    let vault = env.path().join("vault.git").canonicalize().unwrap();
    let evil = vault.with_file_name("evil.git");
    let (vault, evil) = (vault.to_str().unwrap(), evil.to_str().unwrap());
    let rules = format!(
        "[url \"{evil}\"]\n\tinsteadOf = {vault}\n\tpushInsteadOf = {vault}\n[remote \"{vault}\"]\n\turl = {evil}\n\
         [remote \"place\"]\n\turl = {evil}\n"
    );
    env.write("repo/tracked", &rules);
    env.write("outside", &rules);
    env.shell("repo", "ln -s ../outside link").success();
    for path in ["../tracked", "../link"] {
        env.git(["config", "include.path", path]).success();
        // git itself would be led astray.
        let refs_before = env.git(["ls-remote", vault]).success();
        assert_eq!(refs_before, env.git(["ls-remote", evil]).success());
        let output = env.handoff(["verify", "--json", RUN]).exit(3);
        assert_eq!(json(&output)["anchors"][1]["standing"], "differs", "{output}");
        for key in ["url.$TEST/evil.git.insteadof", "url.$TEST/evil.git.pushinsteadof", "remote.$TEST/vault.git.url"] {
            let why = "is ignored when an anchor is reached: a file inside the work tree sets it";
            assert_eq!(find_line(&output.stderr, &format!("warning: `{key}`")), format!("warning: `{key}` {why}"));
        }
        env.handoff(["anchor", "push"]).ends(3);
        // A remote that only a tracked file knows is none.
        env.handoff(["anchor", "add", "second", "git", "place"]).ends(1);
    }
    // The user's own settings, outside the work tree, count.
    env.git(["config", "include.path", "../../outside"]).success();
    assert_eq!(verify(&env, &[], 0)["anchors"][1]["standing"], "holds");
}

#[test]
fn verify_compares_a_bundle_with_the_repository() {
    let env = sealed();
    let plan = r#"{"id":"other","items":[{"id":"a","executor":"command","inputs":{"command":"true"}}]}"#;
    env.write("repo/other.json", plan);
    env.handoff(["run", "other.json"]).success();
    env.handoff(["bundle", "other", "--output", "../run.bundle"]).success();
    env.git_in("", ["clone", "--quiet", "repo", "clone"]).success();
    let verify = ["verify", "--json", "--bundle", "../run.bundle"];
    assert_eq!(json(&env.handoff_in("clone", verify).exit(0))["intact"], true);
    // Another run of that name by a key of its own.
    env.git_in("clone", ["config", "handoff.signingKey", ""]).success();
    env.write("clone/other.json", plan);
    env.handoff_in("clone", ["run", "other.json"]).success();
    let answer = json(&env.handoff_in("clone", verify).exit(3));
    insta::assert_snapshot!(masked(row(&answer)), @"a log holds another run by this name: that of SHA256:… began with sha256:…; that of SHA256:… began with sha256:…");
}
