//! Validates and submits plans with the configuration of the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::git::store::Store;
use crate::git::{refs, work_tree};
use crate::model::any_error::AnyError;
use crate::model::catalog::Catalog;
use crate::model::digest::{Digest, Oid};
use crate::model::format;
use crate::model::json::{self, JsonPath};
use crate::model::name::RunId;
use crate::model::place::Place;
use crate::model::plan::{BuiltIn, Plan};
use crate::model::printable;
use crate::model::role::Role;
use crate::plan;
use crate::plan::validate::{Code, Problem, Problems, ValidPlan, validate};
use crate::repository::{self, Repository};
use crate::run::import::sources::Imports;

use super::OpenRun;
use super::submit::{self, Request, Submitted, resolve_base};

/// The most changed files that a warning names.
const NAMED: usize = 3;

/// Settings that override those of a plan.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The queue.
    pub queue: Option<String>,
    /// The revision of the base.
    pub base: Option<String>,
    /// Whether items may take commits that were made before.
    pub claimed: bool,
    /// Whether an item may carry the sealed settings of a recording.
    pub recorded: bool,
    /// The keys that can append, with their roles. Our own key gets all roles unless it is listed.
    pub admit: BTreeMap<String, BTreeSet<Role>>,
}

impl Wanted {
    /// Returns all keys that can append, or `None` if only our own can.
    fn roles(&self, own: &str) -> Option<BTreeMap<String, BTreeSet<Role>>> {
        let mut roles = self.admit.clone();
        roles.entry(own.to_owned()).or_insert_with(|| BTreeSet::from(Role::SUBMITTER));
        (!self.admit.is_empty()).then_some(roles)
    }

    /// Returns the revision of the base.
    fn revision(&self, of_plan: Option<&str>) -> String {
        self.base.as_deref().or(of_plan).unwrap_or("HEAD").to_owned()
    }
}

/// The fields of a plan that say what it is validated against.
#[derive(Default, Deserialize)]
struct Preface {
    queue: Option<String>,
    base: Option<String>,
}

/// The result of a validation, as `validate --json` prints it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.validate/1")]
pub struct Verdict<'a> {
    /// True if the plan is valid.
    pub valid: bool,
    /// The number of items; absent if the plan is not valid.
    pub items: usize,
    /// The problems that are listed.
    pub problems: &'a Problems,
    /// The number of further problems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<usize>,
    /// The pattern that it grows by, if it is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<&'a str>,
    /// The digests of the pipelines that it and its rules name, as they name them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pipelines: BTreeMap<&'a str, Digest>,
    /// The rules that the pattern created.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[cfg_attr(feature = "schemas", schemars(with = "Vec<serde_json::Map<String, Value>>"))]
    pub rules: &'a [Value],
    /// Parts of the plan that have no effect.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub warnings: &'a [String],
}

impl<'a> Verdict<'a> {
    /// Returns the answer for an invalid plan.
    pub fn refused(problems: &'a Problems) -> Self {
        let more = Some(problems.more()).filter(|more| *more > 0);
        Self { valid: false, more, ..Self::blank(problems) }
    }

    /// Returns the answer for a valid plan. `none` is an empty list of problems.
    pub fn valid(plan: &'a ValidPlan, none: &'a Problems) -> Self {
        let (items, pattern) = (plan.plan().items.len(), Some(plan.pattern()));
        let pipelines = plan.pipelines().iter().map(|(name, spec)| (name.as_str(), spec.digest())).collect();
        Self { items, pattern, pipelines, rules: plan.compiled(), warnings: plan.warnings(), ..Self::blank(none) }
    }

    fn blank(problems: &'a Problems) -> Self {
        Self {
            valid: true,
            items: 0,
            problems,
            more: None,
            pattern: None,
            pipelines: BTreeMap::new(),
            rules: &[],
            warnings: &[],
        }
    }
}

/// A submitted run, as `submit --json` prints it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.submit/1")]
pub struct Submission {
    /// The run.
    pub run: RunId,
    /// Whether it was created now, not by an earlier submission of the same plan.
    pub created: bool,
    /// Parts of the plan that have no effect, and uncommitted changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Repository {
    /// Validates a plan, with its base, artifacts and imports.
    ///
    /// Paths of artifacts are relative to `folder`. Without it, their files are not checked.
    pub fn validate(&self, bytes: &[u8], folder: Option<&Path>, options: &Wanted) -> Result<ValidPlan, Problems> {
        match self.validated(bytes, options) {
            Ok((valid, _)) => {
                let missing = self.absent(valid.plan(), folder, options);
                if missing.is_empty() { Ok(valid) } else { Err(missing) }
            }
            Err(mut problems) => {
                if let Ok(plan) = plan::parse_within(json::unmarked(bytes), self.config.max_items) {
                    problems.extend(self.absent(&plan, folder, options));
                }
                Err(problems)
            }
        }
        .map_err(|problems| problems.located(bytes))
    }

    /// Finds problems that would fail the submission: a missing base, and unreadable artifacts.
    fn absent(&self, plan: &Plan, folder: Option<&Path>, options: &Wanted) -> Problems {
        let mut problems = Problems::default();
        if let Err(error) = resolve_base(&self.store, &options.revision(plan.base.as_deref())) {
            let is_own = options.base.is_none() && plan.base.is_some();
            let at = if is_own { JsonPath::root().key("base") } else { JsonPath::root() };
            problems.push(Problem::new(Code::MissingBase, &at, error.to_string()));
        }
        for (path, file) in plan.artifacts.iter().filter_map(|(path, file)| Some((path, folder?.join(file)))) {
            if let Err(error) = fs::metadata(&file).and_then(|meta| readable(&meta)) {
                let at = JsonPath::root().key("artifacts").key(path.as_str());
                let message = format!("the file {} cannot be read: {error}", file.display());
                problems.push(Problem::new(Code::MissingArtifact, &at, message));
            }
        }
        problems
    }

    /// Returns a valid plan with its imports. Both `validate` and `submit` use this, so that they
    /// agree.
    fn validated(&self, bytes: &[u8], options: &Wanted) -> Result<(ValidPlan, Imports), Problems> {
        let (mut valid, catalog) = self.valid(bytes, options)?;
        let unmatched = self.unmatched_protection(valid.plan(), &options.revision(valid.plan().base.as_deref()));
        valid.add_warnings(unmatched);
        // The imports of an existing run were sealed with it.
        let is_there = refs::read(&self.store, &format::run_ref(&valid.plan().id)).is_ok_and(|tip| tip.is_some());
        let imports = if is_there { Imports::default() } else { self.imports(valid.plan(), &catalog)? };
        Ok((valid, imports))
    }

    /// Returns a valid plan with the catalog, without its imports.
    pub(super) fn valid(&self, bytes: &[u8], options: &Wanted) -> Result<(ValidPlan, Catalog), Problems> {
        let bytes = json::unmarked(bytes);
        // Problems of the plan are found against the catalog.
        let preface: Preface = serde_json::from_slice(bytes).unwrap_or_default();
        let queue = options.queue.as_deref().or(preface.queue.as_deref()).unwrap_or("default");
        let folders = [self.config.inputs.as_str(), self.config.outputs.as_str()];
        // A missing base is reported elsewhere.
        let reserved = resolve_base(&self.store, &options.revision(preface.base.as_deref()))
            .and_then(|commit| submit::reserved_in_base(&self.store, commit, folders))
            .unwrap_or_default();
        let mut catalog = self.catalog(queue, reserved).map_err(|error| Problems::from(unreadable(&error)))?;
        catalog.executors.extend(options.claimed.then(|| BuiltIn::Claimed.name().to_owned()));
        catalog.allows_recorded = options.recorded;
        Ok((validate(bytes, &catalog)?, catalog))
    }

    /// Validates a plan and creates its run. Paths of artifacts are relative to `folder`. Problems
    /// of the plan are a result, not an error.
    pub fn submit(
        &self,
        bytes: &[u8],
        folder: PathBuf,
        options: &Wanted,
    ) -> Result<Result<Submission, Problems>, AnyError> {
        self.submit_if(bytes, folder, options, |_| Ok(()))
    }

    /// Submits a plan if `allowed` accepts it. It gets the same plan that is submitted, which a
    /// second read might not return.
    pub fn submit_if<E: From<AnyError>>(
        &self,
        bytes: &[u8],
        folder: PathBuf,
        options: &Wanted,
        allowed: impl FnOnce(&ValidPlan) -> Result<(), E>,
    ) -> Result<Result<Submission, Problems>, E> {
        let (valid, imports) = match self.validated(bytes, options) {
            Ok(both) => both,
            Err(problems) => return Ok(Err(problems)),
        };
        allowed(&valid)?;
        Ok(Ok(self.submit_valid(&valid, imports, folder, options)?))
    }

    pub(super) fn submit_valid(
        &self,
        valid: &ValidPlan,
        imports: Imports,
        folder: PathBuf,
        options: &Wanted,
    ) -> Result<Submission, AnyError> {
        let queue = options.queue.as_deref().unwrap_or(&valid.plan().queue);
        if queue != "default" && !self.config.queues.contains_key(queue) {
            return Err(Error::Queue(queue.to_owned()).into());
        }
        let writer = self.writer()?;
        let own = writer.signer.fingerprint();
        if options.admit.get(&own).is_some_and(|roles| !roles.contains(&Role::Own)) {
            return Err(Error::NotOwned.into());
        }
        let base = resolve_base(&self.store, &options.revision(valid.plan().base.as_deref()))?;
        let mut unseen = not_in(&self.store, base).map_err(Error::WorkTree)?;
        // The file of a plan is often untracked itself.
        if options.recorded && self.config.workspace_copy.is_empty() && self.config.workspace_link.is_empty() {
            unseen = unseen
                .into_iter()
                .chain(self.untracked().map_err(Error::WorkTree)?)
                .reduce(|changed, new| format!("{changed}; {new}"));
        }
        let request = Request {
            base,
            queue: options.queue.clone(),
            folder,
            gate: self.gate(),
            imports: imports.found,
            carried: imports.carried,
            roles: options.roles(&own),
        };
        let Submitted { run, created } = submit::submit(&writer, valid, &request)?;
        if !created {
            // Another key can plant a run under this id that looks finished, so it must verify.
            OpenRun::open(&writer, &run)?;
        }
        let mut warnings: Vec<String> = valid.warnings().iter().cloned().chain(imports.warnings).collect();
        if created {
            warnings.extend(unseen);
            warnings.extend(self.same_id(&run)?);
        }
        Ok(Submission { run, created, warnings })
    }
}

fn readable(meta: &Metadata) -> io::Result<()> {
    if meta.is_file() { Ok(()) } else { Err(io::Error::other("it is not a regular file")) }
}

impl Repository {
    /// Returns a warning about untracked files.
    fn untracked(&self) -> Result<Option<String>, work_tree::Error> {
        let ours = [&self.config.inputs, &self.config.outputs];
        let paths = work_tree::untracked(&self.store)?;
        let paths = paths.iter().filter(|path| !ours.iter().any(|folder| path.starts_with(folder.as_str())));
        let names: Vec<String> = paths.map(|path| path.display().to_string()).collect();
        Ok((!names.is_empty())
            .then(|| format!("not tracked, so that no item sees it: {}", printable::first_of(&names, NAMED))))
    }

    /// Returns a warning if a fetched run has the id of a new run.
    fn same_id(&self, run: &RunId) -> Result<Option<String>, refs::Error> {
        let fetched = refs::fetched_at(&self.store, &Place::of_run(run))?;
        let names = fetched.iter().filter_map(|(name, _)| Some(format!("{}/{run}", Place::fetched(name)?.0)));
        let names: Vec<String> = names.collect();
        let others = names.join(", ");
        let text =
            || format!("another run has the id {:?}: {others}; --id gives this one an id of its own", run.as_str());
        Ok((!names.is_empty()).then(text))
    }
}

/// Returns a warning about uncommitted changes, if the base is checked out.
fn not_in(store: &Store, base: Oid) -> Result<Option<String>, work_tree::Error> {
    if work_tree::head(store)?.is_none_or(|(head, _)| head != base) {
        return Ok(None);
    }
    let changed = work_tree::uncommitted(store)?;
    let names: Vec<_> = changed.iter().map(|path| path.display().to_string()).collect();
    Ok((!changed.is_empty()).then(|| {
        format!("not committed, so that no item sees it: the change to {}", printable::first_of(&names, NAMED))
    }))
}

/// Turns an unreadable registration into a problem of the plan.
fn unreadable(error: &AnyError) -> Problem {
    let code = if matches!(error.downcast_ref(), Some(repository::Error::Rules { .. })) {
        Code::BadRule
    } else {
        Code::UnknownShape
    };
    Problem::new(code, &JsonPath::root(), crate::model::causes::in_words(&**error))
}

errors! {
    /// Failures to submit a plan.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Queue(String) "unknown-queue": "no queue {0:?} is registered here";
    NotOwned "usage" 2: "your own key needs the role `own`, because the submitter owns the run";
    #[from "git"] WorkTree(work_tree::Error);
}
