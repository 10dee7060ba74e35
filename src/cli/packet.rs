//! `git handoff packet`

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use git_handoff::model::hints;
use git_handoff::model::packet::{Draft, FIELDS, MAX_BYTES, line, marker, pretty};
use git_handoff::model::printable::written_out;
use git_handoff::model::time::Moment;
use git_handoff::repository::{Environment, Repository};
use git_handoff::thread::packet::{self, Classification, Report, Terms};
use git_handoff::thread::packet_operations::{self, Whose};
use git_handoff::verify::Gate;

use super::{Ending, Failure, Output, context, gate};

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
    Import(Import),
}

/// Write a packet from options; asks for missing fields on a terminal
///
/// Repeat an option for several entries; `none` means an empty list.
#[derive(clap::Args)]
struct New {
    /// The objective
    #[arg(long, value_name = "TEXT")]
    objective: Option<String>,
    /// A finished part of the work; repeatable
    #[arg(long, value_name = "TEXT")]
    completed: Vec<String>,
    /// An open or blocked part of the work; repeatable
    #[arg(long, value_name = "TEXT")]
    unresolved: Vec<String>,
    /// An assumption; repeatable
    #[arg(long, value_name = "TEXT")]
    assumptions: Vec<String>,
    /// The first step, as an executable instruction
    #[arg(long, value_name = "TEXT")]
    next_action: Option<String>,
    /// A risk; repeatable
    #[arg(long, value_name = "TEXT")]
    risks: Vec<String>,
    /// When the described state was confirmed [default: now]
    #[arg(long, value_name = "TIME")]
    updated_at: Option<String>,
    /// The continuity marker [default: from the objective and the date]
    #[arg(long, value_name = "MARKER")]
    resume_token: Option<String>,
    /// Reference an existing commit
    #[arg(long = "commit", value_name = "ID")]
    commits: Vec<String>,
    /// Reference an existing run
    #[arg(long)]
    run: Option<String>,
    /// Reference a done item of that run
    #[arg(long = "item", value_name = "ITEM")]
    items: Vec<String>,
    /// Reference a document of that run
    #[arg(long = "document", value_name = "NAME")]
    documents: Vec<String>,
}

/// Write a packet from the recorded facts of a run or a thread
#[derive(clap::Args)]
#[group(skip)]
#[command(group(clap::ArgGroup::new("whose").args(["run", "thread"]).required(true)))]
struct Auto {
    /// The run
    #[arg(long)]
    run: Option<String>,
    /// The thread, with the run it is tied to
    #[arg(long)]
    thread: Option<String>,
    #[command(flatten)]
    terms: gate::Terms,
}

/// Convert a Markdown note into a packet
///
/// If the note lacks required fields, the exit code is 1 and the message names them. Nothing is
/// made up.
#[derive(clap::Args)]
struct Import {
    /// The note, or - for standard input
    file: PathBuf,
    /// The file, or - for standard output [default: -]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Writes a packet.
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
        Command::Import(which) => {
            let now = environment.clock.now();
            gate::around(&environment, output, |gate, output| which.write(gate, now, output))?;
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

/// Prints a packet, and the findings of a check.
fn write(draft: &Draft, gate: Option<&Gate<'_>>, now: Moment, output: &mut Output) {
    let text = if output.json { line(draft) } else { pretty(draft) };
    output.json_text(&text);
    warn(&packet_operations::check(&packet::read(text.as_bytes()), gate, &Terms::new(now)), output);
}

/// Prints the findings of a check, if any.
fn warn(report: &Report, output: &mut Output) {
    if report.classification != Classification::Clean {
        output.warn(&format!("`git handoff check` finds this packet {}:", report.classification.as_str()));
        let failed = report.to_text();
        failed.lines().filter(|line| line.starts_with('❌')).for_each(|line| output.note(&format!("  {line}")));
    }
}

impl Import {
    fn write(&self, gate: Option<&Gate<'_>>, now: Moment, output: &mut Output) -> Result<(), Failure> {
        let name = self.file.display();
        let bytes = context::read_file(&self.file, MAX_BYTES as u64 + 1)?;
        let read = packet::read(&bytes);
        let lacking = match &read {
            Ok(packet) if packet.faults.is_empty() => None,
            Ok(packet) => Some(packet.faults.iter().map(|fault| format!("{} {}", fault.field, fault.what)).collect()),
            Err(unusable) => Some(vec![unusable.why.clone()]),
        };
        if let Some(lacking) = lacking {
            let lacking: Vec<String> = lacking.iter().map(|fault: &String| written_out(fault)).collect();
            let message = format!("cannot make a packet of {name}: {}", lacking.join("; "));
            return Err(Failure::refused("incomplete-note", message).hint(hints::complete_note()));
        }
        // Checks the packet together with the rest of the note.
        let report = packet_operations::check(&read, gate, &Terms::new(now));
        let Ok(packet) = read else { return Ok(()) };
        if !packet.unknown.is_empty() {
            let left: Vec<String> = packet.unknown.iter().map(|unknown| packet::quoted(unknown)).collect();
            output.note(&format!("not in the packet: {}", left.join(", ")));
        }
        match self.output.as_deref().filter(|path| *path != Path::new("-")) {
            Some(path) => {
                let text = format!("{}\n", pretty(&packet));
                std::fs::write(path, text).map_err(|e| Failure::io(&format!("cannot write {}", path.display()), &e))?;
            }
            None => output.json_text(&if output.json { line(&packet) } else { pretty(&packet) }),
        }
        warn(&report, output);
        Ok(())
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
            branch: None,
            commits: self.commits,
            run: self.run,
            items: self.items,
            documents: self.documents,
        })
    }

    /// Returns the missing fields; time and marker have defaults.
    fn missing(&self) -> Vec<&'static str> {
        FIELDS.into_iter().filter(|field| !self.has_field(field)).collect()
    }

    /// Returns true if a field is given.
    fn has_field(&self, field: &str) -> bool {
        match field {
            "objective" => self.objective.is_some(),
            "completed" => !self.completed.is_empty(),
            "unresolved" => !self.unresolved.is_empty(),
            "assumptions" => !self.assumptions.is_empty(),
            "next_action" => self.next_action.is_some(),
            "risks" => !self.risks.is_empty(),
            _ => true,
        }
    }

    /// Asks for missing fields on the terminal.
    fn ask(&mut self, output: &mut Output) -> Result<(), Failure> {
        let mut lines = std::io::stdin().lock().lines();
        let mut answer = |question: &str, terminal: &mut Output| -> Result<Option<String>, Failure> {
            terminal.note(question);
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

/// Returns a marker made of the first words of an objective.
fn first_words(objective: &str, now: Moment) -> String {
    let words: Vec<&str> = objective.split_whitespace().take(4).collect();
    marker(&words.join(" "), now, None)
}
