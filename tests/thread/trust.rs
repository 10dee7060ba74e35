//! Whose states are gone on from: at every hop back, and before any byte leaves a thread.

use serde_json::Value;

use super::{adopt_in, ends, json, repository, save, strange_key, text, traces};
use crate::common::Environment;
use crate::common::report::{find_line, find_row, masked, verdict};

/// A stranger's thread `t` in `repo`, and a clone in `other` that does not know the key.
fn strange() -> Environment {
    let env = repository();
    let key = strange_key(&env);
    env.git(["config", "handoff.signingKey", &key]).success();
    save(&env, "t", b"draft", &[]);
    save(&env, "t", b"the state", &[]);
    env.git_in("", ["clone", "--quiet", "--no-local", "repo", "other"]).success();
    env
}

/// The fingerprint of the stranger's key.
fn stranger(env: &Environment) -> String {
    let verified = json(&env.handoff(["--json", "thread", "verify", "t"]).success());
    text(&verified["signers"][0]["fingerprint"]).to_owned()
}

/// Configures in a repository that only our own key is known.
fn knows_only_us(env: &Environment, dir: &str) {
    let line = env.handoff_in(dir, ["key", "--principal", "ada@example.com"]).success();
    env.write("home/signers", &line);
    let path = env.path().join("home/signers");
    env.git_in(dir, ["config", "handoff.signers", path.to_str().expect("plain names")]).success();
}

fn revokes(env: &Environment, dir: &str, key: &str) {
    env.write("home/revoked", key);
    let path = env.path().join("home/revoked");
    env.git_in(dir, ["config", "handoff.revoked", path.to_str().expect("plain names")]).success();
}

/// Asserts that a command is refused for a reason, with nothing printed and nothing changed.
#[track_caller]
fn refused(env: &Environment, dir: &str, args: &[&str], code: &str) {
    let before = traces(env, dir);
    let output = env.handoff_in(dir, ["--json"].iter().chain(args)).exit(1);
    assert_eq!((json(&output.stderr)["code"].as_str(), output.raw.len()), (Some(code), 0), "{args:?} {output}");
    assert_eq!(traces(env, dir), before);
}

/// A stranger's thread that `middle`, whose key everybody knows, adopted as unknown; returns what
/// `middle` offers.
fn laundered(env: &Environment) -> Value {
    env.git_in("", ["clone", "--quiet", "--no-local", "repo", "middle"]).success();
    let descriptor = json(&env.handoff(["offer", "t"]).success());
    adopt_in(env, "middle", &descriptor, &["--as", "m", "--accept-unknown-signer"]).success();
    json(&env.handoff_in("middle", ["offer", "m"]).success())
}

#[test]
fn an_unknown_key_stays_unknown_one_adoption_further_on() {
    let env = strange();
    let offered = laundered(&env);
    env.write("descriptor.json", &offered.to_string());
    refused(&env, "other", &["adopt", "../descriptor.json", "--as", "x", "--from", "../middle"], "unknown-signer");
    let more = ["--as", "x", "--from", "../middle", "--accept-unknown-signer"];
    let adopted = json(&adopt_in(&env, "other", &offered, &more).success());
    assert_eq!(adopted["accepted_unknown_signer"], true);
    let threads = |answer: &Value| -> Vec<String> {
        let lineage = answer["lineage"].as_array().expect("a list").iter();
        lineage.map(|ancestor| text(&ancestor["thread_id"]).to_owned()).collect()
    };
    assert_eq!(threads(&adopted), ["m", "t"]);
    let entry = json(env.git_in("other", ["log", "-1", "--format=%b", "refs/handoff/threads/x"]).success().trim());
    assert_eq!(entry["adopted"]["acceptedUnknown"], true);
    let verified = json(&env.handoff_in("other", ["--json", "thread", "verify", "x"]).exit(0).stdout);
    assert_eq!(
        (&verified["accepted_unknown_signer"], threads(&verified)),
        (&true.into(), vec!["m".into(), "t".into()])
    );
    assert_eq!(verified["checks"]["lineage"]["ok"], "n/a");
    assert_eq!(verified["lineage"][1]["signer"]["fingerprint"], stranger(&env));
    assert_eq!(verified["lineage"][1]["signer"]["trusted"], false);
    let accepted = "an unknown key was accepted with it";
    let report = env.handoff_in("other", ["thread", "verify", "x"]).success();
    let lineage = find_row(&report, "lineage");
    let way = "goes back to 2 threads, an unknown key was accepted on the way";
    assert_eq!(lineage, format!("─ lineage    {way}, key {} not known to you", stranger(&env)));
    let stdout = env.handoff_in("other", ["thread", "show", "x"]).success();
    let from = find_line(&stdout, "adopted from ");
    assert!(from.starts_with("adopted from  m:0-") && from.ends_with(&format!("; {accepted}")), "{stdout}");
    let by = format!(", by {}; {accepted}", stranger(&env));
    assert!(
        stdout.lines().any(|line| line.starts_with("goes back to  adopted from t:1-") && line.ends_with(&by)),
        "{stdout}"
    );
    // A verifier that knows only our key reports it; one that knows the stranger too does not.
    let line = env.handoff_in("other", ["key", "--principal", "ada@example.com"]).success();
    env.write("signers", &line);
    let verify = ["--json", "thread", "verify", "x", "--require-trusted", "--signers", "../signers"];
    let strict_report = env.handoff_in("other", verify).exit(3);
    assert_eq!(json(&strict_report.stdout)["failure"], "lineage");
    assert_eq!(verdict(&env.handoff_in("other", &verify[1..]).exit(3).stdout), "✗ UNTRUSTED  clock pinned");
    let known = line + &env.handoff(["key", "--principal", "eve@example.com"]).success();
    env.write("signers", &known);
    env.handoff_in("other", verify).success();
    for (principal, code) in [("ada@example.com", 0), ("eve@example.com", 3)] {
        env.handoff_in("other", verify.iter().chain(&["--signer", principal])).ends(code);
    }
    env.write("revoked", &stranger(&env));
    let revoked = ["--json", "thread", "verify", "x", "--revoked", "../revoked"];
    assert_eq!(json(&env.handoff_in("other", revoked).exit(3).stdout)["failure"], "lineage");
}

#[test]
fn a_revoked_key_is_revoked_however_far_back() {
    let env = strange();
    let offered = laundered(&env);
    env.write("descriptor.json", &offered.to_string());
    revokes(&env, "other", &stranger(&env));
    let adopt = ["adopt", "../descriptor.json", "--as", "x", "--from", "../middle", "--accept-unknown-signer"];
    refused(&env, "other", &adopt, "distrusted");
}

#[test]
fn no_byte_of_an_untrusted_thread_is_handed_out_unless_a_person_insists() {
    let env = strange();
    env.handoff_in("other", ["fetch"]).success();
    let plain = env.handoff_in("other", ["thread", "cat", "origin/t"]).exit(0);
    assert!(plain.raw == b"the state", "{plain}");
    insta::assert_snapshot!(plain.stderr, @"warning: the thread t rests on a key that is not known here: SHA256:isH6DG48ZqdRjaioUoUR4aEx0BegtZVO1402cZS/zvc; to make a key known, add the line that `git handoff key` prints for its owner to the file of handoff.signers");
    env.handoff_in("other", ["fork", "origin/t", "--as", "x"]).success();
    save_in_other(&env);
    knows_only_us(&env, "other");
    let commands: [&[&str]; 6] = [
        &["thread", "cat", "origin/t"],
        &["thread", "diff", "origin/t"],
        &["fork", "origin/t", "--as", "y"],
        &["resume", "x"],
        &["thread", "cat", "x"],
        &["thread", "diff", "x"],
    ];
    for command in commands {
        refused(&env, "other", command, "untrusted");
    }
    let checkpoint =
        json(env.handoff_in("other", ["--json", "thread", "log", "x"]).success().lines().last().expect("two"));
    let back = format!("x:{}", text(&checkpoint["checkpoint_id"]));
    refused(&env, "other", &["rollback", &back], "untrusted");
    for command in commands {
        let output = env.handoff_in("other", command.iter().chain(&["--accept-untrusted"])).exit(0);
        let warning = masked(output.stderr.trim_end());
        let signer = "entry 0: the key SHA256:… is not known to the signers (and 1 more)";
        let accepted = |thread: &str| format!("warning: the thread {thread} is not to be trusted, and was accepted: ");
        let is_source =
            warning.starts_with(&format!("{}lineage: the source t:1-", accepted("x"))) && warning.ends_with(signer);
        assert!(is_source || warning == format!("{}signature: {signer}", accepted("t")), "{output}");
    }
    env.handoff_in("other", ["rollback", &back, "--accept-untrusted"]).success();
    // A revoked key, even if known.
    env.git_in("other", ["config", "--unset", "handoff.signers"]).success();
    env.handoff_in("other", ["thread", "cat", "origin/t"]).success();
    revokes(&env, "other", &stranger(&env));
    refused(&env, "other", &["thread", "cat", "origin/t"], "untrusted");
}

fn save_in_other(env: &Environment) {
    env.write("other/state", "more");
    env.handoff_in("other", ["checkpoint", "x", "--state", "state"]).success();
}

#[test]
fn a_tampered_thread_is_refused_in_spite_of_every_flag() {
    let env = repository();
    let first = save(&env, "t", b"1", &[]);
    let second = save(&env, "t", b"2", &[]);
    let clean = env.git(["rev-parse", "refs/handoff/threads/t"]).success();
    let back = format!("t:{}", text(&first["checkpoint_id"]));
    let commands: [&[&str]; 5] = [
        &["thread", "cat", "t"],
        &["thread", "diff", "t"],
        &["fork", "t", "--as", "y"],
        &["resume", "t"],
        &["rollback", &back],
    ];
    let all_refused = |code: &str| {
        for command in commands {
            refused(&env, "repo", command, code);
            refused(&env, "repo", &[command, &["--accept-untrusted"]].concat(), code);
        }
    };
    env.git(["update-ref", "refs/handoff/threads/t", text(&first["commit"])]).success();
    all_refused("unsound");
    env.git(["update-ref", "refs/handoff/threads/t", clean.trim()]).success();
    // Damaged bytes, also of a checkpoint that was not requested.
    let blob = text(&first["blob_id"]);
    crate::common::loosen(&env.repo());
    let file = env.path().join(format!("repo/.git/objects/{}/{}", &blob[..2], &blob[2..]));
    std::fs::remove_file(file).expect("it is loose");
    all_refused("unsound");
    refused(&env, "repo", &["offer", "t"], "unsound");
    assert_ne!(second["commit"], Value::Null);
}

#[test]
fn a_source_that_contradicts_a_log_that_was_fetched_is_refused() {
    let env = repository();
    save(&env, "t", b"first", &[]);
    save(&env, "t", b"second", &[]);
    env.git_in("", ["clone", "--quiet", "--no-local", "repo", "other"]).success();
    env.handoff_in("other", ["fetch"]).success();
    // The key rewrites the thread and its log.
    let refs =
        "git for-each-ref --format='delete %(refname)' refs/handoff/threads refs/handoff/logs | git update-ref --stdin";
    env.shell("repo", refs).success();
    for again in [b"first, anew".as_slice(), b"second, anew", b"third"] {
        save(&env, "t", again, &[]);
        env.write("descriptor.json", &env.handoff(["offer", "t"]).success());
        for from in ["../repo", "origin"] {
            refused(&env, "other", &["adopt", "../descriptor.json", "--as", "x", "--from", from], "unsound");
        }
    }
}

#[test]
fn a_thread_that_lost_its_end_at_its_remote_is_refused() {
    let env = repository();
    let first = save(&env, "t", b"first", &[]);
    save(&env, "t", b"second", &[]);
    env.git_in("", ["clone", "--quiet", "--no-local", "repo", "other"]).success();
    env.handoff_in("other", ["fetch"]).success();
    let offer = env.handoff(["offer", &format!("t:{}", text(&first["checkpoint_id"]))]).success();
    env.write("descriptor.json", &offer);
    env.git(["update-ref", "refs/handoff/threads/t", text(&first["commit"])]).success();
    refused(&env, "other", &["adopt", "../descriptor.json", "--as", "x", "--from", "origin"], "unsound");
    // A copy that is merely older, elsewhere, is none that lost anything.
    env.git(["bundle", "create", "--quiet", "../older", "refs/handoff/threads/t"]).success();
    env.handoff_in("other", ["adopt", "../descriptor.json", "--as", "x", "--from", "../older"]).success();
}

#[test]
fn a_run_that_does_not_verify_is_not_tied() {
    let env = Environment::example("handoff-dag");
    env.handoff(["submit", "plan.json"]).success();
    let run = "handoff-dag-1";
    save(&env, "t", b"state", &["--run", run]);
    // The same entries, unsigned.
    let script = "commit=$(git cat-file commit refs/handoff/runs/handoff-dag-1 | sed '/^gpgsig/,/END SSH SIGNATURE/d' \
            | git hash-object -w -t commit --stdin)
        git update-ref refs/handoff/runs/handoff-dag-1 $commit";
    env.shell("repo", script).success();
    refused(&env, "repo", &["checkpoint", "u", "--state", "plan.json", "--run", run], "unsound-run");
    ends(&env, 3, &["thread", "verify", "t"]);
}

#[test]
fn ambiguous_thread_name_is_rejected() {
    let env = repository();
    save(&env, "t", b"1", &[]);
    env.git_in("", ["clone", "--quiet", "--no-local", "repo", "other"]).success();
    env.git_in("other", ["remote", "add", "second", "../repo"]).success();
    env.handoff_in("other", ["fetch", "origin"]).success();
    env.handoff_in("other", ["thread", "cat", "t"]).success();
    env.handoff_in("other", ["fetch", "second"]).success();
    // The same for both, but they may diverge later.
    refused(&env, "other", &["thread", "cat", "t"], "ambiguous");
    save(&env, "t", b"2", &[]);
    env.handoff_in("other", ["fetch", "second"]).success();
    refused(&env, "other", &["thread", "cat", "t"], "ambiguous");
    refused(&env, "other", &["fork", "t", "--as", "x"], "ambiguous");
    assert_eq!(env.handoff_in("other", ["thread", "cat", "origin/t"]).exit(0).raw, b"1");
    assert_eq!(env.handoff_in("other", ["thread", "cat", "second/t"]).exit(0).raw, b"2");
}

#[test]
fn foreign_lines_in_a_signers_file_are_skipped_and_reported() {
    let env = repository();
    save(&env, "t", b"x", &[]);
    let key = env.handoff(["key"]).success();
    let own = key.rsplit_once("ssh-ed25519").unwrap().1.trim();
    env.write(
        "home/signers",
        &format!("*@corp.example cert-authority ssh-ed25519 {own}\nold@x ssh-dss AAAAB3NzaC1kc3M=\n{key}"),
    );
    env.git(["config", "handoff.signers", &env.path().join("home/signers").display().to_string()]).success();
    let verified = env.handoff(["thread", "verify", "t"]).exit(0);
    assert_eq!(
        verified.stderr,
        "warning: $TEST/home/signers: line 1 names a `cert-authority`; certificates are not supported, name the keys themselves; it is skipped\n\
         warning: $TEST/home/signers: line 2 names a key of type ssh-dss, which signs no entries; it is skipped\n"
    );
    // Alone, they name no key.
    env.write("home/signers", &format!("*@corp.example cert-authority ssh-ed25519 {own}\n"));
    assert!(env.handoff(["thread", "verify", "t"]).exit(3).stdout.contains("UNTRUSTED"));
}
