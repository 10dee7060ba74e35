//! `git handoff anchor check`

use git_handoff::repository::Repository;
use git_handoff::share::anchor::TIME;
use git_handoff::share::anchor::answers::AnchorCheck;
use git_handoff::verify::{Anchored, Standing, Timed};

use super::super::{Ending, Failure, Output, table};

/// Compare runs with the records of every anchor
///
/// Verifies nothing else. The exit code is 3 unless every anchor has every run.
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
    let checks = repository.check_anchors(&arguments.runs, &arguments.anchor, &mut |text| output.warn(text))?;
    let (mut rows, mut fine) = (Vec::new(), true);
    for check in checks.answers() {
        let check = check?;
        fine &= check.ok;
        if !output.answers(&check) {
            rows.extend(check.anchors.iter().map(|anchored| row(&check, anchored)));
            rows.extend(check.times.iter().map(|timed| time_row(&check, timed)));
        }
        if !check.sealed {
            output.note(&format!("the run {:?} is not sealed, so that no anchor can hold it yet", check.run.as_str()));
        }
    }
    table::lines(&rows).iter().for_each(|line| output.line(line));
    for missed in checks.missed() {
        fine = false;
        output.fail(&missed.into());
    }
    Ok(if fine { Ending::Done } else { Ending::CheckFailed })
}

fn row(check: &AnchorCheck, anchored: &Anchored) -> Vec<String> {
    let (guarantee, standing) = (anchored.guarantee.as_str(), anchored.standing.as_str());
    [&check.run, &anchored.name, guarantee, standing, &anchored.detail].map(str::to_owned).to_vec()
}

fn time_row(check: &AnchorCheck, timed: &Timed) -> Vec<String> {
    let (standing, detail) = match &timed.at {
        Ok(at) => {
            let sealed = [Some(format!("sealed by {at}")), timed.contradiction.clone()];
            (Standing::Holds, sealed.into_iter().flatten().collect::<Vec<_>>().join("; "))
        }
        Err(why) => (Standing::Missing, why.clone()),
    };
    let run = check.run.clone();
    vec![run, timed.authority.clone(), TIME.to_owned(), standing.as_str().to_owned(), detail]
}
