//! The only place that prints: answers to stdout, everything else to stderr.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use git_handoff::git::scratch::Scratch;
use git_handoff::git::store::Store;
use serde_json::Value;

use super::failure::Failure;

/// The exit status of a program that writes into a closed pipe, as shells show it.
const BROKEN_PIPE: i32 = 141;

/// Where answers and messages go.
pub(crate) struct Output {
    /// Whether answers are JSON.
    pub(crate) json: bool,
    /// Whether stdout takes colour.
    pub(crate) color: bool,
    stderr_color: bool,
    kept: Vec<Scratch>,
}

impl Output {
    /// Looks at the streams and at `NO_COLOR`.
    pub(crate) fn new(json: bool) -> Self {
        let wanted = console::colors_enabled();
        Self {
            json,
            color: wanted && io::stdout().is_terminal(),
            stderr_color: console::colors_enabled_stderr() && io::stderr().is_terminal(),
            kept: Vec::new(),
        }
    }

    /// Keeps a throw-away repository until the program ends, however that happens here; returns the repository.
    pub(crate) fn keep(&mut self, scratch: Scratch) -> Store {
        let store = scratch.store().clone();
        self.kept.push(scratch);
        store
    }

    /// Prints text as it is, and a line end.
    pub(crate) fn line(&mut self, text: &str) {
        self.bytes(format!("{text}\n").as_bytes());
    }

    /// Prints one JSON value on one line.
    pub(crate) fn value(&mut self, value: &Value) {
        self.line(&value.to_string());
    }

    /// Prints bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let result = io::stdout().lock().write_all(bytes);
        self.settle(result);
    }

    /// Makes sure that everything printed has left.
    pub(crate) fn flush(&mut self) {
        let result = io::stdout().lock().flush();
        self.settle(result);
    }

    /// Returns whether somebody would see on a terminal what is printed.
    #[expect(clippy::unused_self, reason = "nobody looks at the streams without holding the output")]
    pub(crate) fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Returns whether a person is there who can be asked for a password.
    #[expect(clippy::unused_self, reason = "nobody looks at the streams without holding the output")]
    pub(crate) fn can_ask(&self) -> bool {
        io::stderr().is_terminal()
    }

    /// Says something that is not the answer.
    #[expect(clippy::unused_self, reason = "nobody prints without holding the output")]
    pub(crate) fn note(&mut self, text: &str) {
        // Nobody may be listening on stderr; that is no reason to stop.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// Says that something was ignored or looks wrong.
    pub(crate) fn warn(&mut self, text: &str) {
        let heading = self.heading("warning:", console::Color::Yellow);
        self.note(&format!("{heading} {text}"));
    }

    /// Gives a command to paste.
    pub(crate) fn hint(&mut self, text: &str) {
        let heading = self.heading("hint:", console::Color::Cyan);
        self.note(&format!("{heading} {text}"));
    }

    /// Says why the command failed; returns the exit code.
    pub(crate) fn fail(&mut self, failure: &Failure) -> ExitCode {
        self.flush();
        if self.json {
            self.note(&failure.to_json().to_string());
            return ExitCode::from(failure.exit);
        }
        if let Some(report) = &failure.report {
            self.note(&report.to_text());
        }
        let heading = self.heading("error:", console::Color::Red);
        self.note(&format!("{heading} {}", failure.message));
        for cause in &failure.causes {
            self.note(&format!("caused by: {cause}"));
        }
        if let Some(hint) = &failure.hint {
            self.hint(hint);
        }
        ExitCode::from(failure.exit)
    }

    fn heading(&self, text: &str, color: console::Color) -> String {
        console::style(text).fg(color).bold().force_styling(self.stderr_color).to_string()
    }

    /// Ends the program where its reader has gone away; a full disk behind stdout is an error.
    fn settle(&mut self, result: io::Result<()>) {
        let Err(error) = result else { return };
        self.kept.clear();
        if error.kind() == ErrorKind::BrokenPipe {
            std::process::exit(BROKEN_PIPE);
        }
        let _ = writeln!(io::stderr().lock(), "error: the answer could not be written\ncaused by: {error}");
        std::process::exit(1);
    }
}
