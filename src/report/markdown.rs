//! The report as Markdown, for a comment on a pull request or a job summary.

use std::collections::BTreeSet;

use super::facts::RunPage;
use super::{Error, Request, ShownRun, item, words};
use crate::graph::{Outline, mermaid};
use crate::model::item_index::ItemIndex;
use crate::model::printable;
use crate::repository::Repository;
use crate::verify::State;

/// The most items in the table; those that are not done and green come first.
const MOST_ROWS: usize = 50;

impl Repository {
    /// Returns the report of some runs as Markdown: verdict, items, graph, checks, and how to
    /// verify it.
    pub fn markdown_report(&self, request: &Request<'_>) -> Result<String, Error> {
        let gathered = self.gather(request.names)?;
        let omitted = BTreeSet::new();
        let mut text = String::new();
        for (number, shown) in self.shown_runs(request.names, gathered.store())?.iter().enumerate() {
            let page = shown.view.as_ref().map(|view| RunPage::new(gathered.store(), view, &omitted, number));
            write_run(&mut text, shown, page.as_ref());
        }
        Ok(text)
    }
}

fn write_run(text: &mut String, shown: &ShownRun, page: Option<&RunPage<'_>>) {
    let report = &shown.report;
    let mark = match (report.intact, report.is_partial()) {
        (true, false) => "✓",
        (true, true) => "!",
        (false, _) => "✗",
    };
    let partial = if report.is_partial() { " PARTIAL" } else { "" };
    let mut add = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    add(&format!("## {mark} {}{partial}: {}\n", report.headline, code(shown.id.as_str())));
    if let Some(page) = page {
        add(&format!("{}, {} entries.\n", page.outcome(), page.view.links.len()));
        items(page).iter().for_each(|line| add(line));
        add(&format!(
            "\n```mermaid\n{}\n```\n",
            mermaid::write(&Outline::of_run(page.view), Some(&page.view.state)).trim_end()
        ));
    } else {
        add("The entries are not a legal history, so no items are shown.\n");
    }
    add("| check | result |\n|---|---|");
    for row in report.rows.iter() {
        let mark = match row.state {
            State::Ok => "✓",
            State::Failed => "✗",
            State::NotApplicable => "─",
        };
        add(&format!("| {mark} {} | {} |", row.name, code(&row.detail)));
    }
    let keys: Vec<String> = report.signers.iter().map(|signer| code(&signer.fingerprint)).collect();
    add(&format!("\nSigned by {}. Verify it yourself, with a key that you know:\n", keys.join(", ")));
    add(&format!("```sh\ngit handoff fetch\ngit handoff verify --signers FILE {}\n```\n", shown.id));
}

/// Returns the table of items, the ones that need attention first.
fn items(page: &RunPage<'_>) -> Vec<String> {
    let mut order: Vec<ItemIndex> = page.view.state.graph.items().indices().collect();
    // The sort is stable.
    order.sort_by_key(|at| page.status(*at) == "done");
    let mut lines = vec!["| item | status | attempts | took | note |".to_owned(), "|---|---|---|---|---|".to_owned()];
    for at in order.iter().take(MOST_ROWS) {
        let (state, status) = (&page.view.state.items[*at], page.status(*at));
        let note = state.reason.as_deref().or(state.summary.as_deref()).unwrap_or_default();
        let note = if note.is_empty() { String::new() } else { code(&printable::cut_to(words::first_line(note), 200)) };
        let (id, took) = (code(page.id(*at)), page.timing.took(*at));
        lines.push(format!("| {} {id} | {status} | {} | {took} | {note} |", item::mark(&status), state.attempts));
    }
    if let Some(more) = order.len().checked_sub(MOST_ROWS + 1) {
        lines.push(format!("\n{} more items are not listed.", more + 1));
    }
    lines
}

/// Returns a code span that shows exactly the text, also in a table. Mentions and links in it have
/// no effect.
fn code(text: &str) -> String {
    let text = printable::line(text).replace('|', "\\|");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if longest > 0 { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}
