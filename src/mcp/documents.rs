//! Tools about documents: named files of a run, each with its revisions.

use git_handoff::answers::program::DocumentContent;
use git_handoff::model::hints;
use git_handoff::run::operate::documents::{DocumentPut, NewRevision};
use git_handoff::run::query::Target;
use git_handoff::run::query::documents::{DocumentLog, Documents, WantedRevision};
use git_handoff::share::anchor::gate::Terms;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use crate::output::Failure;

use super::tools::{Call, Effect, Encoding, Entry, check_size, tool};

/// Returns the tools.
pub(super) fn tools() -> Vec<Entry> {
    vec![
        tool("doc_put", "Write a document of an open run, as its next revision.", Effect::Appends, &["document"], put),
        tool(
            "doc_get",
            "Return a document of a run. With `expect`, a document of another schema is refused.",
            Effect::Reads,
            &["document-content"],
            get,
        ),
        tool(
            "doc_list",
            "List the documents of a run, each at its highest revision.",
            Effect::Reads,
            &["documents"],
            list,
        ),
        tool(
            "doc_log",
            "List the revisions of a document, newest first, with their authors.",
            Effect::Reads,
            &["document-log"],
            log,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Put {
    /// The run
    run: String,
    /// The document's name
    name: String,
    /// The content
    content: String,
    /// The encoding of the content [default: utf-8]
    #[serde(default)]
    encoding: Encoding,
    /// The registered schema to check it against: ID@N
    schema: Option<String>,
    /// Write only if the highest revision has this SHA-256, or with `none`, if there is none
    if_match: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Get {
    /// The run
    run: String,
    /// The document's name
    name: String,
    /// The revision [default: the highest]
    revision: Option<u64>,
    /// The schema that it must have: ID, or ID@N like report@1
    expect: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct List {
    /// The run
    run: String,
}

#[derive(Deserialize, JsonSchema)]
struct Log {
    /// The run
    run: String,
    /// The document's name
    name: String,
}

fn put(call: &Call, parameters: &Put) -> Result<DocumentPut, Failure> {
    let repository = call.repository()?;
    let content = parameters.encoding.read(&parameters.content)?;
    let request = NewRevision {
        run: &parameters.run,
        name: &parameters.name,
        schema: parameters.schema.as_deref(),
        if_match: parameters.if_match.as_deref(),
    };
    repository.put_document(&request, || Ok(repository.save_bytes("content", &content)?))
}

fn get(call: &Call, parameters: &Get) -> Result<DocumentContent, Failure> {
    let repository = call.repository()?;
    let request = WantedRevision {
        run: &parameters.run,
        name: &parameters.name,
        revision: parameters.revision,
        expect: parameters.expect.as_deref(),
    };
    let (name, schema) = request.read()?;
    let target = Target::find(&repository.store, request.run)?;
    // The caller cannot decide whom to trust.
    let run = repository.vetted(&target, Terms::default(), &mut |text| call.warn(text))?;
    let change = request.find(&run, &name, schema.as_ref())?;
    check_size("document", change.revision.product.size, || hints::get_document(&parameters.run, &parameters.name))?;
    let mut content = Vec::new();
    repository.give_document(&run, &change, &mut content)?;
    let (content, encoding) = Encoding::write(content);
    Ok(DocumentContent { run: parameters.run.clone(), document: change, content, encoding })
}

fn list(call: &Call, parameters: &List) -> Result<Documents, Failure> {
    Ok(call.repository()?.documents(&parameters.run)?)
}

fn log(call: &Call, parameters: &Log) -> Result<DocumentLog, Failure> {
    Ok(call.repository()?.document_log(&parameters.run, &parameters.name)?)
}
