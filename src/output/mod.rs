//! The only code that prints: results to standard output, everything else to standard error. All
//! text is made safe for a terminal; only explicitly requested bytes are printed unchanged.

mod ending;
mod failure;
pub(crate) mod interrupt;
pub(crate) mod pager;
pub(crate) mod table;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd as _;
use std::process::ExitCode;

use git_handoff::git::temporary;
use git_handoff::model::ansi;
use git_handoff::model::credential;
use git_handoff::model::hints::{self, Hint};
use git_handoff::model::printable::{self, Color, Painted};
use git_handoff::process::live::Echo;
use git_handoff::repository::config::{Colors, When};
use serde::Serialize;
use serde_json::Value;

pub(crate) use ending::Ending;
pub(crate) use failure::Failure;

use pager::Pager;
use table::wrap;

/// The exit status after writing to a closed pipe, as shells report it.
const BROKEN_PIPE: i32 = 141;

/// Ends the program as by a signal, after removing temporary folders and waiting for the pager.
pub(crate) fn leave(signal: i32) -> ! {
    pager::wait();
    temporary::remove_all();
    std::process::exit(128 + signal);
}

/// Returns standard error as a file of its own.
pub(crate) fn standard_error() -> io::Result<File> {
    Ok(io::stderr().as_fd().try_clone_to_owned()?.into())
}

/// The output of a command.
pub(crate) struct Output {
    /// Whether to print JSON.
    pub(crate) json: bool,
    /// Whether standard output is coloured.
    pub(crate) color: bool,
    /// Whether standard error is coloured.
    pub(crate) stderr_color: bool,
    pager: Option<Pager>,
    /// Hints already printed in this command.
    hinted: Vec<Hint>,
}

impl Output {
    /// Inspects the streams and `NO_COLOR`.
    pub(crate) fn new(json: bool) -> Self {
        let has_colors = console::colors_enabled();
        Self {
            json,
            color: has_colors && io::stdout().is_terminal(),
            stderr_color: console::colors_enabled_stderr() && io::stderr().is_terminal(),
            pager: None,
            hinted: Vec::new(),
        }
    }

    /// Applies git's colour settings; `auto` depends on the streams and `NO_COLOR`. A pager of git
    /// counts as a terminal if it `takes` colour.
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

    /// Sends the output through a pager.
    pub(crate) fn page(&mut self, pager: Pager, colors: Colors) {
        self.color &= colors.in_pager() || colors.when() == When::Always;
        self.pager = Some(pager);
    }

    /// Waits for the pager to end.
    pub(crate) fn end(&mut self) {
        if let Some(command) = self.pager.take().and_then(Pager::end) {
            self.warn(&format!("the pager {command:?} is no command that can be run, and the answer was lost with it"));
            self.hint(&hints::no_pager());
        }
    }

    /// Prints a line, made safe for a terminal except for our own colours.
    pub(crate) fn line(&mut self, text: impl Into<Painted>) {
        self.bytes(text.into().end().as_str().as_bytes());
    }

    /// Prints coloured lines unchanged.
    pub(crate) fn painted(&mut self, lines: &Painted) {
        self.bytes(lines.as_str().as_bytes());
    }

    /// Prints one of several reports: as JSON, or as lines with a blank line before.
    pub(crate) fn report(&mut self, at: usize, json: impl FnOnce() -> Value, lines: impl FnOnce(bool) -> Painted) {
        if self.json {
            return self.value(&json());
        }
        if at > 0 {
            self.line("");
        }
        self.painted(&lines(self.color));
    }

    /// Prints a text of several lines.
    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(printable::lines(&format!("{}\n", text.trim_end_matches('\n'))).as_bytes());
    }

    /// Prints one JSON value on one line.
    pub(crate) fn value(&mut self, answer: &impl Serialize) {
        let value = serde_json::to_value(answer).expect("every answer can be written as JSON");
        self.json_text(&value.to_string());
    }

    /// Prints an answer if JSON is asked for, and returns whether it is.
    pub(crate) fn answers(&mut self, answer: &impl Serialize) -> bool {
        if self.json {
            self.value(answer);
        }
        self.json
    }

    /// Prints a text that is already JSON.
    pub(crate) fn json_text(&mut self, json: &str) {
        self.bytes(printable::json(&format!("{json}\n")).as_bytes());
    }

    /// Prints bytes unchanged.
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

    /// Flushes standard output.
    pub(crate) fn flush(&mut self) {
        let result = io::stdout().lock().flush();
        self.settle(result);
    }

    /// Returns true if standard output is a terminal.
    #[expect(clippy::unused_self, reason = "only code with the output may inspect the streams")]
    pub(crate) fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Returns the width of the terminal, or `None` if the output does not go to one.
    pub(crate) fn width(&self) -> Option<usize> {
        let is_read = self.pager.is_some() || self.is_terminal();
        is_read.then(|| usize::from(console::Term::stdout().size().1)).filter(|width| *width > 0)
    }

    /// Returns the number of lines of the terminal above the one with the cursor, at least one.
    #[expect(clippy::unused_self, reason = "only code with the output may inspect the streams")]
    pub(crate) fn height(&self) -> usize {
        usize::from(console::Term::stdout().size().0).saturating_sub(1).max(1)
    }

    /// Prints lines in place of the last ones on the terminal, of which there are `before`.
    pub(crate) fn redraw(&mut self, before: usize, lines: &[Painted]) {
        let up = if before > 0 { format!("\u{1b}[{before}A\u{1b}[J") } else { String::new() };
        self.bytes(up.as_bytes());
        lines.iter().for_each(|line| self.line(line.clone()));
        self.flush();
    }

    /// Returns true if a person can read the progress of a command.
    pub(crate) fn has_watcher() -> bool {
        io::stderr().is_terminal()
    }

    /// Returns true if the user can be asked for a password.
    pub(crate) fn can_ask() -> bool {
        io::stderr().is_terminal()
    }

    /// Returns a function that prints the output of attempts on standard error, unchanged unless it
    /// is a terminal. It ignores errors, so that a command continues if standard error is closed.
    pub(crate) fn echo() -> Echo {
        let is_terminal = io::stderr().is_terminal();
        Box::new(move |bytes| {
            let printable =
                if is_terminal { Cow::Owned(Self::readable(bytes).into_bytes()) } else { Cow::Borrowed(bytes) };
            // It may be closed.
            let _ = io::stderr().lock().write_all(&printable);
        })
    }

    /// Makes the output of another program safe for a terminal. The states of a progress bar become
    /// lines.
    pub(crate) fn readable(bytes: &[u8]) -> String {
        let text = ansi::without(&String::from_utf8_lossy(bytes));
        printable::lines(&text.replace("\r\n", "\n").replace('\r', "\n"))
    }

    /// Prints a message on standard error.
    pub(crate) fn note(&mut self, text: &str) {
        self.say(None, &broken(text, 0));
    }

    /// Prints a line of a file on standard error, whole however wide the terminal is.
    pub(crate) fn unwrapped_note(&mut self, text: &str) {
        self.say(None, text);
    }

    /// Prints a warning.
    pub(crate) fn warn(&mut self, text: &str) {
        self.say(Some(("warning:", Color::Yellow)), &broken(text, "warning: ".len()));
    }

    /// Prints a hint.
    pub(crate) fn hint(&mut self, hint: &Hint) {
        self.say(Some(("hint:", Color::Cyan)), hint.as_str());
    }

    /// Prints a hint, unless this command already printed it.
    pub(crate) fn hint_once(&mut self, hint: Hint) {
        if !self.hinted.contains(&hint) {
            self.hint(&hint);
            self.hinted.push(hint);
        }
    }

    /// Prints a failure; returns the exit code.
    pub(crate) fn fail(&mut self, failure: &Failure) -> ExitCode {
        self.flush();
        if self.json {
            self.write(&printable::json(&format!("{}\n", failure.to_json())));
            return ExitCode::from(failure.exit);
        }
        if let Some(report) = &failure.report {
            self.write(&printable::lines(&format!("{}\n", report.to_text())));
        }
        // Users easily pass a token in place of a name.
        self.say(Some(("error:", Color::Red)), &credential::redact(&failure.message));
        for cause in &failure.causes {
            self.note(&format!("caused by: {}", credential::redact(cause)));
        }
        if let Some(hint) = &failure.hint {
            self.say(Some(("hint:", Color::Cyan)), &credential::redact(hint.as_str()));
        }
        ExitCode::from(failure.exit)
    }

    /// Prints a usage error in the parser's words; returns the exit code.
    pub(crate) fn misused(&mut self, text: &str) -> ExitCode {
        let (heading, message) = match text.strip_prefix("error: ") {
            Some(message) => ("error: ", message),
            None => ("", text),
        };
        let message = &*credential::redact_eagerly(message);
        let failure = Failure::usage(message.to_owned());
        if self.json {
            return self.fail(&failure);
        }
        let heading = Painted::default().painted(heading, Some(Color::Red).filter(|_| self.stderr_color));
        // Separates the error, the usage and the reference.
        self.write(&format!("{}{}\n", heading.as_str(), printable::lines(message)));
        ExitCode::from(failure.exit)
    }

    /// Prints a message with a heading. Further lines are indented, so that foreign text cannot
    /// imitate a heading.
    fn say(&mut self, heading: Option<(&str, Color)>, text: &str) {
        let mut lines = text.lines();
        let mut message = Painted::default();
        if let Some((heading, color)) = heading {
            message = message.painted(heading, Some(color).filter(|_| self.stderr_color)).words(" ");
        }
        message = message.words(lines.next().unwrap_or_default()).end();
        for line in lines {
            message = message.words("  ").words(line).end();
        }
        self.write(message.as_str());
    }

    fn write(&mut self, text: &str) {
        let pager = self.pager.as_mut().filter(|pager| pager.is_running() && io::stderr().is_terminal());
        // A closed standard error is no reason to stop.
        let _ = match pager {
            // A message during paging is printed in the pager, as in git.
            Some(pager) => pager.write(text.as_bytes()),
            None => io::stderr().lock().write_all(text.as_bytes()),
        };
    }

    /// Ends the program if its reader is gone; a full disk is an error.
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

/// Wraps a message on a terminal; `used` is the width of the heading. Hints are not wrapped, so
/// that they can be pasted.
fn broken(text: &str, used: usize) -> String {
    if !io::stderr().is_terminal() {
        return text.to_owned();
    }
    let width = usize::from(console::Term::stderr().size().1).saturating_sub(used.max(2));
    let broken = |line: &str| {
        let lines = wrap::text(line, width, 0).into_iter().enumerate();
        // Further lines are indented when printed.
        lines.map(|(at, part)| if at == 0 { part } else { part.trim_start().to_owned() }).collect::<Vec<_>>()
    };
    text.lines().flat_map(broken).collect::<Vec<_>>().join("\n")
}
