//! The list of answers with their types.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::program;
use super::schema::whole;
use crate::run::import::lineage;
use crate::run::operate::{adopt, documents, drivers, extend, people, steer, submission};
use crate::run::query::{self, difference, list as lists, show, waiting};
use crate::share::anchor;
use crate::{apply, engine, model, plan, report, repository, share, thread, upkeep, verify, whence};

/// The schema of an answer.
#[derive(Clone, Copy)]
pub struct Form {
    /// The name: `run` for `git-handoff.run/1`, and for `run.json` below `docs/schema`.
    pub name: &'static str,
    make: fn() -> Value,
}

impl Form {
    /// Generates the schema.
    pub fn schema(&self) -> Value {
        (self.make)()
    }
}

/// Lists types by the names of their forms.
macro_rules! forms {
    ($($name:literal: $type:ty,)*) => {
        &[$(Form { name: $name, make: || form::<$type>($name) }),*]
    };
}

/// Every form whose schema is generated, by name.
const FORMS: &[Form] = forms! {
    "admit": people::Admittance,
    "adopt": thread::answers::AdoptedCheckpoint,
    "adopt-run": adopt::AdoptedRun,
    "anchor": anchor::answers::AnchorShown,
    "anchor-check": anchor::answers::AnchorCheck,
    "anchor-push": anchor::answers::AnchorPush,
    "anchored": anchor::s3::Object,
    "anchored-thread": anchor::s3::threads::Object,
    "anchors": anchor::answers::AnchorList,
    "apply": apply::answer::Answer<'static>,
    "archive": upkeep::archive::ArchiveAnswer,
    "attempt-result": engine::execute::Executed,
    "check": program::Checked<'static>,
    "checkpoint": thread::answers::MadeCheckpoint,
    "checkpoint-show": thread::answers::CheckpointRecord<'static>,
    "clean": upkeep::operations::CleanAnswer,
    "clean-remote": drivers::StaleBeats,
    "coordinate": extend::Coordinated,
    "decision": people::Decided,
    "delete": upkeep::delete::DeleteAnswer,
    "diff": difference::Difference,
    "dismiss": people::Dismissal,
    "doctor": upkeep::doctor::Diagnosis,
    "document": documents::DocumentPut,
    "document-content": program::DocumentContent,
    "document-log": query::documents::DocumentLog,
    "document-said": documents::DocumentSaid,
    "documents": query::documents::Documents,
    "drivers": drivers::DriversShown,
    "error": program::Failed<'static>,
    "extend": extend::Extended,
    "fetch": share::answers::FetchAnswer<'static>,
    "fork": thread::answers::NewCheckpoint,
    "graph": report::graph::answer::Drawing,
    "init": upkeep::setup::SetupAnswer<'static>,
    "key": repository::key::KeyLine,
    "lineage": lineage::Lineage,
    "lost": drivers::LostShown,
    "manifest": model::manifest::Manifest,
    "overview": thread::overview::Overview,
    "piece": program::Piece,
    "pipeline": repository::pipelines::PipelineShown,
    "pipeline-add": repository::pipelines::PipelineAdded,
    "pipeline-validate": repository::pipelines::PipelineVerdict<'static>,
    "pipelines": repository::pipelines::PipelineList,
    "plan-new": plan::start::PlanStarted<'static>,
    "proof": model::proof::Proof,
    "push": share::answers::PushAnswer<'static>,
    "record": program::Recorded<'static>,
    "report": report::Written,
    "resume": program::Resumed,
    "rollback": thread::answers::NewCheckpoint,
    "run": engine::operations::DrivenShown<'static>,
    "runs": lists::Runs,
    "schemas": program::Known,
    "status": lists::Status,
    "steer": steer::Steered,
    "subagents": program::Runnable,
    "submit": submission::Submission,
    "thread-verify": verify::ThreadReport,
    "threads": thread::answers::Threads,
    "unarchive": upkeep::archive::UnarchiveAnswer,
    "validate": submission::Verdict<'static>,
    "verify": program::Verified<'static>,
    "verify-commits": whence::answer::CommitsVerified,
    "waiting": waiting::Waiting,
    "watch": program::NewEntries<'static>,
    "whence": whence::answer::Whence,
};

/// Returns every form whose schema is generated.
pub fn list() -> impl Iterator<Item = &'static Form> {
    FORMS.iter().chain(LINES)
}

/// Every schema of a line that names no form.
const LINES: &[Form] = &[
    Form { name: "descriptor", make: || whole::<model::descriptor::SignedDescriptor<'static>>(None) },
    Form { name: "entry", make: || whole::<model::entry::Entry>(None) },
    Form { name: "log", make: || whole::<query::log_entry::EntryShown>(None) },
    Form { name: "show", make: || whole::<RunOrItem>(None) },
    Form { name: "thread-log", make: || whole::<thread::answers::CheckpointShown<'static>>(None) },
];

/// All that is recorded about a run, or about one of its items: the output of `show`.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum RunOrItem {
    Run(show::RunDocument<'static>),
    Item(show::ItemDocument<'static>),
}

/// Returns the schema of a form, or `None` if there is none of the name.
pub fn schema(name: &str) -> Option<Value> {
    list().find(|form| form.name == name).map(Form::schema)
}

/// Returns the schema of a form, whose field `schema` names it.
fn form<T: JsonSchema>(name: &str) -> Value {
    whole::<T>(Some(name))
}
