//! Threads and anchors: a `git` anchor's log says how far a thread went, a bucket has an object for
//! each length, and time stamps are stored with the thread.

use serde_json::Value;

use super::answers::{Answer, serve};
use super::moto::Moto;
use super::tsa::Authority;
use super::{json, refs};
use crate::common::report::{find_line, find_row, masked};
use crate::common::{Environment, Output, answers};

const STAMPS: &str = "refs/handoff/thread-stamps/research";

fn save(env: &Environment, thread: &str, state: &str) {
    env.write("state", state);
    env.handoff(["checkpoint", thread, "--state", "../state"]).success();
}

/// A thread of two checkpoints.
fn saved() -> Environment {
    let env = Environment::example("handoff-dag");
    save(&env, "research", "draft");
    save(&env, "research", "gathered");
    env
}

/// A thread of two checkpoints, and an anchor that was handed what there is.
fn anchored() -> Environment {
    let env = saved();
    env.git_in("", ["init", "--quiet", "--bare", "vault.git"]).success();
    env.handoff(["anchor", "add", "vault", "git", "../vault.git"]).success();
    env.handoff(["anchor", "push"]).success();
    env
}

/// The same with a bucket.
fn locked() -> (Environment, Moto) {
    let (env, moto) = (saved(), Moto::start());
    env.write("home/.aws/credentials", "[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = x\n");
    moto.bucket("evidence");
    env.handoff(["anchor", "add", "vault", "s3", "evidence", "--endpoint", &moto.url()]).success();
    env.handoff(["anchor", "push"]).success();
    (env, moto)
}

/// The same with a time-stamping authority.
fn stamped() -> (Environment, Authority) {
    let env = saved();
    let authority =
        Authority::new(&env.path().join("tsa"), &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]);
    let url = authority.serve(|reply| reply);
    env.handoff(["anchor", "add", "tsa", "rfc3161", &url, "--ca", &authority.ca()]).success();
    let pushed = env.handoff(["anchor", "push"]).success();
    assert_eq!(pushed, "tsa  new  time stamp  research\n");
    (env, authority)
}

/// Returns the row `anchor` of a thread, with how the command ended.
fn row(env: &Environment, thread: &str) -> (i32, String) {
    let output = env.handoff(["thread", "verify", thread, "--json"]);
    let report: Value = json(&output);
    answers::hold_answer(&report);
    (output.status.expect("it ends"), report["checks"]["anchor"]["detail"].as_str().expect("a row").to_owned())
}

/// Removes the logs, and all but the first entry of the thread.
fn cut(env: &Environment) {
    let head = env.git(["rev-parse", "refs/handoff/threads/research"]).success();
    lose(env, "refs/handoff/logs");
    env.git(["update-ref", "refs/handoff/threads/research", &format!("{}~1", head.trim())]).success();
}

/// Replaces the thread and its log by another thread of the same name.
fn rewrite_thread(env: &Environment) {
    lose(env, "refs/handoff/logs");
    env.git(["update-ref", "-d", "refs/handoff/threads/research"]).success();
    save(env, "research", "another");
    save(env, "research", "story");
}

/// Removes the refs below a folder.
fn lose(env: &Environment, folder: &str) {
    for reference in env.git(["for-each-ref", "--format=%(refname)", folder]).success().lines() {
        env.git(["update-ref", "-d", reference]).success();
    }
}

#[test]
fn verify_reports_the_anchor_of_a_thread() {
    let env = anchored();
    assert_eq!(row(&env, "research"), (0, "vault: git (external); local (detect)".to_owned()));
    save(&env, "research", "more");
    let behind = "vault: git (external), 2 of 3 entries; local (detect)".to_owned();
    assert_eq!(row(&env, "research"), (0, behind));
    save(&env, "other", "x");
    assert_eq!(row(&env, "other"), (0, "local (detect); vault holds nothing of it".to_owned()));
    // Only the named thread is pushed.
    env.handoff(["anchor", "push", "vault", "other"]).success();
    assert_eq!(row(&env, "other"), (0, "vault: git (external); local (detect)".to_owned()));
    assert_eq!(row(&env, "research").1, "vault: git (external), 2 of 3 entries; local (detect)");
    env.handoff(["anchor", "push"]).success();
    assert_eq!(row(&env, "research"), (0, "vault: git (external); local (detect)".to_owned()));
    assert_eq!(env.git_in("vault.git", ["for-each-ref"]).success().lines().count(), 1);
    let unknown = env.handoff(["anchor", "push", "nothing"]).exit(1).stderr;
    insta::assert_snapshot!(unknown, @r#"
    error: "nothing" is neither an anchor in your configuration nor a run or thread here
    hint: git handoff anchor list && git handoff runs
    "#);
}

#[test]
fn a_thread_cut_or_rewritten_with_its_log_is_found() {
    let env = anchored();
    cut(&env);
    assert_eq!(row(&env, "research"), (3, "vault holds 2 entries: the last are gone".to_owned()));
    rewrite_thread(&env);
    let (code, detail) = row(&env, "research");
    assert!(code == 3 && detail.starts_with("vault holds another entry "), "{code} {detail}");
}

#[test]
fn unreachable_anchor_is_no_pass() {
    let env = anchored();
    env.shell("", "mv vault.git elsewhere.git").success();
    let (code, detail) = row(&env, "research");
    assert!(code == 3 && detail.starts_with("vault: ") && detail.ends_with("; local (detect)"), "{code} {detail}");
    env.shell("", "mv elsewhere.git vault.git").success();
    assert_eq!(row(&env, "research").0, 0);
}

/// Returns the names of all objects in the bucket, without the fingerprint.
fn objects(moto: &Moto) -> Vec<String> {
    let listed = moto.send("GET", "/evidence?versions", &[], "");
    let keys = listed.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next());
    let mut keys: Vec<String> = keys.map(|key| key.splitn(3, '/').nth(2).unwrap().to_owned()).collect();
    keys.sort();
    keys
}

/// Returns the path of the object of the thread with so many entries.
fn path_of(moto: &Moto, entries: u64) -> String {
    let listed = moto.send("GET", "/evidence?versions", &[], "");
    let mut keys = listed.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next());
    format!("/evidence/{}", keys.find(|key| key.ends_with(&format!("/threads/research/{entries}.json"))).unwrap())
}

#[test]
fn a_bucket_gets_an_object_for_each_length_of_a_thread() {
    let (env, moto) = locked();
    assert_eq!(row(&env, "research"), (0, "vault: s3 (external-immutable); local (detect)".to_owned()));
    let text = env.handoff(["thread", "verify", "research"]).success();
    insta::assert_snapshot!(find_row(&text, "anchor"), @"✓ anchor     vault: s3 (external-immutable); local (detect)");
    assert_eq!(env.handoff(["anchor", "push"]).success(), "vault  up-to-date  thread  research\n");
    save(&env, "research", "more");
    let behind = "vault: s3 (external-immutable), 2 of 3 entries; local (detect)";
    assert_eq!(row(&env, "research"), (0, behind.to_owned()));
    save(&env, "other@home", "x");
    assert_eq!(row(&env, "other@home"), (0, "local (detect); vault holds nothing of it".to_owned()));
    assert_eq!(env.handoff(["anchor", "push", "vault", "other@home"]).success(), "vault  new  thread  other@home\n");
    assert_eq!(row(&env, "research"), (0, behind.to_owned()));
    let pushed = json(&env.handoff(["anchor", "push", "--json"]).exit(0));
    answers::hold_answer(&pushed);
    assert_eq!(
        (&pushed["published"][1]["status"], &pushed["published"][1]["name"]),
        (&"new".into(), &"research".into())
    );
    assert_eq!(row(&env, "research"), (0, "vault: s3 (external-immutable); local (detect)".to_owned()));
    let names = ["threads/other!40home/1.json", "threads/research/2.json", "threads/research/3.json"];
    assert_eq!(objects(&moto), names);
    // The object is as the format says, and canonical.
    let second_text = moto.send("GET", &path_of(&moto, 2), &[], "");
    let object: Value = serde_json::from_str(&second_text).unwrap();
    answers::hold_answer(&object);
    assert_eq!(serde_json::to_string(&object).unwrap(), second_text);
    assert_eq!((&object["thread"], &object["entries"]), (&"research".into(), &2.into()));
}

#[test]
fn run_called_threads_shares_no_object_with_threads() {
    let (env, moto) = locked();
    let plan = r#"{"id":"threads","items":[{"id":"a","executor":"command","inputs":{"command":"true"}}]}"#;
    env.write("repo/more.json", plan);
    env.handoff(["run", "more.json"]).success();
    env.handoff(["anchor", "push"]).success();
    assert_eq!(objects(&moto), ["threads.json", "threads/research/2.json"]);
    insta::assert_snapshot!(env.handoff(["anchor", "check"]).success(), @"
    threads  local  detect              holds
    threads  vault  external-immutable  holds
    ");
    env.handoff(["thread", "verify", "--all"]).success();
}

#[test]
fn a_bucket_shows_that_a_thread_was_cut_or_rewritten() {
    let (env, moto) = locked();
    cut(&env);
    assert_eq!(row(&env, "research"), (3, "vault holds 2 entries: the last are gone".to_owned()));
    // The shorter one is not put beside it.
    save(&env, "other", "x");
    rewrite_thread(&env);
    let pushed = env.handoff(["anchor", "push", "research"]).exit(3);
    let why = "error: vault: it holds another entry 1 of thread research; what it holds was there first";
    assert_eq!(find_line(&pushed.stderr, "error: "), why);
    let rewritten = "vault holds another entry 1";
    assert_eq!(row(&env, "research"), (3, rewritten.to_owned()));
    // Nor is a longer one, by which the shorter would be forgotten.
    save(&env, "research", "that goes on");
    let second_pushed = env.handoff(["anchor", "push", "research"]).exit(3);
    assert_eq!(find_line(&second_pushed.stderr, "error: "), why);
    assert_eq!(objects(&moto), ["threads/research/2.json"]);
    // Another version over the object, and a delete marker, do not count.
    let path = path_of(&moto, 2);
    let stored = moto.send("GET", &path, &[], "");
    let last = serde_json::from_str::<Value>(&stored).unwrap()["last"].as_str().unwrap().to_owned();
    moto.send("PUT", &path, &[], &stored.replace(&last, &format!("sha256:{}", "0".repeat(64))));
    moto.send("DELETE", &path, &[], "");
    assert_eq!(row(&env, "research"), (3, rewritten.to_owned()));
}

#[test]
fn verify_reports_replaced_or_unlocked_thread_objects() {
    let (env, moto) = locked();
    let path = path_of(&moto, 2);
    let object = moto.send("GET", &path, &[], "");
    moto.send("PUT", &path, &[], "something else");
    moto.send("DELETE", &path, &[], "");
    let expected = "vault: s3 (external-immutable); local (detect); \
                vault: 2 versions or delete markers were put over it later, which do not count";
    assert_eq!(row(&env, "research"), (0, expected.to_owned()));
    moto.bucket("loose");
    moto.send("PUT", &path.replace("/evidence/", "/loose/"), &[], &object);
    env.git(["config", "handoff.anchor.vault.bucket", "loose"]).success();
    let expected_unlocked = "vault: s3 (external); local (detect); vault: it is under no retention";
    assert_eq!(row(&env, "research"), (0, expected_unlocked.to_owned()));
    // An object that says another thing than its name is no answer.
    for (bucket, text, why) in [
        (
            "other",
            object.replace("\"entries\":2", "\"entries\":1"),
            "in the place of 2 entries of the thread is about 1 entries of thread research of the key SHA256:…",
        ),
        ("foreign", "{}".to_owned(), "in the place of the thread is not what we write"),
    ] {
        moto.bucket(bucket);
        moto.send("PUT", &path.replace("/evidence/", &format!("/{bucket}/")), &[], &text);
        env.git(["config", "handoff.anchor.vault.bucket", bucket]).success();
        let (code, detail) = row(&env, "research");
        assert_eq!((code, masked(&detail)), (3, format!("vault: what it holds {why}; local (detect)")));
    }
}

#[test]
fn a_bucket_that_holds_more_of_a_thread_is_behind_nothing() {
    let (env, moto) = locked();
    env.shell("", "cp -r repo earlier").success();
    save(&env, "research", "more");
    env.handoff(["anchor", "push"]).success();
    env.shell("", "mv repo later && mv earlier repo").success();
    assert_eq!(env.handoff(["anchor", "push"]).success(), "vault  up-to-date  thread  research\n");
    assert_eq!(objects(&moto).len(), 2);
    assert_eq!(row(&env, "research"), (3, "vault holds 3 entries: the last are gone".to_owned()));
}

#[test]
fn a_thread_that_does_not_verify_is_put_nowhere() {
    let (env, moto) = locked();
    let (before, objects_before) = (refs(&env), objects(&moto));
    save(&env, "research", "more");
    let tree = env.git(["rev-parse", "refs/handoff/threads/research^{tree}"]).success();
    let evil = env.git(["commit-tree", tree.trim(), "-p", "refs/handoff/threads/research", "-m", "evil"]).success();
    env.git(["update-ref", "refs/handoff/threads/research", evil.trim()]).success();
    let pushed = env.handoff(["anchor", "push"]).exit(3);
    insta::assert_snapshot!(pushed.stderr, @"
    error: vault: thread research does not verify: chain: commit e9f9279: the commit is not an entry: the message is not a subject and an entry
    hint: git handoff thread verify research
    ");
    assert_eq!(objects(&moto), objects_before);
    assert_ne!(refs(&env), before);
}

/// Asserts that no answer of this bucket is a pass.
fn silent(env: &Environment, why: &str) {
    let (code, detail) = row(env, "research");
    assert_eq!((code, detail), (3, format!("vault: {why}; local (detect)")));
    let all: Output = env.handoff(["thread", "verify", "--all"]).exit(3);
    assert_eq!(all.stderr, format!("error: the anchor vault does not say what it holds: {why}\n"));
}

#[test]
fn a_bucket_behind_a_page_or_down_is_no_pass_for_a_thread() {
    let (env, moto) = locked();
    let (url, _) = serve(|_, _| Answer::ok("<html>console</html>"));
    env.git(["config", "handoff.anchor.vault.endpoint", &url]).success();
    silent(&env, "the answer is not one of S3's: <html>console</html>");
    env.git(["config", "handoff.anchor.vault.endpoint", "http://127.0.0.1:1"]).success();
    let (code, detail) = row(&env, "research");
    assert!(detail.starts_with("vault: it could not be reached: Failed to connect to 127.0.0.1 port 1: "), "{detail}");
    assert!(code == 3 && detail.ends_with("; local (detect)"), "{detail}");
    env.git(["config", "handoff.anchor.vault.endpoint", &moto.url()]).success();
    assert_eq!(row(&env, "research").0, 0);
}

#[test]
fn a_thread_that_an_anchor_holds_and_that_is_not_here_is_missed() {
    for (env, _moto) in [(anchored(), None), {
        let (env, moto) = locked();
        (env, Some(moto))
    }] {
        env.handoff(["run", "plan.json"]).success();
        env.handoff(["anchor", "push"]).success();
        env.handoff(["anchor", "check"]).success();
        env.handoff(["thread", "verify", "--all"]).success();
        env.shell("", "cp -r repo whole").success();
        lose(&env, "refs/handoff/logs");
        lose(&env, "refs/handoff/threads");
        for command in [&["anchor", "check"][..], &["verify", "--all"], &["thread", "verify", "--all"]] {
            let stderr = env.handoff(command).exit(3).stderr;
            let why = "error: the ref refs/handoff/threads/research is gone, but the anchor vault holds the thread";
            assert_eq!(stderr.matches(why).count(), 1, "{command:?}: {stderr}");
        }
        // A copy that was fetched is what there is here.
        env.git(["fetch", "--quiet", "../whole", "refs/handoff/threads/*:refs/handoff/remotes/origin/threads/*"])
            .success();
        let output = env.handoff(["anchor", "check"]);
        assert!(!output.stderr.contains("threads/research"), "{output}");
        assert_eq!(row(&env, "origin/research").0, 0);
    }
}

/// Returns what a time stamp's part of the row says of the time.
fn time(detail: &str) -> &str {
    let (_, rest) = detail.split_once("tsa: rfc3161 (").unwrap_or_else(|| panic!("{detail}"));
    rest.split_once(')').unwrap().0
}

#[test]
fn time_stamp_covers_a_thread_up_to_its_last_checkpoint() {
    let (env, authority) = stamped();
    let (code, detail) = row(&env, "research");
    let at = time(&detail).to_owned();
    assert!(at.parse::<git_handoff::model::time::Moment>().is_ok(), "{detail}");
    assert_eq!((code, detail), (0, format!("tsa: rfc3161 ({at}); local (detect)")));
    assert_eq!(env.handoff(["anchor", "push"]).success(), "tsa  up-to-date  time stamp  research\n");
    save(&env, "research", "more");
    assert_eq!(row(&env, "research"), (0, format!("tsa: rfc3161 ({at}), 2 of 3 entries; local (detect)")));
    assert_eq!(env.handoff(["anchor", "push"]).success(), "tsa  new  time stamp  research\n");
    let (_, second_detail) = row(&env, "research");
    assert!(second_detail.ends_with("); local (detect)") && time(&second_detail) >= at.as_str(), "{second_detail}");
    // Each says for how many entries it is, and is over the leaf hash of the last: stock openssl
    // says the same.
    let names = env.git(["ls-tree", "--name-only", STAMPS]).success();
    let numbers: Vec<&str> = names.lines().map(|name| name.split('.').next().unwrap()).collect();
    assert_eq!(numbers, ["2", "3"]);
    let log = env.git(["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]).success();
    let output =
        env.shell("repo", &format!("git cat-file blob {0}:$(git ls-tree -r --name-only {0} threads)", log.trim()));
    let last = serde_json::from_str::<Value>(&output.success()).unwrap()["last"].as_str().unwrap().to_owned();
    let name = names.lines().find(|name| name.starts_with("3.")).unwrap();
    let path = env.path().join("kept.tst");
    std::fs::write(&path, env.git(["cat-file", "blob", &format!("{STAMPS}:{name}")]).raw).unwrap();
    let digest = last.strip_prefix("sha256:").unwrap();
    let of = ["ts", "-verify", "-digest", digest, "-token_in", "-in", path.to_str().unwrap(), "-CAfile", "ca.pem"];
    authority.openssl(&of);
    // Verify does not ask the authority, which may be down. A missing token is named.
    env.git(["config", "handoff.anchor.tsa.url", "http://127.0.0.1:1"]).success();
    assert_eq!(row(&env, "research"), (0, second_detail));
    save(&env, "other", "x");
    assert_eq!(row(&env, "other"), (0, "local (detect); tsa: no time stamp is at hand".to_owned()));
    let down = env.handoff(["anchor", "push"]).exit(1);
    let why = "error: tsa: it could not be reached: Failed to connect to 127.0.0.1 port 1: ";
    assert!(down.stderr.starts_with(why), "{down}");
    let (page, _) = serve(|_, _| Answer::ok("<html>console</html>"));
    env.git(["config", "handoff.anchor.tsa.url", &page]).success();
    let anchor_output = env.handoff(["anchor", "push"]).exit(1);
    insta::assert_snapshot!(anchor_output.stderr, @"error: tsa: the answer is no time stamp: <html>console</html>");
    assert_eq!(row(&env, "other").1, "local (detect); tsa: no time stamp is at hand");
}

#[test]
fn time_stamp_detects_a_cut_or_rewritten_thread() {
    let (env, _authority) = stamped();
    cut(&env);
    assert_eq!(row(&env, "research"), (3, "tsa stamped 2 entries: the last are gone".to_owned()));
    rewrite_thread(&env);
    assert_eq!(row(&env, "research"), (3, "tsa stamped another entry 1".to_owned()));
    // A person who cuts the thread can delete its tokens as well.
    env.git(["update-ref", "-d", STAMPS]).success();
    assert_eq!(row(&env, "research"), (0, "local (detect); tsa: no time stamp is at hand".to_owned()));
    // A token of an authority that the verifier does not name says nothing.
    let (second_env, authority) = stamped();
    cut(&second_env);
    authority.end_ca();
    let (code, detail) = row(&second_env, "research");
    assert_eq!(code, 0, "{code} {detail}");
    insta::assert_snapshot!(detail, @"in no log; tsa: the certificate of its signer is not vouched for: UnknownIssuer; a CA certificate of yours was not valid then, or signs none");
}

#[test]
fn time_stamps_of_a_thread_travel_with_it_and_speak_against_no_copy() {
    let (env, authority) = stamped();
    let (_, detail) = row(&env, "research");
    let at = time(&detail).to_owned();
    // A run of this name has time stamps of its own.
    let plan = r#"{"id":"research","items":[{"id":"a","executor":"command","inputs":{"command":"true"}}]}"#;
    env.write("repo/more.json", plan);
    env.handoff(["run", "more.json"]).success();
    env.handoff(["anchor", "push"]).success();
    env.git(["rev-parse", "--verify", "refs/handoff/stamps/research"]).success();
    env.git_in("", ["init", "--quiet", "--bare", "hub.git"]).success();
    env.git(["remote", "add", "origin", "../hub.git"]).success();
    env.handoff(["push", "origin", "research"]).success();
    let there = env.git_in("hub.git", ["for-each-ref", "--format=%(refname)", "refs/handoff/thread-stamps"]).success();
    assert_eq!(there, format!("{STAMPS}\n"));
    // A branch cannot hold them.
    env.git_in("", ["init", "--quiet", "--bare", "branches.git"]).success();
    env.handoff(["push", "../branches.git", "research", "--as-branch", "x"]).success();
    let second_there = env.git_in("branches.git", ["for-each-ref", "--format=%(refname)"]).success();
    assert!(
        second_there.contains("refs/heads/x/threads/research\n") && !second_there.contains("stamps"),
        "{second_there}"
    );
    env.git_in("", ["clone", "--quiet", "hub.git", "copy"]).success();
    for (key, value) in [("type", "rfc3161"), ("url", "http://127.0.0.1:1"), ("ca", &authority.ca())] {
        env.git_in("copy", ["config", &format!("handoff.anchor.tsa.{key}"), value]).success();
    }
    let verify = || {
        let output = env.handoff_in("copy", ["thread", "verify", "origin/research", "--json"]);
        (output.status, json(&output)["checks"]["anchor"]["detail"].as_str().unwrap().to_owned())
    };
    env.handoff_in("copy", ["fetch", "origin"]).success();
    assert!(verify().1.starts_with(&format!("tsa: rfc3161 ({at})")), "{:?}", verify());
    // Tokens with other numbers beside the copy do not contradict it.
    let tokens = env.git(["ls-tree", STAMPS]).success();
    let (before, hash) = tokens.trim().split_once("\t2.").unwrap();
    env.write("entries", &format!("{before}\t1.{hash}\n{before}\t2.{hash}\n{before}\t9.{hash}\n"));
    env.shell(
        "hub.git",
        "git fetch -q ../repo refs/handoff/thread-stamps/research && \
                          git update-ref refs/handoff/thread-stamps/research $(git mktree < ../entries)",
    )
    .success();
    env.handoff_in("copy", ["fetch", "origin"]).success();
    let (status, second_detail) = verify();
    assert!(
        status == Some(0) && second_detail.starts_with(&format!("tsa: rfc3161 ({at})")),
        "{status:?} {second_detail}"
    );
}

#[test]
fn verify_compares_a_thread_bundle_with_its_anchors() {
    let (env, _moto) = locked();
    env.handoff(["bundle", "research", "--output", "../earlier.bundle"]).success();
    let report = env.handoff(["verify", "--bundle", "../earlier.bundle"]).success();
    insta::assert_snapshot!(find_row(&report, "anchor"), @"✓ anchor     vault: s3 (external-immutable); local (detect)");
    save(&env, "research", "more");
    env.handoff(["anchor", "push"]).success();
    // A copy may lag.
    let verify_answer = env.handoff(["verify", "--bundle", "../earlier.bundle"]).success();
    insta::assert_snapshot!(find_row(&verify_answer, "anchor"), @"✓ anchor     vault: s3 (external-immutable); local (detect); refs/handoff/logs/SHA256%3ADEO2ec9dfhoj9ux7LrEW9Oh9Uw08%2BF4hxRh44DkcNSg knows of 3 entries; vault knows of 3 entries");
}
