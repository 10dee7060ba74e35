//! `git handoff anchor check`

use git_handoff::anchor::held::{self, Held};
use git_handoff::anchor::{Means, ask_all};
use git_handoff::repository::{Repository, Trust};
use git_handoff::run::Target;
use git_handoff::verify::{Anchored, AtHand, LOCAL, Logs, Question, Report, Standing, Timed, verify_with};
use serde_json::json;

use super::super::{Ending, Failure, Output, table};

/// Ask every anchor what it holds of runs, and compare
///
/// Nothing else is verified. The exit code is 3 unless every anchor holds every run.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The runs [default: all sealed runs]
    runs: Vec<String>,
    /// Ask only these anchors
    #[arg(long, value_name = "NAME")]
    anchor: Vec<String>,
}

/// Prints one line for each run and anchor.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let anchors = repository.anchors(&arguments.anchor)?;
    let means = Means::of(repository);
    let ask = |question: &Question<'_>| ask_all(&anchors, &means, question);
    let logs = Logs::read(&repository.store)?;
    let at_hand = AtHand { logs: &logs, ask: &ask };
    let mut rows = Vec::new();
    let mut fine = true;
    let options = repository.options(&Trust::default(), &mut |text| output.warn(text))?;
    let own_key = options.own_key.as_deref();
    let held = if arguments.runs.is_empty() {
        held::look_up((&repository.store, own_key), &logs, (&anchors, &means))?
    } else {
        let named = arguments.runs.iter().map(|name| Target::find(&repository.store, name));
        Held { targets: named.collect::<Result<_, _>>()?, missed: Vec::new() }
    };
    for target in held.targets {
        let report = verify_with(&repository.store, &at_hand, &target.run, &target.reference, &options)?;
        if !report.sealed && arguments.runs.is_empty() {
            continue;
        }
        let holds = report.sealed && holds(&report.anchors) && report.times.iter().all(|timed| timed.at.is_ok());
        fine &= holds;
        if output.json {
            output.value(&value(&report, holds));
        } else {
            rows.extend(report.anchors.iter().map(|anchored| row(&report, anchored)));
            rows.extend(report.times.iter().map(|timed| time_row(&report, timed)));
        }
        if !report.sealed {
            output.note(&format!("the run {:?} is not sealed, so that no anchor can hold it yet", report.run.as_str()));
        }
    }
    table::lines(&rows).iter().for_each(|line| output.line(line));
    fine &= held.missed.is_empty();
    for missed in held.missed {
        output.fail(&missed.into());
    }
    Ok(if fine { Ending::Done } else { Ending::CheckFailed })
}

/// Returns whether every place outside holds the run, and one place at least does.
fn holds(anchors: &[Anchored]) -> bool {
    let held = |anchored: &Anchored| anchored.standing == Standing::Holds;
    let local = |anchored: &Anchored| anchored.kind == LOCAL && anchored.standing == Standing::Missing;
    anchors.iter().any(held) && anchors.iter().all(|anchored| held(anchored) || local(anchored))
}

fn value(report: &Report, holds: bool) -> serde_json::Value {
    json!({
        "schema": "git-handoff.anchor-check/1",
        "run": report.run,
        "root": report.root,
        "ok": holds,
        "anchors": report.anchors.iter().map(Anchored::to_json).collect::<Vec<_>>(),
        "times": report.times.iter().map(Timed::to_json).collect::<Vec<_>>(),
    })
}

fn row(report: &Report, anchored: &Anchored) -> Vec<String> {
    vec![
        report.run.clone(),
        anchored.name.clone(),
        anchored.guarantee.as_str().to_owned(),
        anchored.standing.as_str().to_owned(),
        anchored.detail.clone(),
    ]
}

fn time_row(report: &Report, timed: &Timed) -> Vec<String> {
    let (standing, detail) = match &timed.at {
        Ok(at) => (Standing::Holds, format!("sealed by {at}")),
        Err(why) => (Standing::Missing, why.clone()),
    };
    let run = report.run.clone();
    vec![run, timed.authority.clone(), super::TIME.to_owned(), standing.as_str().to_owned(), detail]
}
