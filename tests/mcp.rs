//! The tools of agents over the Model Context Protocol, spoken to as a client does: one line of
//! JSON a message.

mod arguments;
mod documents;
mod ending;
mod handing;
mod hints;
mod outside;
mod pieces;
mod progress;
mod protocol;
mod resources;
mod runs;
mod schemas;
mod sharing;
mod warnings;
mod watching;
mod writing;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::common::{Environment, answers, program_path};

use protocol::TOOLS;

/// A client of a server that it started.
struct Client {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    last: u64,
    /// The declared output schemas, once listed.
    listed: Option<Value>,
}

impl Client {
    /// Starts a server in a folder and greets it.
    fn start(env: &Environment, dir: &str, more: &[&str]) -> Self {
        let mut command = env.command(program_path(), dir);
        command.env_remove("HANDOFF_ACTOR").arg("mcp").args(more);
        Self::greet(command)
    }

    fn greet(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program can be run");
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut client = Self { child, to, from, last: 0, listed: None };
        let greeting = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}});
        let answer = client.ask("initialize", &greeting);
        assert_eq!(answer["result"]["serverInfo"]["name"], "git-handoff", "{answer}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        let to = self.to.as_mut().expect("the server is spoken to");
        writeln!(to, "{message}").expect("the server listens");
    }

    /// Sends a request and returns the answer to it; whatever else is on standard output fails the
    /// test.
    fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}));
        let mut line = String::new();
        self.from.read_line(&mut line).expect("the server answers");
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"));
        assert_eq!(answer["id"], id, "{answer}");
        if answer["result"].get("structuredContent").is_some() {
            answers::hold_tool(parameters["name"].as_str().unwrap_or_default(), &answer["result"]);
        }
        answer
    }

    /// Validates a tool's answer against its declared schema, as clients do.
    #[track_caller]
    fn hold(&mut self, tool: &str, answer: &Value) {
        if self.listed.is_none() {
            self.listed = Some(self.ask("tools/list", &json!({})));
        }
        let tools = self.listed.as_ref().expect("it was asked")["result"]["tools"].as_array().expect("there are tools");
        let listed = tools.iter().find(|entry| entry["name"] == tool).expect("it is a tool");
        let schema = jsonschema::validator_for(&listed["outputSchema"]).expect("it is a schema");
        let wrong: Vec<_> = schema.iter_errors(answer).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{tool}: {answer} {wrong:?}");
    }

    /// Calls a tool that must succeed; returns its structured answer.
    #[track_caller]
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        assert_eq!(result["isError"], false, "{tool}: {answer}");
        if tool == "submit" {
            answers::hold_plan(&arguments["plan"]);
        }
        let text = result["content"][0]["text"].as_str().expect("the answer is there as text, too");
        assert_eq!(serde_json::from_str::<Value>(text).ok().as_ref(), Some(&result["structuredContent"]));
        self.hold(tool, &result["structuredContent"]);
        result["structuredContent"].clone()
    }

    /// Calls a tool that must be refused; returns the text of the error, and the error.
    #[track_caller]
    fn refused(&mut self, tool: &str, arguments: &Value, code: &str) -> (String, Value) {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        assert_eq!(result["isError"], true, "{tool}: {answer}");
        let error = &result["structuredContent"];
        assert_eq!((&error["schema"], &error["code"]), (&"git-handoff.error/1".into(), &code.into()), "{answer}");
        self.hold(tool, error);
        for hint in hints(error) {
            self.hold_hint(&hint);
        }
        (result["content"][0]["text"].as_str().expect("there is a text").to_owned(), error.clone())
    }

    /// Calls a tool with arguments that its schema forbids; returns the message of the error.
    #[track_caller]
    fn invalid(&mut self, tool: &str, arguments: &Value) -> String {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        assert_eq!((&answer["error"]["code"], answer.get("result")), (&json!(-32602), None), "{tool}: {answer}");
        answer["error"]["message"].as_str().expect("there is a message").to_owned()
    }

    /// Fails unless a hint names a tool, or what the operator does, or needs no command at all.
    #[track_caller]
    fn hold_hint(&self, hint: &str) {
        let tools = self.listed.as_ref().expect("it was asked")["result"]["tools"].as_array().expect("there are tools");
        let call = hint.strip_prefix("call `").and_then(|call| call.split_once('`'));
        if let Some((tool, rest)) = call {
            let listed =
                tools.iter().find(|entry| entry["name"] == tool).unwrap_or_else(|| panic!("no such tool: {hint}"));
            let mut arguments =
                serde_json::Deserializer::from_str(rest.strip_prefix(" with ").unwrap_or("{}")).into_iter();
            let arguments: Value = arguments.next().expect("there are arguments").expect("they are JSON");
            for name in arguments.as_object().expect("they are named").keys() {
                assert!(listed["inputSchema"]["properties"].get(name).is_some(), "{tool} has no {name}: {hint}");
            }
        } else {
            let is_command = ["git ", " --", "command"].iter().any(|sign| hint.contains(sign));
            assert!(!is_command || hint.contains("operator"), "{hint}");
        }
    }

    /// Closes the server's standard input and waits for its end.
    #[track_caller]
    fn end(mut self) {
        drop(self.to.take());
        let mut line = String::new();
        self.from.read_line(&mut line).expect("standard output ends");
        assert_eq!(line, "");
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0));
    }
}

/// Reads the next message of a server: an answer, or a notification.
fn next_message(client: &mut Client) -> Value {
    let mut line = String::new();
    client.from.read_line(&mut line).expect("the server answers");
    serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
}

/// Returns the hints of an error, with those of the problems of a plan.
fn hints(error: &Value) -> Vec<String> {
    let problems = error["details"]["problems"].as_array().into_iter().flatten();
    let all = std::iter::once(error).chain(problems).filter_map(|about| about["hint"].as_str());
    all.map(str::to_owned).collect()
}

/// Returns the actor of the latest entry of a thread.
fn actor(env: &Environment, thread: &str) -> Value {
    let entry = env.git(["log", "-1", "--format=%b", &format!("refs/handoff/threads/{thread}")]).success();
    serde_json::from_str::<Value>(entry.trim()).expect("an entry is JSON")["actor"].clone()
}

/// Makes a repository with one commit.
fn repository() -> Environment {
    let env = Environment::empty();
    env.git_in("", ["init", "--quiet", "repo"]).success();
    env.git(["commit", "--quiet", "--allow-empty", "--message", "Start"]).success();
    env.git(["config", "handoff.mcp.executors", "command"]).success();
    env
}
