//! The anchor `rfc3161`: a time-stamping authority.

use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::answers::{Answer, serve};
use super::tsa::Authority;
use super::{RUN, forge, json, refs, sealed, verify};
use crate::common::Environment;
use crate::common::report::{find_line, find_row};

const P256: &[&str] = &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
const STAMPS: &str = "refs/handoff/stamps/handoff-dag-1";

fn authority(env: &Environment) -> Authority {
    Authority::new(&env.path().join("tsa"), P256)
}

fn add(env: &Environment, authority: &Authority, url: &str) {
    env.handoff(["anchor", "add", "tsa", "rfc3161", url, "--ca", &authority.ca()]).success();
}

/// A sealed run with a time stamp.
fn stamped() -> (Environment, Authority) {
    let env = sealed();
    let authority = authority(&env);
    add(&env, &authority, &authority.serve(|reply| reply));
    env.handoff(["anchor", "push"]).success();
    (env, authority)
}

/// Returns what the report says of the time: a moment, or why there is none.
fn time(report: &Value) -> &str {
    let time = &report["times"][0];
    time["at"].as_str().or(time["detail"].as_str()).unwrap()
}

fn is_moment(text: &str) -> bool {
    text.parse::<git_handoff::model::time::Moment>().is_ok()
}

#[test]
fn time_stamp_appears_and_changes_no_claim() {
    let env = sealed();
    let authority = authority(&env);
    add(&env, &authority, &authority.serve(|reply| reply));
    let before = verify(&env, &[], 0);
    assert_eq!(time(&before), "no time stamp is at hand");
    let pushed = env.handoff(["anchor", "push"]).success();
    assert_eq!(pushed, "tsa  new  time stamp  handoff-dag-1\n");
    let after = verify(&env, &[], 0);
    assert!(is_moment(time(&after)), "{after}");
    for same in ["claim", "guarantee", "checks", "failure"] {
        assert_eq!(before[same], after[same]);
    }
    let text = env.handoff(["verify", RUN]).success();
    assert_eq!(find_row(&text, "time"), format!("✓ time       sealed by {}, says tsa", time(&after)));
    insta::assert_snapshot!(env.handoff(["anchor", "push"]).success(), @"tsa  up-to-date  time stamp  handoff-dag-1");
    let checked = env.handoff(["anchor", "check"]).success();
    let expected = format!("handoff-dag-1  tsa    time    holds  sealed by {}", time(&after));
    assert_eq!(find_line(&checked, "handoff-dag-1  tsa "), expected);
    let url = env.git(["config", "handoff.anchor.tsa.url"]).success();
    let listed = env.handoff(["anchor", "list"]).success();
    assert_eq!(find_line(&listed, "tsa "), format!("tsa    rfc3161  time    {}", url.trim()));
}

#[test]
fn stock_openssl_accepts_stored_tokens() {
    let (env, authority) = stamped();
    let name = env.git(["ls-tree", "--name-only", STAMPS]).success();
    let token = env.git(["cat-file", "blob", &format!("{STAMPS}:{}", name.trim())]).raw;
    let path = env.path().join("kept.tst");
    std::fs::write(&path, token).unwrap();
    let root = verify(&env, &[], 0)["root"].as_str().unwrap().strip_prefix("sha256:").unwrap().to_owned();
    let of = ["ts", "-verify", "-digest", &root, "-token_in", "-in", path.to_str().unwrap(), "-CAfile", "ca.pem"];
    authority.openssl(&of);
}

#[test]
fn authorities_sign_with_what_is_in_use() {
    for (kind, key) in [
        ("rsa", &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"][..]),
        ("p384", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"]),
    ] {
        let env = sealed();
        let authority = Authority::new(&env.path().join(kind), key);
        add(&env, &authority, &authority.serve(|reply| reply));
        env.handoff(["anchor", "push"]).success();
        assert!(is_moment(time(&verify(&env, &[], 0))), "{kind}");
    }
}

/// Makes something else of an answer.
type Bend = Box<dyn Fn(Vec<u8>) -> Vec<u8> + Send + Sync>;

#[test]
fn push_rejects_a_token_that_proves_nothing() {
    let env = sealed();
    let authority = authority(&env);
    add(&env, &authority, &authority.serve(|reply| reply));
    let before = refs(&env);
    let old = {
        authority.openssl(&["ts", "-query", "-digest", &"ab".repeat(32), "-sha256", "-cert", "-out", "old"]);
        authority.reply(&std::fs::read(env.path().join("tsa/old")).unwrap())
    };
    let other = Authority::new(&env.path().join("other"), P256);
    let lies: [(&str, Bend); 5] = [
        ("the time stamp is over something else than the root", Box::new(move |_| old.clone())),
        ("the answer is no time stamp: <html>", Box::new(|_| b"<html>".to_vec())),
        (
            "the answer is no time stamp: it is 400 bytes of no type that is said",
            Box::new(|mut reply| {
                reply.truncate(400);
                reply
            }),
        ),
        ("the answer is longer than 262144 bytes", Box::new(|_| vec![0; 300 << 10])),
        (
            "the signature of the time stamp does not match",
            Box::new(|mut reply| {
                *reply.last_mut().unwrap() ^= 1;
                reply
            }),
        ),
    ];
    for (why, lie) in lies {
        env.git(["config", "handoff.anchor.tsa.url", &authority.serve(lie)]).success();
        let output = env.handoff(["anchor", "push"]).exit(1);
        assert_eq!(output.stderr, format!("error: tsa: {why}\n"));
        assert_eq!(refs(&env), before);
    }
    // An answer to another request about the same root, and one of an untrusted authority.
    let heard = Arc::new(Mutex::new(Vec::new()));
    let answers = ["the answer is no time stamp: it is empty", "its time stamp answers another request"];
    for (round, why) in (1..).zip(answers) {
        let heard = heard.clone();
        let url = authority.serve(move |reply| {
            let mut heard = heard.lock().unwrap();
            if round == 1 { std::mem::replace(&mut *heard, reply) } else { heard.clone() }
        });
        env.git(["config", "handoff.anchor.tsa.url", &url]).success();
        let output = env.handoff(["anchor", "push"]).exit(1);
        assert_eq!(output.stderr, format!("error: tsa: {why}\n"));
    }
    env.git(["config", "handoff.anchor.tsa.url", &other.serve(|reply| reply)]).success();
    insta::assert_snapshot!(env.handoff(["anchor", "push"]).exit(1).stderr, @"error: tsa: the certificate of its signer is not vouched for: InvalidSignatureForPublicKey");
    let (url, _) = serve(|_, _| Answer { status: "302 Found", headers: "Location: /x\r\n".into(), body: Vec::new() });
    env.git(["config", "handoff.anchor.tsa.url", &url]).success();
    insta::assert_snapshot!(env.handoff(["anchor", "push"]).exit(1).stderr, @"error: tsa: the answer is a redirect (status 302), which is not followed");
    assert_eq!(refs(&env), before);
}

/// Puts tokens beside the run, as any writer of the repository can.
fn plant(env: &Environment, token: &[u8]) {
    std::fs::write(env.path().join("planted"), token).unwrap();
    let blob = env.git(["hash-object", "-w", "../planted"]).success();
    let tree = env.shell("repo", &format!("printf '100644 blob %s\\tx.tst\\n' {} | git mktree", blob.trim())).success();
    env.git(["update-ref", STAMPS, tree.trim()]).success();
}

#[test]
fn a_forged_token_proves_nothing() {
    let (env, authority) = stamped();
    let name = env.git(["ls-tree", "--name-only", STAMPS]).success();
    let honest = env.git(["cat-file", "blob", &format!("{STAMPS}:{}", name.trim())]).raw;
    let year = |info: Vec<u8>| {
        let at = info.windows(2).position(|w| w == [0x18, 0x0f]).unwrap() + 2;
        [&info[..at], b"2020", &info[at + 4..]].concat()
    };
    let use_of_key = "the certificate of its signer is not critically, and only, for time stamps";
    let early = "the certificate of its signer is not vouched for: CertNotValidYet { time: UnixTime(), not_before: \
                 UnixTime() }; a CA certificate of yours was not valid then, or signs none";
    let junk = "the time stamp cannot be read: unexpected ASN. DER tag: expected SEQUENCE, got APPLICATION [] \
                (constructed)";
    let cases = [
        (use_of_key, authority.forge(&honest, "loose", |info| info)),
        (use_of_key, authority.forge(&honest, "more", |info| info)),
        (early, authority.forge(&honest, "stamps", year)),
        (junk, b"junk".to_vec()),
    ];
    for (why, forged) in cases {
        plant(&env, &forged);
        let report = verify(&env, &[], 0);
        // The seconds of the certificate are other ones each time.
        assert_eq!(time(&report).replace(|c: char| c.is_ascii_digit(), ""), why);
        env.handoff(["anchor", "check"]).ends(3);
    }
    // With a new signature of the authority it is valid: the forging alone does not fail above.
    plant(&env, &authority.forge(&honest, "stamps", |info| info));
    assert!(is_moment(time(&verify(&env, &[], 0))));
    // A token is over one root.
    plant(&env, &honest);
    let log = env.git(["for-each-ref", "--format=%(refname)", "refs/handoff/logs"]).success();
    env.git(["update-ref", "-d", log.trim()]).success();
    forge(&env);
    plant(&env, &honest);
    insta::assert_snapshot!(time(&verify(&env, &[], 0)), @"the time stamp is over something else than the root");
}

#[test]
fn ca_file_must_lie_outside_the_work_tree() {
    let (env, authority) = stamped();
    std::fs::copy(authority.ca(), env.repo().join("ca.pem")).unwrap();
    let output = env.handoff(["anchor", "add", "x", "rfc3161", "http://127.0.0.1:1/", "--ca", "ca.pem"]).exit(1);
    insta::assert_snapshot!(output.stderr, @"
    error: `handoff.anchor.x.ca` names $TEST/repo/ca.pem, which lies inside the work tree
    hint: move it out of the work tree, or name it for this once: --signers FILE, --revoked FILE
    ");
    env.write("empty.pem", "");
    let anchor_output =
        env.handoff(["anchor", "add", "x", "rfc3161", "http://127.0.0.1:1/", "--ca", "../empty.pem"]).exit(1);
    insta::assert_snapshot!(anchor_output.stderr, @"error: the file of CA certificates holds none that can be read");
    for (url, why) in [
        ("ftp://host/", "the setting `handoff.anchor.x.url` is no URL of HTTP"),
        ("http://127.0.0.1:1/", "it could not be reached: Failed to connect to 127.0.0.1 port 1: "),
    ] {
        let untrusted_output = env.handoff(["anchor", "add", "x", "rfc3161", url, "--ca", &authority.ca()]).exit(1);
        assert!(
            find_line(&untrusted_output.stderr, "error: ").starts_with(&format!("error: {why}")),
            "{untrusted_output}"
        );
    }
    let ca = env.path().join("moved.pem");
    env.git(["config", "handoff.anchor.tsa.ca", ca.to_str().unwrap()]).success();
    insta::assert_snapshot!(time(&verify(&env, &[], 0)), @"the CA certificates in $TEST/moved.pem could not be read: No such file or directory (os error 2)");
    env.git(["config", "handoff.anchor.tsa.guarantee", "external"]).success();
    insta::assert_snapshot!(env.handoff(["verify", RUN]).exit(1).stderr, @"
    error: the setting `handoff.anchor.tsa.guarantee` says nothing: a time stamp changes no claim
    hint: git config --show-origin --get-all handoff.anchor.tsa.guarantee
    ");
}

#[test]
fn a_run_from_before_its_key_was_revoked_is_rescued_by_the_time_alone() {
    let (env, _) = stamped();
    let key = env.handoff(["key", "--json"]).success();
    let key = serde_json::from_str::<Value>(&key).unwrap()["fingerprint"].as_str().unwrap().to_owned();
    let at = json(&env.handoff(["verify", "--json", RUN]).exit(0))["times"][0]["at"].as_str().unwrap().to_owned();
    let revoked = |since: &str, code: i32| {
        env.write("revoked", &format!("{since}{key}\n"));
        let report = verify(&env, &["--revoked", "../revoked"], code);
        let alone = verify(&env, &["--revoked", "../revoked", "--anchor", "local"], 3);
        assert_eq!(alone["failure"], "signature");
        report
    };
    assert_eq!(revoked("since=2100-01-01T00:00:00Z ", 0)["failure"], Value::Null);
    assert_eq!(revoked(&format!("since={at} "), 3)["failure"], "signature");
    assert_eq!(revoked("", 3)["failure"], "signature");
    env.write("revoked", &format!("since=never {key}\n"));
    env.handoff(["verify", RUN, "--revoked", "../revoked"]).ends(1);
}

#[test]
fn time_stamps_travel_with_their_run_and_foreign_ones_stay() {
    let (env, authority) = stamped();
    env.git_in("", ["init", "--quiet", "--bare", "hub"]).success();
    env.git(["push", "--quiet", "../hub", "main"]).success();
    env.handoff(["push", "../hub", "--all"]).success();
    env.git_in("", ["clone", "--quiet", "--no-local", "--filter=blob:none", "hub", "clone"]).success();
    env.handoff_in("clone", ["fetch"]).success();
    for (key, value) in [("type", "rfc3161"), ("url", "http://127.0.0.1:1/"), ("ca", &authority.ca())] {
        env.git_in("clone", ["config", &format!("handoff.anchor.tsa.{key}"), value]).success();
    }
    let there = json(&env.handoff_in("clone", ["verify", "--json", &format!("origin/{RUN}")]));
    assert!(is_moment(time(&there)), "{there}");
    // In a bundle, too.
    env.handoff(["bundle", RUN, "--output", "run.bundle"]).success();
    assert!(is_moment(time(&json(&env.handoff(["verify", "--bundle", "run.bundle", "--json"])))));
    // The remote has another person's token: it stays, and so does ours.
    let honest = env.git(["rev-parse", STAMPS]).success();
    plant(&env, b"of another");
    env.git(["push", "--quiet", "--force", "../hub", &format!("{STAMPS}:{STAMPS}")]).success();
    env.git(["update-ref", STAMPS, honest.trim()]).success();
    env.handoff(["push", "../hub", "--all"]).success();
    let names = env.git_in("hub", ["ls-tree", "--name-only", STAMPS]).success();
    assert_eq!(names.lines().count(), 2, "{names}");
    let unseen =
        env.shell("hub", "printf '100644 blob %s\\tz.tst\\n' $(echo z | git hash-object -w --stdin) | git mktree");
    env.git_in("hub", ["update-ref", STAMPS, unseen.success().trim()]).success();
    insta::assert_snapshot!(env.handoff(["push", "../hub", "--all"]).success(), @"behind  time stamps  handoff-dag-1  the remote is ahead; fetch it");
    assert_eq!(env.git_in("hub", ["ls-tree", "--name-only", STAMPS]).success(), "z.tst\n");
}

#[test]
fn stamp_accuracy_limits_its_claim() {
    let (env, authority) = stamped();
    let name = env.git(["ls-tree", "--name-only", STAMPS]).success();
    let honest = env.git(["cat-file", "blob", &format!("{STAMPS}:{}", name.trim())]).raw;
    let at = |environment: &Environment| {
        time(&verify(environment, &[], 0)).parse::<git_handoff::model::time::Moment>().unwrap()
    };
    let before = at(&env);
    // The accuracy of a second becomes one of 100.
    let coarse = |info: Vec<u8>| {
        let accuracy = [0x30, 3, 2, 1, 1];
        let place = info.windows(5).rposition(|w| w == accuracy).unwrap();
        [&info[..place + 4], &[100], &info[place + 5..]].concat()
    };
    plant(&env, &authority.forge(&honest, "stamps", coarse));
    assert_eq!(at(&env).millis() - before.millis(), 99_000);
}

#[test]
fn stamp_from_before_the_run_is_contradicted() {
    let env = Environment::example("handoff-dag");
    let at = |clock: &str, arguments: &[&str]| {
        let mut command = env.command("git-handoff", "repo");
        command.args(arguments).env("HANDOFF_CLOCK", clock);
        env.ended(command)
    };
    let ahead = "2040-01-01T00:00:00.000Z";
    at(ahead, &["run", "plan.json"]).success();
    let authority = authority(&env);
    add(&env, &authority, &authority.serve(|reply| reply));
    at(ahead, &["anchor", "push"]).success();
    let but = "and the run dates its first entry 2040-01-01T00:00:00.000Z: one of the two clocks is wrong";
    let report = json(&at(ahead, &["verify", "--json", RUN]).exit(0));
    let stamped = report["times"][0]["at"].as_str().unwrap();
    assert!(is_moment(stamped), "{report}");
    let time_detail = format!("tsa held the seal at {stamped}, {but}");
    assert_eq!(report["times"][0]["detail"], time_detail);
    let verify_answer = at(ahead, &["verify", RUN]).success();
    assert_eq!(find_row(&verify_answer, "anchor"), format!("✓ anchor     local (detect); {time_detail}"));
    let stdout = at(ahead, &["anchor", "check"]).success();
    let row = format!("handoff-dag-1  tsa    time    holds  sealed by {stamped}; {time_detail}");
    assert_eq!(find_line(&stdout, "handoff-dag-1  tsa "), row);
    // To a verifier of our days the run itself is from the future.
    let report_now = env.handoff(["verify", RUN]).success();
    let own = "the run dates its seal 2040-01-01T00:00:00.000Z, and it is 2026-06-04T02:00:10.000Z here: one of the two \
               clocks is wrong";
    let stamp_detail = format!("tsa held the seal at {}, {but}", report["times"][0]["at"].as_str().unwrap());
    assert_eq!(find_row(&report_now, "anchor"), format!("✓ anchor     local (detect); {own}; {stamp_detail}"));
}

#[test]
fn driver_warns_when_its_clock_is_behind_the_run() {
    let env = Environment::example("handoff-dag");
    env.handoff(["submit", "plan.json"]).success();
    let run = |clock: &str, id: &str| {
        let mut command = env.command("git-handoff", "repo");
        command.args(["run", id]).env("HANDOFF_CLOCK", clock);
        env.ended(command).exit(0).stderr
    };
    let stderr = run("2026-06-01T00:00:00.000Z", RUN);
    insta::assert_snapshot!(stderr, @"
    it is 2026-06-01T00:00:00.000Z here, and the run dates its last entry 2026-06-04T02:00:04.000Z: one of the two clocks is wrong, and what follows gets that date
    ▶ edit-a  attempt 1
    ✓ edit-a  done in 0ms, 1 product
    ▶ apply-patch  attempt 1
    ✓ apply-patch  done in 0ms, 2 products: applied the patch and wrote a test
    hint: git handoff apply handoff-dag-1   # as a commit: --commit
    ");
    env.handoff(["submit", "plan.json", "--id", "second"]).success();
    insta::assert_snapshot!(run("2026-06-04T01:30:00.000Z", "second"), @"
    ▶ edit-a  attempt 1
    ✓ edit-a  done in 0ms, 1 product
    ▶ apply-patch  attempt 1
    ✓ apply-patch  done in 0ms, 2 products: applied the patch and wrote a test
    hint: git handoff apply second   # as a commit: --commit
    ");
}

#[test]
fn authority_certificate_needs_the_right_extensions() {
    let plain = "basicConstraints = critical, CA:TRUE\n";
    let cases = [
        ("keyUsage = critical, keyCertSign\n", true),
        ("", true),
        ("keyUsage = critical, keyCertSign\nextendedKeyUsage = timeStamping\n", true),
        ("keyUsage = critical, keyCertSign\nextendedKeyUsage = serverAuth\n", false),
        ("keyUsage = critical, cRLSign\n", false),
    ];
    let env = sealed();
    for (at, (extensions, fine)) in cases.into_iter().enumerate() {
        let authority = Authority::new(&env.path().join(format!("tsa{at}")), P256);
        authority.under(&(plain.to_owned() + extensions));
        let url = authority.serve(|reply| reply);
        let output = env.handoff(["anchor", "add", &format!("tsa{at}"), "rfc3161", &url, "--ca", &authority.ca()]);
        assert_eq!(output.status, Some(i32::from(!fine)), "{extensions}: {output}");
        assert!(
            fine || output.stderr.starts_with("error: the certificate of its signer is not vouched for: "),
            "{output}"
        );
    }
    let (second_env, authority) = stamped();
    authority.end_ca();
    let report = verify(&second_env, &[], 0);
    insta::assert_snapshot!(time(&report), @"the certificate of its signer is not vouched for: UnknownIssuer; a CA certificate of yours was not valid then, or signs none");
}

#[test]
fn garbage_crowds_out_no_stamp() {
    let (env, _) = stamped();
    let honest = env.git(["ls-tree", STAMPS]).success();
    let script = format!(
        "for i in $(seq 200); do echo $i | git hash-object -w --stdin | sed \"s/.*/100644 blob &\\t$(printf %04d $i)/\"; done > ../all; \
         head -c 300000 /dev/zero | git hash-object -w --stdin | sed 's/.*/100644 blob &\\t0/' >> ../all; \
         printf '%s\\n' '{}' >> ../all; git update-ref {STAMPS} $(git mktree < ../all)",
        honest.trim()
    );
    env.shell("repo", &script).success();
    assert!(is_moment(time(&verify(&env, &[], 0))));
}
