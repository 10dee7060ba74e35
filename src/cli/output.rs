//! The only place that prints: answers to stdout, everything else to stderr. Nothing but bytes that were asked for as such leaves
//! it without having been made printable.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use git_handoff::config::{Colors, When};
use git_handoff::git::temporary;
use git_handoff::model::credential;
use git_handoff::model::hints::{self, Hint};
use git_handoff::model::printable::{self, Color, Painted};
use serde::Serialize;
use serde_json::Value;

use super::failure::Failure;
use super::pager::{self, Pager};
use super::table::wrap;

/// The exit status of a program that writes into a closed pipe, as shells show it.
const BROKEN_PIPE: i32 = 141;

/// Ends the program as a signal would, but for the temporary folders, which go with it, and not before a pager gave the terminal back.
pub(super) fn leave(signal: i32) -> ! {
    pager::wait();
    temporary::remove_all();
    std::process::exit(128 + signal);
}

/// Where answers and messages go.
pub(crate) struct Output {
    /// Whether answers are JSON.
    pub(crate) json: bool,
    /// Whether stdout takes colour.
    pub(crate) color: bool,
    /// Whether stderr does.
    pub(crate) stderr_color: bool,
    pager: Option<Pager>,
    /// The hints that were said for several answers.
    hinted: Vec<Hint>,
}

impl Output {
    /// Looks at the streams and at `NO_COLOR`.
    pub(crate) fn new(json: bool) -> Self {
        let wanted = console::colors_enabled();
        Self {
            json,
            color: wanted && io::stdout().is_terminal(),
            stderr_color: console::colors_enabled_stderr() && io::stderr().is_terminal(),
            pager: None,
            hinted: Vec::new(),
        }
    }

    /// Takes colour as git is told to; where that is `auto`, as the streams and `NO_COLOR` say. A pager that git began stands for a
    /// terminal if that `takes` colour.
    pub(crate) fn color_as(&mut self, colors: Colors, takes: impl FnOnce() -> bool) {
        let forced = match colors.when() {
            When::Always => true,
            When::Never => false,
            When::Auto => {
                self.color |= colors.in_pager() && !self.is_terminal() && takes();
                return;
            }
        };
        (self.color, self.stderr_color) = (forced, forced);
    }

    /// Has the answer go through a pager.
    pub(super) fn page(&mut self, pager: Pager, colors: Colors) {
        self.color &= colors.in_pager() || colors.when() == When::Always;
        self.pager = Some(pager);
    }

    /// Waits until whoever reads the answer has seen enough of it.
    pub(crate) fn end(&mut self) {
        if let Some(command) = self.pager.take().and_then(Pager::end) {
            self.warn(&format!("the pager {command:?} is no command that can be run, and the answer was lost with it"));
            self.hint(&hints::no_pager());
        }
    }

    /// Prints a line: words of anybody's, of which nothing steers a terminal, or such as were painted here.
    pub(crate) fn line(&mut self, text: impl Into<Painted>) {
        self.bytes(text.into().end().as_str().as_bytes());
    }

    /// Prints lines that were painted here, as they are.
    pub(crate) fn painted(&mut self, lines: &Painted) {
        self.bytes(lines.as_str().as_bytes());
    }

    /// Prints the report that stands at this place of an answer: as JSON where that is asked for, else as lines, apart from the one
    /// before it.
    pub(crate) fn report(&mut self, at: usize, json: impl FnOnce() -> Value, lines: impl FnOnce(bool) -> Painted) {
        if self.json {
            return self.value(&json());
        }
        if at > 0 {
            self.line("");
        }
        self.painted(&lines(self.color));
    }

    /// Prints lines that were put together of single ones.
    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(printable::lines(&format!("{}\n", text.trim_end_matches('\n'))).as_bytes());
    }

    /// Prints one JSON value on one line.
    pub(crate) fn value(&mut self, answer: &impl Serialize) {
        let value = serde_json::to_value(answer).expect("every answer can be written as JSON");
        self.json_text(&value.to_string());
    }

    /// Prints what is JSON already.
    pub(crate) fn json_text(&mut self, json: &str) {
        self.bytes(printable::json(&format!("{json}\n")).as_bytes());
    }

    /// Prints bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let result = match &mut self.pager {
            Some(pager) => pager.write(bytes),
            None => io::stdout().lock().write_all(bytes),
        };
        match (result, self.pager.take_if(|pager| !pager.is_running())) {
            (Err(error), Some(_)) => {
                self.warn(&format!("the pager could not be started, and the answer comes without: {error}"));
                self.bytes(bytes);
            }
            (result, _) => self.settle(result),
        }
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

    /// Returns how wide the terminal is on which the answer is read, or `None` if it is not read on one.
    pub(crate) fn width(&self) -> Option<usize> {
        let is_read = self.pager.is_some() || self.is_terminal();
        is_read.then(|| usize::from(console::Term::stdout().size().1)).filter(|width| *width > 0)
    }

    /// Returns whether a person is there who can be asked for a password.
    pub(crate) fn can_ask() -> bool {
        io::stderr().is_terminal()
    }

    /// Says something that is not the answer.
    pub(crate) fn note(&mut self, text: &str) {
        self.say(None, &broken(text, 0));
    }

    /// Says that something was ignored or looks wrong.
    pub(crate) fn warn(&mut self, text: &str) {
        self.say(Some(("warning:", Color::Yellow)), &broken(text, "warning: ".len()));
    }

    /// Says what to do next.
    pub(crate) fn hint(&mut self, hint: &Hint) {
        self.say(Some(("hint:", Color::Cyan)), hint.as_str());
    }

    /// Says what to do next, unless the same was said before for another answer of this command.
    pub(crate) fn hint_once(&mut self, hint: Hint) {
        if !self.hinted.contains(&hint) {
            self.hint(&hint);
            self.hinted.push(hint);
        }
    }

    /// Says why the command failed; returns the exit code.
    pub(crate) fn fail(&mut self, failure: &Failure) -> ExitCode {
        self.flush();
        if self.json {
            self.write(&printable::json(&format!("{}\n", failure.to_json())));
            return ExitCode::from(failure.exit);
        }
        if let Some(report) = &failure.report {
            self.write(&printable::lines(&format!("{}\n", report.to_text())));
        }
        // A token is easily given in the place of a name.
        self.say(Some(("error:", Color::Red)), &credential::without(&failure.message));
        for cause in &failure.causes {
            self.note(&format!("caused by: {}", credential::without(cause)));
        }
        if let Some(hint) = &failure.hint {
            self.say(Some(("hint:", Color::Cyan)), &credential::without(hint.as_str()));
        }
        ExitCode::from(failure.exit)
    }

    /// Says that the command cannot be used like this, in the words of the parser; returns the exit code.
    pub(crate) fn misused(&mut self, said: &str) -> ExitCode {
        let (heading, message) = match said.strip_prefix("error: ") {
            Some(message) => ("error: ", message),
            None => ("", said),
        };
        let message = &*credential::without(message);
        let failure = Failure::usage(message.to_owned());
        if self.json {
            return self.fail(&failure);
        }
        let heading = Painted::default().painted(heading, Some(Color::Red).filter(|_| self.stderr_color));
        // What is wrong, how it is meant, and where more is said are apart from each other.
        self.write(&format!("{}{}\n", heading.as_str(), printable::lines(message)));
        ExitCode::from(failure.exit)
    }

    /// Says something under a heading of ours. What follows a line end is set in, so that nobody's words begin a line.
    fn say(&mut self, heading: Option<(&str, Color)>, text: &str) {
        let mut lines = text.lines();
        let mut said = Painted::default();
        if let Some((heading, color)) = heading {
            said = said.painted(heading, Some(color).filter(|_| self.stderr_color)).words(" ");
        }
        said = said.words(lines.next().unwrap_or_default()).end();
        for line in lines {
            said = said.words("  ").words(line).end();
        }
        self.write(said.as_str());
    }

    fn write(&mut self, text: &str) {
        let pager = self.pager.as_mut().filter(|pager| pager.is_running() && io::stderr().is_terminal());
        // Nobody may be listening; that is no reason to stop.
        let _ = match pager {
            // What would be written across its screen stands where it belongs, as git has it.
            Some(pager) => pager.write(text.as_bytes()),
            None => io::stderr().lock().write_all(text.as_bytes()),
        };
    }

    /// Ends the program where its reader has gone away; a full disk behind stdout is an error.
    fn settle(&mut self, result: io::Result<()>) {
        let Err(error) = result else { return };
        temporary::remove_all();
        if error.kind() == ErrorKind::BrokenPipe {
            std::process::exit(BROKEN_PIPE);
        }
        self.write(&format!("error: the answer could not be written\ncaused by: {error}\n"));
        std::process::exit(1);
    }
}

/// Breaks what is said on a terminal between words; `taken` is the width of the heading. Hints stay whole, since they are pasted.
fn broken(text: &str, taken: usize) -> String {
    if !io::stderr().is_terminal() {
        return text.to_owned();
    }
    let width = usize::from(console::Term::stderr().size().1).saturating_sub(taken.max(2));
    let broken = |line: &str| {
        let lines = wrap::text(line, width, 0).into_iter().enumerate();
        // What follows is set in where it is written.
        lines.map(|(at, line)| if at == 0 { line } else { line.trim_start().to_owned() }).collect::<Vec<_>>()
    };
    text.lines().flat_map(broken).collect::<Vec<_>>().join("\n")
}
