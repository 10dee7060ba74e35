//! An adoption gets exactly the offered bytes, or nothing.

use std::path::Path;
use std::process::Stdio;

use git_handoff::ledger::sign::Signer;
use git_handoff::model::format;
use serde_json::{Value, json as value};

use super::{adopt_in, ends, json, repository, save, strange_key, text, traces, with_input};
use crate::common::report::find_row;
use crate::common::{Environment, Output, program_path};

/// A sender in `repo` with a thread of two checkpoints, and a clone of it in `other` that has no
/// object of the thread.
fn two_repositories() -> Environment {
    let env = repository();
    save(&env, "run-42", b"draft", &[]);
    save(&env, "run-42", b"the state", &["--summary", "researcher gathered 3 sources"]);
    env.git_in("", ["clone", "--quiet", "--no-local", "repo", "other"]).success();
    env
}

/// Offers the latest checkpoint; returns the descriptor.
fn offer(env: &Environment, more: &[&str]) -> Value {
    json(&env.handoff(["offer", "run-42"].iter().chain(more)).success())
}

/// Adopts in the clone.
fn adopt(env: &Environment, descriptor: &Value, more: &[&str]) -> Output {
    adopt_in(env, "other", descriptor, &[&["--as", "run-42-writer"], more].concat())
}

/// Asserts that an adoption is refused, with nothing written.
#[track_caller]
fn refused(env: &Environment, descriptor: &Value, more: &[&str], code: &str) {
    let before = (traces(env, "repo"), traces(env, "other"), objects(env));
    let output = adopt(env, descriptor, &[&["--json"], more].concat()).exit(1);
    assert_eq!(json(&output.stderr)["code"], code, "{output}");
    assert_eq!((traces(env, "repo"), traces(env, "other"), objects(env)), before);
}

fn objects(env: &Environment) -> String {
    env.git_in("other", ["count-objects", "-v"]).success()
}

/// Signs a descriptor again with a key.
fn signed_by(key: &Path, mut descriptor: Value) -> Value {
    descriptor.as_object_mut().expect("it is an object").remove("signature");
    let signer = Signer::from_file(key).expect("the key is there");
    let signature = signer.sign(&format::canonical(&descriptor)).expect("the key signs");
    descriptor["signature"] = signature.into();
    descriptor
}

/// Changes one field, and signs it all again with the sender's own key: only the thread differs.
fn forged(env: &Environment, descriptor: &Value, field: &str, to: Value) -> Value {
    let mut descriptor = descriptor.clone();
    descriptor[field] = to;
    signed_by(&env.path().join("home/signing_key"), descriptor)
}

#[test]
fn an_offer_has_the_fields_that_others_know() {
    let env = two_repositories();
    let descriptor = offer(&env, &["--to", "writer"]);
    assert_eq!(descriptor["thread_id"], "run-42");
    assert_eq!(descriptor["source"], format!("run-42:{}", text(&descriptor["checkpoint_id"])));
    assert_eq!(descriptor["to_agent"], "writer");
    assert_eq!(descriptor["summary"], "researcher gathered 3 sources");
    assert_eq!(text(&descriptor["blob_sha256"]).len(), 64);
    assert_eq!(env.git(["cat-file", "blob", text(&descriptor["blob_id"])]).exit(0).raw, b"the state");
    assert_eq!(json(&env.handoff(["handoff_checkpoint", "run-42"]).success())["to_agent"], Value::Null);
    assert_ne!(offer(&env, &[])["nonce"], offer(&env, &[])["nonce"]);
}

#[test]
fn an_adopted_checkpoint_is_the_one_that_was_offered() {
    let env = two_repositories();
    let descriptor = offer(&env, &[]);
    let adopted = json(&adopt(&env, &descriptor, &[]).success());
    assert_eq!(adopted["adopted_from"], descriptor["source"]);
    assert_eq!(adopted["new_thread_id"], "run-42-writer");
    assert_eq!(adopted["blob_id"], descriptor["blob_id"]);
    assert_eq!(adopted["verified"], true);
    assert_eq!(env.handoff_in("other", ["thread", "cat", "run-42-writer"]).exit(0).raw, b"the state");
    let entry =
        json(env.git_in("other", ["log", "-1", "--format=%b", "refs/handoff/threads/run-42-writer"]).success().trim());
    let from = &entry["adopted"];
    assert_eq!((&from["thread"], &from["commit"]), (&descriptor["thread_id"], &descriptor["commit"]));
    assert_eq!(from["sha256"], format!("sha256:{}", text(&descriptor["blob_sha256"])));
    assert_eq!(
        from["descriptor"],
        git_handoff::model::digest::Digest::compute(&format::canonical(&descriptor)).to_string()
    );
    let verified = env.handoff_in("other", ["thread", "verify", "run-42-writer"]).exit(0);
    insta::assert_snapshot!(find_row(&verified.stdout, "lineage"), @"✓ lineage    goes back to 1 thread");
    // Nothing but the new thread and its log entry came into being, and git finds no fault with
    // what came in.
    let refs = env.git_in("other", ["for-each-ref", "--format=%(refname)", "refs/handoff"]).success();
    assert_eq!(refs.lines().filter(|name| !name.starts_with("refs/handoff/logs/")).count(), 1, "{refs}");
    assert_eq!(env.git_in("other", ["fsck", "--strict"]).exit(0).stderr, "");
    // The new thread can be continued, offered and adopted in turn.
    let next = with_input(&env, "other", &["checkpoint", "run-42-writer", "--state", "-"], b"more");
    assert!(next.status.success());
    let back = json(&env.handoff_in("other", ["offer", "run-42-writer"]).success());
    env.write("back.json", &back.to_string());
    env.handoff(["adopt_checkpoint", "../back.json", "--as", "back", "--from", "../other"]).success();
    let report = env.handoff(["thread", "verify", "back"]).exit(0);
    insta::assert_snapshot!(find_row(&report.stdout, "lineage"), @"✓ lineage    goes back to 2 threads");
}

#[test]
fn an_earlier_checkpoint_can_be_offered() {
    let env = two_repositories();
    let log = env.handoff(["--json", "thread", "log", "run-42"]).success();
    let first = json(log.lines().last().expect("there are two"));
    let name = format!("run-42:{}", text(&first["checkpoint_id"]));
    let descriptor = json(&env.handoff(["offer", &name]).success());
    adopt(&env, &descriptor, &[]).success();
    assert_eq!(env.handoff_in("other", ["resume", "run-42-writer"]).exit(0).raw, b"draft");
}

#[test]
fn adoption_works_from_here_from_a_path_and_from_a_bundle() {
    let env = two_repositories();
    env.git(["bundle", "create", "--quiet", "../thread.bundle", "refs/handoff/threads/run-42"]).success();
    adopt(&env, &offer(&env, &[]), &["--from", "../thread.bundle"]).success();
    let new = |dir: &str, name: &str, from: &[&str]| {
        env.write("descriptor.json", &offer(&env, &[]).to_string());
        env.handoff_in(dir, ["adopt", "../descriptor.json", "--as", name].iter().chain(from)).success();
    };
    new("other", "by-path", &["--from", "../repo"]);
    new("other", "by-remote", &["--from", "origin"]);
    new("repo", "here", &[]);
    env.git_in("other", ["fetch", "--quiet", "origin", "refs/handoff/*:refs/handoff/remotes/origin/*"]).success();
    env.git_in("other", ["remote", "set-url", "origin", "/nonexistent"]).success();
    new("other", "fetched-before", &[]);
    // With what was fetched.
    let verified = env.handoff_in("other", ["thread", "verify", "--all"]).exit(0);
    assert_eq!(verified.stdout.matches("✓ INTACT").count(), 6);
}

#[test]
fn an_offer_is_worth_one_adoption_in_a_repository() {
    let env = two_repositories();
    let descriptor = offer(&env, &[]);
    adopt(&env, &descriptor, &[]).success();
    env.write("descriptor.json", &descriptor.to_string());
    let before = traces(&env, "other");
    let again = env.handoff_in("other", ["--json", "adopt", "../descriptor.json", "--as", "again"]).exit(1);
    assert_eq!(json(&again.stderr)["code"], "used");
    assert_eq!(traces(&env, "other"), before);
    // Spelt differently it is still the same offer, and another repository has its own nonces.
    env.write("descriptor.json", &serde_json::to_string_pretty(&descriptor).expect("it is written"));
    let refused_again = env.handoff_in("other", ["--json", "adopt", "../descriptor.json", "--as", "again"]).exit(1);
    assert_eq!(json(&refused_again.stderr)["code"], "used");
    env.handoff(["adopt", "../descriptor.json", "--as", "here"]).success();
}

#[test]
fn a_crash_between_nonce_and_thread_settles_itself() {
    let env = two_repositories();
    let descriptor = offer(&env, &[]);
    adopt(&env, &descriptor, &[]).success();
    // As if the process had died after the thread was made and before the nonce was noted as used.
    std::fs::remove_dir_all(env.path().join("other/.git/handoff/nonces")).expect("nonces are kept");
    env.write("descriptor.json", &descriptor.to_string());
    let again = env.handoff_in("other", ["--json", "adopt", "../descriptor.json", "--as", "again"]).exit(1);
    assert_eq!(json(&again.stderr)["code"], "used");
    // As if it had died before the thread was made.
    env.git_in("other", ["update-ref", "-d", "refs/handoff/threads/run-42-writer"]).success();
    env.handoff_in("other", ["adopt", "../descriptor.json", "--as", "again"]).success();
    // It is noted, so the offer stays used after the thread is deleted.
    env.git_in("other", ["update-ref", "-d", "refs/handoff/threads/again"]).success();
    let third_adoption = env.handoff_in("other", ["--json", "adopt", "../descriptor.json", "--as", "third"]).exit(1);
    assert_eq!(json(&third_adoption.stderr)["code"], "used");
}

#[test]
fn every_forged_field_is_refused_even_under_the_senders_own_signature() {
    let env = two_repositories();
    let other = save(&env, "other", b"another thread's state", &[]);
    let descriptor = offer(&env, &[]);
    let sha = text(&descriptor["blob_sha256"]);
    let unknown = "0123456789012345678901234567890123456789";
    let wrong = "0".repeat(64);
    let file = env.git(["rev-parse", "HEAD:file"]).success();
    let try_field =
        |field: &str, to: Value, code: &str| refused(&env, &forged(&env, &descriptor, field, to), &[], code);
    for hash in
        [Value::Null, sha[..63].into(), sha.to_uppercase().into(), "".into(), format!("sha256:{sha}").into(), value!(7)]
    {
        try_field("blob_sha256", hash, "bad-descriptor");
    }
    let mut without = descriptor.clone();
    without.as_object_mut().expect("it is an object").remove("blob_sha256");
    refused(&env, &signed_by(&env.path().join("home/signing_key"), without), &[], "bad-descriptor");
    try_field("blob_sha256", wrong.clone().into(), "forged");
    try_field("blob_id", unknown.into(), "forged");
    try_field("blob_id", file.trim().into(), "forged");
    try_field("blob_id", other["blob_id"].clone(), "forged");
    try_field("source", "run-42:0-0123456789ab".into(), "bad-descriptor");
    try_field("thread_id", "other".into(), "bad-descriptor");
    try_field("checkpoint_id", "0-0123456789ab".into(), "bad-descriptor");
    try_field("ref", "refs/heads/main".into(), "bad-descriptor");
    try_field("ref", "refs/handoff/threads/*".into(), "bad-descriptor");
    try_field("commit", other["commit"].clone(), "forged");
    try_field("commit", unknown.into(), "forged");
    try_field("entry", format!("sha256:{wrong}").into(), "forged");
    try_field("summary", "something else".into(), "forged");
    try_field("object_format", "sha256".into(), "object-format");
    try_field("nonce", "short".into(), "bad-descriptor");
    try_field("expires", "tomorrow".into(), "bad-descriptor");
    // All names of another checkpoint, consistently: its thread is read, and does not have it.
    let mut consistent = descriptor.clone();
    consistent["thread_id"] = "other".into();
    consistent["ref"] = "refs/handoff/threads/other".into();
    consistent["source"] = format!("other:{}", text(&descriptor["checkpoint_id"])).into();
    let consistent = signed_by(&env.path().join("home/signing_key"), consistent);
    refused(&env, &consistent, &[], "not-there");
    save(&env, "other", b"and its next", &[]);
    refused(&env, &consistent, &[], "forged");
    adopt(&env, &descriptor, &[]).success();
}

#[test]
fn whatever_is_changed_without_the_key_breaks_the_signature() {
    let env = two_repositories();
    let descriptor = offer(&env, &["--to", "writer"]);
    for (field, to) in [
        ("blob_sha256", value!("0".repeat(64))),
        ("to_agent", Value::Null),
        ("summary", value!("x")),
        ("expires", value!("2099-01-01T00:00:00.000Z")),
        ("nonce", value!("another-nonce-than-before")),
        ("extra", value!(1)),
    ] {
        let mut changed = descriptor.clone();
        changed[field] = to;
        refused(&env, &changed, &["--me", "writer"], "bad-signature");
    }
    let mut missing = descriptor.clone();
    missing.as_object_mut().expect("it is an object").remove("signature");
    refused(&env, &missing, &["--me", "writer"], "bad-descriptor");
}

#[test]
fn adopt_rejects_invalid_descriptors() {
    let env = two_repositories();
    let descriptor = offer(&env, &[]).to_string();
    let twice = descriptor.replacen('{', "{\"blob_id\":\"x\",", 1);
    let huge = format!("{{\"summary\":\"{}\"}}", "x".repeat(10 << 20));
    let deep = "[".repeat(50_000);
    for bad in ["", "not json", "[]", "{}", "null", "\u{feff}{}", &twice, &huge, &deep] {
        let before = traces(&env, "other");
        let output = with_input(&env, "other", &["--json", "adopt", "-", "--as", "new"], bad.as_bytes());
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(json(&String::from_utf8_lossy(&output.stderr))["code"], "bad-descriptor");
        assert_eq!(traces(&env, "other"), before);
    }
}

#[test]
fn a_descriptor_without_a_field_is_none() {
    let env = two_repositories();
    let descriptor = offer(&env, &[]);
    let key = env.path().join("home/signing_key");
    assert_eq!((&descriptor["to_agent"], descriptor["summary"].is_string()), (&Value::Null, true));
    for field in descriptor.as_object().expect("it is an object").keys().filter(|field| *field != "signature") {
        let mut without = descriptor.clone();
        without.as_object_mut().expect("it is an object").remove(field);
        refused(&env, &signed_by(&key, without), &[], "bad-descriptor");
        refused(&env, &forged(&env, &descriptor, field, value!([])), &[], "bad-descriptor");
    }
    for (field, to) in [("accepted_packet", Value::Null), ("accepted_packet", value!("clean")), ("to_agent", value!(7))]
    {
        refused(&env, &forged(&env, &descriptor, field, to), &[], "bad-descriptor");
    }
    adopt(&env, &descriptor, &[]).success();
}

#[test]
fn a_signature_as_ssh_keygen_writes_it_is_accepted() {
    let env = two_repositories();
    let mut descriptor = offer(&env, &[]);
    descriptor.as_object_mut().expect("it is an object").remove("signature");
    env.write("payload", &String::from_utf8(format::canonical(&descriptor)).expect("it is text"));
    env.shell("", "chmod 600 home/signing_key && ssh-keygen -q -Y sign -n git -f home/signing_key payload").success();
    let armour = std::fs::read_to_string(env.path().join("payload.sig")).expect("it is written");
    assert!(armour.ends_with('\n'));
    for bad in [format!("{armour}\n"), armour.replace('\n', "\r\n"), armour.replacen('\n', "", 1)] {
        descriptor["signature"] = bad.into();
        refused(&env, &descriptor, &[], "bad-signature");
    }
    descriptor["signature"] = armour.into();
    adopt(&env, &descriptor, &[]).success();
}

#[test]
fn adopt_reports_an_unpushed_checkpoint() {
    let env = repository();
    env.git_in("", ["init", "--quiet", "--bare", "hub"]).success();
    env.git(["remote", "add", "origin", "../hub"]).success();
    env.git(["push", "--quiet", "origin", "main"]).success();
    env.git_in("", ["clone", "--quiet", "hub", "other"]).success();
    save(&env, "run-42", b"draft", &[]);
    let offered = env.handoff(["offer", "run-42"]).exit(0);
    insta::assert_snapshot!(offered.stderr, @r#"
    warning: run-42 is not on "origin" yet, so it cannot be adopted from there
    hint: git handoff push origin run-42
    "#);
    let none = adopt(&env, &json(&offered.stdout), &["--json"]).exit(1);
    insta::assert_snapshot!(none.stderr, @r#"{"causes":[],"code":"source","hint":"ask the sender for: git handoff push REMOTE THREAD","message":"\"origin\" has no refs/handoff/threads/run-42","schema":"git-handoff.error/1"}"#);
    env.handoff(["push", "origin", "run-42"]).success();
    save(&env, "run-42", b"the state", &[]);
    let offered_later = env.handoff(["offer", "run-42"]).exit(0);
    insta::assert_snapshot!(offered_later.stderr, @r#"
    warning: run-42 is not on "origin" yet, so it cannot be adopted from there
    hint: git handoff push origin run-42
    "#);
    let descriptor = json(&offered_later.stdout);
    refused(&env, &descriptor, &[], "not-there");
    env.handoff(["push", "origin", "run-42"]).success();
    assert_eq!(env.handoff(["offer", "run-42"]).exit(0).stderr, "");
    adopt(&env, &descriptor, &[]).success();
    // An earlier one is there, and whether one is cannot always be said.
    env.git(["remote", "set-url", "origin", "/nonexistent"]).success();
    let offered_last = env.handoff(["offer", "run-42"]).exit(0);
    insta::assert_snapshot!(offered_last.stderr, @r#"
    warning: "origin" could not be asked whether it holds run-42
    hint: git handoff push origin run-42
    "#);
}

#[test]
fn an_offer_is_for_its_receiver_alone() {
    let env = two_repositories();
    let descriptor = offer(&env, &["--to", "writer"]);
    refused(&env, &descriptor, &[], "wrong-recipient");
    refused(&env, &descriptor, &["--me", "reader"], "wrong-recipient");
    adopt(&env, &descriptor, &["--me", "writer"]).success();
    let entry = env.git_in("other", ["log", "-1", "--format=%b", "refs/handoff/threads/run-42-writer"]).success();
    assert_eq!(json(entry.trim())["adopted"]["toAgent"], "writer");
}

#[test]
fn an_offer_expires() {
    let env = two_repositories();
    // The tests' clock goes on by a second with every command.
    let descriptor = offer(&env, &["--expires", "1s"]);
    env.git(["status"]).success();
    refused(&env, &descriptor, &[], "expired");
    for bad in
        ["", "48", "h", "-1h", "99999d", "1w", "0s", "0d", "+1h", "-0s", "18446744073709551616s", "18446744073709552s"]
    {
        ends(&env, 2, &["offer", "run-42", "--expires", bad]);
    }
}

#[test]
fn an_unknown_key_is_refused_unless_that_is_accepted() {
    let env = two_repositories();
    let strange = strange_key(&env);
    env.git(["config", "handoff.signingKey", &strange]).success();
    save(&env, "strange", b"x", &[]);
    let descriptor = json(&env.handoff(["offer", "strange"]).success());
    refused(&env, &descriptor, &[], "unknown-signer");
    let line = env.handoff(["key", "--principal", "ada@example.com"]).success();
    // With a file of signers that knows only others, too.
    env.write("signers", "");
    refused(&env, &descriptor, &["--signers", "../signers"], "unknown-signer");
    let adopted = json(&adopt(&env, &descriptor, &["--accept-unknown-signer"]).success());
    assert_eq!(adopted["accepted_unknown_signer"], true);
    let entry = env.git_in("other", ["log", "-1", "--format=%b", "refs/handoff/threads/run-42-writer"]).success();
    assert_eq!(json(entry.trim())["adopted"]["acceptedUnknown"], true);
    let offer_descriptor = json(&env.handoff(["offer", "strange"]).success());
    env.write("descriptor.json", &offer_descriptor.to_string());
    env.write("signers", &line);
    let known = ["adopt", "../descriptor.json", "--as", "known", "--signers", "../signers"];
    let second_adopted = json(&env.handoff_in("other", known).success());
    assert_eq!(second_adopted["accepted_unknown_signer"], false);
    // A key outside its validity is refused whatever else is accepted.
    let outside = line.replacen("namespaces=", "valid-before=\"20200101\",namespaces=", 1);
    assert_ne!(outside, line);
    env.write("signers", &outside);
    let second_descriptor = json(&env.handoff(["offer", "strange"]).success());
    env.git_in("other", ["update-ref", "-d", "refs/handoff/threads/known"]).success();
    let before = traces(&env, "other");
    env.write("descriptor.json", &second_descriptor.to_string());
    let late =
        ["--json", "adopt", "../descriptor.json", "--as", "late", "--signers", "../signers", "--accept-unknown-signer"];
    assert_eq!(json(&env.handoff_in("other", late).exit(1).stderr)["code"], "distrusted");
    assert_eq!(traces(&env, "other"), before);
}

#[test]
fn only_the_owner_of_a_thread_can_offer_it() {
    let env = two_repositories();
    let descriptor = offer(&env, &[]);
    let strange = strange_key(&env);
    let stolen = signed_by(Path::new(&strange), descriptor);
    refused(&env, &stolen, &[], "unknown-signer");
    refused(&env, &stolen, &["--accept-unknown-signer"], "distrusted");
    env.git(["config", "handoff.signingKey", &strange]).success();
    ends(&env, 1, &["offer", "run-42"]);
}

#[test]
fn a_source_that_cannot_be_reached_or_trusted_is_refused() {
    let env = two_repositories();
    let descriptor = offer(&env, &[]);
    let pwned = env.path().join("pwned");
    let ext = format!("ext::sh -c touch% {}", pwned.display());
    let upload = format!("--upload-pack=touch {}", pwned.display());
    for from in ["/nonexistent", "https://127.0.0.1:1/x.git", "-x", "", "::x", "fd::7", &ext, &upload] {
        refused(&env, &descriptor, &["--from", from], "source");
    }
    env.git_in("other", ["remote", "set-url", "origin", &ext]).success();
    refused(&env, &descriptor, &[], "source");
    assert!(!pwned.exists());
    env.git_in("other", ["remote", "set-url", "origin", "/nonexistent"]).success();
    refused(&env, &descriptor, &[], "source");
    env.git_in("other", ["remote", "remove", "origin"]).success();
    refused(&env, &descriptor, &[], "no-source");
    env.git_in("", ["init", "--quiet", "--bare", "empty"]).success();
    refused(&env, &descriptor, &["--from", "../empty"], "source");
}

#[test]
fn a_source_is_reached_as_the_settings_say_and_sends_no_more_than_they_allow() {
    let env = two_repositories();
    let descriptor = offer(&env, &[]);
    env.git_in("other", ["config", "handoff.maxFetchSize", "1000"]).success();
    refused(&env, &descriptor, &["--from", "origin"], "source");
    env.git_in("other", ["config", "--unset", "handoff.maxFetchSize"]).success();
    env.write("offer.json", &descriptor.to_string());
    let before = traces(&env, "other");
    let adopt = "git-handoff adopt ../offer.json --as run-42-writer --from origin";
    env.shell("other", &format!("GIT_ALLOW_PROTOCOL=https {adopt}")).ends(1);
    assert_eq!(traces(&env, "other"), before);
    env.shell("other", adopt).ends(0);
}

#[test]
fn altered_bytes_at_the_source_are_refused() {
    let env = two_repositories();
    let descriptor = offer(&env, &[]);
    crate::common::loosen(&env.repo());
    let blob = text(&descriptor["blob_id"]);
    let evil = env.shell("repo", "printf 'The state' | git hash-object -w --stdin").success();
    let path = |oid: &str| env.path().join(format!("repo/.git/objects/{}/{}", &oid[..2], &oid[2..]));
    let honest = std::fs::read(path(blob)).expect("the blob is loose");
    std::fs::remove_file(path(blob)).expect("it is loose");
    refused(&env, &descriptor, &["--from", "../repo"], "source");
    std::fs::copy(path(evil.trim()), path(blob)).expect("it can be written");
    refused(&env, &descriptor, &["--from", "../repo"], "source");
    std::fs::remove_file(path(blob)).expect("it is there");
    std::fs::write(path(blob), honest).expect("it can be written");
    // A tree with other bytes under the same entry.
    let script = format!(
        "tree=$(printf '100644 blob {}\\tstate\\n' | git mktree)
        commit=$(git cat-file commit refs/handoff/threads/run-42 | sed \"1s/.*/tree $tree/\" | git hash-object -w -t commit --stdin)
        git update-ref refs/handoff/threads/run-42 $commit",
        evil.trim()
    );
    env.shell("repo", &script).success();
    refused(&env, &descriptor, &[], "unsound");
}

#[test]
fn adopt_rejects_a_used_name() {
    let env = two_repositories();
    let descriptor = offer(&env, &[]);
    let made = with_input(&env, "other", &["checkpoint", "run-42-writer", "--state", "-"], b"mine");
    assert!(made.status.success());
    refused(&env, &descriptor, &[], "thread-exists");
    assert_eq!(env.handoff_in("other", ["thread", "cat", "run-42-writer"]).exit(0).raw, b"mine");
}

#[test]
fn of_two_adopters_one_wins() {
    let env = two_repositories();
    for round in 0..4 {
        let same_name = round % 2 == 0;
        let shared = offer(&env, &[]);
        let mut children = Vec::new();
        for n in 0..3 {
            let descriptor = if same_name { offer(&env, &[]) } else { shared.clone() };
            let name = if same_name { format!("race-{round}") } else { format!("race-{round}-{n}") };
            env.write(&format!("race-{n}.json"), &descriptor.to_string());
            let mut command = env.command(program_path(), "other");
            command.args(["adopt", &format!("../race-{n}.json"), "--as", &name, "--json"]);
            let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
            children.push((command, child));
        }
        let ended = children.into_iter().map(|(command, child)| {
            let output = child.wait_with_output().expect("it ends");
            crate::common::answers::hold(&command, &output);
            output
        });
        let ended: Vec<_> = ended.collect();
        let won = ended.iter().filter(|output| output.status.success()).count();
        assert_eq!(won, 1, "{ended:?}");
        assert!(ended.iter().all(|output| matches!(output.status.code(), Some(0 | 1))), "{ended:?}");
    }
    env.handoff_in("other", ["thread", "verify", "--all"]).success();
}
