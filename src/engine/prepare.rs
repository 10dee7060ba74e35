//! Prepares one dispatch: its entry, the manifest, and the job.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::config::OnVerifyFail;
use crate::git::protected::Consumed;
use crate::git::verified_stream;
use crate::model::catalog::Shape;
use crate::model::causes::in_words;
use crate::model::confinement::NONE;
use crate::model::credential;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{InputRef, ItemFired, Product};
use crate::model::item_index::ItemIndex;
use crate::model::manifest::{self, Manifest};
use crate::model::name::FilePath;
use crate::model::plan::{CLAIMED, COMMIT, Item, PIPELINE, ProductKey};
use crate::model::registered::Registered;
use crate::model::schema::Schema;
use crate::model::{bounds, format};
use crate::run::OpenRun;

use crate::model::protected::VerifyIn;
use crate::sandbox::Confinement;
use crate::worktree::held_out::HeldOut;

use super::attempt::{self, CheckSettings, Job, Origin, Protect};
use super::command::Resolved;
use super::machine::Machine;
use super::operations::Manner;
use super::programs::Executed;
use super::{command, needs};

/// Prepares the dispatch of an item, or returns the reason why the item fails.
pub(super) fn prepare(run: &OpenRun, machine: &Machine, at: ItemIndex) -> Result<(ItemFired, Manifest, Job), String> {
    let state = &run.state;
    let item = state.graph.item(at);
    let inputs = needs::resolve(run, at)?;
    let mut resolved = command::resolve(item, &machine.config)?;
    if state.is_gate(at) {
        // The verdict of a gate is its result, so a retry would not help.
        resolved.on_verify_fail = OnVerifyFail::Keep;
    }
    let origin = origin(machine, item)?;
    let promised = promised(item, &machine.shapes)?;
    let pipeline = pipeline(run, item)?;
    if pipeline.is_some() {
        // The blocks of a pipeline do their own checks.
        resolved.verify = None;
    }
    let env = command::environment(&machine.ambient, &resolved.settings);
    let confinement = machine.confine(&resolved.settings).map_err(|e| e.to_string())?;
    let refs = machine.host.refs().map_err(|e| in_words(&e))?;
    let executed = match origin {
        Origin::Commit(_) => Executed::default(),
        _ => machine.programs.identify(&resolved, &env, confinement.as_ref()),
    };
    let protect = protect(run, machine, at, &resolved, &inputs.refs)?;
    let check = check(machine, &resolved, confinement.as_ref(), pipeline.is_some())?;
    let job = Job {
        at,
        run: run.id().clone(),
        item: item.id.clone(),
        attempt: state.items[at].attempts + 1,
        base: state.submitted.base,
        refs,
        task: attempt::task(&item.inputs, &inputs.refs),
        inputs: inputs.blobs,
        promised,
        wanted: state.wanted_of(at),
        documents: item.documents().collect(),
        schemas: machine.schemas.clone(),
        env,
        secrets: machine.secrets.clone(),
        keep: machine.config.keep,
        lives: machine.lives.clone(),
        limits: machine.limits(&resolved.settings),
        lease: None,
        protect,
        check,
        preset: attempt::known_agent::preset(&resolved),
        command: resolved,
        origin,
        pipeline,
        supervisor: machine.supervisor.clone(),
        confinement: confinement.map(Arc::new),
        notes: executed.notes,
    };
    let manifest = Manifest {
        program: executed.program,
        interpreter: executed.interpreter,
        ..manifest(machine, item, &job, inputs.refs)
    };
    let sealed = manifest.canonical();
    if sealed.len() as u64 > bounds::MANIFEST || !bounds::is_light(&sealed) {
        return Err(format!("its manifest would have {} bytes or too many values; no reader takes it", sealed.len()));
    }
    let (item, input_refs) = (item.id.clone(), manifest.input_refs.clone());
    let fired = ItemFired::new(item, job.attempt, Digest::of(&sealed), input_refs);
    Ok((fired, manifest, job))
}

/// Returns where the work of an item is done, or why it cannot be done now.
fn origin(machine: &Machine, item: &Item) -> Result<Origin, String> {
    if item.is_claimed() {
        let commit = item.inputs.get(COMMIT).and_then(Value::as_str).and_then(|commit| commit.parse().ok());
        let commit = commit.ok_or("`inputs.commit` is no commit")?;
        return match machine.manner {
            Manner::Commits => Ok(Origin::Commit(commit)),
            _ => Err("only `git handoff record --adopt` takes commits that were made before".to_owned()),
        };
    }
    if !command::works_here(item) {
        return Ok(Origin::Worktree);
    }
    match (machine.manner, machine.host.store.work_dir()) {
        (Manner::Here, Some(top)) => Ok(Origin::Here(top)),
        _ => Err("it works in the work tree of the one who records it: `git handoff record --here`".to_owned()),
    }
}

/// Returns the protected files of an attempt with the consumed patches of their reference state, or
/// `None` if nothing is protected.
fn protect(
    run: &OpenRun,
    machine: &Machine,
    at: ItemIndex,
    command: &Resolved,
    inputs: &BTreeMap<FilePath, InputRef>,
) -> Result<Option<Protect>, String> {
    let state = &run.state;
    let pathspecs = state.graph.item(at).protect.iter().chain(&command.settings.protect).chain(&machine.config.protect);
    let pathspecs: BTreeSet<&String> = pathspecs.collect();
    // A commit that was made before is taken as it is.
    if pathspecs.is_empty() || state.graph.item(at).is_claimed() {
        return Ok(None);
    }
    let patches = state.in_order(&state.reference_patches(at, inputs));
    let read = |patch: Product| verified_stream::read(run.store(), patch.oid, &[patch.sha256]);
    Ok(Some(Protect {
        pathspecs: pathspecs.into_iter().cloned().collect(),
        consumed: Consumed::read(patches, read).map_err(|e| in_words(&e))?,
        effect: command.settings.on_protected_change.unwrap_or(machine.config.on_protected_change),
    }))
}

/// Returns the settings of the check. Fails if the worker could read held-out files.
fn check(
    machine: &Machine,
    command: &Resolved,
    confinement: Option<&Confinement>,
    has_pipeline: bool,
) -> Result<CheckSettings, String> {
    let settings = &command.settings;
    let red_first = settings.red_first.unwrap_or_default();
    let verify_in = settings.verify_in.unwrap_or_default();
    if has_pipeline && (red_first || verify_in == VerifyIn::Fresh) {
        return Err("`redFirst` and `verifyIn` are for the check of an executor, but the item has a pipeline".into());
    }
    if command.verify.is_none() && !has_pipeline && (red_first || settings.held_out.is_some()) {
        return Err("`redFirst` and `heldOut` need a check: set `verify`".into());
    }
    let held_out = match &settings.held_out {
        None => None,
        Some(folder) => Some(held_out(machine, folder, confinement)?),
    };
    let feedback = settings.held_out_feedback.unwrap_or_default();
    Ok(CheckSettings { held_out, feedback, red_first, verify_in })
}

/// Reads held-out files, which no worker must be able to read.
fn held_out(machine: &Machine, folder: &Path, confinement: Option<&Confinement>) -> Result<HeldOut, String> {
    let refused = |why: String| format!("held-out-readable: {}: {why}", folder.display());
    let real = std::fs::canonicalize(folder)
        .map_err(|e| format!("cannot read the held-out files {}: {e}", folder.display()))?;
    let store = &machine.host.store;
    let own = [store.work_dir(), Some(store.common_dir()), Some(store.git_dir()), Some(machine.host.root.clone())];
    let own = own.into_iter().flatten().filter_map(|path| std::fs::canonicalize(path).ok());
    if let Some(own) = own.into_iter().find(|own| real.starts_with(own)) {
        return Err(refused(format!("it is inside {}", own.display())));
    }
    match confinement {
        None => return Err(refused("nothing confines the worker (handoff.sandbox = none)".to_owned())),
        Some(by) if by.reaches(&real) => return Err(refused("the worker may read it".to_owned())),
        Some(_) => {}
    }
    HeldOut::read(&real).map_err(|e| in_words(&e))
}

/// Returns the manifest of a job, without its program.
fn manifest(machine: &Machine, item: &Item, job: &Job, input_refs: BTreeMap<FilePath, InputRef>) -> Manifest {
    let (command, confinement) = (&job.command, job.confinement.as_deref());
    let mut env: BTreeSet<String> = job.env.keys().chain(command.env.keys()).cloned().collect();
    env.extend(attempt::OWN_VARIABLES.map(str::to_owned));
    env.extend(command.settings.fetched_secrets().map(str::to_owned));
    env.extend(confinement.into_iter().flat_map(Confinement::variable_names).map(str::to_owned));
    let manifest = Manifest {
        schema: manifest::SCHEMA.into(),
        run: job.run.clone(),
        item: job.item.clone(),
        attempt: job.attempt,
        base: job.base,
        executor: item.executor.clone(),
        subagent: command.subagent.clone(),
        argv: command.argv.clone(),
        setup: command.setup.clone(),
        verify: command.verify.clone(),
        held_out: job.check.held_out.as_ref().map(|held_out| held_out.digest),
        red_first: job.check.red_first,
        verify_in: job.check.verify_in,
        protect: job.protect.as_ref().map(|protect| protect.pathspecs.clone()).unwrap_or_default(),
        on_protected_change: job.protect.as_ref().map(|protect| protect.effect).unwrap_or_default(),
        command_digest: None,
        program: None,
        interpreter: None,
        pipeline: job.pipeline.map(|(_, digest)| digest),
        inputs: format::digest_of(&serde_json::Value::Object(item.inputs.clone())),
        input_refs,
        env: env.into_iter().collect(),
        secret_env: command.settings.secret_env.iter().map(|secret| secret.name.clone()).collect(),
        timeout: command.timeout,
        sandbox: confinement.map_or_else(|| unconfined(item), |by| by.layers().to_string()),
        network: confinement.map(Confinement::network),
        sockets: confinement.and_then(Confinement::sockets),
        tags: machine.host.give_refs.then(|| job.refs.tags()),
        branches: machine.host.give_refs.then(|| job.refs.branches()),
        tool: format::TOOL.into(),
    };
    redacted(manifest, command.settings.command.is_some())
}

/// Returns the name of the confinement of an item that nothing confined.
fn unconfined(item: &Item) -> String {
    if item.is_claimed() { CLAIMED.to_owned() } else { NONE.to_owned() }
}

/// Removes credentials from the configured command lines, and records the digest of the original
/// lines if there were any.
///
/// Manifests are shared; the configuration is not. `argv` comes from the configuration unless the
/// plan sets it.
fn redacted(mut manifest: Manifest, is_argv_configured: bool) -> Manifest {
    let before = manifest.digest_of_lines();
    let argv = manifest.argv.iter_mut().filter(|_| is_argv_configured);
    let around = manifest.setup.iter_mut().chain(&mut manifest.verify).flatten();
    argv.chain(around).for_each(|word| *word = credential::without(word).into_owned());
    manifest.command_digest = (manifest.digest_of_lines() != before).then_some(before);
    manifest
}

/// Returns the blob of the pipeline that an item names, with the digest that was sealed with the
/// run.
fn pipeline(run: &OpenRun, item: &Item) -> Result<Option<(Oid, Digest)>, String> {
    let Some(named) = item.inputs.get(PIPELINE) else { return Ok(None) };
    let name = named.as_str().ok_or("`inputs.pipeline` is no name of a pipeline")?;
    let not_sealed = || format!("the pipeline {name:?} was not sealed with the run");
    let digest = *run.state.pipelines.get(name).ok_or_else(not_sealed)?;
    let tree = run.head().tree.ok_or_else(not_sealed)?;
    let blob = run.store().blob_at(tree, &format::pipeline_path(digest)).map_err(|e| e.to_string())?;
    Ok(Some((blob.ok_or_else(not_sealed)?, digest)))
}

/// Returns the patch and the outputs that an item must produce, with the schemas of outputs. Its
/// own declarations override those of its shape.
fn promised(item: &Item, shapes: &Registered<String, Shape>) -> Result<BTreeMap<ProductKey, Option<Schema>>, String> {
    let shape = match &item.subagent_shape {
        None => None,
        Some(name) => match shapes.get(name) {
            None => return Err(format!("no shape {name:?} is registered here")),
            Some(shape) => Some(shape.map_err(|why| format!("the shape {name:?} {why}"))?),
        },
    };
    let by_shape = shape.into_iter().flat_map(|shape| &shape.produces);
    let every = by_shape.chain(item.produces.iter().flatten());
    let every = every.map(|produced| (produced.select.product_key(), produced.schema.clone()));
    // Only the plan decides which outputs become documents.
    Ok(every.filter(|(key, _)| !matches!(key, ProductKey::Document(_))).collect())
}
