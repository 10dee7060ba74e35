//! Everyday commands: show the state, follow a run, abandon one.

use serde_json::{Value, json};

use crate::common::assert_output;
use crate::common::repo::{TestRepo, after, item, wait_for};
use crate::common::report::{find_entry, find_line, find_row};

/// No command at all.
const NOTHING: [&str; 0] = [];

#[test]
fn overview_shows_state_and_next_steps() {
    let repo = TestRepo::new();
    assert_output!(repo.env.handoff(NOTHING), @r"
    there are no runs here yet
    ------- stderr -------
    hint: git handoff init
    ");
    repo.drive("good", &[item("a", "true")]).ends(0);
    repo.drive("bad", &[item("a", "exit 1"), after("b", &["a"], "true")]).ends(4);
    repo.submit("open", &[item("a", "true")]);
    repo.drive("gone", &[item("a", "exit 1")]).ends(4);
    repo.env.handoff(["close", "gone"]).success();
    repo.drive("asked", &[json!({ "id": "sign", "executor": "approval" })]).ends(4);
    assert_output!(repo.env.handoff(NOTHING), @r"
    awaits approval
      asked/sign
    open
      asked  default  open  2026-06-04 02:00Z  human:ada  1 awaits approval
      open   default  open  2026-06-04 02:00Z  human:ada  1 ready
      bad    default  open  2026-06-04 02:00Z  human:ada  1 failed, 1 skipped
    not all done and green
      gone  default  sealed  2026-06-04 02:00Z  human:ada  1 failed
    1 run sealed, done and green by what they record, 1 with an item that has nothing handed over
    ------- stderr -------
    hint: git handoff waiting
    ");
    let answer: Value = serde_json::from_str(&repo.env.handoff(["--json"]).success()).unwrap();
    assert_eq!((answer["green"].as_u64(), answer["waiting"].as_array().map(Vec::len)), (Some(1), Some(1)), "{answer}");
    repo.env.handoff(["approve", "asked/sign"]).success();
    insta::assert_snapshot!(repo.env.handoff(NOTHING).exit(0).stderr, @"hint: git handoff status --blocked bad");
    assert_output!(repo.env.handoff(["status", "--blocked", "bad"]), @r#"
    a  failed   exited with 1
    b  skipped  it depends on "a", which did not get done
    "#);
    // A sealed run waits for nothing, and an archive takes it out of the overview.
    for run in ["open", "bad", "asked"] {
        repo.env.handoff(["abandon", run]).success();
        repo.env.handoff(["archive", run]).success();
    }
    let hint = "hint: git handoff show gone   # or set it aside: git handoff archive gone\n";
    assert_eq!(repo.env.handoff(NOTHING).exit(0).stderr, hint);
    repo.env.handoff(["archive", "gone"]).success();
    let overview = repo.env.handoff(NOTHING).success();
    assert!(!overview.contains("not all done and green"), "{overview}");
    insta::assert_snapshot!(repo.env.handoff_in("home", NOTHING).exit(1).stderr, @"
    error: not in a git repository: $TEST/home
    hint: git init
    ");
}

#[test]
fn overview_calls_only_checked_runs_green() {
    let repo = TestRepo::new();
    repo.drive("bad", &[item("a", "exit 1"), after("b", &["a"], "true"), item("c", "true")]).ends(4);
    let output = repo.env.handoff(["close", "bad", "--reason", "good enough"]).exit(0);
    assert_eq!(output.stdout, "bad: 2 entries, sealed\n");
    let log = repo.env.handoff(["log", "bad"]).success();
    insta::assert_snapshot!(find_entry(&log, "item.reconciled a"), @"item.reconciled a #1: failed: exited with 1");
    insta::assert_snapshot!(find_entry(&log, "item.skipped b"), @r#"item.skipped b #0: skipped: it depends on "a", which did not get done"#);
    insta::assert_snapshot!(find_entry(&log, "run.closed bad"), @"run.closed bad: good enough");
    let archived = repo.env.handoff(["archive", "bad"]).exit(0);
    assert!(archived.stdout.ends_with("  1 of 3 done, 1 failed, 1 skipped\n"), "{archived}");
    assert_output!(repo.env.handoff(NOTHING), @r"
    1 run archived and not looked at
    ------- stderr -------
    hint: git handoff runs --archived
    ");

    let other = TestRepo::new();
    other.env.git_in(".", ["init", "--quiet", "--bare", "hub"]).success();
    other.env.git(["remote", "add", "origin", "../hub"]).success();
    other.drive("r", &[item("a", "true")]).ends(0);
    other.env.handoff(["push", "origin", "r"]).success();
    other.env.handoff(["fetch", "origin"]).success();
    let own = other.env.git(["for-each-ref", "--format=delete %(refname)", "refs/handoff/runs"]).success();
    own.lines().for_each(|line| drop(other.env.git(["update-ref", "-d", &line["delete ".len()..]]).success()));
    assert_output!(other.env.handoff(["runs"]), @r"
    ------- stderr -------
    no run was submitted here; 1 run fetched and not listed
    hint: git handoff runs --all
    ");
    assert_output!(other.env.handoff(NOTHING), @r"
    1 run fetched and not looked at
    ------- stderr -------
    hint: git handoff runs --all
    ");
    let answer: Value = serde_json::from_str(&other.env.handoff(["--json"]).success()).unwrap();
    assert_eq!((&answer["archived"], &answer["fetched"]), (&0.into(), &1.into()), "{answer}");
}

#[test]
fn every_command_lists_a_run_with_a_symbolic_ref() {
    let repo = TestRepo::new();
    repo.drive("r", &[item("a", "true")]).ends(0);
    repo.env.git(["symbolic-ref", "refs/handoff/runs/s", "refs/heads/main"]).success();
    let report = repo.env.handoff(["verify", "--all"]).exit(3).stdout;
    insta::assert_snapshot!(find_line(&report, "git handoff verify · s "), @"git handoff verify · s                                          ✗ TAMPERED");
    repo.env.git(["symbolic-ref", "refs/handoff/runs/r", "refs/heads/main"]).success();
    let of_log = repo.env.handoff(["verify", "--all"]).exit(3);
    assert_eq!(of_log.stderr, "");
    insta::assert_snapshot!(find_line(&of_log.stdout, "git handoff verify · r "), @"git handoff verify · r                                          ✗ TAMPERED");
    let stdout = repo.env.handoff(["runs"]).success();
    insta::assert_snapshot!(stdout, @"
    r  ?  unreadable  ?  ?  refs/handoff/runs/r is a symbolic ref, to refs/heads/main
    s  ?  unreadable  ?  ?  refs/handoff/runs/s is a symbolic ref, to refs/heads/main
    ");
    repo.env.git(["symbolic-ref", "--delete", "refs/handoff/runs/s"]).success();
    repo.env.git(["symbolic-ref", "refs/handoff/remotes/hub/runs/s", "refs/heads/main"]).success();
    let verify_answer = repo.env.handoff(["verify", "--all"]).exit(3).stdout;
    insta::assert_snapshot!(find_line(&verify_answer, "git handoff verify · hub/s "), @"git handoff verify · hub/s                                      ✗ TAMPERED");
}

#[test]
fn close_seals_a_run_with_its_reason() {
    let repo = TestRepo::new();
    repo.submit("r", &[item("a", "true"), after("b", &["a"], "true")]);
    assert_eq!(repo.env.handoff(["abandon", "r", "-m", "the idea was wrong"]).success(), "r: 4 entries, sealed\n");
    assert!(repo.is_sealed("r"));
    let stdout = repo.env.handoff(["log", "r"]).success();
    insta::assert_snapshot!(find_entry(&stdout, "run.cancelled r"), @"run.cancelled r: the idea was wrong");
    insta::assert_snapshot!(find_entry(&stdout, "item.cancelled a"), @"item.cancelled a #0: cancelled: the idea was wrong");
    let entries = repo.entries("r");
    assert!(entries.iter().any(|entry| entry.to_string().contains("the idea was wrong")));
    repo.env.handoff(["verify", "--allow-partial", "r"]).success();
    insta::assert_snapshot!(repo.env.handoff(["abandon", "r"]).exit(1).stderr, @r#"
    error: the run "r" is sealed; nothing can follow
    hint: git handoff verify r
    "#);
    repo.env.handoff(["abandon", "none"]).ends(1);
    repo.submit("s", &[item("a", "true")]);
    repo.env.handoff(["abandon", "s/a"]).ends(2);
    assert!(!repo.is_sealed("s"));
    // One that failed and settled, too.
    repo.drive("t", &[item("a", "exit 1")]).ends(4);
    repo.env.handoff(["abandon", "t"]).success();
    assert!(repo.is_sealed("t"));
}

#[test]
fn a_run_is_followed_while_another_process_drives_it() {
    let repo = TestRepo::new();
    let wait = "while ! test -e $HOME/../go; do sleep 0.02; done; mkdir outputs; echo x >outputs/x";
    repo.submit("r", &[item("a", wait), after("b", &["a"], "true")]);
    let (watch, log) = (repo.start(&["watch", "r"]), repo.start(&["log", "-f", "r"]));
    let driver = repo.start(&["run", "r"]);
    wait_for("the item runs", || repo.item("r", "a").status == "running");
    repo.env.write("go", "");
    assert!(driver.wait().0.success());
    let (status, output) = watch.wait();
    assert!(status.success(), "{output}");
    insta::assert_snapshot!(find_line(&output, "✓ b  done, "), @"✓ b  done, nothing handed over  1 attempt");
    assert!(log.wait().0.success());
    let followed = repo.env.handoff(["log", "-f", "r"]).success();
    assert_eq!(followed, repo.env.handoff(["log", "r"]).success());
    repo.drive("bad", &[item("a", "exit 1")]).ends(4);
    repo.env.handoff(["watch", "bad"]).ends(4);
    repo.env.handoff(["watch", "none"]).ends(1);
}

#[test]
fn fetched_runs_are_listed_with_their_remote() {
    let repo = TestRepo::new();
    repo.drive("r", &[item("a", "true")]).ends(0);
    repo.env.git_in(".", ["init", "--quiet", "--bare", "hub"]).success();
    repo.env.git(["remote", "add", "origin", "../hub"]).success();
    repo.env.git(["push", "--quiet", "origin", "main"]).success();
    repo.env.handoff(["push", "origin", "--all"]).success();
    repo.env.handoff(["push", "origin", "r", "--all"]).ends(2);
    repo.env.handoff(["fetch", "origin"]).success();
    assert_eq!(repo.env.handoff(["runs"]).success().lines().count(), 1);
    let stdout = repo.env.handoff(["runs", "-a"]).success();
    assert!(stdout.lines().count() == 2, "{stdout}");
    insta::assert_snapshot!(stdout, @"
    r         default  sealed  2026-06-04 02:00Z  human:ada  1 done, 1 with nothing handed over
    origin/r  default  sealed  2026-06-04 02:00Z  human:ada  1 done, 1 with nothing handed over
    ");
    let answer: Value = serde_json::from_str(&repo.env.handoff(["--json", "runs", "--all"]).success()).unwrap();
    assert_eq!(
        (&answer["runs"][0]["remote"], &answer["runs"][1]["remote"]),
        (&Value::Null, &"origin".into()),
        "{answer}"
    );
}

#[test]
fn a_plan_to_start_from_is_valid_and_runs() {
    let repo = TestRepo::new();
    assert_output!(repo.env.handoff(["plan", "new"]), @r"
    plan.json
    ------- stderr -------
    hint: git handoff run plan.json
    ");
    repo.env.handoff(["validate", "plan.json"]).success();
    repo.env.handoff(["run", "plan.json"]).success();
    repo.ends_intact("first-plan");
    assert_output!(repo.env.handoff(["plan", "new"]), @r"
    ------- stderr -------
    error: plan.json could not be written
    caused by: File exists (os error 17)
    hint: git handoff plan new other.json
    [exit status: 1]
    ");
    // The agent that is registered does the first item.
    repo.config("handoff.subagent.writer.command", "git log --oneline -5 >latest.txt");
    repo.env.handoff(["run", "plan.json"]).ends(0);
    repo.env.handoff(["plan", "new", "agent.json"]).success();
    let plan: Value = serde_json::from_str(&std::fs::read_to_string(repo.path("repo/agent.json")).unwrap()).unwrap();
    assert_eq!(
        (&plan["items"][0]["executor"], &plan["items"][0]["inputs"]["subagent"]),
        (&"dispatch".into(), &"writer".into())
    );
    repo.env.handoff(["run", "agent.json"]).success();
    repo.ends_intact("agent");
    let answer = repo.env.handoff(["plan", "new", "weekly.json", "--json"]).success();
    assert_eq!(answer, "{\"file\":\"weekly.json\",\"id\":\"weekly\",\"schema\":\"git-handoff.plan-new/1\"}\n");
    let stdout = repo.env.handoff(["plan", "new", "-", "--id", "other"]).success();
    assert_eq!(stdout, repo.env.handoff(["plan", "new", "-"]).success().replace("first-plan", "other"));
    repo.env.handoff(["plan", "new", "x.json", "--id", "a/b"]).ends(2);
    repo.env.handoff(["plan", "new", "no/such/folder.json"]).ends(1);
    assert!(!repo.path("repo/x.json").exists());
}

#[test]
fn a_snapshot_has_what_two_runs_of_one_plan_have_in_common() {
    let repo = TestRepo::new();
    repo.config("handoff.executor.flaky.command", "test \"$HANDOFF_ATTEMPT\" = 2");
    let items = [item("a", "echo x >x"), item("c", "exit 3"), json!({ "id": "b", "executor": "flaky" })];
    let plan = repo.plan("one", &items);
    repo.env.handoff(["run", &plan]).ends(4);
    repo.env.handoff(["run", &plan, "--id", "two"]).ends(4);
    repo.env.handoff(["close", "one"]).success();
    repo.env.handoff(["close", "two"]).success();
    let snapshot = |run: &str| repo.env.handoff(["verify", "--format", "snapshot", run]).exit(4).stdout;
    assert_eq!(snapshot("one"), snapshot("two"));
    assert_output!(repo.env.handoff(["verify", "--format=snapshot", "two"]), @r"
    ─ INTACT · tamper-detecting PARTIAL
    ✓ chain
    ✓ root
    ✓ signature
    ✓ anchor
    ✓ handoff
    ✓ plan
    ✓ manifest
    ✓ content
    ✗ outcome: 2 of 3 done, 1 failed, 1 with nothing handed over
      a: done, patch
      c: failed
      b: done, nothing handed over
    [exit status: 4]
    ");
    repo.env.handoff(["verify", "--format", "snapshot", "--json", "two"]).ends(2);
    repo.env.handoff(["verify", "--format", "other", "two"]).ends(2);
    repo.env.git(["update-ref", "refs/handoff/runs/two", "refs/handoff/runs/one"]).success();
    let forged = repo.env.handoff(["verify", "--format=snapshot", "two"]).exit(3).stdout;
    insta::assert_snapshot!(forged, @"
    ✗ TAMPERED
    ✗ chain
    ✓ root
    ✓ signature
    ─ anchor
    ─ handoff
    ─ plan
    ─ manifest
    ─ content
    ");
}

#[test]
fn colour_follows_git_configuration() {
    let repo = TestRepo::new();
    repo.drive("r", &[item("a", "true")]).ends(0);
    let is_painted = || repo.env.handoff(["verify", "r"]).exit(0).raw.contains(&0x1b);
    assert!(!is_painted(), "nobody sees it");
    for (key, value, painted) in [
        ("color.ui", "always", true),
        ("color.handoff", "never", false),
        ("color.ui", "auto", false),
        ("color.handoff", "always", true),
        ("color.handoff", "auto", false),
    ] {
        repo.config(key, value);
        assert_eq!(is_painted(), painted, "{key} = {value}");
    }
    repo.config("color.handoff", "always");
    let answer = repo.env.handoff(["verify", "--json", "r"]).exit(0);
    assert!(!answer.raw.contains(&0x1b));
    let refused = repo.env.handoff(["verify", "other"]).exit(1);
    assert!(refused.stderr.contains("\u{1b}[31m"), "{}", refused.stderr);
}

#[test]
fn a_relative_path_in_a_setting_starts_from_the_top_wherever_one_stands() {
    let repo = TestRepo::new();
    repo.env.shell("repo", "mkdir -p deep/er ../keys && ssh-keygen -q -t ed25519 -N '' -C '' -f ../keys/key").success();
    repo.env.shell("repo", "printf 'ada %s' \"$(cat ../keys/key.pub)\" >../keys/signers").success();
    for (key, value) in [
        ("handoff.signingKey", "../keys/key"),
        ("handoff.signers", "../keys/signers"),
        ("handoff.workspace.root", "../elsewhere"),
    ] {
        repo.config(key, value);
    }
    let plan = repo.plan("r", &[item("a", "echo x >x; pwd")]);
    repo.env.handoff_in("repo/deep/er", ["run", &format!("../../{plan}")]).success();
    let verified = repo.env.handoff_in("repo/deep/er", ["verify", "--require-trusted", "r"]).success();
    assert!(find_row(&verified, "signature").ends_with(" · trusted as ada"), "{verified}");
    let at = repo.env.handoff_in("repo/deep", ["cat", "r/a:transcript"]).success();
    assert!(at.starts_with("$TEST/elsewhere/"), "{at}");
    assert!(!repo.path("repo/deep/er/keys").exists() && !repo.path("repo/deep/elsewhere").exists());
    // Inside the work tree it would decide about trust, from wherever it is named.
    repo.config("handoff.signers", "deep/../signers");
    repo.env.handoff_in("repo/deep/er", ["verify", "r"]).ends(1);
}

#[test]
fn runs_of_agents_need_a_name_or_an_answer() {
    let repo = TestRepo::new();
    for run in ["by-agent", "by-agent-too"] {
        let plan = repo.plan(run, &[item("a", "true")]);
        repo.env.handoff(["submit", &plan, "--actor", "agent:writer"]).success();
    }
    repo.submit("by-person", &[item("a", "true")]);
    let output = repo.env.handoff(["run"]).exit(0);
    insta::assert_snapshot!(output.stderr, @"
    submitted by agents, and driven by name alone: by-agent, by-agent-too
    hint: git handoff run by-agent
    ▶ a  attempt 1
    ✓ a  done in 0ms, nothing handed over
    ");
    assert_eq!(["by-person", "by-agent", "by-agent-too"].map(|run| repo.is_sealed(run)), [true, false, false]);
    repo.env.handoff(["run", "by-agent"]).success();
    // A commit says nothing about it.
    repo.env.write("repo/settings", "[handoff \"mcp\"]\n\tdrive = true\n");
    repo.env.git(["config", "include.path", "../settings"]).success();
    let run_output = repo.env.handoff(["run"]).exit(0);
    insta::assert_snapshot!(run_output.stderr, @"
    warning: `handoff.mcp.drive` is ignored: a file inside the work tree sets it, and a commit can change that file
    submitted by agents, and driven by name alone: by-agent-too
    hint: git handoff run by-agent-too
    ");
    repo.config("handoff.mcp.drive", "true");
    repo.env.handoff(["run"]).success();
    assert!(repo.is_sealed("by-agent") && repo.is_sealed("by-agent-too"));
}
