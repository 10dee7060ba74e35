//! `git handoff verify`

use std::path::PathBuf;

use git_handoff::git::store::Store;
use git_handoff::model::digest::Oid;
use git_handoff::model::format;
use git_handoff::model::name::RunId;
use git_handoff::share::bundle;
use git_handoff::submit;
use git_handoff::verify::{Logs, Options, Signers, verify_with};

use super::context::{Context, read_file};
use super::target::{Target, own_runs};
use super::{Ending, Failure, Output, share};

/// The largest allowed-signers file that is read.
const SIGNERS_LIMIT: u64 = 16 << 20;

/// Prove that runs are intact: who made what from what, and that nothing was altered
///
/// Everything is recomputed from the objects, nothing is fetched, and keys are trusted only as your own configuration says.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The runs
    #[arg(required_unless_present_any = ["all", "bundle"])]
    runs: Vec<String>,
    /// Verify every run of this repository
    #[arg(long, conflicts_with_all = ["runs", "bundle"])]
    all: bool,
    /// Verify the runs in this bundle, all or those named; no repository is needed
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    /// Trust exactly the keys of this allowed-signers file [default: handoff.signers]
    #[arg(long, value_name = "FILE")]
    signers: Option<PathBuf>,
    /// Fail unless every signature is by a key that the signers name
    #[arg(long)]
    require_trusted: bool,
    /// Fail unless the run is of exactly this plan
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Fail unless the run starts from this commit
    #[arg(long, value_name = "REV")]
    base: Option<String>,
}

impl Arguments {
    /// Returns whether this works where there is no repository.
    pub(super) fn works_anywhere(&self) -> bool {
        self.bundle.is_some()
    }
}

/// Prints a report for each run.
pub(crate) fn run(arguments: &Arguments, context: &Context, output: &mut Output) -> Result<Ending, Failure> {
    let options = options(arguments, context)?;
    let Some(path) = &arguments.bundle else {
        let targets = in_repository(arguments, context, output)?;
        return report(&targets, &context.store, &Logs::read(&context.store)?, &options, output);
    };
    let opened = bundle::open(path, context.config.max_fetch_size)?;
    for name in &opened.skipped {
        output.warn(&format!("{} is no name of a run, thread or log; it was left aside", share::shown(name)));
    }
    let targets = in_bundle(&opened.runs, &arguments.runs)?;
    let store = output.keep(opened.scratch);
    let logs = Logs::read(&store)?.with_witnesses(Logs::read(&context.store)?);
    report(&targets, &store, &logs, &options, output)
}

fn in_repository(arguments: &Arguments, context: &Context, output: &mut Output) -> Result<Vec<Target>, Failure> {
    let mut targets = Vec::new();
    if arguments.all {
        targets.extend(own_runs(&context.store)?.into_iter().map(own));
        if targets.is_empty() {
            output.note("there are no runs here");
        }
    }
    for named in &arguments.runs {
        targets.push(match Target::find(&context.store, named) {
            // A run whose ref is gone may still be one that a log names.
            Err(unknown) => RunId::parse(named).map(own).map_err(|_| unknown)?,
            found => found?,
        });
    }
    Ok(targets)
}

fn in_bundle(runs: &[RunId], named: &[String]) -> Result<Vec<Target>, Failure> {
    if let Some(missing) = named.iter().find(|name| !runs.iter().any(|run| run.as_str() == name.as_str())) {
        return Err(Failure::refused("unknown-run", format!("there is no run {missing:?} in the bundle")));
    }
    if runs.is_empty() {
        return Err(Failure::refused("no-runs", "there are no runs in the bundle".into()));
    }
    let wanted = |run: &&RunId| named.is_empty() || named.iter().any(|name| name == run.as_str());
    Ok(runs.iter().filter(wanted).cloned().map(own).collect())
}

fn own(run: RunId) -> Target {
    Target { reference: format::run_ref(&run), run }
}

fn report(
    targets: &[Target],
    store: &Store,
    logs: &Logs,
    options: &Options,
    output: &mut Output,
) -> Result<Ending, Failure> {
    let mut ending = Ending::Done;
    for (at, target) in targets.iter().enumerate() {
        let report = match verify_with(store, logs, &target.run, &target.reference, options) {
            Err(git_handoff::verify::Error::NoSuchRun(_)) => {
                return Err(Target::find(store, target.run.as_str()).err().unwrap_or_else(Failure::bug));
            }
            other => other?,
        };
        if output.json {
            output.value(&report.to_json());
        } else {
            let gap = if at == 0 { "" } else { "\n" };
            let text = format!("{gap}{}", report.to_text(output.color));
            output.line(text.trim_end_matches('\n'));
        }
        if !report.intact {
            ending = Ending::CheckFailed;
        }
    }
    Ok(ending)
}

fn options(arguments: &Arguments, context: &Context) -> Result<Options, Failure> {
    let config = &context.config;
    let strict_file = arguments.signers.clone().or_else(|| config.signers.as_deref().map(|path| context.expand(path)));
    let informing = || config.allowed_signers.as_deref().map(|path| context.expand(path));
    let file = strict_file.clone().or_else(informing);
    let signers = match &file {
        // A file that git itself is pointed at may not be there; one that was asked for must be.
        Some(path) if strict_file.is_none() && !path.exists() => None,
        Some(path) => {
            let text = String::from_utf8_lossy(&read_file(path, SIGNERS_LIMIT)?).into_owned();
            Some(
                Signers::parse(&text)
                    .map_err(|e| Failure::refused("bad-signers", format!("{} cannot be used: {e}", path.display())))?,
            )
        }
        None => None,
    };
    Ok(Options {
        own_key: context.own_fingerprint(),
        signers,
        strict_signers: strict_file.is_some() || arguments.require_trusted,
        plan: arguments.plan.as_deref().map(super::validate::read_plan).transpose()?,
        base: arguments.base.as_deref().map(|base| commit(base, arguments, context)).transpose()?,
        alone: arguments.bundle.is_some(),
        ..Options::default()
    })
}

/// Returns the commit that a revision names; for a bundle a commit's full id says it, since its base is not in it.
fn commit(base: &str, arguments: &Arguments, context: &Context) -> Result<Oid, Failure> {
    match base.parse() {
        Ok(oid) if arguments.bundle.is_some() => Ok(oid),
        Err(_) if context.outside => {
            Err(Failure::usage(format!("{base:?} must be a commit's full id: there is no repository here")))
        }
        _ => Ok(submit::resolve_base(&context.store, base)?),
    }
}
