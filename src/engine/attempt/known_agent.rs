//! Judges the end of a known agent by what it printed.

use std::io::{Cursor, Read as _};

use super::result_file::shorten;
use super::step::{Commands, Line, judge};
use super::{Job, PendingResult, Verdict, blocking};
use crate::engine::command::Resolved;
use crate::engine::programs;
use crate::engine::report::{Report, joined};
use crate::model::claims::Reported;
use crate::model::last_lines::last_lines;
use crate::process::agent::{self, Ended};
use crate::repository::config::{PRESETS, Preset};
use crate::worktree::workspace::Workspace;

/// Returns the name of the preset of the agent that a command starts: the one that the user names,
/// or that of the program.
///
/// It only describes the agent. A plan can name any program, so the preset grants it nothing.
pub(in crate::engine) fn preset(command: &Resolved) -> Option<&'static str> {
    if let Some(name) = &command.settings.preset {
        return PRESETS.get_key_value(name).map(|(name, _)| name.as_str());
    }
    let name = programs::name_of(&command.argv, command.settings.command.is_some())?;
    Preset::of_program(name).map(|(name, _)| name)
}

impl Commands<'_> {
    /// Runs the item's own command and judges its end. `step` begins the reason of a failure.
    ///
    /// A known agent that reports an error fails, whatever its exit, and its claims are recorded.
    pub(super) async fn run_item(
        &mut self,
        workspace: &Workspace,
        step: &str,
        pending: &mut PendingResult,
    ) -> (Result<Ended, agent::Error>, Result<(), Verdict>) {
        let job = self.job;
        let from = self.transcript.written();
        if job.preset.is_some() {
            self.transcript.follow();
        }
        let ended = self.run(workspace, Line::item(job)).await;
        let end = self.transcript.followed();
        let judged = judge(step, &ended, job.spec.command.timeout);
        let Some(preset) = job.preset else { return (ended, judged) };
        let report = match self.report(preset, from, &end).await {
            Ok(report) => report,
            Err(verdict) => return (ended, judged.and(Err(verdict))),
        };
        record_claims(job, pending, report.claims());
        (ended, verdict(preset, step, report.error.as_deref(), &end, judged))
    }

    /// Reads what the agent printed about itself since a position of the transcript. `end` is the
    /// end of that, which a transcript beyond its limit lacks.
    async fn report(&self, preset: &'static Preset, from: u64, end: &[u8]) -> Result<Report, Verdict> {
        let lost = if self.transcript.is_cut() { end.to_vec() } else { Vec::new() };
        let output = self.transcript.read_from(from)?.chain(Cursor::new(lost));
        Ok(blocking(move || Report::read(preset, output)).await?)
    }
}

/// Adds the claims of one command, and notes the actions that it was denied.
fn record_claims(job: &Job, pending: &mut PendingResult, claims: Option<Reported>) {
    let Some(mut claims) = claims else { return };
    claims.texts().for_each(|text| *text = shorten(text));
    if let Some(denied) = claims.permission_denials {
        let actions = if denied == 1 { "action" } else { "actions" };
        pending
            .result
            .notes
            .push(format!("{}: the agent was denied {denied} {actions} for lack of a permission", job.spec.item));
    }
    pending.reported = joined(pending.reported.take(), Some(claims));
    pending.result.claims.clone_from(&pending.reported);
}

/// Returns the verdict on an agent that reports an error or whose command failed.
fn verdict(
    preset: &Preset,
    step: &str,
    error: Option<&str>,
    end: &[u8],
    judged: Result<(), Verdict>,
) -> Result<(), Verdict> {
    let before = match (judged, error) {
        (Ok(()), None) => return Ok(()),
        (Ok(()), Some(_)) => step.to_owned(),
        (Err(Verdict::Failed { reason, hopeless: false }), _) => format!("{reason}: "),
        (Err(other), _) => return Err(other),
    };
    // The error is the agent's own explanation; the end of the output may hold anything.
    let explained = error.map_or_else(|| String::from_utf8_lossy(end), Into::into);
    if let Some(text) = lasting(preset, &explained) {
        return Err(Verdict::hopeless(format!(
            "{before}the agent reports {text:?}, which another try will not change"
        )));
    }
    match error {
        Some(error) => {
            let tail = last_lines(error.as_bytes());
            Err(Verdict::failed(format!("{before}the agent reports an error: {tail}")))
        }
        None => Err(Verdict::failed(before.trim_end_matches(": "))),
    }
}

/// Returns the text of a lasting failure, or `None` if there is none or a text of a failure that
/// may pass comes after it.
fn lasting<'p>(preset: &'p Preset, output: &str) -> Option<&'p str> {
    let last = |texts: &'p [String]| {
        let found = texts.iter().filter_map(|text| Some((output.rfind(text.as_str())?, text.len(), text.as_str())));
        found.max()
    };
    let never = last(&preset.never);
    if never > last(&preset.later) { never.map(|(.., text)| text) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claude() -> &'static Preset {
        Preset::of_program("/usr/bin/claude").unwrap().1
    }

    fn reason(error: Option<&str>, end: &str, judged: Result<(), Verdict>) -> (String, bool) {
        match verdict(claude(), "", error, end.as_bytes(), judged) {
            Err(Verdict::Failed { reason, hopeless }) => (reason, hopeless),
            _ => (String::new(), false),
        }
    }

    #[test]
    fn the_last_known_text_decides_whether_to_try_again() {
        let never = "exited with 1: the agent reports \"API Error: 401\", which another try will not change";
        assert_eq!(reason(None, "x\nAPI Error: 401 {}\n", failed()), (never.to_owned(), true));
        assert_eq!(reason(None, "API Error: 429\nAPI Error: 401\n", failed()), (never.to_owned(), true));
        assert_eq!(reason(None, "API Error: 401\nAPI Error: 429\n", failed()), ("exited with 1".to_owned(), false));
        assert_eq!(reason(None, "Segmentation fault\n", failed()), ("exited with 1".to_owned(), false));
        let later = "exited with 1: the agent reports an error: API Error: 529";
        assert_eq!(reason(Some("API Error: 529"), "API Error: 400", failed()), (later.to_owned(), false));
        let turns = "exited with 1: the agent reports an error: too many turns";
        assert_eq!(reason(Some("too many turns"), "authentication_error", failed()), (turns.to_owned(), false));
    }

    fn failed() -> Result<(), Verdict> {
        Err(Verdict::failed("exited with 1"))
    }

    #[test]
    fn a_reported_error_fails_an_agent_that_exits_with_0() {
        let why = "the agent reports an error: error_max_turns";
        assert_eq!(reason(Some("error_max_turns"), "", Ok(())), (why.to_owned(), false));
        let never = "the agent reports \"API Error: 400\", which another try will not change";
        assert_eq!(reason(Some("API Error: 400 no"), "", Ok(())), (never.to_owned(), true));
        assert!(verdict(claude(), "", None, b"API Error: 401", Ok(())).is_ok());
        let interrupted = verdict(claude(), "", Some("API Error: 401"), b"", Err(Verdict::Interrupted));
        assert!(matches!(interrupted, Err(Verdict::Interrupted)));
    }
}
