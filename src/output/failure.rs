//! Turns errors into messages with causes, a hint and an exit code.

mod anchor;
mod apply;
mod checking;
mod circumstances;
mod document;
mod driving;
mod evidence;
mod lock;
mod people;
mod refusal;
mod repository;
mod rules;
mod running;
mod share;
mod sharing;
mod target;
mod thread;
mod upkeep;
#[cfg(feature = "anchors")]
mod web;

use std::error::Error;
use std::io;

use git_handoff::answers::program::Failed;
use git_handoff::git::no_locks::NoLocks;
use git_handoff::model::any_error::AnyError;
use git_handoff::model::causes;
use git_handoff::model::credential;
use git_handoff::model::errors::Coded;
use git_handoff::model::hints::{self, Hint};
use git_handoff::model::printable::cut;
use git_handoff::thread::packet::Report;
use serde_json::Value;

use rules::hint_table;

/// A failure of a command. Its JSON form is printed on standard error.
#[derive(Debug)]
pub(crate) struct Failure {
    /// A stable code for programs.
    pub(crate) code: &'static str,
    /// The exit code.
    pub(crate) exit: u8,
    /// The message.
    pub(crate) message: String,
    /// The causes, outermost first.
    pub(crate) causes: Vec<String>,
    /// The way out.
    pub(crate) hint: Option<Hint>,
    /// The report of the packet check that failed.
    pub(crate) report: Option<Box<Report>>,
    /// Further details for programs.
    pub(crate) details: Option<Box<Value>>,
}

impl<E: Into<AnyError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(&*error.into())
    }
}

impl Failure {
    /// Creates the failure of an error by the first rule that decides, else as a defect.
    pub(crate) fn new(error: &(dyn Error + 'static)) -> Self {
        let decided = causes::chain(error).find_map(rules::decide);
        let failure = decided.unwrap_or_else(|| Self { exit: 70, ..Self::from_error("defect", error) });
        if causes::chain(error).any(|error| NoLocks::within(error).is_some()) {
            return Self { code: "no-locks", exit: 1, hint: Some(hints::no_locks()), ..failure };
        }
        failure
    }

    /// Creates a failure with exit code 1: refused, nothing changed.
    pub(crate) fn refused(code: &'static str, message: String) -> Self {
        Self { code, exit: 1, message, causes: Vec::new(), hint: None, report: None, details: None }
    }

    /// Creates a failure for wrong usage, with exit code 2.
    pub(crate) fn usage(message: String) -> Self {
        Self { exit: 2, ..Self::refused("usage", message) }
    }

    /// Creates a failure for an I/O error.
    pub(crate) fn io(message: &str, error: &io::Error) -> Self {
        Self { causes: vec![error.to_string()], ..Self::refused("io", message.into()) }
    }

    /// Creates a failure for an internal error.
    pub(crate) fn bug() -> Self {
        let message = "this is a defect of git-handoff; the message above says where".into();
        Self { exit: 70, ..Self::refused("defect", message) }
    }

    /// Adds a hint, unless a deeper cause already has one.
    pub(crate) fn hint(mut self, hint: Hint) -> Self {
        self.hint.get_or_insert(hint);
        self
    }

    /// Adds an optional hint, unless a deeper cause already has one.
    pub(crate) fn hint_if(self, hint: Option<Hint>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// Returns the JSON form.
    pub(crate) fn to_json(&self) -> Value {
        let answer = Failed {
            code: self.code,
            message: &self.message,
            causes: &self.causes,
            hint: self.hint.as_ref(),
            check: self.report.as_deref(),
            details: self.details.as_deref(),
        };
        credential::redact_json(serde_json::to_value(answer).expect("every answer can be written as JSON"))
    }

    /// Creates the failure of an error that states its code, unless an error that it wraps decides.
    fn coded<E: Error + Coded + 'static>(error: &E) -> Option<Self> {
        let (code, exit) = error.code()?;
        Some(Self { exit, ..Self::from_error(code, error) })
    }

    pub(crate) fn from_error(code: &'static str, error: &(dyn Error + 'static)) -> Self {
        let message = cut(error.to_string());
        let causes = causes::messages(error).into_iter().map(cut).filter(|cause| *cause != message).collect();
        let failure = Self { causes, ..Self::refused(code, message) };
        if failure.causes.iter().any(|cause| cause.contains("No space left on device")) {
            return failure.hint(hints::again_with_space());
        }
        failure
    }

    /// Marks the failure as caused by a lock file.
    fn locked(self) -> Self {
        self.hint(hints::mend_lock()).race()
    }

    /// Creates a failure for verifying nothing, with exit code 3.
    pub(crate) fn nothing_verified(message: &str) -> Self {
        Self { exit: 3, ..Self::refused("nothing-verified", message.to_owned()) }
    }

    /// Marks the failure as a lost race, with exit code 5.
    pub(crate) fn race(self) -> Self {
        Self { exit: 5, code: "lost-race", ..self }.hint(hints::again())
    }
}

/// Suggests a similar name, or a command that lists the names.
fn did_you_mean(near: Option<&str>, look: Hint) -> Hint {
    near.map_or(look, hints::did_you_mean)
}
