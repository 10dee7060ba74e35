//! `git handoff lost`, and the table of `git handoff status --drivers`.

use git_handoff::model::driver::DriverId;
use git_handoff::model::name::ItemId;
use git_handoff::model::printable;
use git_handoff::repository::Repository;
use git_handoff::run::operate::drivers::{DriverShown, DriverState};
use git_handoff::run::operate::steer;
use git_handoff::run::query::Target;

use super::{Ending, Failure, Output, table};

/// Give away what a driver of a shared run holds, at once
///
/// For an engine or a person who knows that the driver is dead. Its attempts count as crashed, and
/// other drivers dispatch the items again. Without this command they wait until the driver was
/// silent for `handoff.lostAfter`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
    /// The driver: its id, or the first digits of it, as `status --drivers` shows them
    #[arg(long, value_name = "ID")]
    driver: String,
}

/// Takes the attempts of a driver from it.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let target = Target::find(&repository.store, &arguments.run)?;
    if !target.is_own() {
        return Err(steer::Error::Foreign(target.run).into());
    }
    let driver = match DriverId::parse(&arguments.driver) {
        Some(driver) => driver,
        None => find(&arguments.driver, &target, repository)?,
    };
    let lost = repository.lost(&target.run, &driver)?;
    if output.answers(&lost) {
        return Ok(Ending::Done);
    }
    if lost.items.is_empty() {
        output.note(&format!("driver {} holds nothing in the run {}", driver.short(), lost.run));
    } else {
        let items: Vec<&str> = lost.items.iter().map(ItemId::as_str).collect();
        output.line(&format!("taken from driver {}: {}", driver.short(), items.join(", ")));
    }
    Ok(Ending::Done)
}

/// Finds the driver whose id begins with some digits.
fn find(digits: &str, target: &Target, repository: &Repository) -> Result<DriverId, Failure> {
    let drivers = repository.drivers(&target.run)?.drivers;
    let mut found =
        drivers.into_iter().map(|driver| driver.driver).filter(|driver| driver.as_str().starts_with(digits));
    match (found.next(), found.next()) {
        (Some(driver), None) if !digits.is_empty() => Ok(driver),
        (Some(_), Some(_)) => {
            Err(Failure::usage(format!("more than one driver has an id that begins with {digits:?}")))
        }
        _ => Err(Failure::usage(format!("{digits:?} is neither the id of a driver of the run nor its first digits"))),
    }
}

/// Prints the drivers of a shared run.
pub(crate) fn print_drivers(target: &Target, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let answer = repository.drivers(&target.run)?;
    if output.answers(&answer) {
        return Ok(Ending::Done);
    }
    if answer.drivers.is_empty() {
        output.note(&format!("no driver of the run {} has a beat on {}", answer.run, answer.remote));
    }
    let now = repository.environment.clock.now();
    let rows: Vec<Vec<String>> = answer.drivers.iter().map(|driver| row(driver, now.millis())).collect();
    table::lines(&rows).iter().for_each(|line| output.line(line));
    for driver in &answer.drivers {
        for declined in &driver.declines {
            let items: Vec<&str> = declined.items.iter().map(ItemId::as_str).collect();
            let (short, why) = (driver.driver.short(), printable::line(&declined.why));
            output.line(&format!("{short} does not run {}; it lacks: {why}", items.join(", ")));
        }
    }
    Ok(Ending::Done)
}

fn row(driver: &DriverShown, now: i64) -> Vec<String> {
    let silent = driver.since.map(|since| u64::try_from(now - since.millis()).unwrap_or_default());
    let state = match (driver.state, silent) {
        (DriverState::Alive, _) => "alive".to_owned(),
        (DriverState::Silent, Some(silent)) => format!("silent for {}", table::duration(silent)),
        (DriverState::Unknown, Some(_)) => "unknown beat".to_owned(),
        (DriverState::Silent | DriverState::Unknown, None) => "no beat".to_owned(),
        (DriverState::Lost, _) => "taken over".to_owned(),
    };
    let state = if driver.alone { format!("{state}, not shared") } else { state };
    let beat = match (driver.beat, driver.at) {
        (Some(beat), Some(at)) => format!("beat {beat} at {}", table::minute(at)),
        _ => String::new(),
    };
    let holds: Vec<&str> = driver.holds.iter().map(ItemId::as_str).collect();
    let holds = if holds.is_empty() { "holds nothing".to_owned() } else { format!("holds {}", holds.join(", ")) };
    let key = driver.key.as_deref().map(|key| key.chars().take(15).collect()).unwrap_or_default();
    vec![
        driver.driver.short().to_owned(),
        state,
        driver.host.clone().unwrap_or_default(),
        driver.job.clone().unwrap_or_default(),
        key,
        beat,
        holds,
    ]
}
