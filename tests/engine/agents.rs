//! Known agents, as scripts that print what the real programs print: what they leave behind, use,
//! and report.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::common::repo::{TestRepo, item};
use crate::common::report::find_line;

const CLAUDE: &str = include_str!("../fixtures/agents/claude.jsonl");
const CLAUDE_400: &str = include_str!("../fixtures/agents/claude-400.jsonl");
const CODEX: &str = include_str!("../fixtures/agents/codex.jsonl");
const CODEX_401: &str = include_str!("../fixtures/agents/codex-401.jsonl");

/// Makes a repository in which scripts stand for agents, each registered as a subagent by its line.
fn repo(agents: &[(&str, &str)]) -> TestRepo {
    let repo = TestRepo::new();
    for (name, script) in agents {
        repo.env.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}"));
        fs::set_permissions(repo.path(&format!("bin/{name}")), fs::Permissions::from_mode(0o755)).unwrap();
        repo.config(&format!("handoff.subagent.{name}.command"), &format!("{name} --flag"));
        let path = format!("PATH={}:{}", repo.path("bin").display(), std::env::var("PATH").unwrap());
        repo.config(&format!("handoff.subagent.{name}.env"), &path);
    }
    repo
}

fn agent(id: &str, name: &str) -> Value {
    json!({ "id": id, "executor": "dispatch", "inputs": { "subagent": name } })
}

/// Returns the script that prints the output of a real program.
fn prints(output: &str) -> String {
    format!("cat <<'END'\n{output}END\n")
}

fn show_item(repo: &TestRepo, item: &str) -> Value {
    serde_json::from_str(&repo.env.handoff(["show", "--json", item]).success()).unwrap()
}

/// Returns the entry that ends an item.
fn end(repo: &TestRepo, run: &str, id: &str) -> Value {
    let is_end = |e: &Value| e["kind"] == "item.reconciled" && e["item"] == id;
    repo.entries(run).into_iter().find(is_end).unwrap()
}

#[test]
fn the_patch_omits_untracked_files_that_an_agent_leaves_behind() {
    let repo = repo(&[
        (
            "aider",
            "mkdir -p .aider.tags.cache.v4 sub\necho x >.aider.tags.cache.v4/db; echo x >.aider.chat.history.md\n\
             echo x >sub/.aider.y; echo changed >.aider.conf.yml; echo new >new.txt\n",
        ),
        ("claude", "mkdir -p .claude; echo '{}' >.claude/settings.local.json; echo '{}' >.claude/settings.json\n"),
        ("other", "echo x >.aider.chat.history.md\n"),
    ]);
    repo.env.write("repo/.aider.conf.yml", "tracked\n");
    repo.env.git(["add", "--all"]).success();
    repo.env.git(["commit", "--quiet", "--message", "Track a file"]).success();
    let run = repo.drive("r", &[agent("a", "aider"), agent("b", "claude"), agent("c", "other")]);
    run.ends(0);
    let patch = |id: &str| repo.env.handoff(["cat", &format!("r/{id}:patch")]).success();
    let files = |id: &str| {
        let patch = patch(id);
        let names = patch.lines().filter_map(|line| line.strip_prefix("diff --git a/")?.split(' ').next());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(files("a"), [".aider.conf.yml", "new.txt", "sub/.aider.y"]);
    assert_eq!(files("b"), [".claude/settings.json"]);
    assert_eq!(files("c"), [".aider.chat.history.md"]);
    assert_eq!(end(&repo, "r", "a")["claims"]["excluded"], json!([".aider.chat.history.md", ".aider.tags.cache.v4/"]));
    assert_eq!(end(&repo, "r", "b")["claims"]["excluded"], json!([".claude/settings.local.json"]));
    assert_eq!(end(&repo, "r", "c")["claims"]["excluded"], Value::Null);
    let steps = show_item(&repo, "r/b")["entries"].clone();
    assert_eq!(steps[1]["excluded"], json!([".claude/settings.local.json"]));
    let show = repo.env.handoff(["show", "r/a"]).success();
    let section = "\nleft out of the patch\n  .aider.chat.history.md\n  .aider.tags.cache.v4/\n";
    assert!(show.contains(section), "{show}");
    repo.env.handoff(["verify", "r"]).success();
}

#[test]
fn run_notes_what_an_agent_leaves_behind() {
    let repo = repo(&[("aider", "echo x >.aider.b; echo x >.aider.a\n")]);
    repo.env.write("plan.json", &json!({ "id": "r", "items": [agent("a", "aider")] }).to_string());
    let run = repo.env.handoff(["run", "../plan.json"]);
    insta::assert_snapshot!(run, @"
    ✓ a  done, nothing handed over  1 attempt
    r: 1 of 1 done, sealed
    ─ nothing changed
    agent: aider
    proof ✓ intact, 4 entries, your key: git handoff verify r
    ------- stderr -------
    ▶ a  attempt 1
    a: left out of the patch, as files that aider leaves behind: .aider.a, .aider.b
    ✓ a  done in 0ms, nothing handed over
    ");
}

#[test]
fn use_is_recorded_as_the_workers_word_and_summed() {
    let denied = CLAUDE.replace("\"permission_denials\":[]", "\"permission_denials\":[{\"tool_name\":\"Bash\"}]");
    assert_ne!(denied, CLAUDE);
    let repo = repo(&[("claude", &prints(&denied)), ("codex", &prints(CODEX)), ("other", &prints(CLAUDE))]);
    let items = [
        agent("a", "claude"),
        agent("b", "codex"),
        agent("c", "other"),
        json!({ "id": "d", "executor": "command", "inputs": { "command": ["claude"], "env": {} } }),
    ];
    let path = format!("PATH={}:{}", repo.path("bin").display(), std::env::var("PATH").unwrap());
    repo.config("handoff.executor.command.env", &path);
    repo.drive("r", &items).ends(0);
    let claims = json!({
        "model": "claude-opus-4-8[1m]",
        "session": "e0203535-c2c6-435e-b72f-02c63ca491d2",
        "permissionDenials": 1,
    });
    let usage = json!({ "inputTokens": 7000, "outputTokens": 350, "cachedTokens": 2800, "costUsd": "0.03115" });
    assert_eq!(end(&repo, "r", "a")["usage"], usage);
    assert_eq!(end(&repo, "r", "a")["claims"], claims);
    assert_eq!(end(&repo, "r", "d")["claims"], claims);
    assert_eq!(end(&repo, "r", "c")["claims"], Value::Null);
    let codex = json!({ "inputTokens": 7000, "outputTokens": 350, "cachedTokens": 2800 });
    assert_eq!(end(&repo, "r", "b")["usage"], codex);
    let show = repo.env.handoff(["show", "r/a"]).success();
    let used = "usage      7000 tokens in, 2800 of them cached, 350 tokens out, $0.03115, as the worker says";
    assert_eq!(find_line(&show, "usage "), used);
    let second_denied = "denied     1 action for lack of a permission, as the worker says";
    assert_eq!(find_line(&show, "denied "), second_denied);
    let status = repo.env.handoff(["status", "r", "--usage"]).success();
    assert_eq!(
        status,
        "a  claude-opus-4-8[1m]  7000 in (2800 cached)  350 out  $0.03115\n\
         b                       7000 in (2800 cached)  350 out  no price\n\
         c                       unknown\n\
         d  claude-opus-4-8[1m]  7000 in (2800 cached)  350 out  $0.03115\n\
         r: 21000 tokens in, 1050 out, $0.0623, no price for 1 of 4 items, unknown for 1 of 4 items, as the workers say\n"
    );
    repo.drive("silent", &[item("a", "true"), item("b", "true")]).ends(0);
    let silent = repo.env.handoff(["status", "silent", "--usage"]).success();
    assert_eq!(silent, "a    unknown\nb    unknown\nsilent: unknown: no worker says what it used\n");
    let second_status: Value =
        serde_json::from_str(&repo.env.handoff(["--json", "status", "r", "--usage"]).success()).unwrap();
    assert_eq!(
        second_status["usage"],
        json!({ "inputTokens": 21000, "outputTokens": 1050, "cachedTokens": 8400, "costUsd": "0.0623",
            "items": 4, "unknownItems": 1, "unpricedItems": 1 })
    );
    let item = json!({ "models": [], "inputTokens": 7000, "outputTokens": 350, "cachedTokens": 2800,
        "unknownAttempts": 0, "unpricedAttempts": 1 });
    assert_eq!(second_status["items"][1]["usage"], item);
    assert_eq!(second_status["items"][2]["usage"]["unknownAttempts"], 1);
    let plain: Value = serde_json::from_str(&repo.env.handoff(["--json", "status", "r"]).success()).unwrap();
    assert_eq!((&plain["usage"], &plain["items"][1]["usage"]), (&Value::Null, &item));
    assert_eq!(plain["items"][2]["usage"], Value::Null);
    repo.env.handoff(["verify", "r"]).success();
}

#[test]
fn the_use_of_failed_attempts_counts_and_the_result_file_wins() {
    let script = format!(
        "{}test \"$HANDOFF_ATTEMPT\" = 2 || exit 1\necho '{{\"model\":\"mine\"}}' >\"$HANDOFF_RESULT\"\n",
        prints(CLAUDE)
    );
    let repo = repo(&[("claude", &script)]);
    repo.drive("r", &[agent("a", "claude")]).ends(0);
    let retried = repo.entries("r").into_iter().find(|e| e["kind"] == "item.retried").unwrap();
    assert_eq!(retried["usage"]["costUsd"], "0.03115");
    let end = end(&repo, "r", "a");
    assert_eq!((&end["claims"]["model"], &end["usage"]["outputTokens"]), (&json!("mine"), &json!(350)));
    let status = repo.env.handoff(["status", "r", "--usage"]).success();
    let sums = "r: 14000 tokens in, 700 out, $0.0623, as the workers say\n";
    assert!(status.starts_with("a  claude-opus-4-8[1m], mine  14000 in (5600 cached)  700 out  $0.0623\n"), "{status}");
    assert!(status.ends_with(sums), "{status}");
    let steps = show_item(&repo, "r/a")["entries"].clone();
    assert_eq!(steps[1]["claims"]["usage"]["costUsd"], "0.03115");
}

#[test]
fn a_lasting_failure_is_not_tried_again() {
    let repo = repo(&[
        ("claude", &format!("{}exit 1\n", prints(CLAUDE_400))),
        ("codex", &format!("{}exit 1\n", prints(CODEX_401))),
        ("aider", "echo 'litellm.RateLimitError: slow down'; exit 1\n"),
        ("other", &format!("{}exit 1\n", prints(CLAUDE_400))),
    ]);
    let items = [agent("a", "claude"), agent("b", "codex"), agent("c", "aider"), agent("d", "other")];
    repo.drive("r", &items).ends(4);
    let lasting =
        |text: &str| format!("exited with 1: the agent reports \"{text}\", which another try will not change");
    let ended =
        |id: &str| (show_item(&repo, &format!("r/{id}"))["attempts"].as_u64().unwrap(), repo.item("r", id).reason);
    assert_eq!(ended("a"), (1, lasting("API Error: 400")));
    assert_eq!(ended("b"), (1, lasting("401 Unauthorized")));
    let later = "exited with 1: the agent reports an error: litellm.RateLimitError: slow down";
    assert_eq!(ended("c"), (2, later.to_owned()));
    assert_eq!(ended("d"), (2, "exited with 1".to_owned()));
}

#[test]
fn an_agent_that_reports_an_error_fails_although_it_exits_with_0() {
    let turns = CLAUDE
        .replace("\"subtype\":\"success\",\"is_error\":false", "\"subtype\":\"error_max_turns\",\"is_error\":true");
    assert_ne!(turns, CLAUDE);
    let repo = repo(&[
        ("claude", &prints(&turns)),
        ("codex", &prints(CODEX_401)),
        ("qwen", &prints(include_str!("../fixtures/agents/qwen-401.jsonl"))),
        ("gemini", &prints(include_str!("../fixtures/agents/gemini-401.jsonl"))),
        ("aider", &prints(include_str!("../fixtures/agents/aider-401.txt"))),
    ]);
    repo.config("handoff.subagent.claude.verify", "true");
    let items = ["claude", "codex", "qwen", "gemini", "aider"].map(|name| agent(name, name));
    repo.drive("r", &items).ends(4);
    for (id, attempts, why) in [
        ("claude", 2, "the agent reports an error: The greeting is Dutch now."),
        ("codex", 1, "the agent reports \"401 Unauthorized\", which another try will not change"),
        ("qwen", 1, "the agent reports \"API Error: 401\", which another try will not change"),
        ("gemini", 1, "the agent reports \"UNAUTHENTICATED\", which another try will not change"),
        ("aider", 1, "the agent reports \"AuthenticationError\", which another try will not change"),
    ] {
        let answer = show_item(&repo, &format!("r/{id}"));
        assert_eq!((&answer["status"], &answer["attempts"]), (&json!("failed"), &json!(attempts)), "{id}");
        assert_eq!(answer["reason"], why);
    }
}

#[test]
fn only_the_output_of_the_items_own_command_counts() {
    let repo = repo(&[("claude", &prints(CLAUDE)), ("other", &prints(CODEX_401))]);
    let failed = prints(CLAUDE_400);
    repo.config("handoff.subagent.claude.setup", &failed);
    repo.config("handoff.subagent.claude.verify", &failed);
    let other = item("b", &failed);
    repo.drive("r", &[agent("a", "claude"), other]).ends(0);
    assert_eq!(end(&repo, "r", "a")["usage"]["inputTokens"], 7000);
    assert_eq!(end(&repo, "r", "b")["claims"], Value::Null);
}

#[test]
fn use_survives_a_transcript_beyond_its_limit() {
    let script = format!("head -c 300000 /dev/zero | tr '\\0' 'x'; echo\n{}", prints(CLAUDE));
    let repo = repo(&[("claude", &script)]);
    repo.config("handoff.maxProductSize", "100k");
    repo.drive("r", &[agent("a", "claude")]).ends(0);
    assert_eq!(end(&repo, "r", "a")["usage"]["costUsd"], "0.03115");
}

#[test]
fn the_sessions_of_a_pipelines_blocks_add_up() {
    let script = format!("date +%N >>outputs/times\n{}", prints(CLAUDE));
    let repo = repo(&[("claude", &script)]);
    let blocks = json!([{ "kind": "agent" }, { "kind": "agent" }, { "kind": "capture", "what": "outputs" }]);
    repo.env.write("spec.json", &json!({ "schemaVersion": 1, "id": "dev.twice", "blocks": blocks }).to_string());
    repo.env.handoff(["pipeline", "add", "../spec.json"]).success();
    let mut item = agent("a", "claude");
    item["inputs"]["pipeline"] = json!("dev.twice");
    repo.drive("r", &[item]).ends(0);
    let usage = json!({ "inputTokens": 14000, "outputTokens": 700, "cachedTokens": 5600, "costUsd": "0.0623" });
    assert_eq!(end(&repo, "r", "a")["usage"], usage);
    repo.env.handoff(["verify", "r"]).success();
}
