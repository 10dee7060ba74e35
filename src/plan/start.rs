//! The example plan of `plan new`.

use serde::Serialize;
use serde_json::json;

use crate::model::name::RunId;

/// The work of the first item without an agent.
const COMMAND: &str = r#""executor": "command",<protect>
      "inputs": {"command": "git log --oneline -5 > latest.txt"}"#;

/// The work of the first item with an agent.
const AGENT: &str = r#""executor": "dispatch",<protect>
      "inputs": {"subagent": <agent>, "workerInput": {"goal": "Write the last five commits into latest.txt, one on each line"}}"#;

/// Two items; the second begins on the patch of the first. The placeholders are not valid.
const PLAN: &str = r#"{
  "$comment": "A plan for git handoff. Everything called $comment means nothing, and may go. `git handoff validate` says what is wrong with it.",
  "id": "<id>",
  "items": [
    {
      "$comment": "Each item runs in a worktree of its own, at the commit that the run starts from. What it changes there is its patch; what it writes below outputs/ is handed over by its path.",
      "id": "write",
      <work>
    },
    {
      "$comment": "What it needs lies below inputs/, by the name that it is given here, and the item waits for it. With apply, a patch is applied before the item begins. For an agent, register one (git config handoff.subagent.NAME.command 'CMD') and write: executor dispatch, inputs {subagent: NAME, prompt: ...}.",
      "id": "read",
      "executor": "command",<protect>
      "inputs": {"command": "mkdir -p outputs; wc -l < latest.txt > outputs/lines.txt"},
      "needs": {"work": {"from": "write", "select": {"kind": "patch"}, "apply": true}}
    }
  ]
}
"#;

/// Returns a valid plan with this id, whose items protect these files, and whose first item is the
/// agent's, if one is given.
pub fn start(id: &RunId, protect: &[String], agent: Option<&str>) -> String {
    let fields = match protect {
        [] => String::new(),
        protect => format!("\n      \"protect\": {},\n      \"onProtectedChange\": \"judge\",", json!(protect)),
    };
    let work = agent.map_or(COMMAND.to_owned(), |agent| AGENT.replace("<agent>", &json!(agent).to_string()));
    PLAN.replace("<work>", &work).replace("<protect>", &fields).replacen("<id>", id.as_str(), 1)
}

/// The output of `plan new --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.plan-new/1")]
pub struct PlanStarted<'a> {
    /// The file.
    pub file: &'a str,
    /// The id of its run.
    pub id: &'a RunId,
}

impl<'a> PlanStarted<'a> {
    /// Returns the answer for a written file.
    pub fn new(file: &'a str, id: &'a RunId) -> Self {
        Self { file, id }
    }
}
