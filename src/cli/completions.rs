//! `git handoff completions`, and the candidates that the scripts ask for.
//!
//! The scripts pass the words of the line to the program, so that completions always match its
//! options and the repository's runs.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::{Arg, Command, CommandFactory, ValueEnum};

use git_handoff::git::remote::Remotes;
use git_handoff::repository::Repository;
use git_handoff::run::query::Target;
use git_handoff::run::query::target::{NEWEST, own_runs};
use git_handoff::thread::own_threads;

use super::{Ending, Output};

/// Print a shell completion script
///
/// It completes `git-handoff` and, with git's own completion, `git handoff`. For bash: git handoff
/// completions bash > ~/.local/share/bash-completion/completions/git-handoff
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Print the completions of the last word
#[derive(clap::Args)]
pub(crate) struct Words {
    /// The words after `git handoff`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Prints the script.
pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Ending {
    let script = match arguments.shell {
        Shell::Bash => include_str!("completions/git-handoff.bash"),
        Shell::Zsh => include_str!("completions/git-handoff.zsh"),
        Shell::Fish => include_str!("completions/git-handoff.fish"),
    };
    script.lines().for_each(|line| output.line(line));
    Ending::Done
}

/// Prints candidates, one a line; nothing if the shell completes by itself, such as files.
pub(crate) fn complete(arguments: &Words, repository: Option<&Repository>, output: &mut Output) -> Ending {
    let words: Vec<String> = arguments.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let Some((current, before)) = words.split_last() else { return Ending::Done };
    let mut command = super::Arguments::command();
    command.build();
    let found = candidates(&command, before, current, repository);
    found.iter().filter(|word| word.starts_with(current.as_str())).for_each(|word| output.line(word));
    Ending::Done
}

fn candidates(
    command: &Command,
    before: &[String],
    current: &str,
    repository: Option<&Repository>,
) -> BTreeSet<String> {
    let (mut command, mut positional, mut open) = (command, 0, None);
    for word in before {
        if open.take().is_some() {
            continue;
        }
        if word.starts_with('-') && word != "-" {
            open = flag(command, word).filter(|arg| arg.get_action().takes_values() && !word.contains('='));
        } else if let Some(below) = command.find_subcommand(word) {
            (command, positional) = (below, 0);
        } else {
            positional += 1;
        }
    }
    if let Some(arg) = open {
        return values(arg, current, repository);
    }
    if current.starts_with('-') {
        return command.get_arguments().filter(|arg| !arg.is_hide_set()).flat_map(flags).collect();
    }
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    let mut found: BTreeSet<String> = below.map(|below| below.get_name().to_owned()).collect();
    let positionals: Vec<&Arg> = command.get_positionals().collect();
    // The last argument may be repeated.
    let arg = positionals.get(positional).or_else(|| positionals.last().filter(|arg| takes_many(arg)));
    found.extend(arg.into_iter().flat_map(|arg| values(arg, current, repository)));
    found
}

fn takes_many(arg: &Arg) -> bool {
    matches!(arg.get_action(), clap::ArgAction::Append)
}

fn flags(arg: &Arg) -> impl Iterator<Item = String> {
    arg.get_long().map(|long| format!("--{long}")).into_iter().chain(arg.get_short().map(|short| format!("-{short}")))
}

fn flag<'c>(command: &'c Command, word: &str) -> Option<&'c Arg> {
    let name = word.split('=').next().unwrap_or(word);
    command.get_arguments().find(|arg| flags(arg).any(|flag| flag == name))
}

/// Returns the candidates for an argument, by its value name in the help.
fn values(arg: &Arg, current: &str, repository: Option<&Repository>) -> BTreeSet<String> {
    let possible: BTreeSet<String> =
        arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let Some(repository) = repository.filter(|_| possible.is_empty()) else { return possible };
    let value_names = arg.get_value_names().map(|names| names.join(" ").to_ascii_uppercase()).unwrap_or_default();
    let is = |what: &str| value_names.split(|c: char| !c.is_ascii_alphabetic()).any(|word| word == what);
    let mut found = BTreeSet::new();
    if is("ITEM") {
        found.extend(items(current, repository));
        found.insert(NEWEST.to_owned());
    } else if is("RUN") || is("RUNS") || is("NAMES") || is("TARGET") {
        found.extend(runs(repository).into_iter().map(|target| target.name()));
        found.insert(NEWEST.to_owned());
    }
    if is("THREAD") || is("THREADS") || is("NAMES") {
        found.extend(own_threads(&repository.store).unwrap_or_default().iter().map(ToString::to_string));
    }
    if is("REMOTE") {
        let remotes = Remotes::read(&repository.store);
        found.extend(remotes.iter().flat_map(Remotes::names).map(str::to_owned));
    }
    found
}

/// Returns local and fetched runs.
fn runs(repository: &Repository) -> Vec<Target> {
    let own = own_runs(&repository.store).unwrap_or_default().into_iter().map(Target::own);
    own.chain(Target::all_fetched(&repository.store).unwrap_or_default()).collect()
}

/// Returns the items of matching runs, and the runs.
fn items(current: &str, repository: &Repository) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let newest = Target::newest(&repository.store).ok().flatten().map(|target| (NEWEST.to_owned(), target));
    let all = runs(repository).into_iter().map(|target| (target.name(), target));
    for (name, target) in newest.into_iter().chain(all) {
        if let Some(view) = current
            .strip_prefix(&name)
            .filter(|rest| rest.starts_with('/'))
            .and_then(|_| target.view(&repository.store).ok())
        {
            found.extend(view.state.graph.items().iter().map(|item| format!("{name}/{}", item.id)));
        }
        found.insert(name);
    }
    found
}
