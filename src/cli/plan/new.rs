//! `git handoff plan new`

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use git_handoff::model::hints;
use git_handoff::model::name::RunId;
use git_handoff::model::protectable;
use git_handoff::plan::start::{PlanStarted, start};
use git_handoff::repository::Environment;

use super::{Ending, Failure, Output};

/// The default id, if the file's name is not a valid one.
const NAME: &str = "first-plan";

/// Write an example plan
///
/// It has two items with comments; the second begins on the patch of the first, which is the work
/// of the agent, if one is registered here. If a check is configured and no setting protects files,
/// the items protect the known files that it rests on.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The file, which must not exist, or - for standard output
    #[arg(default_value = "plan.json")]
    file: PathBuf,
    /// The plan's id [default: from the file's name]
    #[arg(long, value_name = "RUN")]
    id: Option<String>,
}

/// Writes the plan.
pub(crate) fn run(arguments: &Arguments, environment: &Environment, output: &mut Output) -> Result<Ending, Failure> {
    let id = match &arguments.id {
        Some(id) => RunId::parse(id).map_err(|error| Failure::usage(format!("--id {id:?}: {error}")))?,
        None => id_from_file_name(&arguments.file),
    };
    let suggestion = environment.suggest_protection();
    let known = suggestion.map(|suggestion| suggestion.known).unwrap_or_default();
    let text = start(&id, &known.protect, environment.default_agent().as_deref());
    if arguments.file == Path::new("-") {
        if output.json {
            return Err(Failure::usage("the plan itself is what is printed: either - or --json".to_owned()));
        }
        text.lines().for_each(|line| output.line(line));
        return Ok(Ending::Done);
    }
    let path = arguments.file.display().to_string();
    let written = File::create_new(&arguments.file).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        let failure = Failure::io(&format!("{path} could not be written"), &error);
        let is_there = error.kind() == io::ErrorKind::AlreadyExists;
        if is_there { failure.hint(hints::plan_new()) } else { failure }
    })?;
    if output.json {
        output.value(&PlanStarted::new(&path, &id));
    } else {
        output.line(&path);
    }
    if !known.protect.is_empty() {
        let files = protectable::in_words(&known.protect);
        output.note(&format!("its items protect {files}, which decide whether work is good"));
        known.left_out().iter().for_each(|left_out| output.note(left_out));
    }
    output.hint(&hints::run_plan(&path));
    Ok(Ending::Done)
}

/// Returns the id that a file's name suggests.
fn id_from_file_name(file: &Path) -> RunId {
    let stem = file.file_stem().and_then(|stem| stem.to_str()).filter(|stem| !matches!(*stem, "plan" | "-"));
    let given = stem.and_then(|stem| RunId::parse(stem).ok());
    given.unwrap_or_else(|| RunId::parse(NAME).expect("it is a name"))
}
