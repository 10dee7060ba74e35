//! `git handoff approve`, `reject`, `waiting` and `admit`: decisions of people with their own keys.

use std::collections::{BTreeMap, BTreeSet};

use git_handoff::model::entry::{Decision, Role};
use git_handoff::model::hints;
use git_handoff::repository::Repository;
use git_handoff::run::operate::people::{Decided, products};
use git_handoff::run::query::Target;
use git_handoff::run::query::waiting::Look;

use super::remote_read::Offline;
use super::status::AWAITED;
use super::{Ending, Failure, Output, gate, run, table};

/// Approve the products that an item waits for, with your own key
///
/// The item's executor is `approval`: a key with the role `approve` decides. Approves exactly the
/// products that the item depends on, by hash. For a fetched run, the decision is recorded in your
/// key's log; push it, and the run's driver takes it over with `fetch`.
#[derive(clap::Args)]
pub(crate) struct Approve {
    #[command(flatten)]
    pub(super) shared: Said,
}

/// Reject the products that an item waits for: the item fails with your reason
#[derive(clap::Args)]
pub(crate) struct Reject {
    #[command(flatten)]
    pub(super) shared: Said,
}

#[derive(clap::Args)]
#[group(skip)]
pub(super) struct Said {
    /// The item
    #[arg(value_name = "RUN/ITEM")]
    target: String,
    /// The reason, which is recorded
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    #[command(flatten)]
    terms: gate::Terms,
    #[command(flatten)]
    pub(super) offline: Offline,
}

/// Show what waits for your approval, with the commands to inspect it
#[derive(clap::Args)]
pub(crate) struct Waiting {
    /// Include approvals that others can give
    #[arg(long)]
    all: bool,
}

/// Give a key roles in a run
///
/// The roles are `own` (decide about the run), `work` (drive it), `approve`, `document` and `seal`.
/// Only a key with the role `own` can admit others, and only an owner from the beginning of the run
/// can give the role `seal`.
#[derive(clap::Args)]
pub(crate) struct Admit {
    /// The run
    run: String,
    /// The key: its fingerprint, the output of `git handoff key`, a public key, or a file with one
    /// of these
    key: String,
    /// The roles, separated by commas
    #[arg(long = "as", value_name = "ROLE[,ROLE]", value_delimiter = ',', required = true)]
    roles: Vec<Role>,
    #[command(flatten)]
    pub(crate) offline: Offline,
}

/// Take all roles from a key that was admitted to a run
///
/// For a key that was replaced or lost. Only a key with the role `own` can dismiss others. Keys
/// that the run began with, and those with the role `seal`, cannot be dismissed. In a shared run,
/// other drivers take over what drivers with this key hold.
#[derive(clap::Args)]
pub(crate) struct Dismiss {
    /// The run
    run: String,
    /// The key, as for `admit`
    key: String,
    #[command(flatten)]
    pub(crate) offline: Offline,
}

/// Dismisses a key.
pub(crate) fn dismiss(arguments: &Dismiss, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let dismissed = repository.dismiss(&arguments.run, &arguments.key)?;
    if !output.answers(&dismissed) {
        output.line(&format!("{}: {} has no role any more", dismissed.run, dismissed.key));
    }
    Ok(Ending::Done)
}

/// Approves an item.
pub(crate) fn approve(arguments: &Approve, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    decide(&arguments.shared, Decision::Approved, repository, output)
}

/// Rejects an item.
pub(crate) fn reject(arguments: &Reject, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    decide(&arguments.shared, Decision::Rejected, repository, output)
}

fn decide(
    arguments: &Said,
    decision: Decision,
    repository: &Repository,
    output: &mut Output,
) -> Result<Ending, Failure> {
    let (target, rest) = Target::with_rest(&repository.store, &arguments.target)?;
    let message = arguments.message.as_deref();
    let decided = match rest {
        Some(item) if !target.is_own() => {
            let run = gate::vetted(&target, arguments.terms, repository, output)?;
            repository.decide_elsewhere(&run, item, decision, message)?
        }
        _ => repository.decide(&arguments.target, decision, message)?,
    };
    if output.answers(&decided) {
        return Ok(Ending::Done);
    }
    print(&decided, output);
    output.hint(&if decided.recorded {
        run::again(&Target::own(decided.run.clone()).view(&repository.store)?, repository)
    } else {
        hints::push_said(target.remote().unwrap_or_default(), &decided.run)
    });
    Ok(Ending::Done)
}

fn print(decided: &Decided, output: &mut Output) {
    let Decided { run, item, decision, about, recorded, .. } = decided;
    let wherever = if *recorded { "" } else { ", in your log" };
    output.line(&format!("{} {run}/{item}{wherever}", decision.word()));
    let rows: Vec<_> =
        products(about).map(|(id, key, digest)| vec![format!("  {id}"), key, digest.to_string()]).collect();
    table::lines(&rows).iter().for_each(|line| output.line(line));
}

/// Lists waiting approvals.
pub(crate) fn waiting(arguments: &Waiting, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let mut waiting = repository.waiting(arguments.all)?;
    waiting.declined = repository.declined_everywhere()?;
    if output.answers(&waiting) {
        return Ok(Ending::Done);
    }
    waiting.unreadable.iter().for_each(|why| output.warn(why));
    waiting.declined.iter().for_each(|item| output.line(&format!("{}/{}", item.run, item.in_words())));
    if waiting.items.is_empty() {
        output.note("nothing awaits your approval");
        if !arguments.all && !repository.waiting(true)?.items.is_empty() {
            output.hint(&hints::waiting());
        }
        return Ok(Ending::Done);
    }
    for waits in &waiting.items {
        let state = match (waits.decided, waits.mine) {
            (Some(decided), _) => format!("{decided}, not taken in yet"),
            (None, true) => AWAITED.to_owned(),
            (None, false) => format!("{AWAITED} of others"),
        };
        output.line(&format!("{}  {state}", waits.target));
        table::print_plain(&waits.look.iter().map(format_inspection).collect::<Vec<_>>(), output);
    }
    if let Some(waits) = waiting.items.iter().find(|waits| waits.mine && waits.decided.is_none()) {
        output.hint(&hints::approve_or_reject(&waits.target, &waits.target));
    }
    Ok(Ending::Done)
}

/// Formats something to inspect: its kind, size and command.
fn format_inspection(look: &Look) -> Vec<String> {
    let about = match (look.passed, look.changes, look.size) {
        (Some(true), ..) => "passed".to_owned(),
        (Some(false), ..) => "did not pass".to_owned(),
        (None, Some(changes), _) => {
            format!("{}, +{} -{}", table::many(changes.files, "file"), changes.added, changes.removed)
        }
        (None, None, Some(size)) => table::size(size),
        (None, None, None) => String::new(),
    };
    let command = if look.kind == "check" { hints::show(&look.target) } else { hints::cat(&look.target) };
    vec![format!("    {}", look.kind), about, command.as_str().to_owned()]
}

/// Admits a key.
pub(crate) fn admit(arguments: &Admit, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let roles = arguments.roles.iter().copied().collect();
    let admitted = repository.admit(&arguments.run, &arguments.key, &roles)?;
    if !output.answers(&admitted) {
        let words: Vec<_> = admitted.role.iter().chain(&admitted.roles).map(|role| role.word()).collect();
        output.line(&format!("{}: {} may {}", admitted.run, admitted.key, words.join(", ")));
    }
    Ok(Ending::Done)
}

/// Parses repeated `KEY=ROLE[,ROLE…]`.
pub(crate) fn admitted(texts: &[String], repository: &Repository) -> Result<BTreeMap<String, BTreeSet<Role>>, Failure> {
    let mut keys: BTreeMap<String, BTreeSet<Role>> = BTreeMap::new();
    for one in texts {
        let (key, roles) =
            one.rsplit_once('=').ok_or_else(|| Failure::usage(format!("{one:?} is not KEY=ROLE[,ROLE…]")))?;
        let roles = roles.split(',').map(|role| role.parse::<Role>().map_err(Failure::usage));
        keys.entry(repository.key_of(key)?).or_default().extend(roles.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(keys)
}
