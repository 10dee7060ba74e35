//! A packet that is attached to a checkpoint is checked before the checkpoint changes hands or is
//! gone on from.

use serde_json::{Value, json as value};

use super::{adopt_in, ends, json, packet, repository, save, text, traces};
use crate::common::Environment;
use crate::common::report::find_line;

/// A sender in `repo` with a packet attached to the only checkpoint of `t`, and a clone of it in
/// `other`.
fn with_packet(fields: &Value) -> Environment {
    let env = repository();
    packet(&env, fields);
    // One that others wrote, or that was saved before such were refused, may have a credential in
    // it.
    env.git(["config", "handoff.secrets.allow", "github-pat"]).success();
    save(&env, "t", b"the state", &["--packet", "packet.json"]);
    env.git_in("", ["clone", "--quiet", "--no-local", "repo", "other"]).success();
    env
}

/// Asserts that a command ends with the report of a packet, and changed nothing.
#[track_caller]
fn stopped(env: &Environment, dir: &str, args: &[&str], code: i32) -> Value {
    let state = |environment: &Environment| {
        let objects = environment.git_in(dir, ["count-objects", "-v"]).success();
        (traces(environment, "repo"), traces(environment, "other"), objects)
    };
    let before = state(env);
    let output = env.handoff_in(dir, args).exit(code);
    assert_eq!(output.stdout, "");
    assert!(output.stderr.starts_with("Check Summary:\n"), "{output}");
    let (begin, class) = find_line(&output.stderr, "hint: ").rsplit_once(' ').expect("a class");
    let go_on = "to go on all the same, which is recorded: --accept";
    let confirm = "confirm the state first, as the first recovery step says; ";
    assert!(["", confirm].iter().any(|first| begin == format!("hint: {first}{go_on}")), "{output}");
    assert!(find_line(&output.stderr, "error: ").ends_with(&format!(" is {class}")), "{output}");
    let failure = json(&env.handoff_in(dir, ["--json"].iter().chain(args)).exit(code).stderr);
    assert_eq!((&failure["code"], &failure["check"]["schema"]), (&"packet".into(), &"git-handoff.check/1".into()));
    assert_eq!(state(env), before);
    failure
}

/// Returns the latest entry of a thread.
fn entry(env: &Environment, dir: &str, thread: &str) -> Value {
    json(env.git_in(dir, ["log", "-1", "--format=%b", &format!("refs/handoff/threads/{thread}")]).success().trim())
}

#[test]
fn a_clean_packet_lets_everything_pass_once() {
    let env = with_packet(&value!({}));
    let descriptor = json(&env.handoff(["offer", "t", "--accept", "critical"]).success());
    assert_eq!(descriptor["accepted_packet"], Value::Null);
    let adopted = json(&adopt_in(&env, "other", &descriptor, &["--as", "u"]).success());
    assert_eq!(adopted["packet"], "clean");
    assert_eq!(entry(&env, "other", "u")["adopted"]["acceptedPacket"], Value::Null);
    assert_eq!(env.handoff_in("other", ["resume", "u"]).exit(0).raw, b"the state");
    let resumed = entry(&env, "other", "u");
    assert_eq!((&resumed["resumeToken"], &resumed["acceptedPacket"]), (&"handoff-t-20260604".into(), &Value::Null));
    // The token is used, so a second resumption needs an option.
    let failure = stopped(&env, "other", &["resume", "u"], 3);
    insta::assert_snapshot!(text(&failure["check"]["checks"]["resume_token"]["detail"]), @"handoff-t-20260604 is already consumed (the thread was resumed with it) — fails continuity ID check");
    assert_eq!(failure["check"]["recovery"][0].as_str().map(|step| step.contains("handoff-t-20260604")), Some(false));
    stopped(&env, "other", &["offer", "u"], 3);
    env.handoff_in("other", ["resume", "u", "--accept", "operational"]).success();
    assert_eq!(entry(&env, "other", "u")["acceptedPacket"], "operational");
    env.handoff_in("other", ["thread", "verify", "u"]).success();
    // In the thread that it came from, it is not.
    env.handoff(["resume", "t"]).success();
}

#[test]
fn an_offer_is_worth_nothing_once_its_token_is_used_at_the_source() {
    let env = with_packet(&value!({}));
    let descriptor = env.handoff(["offer", "t"]).success();
    env.write("descriptor.json", &descriptor);
    env.handoff(["resume", "t"]).success();
    stopped(&env, "other", &["adopt", "../descriptor.json", "--as", "u"], 3);
}

#[test]
fn an_unclean_packet_stops_adoption_unless_it_is_accepted() {
    let operational = value!({"updated_at": "2026-06-01T00:00:00Z", "next_action": "continue"});
    for (fields, class, code) in [(operational, "operational", 3), (value!(null), "critical", 4)] {
        let env = with_packet(&fields);
        stopped(&env, "repo", &["offer", "t"], code);
        stopped(&env, "repo", &["resume", "t"], code);
        if class == "critical" {
            stopped(&env, "repo", &["offer", "t", "--accept", "operational"], 4);
        }
        let descriptor = json(&env.handoff(["offer", "t", "--accept", class]).success());
        assert_eq!(descriptor["accepted_packet"], class);
        env.write("descriptor.json", &descriptor.to_string());
        // The sender's acceptance does not bind the receiver.
        stopped(&env, "other", &["adopt", "../descriptor.json", "--as", "u"], code);
        let adopted = json(&adopt_in(&env, "other", &descriptor, &["--as", "u", "--accept", "critical"]).success());
        assert_eq!(adopted["packet"], class);
        assert_eq!(entry(&env, "other", "u")["adopted"]["acceptedPacket"], class);
        env.handoff_in("other", ["resume", "u", "--accept", "critical"]).success();
        assert_eq!(entry(&env, "other", "u")["acceptedPacket"], class);
        env.handoff_in("other", ["thread", "verify", "u"]).success();
        ends(&env, 2, &["offer", "t", "--accept", "clean"]);
    }
}

#[test]
fn credentials_are_never_stored() {
    let env = with_packet(&value!({"resume_token": "ghp_0123456789abcdefghijABCDEFGHIJ012345"}));
    let failure = stopped(&env, "repo", &["resume", "t"], 3);
    assert!(!failure.to_string().contains("ghp_"), "{failure}");
    env.handoff(["resume", "t", "--accept", "operational"]).success();
    assert_eq!(entry(&env, "repo", "t")["resumeToken"], Value::Null);
}

#[test]
fn packet_facts_are_checked_against_the_repository() {
    // A run that is not here says nothing; a commit that is not here does.
    let env = with_packet(&value!({"run": "elsewhere", "items": ["a"]}));
    let descriptor = json(&env.handoff(["offer", "t"]).success());
    adopt_in(&env, "other", &descriptor, &["--as", "u"]).success();
    let report = env.handoff(["check", "t"]).exit(0).stdout;
    insta::assert_snapshot!(find_line(&report, "─ Facts: "), @r#"─ Facts: n/a (the run "elsewhere" is not here, so nothing was checked of it)"#);
    // In a file, the same text refers to a run of the reader.
    ends(&env, 3, &["check", "packet.json"]);
    env.git(["commit", "--quiet", "--allow-empty", "--message", "Not pushed"]).success();
    let head = env.git(["rev-parse", "HEAD"]).success();
    packet(&env, &value!({"commits": [head.trim()], "resume_token": "handoff-second"}));
    save(&env, "t", b"next", &["--packet", "packet.json"]);
    env.write("descriptor.json", &env.handoff(["offer", "t"]).success());
    let failure = stopped(&env, "other", &["adopt", "../descriptor.json", "--as", "v"], 3);
    insta::assert_snapshot!(text(&failure["check"]["checks"]["facts"]["detail"]), @"commit 116443801cb35f8514cad9da28d46c3c197fed46 is not in this repository");
}

#[test]
fn a_thread_is_checked_by_its_name() {
    let env = with_packet(&value!({}));
    ends(&env, 0, &["check", "t"]);
    let first = json(&env.handoff(["--json", "thread", "log", "t"]).success());
    let first = format!("t:{}", text(&first["checkpoint_id"]));
    packet(&env, &value!({"next_action": "continue"}));
    save(&env, "t", b"next", &["--packet", "packet.json"]);
    ends(&env, 3, &["check", "t"]);
    ends(&env, 0, &["check", &first]);
    ends(&env, 4, &["check", "t:0-0123456789ab"]);
    save(&env, "t", b"last", &[]);
    let none = env.handoff(["check", "t"]).exit(4).stdout;
    insta::assert_snapshot!(find_line(&none, "❌ Schema: "), @"❌ Schema: there is no packet: none is attached to the checkpoint");
    // A thread that was fetched, from anywhere; and a file that is named like it.
    env.handoff_in("other", ["fetch"]).success();
    env.handoff_in("other", ["check", &format!("origin/{first}")]).success();
    env.write("repo/t", "no packet");
    let file = env.handoff(["check", "./t"]).exit(4).stdout;
    insta::assert_snapshot!(find_line(&file, "❌ Schema: "), @"❌ Schema: the packet says nothing to resume from: objective is missing; completed is missing; unresolved is missing; assumptions is missing; next_action is missing; risks is missing; updated_at is missing; resume_token is missing");
    // One that does not verify is nothing to resume from.
    env.shell("repo", "git update-ref refs/handoff/threads/broken HEAD").success();
    let broken = env.handoff(["check", "broken"]).exit(4).stdout;
    insta::assert_snapshot!(find_line(&broken, "❌ Schema: "), @"❌ Schema: there is no packet: thread broken does not verify: chain: commit 6722a99: the commit is not an entry: the message is not a subject and an entry");
}
