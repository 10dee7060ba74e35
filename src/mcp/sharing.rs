//! Tools that push and fetch threads, as far as the operator allows.

use git_handoff::git::remote::{Remote, Remotes};
use git_handoff::model::hints;
use git_handoff::repository::Repository;
use git_handoff::share::answers::{FetchAnswer, PushAnswer};
use git_handoff::share::{Kind, Space, fetch, push};
use git_handoff::thread::own_threads;
use git_handoff::thread::target::id;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::Value;

use crate::output::Failure;

use super::tools::{Call, Effect, Entry, answer, tool};

/// The maximum number of refs in an answer, and of skipped ones.
const MOST: usize = 1000;

/// Returns the tools.
pub(super) fn tools() -> Vec<Entry> {
    vec![
        tool(
            "thread_push",
            "Push a thread and its log to a remote that the operator allowed, so that other clones can fetch it. Pushes no run.",
            Effect::Appends,
            &["push"],
            thread_push,
        )
        .reaching_out(),
        tool(
            "thread_fetch",
            "Fetch threads from a remote that the operator allowed. A fetched thread is named REMOTE/THREAD: `verify` it, then continue \
             with `fork`, or with `adopt_checkpoint` if you have a descriptor.",
            Effect::Appends,
            &["fetch"],
            thread_fetch,
        )
        .reaching_out(),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Push {
    /// The thread
    thread_id: String,
    /// The name of the remote [default: the one that is allowed]
    remote: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Fetch {
    /// The thread [default: all]
    thread_id: Option<String>,
    /// The name of the remote [default: the one that is allowed]
    remote: Option<String>,
}

/// Returns the named remote, if the operator allows it: only configured remotes.
fn allowed(repository: &Repository, requested: Option<&str>) -> Result<Remote, Failure> {
    let remotes = Remotes::read(&repository.store)?;
    let name = match (requested, repository.config.mcp_remotes.as_slice()) {
        (Some(name), _) => name.to_owned(),
        (None, [only]) => only.clone(),
        (None, []) => remotes.default(true),
        (None, several) => {
            return Err(Failure::usage(format!("give a `remote`: {} are allowed", several.join(", "))));
        }
    };
    if !repository.config.mcp_remotes.contains(&name) {
        let message = format!("{name:?} is no remote that threads may be pushed to and fetched from here");
        let cause = match repository.config.mcp_remotes.as_slice() {
            [] => "`handoff.mcp.remotes` names none".to_owned(),
            some => format!("`handoff.mcp.remotes` names {}", some.join(", ")),
        };
        let failure = Failure::refused("remote-not-allowed", message).hint(hints::allow_remote(&name));
        return Err(Failure { causes: vec![cause], ..failure });
    }
    if !remotes.names().contains(&name.as_str()) {
        let message = format!("`handoff.mcp.remotes` names {name:?}, which is no remote of this repository");
        return Err(Failure::refused("unknown-remote", message).hint(hints::remotes()));
    }
    Ok(remotes.find(&name)?)
}

fn space() -> Result<Space, Failure> {
    Space::new(None).ok_or_else(Failure::bug)
}

fn thread_push(call: &Call, parameters: &Push) -> Result<Value, Failure> {
    let repository = call.repository()?;
    let thread = id(&parameters.thread_id)?;
    let remote = allowed(&repository, parameters.remote.as_deref())?;
    if !own_threads(&repository.store)?.contains(&thread) {
        return Err(git_handoff::thread::Error::Unknown(thread).into());
    }
    let request = push::Request {
        remote,
        selection: push::Selection::Named(vec![thread.as_str().to_owned()]),
        threads_only: true,
        transcripts: false,
        space: space()?,
        dry_run: false,
        gate: repository.gate(),
    };
    let reach = call.reach(&repository);
    let writer = repository.log_writer()?;
    let pushed = push::push(&repository.store, &reach, &request, writer.as_ref())
        .map_err(|error| Failure::of_push(error, &request))?;
    if let Some(rival) = pushed.left_out().next() {
        return Err(push::Error::Blocked(Box::new(rival.clone())).into());
    }
    Ok(bounded(answer(&PushAnswer::new(&request, &pushed))?, thread.as_str()))
}

fn thread_fetch(call: &Call, parameters: &Fetch) -> Result<Value, Failure> {
    let repository = call.repository()?;
    let thread = parameters.thread_id.as_deref().map(id).transpose()?;
    let request = fetch::Request {
        remote: allowed(&repository, parameters.remote.as_deref())?,
        names: thread.iter().map(|thread| thread.as_str().to_owned()).collect(),
        threads_only: true,
        transcripts: false,
        content: false,
        space: space()?,
    };
    let fetched = fetch::fetch(&repository.store, &call.reach(&repository), &request)
        .map_err(|error| Failure::from(error).hint(hints::fetch(&request.remote.given)))?;
    let name = request.names.first().map_or("", String::as_str);
    let refused = fetched.refs.iter().find(|outcome| {
        outcome.place.kind == Kind::Thread && outcome.place.name == name && outcome.status.is_refused()
    });
    if let Some(outcome) = refused {
        return Err(not_taken(outcome, &request));
    }
    let (remote, fetched) = (request.remote.name.as_str(), &fetched);
    Ok(bounded(answer(&FetchAnswer { remote, fetched, followed: &[], taken_in: &[], more: None })?, name))
}

/// Returns the reason why a requested thread was not updated.
fn not_taken(outcome: &fetch::FetchedRef, request: &fetch::Request) -> Failure {
    let why = match &outcome.status {
        fetch::Status::Unsound(why) => format!("is not sound: {why}"),
        fetch::Status::Unfit(what) => format!("is {what}"),
        _ => "was rewritten since it was fetched".to_owned(),
    };
    let effect = if outcome.old.is_some() { "what was fetched before is kept" } else { "it was not taken" };
    let (name, remote) = (&outcome.place.name, &request.remote.name);
    let failure = Failure::refused("unsound", format!("thread {name:?} on {remote} {why}; {effect}"));
    match outcome.old {
        Some(_) => failure.hint(hints::verify_thread(format!("{remote}/{name}"))),
        None => failure.hint(hints::fetch(&request.remote.given)),
    }
}

/// Truncates an answer and counts the rest; requested refs come first, then rejected ones.
fn bounded(mut answer: Value, name: &str) -> Value {
    let mut left_out = 0;
    if let Some(refs) = answer["refs"].as_array_mut() {
        refs.sort_by_key(|entry: &Value| {
            (entry["name"] != name, entry["reason"].is_null(), entry["status"] == "up-to-date")
        });
        left_out = refs.len().saturating_sub(MOST);
        refs.truncate(MOST);
    }
    for list in ["skipped", "unsound", "vanished"] {
        if let Some(list) = answer.get_mut(list).and_then(Value::as_array_mut) {
            list.truncate(MOST);
        }
    }
    if left_out > 0 {
        answer["more"] = left_out.into();
    }
    answer
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_bounded_and_what_was_asked_for_is_in_it() {
        let refs: Vec<Value> =
            (0..MOST + 7).map(|name| json!({"kind": "thread", "name": name.to_string(), "status": "new"})).collect();
        let last = (MOST + 6).to_string();
        let answer = bounded(json!({"refs": refs, "skipped": vec!["x"; MOST + 1]}), &last);
        assert_eq!(answer["refs"].as_array().map(Vec::len), Some(MOST));
        assert_eq!((&answer["refs"][0]["name"], &answer["refs"][1]["name"]), (&last.into(), &"0".into()));
        assert_eq!((&answer["more"], answer["skipped"].as_array().map(Vec::len)), (&7.into(), Some(MOST)));
        assert_eq!(bounded(json!({"refs": refs[..3]}), "")["more"], Value::Null);
    }
}
