//! The definition of a tool: name, parameters, and a function of the session.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64ct::{Base64, Encoding as _};
use git_handoff::git::cancellation::Cancellation;
use git_handoff::git::remote::Reach;
use git_handoff::model::hints::Hint;
use git_handoff::repository::{Environment, Repository};
use rmcp::handler::server::common::schema_for_input;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::{self, JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::output::Failure;

use super::ending::Ending;
use super::progress::Progress;
use super::schemas;
use super::watch::Watches;

/// The maximum size of a text in an answer, in bytes.
pub(super) const MOST_TEXT: usize = 1 << 20;

/// The time limit of a request to a remote.
const PATIENCE: Duration = Duration::from_secs(600);

/// The context of a server.
#[derive(Clone)]
pub(super) struct Session {
    /// Directory and actor.
    pub(super) environment: Environment,
    /// The name for adopting.
    pub(super) me: Option<String>,
    /// The runs that clients watch.
    pub(super) watches: Arc<Watches>,
    /// The end of the session.
    pub(super) ending: Ending,
}

/// A call.
pub(super) struct Call {
    /// Its session.
    pub(super) session: Session,
    /// True once the client no longer waits for the answer.
    pub(super) given_up: Cancellation,
    /// The progress for the client.
    pub(super) progress: Progress,
    /// The warnings for the client.
    pub(super) warnings: Warnings,
}

/// The warnings of a call, in their order.
pub(super) type Warnings = Arc<Mutex<Vec<String>>>;

impl Call {
    /// Opens the repository.
    pub(super) fn repository(&self) -> Result<Repository, Failure> {
        Ok(Repository::open(self.session.environment.clone())?)
    }

    /// Returns how to reach remotes: without prompts, with a time limit, and only while the client
    /// waits.
    pub(super) fn reach(&self, repository: &Repository) -> Reach {
        let unless = Some(self.given_up.clone());
        Reach { prompt: false, within: Some(PATIENCE), unless, ..repository.reach() }
    }

    /// Adds a warning to the answer.
    pub(super) fn warn(&self, text: &str) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
    }
}

/// A blocking tool, run outside the request loop.
pub(super) type Work = dyn Fn(&Call, JsonObject) -> Result<Value, Failure> + Send + Sync;

/// The future of a waiting tool.
pub(super) type Waiting = Pin<Box<dyn Future<Output = Result<Value, Failure>> + Send>>;

/// The execution of a tool.
#[derive(Clone)]
pub(super) enum Run {
    /// On a thread.
    Work(Arc<Work>),
    /// On a thread, possibly waiting for a remote.
    Reach(Arc<Work>),
    /// Asynchronously, with short use of threads.
    Wait(fn(Call, JsonObject) -> Waiting),
}

/// The kinds of calls, by how they delay each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Only reads here.
    Reading,
    /// Appends, and asks no remote.
    Writing,
    /// Asks a remote.
    Reaching,
}

/// A tool.
pub(super) struct Entry {
    /// The description for clients.
    pub(super) tool: Tool,
    /// The function.
    pub(super) run: Run,
}

impl Entry {
    /// Returns the calls that a call of the tool queues with.
    pub(super) fn lane(&self) -> Lane {
        let reads = self.tool.annotations.as_ref().and_then(|annotations| annotations.read_only_hint);
        match &self.run {
            Run::Reach(_) => Lane::Reaching,
            Run::Work(_) if reads == Some(false) => Lane::Writing,
            Run::Work(_) | Run::Wait(_) => Lane::Reading,
        }
    }

    /// Marks a tool that asks remotes.
    pub(super) fn reaching_out(self) -> Self {
        let run = match self.run {
            Run::Work(work) => Run::Reach(work),
            other => other,
        };
        Self { run, ..self }
    }
}

/// The effect of a tool.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Read-only.
    Reads,
    /// Append-only.
    Appends,
}

/// Creates a tool from a function. The parameter type describes its arguments, these forms its
/// answers.
pub(super) fn tool<P: DeserializeOwned + JsonSchema + 'static, R: Serialize + 'static>(
    name: &'static str,
    about: &'static str,
    effect: Effect,
    forms: &[&str],
    run: fn(&Call, &P) -> Result<R, Failure>,
) -> Entry {
    Entry {
        tool: describe_tool::<P>(name, about, effect, forms),
        run: Run::Work(Arc::new(move |call: &Call, arguments: JsonObject| {
            answer(&run(call, &read(name, arguments)?)?)
        })),
    }
}

/// Formats a result for clients.
pub(super) fn answer(answer: &impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(answer).map_err(|_| Failure::bug())
}

/// Returns the description of a tool for clients.
pub(super) fn describe_tool<P: JsonSchema + 'static>(
    name: &'static str,
    about: &'static str,
    effect: Effect,
    forms: &[&str],
) -> Tool {
    let derived = schema_for_input::<P>().expect("the parameters of every tool are an object");
    let annotations = ToolAnnotations::new().read_only(effect == Effect::Reads).destructive(false).open_world(false);
    Tool::new(name, about, schemas::input(&derived))
        .with_raw_output_schema(Arc::new(schemas::answer(forms)))
        .with_annotations(annotations)
}

/// Parses the arguments of a call.
pub(super) fn read<P: DeserializeOwned>(name: &str, arguments: JsonObject) -> Result<P, Failure> {
    serde_json::from_value(Value::Object(arguments)).map_err(|e| Failure::usage(format!("cannot call {name}: {e}")))
}

/// Runs a function on a thread. A panic is reported on standard error, and the server continues.
pub(super) async fn off_the_loop<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(Failure::bug()))
}

/// The parameters of a tool without parameters.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Nothing {}

/// A parameter that is a JSON object, or its text, because some models pass a string.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Json(Value);

impl Json {
    /// Returns the bytes of the text.
    pub(super) fn bytes(&self) -> Vec<u8> {
        match &self.0 {
            Value::String(text) => text.clone().into_bytes(),
            other => other.to_string().into_bytes(),
        }
    }
}

/// The encoding of bytes in JSON.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) enum Encoding {
    /// UTF-8.
    #[default]
    #[serde(rename = "utf-8")]
    Text,
    /// In base64, with padding.
    #[serde(rename = "base64")]
    Base64,
}

impl Encoding {
    /// Decodes a text.
    pub(super) fn read(self, text: &str) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Text => Ok(text.as_bytes().to_vec()),
            Self::Base64 => {
                Base64::decode_vec(text).map_err(|_| Failure::usage("this is not base64 with padding".into()))
            }
        }
    }

    /// Encodes bytes, as UTF-8 if possible; returns text and encoding.
    pub(super) fn write(bytes: Vec<u8>) -> (String, &'static str) {
        match String::from_utf8(bytes) {
            Ok(text) => (text, "utf-8"),
            Err(other) => (Base64::encode_string(other.as_bytes()), "base64"),
        }
    }
}

/// Fails if an answer would be too large; a command can do it.
pub(super) fn check_size(what: &str, size: u64, command: impl FnOnce() -> Hint) -> Result<(), Failure> {
    if size <= MOST_TEXT as u64 {
        return Ok(());
    }
    let message = format!("the {what} has {size} bytes, and an answer at most {MOST_TEXT}");
    Err(Failure::refused("too-large", message).hint(command()))
}

impl JsonSchema for Json {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}
