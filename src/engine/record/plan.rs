//! The plans of recorded work.

use serde_json::{Map, Value, json};

use super::Recording;
use super::sealed::Decided;
use crate::git::snapshot::{self, Claim};
use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::name::{FilePath, RunId};
use crate::model::plan::{AGENT, BuiltIn, CHECK, COMMAND, COMMIT, DIRECTORY, GOAL, HERE, NO_STDIN, RECORDED, STDIN};
use crate::model::protected::OnProtectedChange;
use crate::model::quote::quoted;

/// The id of the item of a command.
pub const ITEM: &str = "record";

/// The input key of the patch of the commit before.
const BEFORE: &str = "before";

/// The digits of a commit's name in the id of its item.
const DIGITS: usize = 12;

/// Returns the plan of a command.
///
/// Changes to the protected files are judged by the check: the work may be to add a test.
pub(super) fn of_command(
    run: &RunId,
    recording: &Recording,
    (decided, protected): (&Decided, &[String]),
    directory: Option<&FilePath>,
) -> Value {
    let check = recording.check.as_ref().map(|check| in_directory(check, directory));
    let check = check.or_else(|| decided.check.clone());
    let agent = recording.agent.as_ref();
    let inputs = [
        (COMMAND, Some(recording.line.as_ref().map_or_else(|| json!(recording.command), |line| json!(line)))),
        // An agent's own line reads its task there.
        (STDIN, agent.is_none().then(|| json!(NO_STDIN))),
        (AGENT, agent.map(|agent| json!(agent))),
        (CHECK, check.map(|check| json!(check))),
        (GOAL, recording.goal.as_ref().map(|goal| json!(goal))),
        (DIRECTORY, directory.map(|directory| json!(directory))),
        (HERE, recording.here.map(|_| json!(true))),
        (RECORDED, Some(json!(decided.sealed))),
    ];
    let inputs: Map<String, Value> =
        inputs.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
    let mut item = json!({"id": ITEM, "executor": BuiltIn::Command.name(), "inputs": inputs, "maxAttempts": 1});
    if let Some(timeout) = decided.timeout {
        item["timeout"] = json!(timeout);
    }
    if !protected.is_empty() {
        item["protect"] = json!(protected);
        item["onProtectedChange"] = json!(OnProtectedChange::Judge);
    }
    of_items(run, &[item])
}

/// Returns the plan of these items.
pub(super) fn of_items(run: &RunId, items: &[Value]) -> Value {
    json!({"id": run, "items": items})
}

/// Returns an item for each commit. Its patch is the whole difference from the base, so it consumes
/// that of the commit before, unless that is the same as the base.
pub(super) fn of_claims(
    store: &Store,
    base: Oid,
    claims: &[Claim],
    goal: Option<&str>,
) -> Result<Vec<Value>, snapshot::Error> {
    let mut items = Vec::new();
    let mut before: Option<(String, bool)> = None;
    for Claim { commit, author, date, subject } in claims {
        let name = commit.to_string();
        let id: String = name.chars().take(DIGITS).collect();
        let mut inputs = json!({COMMIT: name, "author": author, "date": date, "subject": subject});
        if let Some(goal) = goal {
            inputs[GOAL] = json!(goal);
        }
        let mut item = json!({"id": id, "executor": BuiltIn::Claimed.name(), "inputs": inputs, "maxAttempts": 1});
        if let Some((before, differs)) = &before {
            item["depends_on"] = json!([before]);
            if *differs {
                item["needs"] = json!({BEFORE: {"from": before, "select": {"kind": "patch"}}});
            }
        }
        items.push(item);
        before = Some((id, !snapshot::same_tree(store, base, *commit)?));
    }
    Ok(items)
}

/// Returns a command line that starts in a folder of the worktree. A check has no setting for that,
/// because others repeat it as it is recorded.
fn in_directory(line: &str, directory: Option<&FilePath>) -> String {
    directory.map_or_else(|| line.to_owned(), |below| format!("cd {} || exit\n{line}", quoted(below.as_str())))
}
