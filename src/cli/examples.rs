//! Examples of each command, for its help and its manual page.

use std::sync::LazyLock;

use clap::Command;

/// An example: what it does, and its command line.
pub(super) type Example = (&'static str, &'static str);

/// The examples in the order of the help, each with the command that it is of.
static EXAMPLES: LazyLock<Vec<(&str, Example)>> = LazyLock::new(|| {
    let lines = include_str!("examples.txt").lines().filter(|line| !line.starts_with('#'));
    let example = |line: &'static str| {
        let (name, rest) = line.split_once(" | ")?;
        Some((name, rest.split_once(" | ")?))
    };
    lines.map(|line| example(line).expect("a line has three fields")).collect()
});

/// Returns the examples of a command, or one of each command below it.
pub(super) fn of_command(path: &str) -> Vec<Example> {
    let mut last = "";
    // The first one represents each command below.
    EXAMPLES
        .iter()
        .filter(|(name, _)| {
            let is_new = std::mem::replace(&mut last, *name) != *name;
            *name == path || (is_new && name.strip_prefix(path).is_some_and(|rest| rest.starts_with(' ')))
        })
        .map(|(_, example)| *example)
        .collect()
}

/// Adds their examples to the help of all commands below a command.
pub(super) fn add(command: Command) -> Command {
    add_below(command, "")
}

fn add_below(command: Command, above: &str) -> Command {
    command.mut_subcommands(|below| {
        let path = format!("{above}{}", below.get_name());
        let examples = of_command(&path);
        let below = add_below(below, &format!("{path} "));
        if examples.is_empty() { below } else { below.after_help(render(&examples)) }
    })
}

/// Returns examples as a section of the help.
fn render(examples: &[Example]) -> String {
    let lines = examples.iter().map(|(purpose, line)| format!("\n  {purpose}:\n    {line}"));
    format!("Examples:{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

    use super::super::{Arguments, groups};
    use super::*;

    #[test]
    fn every_command_has_examples_in_its_help() {
        let mut commands = BTreeSet::new();
        collect(&Arguments::command(), "", &mut commands);
        let known: BTreeSet<String> = EXAMPLES.iter().map(|(name, _)| (*name).to_owned()).collect();
        let differing: Vec<&String> = commands.symmetric_difference(&known).collect();
        assert!(differing.is_empty(), "without an example, or without a command: {differing:?}");
        assert!(EXAMPLES.is_sorted_by_key(|(name, _)| EXAMPLES.iter().position(|(other, _)| other == name)));
        for name in commands {
            let words = ["git-handoff"].into_iter().chain(name.split(' ')).chain(["--help"]);
            // A name stands before the kinds of `anchor add`.
            let words = words.flat_map(|word| {
                if word == "add" && name.starts_with("anchor add ") { vec![word, "NAME"] } else { vec![word] }
            });
            let help = groups::command().try_get_matches_from(words).expect_err("it is asked for help").to_string();
            for (purpose, line) in of_command(&name) {
                assert!(
                    help.contains(&format!("  {purpose}:\n    {line}\n")),
                    "the help of {name} lacks {line}:\n{help}"
                );
            }
        }
    }

    #[test]
    fn every_example_is_a_command_line_of_its_command() {
        for (name, (purpose, line)) in EXAMPLES.iter() {
            assert!(line.chars().count() <= 96, "{line} does not fit into a hundred columns");
            assert!(!purpose.contains('`') && !purpose.ends_with(['.', ':']), "{purpose}");
            let words = words(line);
            assert_eq!(words[..2], ["git", "handoff"], "{line}");
            let parsed = groups::command()
                .try_get_matches_from(std::iter::once("git-handoff").chain(words[2..].iter().map(String::as_str)));
            let matches = parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(path(&matches), *name, "{line}");
            if let Err(error) = Arguments::from_arg_matches(&matches) {
                panic!("{line}: {error}");
            }
        }
    }

    #[test]
    fn examples_that_do_not_parse_are_found() {
        for line in ["git handoff run --jobs many plan.json", "git handoff status", "git handoff thread lgo research"] {
            let words = words(line);
            assert!(groups::command().try_get_matches_from(&words[1..]).is_err(), "{line}");
        }
    }

    /// Collects the visible commands that have no subcommands.
    fn collect(command: &Command, above: &str, found: &mut BTreeSet<String>) {
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            let path = format!("{above}{}", below.get_name());
            if below.has_subcommands() {
                collect(below, &format!("{path} "), found);
            } else {
                found.insert(path);
            }
        }
    }

    /// Splits a command line as a shell does, up to `>`. It knows single quotes only.
    fn words(line: &str) -> Vec<String> {
        assert!(!line.contains(['"', '\\', '|', '$', ';', '&', '<']), "{line}");
        let command = line.split(" >").next().unwrap_or_default();
        let mut words = Vec::new();
        for (at, part) in command.split('\'').enumerate() {
            if at % 2 == 1 {
                words.push(part.to_owned());
            } else {
                words.extend(part.split_whitespace().map(str::to_owned));
            }
        }
        words
    }

    /// Returns the names of the subcommands that were parsed.
    fn path(matches: &ArgMatches) -> String {
        let mut names = Vec::new();
        let mut matches = matches;
        while let Some((name, below)) = matches.subcommand() {
            names.push(name);
            matches = below;
        }
        names.join(" ")
    }
}
