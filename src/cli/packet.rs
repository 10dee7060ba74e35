//! `git handoff packet`

use std::io::{BufRead, IsTerminal};

use git_handoff::model::hints;
use git_handoff::model::packet::{self as model, Draft, FIELDS, marker};
use git_handoff::model::time::Moment;
use git_handoff::packet::{Classification, Terms};
use git_handoff::repository::{Environment, Repository};
use git_handoff::thread::packets::{self, Whose};
use git_handoff::verify::Gate;

use super::{Ending, Failure, Output, gate};

/// Write a handoff packet
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    New(Box<New>),
    Auto(Auto),
}

/// Write a packet from what you say; asks for what is missing on a terminal
///
/// Lists are given by repeating their option; one with nothing in it is `none`.
#[derive(clap::Args)]
struct New {
    /// What the work is for
    #[arg(long, value_name = "TEXT")]
    objective: Option<String>,
    /// What is done
    #[arg(long, value_name = "TEXT")]
    completed: Vec<String>,
    /// What is open, and what blocks it
    #[arg(long, value_name = "TEXT")]
    unresolved: Vec<String>,
    /// What is taken for granted
    #[arg(long, value_name = "TEXT")]
    assumptions: Vec<String>,
    /// What to do first, in a way that can be executed
    #[arg(long, value_name = "TEXT")]
    next_action: Option<String>,
    /// What may go wrong
    #[arg(long, value_name = "TEXT")]
    risks: Vec<String>,
    /// When the state that it tells of was confirmed [default: now]
    #[arg(long, value_name = "TIME")]
    updated_at: Option<String>,
    /// The plain continuity marker [default: from the objective and the date]
    #[arg(long, value_name = "MARKER")]
    resume_token: Option<String>,
    /// A commit that exists
    #[arg(long = "commit", value_name = "ID")]
    commits: Vec<String>,
    /// A run that exists
    #[arg(long)]
    run: Option<String>,
    /// An item of that run that is done
    #[arg(long = "item", value_name = "ITEM")]
    items: Vec<String>,
    /// A document of that run
    #[arg(long = "document", value_name = "NAME")]
    documents: Vec<String>,
}

/// Write a packet from the facts of a run or a thread
#[derive(clap::Args)]
#[group(skip)]
#[command(group(clap::ArgGroup::new("whose").args(["run", "thread"]).required(true)))]
struct Auto {
    /// The run
    #[arg(long)]
    run: Option<String>,
    /// The thread, with the run that it is tied to
    #[arg(long)]
    thread: Option<String>,
    #[command(flatten)]
    terms: gate::Terms,
}

/// Writes a packet to stdout.
pub(crate) fn run(arguments: Arguments, environment: Environment, output: &mut Output) -> Result<Ending, Failure> {
    match arguments.command {
        Command::New(new) => {
            let draft = new.draft(&environment, output)?;
            let now = environment.clock.now();
            gate::around(&environment, output, |gate, output| {
                write(&draft, gate, now, output);
                Ok(())
            })?;
        }
        Command::Auto(which) => {
            let repository = Repository::open(environment)?;
            let now = repository.environment.clock.now();
            let whose = match (&which.run, &which.thread) {
                (_, Some(thread)) => Whose::Thread(thread),
                (run, None) => Whose::Run(run.as_deref().unwrap_or_default()),
            };
            gate::at_hand(which.terms, &repository, output, |gate, output| {
                let draft = repository.write_packet(gate, whose, &mut |text| output.warn(text))?;
                write(&draft, Some(gate), now, output);
                Ok(())
            })?;
        }
    }
    Ok(Ending::Done)
}

/// Prints a packet, and says what a check of it would find.
fn write(draft: &Draft, gate: Option<&Gate<'_>>, now: Moment, output: &mut Output) {
    let text = if output.json { draft.line() } else { draft.pretty() };
    output.json_text(&text);
    let report = packets::check(&model::read(text.as_bytes()), gate, &Terms::new(now));
    if report.classification != Classification::Clean {
        output.warn(&format!("`git handoff check` finds this packet {}:", report.classification.as_str()));
        let failed = report.to_text();
        failed.lines().filter(|line| line.starts_with('❌')).for_each(|line| output.note(&format!("  {line}")));
    }
}

impl New {
    fn draft(mut self, environment: &Environment, output: &mut Output) -> Result<Draft, Failure> {
        if std::io::stdin().is_terminal() {
            self.ask(output)?;
        }
        let missing = self.missing();
        if !missing.is_empty() {
            let options: Vec<String> = missing.iter().map(|field| format!("--{}", field.replace('_', "-"))).collect();
            return Err(Failure::usage(format!("a packet needs {}", options.join(", "))).hint(hints::every_part()));
        }
        let now = environment.clock.now();
        let objective = self.objective.unwrap_or_default();
        let token = self.resume_token.unwrap_or_else(|| first_words(&objective, now));
        Ok(Draft {
            resume_token: token,
            objective,
            completed: self.completed,
            unresolved: self.unresolved,
            assumptions: self.assumptions,
            next_action: self.next_action.unwrap_or_default(),
            risks: self.risks,
            updated_at: self.updated_at.unwrap_or_else(|| now.to_string()),
            commits: self.commits,
            run: self.run,
            items: self.items,
            documents: self.documents,
        })
    }

    /// Returns the fields that nobody gave; time and marker have defaults.
    fn missing(&self) -> Vec<&'static str> {
        let given = |field: &str| match field {
            "objective" => self.objective.is_some(),
            "completed" => !self.completed.is_empty(),
            "unresolved" => !self.unresolved.is_empty(),
            "assumptions" => !self.assumptions.is_empty(),
            "next_action" => self.next_action.is_some(),
            "risks" => !self.risks.is_empty(),
            _ => true,
        };
        FIELDS.into_iter().filter(|field| !given(field)).collect()
    }

    /// Asks the person at the terminal for what is missing.
    fn ask(&mut self, output: &mut Output) -> Result<(), Failure> {
        let mut lines = std::io::stdin().lock().lines();
        let mut answer = |question: &str, output: &mut Output| -> Result<Option<String>, Failure> {
            output.note(question);
            let line = lines.next().transpose().map_err(|e| Failure::io("the terminal could not be read", &e))?;
            Ok(line.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()))
        };
        for field in self.missing() {
            match field {
                "objective" => self.objective = answer("What is the work for?", output)?,
                "next_action" => {
                    self.next_action = answer("What is to be done first? Name the file, command or thing.", output)?;
                }
                field => {
                    let (question, list) = match field {
                        "completed" => ("What is done?", &mut self.completed),
                        "unresolved" => ("What is open, and what blocks it?", &mut self.unresolved),
                        "assumptions" => ("What is taken for granted?", &mut self.assumptions),
                        _ => ("What may go wrong?", &mut self.risks),
                    };
                    let mut question =
                        format!("{question} One a line, an empty line ends it; none at once means none.");
                    while let Some(line) = answer(&question, output)? {
                        list.push(line);
                        question = "And?".into();
                    }
                    if list.is_empty() {
                        list.push("none".into());
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns a marker from the first words of an objective.
fn first_words(objective: &str, now: Moment) -> String {
    let words: Vec<&str> = objective.split_whitespace().take(4).collect();
    marker(&words.join(" "), now, None)
}
