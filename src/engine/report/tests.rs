use super::*;
use crate::model::usage::Usage;
use crate::repository::config::PRESETS;

fn read(agent: &str, output: &str) -> Report {
    Report::read(&PRESETS[agent], output.as_bytes()).unwrap()
}

fn usage(input: u64, output: u64, cached: u64, price: Option<&str>) -> Usage {
    let cost_usd = price.map(|price| price.parse().unwrap());
    Usage { input_tokens: Some(input), output_tokens: Some(output), cached_tokens: Some(cached), cost_usd }
}

/// Asserts the claims in the real output of an agent.
fn assert_claims(report: &Report, model: Option<&str>, session: &str, usage: Usage) {
    let claims = report.claims().unwrap();
    let expected = Reported {
        model: model.map(str::to_owned),
        session: Some(session.to_owned()),
        usage: Some(usage),
        permission_denials: None,
    };
    assert_eq!(claims, expected);
    assert_eq!(report.error, None);
}

#[test]
fn claude_code_reports_its_use() {
    let session = "e0203535-c2c6-435e-b72f-02c63ca491d2";
    let expected = usage(7000, 350, 2800, Some("0.03115"));
    for output in [
        include_str!("../../../tests/fixtures/agents/claude.jsonl"),
        include_str!("../../../tests/fixtures/agents/claude.json"),
    ] {
        assert_claims(&read("claude", output), Some("claude-opus-4-8[1m]"), session, expected);
    }
}

#[test]
fn codex_reports_its_use() {
    let output = include_str!("../../../tests/fixtures/agents/codex.jsonl");
    let session = "01a21846-be25-7cb3-9ecf-fd658d1e6888";
    assert_claims(&read("codex", output), None, session, usage(7000, 350, 2800, None));
}

#[test]
fn gemini_cli_reports_its_use() {
    let output = include_str!("../../../tests/fixtures/agents/gemini.jsonl");
    let session = "8a56668c-fb3a-4dd0-9e85-2388a14a36ef";
    assert_claims(&read("gemini", output), Some("stub"), session, usage(8000, 400, 3200, None));
    let gemini_output = include_str!("../../../tests/fixtures/agents/gemini.json");
    let gemini_session = "68a8eeee-2bd4-479f-8d8c-1c68506bd9dd";
    assert_claims(&read("gemini", gemini_output), Some("stub"), gemini_session, usage(8000, 400, 3200, None));
}

#[test]
fn qwen_code_counts_the_cache_as_input() {
    let output = include_str!("../../../tests/fixtures/agents/qwen.jsonl");
    let session = "2906b458-54b7-4e6b-bb73-97350834b0d4";
    assert_claims(&read("qwen", output), Some("stub"), session, usage(7000, 350, 2800, None));
}

#[test]
fn aider_prints_rounded_numbers() {
    let claims = read("aider", include_str!("../../../tests/fixtures/agents/aider.txt")).claims().unwrap();
    let used = Usage { cached_tokens: None, ..usage(2300, 58, 0, Some("0.0079")) };
    assert_eq!((claims.model.as_deref(), claims.usage), (Some("anthropic/claude-sonnet-4-5"), Some(used)));
    let output =
        aider_line("12k sent, 1.2k cache write, 3k cache hit, 200 received") + &aider_line("1.0k sent, 5 received");
    let rounded = read("aider", &output).claims().unwrap();
    assert_eq!(rounded.usage, Some(usage(13000, 205, 3000, Some("0.02"))));
    for bad_output in
        ["Tokens: -1k sent, k received.", "Tokens: 1.5.5k sent, 9e9 received. Cost: $-1 session.", "Tokens:"]
    {
        assert_eq!(read("aider", bad_output).claims(), None, "{bad_output}");
    }
}

fn aider_line(tokens: &str) -> String {
    format!("Tokens: {tokens}. Cost: $0.01 message, $0.02 session.\n")
}

#[test]
fn agents_report_the_errors_of_their_service() {
    for (form, output, error) in [
        (
            "claude",
            include_str!("../../../tests/fixtures/agents/claude-400.jsonl"),
            "API Error: 400 the stand-in answers with 400",
        ),
        (
            "codex",
            include_str!("../../../tests/fixtures/agents/codex-401.jsonl"),
            "unexpected status 401 Unauthorized: the stand-in answers with 401",
        ),
        ("codex", include_str!("../../../tests/fixtures/agents/codex-400.jsonl"), "invalid_request_error"),
        ("gemini", include_str!("../../../tests/fixtures/agents/gemini-401.jsonl"), "UNAUTHENTICATED"),
        (
            "aider",
            include_str!("../../../tests/fixtures/agents/aider-401.txt"),
            "litellm.AuthenticationError: AnthropicException",
        ),
        (
            "qwen",
            include_str!("../../../tests/fixtures/agents/qwen-401.jsonl"),
            "[API Error: 401 the stand-in answers with 401]",
        ),
    ] {
        let report = read(form, output);
        assert!(report.error.as_ref().is_some_and(|text| text.contains(error)), "{form:?}: {:?}", report.error);
    }
}

#[test]
fn an_error_before_the_end_is_none_if_the_agent_goes_on() {
    let failed = r#"{"type":"turn.failed","error":{"message":"no"}}"#;
    let done = r#"{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":2}}"#;
    assert_eq!(read("codex", &format!("{failed}\n{done}\n")).error, None);
    assert_eq!(read("codex", &format!("{done}\n{failed}\n")).error.as_deref(), Some("no"));
    assert_eq!(read("codex", r#"{"type":"error","message":"Reconnecting"}"#).error, None);
}

#[test]
fn the_latest_numbers_of_each_session_are_added() {
    let output =
        [claude_result("a", "0.1"), claude_result("a", "0.2"), claude_result("b", "0.05")].join("\nsome text\n");
    let claims = read("claude", &output).claims().unwrap();
    let expected = Usage { cached_tokens: None, ..usage(20, 2, 0, Some("0.25")) };
    assert_eq!(
        (claims.usage, claims.session.as_deref(), claims.permission_denials),
        (Some(expected), Some("b"), Some(2))
    );
    let two_threads = codex_thread("a", 5) + &codex_thread("b", 7);
    let two_claims = read("codex", &two_threads).claims().unwrap();
    assert_eq!(two_claims.usage.unwrap().input_tokens, Some(12));
}

fn codex_thread(id: &str, tokens: u64) -> String {
    format!(
        "{{\"type\":\"thread.started\",\"thread_id\":\"{id}\"}}\n{{\"type\":\"turn.completed\",\"usage\":{{\"input_tokens\":{tokens}}}}}\n"
    )
}

fn claude_result(session: &str, price: &str) -> String {
    format!(
        r#"{{"type":"result","is_error":false,"session_id":"{session}","total_cost_usd":{price},"usage":{{"input_tokens":10,"output_tokens":1}},"permission_denials":[{{"tool_name":"Bash"}}]}}"#
    )
}

#[test]
fn hostile_values_count_as_silence() {
    for output in [
        r#"{"type":"result","total_cost_usd":-1,"usage":{"input_tokens":-5,"output_tokens":1.5}}"#,
        r#"{"type":"result","total_cost_usd":"1","usage":{"input_tokens":"5","output_tokens":[1]}}"#,
        r#"{"type":"result","total_cost_usd":1e400,"usage":{"input_tokens":9007199254740992}}"#,
        r#"{"type":"result","usage":{"input_tokens":9007199254740991,"cache_read_input_tokens":"1"}}"#,
        r#"{"type":"result","usage":{"input_tokens":9007199254740991,"cache_creation_input_tokens":1}}"#,
        r#"{"type":"result","usage":7,"modelUsage":[1],"permission_denials":{"length":9}}"#,
        r#"{"type":"result","usage":{"input_tokens":5"#,
        r#"{"type":["result"],"usage":{"input_tokens":5}}"#,
        r#"["type","result"]"#,
        "{\n\"type\": \"result\",\n",
        "}\n}\n{\n{\n}\n",
    ] {
        assert_eq!(read("claude", output).claims(), None, "{output}");
    }
    let text = r#"{"type":"result","session_id":5,"is_error":"yes","usage":{"input_tokens":5}}"#;
    let report = read("claude", text);
    assert_eq!((report.claims().unwrap().usage.unwrap().input_tokens, report.error), (Some(5), None));
}

#[test]
fn a_line_that_is_too_long_is_skipped() {
    let long = format!("{{\"type\":\"result\",\"x\":\"{}\"}}", "x".repeat(3 << 20));
    let short = r#"{"type":"result","usage":{"input_tokens":5}}"#;
    let report = read("claude", &format!("{long}\n{short}\n{long}"));
    assert_eq!(report.claims().unwrap().usage.unwrap().input_tokens, Some(5));
    let block = format!("{{\n{}}}\n{short}\n", "\"x\": 1,\n".repeat(1 << 18));
    let truncated = read("claude", &block);
    assert_eq!(truncated.claims().unwrap().usage.unwrap().input_tokens, Some(5));
    let deep = format!("{{\"type\":\"result\",\"x\":{}", "[".repeat(1 << 19));
    assert_eq!(read("claude", &deep).claims(), None);
}

#[test]
fn sums_stay_within_what_an_entry_can_hold() {
    let output = [largest_result("a"), largest_result("b")].join("\n");
    let claims = read("claude", &output).claims().unwrap();
    assert_eq!(claims.usage.unwrap(), Usage { output_tokens: Some(2), ..Usage::default() });
    let other = Reported { usage: Some(usage(1, 1, 1, Some("1"))), ..Reported::default() };
    let both = joined(Some(claims.clone()), Some(other)).unwrap();
    assert_eq!(both.usage.unwrap(), usage(1, 3, 1, Some("1")));
    assert_eq!(both.session, claims.session);
    assert_eq!(joined(None, Some(claims.clone())), Some(claims));
}

fn largest_result(session: &str) -> String {
    format!(
        r#"{{"type":"result","session_id":"{session}","usage":{{"input_tokens":9007199254740991,"output_tokens":1}}}}"#
    )
}
