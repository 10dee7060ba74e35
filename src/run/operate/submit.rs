//! Creates a run from a valid plan: a ref, one signed entry, and the plan with its artifacts in the
//! tree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::git::store::{Batch, Store};
use crate::git::{program, refs, work_tree};
use crate::ledger::chain::{self, Draft, Head, Writer};
use crate::ledger::log;
use crate::model::any_error::AnyError;
use crate::model::bounds;
use crate::model::credential::gate::Gate;
use crate::model::digest::{Digest, Oid};
use crate::model::elsewhere::Import;
use crate::model::entry::{Event, LogRecorded, Product, RunSubmitted};
use crate::model::format;
use crate::model::name::{FilePath, RunId, fold};
use crate::model::plan::{Need, Plan};
use crate::model::role::{Role, every_role};
use crate::plan;
use crate::plan::validate::ValidPlan;

use crate::run::import::sources::{Carried, Found};

/// The settings of a submission.
#[derive(Clone, Debug)]
pub struct Request {
    /// The commit that items start from.
    pub base: Oid,
    /// The queue, or `None` for that of the plan.
    pub queue: Option<String>,
    /// The base of relative paths of artifacts.
    pub folder: PathBuf,
    /// Rejects secrets.
    pub gate: Gate,
    /// The products that the plan imports.
    pub imports: BTreeMap<String, Found>,
    /// The files of the run that this one continues.
    pub carried: Option<Carried>,
    /// The keys that can append, with their roles, or `None` for our own key with all roles.
    pub roles: Option<BTreeMap<String, BTreeSet<Role>>>,
}

/// A submitted run.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the types say it")]
pub struct Submitted {
    pub run: RunId,
    /// Whether it was created now, not by an earlier submission of the same plan.
    pub created: bool,
}

/// Submits a plan.
///
/// Submitting the same plan again changes nothing. Another plan with the id of a run is rejected. A
/// failure leaves no run behind.
pub fn submit(writer: &Writer, valid: &ValidPlan, request: &Request) -> Result<Submitted, AnyError> {
    let plan = valid.plan();
    let run = plan.id.clone();
    let name = format::run_ref(&run);
    if let Some(same) = existing(writer, &run, valid)? {
        return Ok(same);
    }
    if !log::witnesses(&writer.store, &writer.signer.fingerprint(), &run)?.is_empty() {
        // The log is written after the ref, so another process may just have submitted the same
        // plan.
        return existing(writer, &run, valid)?.ok_or(Error::Used(run).into());
    }
    refuse_other_case(&writer.store, &run)?;
    let mut batch = writer.store.batch();
    let event = Event::RunSubmitted(first_entry(writer, &mut batch, valid, request)?);
    let draft = Draft { about: run.clone().into(), event, bytes: Vec::new(), edits: Vec::new() };
    let appended = writer.append_with(batch, &Head::unborn(name), vec![draft])?;
    let first = appended.links()[0].hash;
    match appended.publish() {
        // If two submissions race, the second one counts as a repetition.
        Err(chain::Error::LostRace(lost)) => {
            return existing(writer, &run, valid)?.ok_or(chain::Error::LostRace(lost).into());
        }
        other => other?,
    };
    // A crash here leaves a run without its base ref and log entry; `run` and `doctor` add them.
    register(writer, &run, request.base, first)?;
    Ok(Submitted { run, created: true })
}

/// Adds the base ref and the log entry of a submitted run. Safe to repeat.
pub fn register(writer: &Writer, run: &RunId, base: Oid, first: Digest) -> Result<(), AnyError> {
    let name = format::base_ref(run);
    if writer.store.contains(base) && refs::read(&writer.store, &name)? != Some(base) {
        refs::set(&writer.store, &name, base)?;
    }
    let recorded = LogRecorded::begin(writer.signer.fingerprint(), first);
    Ok(log::ensure(writer, &run.clone().into(), &recorded)?)
}

/// Resolves a revision to the base commit of a run.
pub fn resolve_base(store: &Store, revision: &str) -> Result<Oid, AnyError> {
    // HEAD, the base of nearly every run, needs no call of git.
    if revision == "HEAD" {
        return Ok(work_tree::head(store).map_err(Error::Head)?.ok_or(Error::Unborn)?.0);
    }
    let parsed = store
        .git()
        .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
        .arg(format!("{revision}^{{commit}}"))
        .line();
    match parsed {
        Ok(id) => Ok(id.parse().map_err(|_| Error::Base(revision.to_owned()))?),
        Err(program::Error::Failed { .. }) => Err(Error::Base(revision.to_owned()).into()),
        Err(other) => Err(Error::Git(other).into()),
    }
}

/// Returns which of the folders that items use are tracked in the base commit.
pub fn reserved_in_base(store: &Store, base: Oid, folders: [&str; 2]) -> Result<Vec<String>, AnyError> {
    let listed = store.git().args(["ls-tree", "-z", "--name-only"]).arg(base.to_string()).run().map_err(Error::Git)?;
    let names = listed.split(|b| *b == 0).map(String::from_utf8_lossy);
    // File systems can ignore case, so `Inputs` and `inputs` can be one folder.
    Ok(names.filter(|name| folders.iter().any(|f| name.eq_ignore_ascii_case(f))).map(Into::into).collect())
}

/// Returns an error if the id differs from that of another run only in case.
///
/// File systems can ignore case, and then their refs and their worktrees would clash.
fn refuse_other_case(store: &Store, run: &RunId) -> Result<(), AnyError> {
    let folded = fold(run.as_str());
    for (name, _) in refs::list_with_archived(store, format::RUN_REFS)? {
        let other = name.strip_prefix(format::RUN_REFS).and_then(RunId::decode);
        if let Some(other) = other.filter(|other| other != run && fold(other.as_str()) == folded) {
            return Err(Error::OtherCase { run: run.clone(), other }.into());
        }
    }
    Ok(())
}

/// Returns the existing run if it has the same plan, or an error if it has another one.
fn existing(writer: &Writer, run: &RunId, valid: &ValidPlan) -> Result<Option<Submitted>, AnyError> {
    let Some((_, links)) = chain::read(&writer.store, &format::run_ref(run))? else { return Ok(None) };
    let Some(Event::RunSubmitted(first)) = links.first().map(|link| &link.entry.event) else {
        return Err(Error::Different(run.clone()).into());
    };
    // A run that another key planted under this id is not ours, whatever its plan is.
    let is_same = first.plan.sha256 == Digest::compute(valid.bytes())
        || plan::is_same(&writer.store.read_blob_of(first.plan.oid, bounds::PLAN)?, valid.bytes());
    if !is_same || !first.roles.contains_key(&writer.signer.fingerprint()) {
        return Err(Error::Different(run.clone()).into());
    }
    Ok(Some(Submitted { run: run.clone(), created: false }))
}

fn first_entry(
    writer: &Writer,
    batch: &mut Batch,
    valid: &ValidPlan,
    request: &Request,
) -> Result<RunSubmitted, AnyError> {
    let plan = valid.plan();
    request.gate.check("plan", valid.bytes())?;
    let mut artifacts = BTreeMap::new();
    for (path, file) in &plan.artifacts {
        let carried = request.carried.as_ref().and_then(|carried| carried.artifacts.get(path)).copied();
        let sealed = match carried {
            Some(sealed) => sealed,
            None => seal_file(batch, &request.gate, path, &request.folder.join(file))?,
        };
        artifacts.insert(path.clone(), sealed);
    }
    let rules = valid.added_rules();
    if let Some(bytes) = rules {
        request.gate.check("rules", bytes)?;
    }
    let own = writer.signer.fingerprint();
    let mut pipelines = BTreeMap::new();
    for (name, spec) in valid.pipelines() {
        request.gate.check("pipeline", spec.bytes())?;
        pipelines.insert(name.clone(), batch.write_named(spec.bytes())?);
    }
    if let Some(carried) = &request.carried {
        batch.write_blob(&carried.evidence)?;
    }
    let roles = request.roles.clone().unwrap_or_else(|| every_role([own]));
    Ok(RunSubmitted {
        pipelines,
        artifacts,
        imports: seal_imports(writer, batch, plan, &request.imports)?,
        rules: rules.map(|bytes| batch.write_named(bytes)).transpose()?,
        continues: request.carried.as_ref().map(|carried| carried.continues.clone()),
        queue: request.queue.clone().unwrap_or_else(|| plan.queue.clone()),
        pattern: valid.pattern().to_owned(),
        ..RunSubmitted::new(batch.write_named(valid.bytes())?, request.base, roles)
    })
}

/// Copies the imported products into the run, because their sources can be deleted at any time.
fn seal_imports(
    writer: &Writer,
    batch: &mut Batch,
    plan: &Plan,
    found: &BTreeMap<String, Found>,
) -> Result<BTreeMap<String, Import>, AnyError> {
    let mut imports = BTreeMap::new();
    let names: BTreeSet<String> =
        plan.items.iter().flat_map(|item| item.needs.values()).filter_map(Need::import).collect();
    for name in names {
        let Found { product, evidence } = found.get(&name).ok_or_else(|| Error::Unsealed(name.clone()))?;
        let mut file = tempfile::tempfile().map_err(Error::Copy)?;
        writer.store.copy_blob(product.oid, &mut file)?;
        let Product { oid, sha256, .. } = batch.write_file(&mut file)?;
        if (oid, sha256) != (product.oid, product.sha256) {
            return Err(Error::Unsealed(name.clone()).into());
        }
        imports.insert(name, Import { product: *product, evidence: batch.write_named(evidence)? });
    }
    Ok(imports)
}

fn seal_file(batch: &mut Batch, gate: &Gate, path: &FilePath, file: &Path) -> Result<Product, AnyError> {
    let failed = |source| Error::Artifact { path: path.clone(), file: file.to_owned(), source };
    let mut opened = std::fs::File::open(file).map_err(failed)?;
    if !opened.metadata().map_err(failed)?.is_file() {
        return Err(failed(std::io::Error::other("it is not a regular file")).into());
    }
    gate.check_reader(&file.display().to_string(), &mut opened).map_err(failed)??;
    Ok(batch.write_file(&mut opened)?)
}

errors! {
    /// Failures to submit a plan.
    #[derive(Debug, thiserror::Error)] pub enum Error = "submit";
    Different(RunId) "run-exists": "the run {0:?} exists already with another plan or another writer";
    OtherCase { run: RunId, other: RunId } "run-exists":
        "the run id {run:?} differs from that of the run {other:?} only in letter case";
    Used(RunId) "id-used": "the id {0:?} was used before: a log of your key names it, and its ref is gone";
    Unborn "unborn": "HEAD does not point to a commit yet, so items have no base";
    Base(String) "bad-base": "the base {0:?} is not a commit here";
    Artifact { path: FilePath, file: PathBuf, source: std::io::Error }:
        "cannot read the artifact {path:?} from {}" [file.display()];
    Unsealed(String) "lost-race" 5: "nothing was sealed for {0}: submit the plan again";
    Copy(#[source] std::io::Error) "io": "cannot copy an imported product to a temporary file";
    Git(#[source] program::Error): "cannot inspect the base";
    #[from "submit"] Head(work_tree::Error);
}
