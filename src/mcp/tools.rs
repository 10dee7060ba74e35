//! What a tool is: a name, what it takes, and a function of the session and that.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use base64ct::{Base64, Encoding as _};
use git_handoff::git::remote::Reach;
use git_handoff::git::stop::Stop;
use git_handoff::model::hints::Hint;
use git_handoff::repository::{Environment, Repository};
use rmcp::handler::server::common::schema_for_input;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::{self, JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::cli::{Failure, Output};

use super::ending::Ending;
use super::progress::Progress;
use super::schemas;

/// The most bytes of a text in an answer.
pub(super) const MOST_TEXT: usize = 1 << 20;

/// How long one question to a remote may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// What all calls of a server have in common.
#[derive(Clone)]
pub(super) struct Session {
    /// Where it runs, and in whose name.
    pub(super) environment: Environment,
    /// In whose name it adopts.
    pub(super) me: Option<String>,
    /// How many watched runs may be looked at now.
    pub(super) looks: Arc<Semaphore>,
    /// When it is over.
    pub(super) ending: Ending,
}

/// One call.
pub(super) struct Call {
    /// The session that it belongs to.
    pub(super) session: Session,
    /// True once the client no longer waits for the answer.
    pub(super) given_up: Stop,
    /// What the client is told while it waits.
    pub(super) progress: Progress,
}

impl Call {
    /// Opens the repository as it is now.
    pub(super) fn repository(&self) -> Result<Repository, Failure> {
        Ok(Repository::open(self.session.environment.clone())?)
    }

    /// Returns how remotes are reached: nobody is there to be asked, and whoever does not answer is not waited for, nor is anybody
    /// once the call is given up.
    pub(super) fn reach(&self, repository: &Repository) -> Reach {
        let unless = Some(self.given_up.clone());
        Reach { prompt: false, within: Some(PATIENCE), unless, ..repository.reach() }
    }

    /// Returns where warnings go: to standard error.
    #[expect(clippy::unused_self, reason = "only a call that is answered elsewhere has no use for standard output")]
    pub(super) fn output(&self) -> Output {
        Output::new(true)
    }
}

/// What runs a tool that works, off the loop that reads requests.
pub(super) type Work = dyn Fn(&Call, JsonObject) -> Result<Value, Failure> + Send + Sync;

/// What comes of a tool that waits.
pub(super) type Waiting = Pin<Box<dyn Future<Output = Result<Value, Failure>> + Send>>;

/// How a tool is run.
#[derive(Clone)]
pub(super) enum Run {
    /// It takes a thread until it is done.
    Work(Arc<Work>),
    /// It does so, and may spend the time waiting for a remote.
    Reach(Arc<Work>),
    /// It does nothing but wait, and takes a thread for moments only.
    Wait(fn(Call, JsonObject) -> Waiting),
}

/// A tool.
pub(super) struct Entry {
    /// How it is shown to clients.
    pub(super) tool: Tool,
    /// What it does.
    pub(super) run: Run,
}

impl Entry {
    /// Returns true if the tool appends and asks no remote. Behind one that does, others would wait for the remote.
    pub(super) fn only_writes(&self) -> bool {
        let reads = self.tool.annotations.as_ref().and_then(|annotations| annotations.read_only_hint);
        matches!(self.run, Run::Work(_)) && reads == Some(false)
    }

    /// Says that the tool asks remotes.
    pub(super) fn reaching_out(self) -> Self {
        let run = match self.run {
            Run::Work(work) => Run::Reach(work),
            other => other,
        };
        Self { run, ..self }
    }
}

/// Whether a tool changes anything.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// It only looks.
    Reads,
    /// It appends; nothing is ever taken away.
    Appends,
}

/// Makes a tool of a function. Its arguments are described by the type of the parameters, its answers by these forms.
pub(super) fn tool<P: DeserializeOwned + JsonSchema + 'static, R: Serialize + 'static>(
    name: &'static str,
    about: &'static str,
    effect: Effect,
    forms: &[&str],
    run: fn(&Call, &P) -> Result<R, Failure>,
) -> Entry {
    let run = move |call: &Call, arguments: JsonObject| answer(&run(call, &read(name, arguments)?)?);
    Entry { tool: shown::<P>(name, about, effect, forms), run: Run::Work(Arc::new(run)) }
}

/// Returns what was found or done as clients read it.
pub(super) fn answer(answer: &impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(answer).map_err(|_| Failure::bug())
}

/// Returns a tool as it is shown to clients.
pub(super) fn shown<P: JsonSchema + 'static>(
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

/// Reads the arguments of a call.
pub(super) fn read<P: DeserializeOwned>(name: &str, arguments: JsonObject) -> Result<P, Failure> {
    serde_json::from_value(Value::Object(arguments)).map_err(|e| Failure::usage(format!("cannot call {name}: {e}")))
}

/// Does something on a thread of its own. A panic ends this and is told on standard error; the server goes on.
pub(super) async fn off_the_loop<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(Failure::bug()))
}

/// A parameter that is a JSON object. Its text is accepted too, for models that write the object into a string.
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

/// How bytes are written down in JSON.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) enum Encoding {
    /// As they are.
    #[default]
    #[serde(rename = "utf-8")]
    Text,
    /// In base64, with padding.
    #[serde(rename = "base64")]
    Base64,
}

impl Encoding {
    /// Returns the bytes that a text stands for.
    pub(super) fn read(self, text: &str) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Text => Ok(text.as_bytes().to_vec()),
            Self::Base64 => {
                Base64::decode_vec(text).map_err(|_| Failure::usage("this is not base64 with padding".into()))
            }
        }
    }

    /// Writes bytes down, as they are if that can be; returns the word for how as well.
    pub(super) fn write(bytes: Vec<u8>) -> (String, &'static str) {
        match String::from_utf8(bytes) {
            Ok(text) => (text, "utf-8"),
            Err(other) => (Base64::encode_string(other.as_bytes()), "base64"),
        }
    }
}

/// Refuses to answer with more bytes than an answer has; the command does it.
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
