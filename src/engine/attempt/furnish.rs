//! Furnishes a worktree with what its commands need.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use super::spec::INPUT_REFS;
use super::{Job, Verdict};
use crate::model::entry::InputRef;
use crate::model::name::FilePath;
use crate::model::plan::{AGENT, BuiltIn, GOAL, Selector};
use crate::worktree::consumed;
use crate::worktree::host::Host;
use crate::worktree::inputs;
use crate::worktree::workspace::Workspace;

/// Writes the inputs and the task into a worktree, and creates its private folders. Returns remarks
/// for the transcript.
pub(super) fn furnish(host: &Host, job: &Job, workspace: &Workspace) -> Result<Vec<String>, Verdict> {
    let blobs = job.spec.inputs.iter().map(|(path, blob)| (path.clone(), (blob.oid, blob.sha256)));
    inputs::stage(workspace, &host.store, &blobs.collect())
        .map_err(|e| Verdict::from_error("", &e, Verdict::hopeless))?;
    let patches = job.spec.input_refs.iter().filter(|(_, input)| input.select == Selector::Patch);
    let absent = consumed::put_objects(host, workspace, patches.map(|(key, _)| key))
        .map_err(|e| Verdict::from_error("", &e, Verdict::failed))?;
    std::fs::write(workspace.task(), worker_task(job))
        .map_err(|e| Verdict::from_error("the task could not be written: ", &e, Verdict::failed))?;
    if workspace.is_for_check() && !job.has_own_home() {
        let confinement = job.confinement.as_ref();
        let mirrored = workspace.mirror_home(host, job.handles.home.mirror(), &|path: &Path, content: &[u8]| {
            confinement.map_or_else(|| Some(content.to_owned()), |by| by.given_content(path, content))
        });
        mirrored.map_err(|e| Verdict::from_error("", &e, Verdict::failed))?;
    }
    if let Some(confinement) = &job.confinement {
        let (inside, at_home) = confinement.at_home().into_iter().partition::<Vec<_>, _>(|(below, _)| {
            confinement.private_copies().iter().any(|copy| below.starts_with(&copy.below))
        });
        if job.has_own_home() {
            workspace.make_home(host, &at_home)?;
        }
        // A check continues nothing.
        let carry = workspace.attempt > 1 && !workspace.is_for_check();
        workspace.make_agent_folders(confinement, &inside, carry)?;
    }
    let remarks = job.confinement.as_ref().map(|confinement| workspace.make_scratch(confinement)).transpose();
    let mut remarks = remarks?.unwrap_or_default();
    remarks.extend(workspace.agent_folders().into_iter().flat_map(|folders| folders.remarks.clone()));
    Ok(absent.into_iter().chain(remarks).collect())
}

/// Returns the task as the worker reads it. The line of an agent finds its goal there, and not
/// itself: it would be one more command to run.
pub(super) fn worker_task(job: &Job) -> String {
    if job.spec.manifest.executor != BuiltIn::Command.name() {
        return job.spec.task.clone();
    }
    let Ok(mut task) = serde_json::from_str::<Map<String, Value>>(&job.spec.task) else { return job.spec.task.clone() };
    if !task.get(AGENT).is_some_and(Value::is_string) {
        return job.spec.task.clone();
    }
    task.retain(|key, _| key == GOAL || key == INPUT_REFS);
    written(&task)
}

/// Returns the task of an executor: the item's inputs and its resolved needs.
pub(in crate::engine) fn task(inputs: &Map<String, Value>, refs: &BTreeMap<FilePath, InputRef>) -> String {
    let mut task = inputs.clone();
    let refs = serde_json::to_value(refs).expect("refs serialise to an object");
    task.insert(INPUT_REFS.to_owned(), refs);
    written(&task)
}

fn written(task: &Map<String, Value>) -> String {
    let mut text = serde_json::to_string_pretty(task).expect("a JSON object serialises");
    text.push('\n');
    text
}
