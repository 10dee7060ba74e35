//! `git handoff manual`: the manual pages, generated from the clap commands and the table of
//! settings. Packages write them when they are made.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use git_handoff::repository::config::SETTINGS;

use super::examples::{self, Example};
use super::{Ending, Failure};

/// The files of the program, with their purposes.
const FILES: &[(&str, &str)] = &[
    ("refs/handoff/runs/<run>", "A run: its entries, each a signed commit."),
    ("refs/handoff/threads/<thread>", "A thread of checkpoints."),
    ("refs/handoff/logs/<fingerprint>", "The private log of a key: everything that it has sealed. It is never pushed."),
    ("refs/handoff/logs/<fingerprint>.<digits>", "The logs of what the key has pushed or anchored."),
    (".git/handoff/signing_key", "The repository's own key, made on first use."),
    (".git/handoff/pipelines", "The pipelines that were added, by the hex digits of their hashes."),
    ("~/.cache/git-handoff", "Where worktrees are made, unless `handoff.workspace.root` says otherwise."),
];

/// The page of the program has the first example of each of these commands.
const FIRST: &[&str] = &["init", "record", "plan new", "run", "status", "verify", "apply"];

/// The page of exit codes.
const EXIT_CODES: &str = include_str!("../../docs/reference/exit-codes.md");

/// Write the manual pages into a folder
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder, which is made if it is missing
    folder: PathBuf,
}

/// Writes one page for the program and one for each command.
pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let folder = &arguments.folder;
    let written = fs::create_dir_all(folder)
        .and_then(|()| pages().try_for_each(|(name, page)| fs::write(folder.join(name), page)));
    written.map_err(|error| Failure::io(&format!("cannot write manual pages into {}", folder.display()), &error))?;
    Ok(Ending::Done)
}

/// Returns the manual page.
fn page() -> String {
    let mut whole = super::Arguments::command();
    let usage = whole.render_usage().to_string();
    let man = Man::new(whole.clone().disable_help_subcommand(true)).manual("Git Manual");
    let mut text = render_part(&man, Man::render_title) + &render_part(&man, Man::render_name_section);
    text += &Roff::new().control("SH", ["SYNOPSIS"]).text([bold(bare(&usage))]).to_roff();
    text += &render_part(&man, Man::render_description_section);
    text += &render_part(&man, Man::render_options_section);
    text += &Roff::new().control("SH", ["COMMANDS"]).to_roff();
    for command in whole.get_subcommands().filter(|command| !command.is_hide_set()) {
        add_command(&mut text, "git handoff", command);
    }
    let first: Vec<Example> =
        FIRST.iter().filter_map(|command| examples::of_command(command).first().copied()).collect();
    text += &examples_of(&first);
    text += &configuration();
    text += &list("FILES", FILES);
    text += &list("EXIT STATUS", &exit_status());
    let also = "git-config(1). `git handoff help <command>` prints the help of one command; git-handoff-<command>(1) is its page.";
    text += &Roff::new().control("SH", ["SEE ALSO"]).text([roman(also)]).to_roff();
    spans(&text)
}

/// Renders a part of a page.
fn render_part(man: &Man, render: fn(&Man, &mut dyn Write) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    render(man, &mut out).expect("memory takes it");
    String::from_utf8(out).expect("the page is text")
}

/// Returns the page of a command.
fn page_of(command: &Command) -> String {
    // clap requires static names.
    let name: &'static str = format!("git-handoff-{}", command.get_name()).leak();
    let titled = command.clone().name(name).disable_help_flag(true).disable_help_subcommand(true);
    let man = Man::new(titled).manual("Git Manual").title(name);
    let mut text = render_part(&man, Man::render_title) + &render_part(&man, Man::render_name_section);
    text += &Roff::new().control("SH", ["SYNOPSIS AND DESCRIPTION"]).to_roff();
    add_command(&mut text, "git handoff", command);
    text += &examples_of(&examples::of_command(command.get_name()));
    text += &list("EXIT STATUS", &exit_status());
    text += &Roff::new().control("SH", ["SEE ALSO"]).text([roman("git-handoff(1), git-config(1).")]).to_roff();
    spans(&text)
}

/// Returns every page, with its file name.
fn pages() -> impl Iterator<Item = (String, String)> {
    let whole = super::Arguments::command();
    let commands: Vec<Command> = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect();
    let pages =
        commands.into_iter().map(|command| (format!("git-handoff-{}.1", command.get_name()), page_of(&command)));
    std::iter::once(("git-handoff.1".to_owned(), page())).chain(pages)
}

/// Adds a command and its subcommands.
fn add_command(text: &mut String, above: &str, command: &Command) {
    let name = format!("{above} {}", command.get_name());
    let mut own = command.clone().bin_name(&name).disable_help_flag(true).disable_help_subcommand(true);
    let usage = own.render_usage().to_string();
    let mut roff = Roff::new();
    roff.control("SS", [bare(&usage)]);
    let about = command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string);
    for paragraph in about.unwrap_or_default().split("\n\n") {
        roff.control("PP", []).text([roman(paragraph)]);
    }
    *text += &roff.to_roff();
    let mut options = Vec::new();
    Man::new(own).render_options_section(&mut options).expect("memory takes it");
    let options = String::from_utf8(options).expect("the page is text");
    *text += options.split_once(".SH OPTIONS\n").map_or("", |(_, options)| options);
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        add_command(text, &name, below);
    }
}

fn configuration() -> String {
    let mut roff = Roff::new();
    roff.control("SH", ["CONFIGURATION"]).text([roman(
        "Settings are git's own, see git-config(1). One marked with * decides whom or what to trust and is ignored in a file \
         inside the work tree. One that is not known is refused.",
    )]);
    for group in SETTINGS {
        roff.control("SS", [group.title]);
        for entry in group.entries {
            roff.control("TP", []);
            let mut names: Vec<Inline> = Vec::new();
            for name in entry.names {
                names.extend((!names.is_empty()).then(|| roman(", ")));
                names.push(bold(*name));
            }
            names.extend((!entry.tracked).then(|| roman(" *")));
            roff.text(names);
            let (kind, default) = (entry.kind(), entry.default);
            roff.text([roman(format!("{} Value: {kind}. Default: {default}.", entry.sentence))]);
        }
    }
    roff.to_roff()
}

fn list(title: &str, rows: &[(&str, &str)]) -> String {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    for (name, meaning) in rows {
        roff.control("TP", []).text([bold(*name)]).text([roman(*meaning)]);
    }
    roff.to_roff()
}

/// Returns the section with these examples.
fn examples_of(examples: &[Example]) -> String {
    let mut roff = Roff::new();
    roff.control("SH", ["EXAMPLES"]);
    for (purpose, line) in examples {
        roff.control("PP", []).text([roman(format!("{purpose}:"))]);
        roff.control("RS", ["4"]).control("nf", []).text([roman(*line)]).control("fi", []).control("RE", []);
    }
    // A line of the shell needs the apostrophe of ASCII, which the head of a page defines as Aq.
    roff.to_roff().replace('\'', "\\*(Aq")
}

/// Returns the exit codes, from the table in the reference.
fn exit_status() -> Vec<(&'static str, &'static str)> {
    let table = EXIT_CODES.split("\n## ").next().unwrap_or_default();
    table
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "))
        .filter(|(code, _)| code.parse::<u8>().is_ok())
        .collect()
}

/// Formats a usage line for a page.
fn bare(usage: &str) -> &str {
    let usage = usage.trim_start_matches("Usage: ");
    usage.lines().next().unwrap_or(usage)
}

/// Formats code spans in italics.
fn spans(page: &str) -> String {
    page.lines()
        .map(|line| {
            line.split('`')
                .enumerate()
                .map(|(at, part)| if at % 2 == 1 { format!("\\fI{part}\\fR") } else { part.to_owned() })
                .collect::<String>()
                + "\n"
        })
        .collect()
}
