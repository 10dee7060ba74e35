//! Finds the file of a program as the worker would.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::engine::command::Resolved;
use crate::git::file_facts::is_executable;
use crate::sandbox::{Confinement, folders};

/// Words with a meaning to the shell itself: no file of this name runs.
const SHELL_WORDS: [&str; 56] = [
    ".", ":", "[", "alias", "bg", "break", "builtin", "case", "cd", "command", "continue", "declare", "do", "done",
    "echo", "elif", "else", "esac", "eval", "exit", "export", "false", "fc", "fg", "fi", "for", "function", "getopts",
    "hash", "if", "in", "jobs", "kill", "local", "printf", "pwd", "read", "readonly", "return", "select", "set",
    "shift", "source", "test", "then", "time", "times", "trap", "true", "type", "ulimit", "umask", "unset", "until",
    "wait", "while",
];

/// Where a worker's programs are searched.
pub(super) struct Search<'a> {
    path: Option<&'a OsString>,
    home: Option<&'a OsString>,
    /// The confinement, which hides programs.
    by: Option<&'a Confinement>,
}

impl<'a> Search<'a> {
    /// Searches as a confined worker does, with the variables of a command over those of its
    /// attempt.
    pub(super) fn new(
        own: &'a BTreeMap<String, OsString>,
        env: &'a BTreeMap<String, OsString>,
        by: Option<&'a Confinement>,
    ) -> Self {
        Self {
            path: own.get("PATH").or_else(|| env.get("PATH")),
            home: own.get("HOME").or_else(|| env.get("HOME")),
            by,
        }
    }

    /// Returns the program of a command. Of a configured line for the shell, that is the first word
    /// if it names a program, otherwise the shell.
    pub(super) fn program(&self, argv: &[String], is_line_configured: bool) -> Option<PathBuf> {
        let word = line_of(argv, is_line_configured).and_then(first_word);
        let configured = word.and_then(|word| self.resolve_word(word));
        configured.or_else(|| self.find(argv.first()?))
    }

    /// Returns the interpreter that the text after `#!` names, through `env` as well.
    pub(super) fn interpreter(&self, line: &str) -> Option<PathBuf> {
        let mut words = line.split_ascii_whitespace();
        let word = words.next()?;
        if Path::new(word).file_name() != Some(OsStr::new("env")) {
            return self.find(word);
        }
        self.find(words.find(|argument| !argument.starts_with('-') && !argument.contains('='))?)
    }

    /// Returns the program that a word of a shell line names.
    fn resolve_word(&self, word: &str) -> Option<PathBuf> {
        match word.strip_prefix("~/") {
            Some(below) => self.executable(Path::new(self.home?).join(below)),
            None => self.find(word),
        }
    }

    /// Returns the program of this name or absolute path. A relative path or folder leads into the
    /// worktree, which does not exist yet.
    fn find(&self, name: &str) -> Option<PathBuf> {
        if name.contains('/') {
            return self.executable(name.into());
        }
        folders(self.path)
            .into_iter()
            .filter(|_| !name.is_empty())
            .find_map(|folder| self.executable(folder.join(name)))
    }

    /// Returns the path if it is absolute and an executable file that the worker sees.
    fn executable(&self, path: PathBuf) -> Option<PathBuf> {
        // A link is seen in its own folder.
        Some(path).filter(|path| {
            path.is_absolute()
                && is_executable(path)
                && (self.sees(path) && path.parent().is_some_and(|path| self.sees(path)))
        })
    }

    /// Returns true if workers see a path.
    fn sees(&self, path: &Path) -> bool {
        let real = std::fs::canonicalize(path);
        self.by.is_none_or(|by| real.is_ok_and(|real| !by.hides(&real)))
    }
}

/// Returns true if a program of this name or absolute path is there for a worker that nothing
/// confines.
pub(in crate::engine) fn is_there(program: &str, env: &BTreeMap<String, OsString>) -> bool {
    Search { path: env.get("PATH"), home: None, by: None }.find(program).is_some()
}

/// Returns the name of a command's program if no such program is on this machine.
///
/// A program that the setup may install, or that may be in the worktree, does not count as missing,
/// and a line of several commands may do without one.
pub(in crate::engine) fn missing<'c>(command: &'c Resolved, env: &BTreeMap<String, OsString>) -> Option<&'c str> {
    let search = Search::new(&command.env, env, None);
    let has_only_absolute =
        |path: &OsString| path.as_bytes().split(|byte| *byte == b':').all(|part| part.starts_with(b"/"));
    if command.setup.is_some() || !search.path.is_some_and(has_only_absolute) {
        return None;
    }
    let is_configured = command.settings.command.is_some();
    if line_of(&command.argv, is_configured).is_some_and(|line| line.contains(['|', '&', ';', '\n'])) {
        return None;
    }
    let name = name_of(&command.argv, is_configured)?;
    let is_elsewhere = name.starts_with(['/', '~']) || !name.contains('/');
    (is_elsewhere && search.resolve_word(name).is_none()).then_some(name)
}

/// Returns the configured line that a command gives to the shell.
fn line_of(argv: &[String], is_line_configured: bool) -> Option<&str> {
    match argv {
        [_, flag, line] if is_line_configured && flag == "-c" => Some(line),
        _ => None,
    }
}

/// Returns the name or path by which a command starts its program: the first word of a configured
/// line for the shell if that names a program, otherwise the first argument.
pub(in crate::engine) fn name_of(argv: &[String], is_line_configured: bool) -> Option<&str> {
    let word = line_of(argv, is_line_configured).and_then(first_word);
    word.or_else(|| argv.first().map(String::as_str))
}

/// Returns the first word of a shell line, behind `exec`, if it is a name or path without syntax.
fn first_word(line: &str) -> Option<&str> {
    let mut words = line.split_ascii_whitespace();
    let mut word = words.next()?;
    if word == "exec" {
        word = words.next()?;
    }
    let spelled = word.strip_prefix("~/").unwrap_or(word);
    let is_shells = SHELL_WORDS.contains(&word);
    (!word.starts_with('-') && !is_shells && spelled.chars().all(|c| c.is_alphanumeric() || "_-./+@:%,".contains(c)))
        .then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_a_plain_program() {
        for (line, word) in [
            ("claude -p \"$(cat)\"", Some("claude")),
            ("  exec claude -p", Some("claude")),
            ("/opt/a+b/agent-1.2 x | tee log", Some("/opt/a+b/agent-1.2")),
            ("~/bin/agent", Some("~/bin/agent")),
            ("./agent.sh", Some("./agent.sh")),
            ("claude\nrm x", Some("claude")),
            ("", None),
            ("exec", None),
            ("exec -a x claude", None),
            ("A=b claude", None),
            ("cd x && claude", None),
            ("while true; do claude; done", None),
            ("if true; then claude; fi", None),
            ("claude; rm x", None),
            ("(claude)", None),
            ("$AGENT -p", None),
            ("\"claude\" -p", None),
            ("claude>log", None),
            ("~ada/bin/agent", None),
            ("# a comment\nclaude", None),
        ] {
            assert_eq!(first_word(line), word, "{line}");
        }
    }
}
