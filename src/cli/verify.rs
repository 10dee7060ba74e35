//! `git handoff verify`

mod bundle;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use git_handoff::anchor::held;
use git_handoff::anchor::{Means, ask_all};
use git_handoff::git::store::Store;
use git_handoff::model::digest::{Digest, HashingReader, Oid};
use git_handoff::model::hints;
use git_handoff::model::name::RunId;
use git_handoff::model::proof::Proof;
use git_handoff::repository::{Repository, Trust};
use git_handoff::run::{Target, submit};
use git_handoff::verify::{
    Ask, AtHand, Beside, Claim, Logs, Options, Question, Report, verify_bundle_json, verify_proof, verify_with,
};

use super::context::{read_file, streamed};
use super::{Ending, Failure, Output};

/// The largest proof that is read: two entries with their signatures, two more, and a few hashes.
const PROOF_LIMIT: u64 = 64 << 20;

/// The largest audit bundle that is read: the closest thing seen had 10 MB for 10,000 entries.
const BUNDLE_JSON_LIMIT: u64 = 1 << 30;

/// What else may be verified than a proof. An option that needs `--proof` names these too: what is needed does not count as missing
/// where something stands that it cannot stand beside.
const NO_PROOF: [&str; 4] = ["runs", "all", "bundle", "bundle_json"];

/// Prove that runs are intact: who made what from what, and that nothing was altered
///
/// Everything is recomputed from the objects, nothing is fetched, and keys are trusted only as your own configuration says.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The runs; of a bundle, threads as well
    #[arg(required_unless_present_any = ["all", "bundle", "proof", "bundle_json"])]
    runs: Vec<String>,
    /// Verify every run of this repository
    #[arg(long, conflicts_with_all = ["runs", "bundle"])]
    all: bool,
    /// Verify the runs and threads in this bundle, all or those named; no repository is needed
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    /// Check a proof that `git handoff prove` wrote; nothing else is needed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["runs", "all", "bundle"])]
    proof: Option<PathBuf>,
    /// Check an audit bundle of another orchestrator, as `git handoff export --format bundle-json` writes it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["runs", "all", "bundle", "proof"])]
    bundle_json: Option<PathBuf>,
    /// Fail unless this is the root of the audit bundle
    #[arg(long, value_name = "SHA256", requires = "bundle_json", conflicts_with_all = ["runs", "all", "bundle", "proof"])]
    root: Option<Digest>,
    /// Fail unless this file is the product that the proof is about
    #[arg(long, value_name = "FILE", requires = "proof", conflicts_with_all = NO_PROOF)]
    file: Option<PathBuf>,
    /// Fail unless this is the root that the proof says the run went on from
    #[arg(long, value_name = "SHA256", requires = "proof", conflicts_with_all = NO_PROOF)]
    since_root: Option<Digest>,
    /// Trust exactly the keys of this allowed-signers file [default: handoff.signers]
    #[arg(long, value_name = "FILE")]
    signers: Option<PathBuf>,
    /// Fail unless every signature is by a key of this principal's
    #[arg(long, value_name = "PRINCIPAL")]
    signer: Option<String>,
    /// Trust none of the keys in this list of fingerprints or public keys [default: handoff.revoked]
    #[arg(long, value_name = "FILE")]
    revoked: Option<PathBuf>,
    /// Fail unless every signature is by a key that the signers name
    #[arg(long)]
    require_trusted: bool,
    /// Ask only these of the configured anchors; `local` asks none, the logs at hand count always
    #[arg(long, value_name = "NAME")]
    anchor: Vec<String>,
    /// Fail unless this much can be claimed
    #[arg(long, value_name = "CLAIM", value_parser = ["tamper-detecting", "tamper-evident"])]
    require: Option<String>,
    /// Fail unless the run is of exactly this plan
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Fail unless the run starts from this commit
    #[arg(long, value_name = "REV")]
    base: Option<String>,
}

impl Arguments {
    /// Returns whether this works where there is no repository.
    pub(crate) fn works_anywhere(&self) -> bool {
        self.bundle.is_some() || self.proof.is_some() || self.bundle_json.is_some()
    }
}

/// Prints a report for each run.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let options = options(arguments, repository, output)?;
    let anchors = repository.anchors(&arguments.anchor)?;
    let means = Means::of(repository);
    let ask = |question: &Question<'_>| ask_all(&anchors, &means, question);
    if let Some(path) = &arguments.proof {
        return proof(path, arguments, repository, (&options, &ask), output);
    }
    if let Some(path) = &arguments.bundle_json {
        return bundle_json(path, arguments, repository, &options, output);
    }
    if let Some(path) = &arguments.bundle {
        return bundle::run(path, arguments, repository, (&options, &ask), output);
    }
    let logs = Logs::read(&repository.store)?;
    let at_hand = AtHand { logs: &logs, ask: &ask };
    if arguments.all {
        let own_key = options.own_key.as_deref();
        let held = held::look_up((&repository.store, own_key), &logs, (&anchors, &means))?;
        if held.targets.is_empty() && held.missed.is_empty() {
            output.note("there are no runs here");
        }
        let ending = report(&held.targets, (&repository.store, &at_hand), arguments, &options, output)?;
        let whole = held.missed.is_empty();
        for missed in held.missed {
            output.fail(&missed.into());
        }
        return Ok(if whole { ending } else { Ending::CheckFailed });
    }
    let targets = arguments.runs.iter().map(|named| match Target::find(&repository.store, named) {
        // A run whose ref is gone may still be one that a log names.
        Err(unknown) => RunId::parse(named).map(Target::own).map_err(|_| unknown),
        found => found,
    });
    let targets = targets.collect::<Result<Vec<_>, _>>()?;
    report(&targets, (&repository.store, &at_hand), arguments, &options, output)
}

fn report(
    targets: &[Target],
    (store, at_hand): (&Store, &AtHand<'_>),
    arguments: &Arguments,
    options: &Options,
    output: &mut Output,
) -> Result<Ending, Failure> {
    let mut ending = Ending::Done;
    for (at, target) in targets.iter().enumerate() {
        let report = match verify_with(store, at_hand, &target.run, &target.reference, options) {
            Err(git_handoff::verify::Error::NoSuchRun(_)) => {
                return Err(Target::find(store, target.run.as_str()).err().map_or_else(Failure::bug, Failure::from));
            }
            other => other?,
        };
        if print(&report, at, arguments, output) != Ending::Done {
            ending = Ending::CheckFailed;
        }
    }
    Ok(ending)
}

fn print(report: &Report, at: usize, arguments: &Arguments, output: &mut Output) -> Ending {
    output.report(at, || report.to_json(), |color| report.painted(color));
    let wanted = arguments.require.as_deref().is_none_or(|wanted| wanted != Claim::TamperEvident.as_str());
    if !wanted && report.intact && report.claim != Claim::TamperEvident {
        output.note("tamper-evident was required; it takes trusted signers and an anchor that nobody can rewrite");
        return Ending::CheckFailed;
    }
    if report.intact { Ending::Done } else { Ending::CheckFailed }
}

/// Checks a proof, and a file or an earlier root against it.
fn proof(
    path: &Path,
    arguments: &Arguments,
    repository: &Repository,
    (options, ask): (&Options, Ask<'_>),
    output: &mut Output,
) -> Result<Ending, Failure> {
    let bytes = read_file(path, PROOF_LIMIT)?;
    let proof = Proof::parse(&bytes).map_err(|e| {
        let failure = Failure::refused("bad-proof", format!("{} holds no proof: {e}", path.display()));
        failure.hint(hints::prove())
    })?;
    let file = match &arguments.file {
        Some(file) => {
            let failed = |e| Failure::io(&format!("{} could not be read", file.display()), &e);
            let mut reader = HashingReader::new(File::open(file).map_err(failed)?);
            io::copy(&mut reader, &mut io::sink()).map_err(failed)?;
            Some(reader.finish())
        }
        None => None,
    };
    let logs = Logs::read(&repository.store)?;
    let beside = Beside { file, since_root: arguments.since_root };
    let report = verify_proof(&proof, beside, options, &AtHand { logs: &logs, ask });
    Ok(print(&report, 0, arguments, output))
}

/// Checks an audit bundle.
fn bundle_json(
    path: &Path,
    arguments: &Arguments,
    repository: &Repository,
    options: &Options,
    output: &mut Output,
) -> Result<Ending, Failure> {
    let bytes = read_file(path, BUNDLE_JSON_LIMIT)?;
    let own = repository.own_key();
    let report = verify_bundle_json(&bytes, own.as_ref(), arguments.root, options).map_err(|problems| {
        let what = format!("{} holds no audit bundle: {}", path.display(), problems[0]);
        Failure::refused("bad-bundle", what).hint(hints::export_bundle())
    })?;
    Ok(print(&report, 0, arguments, output))
}

fn options(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Options, Failure> {
    let wanted = Trust {
        signers: arguments.signers.as_deref().map(streamed),
        revoked: arguments.revoked.as_deref().map(streamed),
        require: arguments.require_trusted,
    };
    let options = repository.options(&wanted, &mut |text| output.warn(text))?;
    if arguments.signer.is_some() && options.signers.is_none() {
        return Err(Failure::refused("no-signers", "nobody says which keys are the signer's".into())
            .hint(hints::verify_by_signer()));
    }
    Ok(Options {
        signer: arguments.signer.clone(),
        plan: arguments.plan.as_deref().map(super::validate::read_plan).transpose()?,
        base: arguments.base.as_deref().map(|base| commit(base, arguments, repository)).transpose()?,
        ..options
    })
}

/// Returns the commit that a revision names; for a bundle or a proof a commit's full id says it, since its base is not in it.
fn commit(base: &str, arguments: &Arguments, repository: &Repository) -> Result<Oid, Failure> {
    match base.parse() {
        Ok(oid) if arguments.works_anywhere() => Ok(oid),
        Err(_) if repository.is_outside() => {
            Err(Failure::usage(format!("{base:?} must be a commit's full id: there is no repository here")))
        }
        _ => Ok(submit::resolve_base(&repository.store, base)?),
    }
}
