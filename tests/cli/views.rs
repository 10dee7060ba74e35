//! Views of runs: order, times, drivers, and what waits for what.

#![expect(clippy::unwrap_used, reason = "what must not be fails the test")]

use serde_json::{Value, json};

use super::paging::on_terminal;
use crate::common::repo::{TestRepo, item, wait_for};
use crate::common::report::find_line;
use crate::common::{assert_output, finished};

fn names(answer: &Value) -> Vec<&str> {
    answer["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect()
}

fn runs(repo: &TestRepo) -> Value {
    serde_json::from_str(&repo.env.handoff(["runs", "--json"]).success()).unwrap()
}

/// An item that reports its start, and ends on request.
fn long(lock: &str) -> Value {
    let script = "touch $HOME/../begun; while ! test -e $HOME/../go; do sleep 0.05; done";
    json!({ "id": "long", "executor": "command", "resourceLocks": [lock], "inputs": { "command": script } })
}

#[test]
fn runs_are_listed_by_time_with_date_author_and_state() {
    let repo = TestRepo::new();
    repo.drive("middle", &[item("a", "touch outputs/x")]).success();
    repo.submit("zeta", &[item("a", "true"), json!({ "id": "b", "executor": "approval" })]);
    repo.submit("alpha", &[item("a", "true")]);
    let answer = runs(&repo);
    assert_eq!(names(&answer), ["alpha", "zeta", "middle"]);
    let rows: Vec<_> = answer["runs"].as_array().unwrap().iter().map(|run| [&run["state"], &run["author"]]).collect();
    assert_eq!(json!(rows), json!([["open", "human:ada"], ["open", "human:ada"], ["sealed", "human:ada"]]));
    assert_eq!(answer["runs"][1]["awaitsApproval"], 1);
    let times: Vec<_> =
        answer["runs"].as_array().unwrap().iter().map(|run| run["submittedAt"].as_str().unwrap()).collect();
    assert!(times.is_sorted_by(|one, other| one > other), "{times:?}");
    let stdout = repo.env.handoff(["runs"]).success();
    let line = stdout.lines().nth(1).unwrap();
    let minute = format!("{}Z", times[1][..16].replace('T', " "));
    assert!(line.starts_with("zeta ") && line.contains(&format!("  open    {minute}  human:ada  ")), "{stdout}");
    assert!(line.ends_with("1 ready, 1 awaits approval"), "{stdout}");
}

#[test]
fn lists_keep_sealed_runs_alone_and_need_no_file() {
    let repo = TestRepo::new();
    let _ = repo.drive("red", &[item("a", "exit 1")]).exit(4);
    repo.env.handoff(["close", "red"]).success();
    repo.submit("open", &[item("a", "true")]);
    let first = runs(&repo);
    let file = repo.env.repo().join(".git/handoff/lists/runs");
    let kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let kept_runs: Vec<&Value> = kept["runs"].as_object().unwrap().values().collect();
    assert_eq!(kept_runs, [&first["runs"][1]]);
    assert_eq!((&first["runs"][0]["run"], &first["runs"][1]["run"]), (&json!("open"), &json!("red")));

    // The second list is made from it, which shows where the file says something else.
    let line = std::fs::read_to_string(&file).unwrap().replace("\"failed\":1", "\"failed\":7");
    std::fs::write(&file, &line).unwrap();
    assert_eq!(runs(&repo)["runs"][1]["counts"], json!({ "failed": 7 }));
    // Another version's file, an invalid one and one that cannot be written are not needed.
    std::fs::write(&file, line.replace("\"tool\":\"git-handoff", "\"tool\":\"another")).unwrap();
    assert_eq!(runs(&repo), first);
    std::fs::write(&file, "{").unwrap();
    assert_eq!(runs(&repo), first);
    std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file.parent().unwrap(), "").unwrap();
    assert_eq!(runs(&repo), first);
}

#[test]
fn status_shows_driver_wait_and_lock_holder() {
    let repo = TestRepo::new();
    repo.submit("holder", &[long("db")]);
    let driver = repo.start(&["run", "holder"]);
    wait_for("the worker runs", || repo.path("begun").exists());
    let status = repo.status("holder");
    assert_eq!(status["driver"], json!({ "alive": true, "process": format!("process {}", driver.id()) }));
    assert!(status["items"][0]["startedAt"].is_string() && status["items"][0]["endedAt"].is_null(), "{status}");
    let next = json!({ "id": "next", "executor": "command", "resourceLocks": ["db"], "inputs": { "command": "true" } });
    repo.submit("other", &[next]);
    let waits = json!({ "kind": "lock", "name": "db", "holders": ["holder/long"] });
    assert_eq!(repo.status("other")["items"][0]["waitsFor"], waits);
    for (words, row) in [
        (&["status", "other"][..], "· next  ready  0 attempts      waits for the lock db, held by holder/long"),
        (&["status", "other", "--blocked"], "next  ready  waits for the lock db, held by holder/long"),
    ] {
        let stdout = repo.env.handoff(words).success();
        assert_eq!(stdout.lines().next(), Some(row), "{stdout}");
    }
    let stdout = repo.env.handoff(["status", "holder"]).success();
    assert!(stdout.contains(&format!("\ndriven by process {}\n", driver.id())), "{stdout}");
    repo.env.write("go", "");
    assert!(driver.wait().0.success());
    let second_status = repo.status("holder");
    assert!(second_status["driver"].is_null() && second_status["items"][0]["durationMs"].is_u64(), "{second_status}");
    assert_eq!(repo.status("other")["items"][0]["waitsFor"], Value::Null);
}

#[test]
fn an_item_waits_for_a_place_in_its_queue() {
    let repo = TestRepo::new();
    repo.config("handoff.queue.default.concurrency", "1");
    repo.submit("holder", &[long("db"), item("next", "true")]);
    let driver = repo.start(&["run", "holder"]);
    wait_for("the worker runs", || repo.path("begun").exists());
    let stdout = repo.env.handoff(["status", "holder"]).success();
    insta::assert_snapshot!(find_line(&stdout, "· next  "), @"· next  ready    0 attempts                           waits for a place in the queue default, held by holder/long");
    repo.env.write("go", "");
    assert!(driver.wait().0.success());
}

#[test]
fn status_reports_a_dead_driver() {
    let repo = TestRepo::new();
    repo.submit("r", &[long("db")]);
    let driver = repo.start(&["run", "r"]);
    wait_for("the worker runs", || repo.path("begun").exists());
    assert!(driver.kill());
    let status = repo.env.handoff(["status", "r"]);
    insta::assert_snapshot!(find_line(&status.stdout, "its driver "), @"its driver died, so that nothing runs");
    insta::assert_snapshot!(status.stderr, @"hint: git handoff run r");
    assert_eq!(repo.status("r")["driver"], json!({ "alive": false }));
    repo.env.write("go", "");
    repo.env.handoff(["run", "r"]).success();
    assert!(repo.status("r")["driver"].is_null());
}

#[test]
fn waiting_shows_what_to_look_at_before_it_hints_at_a_decision() {
    let repo = TestRepo::new();
    repo.config("handoff.executor.checked.command", "echo three >>a.txt; echo four >>a.txt; echo said >outputs/report");
    repo.config("handoff.executor.checked.verify", "grep -q four a.txt");
    let build = json!({ "id": "build", "executor": "checked", "inputs": {} });
    repo.submit("r", &[build, json!({ "id": "sign-off", "executor": "approval", "depends_on": ["build"] })]);
    repo.env.handoff(["run", "r"]).ends(4);
    let waiting = repo.env.handoff(["waiting"]);
    let lines: Vec<String> =
        waiting.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        lines,
        [
            "r/sign-off awaits approval",
            "diff 1 file, +2 -0 git handoff cat r/build:patch",
            "output 5 B git handoff cat r/build:outputs/report",
            "check passed git handoff show r/build",
        ]
    );
    assert!(waiting.stderr.starts_with("hint: git handoff approve r/sign-off"), "{waiting}");
    // Every view has the same word, and the overview leads here.
    let overview = "r  default  open  2026-06-04 02:00Z  human:ada  1 done, 1 awaits approval";
    for (words, row, hint) in [
        (&["status", "r"][..], "· sign-off  awaits approval  0 attempts", "hint: git handoff waiting\n"),
        (&["status", "r", "--blocked"], "sign-off  awaits approval", "hint: git handoff waiting\n"),
        (&["runs"], overview, ""),
        (&[], &format!("  {overview}"), "hint: git handoff waiting\n"),
    ] {
        let output = repo.env.handoff(words);
        assert!(output.stdout.lines().any(|line| line == row), "{words:?}: {output}");
        assert_eq!(output.stderr, hint, "{words:?}");
    }
}

#[test]
fn on_a_terminal_no_word_is_cut() {
    let repo = TestRepo::new();
    let words = "these words are many and long enough to need more than one line of eighty columns";
    let fails = json!({ "id": "an-item-with-a-name", "executor": "command", "maxAttempts": 1,
        "inputs": { "command": format!("echo '{{\"verify\":{{\"passed\":false}},\"summary\":\"{words}\"}}' >$HANDOFF_RESULT; exit 3") } });
    let after = json!({ "id": "another", "executor": "command", "depends_on": ["an-item-with-a-name"], "inputs": { "command": "true" } });
    repo.submit("r", &[fails, after]);
    repo.env.handoff(["run", "r"]).ends(4);
    let pager = [("PAGER", "cat")];
    for line in ["status r", "runs", "status r --blocked"] {
        let (screen, _) = on_terminal(&repo.env, &format!("stty rows 24 cols 60; git-handoff {line}"), &pager);
        assert!(screen.lines().all(|row| row.chars().count() <= 60), "{line}:\n{screen}");
        let piped = repo.env.shell("repo", &format!("git-handoff {line}")).stdout;
        let all = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        // The same words, each whole.
        let screen_words = all(&screen);
        assert!(all(&piped).iter().all(|word| screen_words.contains(word)), "{line}:\n{screen}\n{piped}");
    }
}

/// Off a terminal, the graph comes at the end.
#[test]
fn watch_shows_a_graph_with_its_option() {
    let env = finished();
    assert_output!(env.handoff(["watch", "--graph", "handoff-dag-1"]), @"
    handoff-dag-1: 2 of 2 done, sealed
    ✓ edit-a              done
    ✓ apply-patch         done
    ");
}

#[test]
fn threads_have_a_section_in_the_overview() {
    let env = finished();
    env.write("state", "x");
    for (thread, summary) in
        [("research", "gathered 3 sources"), ("draft", "half a page"), ("research", "four sources")]
    {
        env.handoff(["checkpoint", thread, "--state", "../state", "--summary", summary]).success();
    }
    assert_output!("overview_threads", env.handoff([""; 0]).exit(0));
    let overview: Value = serde_json::from_str(&env.handoff(["--json"]).success()).unwrap();
    let names: Vec<&Value> = overview["threads"].as_array().unwrap().iter().map(|one| &one["thread_id"]).collect();
    // The one that was written to last comes first.
    assert_eq!(names, ["research", "draft"]);
    // One that cannot be read hides nothing.
    env.git(["update-ref", "refs/handoff/threads/draft", "HEAD"]).success();
    let output = env.handoff([""; 0]).exit(0);
    insta::assert_snapshot!(find_line(&output.stdout, "  research"), @"  research  2 checkpoints  1-81beea2b4cd3  four sources");
    insta::assert_snapshot!(find_line(&output.stdout, "  draft"), @"  draft     unreadable                     thread draft does not verify: commit 9d4c0e5: the commit is not an entry: the message is not a subject and an entry");
}
