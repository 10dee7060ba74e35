//! Puts together what one dispatch is given: the entry, the manifest it seals, and the job.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::config::OnVerifyFail;
use crate::model::confinement::NONE;
use crate::model::digest::Digest;
use crate::model::entry::ItemFired;
use crate::model::manifest::{self, Manifest};
use crate::model::{bounds, format};
use crate::run::OpenRun;

use crate::worker::sandbox::Confinement;

use super::attempt::{self, Job};
use super::machine::Machine;
use super::{command, ground, needs};

/// Puts together what an item will be given; an error is the reason it fails for.
pub(super) fn prepare(run: &OpenRun, machine: &Machine, at: usize) -> Result<(ItemFired, Manifest, Job), String> {
    let state = &run.state;
    let item = state.graph.item(at);
    let inputs = needs::resolve(run, at).map_err(|e| e.to_string())?;
    let mut resolved = command::resolve(item, &machine.config).map_err(|e| e.to_string())?;
    if state.is_gate(at) {
        // Its verdict is a result, and another attempt would only ask again.
        resolved.on_verify_fail = OnVerifyFail::Keep;
    }
    let attempt = state.items[at].attempts + 1;
    let env = command::environment(&machine.ambient, &resolved.settings);
    let confinement = ground::confine(machine, &resolved.settings).map_err(|e| e.to_string())?;
    let submitted = serde_json::Value::Object(item.inputs.clone());
    let manifest = Manifest {
        schema: manifest::SCHEMA.into(),
        run: run.id().clone(),
        item: item.id.clone(),
        attempt,
        base: state.submitted.base,
        executor: item.executor.clone(),
        subagent: resolved.subagent.clone(),
        argv: resolved.argv.clone(),
        setup: resolved.setup.clone(),
        verify: resolved.verify.clone(),
        inputs: format::digest_of(&submitted),
        input_refs: inputs.refs.clone(),
        env: env
            .keys()
            .cloned()
            .chain(attempt::OWN_VARIABLES.map(str::to_owned))
            .chain(resolved.settings.fetched_secrets().map(str::to_owned))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect(),
        secret_env: resolved.settings.secret_env.iter().map(|secret| secret.name.clone()).collect(),
        timeout: resolved.timeout,
        sandbox: confinement.as_ref().map_or_else(|| NONE.to_owned(), |by| by.layers().to_string()),
        network: confinement.as_ref().map(Confinement::network),
        tool: format::TOOL.into(),
    };
    let sealed = manifest.canonical();
    if sealed.len() as u64 > bounds::MANIFEST || !bounds::is_light(&sealed) {
        return Err(format!("its manifest would have {} bytes or too many values; no reader takes it", sealed.len()));
    }
    let fired =
        ItemFired { item: item.id.clone(), attempt, manifest: Digest::of(&sealed), input_refs: inputs.refs.clone() };
    let job = Job {
        at,
        run: run.id().clone(),
        item: item.id.clone(),
        attempt,
        base: state.submitted.base,
        task: attempt::task(&item.inputs, &inputs.refs),
        inputs: inputs.blobs,
        promised: item.promised().collect(),
        documents: item.documents().collect(),
        schemas: machine.schemas.clone(),
        env,
        secrets: machine.secrets.clone(),
        keep: machine.config.keep,
        limits: ground::limits(machine, &resolved.settings),
        command: resolved,
        supervisor: machine.supervisor.clone(),
        confinement: confinement.map(Arc::new),
    };
    Ok((fired, manifest, job))
}
