//! Prepares the job that repeats one recorded check, with the sandbox and network of this machine.

use std::collections::BTreeMap;

use crate::engine::attempt::spec::{AttemptSpec, Blob, Check, Command, Protected, SCHEMA};
use crate::engine::attempt::{self, Job, Origin, Promised};
use crate::engine::command;
use crate::engine::execute::place_of;
use crate::engine::machine::Machine;
use crate::engine::start;
use crate::git::store::Store;
use crate::model::causes::in_words;
use crate::model::confinement::{NONE, Network};
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Event, InputRef};
use crate::model::item_index::ItemIndex;
use crate::model::manifest::Manifest;
use crate::model::name::FilePath;
use crate::model::plan::ProductKey;
use crate::model::protected::OnProtectedChange;
use crate::repository::config::{Config, Executor, OnVerifyFail};
use crate::run::query::VerifiedRun;
use crate::worktree::product::Recorded;

use super::Shown;

/// The start of the mark that replaces a credential in a recorded command.
const REDACTED: &str = "[redacted:";

/// A check that can be repeated here.
pub(super) struct Ready {
    pub(super) job: Job,
    pub(super) products: Recorded,
}

impl Ready {
    /// Prepares the check of an item, or returns the reason why it cannot be repeated here.
    pub(super) fn new(
        machine: &Machine,
        run: &VerifiedRun,
        at: ItemIndex,
        recorded: &Manifest,
    ) -> Result<Self, String> {
        let store = &machine.host.store;
        if store.work_dir().is_none() {
            return Err("a bare repository has no work tree: recheck the run in a clone".to_owned());
        }
        let base = run.state.submitted.base;
        if !store.contains(base) {
            return Err(format!("the run's base commit {base} is not in this repository"));
        }
        if recorded.held_out.is_some() {
            return Err("the check needs held-out files, which are not part of the run".to_owned());
        }
        let lines = recorded.setup.iter().chain(&recorded.verify).flatten();
        if lines.into_iter().any(|word| word.contains(REDACTED)) {
            return Err("a credential was removed from the recorded commands".to_owned());
        }
        let settings = settings(recorded, &machine.config);
        let (item, state) = (run.state.graph.item(at), &run.state.items[at]);
        let spec = AttemptSpec {
            schema: SCHEMA.to_owned(),
            repository: place_of(store),
            worktrees: machine.host.settings.clone(),
            claim: Digest::compute(&recorded.canonical()),
            run: run.run.clone(),
            base,
            item: item.id.clone(),
            attempt: state.attempts,
            manifest: recorded.clone(),
            task: attempt::task(&item.inputs, &state.inputs),
            inputs: inputs(run, &state.inputs)?,
            input_refs: state.inputs.clone(),
            promised: Promised::default(),
            env: command::environment(&machine.ambient, &settings),
            limits: machine.limits(&settings),
            confinement: machine.policy(&settings),
            protect: protect(store, run, at, recorded)?,
            start: start::start(store, &run.state, at)?,
            // The worktree is fresh in any case.
            check: Check::default(),
            command: commands(recorded, &settings),
            secrets: settings.secret_env,
            origin: Origin::Worktree,
            preset: None,
            pipeline: None,
            lease: None,
            refs: machine.host.refs().map_err(|error| in_words(&error))?,
            keep: false,
            notes: Vec::new(),
        };
        let handles = machine.handles();
        let by = spec.confine(&handles).map_err(|error| error.to_string())?;
        let job = Job::new(spec, &handles, by).map_err(|error| in_words(&error))?;
        Ok(Self { job: job.only_checking(), products: products(run, at) })
    }

    /// Returns the commands as the user confirms them.
    pub(super) fn describe(&self, recorded: &Manifest) -> Shown {
        let by = self.job.confinement.as_ref();
        Shown {
            item: self.job.spec.item.clone(),
            setup: recorded.setup.clone(),
            check: recorded.verify.clone().unwrap_or_default(),
            sandbox: by.map_or_else(|| NONE.to_owned(), |by| by.layers().to_string()),
            network: by.map(|by| by.network().as_str()),
        }
    }
}

/// Returns the recorded commands, of which only the setup and the check run.
fn commands(recorded: &Manifest, settings: &Executor) -> Command {
    Command {
        argv: recorded.argv.clone(),
        env: BTreeMap::new(),
        directory: None,
        reads_task: true,
        setup: recorded.setup.clone(),
        verify: recorded.verify.clone(),
        on_verify_fail: OnVerifyFail::default(),
        timeout: recorded.timeout,
        is_configured: settings.command.is_some(),
        set: settings.env.keys().cloned().collect(),
    }
}

/// Returns the settings that this machine has for the executor of an attempt, or the default ones.
///
/// The network is the recorded one, unless the settings allow less. The commands of a run can be
/// another person's, so they get no secrets and no login.
fn settings(recorded: &Manifest, config: &Config) -> Executor {
    let registered = match &recorded.subagent {
        Some(name) => config.subagent(name),
        None => config.settings_of(&recorded.executor),
    };
    let mut settings = registered.unwrap_or_default();
    let own: Network = settings.network.unwrap_or(config.network);
    settings.network = Some(own.max(recorded.claims.network.unwrap_or_default()));
    settings.secret_env.clear();
    settings.private.clear();
    settings.login.clear();
    settings
}

/// Returns the blobs of the consumed inputs. They are identified by their digests, because a
/// document can have later revisions.
fn inputs(run: &VerifiedRun, refs: &BTreeMap<FilePath, InputRef>) -> Result<BTreeMap<FilePath, Blob>, String> {
    let mut known: BTreeMap<Digest, Oid> = BTreeMap::new();
    for link in &run.links {
        match &link.entry.event {
            Event::ItemReconciled(e) => known.extend(e.products.values().map(|it| (it.sha256, it.oid))),
            Event::DocumentWritten(e) => drop(known.insert(e.sha256, e.oid)),
            _ => {}
        }
    }
    known.extend(run.state.submitted.imports.values().map(|import| (import.product.sha256, import.product.oid)));
    known.extend(run.state.submitted.artifacts.values().map(|sealed| (sealed.sha256, sealed.oid)));
    refs.iter()
        .map(|(key, input)| {
            let oid = known.get(&input.digest).ok_or_else(|| format!("the input {key} is not in this repository"))?;
            Ok((key.clone(), Blob { oid: *oid, sha256: input.digest }))
        })
        .collect()
}

/// Returns the products of an item. A document is written where the item left it.
fn products(run: &VerifiedRun, at: ItemIndex) -> Recorded {
    let item = run.state.graph.item(at);
    let mut recorded = Recorded::default();
    for (key, product) in &run.state.items[at].products {
        match key {
            ProductKey::Patch => recorded.patch = Some((product.oid, product.sha256)),
            ProductKey::Output(path) => drop(recorded.outputs.insert(path.clone(), (product.oid, product.sha256))),
            ProductKey::Document(name) => {
                let declared = item.documents().find(|declared| declared.name == *name);
                recorded.outputs.extend(declared.map(|declared| (declared.path, (product.oid, product.sha256))));
            }
        }
    }
    recorded
}

/// Returns the protected files with the consumed patches of their reference state, or `None` if
/// nothing is protected.
fn protect(store: &Store, run: &VerifiedRun, at: ItemIndex, recorded: &Manifest) -> Result<Option<Protected>, String> {
    if recorded.protect.is_empty() {
        return Ok(None);
    }
    let consumed = start::consumed(store, &run.state, &run.state.items[at].reference)?;
    let (rules, effect) = (recorded.protect.clone(), OnProtectedChange::default());
    Ok(Some(Protected { rules, consumed, effect, of_plan: Vec::new(), effect_of_plan: effect }))
}
