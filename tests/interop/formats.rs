//! Exports in the formats of other tools. `tests/interop/check_formats.py` checks them with the
//! tools' own libraries.

use serde_json::{Value, json};

use crate::common::repo::{TestRepo, after, item, wait_for};
use crate::common::report::find_line;
use crate::common::{Environment, assert_output};

/// A worker that names its model and its session.
const REPORT: &str = r#"printf '{"model": "large-2", "session": "5f1c"}' >"$HANDOFF_RESULT""#;

/// Returns a repository with a run that has an item of every kind.
fn everything(repo: &TestRepo) {
    repo.config("user.name", "Ann");
    repo.env.write("repo/gone.txt", "x\n");
    repo.env.write("repo/run.sh", "true\n");
    repo.env.write("repo/data.bin", "\0\u{1}");
    repo.env.write("repo/spec.md", "wanted\n");
    repo.env.git(["add", "--all"]).success();
    repo.env.git(["commit", "--quiet", "--message", "More"]).success();
    let changes = "sed -i 's/two/zwei/; 1i null' a.txt; mkdir 'dir é'; printf 'x\\ny' >'dir é/my file'; \
        printf 'q\\n' >'qu\"ote'; printf 'l\\n' >\"$(printf 'bad\\377')\"; printf '\\0\\2' >data.bin; \
        rm gone.txt; chmod +x run.sh; : >empty; mv dir/b.txt dir/c.txt; echo 1 >outputs/o";
    let mut flaky = item("flaky", &format!("{REPORT}; test $HANDOFF_ATTEMPT = 2 && echo late >>a.txt"));
    flaky["maxAttempts"] = json!(2);
    let mut take = item("we ird/<id>&\"", "cat inputs/o inputs/spec >taken; echo '{\"n\": 1}' >outputs/n.json");
    take["needs"] = json!({
        "o": {"from": "make", "select": {"kind": "output", "path": "o"}},
        "spec": {"from": "@artifacts", "select": {"kind": "output", "path": "spec.md"}},
    });
    take["produces"] = json!([{"kind": "document", "name": "n", "path": "n.json"}]);
    let approval = json!({"id": "sign-off", "executor": "approval", "depends_on": ["make"]});
    let mut red = item("red", "echo r >r.txt");
    red["inputs"]["check"] = json!("false");
    let mut bad = item("bad", "printf 'it <failed> \\033[31m'; exit 3");
    bad["maxAttempts"] = json!(2);
    let mut next = item("next", "true");
    next["depends_on"] = json!(["bad"]);
    let items =
        [item("make", &format!("{changes}; {REPORT}")), flaky, take, approval, red, bad, next, item("cut", "true")];
    let plan = json!({"id": "all", "artifacts": {"spec.md": "spec.md"}, "items": items});
    repo.config("handoff.executor.command.onVerifyFail", "keep");
    repo.env.write("repo/all.json", &plan.to_string());
    repo.env.handoff(["submit", "all.json"]).success();
    repo.env.write("note", "read this\n");
    repo.env.handoff(["cancel", "all/cut"]).success();
    repo.env.handoff(["doc", "put", "all", "note", "../note"]).success();
    repo.env.handoff(["run", "all", "-j", "1"]).ends(4);
    repo.env.handoff(["approve", "all/sign-off", "-m", "reads well"]).success();
    repo.env.handoff(["close", "all"]).success();
}

fn export(repo: &TestRepo, args: &[&str]) -> String {
    repo.env.handoff([&["export"], args].concat()).exit(0).stdout
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Returns JSON for a snapshot, without hashes. What is short stands on one line.
fn pretty(value: &Value) -> String {
    let mut text = String::new();
    fold(value, 0, &mut text);
    plain(&text)
}

fn fold(value: &Value, depth: usize, out: &mut String) {
    let (open, close, parts): (_, _, Vec<(String, &Value)>) = match value {
        _ if value.to_string().len() <= 160 => return out.push_str(&value.to_string()),
        Value::Array(values) => ("[", "]", values.iter().map(|child| (String::new(), child)).collect()),
        Value::Object(fields) => {
            ("{", "}", fields.iter().map(|(name, field_value)| (format!("{name:?}: "), field_value)).collect())
        }
        other => return out.push_str(&other.to_string()),
    };
    out.push_str(open);
    for (at, (name, part)) in parts.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        out.extend([comma, "\n", &"  ".repeat(depth + 1), name]);
        fold(part, depth + 1, out);
    }
    out.extend(["\n", &"  ".repeat(depth), close]);
}

/// Replaces hashes, the ids that follow from them, and measured times.
fn plain(text: &str) -> String {
    let hash = regex::Regex::new(r"\b([0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32}|[0-9a-f]{16})\b").expect("it is valid");
    let uuid =
        regex::Regex::new(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}").expect("it is valid");
    let text = uuid.replace_all(text, "[uuid]").into_owned();
    let took = regex::Regex::new(r#"time="\d+\.\d{3}""#).expect("it is valid");
    let text = took.replace_all(&text, r#"time="[seconds]""#).into_owned();
    hash.replace_all(&text, "[hash]").into_owned()
}

#[test]
fn a_run_with_items_of_every_kind_has_every_format() {
    let repo = TestRepo::new();
    everything(&repo);
    let traces = json_lines(&export(&repo, &["all", "--format", "agent-trace"]));
    let items: Vec<&str> = traces.iter().map(|record| ours(record)["item"].as_str().expect("a text")).collect();
    assert_eq!(items, ["make", "flaky", "we ird/<id>&\"", "red"]);
    assert_output!("export_agent_trace", pretty(&traces[0]));
    let log = export(&repo, &["all/make", "--format", "git-ai"]);
    let log = regex::Regex::new("::t_[0-9a-f]{14}").expect("it is valid").replace_all(&log, "::t_[trace]").into_owned();
    assert_output!("export_git_ai", plain(&log));
    let trace = json_lines(&export(&repo, &["all", "--format", "otel"])).remove(0);
    assert_output!("export_otel", pretty(&trace));
    assert_output!("export_junit", plain(&export(&repo, &["all", "--format", "junit"])));
    let bom = json_lines(&export(&repo, &["all", "--format", "cyclonedx"])).remove(0);
    assert_output!("export_cyclonedx", pretty(&bom));
    for format in ["agent-trace", "otel", "junit", "cyclonedx"] {
        let again = || export(&repo, &["all", "--format", format]);
        assert_eq!(again(), again(), "{format} is always the same");
    }
}

/// Returns our part of the metadata of a trace record.
fn ours(record: &Value) -> &Value {
    &record["metadata"]["com.github.git-handoff"]
}

#[test]
fn ids_follow_from_the_hashes_of_entries() {
    let repo = TestRepo::new();
    repo.drive("r", &[item("a", "echo a >a")]).ends(0);
    let entries = repo.entries("r");
    let hash = |at: usize| entries[at]["hash"].as_str().expect("a text")["sha256:".len()..].to_owned();
    let trace = json_lines(&export(&repo, &["r", "--format", "otel"])).remove(0);
    let spans = trace["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("a list");
    assert_eq!(spans[0]["traceId"], hash(0)[..32]);
    assert_eq!((&spans[0]["spanId"], &spans[1]["parentSpanId"]), (&json!(hash(0)[..16]), &json!(hash(0)[..16])));
    assert_eq!(spans[1]["spanId"], hash(1)[..16]);
    let record = json_lines(&export(&repo, &["r", "--format", "agent-trace"])).remove(0);
    assert_eq!(ours(&record)["entry"], format!("sha256:{}", hash(2)));
    assert_eq!(ours(&record)["evidence"]["seal"], format!("sha256:{}", hash(3)));
    assert_eq!(record["vcs"], Value::Null, "no commit is meant");
}

#[test]
fn lines_of_a_commit_are_those_that_the_run_is_proven_to_have_made() {
    let repo = TestRepo::new();
    let long: Vec<String> = (1..=20).map(|line| format!("line {line}\n")).collect();
    repo.env.write("repo/long.txt", &long.concat());
    repo.env.git(["add", "--all"]).success();
    repo.env.git(["commit", "--quiet", "--message", "Long"]).success();
    let by_model = |id: &str, script: &str| item(id, &format!("{script}; {REPORT}"));
    let items = [
        by_model("a", "sed -i '15s/$/ of item a/' long.txt"),
        by_model("b", "sed -i '5s/$/ of item b/' long.txt; printf 'new of b\\nmore of b\\n' >new.txt"),
        item("c", "printf 'plain text\\n' >plain.txt"),
    ];
    repo.drive("r", &items).ends(0);
    // A person commits the patches together, and adds lines above those of the items.
    repo.env.handoff(["apply", "r"]).success();
    let now = std::fs::read_to_string(repo.path("repo/long.txt")).expect("the file is there");
    repo.env.write("repo/long.txt", &format!("by a person\nand more\n{now}"));
    repo.env.git(["commit", "--quiet", "--all", "--message", "Together"]).success();
    let log = repo.env.handoff(["export", "r", "--format", "git-ai", "--commit", "HEAD"]).exit(0);
    let lines: Vec<&str> = log.stdout.lines().take_while(|line| *line != "---").collect();
    let ranges: Vec<&str> = lines.iter().map(|line| line.rsplit("::t_").next().expect("a part")).collect();
    let ranges: Vec<&str> =
        ranges.iter().map(|range| range.split_once(' ').map_or(*range, |(_, range)| range)).collect();
    // Both items were of one session; the third one's worker named no model.
    assert_eq!(ranges, ["long.txt", "17", "7", "new.txt", "1-2"]);
    insta::assert_snapshot!(log.stderr, @r#"warning: the lines of "c" stay untracked: its worker reported no model or session"#);
    let head = repo.env.git(["rev-parse", "HEAD"]).success();
    assert!(log.stdout.contains(&format!("\"base_commit_sha\": \"{}\"", head.trim())));
    let records = json_lines(&export(&repo, &["r/b", "--format", "agent-trace", "--commit", "HEAD"]));
    assert_eq!(records.len(), 1);
    assert_eq!(records[0]["vcs"], json!({"type": "git", "revision": head.trim()}));
    let file = |path: &str, start: u64, end: u64| {
        json!({"path": path, "conversations": [{"contributor": {"type": "ai", "model_id": "large-2"},
            "ranges": [{"start_line": start, "end_line": end}]}]})
    };
    assert_eq!(records[0]["files"], json!([file("long.txt", 7, 7), file("new.txt", 1, 2)]));
    let base = repo.env.handoff(["export", "r", "--format", "git-ai", "--commit", "HEAD~1"]);
    assert_eq!(base.status, Some(1));
    insta::assert_snapshot!(base.stderr, @r#"
    error: no line of the commit 661f90c35159db8afd77c980fe9b37ddca57f699 is proven to be the run "r"'s
    hint: git handoff whence 661f90c35159db8afd77c980fe9b37ddca57f699
    "#);
}

#[test]
fn export_rejects_unsupported_content() {
    let repo = TestRepo::new();
    let by_model = |id: &str| item(id, &format!("echo {id} >{id}.txt; {REPORT}"));
    repo.drive("r", &[by_model("a"), by_model("b")]).ends(0);
    repo.submit("open", &[item("a", "true")]);
    let refused = |args: &[&str]| repo.env.handoff([&["export"], args].concat()).to_string();
    assert_output!(refused(&["r", "--format", "git-ai"]), @"
    ------- stderr -------
    error: the models of 2 items made patches, and an authorship log has one state of the files: name an item (RUN/ITEM) or a commit (--commit REV)
    [exit status: 1]
    ");
    for format in ["otel", "junit", "cyclonedx"] {
        assert_eq!(
            refused(&["r/a", "--format", format]),
            "------- stderr -------\nerror: this format is of a whole run: leave the item out\n[exit status: 2]\n"
        );
        assert_eq!(
            refused(&["r", "--format", format, "--commit", "HEAD"]),
            "------- stderr -------\nerror: this format has no lines of files: leave --commit out\n[exit status: 2]\n"
        );
    }
    for format in ["agent-trace", "git-ai", "otel", "junit", "cyclonedx"] {
        let message = refused(&["open", "--format", format]);
        assert_eq!(find_line(&message, "error: "), "error: the run \"open\" does not verify: NOT SEALED", "{format}");
    }
    insta::assert_snapshot!(refused(&["r", "--format", "git-ai", "--commit", "nowhere"]), @r#"
    ------- stderr -------
    error: "nowhere" names no commit
    hint: git log --oneline --all
    [exit status: 1]
    "#);
}

#[test]
fn a_run_of_a_sha256_repository_and_a_cancelled_one_are_exported() {
    let repo = TestRepo::with_options(Environment::empty(), &["--object-format=sha256"]);
    repo.drive("r", &[item("a", &format!("echo a >a; {REPORT}"))]).ends(0);
    let log = export(&repo, &["r", "--format", "git-ai"]);
    let metadata: Value = serde_json::from_str(log.split_once("\n---\n").expect("a divider").1).expect("JSON");
    assert_eq!(metadata["base_commit_sha"].as_str().map(str::len), Some(64));
    repo.submit("stopped", &[item("slow", "echo >\"$HOME/../began\"; sleep 99")]);
    let driver = repo.start(&["run", "stopped"]);
    wait_for("the item", || repo.path("began").exists());
    repo.env.handoff(["cancel", "stopped"]).success();
    assert_eq!(driver.wait().0.code(), Some(4));
    let report = export(&repo, &["stopped", "--format", "junit"]);
    assert!(report.contains("skipped=\"1\""), "{report}");
    insta::assert_snapshot!(find_line(&report, "      <skipped "), @r#"      <skipped message="cancelled by the operator"/>"#);
    let trace = json_lines(&export(&repo, &["stopped", "--format", "otel"])).remove(0);
    let spans = &trace["resourceSpans"][0]["scopeSpans"][0]["spans"];
    assert_eq!((&spans[0]["status"]["code"], &spans[1]["status"]["code"]), (&json!(2), &json!(0)));
    assert_eq!(export(&repo, &["stopped", "--format", "agent-trace"]), "");
}

#[test]
fn export_marks_reused_products() {
    let repo = TestRepo::new();
    repo.drive("first", &[item("a", &format!("echo a >a; {REPORT}"))]).ends(0);
    repo.submit("second", &[item("a", &format!("echo a >a; {REPORT}"))]);
    repo.env.handoff(["run", "second", "--reuse"]).success();
    let record = json_lines(&export(&repo, &["second", "--format", "agent-trace"])).remove(0);
    assert_eq!((&ours(&record)["reused"]["run"], &ours(&record)["reused"]["item"]), (&json!("first"), &json!("a")));
    assert_eq!(record["files"][0]["conversations"][0]["contributor"]["type"], "unknown", "nothing was run here");
    let report = export(&repo, &["second", "--format", "junit"]);
    insta::assert_snapshot!(find_line(&report, "reused from "), @"reused from first/a, sealed as bb702051");
}

#[test]
fn export_strips_passwords_from_remotes() {
    let repo = TestRepo::new();
    repo.drive("r", &[item("a", "echo a >a")]).ends(0);
    repo.env.git(["clone", "--quiet", "--no-local", ".", "../clone"]).success();
    repo.env.handoff_in("clone", ["fetch", "origin"]).success();
    let remote = |url: &str| {
        repo.env.git_in("clone", ["remote", "set-url", "origin", url]).success();
        let args = ["export", "origin/r", "--format", "agent-trace", "--accept-untrusted"];
        let record = json_lines(&repo.env.handoff_in("clone", args).exit(0).stdout).remove(0);
        ours(&record)["evidence"]["remote"].clone()
    };
    assert_eq!(remote("https://me:secret@git.example/a/b.git"), "https://git.example/a/b.git");
    assert_eq!(remote("https://token@git.example"), "https://git.example");
    assert_eq!(remote("git@git.example:a/b.git"), "git@git.example:a/b.git");
    assert_eq!(remote("/home/me/secret-project"), Value::Null);
    assert_eq!(remote("file:///home/me/secret-project"), Value::Null);
}

#[test]
fn the_word_of_an_agent_is_marked_as_its_claim() {
    let repo = TestRepo::new();
    let answer = include_str!("../fixtures/agents/claude.json");
    repo.env.write("bin/claude", &format!("#!/bin/sh\necho a >a.txt\ncat <<'END'\n{answer}END\n"));
    let program = repo.path("bin/claude");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it is ours");
    repo.config("handoff.subagent.claude.command", program.to_str().expect("a path of ours"));
    let item = json!({"id": "a", "executor": "dispatch", "inputs": {"subagent": "claude"}});
    repo.drive("r", &[item]).ends(0);
    let trace = json_lines(&export(&repo, &["r", "--format", "otel"])).remove(0);
    let span = &trace["resourceSpans"][0]["scopeSpans"][0]["spans"][1];
    let attributes = span["attributes"].as_array().expect("a list").iter();
    let attributes: Vec<(&str, &Value)> =
        attributes.map(|one| (one["key"].as_str().expect("a text"), &one["value"])).collect();
    let claims = attributes.iter().position(|(key, _)| *key == "gen_ai.response.model").expect("it is there");
    let claimed: Vec<Value> = attributes[claims..].iter().map(|(key, value)| json!([key, value])).collect();
    assert_output!(claimed.iter().map(Value::to_string).collect::<Vec<_>>().join("\n"), @r#"
    ["gen_ai.response.model",{"stringValue":"claude-opus-4-8[1m]"}]
    ["gen_ai.conversation.id",{"stringValue":"e0203535-c2c6-435e-b72f-02c63ca491d2"}]
    ["gen_ai.usage.input_tokens",{"intValue":"7000"}]
    ["gen_ai.usage.output_tokens",{"intValue":"350"}]
    ["handoff.cached_tokens",{"intValue":"2800"}]
    ["handoff.cost_usd",{"stringValue":"0.03115"}]
    ["handoff.claims",{"arrayValue":{"values":[{"stringValue":"gen_ai.response.model"},{"stringValue":"gen_ai.conversation.id"},{"stringValue":"gen_ai.usage.input_tokens"},{"stringValue":"gen_ai.usage.output_tokens"},{"stringValue":"handoff.cached_tokens"},{"stringValue":"handoff.cost_usd"}]}}]
    "#);
    let log = export(&repo, &["r", "--format", "git-ai"]);
    let metadata: Value = serde_json::from_str(log.split_once("\n---\n").expect("a divider").1).expect("JSON");
    let session = metadata["sessions"].as_object().expect("an object").values().next().expect("a session");
    assert_eq!(
        (&session["agent_id"]["tool"], &session["agent_id"]["model"]),
        (&json!("claude"), &json!("claude-opus-4-8[1m]"))
    );
    let bom = export(&repo, &["r", "--format", "cyclonedx"]);
    assert!(bom.contains(r#"{"name":"git-handoff:claim:model","value":"claude-opus-4-8[1m]"}"#), "{bom}");
    let record = json_lines(&export(&repo, &["r", "--format", "agent-trace"])).remove(0);
    assert_eq!(ours(&record)["claims"]["usage"]["outputTokens"], 350);
}

#[test]
fn work_that_a_gate_sent_back_is_superseded_and_not_failed() {
    let repo = TestRepo::new();
    let mut gate = item("test", "git apply inputs/work && grep -q good a.txt");
    gate["needs"] = json!({"work": {"from": "edit", "select": {"kind": "patch"}}});
    gate["inputs"]["gate"] = json!({"subject": "edit", "onRed": "spawn-fix", "maxFixAttempts": 2,
        "fixTemplate": {"executor": "command", "inputs": {"command": format!("echo good >>a.txt; {REPORT}")}}});
    let items = [item("edit", "echo bad >>a.txt"), gate, after("next", &["test"], "true")];
    let plan = json!({"id": "r", "pattern": "pipeline", "items": items});
    repo.env.write("r.json", &plan.to_string());
    repo.env.handoff(["run", "../r.json"]).success();
    let report = export(&repo, &["r", "--format", "junit"]);
    let skipped = report.lines().filter_map(|line| line.trim().strip_prefix("<skipped message="));
    assert_eq!(skipped.collect::<Vec<_>>(), ["\"superseded by test~2\"/>", "\"superseded by next~2\"/>"]);
    assert!(report.contains("failures=\"0\""), "{report}");
    let status = repo.status("r");
    let listed = status["items"].as_array().expect("a list").iter().map(|item| item["id"].as_str().expect("a text"));
    let cases: Vec<&str> =
        report.split("<testcase name=\"").skip(1).filter_map(|case| case.split('"').next()).collect();
    assert_eq!(cases, listed.collect::<Vec<_>>(), "the order of status");
    let trace = json_lines(&export(&repo, &["r", "--format", "otel"])).remove(0);
    let root = &trace["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!((&root["name"], &root["status"]["code"]), (&json!("run r"), &json!(1)), "the run is good in the end");
    let records = json_lines(&export(&repo, &["r", "--format", "agent-trace"]));
    assert_eq!(ours(&records[0])["item"], "edit");
    assert!(records.iter().any(|record| record["files"][0]["conversations"][0]["contributor"]["type"] == "ai"));
}
