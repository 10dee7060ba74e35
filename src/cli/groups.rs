//! The groups of commands in the help.

use clap::{Command, CommandFactory as _, FromArgMatches as _};

use super::{Arguments, examples};

/// Each command belongs to one group, in this order.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Plan, run, look",
        &["plan", "validate", "submit", "run", "record", "runs", "status", "graph", "watch", "log", "show", "cat"],
    ),
    ("Prove", &["verify", "whence", "lineage", "prove", "report", "export", "check"]),
    ("Take what was made", &["apply"]),
    ("Steer", &["cancel", "retry", "close", "abandon", "lost", "adopt-run", "extend", "coordinate", "doc"]),
    ("Decide", &["waiting", "approve", "reject", "admit", "dismiss"]),
    ("Hand a thread over", &["checkpoint", "resume", "offer", "adopt", "fork", "rollback", "thread", "packet"]),
    ("Share", &["push", "fetch", "bundle", "anchor"]),
    (
        "Set up and keep in order",
        &["init", "key", "pipeline", "mcp", "doctor", "clean", "delete", "archive", "unarchive", "completions", "help"],
    ),
];

/// Parses the command line.
pub(super) fn parse() -> Result<Arguments, clap::Error> {
    // The text of the help takes most of the time of a short command, so it is made for help and
    // errors alone.
    let matches = Arguments::command().try_get_matches().or_else(|_| command().try_get_matches())?;
    Arguments::from_arg_matches(&matches)
}

/// Returns the clap command with grouped help.
pub(super) fn command() -> Command {
    let mut command = examples::add(Arguments::command());
    command.build();
    let listed = listed(&command);
    // git shows a manual page for --help, which may not be installed.
    let more = "Print help (see more with `git handoff help COMMAND`)";
    let command = command.mut_subcommands(|command| {
        let has_more = command.get_long_about().is_some()
            || command.get_arguments().any(|argument| argument.get_long_help().is_some());
        if !has_more {
            return command;
        }
        command.mut_arg("help", |help| help.help(more).long_help("Print help (see a summary with '-h')"))
    });
    command
        .help_template(format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{listed}\nOptions:\n{{options}}"))
}

fn listed(command: &Command) -> String {
    let width = GROUPS.iter().flat_map(|(_, names)| names.iter()).map(|name| name.len()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for (title, names) in GROUPS {
        lines.push(format!("\n{title}:"));
        lines.extend(names.iter().map(|name| {
            format!(
                "  {name:width$}  {}",
                command.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string).unwrap_or_default()
            )
        }));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut command = Arguments::command();
        command.build();
        let known: BTreeSet<&str> =
            command.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name).collect();
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), known);
        assert_eq!(listed.len(), known.len());
        assert!(!super::listed(&command).contains(['{', '}']), "what stands in a template is filled in");
    }
}
