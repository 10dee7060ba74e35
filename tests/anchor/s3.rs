//! The anchor `s3`: a bucket that locks what is put there.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::answers::{Answer, serve};
use super::moto::Moto;
use super::{RUN, forge, json, know, refs, row, sealed, verify};
use crate::common::report::find_line;
use crate::common::{Environment, answers, assert_output};

/// A secret that must never be shown.
const SECRET: &str = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY";

/// A sealed run, and the rights to a bucket.
fn with_rights() -> Environment {
    let env = sealed();
    let text = format!("[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = {SECRET}\n");
    env.write("home/.aws/credentials", &text);
    env
}

fn add(env: &Environment, url: &str) {
    env.handoff(["anchor", "add", "lock", "s3", "evidence", "--endpoint", url]).success();
}

/// A sealed run that a bucket holds.
fn locked() -> (Environment, Moto) {
    let (env, moto) = (with_rights(), Moto::start());
    moto.bucket("evidence");
    add(&env, &moto.url());
    env.handoff(["anchor", "push"]).success();
    (env, moto)
}

#[test]
fn from_adding_it_to_the_strongest_claim() {
    let (env, moto) = (with_rights(), Moto::start());
    moto.bucket("evidence");
    moto.send("PUT", "/plain", &[], "");
    let loose = "error: the bucket has no Object Lock, so its writers could change the objects";
    let none = "error: S3 answers NoSuchBucket (status 404): The specified bucket does not exist";
    for (bucket, why) in [("plain", loose), ("nowhere", none)] {
        let output = env.handoff(["anchor", "add", "lock", "s3", bucket, "--endpoint", &moto.url()]).exit(1);
        assert_eq!(find_line(&output.stderr, "error: "), why);
    }
    add(&env, &moto.url());
    assert_eq!(row(&verify(&env, &[], 3)), "lock: it holds nothing of the run");
    assert_output!(env.handoff(["anchor", "push"]), @"lock  new  run  handoff-dag-1");
    know(&env);
    assert_output!("anchor_s3_verify", env.handoff(["verify", RUN]));
    let _ = env.handoff(["verify", "--require", "tamper-evident", RUN]).success();
    let again = json(&env.handoff(["anchor", "push", "--json"]).exit(0));
    assert_eq!(again["published"][0]["status"], "up-to-date");
    // The object has the documented form, and cannot be deleted.
    let path = moto.only_object("evidence");
    assert!(path.ends_with(&format!("/{RUN}.json")), "{path}");
    let object: Value = serde_json::from_str(&moto.send("GET", &path, &[], "")).unwrap();
    assert_eq!(object["schema"], "git-handoff.anchored/1");
    answers::hold_answer(&object);
    assert_eq!(object["root"], verify(&env, &[], 0)["root"]);
    let report = verify(&env, &[], 0);
    assert_eq!((&report["guarantee"], &report["claim"]), (&"external-immutable".into(), &"tamper-evident".into()));
    assert!(report["anchors"][1]["since"].is_string(), "{report}");
    // The configuration can say less of it, never more.
    env.git(["config", "handoff.anchor.lock.guarantee", "detect"]).success();
    assert_eq!(verify(&env, &[], 0)["guarantee"], "detect");
}

#[test]
fn verify_ignores_later_object_versions() {
    let (env, moto) = locked();
    let path = moto.only_object("evidence");
    let stored = moto.send("GET", &path, &[], "");
    forge(&env);
    let before = refs(&env);
    let pushed = env.handoff(["anchor", "push"]).exit(3);
    insta::assert_snapshot!(pushed.stderr, @"
    error: lock: it holds the root 686de33f of run handoff-dag-1, ours is 85e4cc93; what it holds was there first
    hint: git handoff anchor check handoff-dag-1
    ");
    assert_eq!((refs(&env), moto.send("GET", &path, &[], "")), (before, stored.clone()));
    // A writer of the bucket covers the true root with the forged one and a delete marker.
    let forged = verify(&env, &["--anchor", "local"], 0)["root"].as_str().unwrap().to_owned();
    let true_root = serde_json::from_str::<Value>(&stored).unwrap()["root"].as_str().unwrap().to_owned();
    moto.send("PUT", &path, &[("x-amz-object-lock-mode", "COMPLIANCE"), UNTIL], &stored.replace(&true_root, &forged));
    moto.send("DELETE", &path, &[], "");
    let report = verify(&env, &[], 3);
    assert_eq!((&report["failure"], &report["anchors"][1]["standing"]), (&"root".into(), &"differs".into()));
    assert!(row(&report).starts_with("lock: it holds the root "), "{report}");
}

const UNTIL: (&str, &str) = ("x-amz-object-lock-retain-until-date", "2036-01-01T00:00:00Z");

#[test]
fn later_versions_are_reported_and_harmless() {
    let (env, moto) = locked();
    let path = moto.only_object("evidence");
    moto.send("PUT", &path, &[], "something else");
    moto.send("DELETE", &path, &[], "");
    let report = verify(&env, &[], 0);
    let expected =
        "lock: s3 (external-immutable); lock: 2 versions or delete markers were put over it later, which do not count";
    assert_eq!(row(&report), expected);
}

#[test]
fn a_retention_that_can_be_lifted_or_has_ended_is_worth_less() {
    let (env, moto) = locked();
    let path = moto.only_object("evidence");
    let object = moto.send("GET", &path, &[], "");
    let ended = ("x-amz-object-lock-retain-until-date", "2026-05-01T00:00:00Z");
    let cases: [(&[(&str, &str)], &str); 3] = [
        (&[("x-amz-object-lock-mode", "GOVERNANCE"), UNTIL], "its retention mode is GOVERNANCE, which can be lifted"),
        (&[("x-amz-object-lock-mode", "COMPLIANCE"), ended], "its retention ended at 2026-05-01T00:00:00.000Z"),
        (&[], "it is under no retention"),
    ];
    for (at, (headers, why)) in cases.into_iter().enumerate() {
        let bucket = format!("other-{at}");
        moto.bucket(&bucket);
        moto.send("PUT", &path.replace("/evidence/", &format!("/{bucket}/")), headers, &object);
        env.git(["config", "handoff.anchor.lock.bucket", &bucket]).success();
        let report = verify(&env, &[], 0);
        assert_eq!((&report["guarantee"], &report["claim"]), (&"external".into(), &"tamper-detecting".into()));
        assert_eq!(row(&report), format!("lock: s3 (external); lock: {why}"));
    }
}

#[test]
fn push_refuses_a_run_that_does_not_verify() {
    let (env, moto) = (with_rights(), Moto::start());
    moto.bucket("evidence");
    add(&env, &moto.url());
    let tree = env.git(["rev-parse", "refs/handoff/runs/handoff-dag-1^{tree}"]).success();
    let evil = env.git(["commit-tree", tree.trim(), "-p", "refs/handoff/runs/handoff-dag-1", "-m", "evil"]).success();
    env.git(["update-ref", "refs/handoff/runs/handoff-dag-1", evil.trim()]).success();
    insta::assert_snapshot!(env.handoff(["anchor", "push"]).exit(3).stderr, @"
    error: lock: run handoff-dag-1 does not verify: chain: commit 8bbe0a5: the commit is not an entry: the message is not a subject and an entry
    hint: git handoff verify handoff-dag-1
    ");
    assert!(!moto.send("GET", "/evidence?versions", &[], "").contains("<Version>"));
}

/// Answers a request with what is not so.
type Lie = Box<dyn Fn(&str) -> Answer + Send + Sync>;

#[test]
fn an_answer_that_is_none_is_never_a_pass() {
    let env = with_rights();
    let versions = "<ListVersionsResult><IsTruncated>false</IsTruncated></ListVersionsResult>";
    let (url, _) = serve(move |request, _| {
        let forbidden = Answer { status: "403 Forbidden", headers: String::new(), body: Vec::new() };
        if request.contains("object-lock") { forbidden } else { Answer::ok(versions) }
    });
    add(&env, &url);
    let endless = "<ListVersionsResult><IsTruncated>true</IsTruncated><NextKeyMarker>a</NextKeyMarker>\
                   <NextVersionIdMarker>b</NextVersionIdMarker></ListVersionsResult>";
    let prefix_in = |request: &str| request.split("prefix=").nth(1).unwrap().split('&').next().unwrap().to_owned();
    let listing = move |request: &str| {
        let key = prefix_in(request).replace("%2F", "/").replace("%21", "!");
        format!(
            "<ListVersionsResult><IsTruncated>false</IsTruncated><Version><Key>{key}</Key><VersionId>1</VersionId>\
             <LastModified>2026-06-01T00:00:00.000Z</LastModified></Version></ListVersionsResult>"
        )
    };
    let object = |text: &'static str| -> Lie {
        Box::new(
            move |request| if request.contains("versions=") { Answer::ok(listing(request)) } else { Answer::ok(text) },
        )
    };
    let status = |status: &'static str, headers: &'static str, body: &'static str| -> Lie {
        Box::new(move |_| Answer { status, headers: headers.to_owned(), body: body.into() })
    };
    let other_run = r#"{"commit":"0000000000000000000000000000000000000000","entries":1,"fingerprint":"SHA256:x","root":"sha256:7af1bd921527be925e9b5a75533b3b952313930de686d873ec8709cb50ad3bd5","run":"other","schema":"git-handoff.anchored/1","seal":"sha256:7af1bd921527be925e9b5a75533b3b952313930de686d873ec8709cb50ad3bd5"}"#;
    let lies: [(&str, Lie); 8] = [
        ("the answer is longer than 4194304 bytes", Box::new(|_| Answer::ok(vec![b'x'; 5 << 20]))),
        ("the answer is not one of S3's: <html>a page", Box::new(|_| Answer::ok("<html>a page"))),
        ("the answer is not one of S3's: it is not text", Box::new(|_| Answer::ok(vec![0xff, 0xfe]))),
        ("there are more than 20000 versions of one object", Box::new(move |_| Answer::ok(endless))),
        (
            "the answer is a redirect (status 301), which is not followed",
            status("301 Moved", "Location: http://127.0.0.1:1/\r\n", ""),
        ),
        (
            "S3 answers AccessDenied (status 403): no",
            status("403 No", "", "<Error><Code>AccessDenied</Code><Message>no</Message></Error>"),
        ),
        ("what it holds in the place of the run is not what we write", object("{}")),
        ("what it holds in the place of the run is about run other of the key SHA256:x", object(other_run)),
    ];
    for (why, lie) in lies {
        let (second_url, requests) = serve(move |request, _| lie(request));
        env.git(["config", "handoff.anchor.lock.endpoint", &second_url]).success();
        let output = env.handoff(["verify", "--json", RUN]).exit(3);
        let report = json(&output);
        assert_eq!(report["failure"], "anchor-missing");
        assert_eq!(row(&report), format!("lock: {why}"));
        assert!(!format!("{output}").contains(SECRET) && !format!("{output}").contains("X-Amz-Signature"), "{output}");
        assert!(requests.lock().unwrap().iter().all(|(request, _)| !request.contains(SECRET)));
    }
}

#[test]
fn a_place_that_is_down_or_silent_is_given_up() {
    let env = with_rights();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    for (key, value) in [("type", "s3"), ("bucket", "evidence"), ("timeout", "1"), ("endpoint", &url)] {
        env.git(["config", &format!("handoff.anchor.lock.{key}"), value]).success();
    }
    let start = Instant::now();
    assert_eq!(row(&verify(&env, &[], 3)), "lock: there was no answer after 1 seconds");
    // Only the first of many runs waits.
    for id in ["second", "third"] {
        let plan =
            format!(r#"{{"id":"{id}","items":[{{"id":"a","executor":"command","inputs":{{"command":"true"}}}}]}}"#);
        env.write("repo/more.json", &plan);
        env.handoff(["run", "more.json"]).success();
    }
    let attempts = || {
        silent.set_nonblocking(true).unwrap();
        std::iter::from_fn(|| silent.accept().ok()).count()
    };
    let before = attempts();
    env.handoff(["verify", "--all"]).ends(3);
    assert_eq!((before, attempts()), (1, 1));
    drop(silent);
    let refused = "lock: it could not be reached: Failed to connect to 127.0.0.1 port ";
    assert!(row(&verify(&env, &[], 3)).starts_with(refused));
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    // Explicitly configured credentials must exist.
    env.git(["config", "handoff.anchor.lock.profile", "nobody"]).success();
    insta::assert_snapshot!(row(&verify(&env, &[], 3)), @"lock: $TEST/home/.aws/credentials has no access key and secret in its section [nobody]");
}

#[test]
fn an_endpoint_whose_answers_could_be_changed_on_the_way_is_refused() {
    let env = sealed();
    for url in ["http://minio.example.com:9000", "http://localhost.example.com", "ftp://localhost", "http://[::1]x"] {
        let output = env.handoff(["anchor", "add", "lock", "s3", "evidence", "--endpoint", url]).exit(1);
        assert_eq!(
            output.stderr,
            "error: the setting `handoff.anchor.lock.endpoint` is neither an https:// URL nor one of this machine: answers could be changed on the way\nhint: git config --show-origin --get-all handoff.anchor.lock.endpoint\n"
        );
    }
}

#[test]
fn verify_misses_anchored_runs_when_run_and_log_are_gone() {
    let (env, _moto) = locked();
    for reference in env.git(["for-each-ref", "--format=%(refname)", "refs/handoff"]).success().lines() {
        env.git(["update-ref", "-d", reference]).success();
    }
    for command in [&["verify", "--all"][..], &["anchor", "check"]] {
        let output = env.handoff(command).exit(3);
        let gone = format!("error: the ref refs/handoff/runs/{RUN} is gone, but the anchor lock holds the run\n");
        assert_eq!(output.stderr, gone);
    }
    // To another key it is nothing that is missed.
    env.git(["config", "handoff.signingKey", ""]).success();
    insta::assert_snapshot!(env.handoff(["verify", "--all"]).exit(3).stderr, @"
    error: there are no runs here
    hint: git handoff runs
    ");
}
