//! `git handoff verify`

use std::path::PathBuf;

use git_handoff::model::format;
use git_handoff::model::name::RunId;
use git_handoff::submit;
use git_handoff::verify::{Logs, Options, Signers, verify_with};

use super::context::{Context, read_file};
use super::target::{Target, own_runs};
use super::{Ending, Failure, Output};

/// The largest allowed-signers file that is read.
const SIGNERS_LIMIT: u64 = 16 << 20;

/// Prove that runs are intact: who made what from what, and that nothing was altered
///
/// Everything is recomputed from the objects, nothing is fetched, and keys are trusted only as your own configuration says.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The runs
    #[arg(required_unless_present = "all")]
    runs: Vec<String>,
    /// Verify every run of this repository
    #[arg(long, conflicts_with = "runs")]
    all: bool,
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

/// Prints a report for each run.
pub(crate) fn run(arguments: &Arguments, context: &Context, output: &mut Output) -> Result<Ending, Failure> {
    let options = options(arguments, context)?;
    let mut targets = Vec::new();
    if arguments.all {
        for run in own_runs(&context.store)? {
            targets.push(Target { reference: format::run_ref(&run), run });
        }
        if targets.is_empty() {
            output.note("there are no runs here");
        }
    }
    for named in &arguments.runs {
        targets.push(match Target::find(&context.store, named) {
            // A run whose ref is gone may still be one that a log names.
            Err(unknown) => match RunId::parse(named) {
                Ok(run) => Target { reference: format::run_ref(&run), run },
                Err(_) => return Err(unknown),
            },
            found => found?,
        });
    }
    let logs = Logs::read(&context.store)?;
    let mut ending = Ending::Done;
    for (at, target) in targets.iter().enumerate() {
        let report = match verify_with(&context.store, &logs, &target.run, &target.reference, &options) {
            Err(git_handoff::verify::Error::NoSuchRun(_)) => {
                return Err(Target::find(&context.store, target.run.as_str()).err().unwrap_or_else(Failure::bug));
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
    Ok(Options {
        plan: arguments.plan.as_deref().map(super::validate::read_plan).transpose()?,
        base: arguments.base.as_deref().map(|base| submit::resolve_base(&context.store, base)).transpose()?,
        ..trust(context, arguments.signers.as_ref(), arguments.require_trusted)?
    })
}

/// Returns whom the verifier knows: from the file that was named, else as the configuration says.
pub(super) fn trust(context: &Context, named: Option<&PathBuf>, require: bool) -> Result<Options, Failure> {
    let config = &context.config;
    let strict_file = named.cloned().or_else(|| config.signers.as_deref().map(|path| context.expand(path)));
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
        strict_signers: strict_file.is_some() || require,
        ..Options::default()
    })
}
