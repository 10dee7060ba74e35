//! The report as Markdown, for a comment on a pull request or a job summary.

use std::collections::BTreeSet;

use super::facts::RunPage;
use super::thread::ShownThread;
use super::{Request, ShownRun, words};
use crate::model::any_error::AnyError;
use crate::model::item_index::ItemIndex;
use crate::model::printable;
use crate::model::protected::judged_in_words;
use crate::model::quote::quoted;
use crate::report::graph::ItemStatus;
use crate::report::graph::{Outline, mermaid};
use crate::repository::Repository;
use crate::verify::{Row, SignerSeen, State};

/// The most items in the table; those that are not done and green come first.
const MOST_ROWS: usize = 50;

impl Repository {
    /// Returns the report of some runs and threads as Markdown: verdict, items, graph, checks, and
    /// how to verify it.
    pub fn markdown_report(&self, request: &Request<'_>) -> Result<String, AnyError> {
        let gathered = self.gather(request.names)?;
        let omitted = BTreeSet::new();
        let mut sections = Vec::new();
        for (number, run) in self.shown_runs(request.names, gathered.store())?.iter().enumerate() {
            let page = run.view.as_ref().map(|view| RunPage::new(gathered.store(), view, &omitted, number));
            sections.push(run_section(run, page.as_ref()));
        }
        sections.extend(self.shown_threads(request.names, gathered.store())?.iter().map(thread_section));
        Ok(sections.join("\n"))
    }
}

fn run_section(run: &ShownRun, page: Option<&RunPage<'_>>) -> String {
    let report = &run.report;
    let mark = match (report.intact, report.is_partial()) {
        (true, false) => "✓",
        (true, true) => "!",
        (false, _) => "✗",
    };
    let partial = if report.is_partial() { " PARTIAL" } else { "" };
    let head = format!("## {mark} {}{partial}: {}\n\n", report.headline, code(run.id.as_str()));
    let body = match page {
        Some(page) => {
            let picture = mermaid::write(&Outline::of_run(page.view), Some(&page.view.state));
            let summary = format!("{}; entries: {}.\n\n{}", page.outcome(), page.view.links.len(), items(page));
            format!("{summary}\n```mermaid\n{}\n```\n\n", picture.trim_end())
        }
        None => "The entries are not a legal history, so no items are shown.\n\n".to_owned(),
    };
    let verify = format!("git handoff verify --signers FILE {}", quoted(run.id.as_str()));
    format!("{head}{body}{}{}", checks(report.rows.iter()), signed(&report.signers, &verify))
}

fn thread_section(thread: &ShownThread) -> String {
    let report = &thread.report;
    let (mark, word) = if report.intact { ("✓", "INTACT") } else { ("✗", "NOT INTACT") };
    let head = format!("## {mark} {word}: thread {}\n\n", code(thread.id.as_str()));
    let count = format!("Entries: {}, checkpoints: {}.\n\n", report.entries, report.checkpoints);
    let verify = format!("git handoff thread verify --signers FILE {}", quoted(thread.id.as_str()));
    format!("{head}{count}{}{}", checks(report.rows.iter()), signed(&report.signers, &verify))
}

fn checks<'r>(rows: impl Iterator<Item = &'r Row>) -> String {
    let head = "| check | result |\n|---|---|\n".to_owned();
    std::iter::once(head)
        .chain(rows.map(|row| {
            let mark = match row.state {
                State::Ok => "✓",
                State::Failed => "✗",
                State::NotApplicable => "─",
            };
            format!("| {mark} {} | {} |\n", row.name, cell(&row.detail))
        }))
        .collect::<Vec<_>>()
        .concat()
}

fn signed(signers: &[SignerSeen], verify: &str) -> String {
    let keys: Vec<String> = signers.iter().map(|signer| code(&signer.fingerprint)).collect();
    let keys = keys.join(", ");
    format!(
        "\nSigned by {keys}. Verify it yourself, with a key that you know:\n\n\
         ```sh\ngit handoff fetch\n{verify}\n```\n"
    )
}

/// Returns the table of items, the ones that need attention first.
fn items(page: &RunPage<'_>) -> String {
    let mut order: Vec<ItemIndex> = page.view.state.graph.items().indices().collect();
    // The sort is stable.
    order.sort_by_key(|at| matches!(page.status(*at), ItemStatus::Done | ItemStatus::Claimed));
    let mut lines = vec!["| item | status | attempts | took | note |".to_owned(), "|---|---|---|---|---|".to_owned()];
    for at in order.iter().take(MOST_ROWS) {
        let (state, status) = (&page.view.state.items[*at], page.status(*at));
        let note = state.reason.as_deref().or(state.summary.as_deref()).unwrap_or_default();
        let judged =
            if state.judged { format!("! {}; {note}", judged_in_words(state.protected.len())) } else { String::new() };
        let note = if judged.is_empty() { note } else { judged.trim_end_matches("; ") };
        let note = if note.is_empty() { String::new() } else { cell(&printable::cut_to(words::first_line(note), 200)) };
        let (id, took) = (cell(page.id(*at)), page.timing.took(*at));
        lines.push(format!(
            "| {} {id} | {} | {} | {took} | {note} |",
            status.standing().mark(),
            status.word(),
            state.attempts
        ));
    }
    if let Some(more) = order.len().checked_sub(MOST_ROWS + 1) {
        lines.push(format!("\n{} more items are not listed.", more + 1));
    }
    lines.extend(page.view.check_remarks(page.store, None).iter().map(|words| format!("\n{words}")));
    lines.join("\n") + "\n"
}

/// Returns a code span for a table, where a bar ends the cell unless it is escaped.
fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// Returns a code span that shows exactly the text outside a table. Mentions and links in it have
/// no effect.
fn code(text: &str) -> String {
    let text = printable::line(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if longest > 0 { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}
