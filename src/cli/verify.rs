//! `git handoff verify`

mod advice;
mod bundle;
mod commits;
mod repeat;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use git_handoff::git::history;
use git_handoff::model::confinement::{BWRAP, LANDLOCK, SECCOMP};
use git_handoff::model::digest::{Digest, HashingReader};
use git_handoff::model::name::RunId;
use git_handoff::model::proof::Proof;
use git_handoff::model::{format, hints, printable};
use git_handoff::repository::{Repository, Trust};
use git_handoff::run::query::Target;
use git_handoff::share::anchor::missing_runs::Missed;
use git_handoff::share::anchor::verification::{Base, RunsToVerify, Verification, VerifyRequest};
use git_handoff::verify::deleted;
use git_handoff::verify::{Beside, Claim, Failure as Lack, Logs, Options, Report, Requirements, State};

use super::context::{read_file, streamed};
use super::{Ending, Failure, Output, status, validate};
pub(super) use advice::of_signers;

/// The maximum size of a proof: four signed entries and a few hashes.
const PROOF_LIMIT: u64 = 64 << 20;

/// The maximum size of an audit bundle; 10,000 entries have about 10 MB.
const BUNDLE_JSON_LIMIT: u64 = 1 << 30;

/// The arguments other than a proof. An option that needs `--proof` lists them, because clap does
/// not report a missing argument that conflicts with a given one.
const NO_PROOF: [&str; 4] = ["runs", "all", "bundle", "bundle_json"];

/// The output formats of a report.
const TEXT: &str = "text";
const SNAPSHOT: &str = "snapshot";

/// The arguments for runs only.
const NO_COMMITS: [&str; 9] =
    ["runs", "all", "bundle", "proof", "bundle_json", "require", "require_sandbox", "plan", "base"];

/// The arguments for whole runs and for other evidence.
const NO_REPEAT: [&str; 6] = ["all", "bundle", "proof", "bundle_json", "commits", "format"];

/// The requirement that all protected files were recomputed.
const PROTECTED: &str = "protected";

/// The layers that `--require-sandbox` can name.
const LAYERS: [&str; 3] = [LANDLOCK, SECCOMP, BWRAP];

/// Verify runs: who made what from what, and that nothing was altered
///
/// Recomputes everything from the objects and fetches nothing. Only your own configuration decides
/// which keys are trusted.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct Arguments {
    /// The runs; for a bundle, also threads; for --recheck and --reproduce, RUN or RUN/ITEM
    #[arg(required_unless_present_any = ["all", "bundle", "proof", "bundle_json", "commits"])]
    runs: Vec<String>,
    /// Verify every run of this repository
    #[arg(long, conflicts_with_all = ["runs", "bundle"])]
    all: bool,
    /// Verify this bundle, or named runs and threads in it; needs no repository
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    /// Verify a proof written by `git handoff prove`; needs nothing else
    #[arg(long, value_name = "FILE", conflicts_with_all = ["runs", "all", "bundle"])]
    proof: Option<PathBuf>,
    /// Verify an audit bundle of another orchestrator, or of `git handoff export --format
    /// bundle-json`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["runs", "all", "bundle", "proof"])]
    bundle_json: Option<PathBuf>,
    /// Verify that every commit of a range is exactly the product of items, or a person's; one that
    /// was changed after `apply` is not
    #[arg(long, value_name = "A..B", conflicts_with_all = NO_COMMITS)]
    commits: Option<String>,
    /// Repeat the recorded checks of a run or an item in fresh worktrees, confined as your settings
    /// say
    #[arg(long, conflicts_with_all = NO_REPEAT)]
    recheck: bool,
    /// Run the commands of --recheck without asking
    #[arg(long, short, requires = "recheck")]
    yes: bool,
    /// Compare a commit with the run's base plus the products of a run or an item, file by file
    #[arg(long, value_name = "REV", conflicts_with = "recheck", conflicts_with_all = NO_REPEAT)]
    reproduce: Option<String>,
    /// Require this root of the audit bundle
    #[arg(long, value_name = "SHA256", requires = "bundle_json", conflicts_with_all = ["runs", "all", "bundle", "proof"])]
    root: Option<Digest>,
    /// Require that this file is the proven product
    #[arg(long, value_name = "FILE", requires = "proof", conflicts_with_all = NO_PROOF)]
    file: Option<PathBuf>,
    /// Require this root as the beginning of the proven continuation
    #[arg(long, value_name = "SHA256", requires = "proof", conflicts_with_all = NO_PROOF)]
    since_root: Option<Digest>,
    /// Trust exactly the keys of this allowed-signers file [default: handoff.signers]
    #[arg(long, value_name = "FILE")]
    signers: Option<PathBuf>,
    /// Require that this key made every signature: a fingerprint, a public key, or a principal
    #[arg(long, value_name = "KEY")]
    signer: Option<String>,
    /// Distrust the keys in this file of fingerprints or public keys [default: handoff.revoked]
    #[arg(long, value_name = "FILE")]
    revoked: Option<PathBuf>,
    /// Require that every signature is by a key in the signers file
    #[arg(long)]
    require_trusted: bool,
    /// Ask only these anchors; `local` asks none. Local logs always count
    #[arg(long, value_name = "NAME")]
    anchor: Vec<String>,
    /// Require at least this guarantee, or that all protected files were recomputed; may be given
    /// more than once
    #[arg(long, value_name = "CLAIM", value_parser = ["tamper-detecting", "tamper-evident", PROTECTED])]
    require: Vec<String>,
    /// Require that every attempt, also in runs whose products were reused, was confined by these
    /// layers, as recorded by the driver [default: all]
    #[arg(
        long,
        value_name = "LAYERS",
        num_args = 0..=1,
        require_equals = true,
        value_delimiter = ',',
        default_missing_values = LAYERS,
        value_parser = LAYERS,
        conflicts_with_all = ["proof", "bundle_json"]
    )]
    require_sandbox: Vec<String>,
    /// Print `snapshot`: the parts that two runs of one plan have in common, without run names,
    /// hashes, keys and times
    #[arg(long, value_name = "FORMAT", value_parser = [TEXT, SNAPSHOT], default_value = TEXT, conflicts_with_all = ["bundle", "proof", "bundle_json", "commits"])]
    format: String,
    /// Exit with 0 even if not every item is done and green
    #[arg(long)]
    allow_partial: bool,
    /// Require that the run has exactly this plan
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Require that the run starts from this commit
    #[arg(long, value_name = "REV")]
    base: Option<String>,
}

impl Arguments {
    /// Returns true if these arguments need no repository.
    pub(crate) fn works_anywhere(&self) -> bool {
        self.bundle.is_some() || self.proof.is_some() || self.bundle_json.is_some()
    }

    /// Returns true if this runs commands of the run, and so asks and can be interrupted.
    pub(crate) fn runs_commands(&self) -> bool {
        self.recheck
    }

    /// Returns the requirements on a run that is intact.
    fn requirements(&self) -> Requirements<'_> {
        let is_required = |word: &str| self.require.iter().any(|each| each == word);
        let is_evident = is_required(Claim::TamperEvident.as_str());
        Requirements {
            claim: if is_evident { Claim::TamperEvident } else { Claim::TamperDetecting },
            layers: self.require_sandbox.iter().map(String::as_str).collect(),
            protected: is_required(PROTECTED),
            roles: self.require_trusted,
        }
    }

    /// Returns the verifier's parameters and requirements.
    fn request(&self) -> Result<VerifyRequest<'_>, Failure> {
        let base = if self.works_anywhere() { Base::Elsewhere } else { Base::Here };
        Ok(VerifyRequest {
            trust: Trust {
                signers: self.signers.as_deref().map(streamed),
                revoked: self.revoked.as_deref().map(streamed),
                require: self.require_trusted,
                signer: self.signer.as_deref(),
            },
            plan: self.plan.as_deref().map(validate::read_plan).transpose()?,
            base: self.base.as_deref().map(base),
            anchors: &self.anchor,
        })
    }
}

/// Prints a report for each run.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    if output.json && arguments.format == SNAPSHOT {
        return Err(Failure::usage("a snapshot is text: either --json or --format snapshot".to_owned()));
    }
    let with = repository.verification(arguments.request()?, &mut |text| output.warn(text))?;
    if let Some(path) = &arguments.proof {
        return proof(path, arguments, &with, output);
    }
    if let Some(path) = &arguments.bundle_json {
        return bundle_json(path, arguments, &with, output);
    }
    if let Some(path) = &arguments.bundle {
        return bundle::run(path, arguments, repository, &with, output);
    }
    if let Some(range) = &arguments.commits {
        return commits::run(range, arguments.allow_partial, repository, &with, output);
    }
    let question = repeat::question(arguments, repository)?;
    let names = question.as_ref().map_or(arguments.runs.as_slice(), |question| question.run.as_slice());
    let runs = if arguments.all { with.all()? } else { with.by_name(names)? };
    if runs.is_empty() {
        return Err(Failure::nothing_verified("there are no runs here").hint(hints::runs()));
    }
    runs.cautions.iter().for_each(|caution| output.note(caution));
    if let Some(question) = question.filter(|_| runs.missed.is_empty()) {
        return repeat::run(&question, &runs, repository, output);
    }
    let mut ending = report(&runs, arguments, repository, output)?;
    let whose = if runs.missed.is_empty() { None } else { trusted(repository) };
    for missed in runs.missed {
        let (proven, deleted) = deletion(&missed, repository, whose.as_ref()).unzip();
        if proven != Some(true) {
            ending = ending.or_worse(Ending::CheckFailed);
            output.fail(&missed.into());
        }
        deleted.iter().for_each(|sentence: &String| output.note(sentence));
    }
    Ok(ending)
}

/// Returns when and by whom a missing run was deleted, and whether that is proven.
///
/// Everyone with the repository can write a deletion record. It excuses a missing run only if
/// signed by the key whose log names the run.
fn deletion(missed: &Missed, repository: &Repository, whose: Option<&(Logs, Options)>) -> Option<(bool, String)> {
    let Missed::Gone { reference, .. } = missed else { return None };
    let run = RunId::decode(reference.strip_prefix(format::RUN_REFS)?)?;
    let record = deleted::recorded(&repository.store, &run)?;
    let is_proven = whose.is_some_and(|(logs, options)| record.is_proven(logs, &run, options));
    Some((is_proven, record.sentence(&run)))
}

/// Returns the local logs and the trust, computed once for all deletion records.
fn trusted(repository: &Repository) -> Option<(Logs, Options)> {
    Some((Logs::read(&repository.store).ok()?, repository.options(&Trust::default(), &mut |_| ()).ok()?))
}

fn report(
    runs: &RunsToVerify<'_>,
    arguments: &Arguments,
    repository: &Repository,
    output: &mut Output,
) -> Result<Ending, Failure> {
    let (mut ending, mut lacking) = (Ending::Done, false);
    for (at, report) in runs.reports().enumerate() {
        let report = report?;
        let formatted = match arguments.format.as_str() {
            SNAPSHOT => Some(snapshot_items(&report, repository)?),
            _ => None,
        };
        let lacks = report.failure == Some(Lack::Incomplete) || report.rows.content.state == State::NotApplicable;
        lacking |= lacks;
        ending = ending.or_worse(print(report, at, arguments, formatted.as_deref(), output));
    }
    if lacking {
        hint_at_clone(repository, output);
    }
    Ok(ending)
}

/// Prints how to fetch what a partial or shallow clone lacks.
pub(super) fn hint_at_clone(repository: &Repository, output: &mut Output) {
    let (partial, shallow) = (history::is_partial(&repository.store), history::is_shallow(&repository.store));
    match (partial, shallow) {
        (true, false) => output.hint(&hints::fetch_products()),
        (true, true) => output.hint(&hints::fetch_products_and_history()),
        (false, true) => output.hint(&hints::unshallow()),
        (false, false) => {}
    }
}

/// Returns a line for each item of a verified run: its result and products.
fn snapshot_items(report: &Report, repository: &Repository) -> Result<String, Failure> {
    if !report.intact {
        return Ok(String::new());
    }
    let address =
        report.remote.as_ref().map_or_else(|| report.run.clone(), |remote| format!("{remote}/{}", report.run));
    let view = Target::find(&repository.store, &address)?.view(&repository.store)?;
    Ok(view
        .state
        .items
        .indexed()
        .map(|(at, state)| {
            let id = view.state.graph.item(at).id.to_string();
            let status = format!("{id}: {}", status::word(&view, at));
            let words: Vec<String> =
                std::iter::once(status).chain(state.products.keys().map(ToString::to_string)).collect();
            printable::line(&format!("  {}", words.join(", ")))
        })
        .collect::<Vec<_>>()
        .join("\n"))
}

fn print(mut report: Report, at: usize, arguments: &Arguments, snapshot: Option<&str>, output: &mut Output) -> Ending {
    report.require(&arguments.requirements());
    match snapshot {
        Some(items) => (report.snapshot() + items).lines().for_each(|line| output.line(line)),
        None => output.report(at, || report.to_json(), |color| report.painted(color)),
    }
    advice::advise(&report, output);
    match report.intact {
        false => Ending::CheckFailed,
        true if report.is_partial() && !arguments.allow_partial => Ending::NotAllDone,
        true => Ending::Done,
    }
}

/// Verifies a proof, with an optional file or earlier root.
fn proof(path: &Path, arguments: &Arguments, with: &Verification<'_>, output: &mut Output) -> Result<Ending, Failure> {
    let bytes = read_file(path, PROOF_LIMIT)?;
    let proof = Proof::parse(&bytes).map_err(|e| {
        let failure = Failure::refused("bad-proof", format!("{} holds no proof: {e}", path.display()));
        failure.hint(hints::prove())
    })?;
    let file = arguments.file.as_deref().map(digest).transpose()?;
    let report = with.proof(&proof, Beside { file, since_root: arguments.since_root })?;
    Ok(print(report, 0, arguments, None, output))
}

/// Returns the digest of a file.
fn digest(file: &Path) -> Result<(Digest, u64), Failure> {
    let failed = |e| Failure::io(&format!("{} could not be read", file.display()), &e);
    let mut reader = HashingReader::new(File::open(file).map_err(failed)?);
    io::copy(&mut reader, &mut io::sink()).map_err(failed)?;
    Ok(reader.finish())
}

/// Verifies an audit bundle.
fn bundle_json(
    path: &Path,
    arguments: &Arguments,
    with: &Verification<'_>,
    output: &mut Output,
) -> Result<Ending, Failure> {
    let bytes = read_file(path, BUNDLE_JSON_LIMIT)?;
    let report = with.bundle_json(&bytes, arguments.root).map_err(|problems| {
        let what = format!("{} holds no audit bundle: {}", path.display(), problems[0]);
        Failure::refused("bad-bundle", what).hint(hints::export_bundle())
    })?;
    Ok(print(report, 0, arguments, None, output))
}
