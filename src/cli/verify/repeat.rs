//! `git handoff verify --recheck` and `--reproduce`

use std::io::{self, BufRead as _, IsTerminal as _};

use git_handoff::answers::program::Verified;
use git_handoff::apply::reproduce::{Reproduced, reproduce};
use git_handoff::engine::recheck::{Recheck, Rechecked, Verdict};
use git_handoff::model::digest::Oid;
use git_handoff::model::hints;
use git_handoff::model::item_index::ItemIndex;
use git_handoff::model::quote::quoted_words;
use git_handoff::run::operate::submit;
use git_handoff::run::query::{Target, VerifiedRun, target};
use git_handoff::share::anchor::gate;
use git_handoff::share::anchor::verification::RunsToVerify;
use git_handoff::verify::{Failure as Lack, Report};

use super::super::{Ending, Failure, Output, interrupt, table};
use super::{Arguments, Repository, advice, hint_at_clone};

/// The run and the item that `--recheck` or `--reproduce` is about.
pub(super) struct Question<'a> {
    arguments: &'a Arguments,
    /// The name of the run: one element.
    pub(super) run: Vec<String>,
    target: Target,
    item: Option<&'a str>,
}

/// Returns the question of the arguments, or `None` if they ask for a verification only.
pub(super) fn question<'a>(arguments: &'a Arguments, repository: &Repository) -> Result<Option<Question<'a>>, Failure> {
    if !arguments.recheck && arguments.reproduce.is_none() {
        return Ok(None);
    }
    let [text] = arguments.runs.as_slice() else {
        let option = if arguments.recheck { "--recheck" } else { "--reproduce" };
        return Err(Failure::usage(format!("{option} is for one run or one item: name RUN or RUN/ITEM")));
    };
    let (target, item) = Target::with_rest(&repository.store, text)?;
    let run = item.map_or(text.as_str(), |item| &text[..text.len() - item.len() - 1]);
    Ok(Some(Question { arguments, run: vec![run.to_owned()], target, item }))
}

/// Prints the report of the run and, if the run is intact, the answer to the question.
pub(super) fn run(
    question: &Question<'_>,
    runs: &RunsToVerify<'_>,
    repository: &Repository,
    output: &mut Output,
) -> Result<Ending, Failure> {
    let arguments = question.arguments;
    let Some(report) = runs.reports().next() else {
        return Err(Failure::nothing_verified("there are no runs here").hint(hints::runs()));
    };
    let mut report = report?;
    report.require(&arguments.requirements());
    if !output.json || !report.intact {
        output.report(0, || report.to_json(), |color| report.painted(color));
    }
    advice::advise(&report, output);
    if !report.intact {
        if report.failure == Some(Lack::Incomplete) {
            hint_at_clone(repository, output);
        }
        return Ok(Ending::CheckFailed);
    }
    let verified = admit(question, repository)?;
    let item = question.item.map(|item| target::item(&verified, item)).transpose()?;
    match &arguments.reproduce {
        Some(revision) => {
            let commit = commit(revision, repository)?;
            let reproduced = reproduce(&repository.store, &verified, item, commit)?;
            Ok(print_reproduced(&reproduced, &report, output))
        }
        None => recheck(question, verified, item, repository, output, &report),
    }
}

/// Returns the commit that a revision names.
fn commit(revision: &str, repository: &Repository) -> Result<Oid, Failure> {
    submit::resolve_base(&repository.store, revision).map_err(|error| match error.downcast_ref() {
        Some(submit::Error::Base(_)) => {
            Failure::refused("bad-commit", format!("{revision:?} is not a commit here")).hint(hints::commits())
        }
        _ => error.into(),
    })
}

/// Returns the verified run, judged by the same keys and anchors as the report.
fn admit(question: &Question<'_>, repository: &Repository) -> Result<VerifiedRun, Failure> {
    let with = repository.verification(question.arguments.request()?, &mut |_| ())?;
    let Target { run, reference } = &question.target;
    let verified = with.open(|gate| {
        let admitted = gate.admit_intact(run, reference)?;
        // The report has the cautions.
        gate::let_in(gate, &admitted, &mut |_| ())
    })?;
    Ok(verified?)
}

/// Shows the commands, asks for them, and repeats them.
fn recheck(
    question: &Question<'_>,
    verified: VerifiedRun,
    item: Option<ItemIndex>,
    repository: &Repository,
    output: &mut Output,
    report: &Report,
) -> Result<Ending, Failure> {
    let recheck = repository.recheck(verified, item)?;
    if !is_confirmed(question.arguments, &recheck, output)? {
        output.note("nothing was run");
        return Ok(Ending::Refused);
    }
    let (runtime, interrupt) = interrupt::runtime()?;
    let Some(rechecked) = runtime.block_on(recheck.run(interrupt))? else {
        output.note("interrupted; no worktree is left behind");
        return Ok(Ending::Interrupted);
    };
    print_rechecked(&rechecked, report, output);
    Ok(match rechecked.result {
        Verdict::Same => Ending::Done,
        Verdict::Different => Ending::CheckFailed,
        Verdict::Cannot => Ending::NotAllDone,
    })
}

/// Shows the commands, and asks on a terminal unless `--yes` is given.
fn is_confirmed(arguments: &Arguments, recheck: &Recheck<'_>, output: &mut Output) -> Result<bool, Failure> {
    let commands = recheck.commands();
    if commands.is_empty() {
        return Ok(true);
    }
    for command in &commands {
        let network = command.network.map(|network| format!(", network {network}")).unwrap_or_default();
        output.note(&format!("{}: sandbox {}{network}", command.item, command.sandbox));
        if let Some(setup) = &command.setup {
            output.note(&format!("  setup  {}", quoted_words(setup)));
        }
        output.note(&format!("  check  {}", quoted_words(&command.check)));
    }
    if arguments.yes {
        return Ok(true);
    }
    if !(io::stdin().is_terminal() && Output::can_ask()) {
        let message = "--recheck needs --yes where there is no terminal to ask on; nothing was run".to_owned();
        return Err(Failure::usage(message).hint(hints::recheck_yes(&arguments.runs[0])));
    }
    output.note(&format!("type yes to run these commands in fresh worktrees of {}:", recheck.base()));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| Failure::io("the answer could not be read", &error))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn print_rechecked(rechecked: &Rechecked, report: &Report, output: &mut Output) {
    if output.json {
        return output.value(&Verified { report, recheck: Some(rechecked), reproduce: None });
    }
    for item in &rechecked.items {
        let mark = match item.result {
            Verdict::Same => "✓",
            Verdict::Different => "✗",
            Verdict::Cannot => "─",
        };
        output.line(format!("{mark} recheck    {}: {}: {}", item.item, item.result.as_str(), item.detail).as_str());
    }
}

fn print_reproduced(reproduced: &Reproduced, report: &Report, output: &mut Output) -> Ending {
    let (commit, differences) = (reproduced.commit, &reproduced.differences);
    if output.json {
        output.value(&Verified { report, recheck: None, reproduce: Some(reproduced) });
    } else if reproduced.is_same() {
        output.line(format!("✓ reproduce  same: {commit} is the base plus exactly these products").as_str());
    } else {
        let count = table::many(differences.len(), "file");
        output.line(format!("✗ reproduce  different: {commit} differs in {count}").as_str());
        differences.iter().for_each(|it| output.line(format!("    {} {}", it.change, it.path).as_str()));
    }
    if reproduced.is_same() { Ending::Done } else { Ending::CheckFailed }
}
