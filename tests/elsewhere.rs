//! Products that a run takes from other runs and from threads: sealed with it, shown by what it
//! holds, and followed where more is here.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod copies;
pub(crate) mod forged;

use serde_json::{Value, json};

use crate::common::assert_output;
use crate::common::repo::{TestRepo, item};
use crate::common::report::{find_line, find_row, verdict};

const WRITE: &str = "mkdir outputs; echo spec >outputs/spec.md; echo three >>a.txt";

fn output(path: &str) -> Value {
    json!({ "kind": "output", "path": path })
}

fn of_run(run: &str, from: &str, select: &Value) -> Value {
    json!({ "run": run, "from": from, "select": select })
}

fn of_thread(thread: &str, select: &Value) -> Value {
    json!({ "thread": thread, "select": select })
}

/// An item that copies what it is given.
fn consumer(id: &str, needs: &Value) -> Value {
    let mut item = item(id, "mkdir outputs; cp inputs/* outputs/");
    item["needs"] = needs.clone();
    item
}

/// A repository with the sealed run `design`, and the thread `login` with one checkpoint.
fn designed() -> TestRepo {
    let repo = TestRepo::new();
    repo.drive("design", &[item("write", WRITE)]).ends(0);
    repo.env.write("state.json", r#"{"step":1}"#);
    repo.env.handoff(["checkpoint", "login", "--state", "../state.json"]).success();
    repo
}

/// The needs of the run `build`.
fn build() -> Vec<Value> {
    vec![consumer(
        "make",
        &json!({
            "spec.md": of_run("design", "write", &output("spec.md")),
            "work": of_run("design", "write", &json!({ "kind": "patch" })),
            "state": of_thread("login", &output("state")),
        }),
    )]
}

#[test]
fn products_cross_runs_and_threads_with_what_shows_where_they_come_from() {
    let repo = designed();
    repo.drive("build", &build()).ends(0);
    repo.drive("ship", &[consumer("pack", &json!({ "it": of_run("build", "make", &output("spec.md")) }))]).ends(0);
    assert_eq!(repo.env.handoff(["cat", "ship/pack:outputs/it"]).success(), "spec\n");
    assert_output!("elsewhere_verify", repo.env.handoff(["verify", "ship"]));
    assert_output!("elsewhere_verify_json", repo.env.handoff(["verify", "--json", "ship"]));
    assert_output!("elsewhere_lineage", repo.env.handoff(["lineage", "ship/pack"]));
    assert_output!("elsewhere_lineage_json", repo.env.handoff(["lineage", "--json", "build/make"]));
    assert_output!("elsewhere_show", repo.env.handoff(["show", "build/make"]));
    repo.passes_fsck();
    repo.is_sound();
    // With nothing else at hand it holds all the same, and says how far it could be followed.
    for gone in ["runs/design", "runs/build", "threads/login"] {
        repo.env.git(["update-ref", "-d", &format!("refs/handoff/{gone}")]).success();
    }
    assert_output!("elsewhere_verify_alone", repo.env.handoff(["verify", "ship"]));
    assert_output!("elsewhere_lineage_alone", repo.env.handoff(["lineage", "ship/pack"]));
}

#[test]
fn a_plan_that_was_submitted_is_the_same_when_what_it_takes_is_gone() {
    let repo = designed();
    let file = repo.plan("build", &build());
    repo.env.handoff(["submit", &file]).success();
    repo.env.git(["update-ref", "-d", "refs/handoff/runs/design"]).success();
    repo.env.handoff(["submit", &file]).success();
    repo.env.handoff(["run", &file]).success();
    assert_eq!(repo.env.handoff(["cat", "build/make:outputs/spec.md"]).success(), "spec\n");
}

#[test]
fn a_later_checkpoint_changes_nothing() {
    let repo = designed();
    repo.submit("build", &build());
    repo.env.write("state.json", r#"{"step":2}"#);
    repo.env.handoff(["checkpoint", "login", "--state", "../state.json"]).success();
    repo.env.handoff(["run", "build"]).success();
    assert_eq!(repo.env.handoff(["cat", "build/make:outputs/state"]).success(), r#"{"step":1}"#);
    repo.ends_intact("build");
}

#[test]
fn imports_from_a_fetched_run_check_its_key() {
    let repo = designed();
    repo.env.git_in(".", ["init", "--quiet", "--bare", "hub"]).success();
    repo.env.git(["remote", "add", "origin", "../hub"]).success();
    repo.env.git(["push", "--quiet", "--set-upstream", "origin", "main"]).success();
    repo.env.handoff(["push", "--all"]).success();
    repo.env.git_in(".", ["clone", "--quiet", "hub", "clone"]).success();
    repo.env.git_in("clone", ["config", "handoff.signingKey", ""]).success();
    repo.env.handoff_in("clone", ["fetch"]).success();
    let needs = json!({ "spec.md": of_run("origin/design", "write", &output("spec.md")) });
    let file = repo.plan("theirs", &[consumer("make", &needs)]);
    let submit_output = repo.env.handoff_in("clone", ["submit", &file]).exit(0);
    insta::assert_snapshot!(submit_output.stderr, @"warning: the run origin/design is by a key that is not known here: SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg; to make a key known, add the line that `git handoff key` prints for its owner to the file of handoff.signers");
    repo.env.handoff_in("clone", ["run", "theirs"]).success();
    let report = repo.env.handoff_in("clone", ["verify", "theirs"]).exit(0).stdout;
    assert!(find_row(&report, "signature").ends_with(" not known to you"), "{report}");
    insta::assert_snapshot!(find_line(&report, "✓ taken from run design ("), @"✓ taken from run design (root sha256:142a0af7…): here, intact");
    // A verifier that knows the key reports it; one that has revoked it rejects the source and
    // everything made from it.
    let line = repo.env.handoff(["key"]).success();
    repo.env.write("home/signers", &line);
    let signers = repo.path("home/signers").display().to_string();
    repo.env.git_in("clone", ["config", "gpg.ssh.allowedSignersFile", &signers]).success();
    let verify_answer = repo.env.handoff_in("clone", ["verify", "theirs"]).success();
    assert!(find_row(&verify_answer, "signature").ends_with(" · trusted as ada@example.com"), "{verify_answer}");
    let key = line.split_whitespace().skip_while(|word| *word != "ssh-ed25519").collect::<Vec<_>>().join(" ");
    let fingerprint = git_handoff::ledger::sign::public_fingerprint(&key).unwrap();
    repo.env.write("home/revoked", &format!("{fingerprint}\n"));
    let revoked_report =
        repo.env.handoff_in("clone", ["verify", "theirs", "--revoked", "../home/revoked"]).exit(3).stdout;
    assert_eq!(verdict(&revoked_report), "✗ UNTRUSTED");
    insta::assert_snapshot!(find_row(&revoked_report, "signature"), @"✗ signature  entry 0: @run/origin/design/write:outputs/spec.md: the key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg is revoked (and 1 more)");
    let revoked = repo.path("home/revoked").display().to_string();
    repo.env.git_in("clone", ["config", "handoff.revoked", &revoked]).success();
    let second_file = repo.plan("again", &[consumer("make", &needs)]);
    let revoked_output = repo.env.handoff_in("clone", ["submit", &second_file]).exit(1);
    insta::assert_snapshot!(revoked_output.stdout, @r#"bad-source at items[0].needs["spec.md"].run (item "make", line 1): the run origin/design does not verify: signature: entry 0: the key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg is revoked (and 3 more)"#);
}

#[test]
fn invalid_imports_are_rejected_with_their_position() {
    let repo = designed();
    let red = json!({ "id": "red", "executor": "red" });
    repo.config("handoff.executor.red.command", "mkdir outputs; echo out >outputs/x");
    repo.config("handoff.executor.red.verify", "false");
    repo.config("handoff.executor.red.onVerifyFail", "keep");
    repo.drive("spoilt", &[red, item("bad", "exit 1")]).ends(4);
    repo.env.handoff(["close", "spoilt"]).success();
    repo.submit("open", &[item("write", WRITE)]);
    let id = |stdout: String| serde_json::from_str::<Value>(&stdout).unwrap()["checkpoint_id"].clone();
    repo.env.write("state.json", r#"{"step":2}"#);
    let second = id(repo.env.handoff(["checkpoint", "login", "--state", "../state.json"]).success());
    repo.env.write("state.json", r#"{"step":3}"#);
    repo.env.handoff(["checkpoint", "login", "--state", "../state.json"]).success();
    let back = format!("login:{}", second.as_str().unwrap());
    let rolled = id(repo.env.handoff(["rollback", &back]).success());
    let spec = output("spec.md");
    let wrong = [
        ("no run", of_run("desing", "write", &spec)),
        ("open", of_run("open", "write", &spec)),
        ("no item", of_run("design", "wirte", &spec)),
        ("no product", of_run("design", "write", &output("spec.txt"))),
        ("red", of_run("spoilt", "red", &output("x"))),
        ("not done", of_run("spoilt", "bad", &json!({ "kind": "patch" }))),
        ("a schema", of_run("design", "write", &json!({ "kind": "document", "name": "d", "schema": "d@1" }))),
        ("no name", of_run("../x", "write", &spec)),
        ("no item's name", of_run("design", "@write", &spec)),
        ("written into from", json!({ "from": "@run/design/write", "select": spec })),
        ("both", json!({ "run": "design", "thread": "login", "from": "write", "select": spec })),
        ("no item said", json!({ "run": "design", "select": spec })),
        ("no thread", of_thread("logon", &output("state"))),
        ("no such thing", of_thread("login", &json!({ "kind": "patch" }))),
        ("no packet", of_thread("login", &output("packet.json"))),
        ("no checkpoint's name", json!({ "thread": "login", "from": "first", "select": output("state") })),
        ("no checkpoint", json!({ "thread": "login", "from": "7-0c3b84d1aa07", "select": output("state") })),
    ];
    let mut report = String::new();
    for (what, need) in wrong {
        let file = repo.plan("build", &[consumer("make", &json!({ "it": need }))]);
        let refused = repo.env.handoff(["submit", &file]).exit(1);
        let lines: Vec<&str> = refused.stdout.lines().filter(|line| line.contains(" at ")).collect();
        report += &[what, ": ", &lines.join("\n  "), "\n"].concat();
    }
    assert_output!("elsewhere_refused", report);
    assert!(!repo.refs().contains("runs/build"));
    // A rollback has its content itself.
    let need = json!({ "thread": "login", "from": rolled, "select": output("state") });
    let file = repo.plan("rolled", &[consumer("make", &json!({ "it": need }))]);
    repo.env.handoff(["submit", &file]).success();
    let verified = repo.env.handoff(["verify", "rolled"]).exit(3).stdout;
    assert!(verified.contains("taken from thread login (3-") && verified.contains("): here, intact"), "{verified}");
    // The latest is what it went back to.
    repo.submit("build", &[consumer("make", &json!({ "state": of_thread("login", &output("state")) }))]);
    repo.env.handoff(["run", "build"]).success();
    assert_eq!(repo.env.handoff(["cat", "build/make:outputs/state"]).success(), r#"{"step":2}"#);
}

#[test]
fn import_types_are_checked_across_runs() {
    let repo = TestRepo::new();
    let mut write = item("write", WRITE);
    write["produces"] = json!([{ "kind": "output", "path": "spec.md", "type": "spec" }]);
    repo.drive("design", &[write]).ends(0);
    repo.env.write("home/reader.json", r#"{"consumes":{"spec.md":"prose"}}"#);
    repo.config("handoff.shape.reader.path", &repo.path("home/reader.json").display().to_string());
    let mut make = consumer("make", &json!({ "spec.md": of_run("design", "write", &output("spec.md")) }));
    make["subagentShape"] = json!("reader");
    let file = repo.plan("build", &[make]);
    let validated = repo.env.handoff(["validate", &file]).exit(1);
    let text = format!("{}{}", validated.stdout, validated.stderr);
    insta::assert_snapshot!(text, @r#"
    type-mismatch at items[0].needs["spec.md"] (item "make", line 1): write -> outputs/spec.md: it is spec, and prose is wanted
    1 problem
    "#);
}

#[test]
fn only_the_plan_itself_takes_from_elsewhere() {
    let repo = designed();
    let need = json!({ "it": of_run("design", "write", &output("spec.md")) });
    let rule = json!({ "id": "more", "when": { "items": [{ "items": ["a"], "are": "done" }] },
                       "create": { "executor": "command", "inputs": { "command": "true" }, "needs": need } });
    let plan = json!({ "id": "grown", "openEnded": true, "items": [item("a", "true")], "rules": [rule] });
    repo.env.write("plan.json", &plan.to_string());
    let stdout = repo.env.handoff(["submit", "../plan.json"]).exit(1).stdout;
    insta::assert_snapshot!(stdout, @"unknown-field at rules[0].create.needs.it (line 1): what comes from outside the run is sealed at submit: only an item that stands in the plan has such a need");
    let second_plan = json!({ "id": "open", "openEnded": true, "items": [item("a", "true")] });
    repo.env.write("plan.json", &second_plan.to_string());
    repo.env.handoff(["submit", "../plan.json"]).success();
    repo.env.write("more.json", &json!({ "id": "open", "items": [consumer("b", &need)] }).to_string());
    let extend_stdout = repo.env.handoff(["extend", "open", "../more.json"]).exit(1).stdout;
    insta::assert_snapshot!(extend_stdout, @"unknown-field at items[0].needs.it: what comes from outside the run is sealed at submit: only an item that stands in the plan has such a need");
}

#[test]
fn verify_reports_a_rewritten_import_source() {
    let repo = designed();
    repo.drive("build", &build()).ends(0);
    // The same beginning, another end: its only item is cancelled.
    let tip = repo.tip("design").unwrap();
    let first = repo.env.git(["rev-list", "--max-parents=0", &tip]).success();
    repo.env.git(["update-ref", "refs/handoff/runs/design", first.trim()]).success();
    let report = repo.env.handoff(["verify", "build"]).exit(0).stdout;
    insta::assert_snapshot!(find_line(&report, "─ taken from run design ("), @"─ taken from run design (root sha256:142a0af7…): here, but not to its seal");
    insta::assert_snapshot!(find_line(&report, "─ taken from 2 sources"), @"─ taken from 2 sources in all, at most 1 step back; 1 here and not proven");
    // Another run of that name is another run.
    repo.env.git(["update-ref", "-d", "refs/handoff/runs/design"]).success();
    let verify_answer = repo.env.handoff(["verify", "build"]).exit(0).stdout;
    insta::assert_snapshot!(find_line(&verify_answer, "─ taken from run design ("), @"─ taken from run design (root sha256:142a0af7…): not here; proven by its seal and a proof");
}

#[test]
fn a_secret_does_not_cross() {
    let repo = TestRepo::new();
    repo.drive("design", &[item("write", "mkdir outputs; echo hunter2-and-more >outputs/spec.md")]).ends(0);
    repo.config("handoff.executor.x.command", "true");
    repo.config("handoff.executor.x.secretEnv", "TOKEN");
    let need = json!({ "it": of_run("design", "write", &output("spec.md")) });
    let file = repo.plan("build", &[consumer("make", &need)]);
    let mut command = repo.env.command(crate::common::program_path(), "repo");
    command.args(["submit", &file]).env("TOKEN", "hunter2-and-more");
    let stdout = repo.env.ended(command).exit(1).stdout;
    insta::assert_snapshot!(stdout, @r#"bad-source at items[0].needs.it (item "make", line 1): secret-found: @run/design/write:outputs/spec.md:1 secret-env"#);
    assert!(!repo.refs().contains("runs/build"));
}
