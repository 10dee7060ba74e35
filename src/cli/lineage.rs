//! `git handoff lineage`

use git_handoff::repository::Repository;
use git_handoff::run::import::lineage::{Kind, Step};
use git_handoff::run::query::Target;

use super::{Ending, Failure, Output, gate};

/// Show everything an item was made from, directly and indirectly
///
/// Follows items, artifacts and documents, also into other runs. Something that already appeared
/// above is named and not repeated. Every run on the way is verified first.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// RUN/ITEM, RUN/ITEM:patch or RUN/ITEM:outputs/PATH
    #[arg(value_name = "RUN/ITEM[:WHAT]")]
    what: String,
    #[command(flatten)]
    terms: gate::Terms,
}

/// The maximum indentation; deeper steps show their depth instead.
const DEEPEST: usize = 40;

/// Prints one line for each step, indented below its dependent.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let lineage = repository.lineage::<Failure>(&arguments.what, &mut |target: &Target| {
        gate::vetted(target, arguments.terms, repository, output)
    })?;
    if output.answers(&lineage) {
        return Ok(Ending::Done);
    }
    lineage.steps.iter().for_each(|step| output.line(&line(step)));
    Ok(Ending::Done)
}

fn line(step: &Step) -> String {
    let mut words = vec!["  ".repeat(step.depth.min(DEEPEST))];
    if step.depth > DEEPEST {
        words.push(format!("[{}] ", step.depth));
    }
    words.extend(step.input.as_ref().map(|input| format!("{input} = ")));
    words.push(match (&step.item, &step.name) {
        (Some(item), _) => format!("{}/{item}", step.run),
        (None, Some(name)) if step.kind == Kind::Artifact => format!("artifact {name} of {}", step.run),
        (None, Some(name)) => format!("document {name} of {}", step.run),
        (None, None) => match (&step.thread, &step.checkpoint) {
            (Some(thread), Some(checkpoint)) => format!("thread {thread}:{checkpoint}"),
            _ => step.run.to_string(),
        },
    });
    if step.item.is_some() {
        words.extend(step.product.as_ref().map(|product| format!(":{product}")));
    }
    words.extend(step.sha256.map(|digest| format!("  {}", digest.short())));
    match step.kind {
        Kind::Proven => words.push("  not here; proven by its seal".to_owned()),
        Kind::Continued => words.push("  not here; its signed entries are sealed with the run".to_owned()),
        Kind::Reused => words.push("  reused".to_owned()),
        Kind::Tied => words.push("  the run that it was made in".to_owned()),
        _ => {}
    }
    let root = step.root.map(|root| format!(", root {}", root.short()));
    words.extend(root);
    words.extend(step.by.as_ref().map(|by| format!("  by {by}")));
    words.extend(step.status.filter(|status| *status != "done").map(|status| format!(", {status}")));
    if step.red {
        words.push(", red".to_owned());
    }
    if step.repeated {
        words.push(", as above".to_owned());
    }
    words.concat()
}
