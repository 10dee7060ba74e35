//! Turns errors into messages with causes, a hint and an exit code.

mod anchor;
mod apply;
mod archive;
mod checking;
mod config;
mod delete;
mod document;
mod driving;
mod evidence;
mod ground;
mod left_out;
mod lock;
mod packet;
mod people;
mod piece;
mod pipeline;
mod refusal;
mod setup;
mod share;
mod sharing;
mod target;
mod thread;
mod whence;

use std::error::Error;
use std::io;

use git_handoff::git::{program, refs};
use git_handoff::ledger::prove;
use git_handoff::model::causes;
use git_handoff::model::credential;
use git_handoff::model::hints::{self, Hint};
use git_handoff::model::printable::cut;
use git_handoff::report::export;
use git_handoff::run::{Unreadable, coordinate, extend, steer, submission, submit};
use git_handoff::thread::packet::Report;
use git_handoff::upkeep::{clean, doctor, operations};
use git_handoff::{run, verify};
use serde::Serialize;
use serde_json::Value;

/// A failure of a command.
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

/// The JSON form of a failure, printed on standard error.
#[derive(Serialize)]
struct FailureShown<'a> {
    schema: &'static str,
    /// A stable code for programs.
    code: &'static str,
    /// The message.
    message: &'a str,
    /// The causes, outermost first.
    causes: &'a [String],
    /// The way out.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a Hint>,
    /// The report of the packet check that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<Value>,
    /// Further details for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Value>,
}

impl Failure {
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

    /// Suggests a similar name, or a command that lists the names.
    fn did_you_mean(self, near: Option<&str>, look: Hint) -> Self {
        self.hint(near.map_or(look, hints::did_you_mean))
    }

    /// Returns the JSON form.
    pub(crate) fn to_json(&self) -> Value {
        let shown = FailureShown {
            schema: "git-handoff.error/1",
            code: self.code,
            message: &self.message,
            causes: &self.causes,
            hint: self.hint.as_ref(),
            check: self.report.as_ref().map(|report| report.to_json()),
            details: self.details.as_deref(),
        };
        credential::redact_json(serde_json::to_value(shown).expect("every answer can be written as JSON"))
    }

    pub(crate) fn of(code: &'static str, error: &(dyn Error + 'static)) -> Self {
        let mut failure = Self::refused(code, cut(error.to_string()));
        for cause in causes::chain(error).skip(1) {
            let text = cut(cause.to_string());
            if failure.causes.last() != Some(&text) && failure.message != text {
                failure.causes.push(text);
            }
        }
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

impl From<submit::Error> for Failure {
    fn from(error: submit::Error) -> Self {
        let failure = Self::of("submit", &error);
        match error {
            submit::Error::Different(run) => Self { code: "run-exists", ..failure }.hint(hints::show_or_rename(run)),
            submit::Error::Used(run) => Self { code: "id-used", ..failure }.hint(hints::other_id(run.as_str())),
            submit::Error::OtherCase { run, .. } => {
                Self { code: "run-exists", ..failure }.hint(hints::other_id(run.as_str()))
            }
            submit::Error::Unborn => Self { code: "unborn", ..failure }.hint(hints::first_commit()),
            submit::Error::Base(_) => Self { code: "bad-base", ..failure }.hint(hints::commits()),
            submit::Error::Secret(inner) => inner.into(),
            submit::Error::Chain(inner) => inner.into(),
            submit::Error::Store(inner) => inner.into(),
            submit::Error::Ref(inner) => inner.into(),
            submit::Error::Log(inner) => inner.into(),
            submit::Error::Unsealed(_) => failure.race(),
            submit::Error::Copy(_) => Self::of("io", &error),
            submit::Error::Artifact { .. } | submit::Error::Git(_) | submit::Error::Head(_) => failure,
        }
    }
}

impl From<submission::Error> for Failure {
    fn from(error: submission::Error) -> Self {
        match error {
            submission::Error::Queue(ref queue) => Self::of("unknown-queue", &error).hint(hints::register_queue(queue)),
            submission::Error::Submit(inner) => inner.into(),
            submission::Error::WorkTree(_) => Self::of("git", &error),
            submission::Error::Refs(inner) => inner.into(),
            submission::Error::Denied(inner) => inner.into(),
            submission::Error::NotOwned => Self::usage(error.to_string()),
            submission::Error::Repository(inner) => inner.into(),
        }
    }
}

impl From<run::Error> for Failure {
    fn from(error: run::Error) -> Self {
        match error {
            run::Error::Unknown(_) => Self::of("unknown-run", &error).hint(hints::runs()),
            run::Error::NotARun(ref run)
            | run::Error::Plan(ref run)
            | run::Error::Rules(ref run)
            | run::Error::Item(ref run, _)
            | run::Error::History(ref run, ..) => Self::of("not-a-run", &error).hint(hints::verify(run)),
            run::Error::Rewritten(ref run) | run::Error::Stranger(ref run, _) => {
                Self::of("not-continuable", &error).hint(hints::verify(run))
            }
            run::Error::Unjudged(ref run, ..) => Self::of("altered", &error).hint(hints::verify(run)),
            run::Error::Illegal(_) => Self::of("illegal", &error),
            run::Error::Role { ref run, ref key, why } => {
                Self::of("no-role", &error).hint(people::missing_role(run, key, why))
            }
            ref remote @ (run::Error::Raced
            | run::Error::Unanswered { .. }
            | run::Error::Unreachable { .. }
            | run::Error::Locked { .. }
            | run::Error::PushRefused { .. }
            | run::Error::Poisoned(_)
            | run::Error::Forked(_)) => sharing::of_remote(remote),
            run::Error::Chain(inner) => inner.into(),
            run::Error::Store(inner) => inner.into(),
            run::Error::Ref(inner) => inner.into(),
            run::Error::Submit(inner) => inner.into(),
            run::Error::Log(inner) => inner.into(),
        }
    }
}

impl From<extend::Error> for Failure {
    fn from(error: extend::Error) -> Self {
        match error {
            extend::Error::NotOpenEnded(_) => Self::of("not-open-ended", &error).hint(hints::open_ended()),
            extend::Error::Ended(_) => Self::of("ended", &error),
            extend::Error::OtherRun { .. } => Self::of("other-run", &error).hint(hints::id_of_run()),
            extend::Error::Steer(inner) => inner.into(),
            extend::Error::Target(inner) => inner.into(),
            extend::Error::Denied(inner) => inner.into(),
            extend::Error::Coordinate(inner) => inner.into(),
            extend::Error::Run(inner) => inner.into(),
            extend::Error::Pipeline(inner) => inner.into(),
            extend::Error::Repository(inner) => inner.into(),
        }
    }
}

impl From<steer::Error> for Failure {
    fn from(error: steer::Error) -> Self {
        match error {
            steer::Error::Foreign(_) => Self::of("not-ours", &error),
            steer::Error::Sealed(ref run) => Self::of("sealed", &error).hint(hints::verify(run)),
            steer::Error::Ended { .. } => Self::of("not-cancellable", &error),
            steer::Error::NotLost { .. } | steer::Error::Superseded { .. } => Self::of("not-retriable", &error),
            steer::Error::Red { ref run, ref item } => {
                Self::of("not-retriable", &error).hint(hints::red_again(format_args!("{run}/{item}")))
            }
            steer::Error::Lacking { ref run, ref on, .. } => {
                Self::of("not-retriable", &error).hint(hints::without_product(run, on))
            }
            steer::Error::Blocked { ref run, ref on, .. } => {
                Self::of("not-retriable", &error).hint(hints::retry(format_args!("{run}/{on}")))
            }
            steer::Error::NotSettled { ref run, .. } => Self::of("not-settled", &error).hint(hints::run_to_close(run)),
            steer::Error::NoItem | steer::Error::WholeRun => Self::usage(error.to_string()),
            steer::Error::Target(inner) => inner.into(),
            steer::Error::Denied(inner) => inner.into(),
            steer::Error::Run(inner) => inner.into(),
            steer::Error::Repository(inner) => inner.into(),
        }
    }
}

impl From<coordinate::Error> for Failure {
    fn from(error: coordinate::Error) -> Self {
        let failure = Self::of("coordinate", &error);
        match error {
            coordinate::Error::Run(inner) => inner.into(),
            coordinate::Error::Document(Unreadable::Store(inner)) => inner.into(),
            coordinate::Error::Document(Unreadable::Damaged(..)) => {
                Self { code: "altered", ..failure }.hint(hints::verify_all())
            }
            coordinate::Error::TooMany { count, .. } => {
                Self { code: "too-many-items", ..failure }.hint(hints::max_items(count))
            }
        }
    }
}

impl From<program::Error> for Failure {
    fn from(error: program::Error) -> Self {
        Self::of("git", &error)
    }
}

impl From<export::Error> for Failure {
    fn from(error: export::Error) -> Self {
        match error {
            export::Error::Store(inner) => inner.into(),
            export::Error::Sign(inner) => inner.into(),
            other => Self::of("export", &other),
        }
    }
}

impl From<verify::Refusal> for Failure {
    fn from(refusal: verify::Refusal) -> Self {
        let failure = Self::of("not-continuable", &refusal);
        match &refusal {
            verify::Refusal::Broken(report) => failure.hint(hints::verify(&report.run)),
            verify::Refusal::Sealed(run) => failure.hint(hints::verify(run)),
            verify::Refusal::NotAWriter { run, key } => failure.hint(hints::admit_any(run, key)),
            verify::Refusal::Foreign { .. } => failure.hint(hints::know_beginner()),
            verify::Refusal::Verify(_) | verify::Refusal::Unread { .. } => failure,
        }
    }
}

impl From<verify::Error> for Failure {
    fn from(error: verify::Error) -> Self {
        let failure = Self::of("verify", &error);
        match error {
            // A failed check: something recorded is gone.
            verify::Error::Vanished { .. } | verify::Error::VanishedThread { .. } => {
                Self { code: "vanished", exit: 3, ..failure }
            }
            verify::Error::Packed(inner) | verify::Error::Refs(refs::Error::Packed(inner)) => {
                Self { exit: 3, ..inner.into() }
            }
            _ => failure,
        }
    }
}

impl From<prove::Error> for Failure {
    fn from(error: prove::Error) -> Self {
        let failure = Self::of("prove", &error);
        match error {
            prove::Error::NotSealed(run) => Self { code: "not-sealed", ..failure }.hint(hints::run_or_close(run)),
            prove::Error::NotDone(_) => Self { code: "not-done", ..failure },
            prove::Error::NoProduct(..) => Self { code: "no-such-thing", ..failure },
            prove::Error::Chain(inner) => inner.into(),
            prove::Error::Store(inner) => inner.into(),
            prove::Error::Nothing(_) | prove::Error::NoEntry { .. } | prove::Error::NotARun => failure,
        }
    }
}

impl From<operations::Error> for Failure {
    fn from(error: operations::Error) -> Self {
        match error {
            operations::Error::Foreign(_) => Self::of("not-ours", &error),
            operations::Error::Doctor(inner) => inner.into(),
            operations::Error::Clean(inner) => inner.into(),
            operations::Error::Target(inner) => inner.into(),
            operations::Error::NoCache(inner) => inner.into(),
            operations::Error::Store(inner) => inner.into(),
            operations::Error::Repository(inner) => inner.into(),
            operations::Error::Disk(_) => Self::of("clean", &error),
        }
    }
}

impl From<clean::Error> for Failure {
    fn from(error: clean::Error) -> Self {
        match error {
            clean::Error::Run(inner) => inner.into(),
            clean::Error::Store(inner) => inner.into(),
            clean::Error::Ref(inner) => inner.into(),
            clean::Error::Clear(inner) => inner.into(),
            clean::Error::Kept(inner) => inner.into(),
            clean::Error::Hold(_) | clean::Error::Workspace(_) | clean::Error::Pool(..) => Self::of("clean", &error),
        }
    }
}

impl From<doctor::Error> for Failure {
    fn from(error: doctor::Error) -> Self {
        match error {
            doctor::Error::Run(inner) => inner.into(),
            doctor::Error::Denied(inner) => inner.into(),
            doctor::Error::Chain(inner) => inner.into(),
            doctor::Error::Store(inner) => inner.into(),
            doctor::Error::Ref(inner) => inner.into(),
            doctor::Error::Git(inner) => inner.into(),
            doctor::Error::Logs(inner) => inner.into(),
            doctor::Error::Config(inner) => inner.into(),
            doctor::Error::Log(_) | doctor::Error::Hold(_) | doctor::Error::Workspace(_) => Self::of("doctor", &error),
        }
    }
}
