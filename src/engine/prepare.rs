//! Prepares one dispatch: its entry, the manifest, and the spec of the attempt.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use serde_json::Value;

use crate::git::store::Store;
use crate::model::bounds;
use crate::model::catalog::Shape;
use crate::model::causes::in_words;
use crate::model::claims::Claims;
use crate::model::digest::Digest;
use crate::model::entry::{InputRef, ItemFired};
use crate::model::item_index::ItemIndex;
use crate::model::manifest::Manifest;
use crate::model::name::FilePath;
use crate::model::plan::{COMMIT, Item, PIPELINE, ProductKey};
use crate::model::protect_rule::{self, ProtectRule};
use crate::model::protected::VerifyIn;
use crate::model::registered::Registered;
use crate::model::schema::Schema;
use crate::repository::config::OnVerifyFail;
use crate::run::operate::OpenRun;
use crate::sandbox::Confinement;

use super::attempt::spec::{AttemptSpec, Blob, Check, Command, HeldOutFiles, Protected, SCHEMA};
use super::attempt::{self, Origin, Promised};
use super::command::{Resolved, Unresolved};
use super::execute::place_of;
use super::machine::Machine;
use super::operations::Manner;
use super::programs::Executed;
use super::{command, needs, programs, start};

/// A dispatch: its entry, the manifest, and the spec of the attempt.
pub(super) struct Prepared {
    pub(super) fired: ItemFired,
    pub(super) manifest: Manifest,
    pub(super) spec: AttemptSpec,
}

/// Why an item cannot be dispatched.
#[derive(Debug)]
pub(super) enum Unready {
    /// The item fails.
    Item(String),
    /// This machine lacks something, and another may have it.
    Here(String),
}

impl Unready {
    /// Returns the reason.
    pub(super) fn reason(self) -> String {
        match self {
            Self::Item(why) | Self::Here(why) => why,
        }
    }
}

impl From<String> for Unready {
    fn from(why: String) -> Self {
        Self::Item(why)
    }
}

impl From<Unresolved> for Unready {
    fn from(why: Unresolved) -> Self {
        match why {
            Unresolved::Item(why) => Self::Item(why),
            Unresolved::Here(why) => Self::Here(why),
        }
    }
}

/// Prepares the dispatch of an item, or returns the reason why it cannot be dispatched.
pub(super) fn prepare(run: &OpenRun, machine: &Machine, at: ItemIndex) -> Result<Prepared, Unready> {
    let state = &run.state;
    let item = state.graph.item(at);
    let inputs = needs::resolve(run, at)?;
    let mut resolved = command::resolve(item, &machine.config)?;
    if state.is_gate(at) {
        // The verdict of a gate is its result, so a retry would not help.
        resolved.on_verify_fail = OnVerifyFail::Keep;
    }
    let origin = origin(machine, item)?;
    let products = promised(item, &machine.shapes).map_err(Unready::Here)?;
    let pipeline = pipeline(run, item)?;
    if pipeline.is_some() {
        // The blocks of a pipeline do their own checks.
        resolved.verify = None;
    }
    let env = command::environment(&machine.ambient, &resolved.settings);
    let by = machine.confine(&resolved.settings).map_err(|e| e.to_string())?;
    if pipeline.is_none() && !matches!(origin, Origin::Commit(_)) {
        expect_program(&resolved, &env)?;
    }
    machine.host.expect_submodules(state.submitted.base).map_err(|error| Unready::Here(in_words(&error)))?;
    let executed = match origin {
        Origin::Commit(_) => Executed::default(),
        _ => machine.programs.identify(&resolved, &env, by.as_ref()),
    };
    let start = start::start(&machine.host.store, state, at)?;
    let protect = protect(run, machine, at, &resolved, &inputs.refs)?;
    let check = check(machine, &resolved, by.as_ref(), pipeline.is_some())?;
    let manifest = begin_manifest(machine, item, &resolved, &executed, by.is_some());
    let mut spec = AttemptSpec {
        schema: SCHEMA.to_owned(),
        repository: place_of(&machine.host.store),
        worktrees: machine.host.settings.clone(),
        claim: Digest::compute(&[]),
        run: run.id().clone(),
        base: state.submitted.base,
        item: item.id.clone(),
        attempt: state.items[at].attempts + 1,
        task: attempt::task(&item.inputs, &inputs.refs),
        manifest,
        inputs: inputs.blobs.into_iter().map(|(path, (oid, sha256))| (path, Blob { oid, sha256 })).collect(),
        input_refs: inputs.refs,
        promised: Promised { products, required: state.wanted_of(at), documents: item.documents().collect() },
        preset: attempt::known_agent::preset(&resolved).map(str::to_owned),
        secrets: resolved.settings.secret_env.clone(),
        limits: machine.limits(&resolved.settings),
        confinement: machine.policy(&resolved.settings),
        command: Command::from_resolved(resolved),
        origin,
        start,
        pipeline,
        env,
        lease: None,
        protect,
        check,
        refs: machine.host.refs().map_err(|e| in_words(&e))?,
        keep: machine.config.keep,
        notes: executed.notes,
    };
    spec.manifest = spec.described(by.as_ref());
    seal(spec, &machine.host.store)
}

/// Fails if the program of a command is not on this machine.
fn expect_program(command: &Resolved, env: &BTreeMap<String, OsString>) -> Result<(), Unready> {
    match programs::missing(command, env) {
        Some(program) => Err(Unready::Here(format!("the program `{program}` is not installed here"))),
        None => Ok(()),
    }
}

/// Makes the dispatch of a spec with its final manifest.
fn seal(mut spec: AttemptSpec, store: &Store) -> Result<Prepared, Unready> {
    let sealed = spec.manifest.canonical();
    if sealed.len() as u64 > bounds::MANIFEST || !bounds::is_light(&sealed) {
        return Err(Unready::Item(format!(
            "its manifest would have {} bytes or too many values; no reader takes it",
            sealed.len()
        )));
    }
    let product = store.compute_product(&sealed).map_err(|error| Unready::Item(in_words(&error)))?;
    spec.claim = product.sha256;
    let branches = spec.worktrees.give_refs.then(|| spec.refs.branches());
    let fired = ItemFired {
        claims: Claims { branches, ..Claims::default() }.stated(),
        ..ItemFired::new(spec.item.clone(), spec.attempt, product, spec.input_refs.clone())
    };
    Ok(Prepared { fired, manifest: spec.manifest.clone(), spec })
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
        let left = machine.left.as_ref().map(|left| Origin::Left(left.attempt));
        return Ok(left.unwrap_or(Origin::Worktree));
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
) -> Result<Option<Protected>, String> {
    let state = &run.state;
    let rules = state.graph.item(at).protect.iter().chain(&command.settings.protect).chain(&machine.config.protect);
    let rules: BTreeSet<ProtectRule> = rules.cloned().collect();
    // A commit that was made before is taken as it is.
    if rules.is_empty() || state.graph.item(at).is_claimed() {
        return Ok(None);
    }
    if !protect_rule::are_bounded(&rules) {
        return Err(format!("plan and settings have {} for its protected files", protect_rule::limits_in_words()));
    }
    // A plan replaces the default for the files that the settings protect.
    let set = command.settings.on_protected_change.or(machine.config.on_protected_change);
    let consumed = start::consumed(&machine.host.store, state, &state.reference_patches(at, inputs))?;
    let item = state.graph.item(at);
    Ok(Some(Protected {
        rules,
        consumed,
        effect: set.or(item.on_protected_change).unwrap_or_default(),
        of_plan: item.protect.clone(),
        effect_of_plan: item.on_protected_change.unwrap_or_default(),
    }))
}

/// Returns the settings of the check. Fails if the worker could read held-out files.
fn check(
    machine: &Machine,
    command: &Resolved,
    confinement: Option<&Confinement>,
    has_pipeline: bool,
) -> Result<Check, String> {
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
        Some(folder) => {
            let read = HeldOutFiles::read(&machine.host, folder, confinement).map_err(|e| in_words(&e))?;
            Some(HeldOutFiles { folder: folder.clone(), sha256: read.digest })
        }
    };
    let feedback = settings.held_out_feedback.unwrap_or_default();
    Ok(Check { held_out, feedback, red_first, verify_in })
}

/// Returns a manifest with the facts that its spec does not have elsewhere.
fn begin_manifest(
    machine: &Machine,
    item: &Item,
    resolved: &Resolved,
    executed: &Executed,
    is_confined: bool,
) -> Manifest {
    let mut manifest = Manifest { subagent: resolved.subagent.clone(), ..Manifest::begin(item) };
    manifest.claims.program.clone_from(&executed.program);
    manifest.claims.interpreter.clone_from(&executed.interpreter);
    machine.describe_access(item, resolved, is_confined, &mut manifest);
    manifest
}

/// Returns the blob of the pipeline that an item names, with the digest that was sealed with the
/// run.
fn pipeline(run: &OpenRun, item: &Item) -> Result<Option<Blob>, String> {
    let Some(value) = item.inputs.get(PIPELINE) else { return Ok(None) };
    let name = value.as_str().ok_or("`inputs.pipeline` is no name of a pipeline")?;
    let sealed =
        run.state.pipelines.get(name).ok_or_else(|| format!("the pipeline {name:?} was not sealed with the run"))?;
    Ok(Some(Blob { oid: sealed.oid, sha256: sealed.sha256 }))
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
