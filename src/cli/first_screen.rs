//! The screen after `record` and `run`: the verdict about the work, its changes, its goal, its
//! agent, and the proof in one line.

use git_handoff::model::entry::Exit;
use git_handoff::model::name::ItemId;
use git_handoff::model::outcomes::VERIFY_FAILED;
use git_handoff::model::printable::{self, Color};
use git_handoff::model::quote::quoted;
use git_handoff::repository::Repository;
use git_handoff::run::query::View;
use git_handoff::run::query::work::{Checked, Explained, ItemWork, Verdict, Work};
use git_handoff::verify::{Report, SignerSeen};

use super::table::{self, Cell};
use super::{Output, usage};

/// The width of the screen.
const WIDTH: usize = 80;

/// The most items whose failure is shown.
const MOST: usize = 5;

/// Prints the verdict about the work, its changes, and its goal and agents.
///
/// Below a table of items, failed ones are not listed again.
pub(crate) fn print_work(view: &View, work: &Work, below_table: bool, output: &mut Output) {
    let mut lines = verdicts(work, below_table);
    if !below_table {
        lines.extend(notes(view, work));
    }
    lines.extend(changes(work));
    lines.extend(work.goal.as_ref().map(|goal| format!("goal: {}", first_line(goal)).into()));
    lines.extend(agents(work));
    lines.iter().for_each(|line| print_line(line, output));
}

/// Prints the result of `verify` as one line with the command that repeats it.
pub(crate) fn print_proof(view: &View, report: Option<&Report>, repository: &Repository, output: &mut Output) {
    let count = view.links.len();
    let entries = format!("{count} {}", if count == 1 { "entry" } else { "entries" });
    let verify = format!("git handoff verify {}", quoted(view.run.as_str()));
    let line = Cell::from("proof ");
    let line = match report {
        Some(report) if report.intact => {
            let whose = whose(&report.signers, repository);
            let shade = if report.is_trusted() { Color::Green } else { Color::Yellow };
            line.and("✓", Some(shade)).and(format!(" intact, {entries}, {whose}: {verify}"), None)
        }
        Some(report) => line.and(format!("✗ {}", report.headline), Some(Color::Red)).and(format!(": {verify}"), None),
        None if view.state.sealed => {
            line.and("─", Some(Color::Dim)).and(format!(" not verified yet, {entries}: {verify}"), None)
        }
        None => line.and("─", Some(Color::Dim)).and(format!(" not sealed, {entries}"), None),
    };
    // The command is to be pasted, so it is never cut.
    output.line(line.painted(output.color));
}

/// Prints a line, cut to the width of the screen.
fn print_line(line: &Cell, output: &mut Output) {
    output.line(table::clip(line, WIDTH).painted(output.color));
}

/// Returns the lines about the checks of the work.
fn verdicts(work: &Work, below_table: bool) -> Vec<Cell> {
    if let [item] = work.items.as_slice() {
        let is_listed = below_table && matches!(item.verdict, Verdict::Failed { .. });
        return if is_listed { Vec::new() } else { item_lines(item, None, work.changed_nothing()) };
    }
    let failed = work.items.iter().filter(|item| match item.verdict {
        Verdict::CheckFailed(_) | Verdict::Red(_) => true,
        Verdict::Failed { .. } => !below_table,
        _ => false,
    });
    let mut lines: Vec<Cell> =
        failed.clone().take(MOST).flat_map(|item| item_lines(item, Some(&item.id), false)).collect();
    if let more @ 1.. = failed.count().saturating_sub(MOST) {
        lines.push(format!("  … and {more} more").into());
    }
    let passed: Vec<&Checked> = work.items.iter().filter_map(|item| passed(&item.verdict)).collect();
    let unchecked = work.items.iter().filter(|item| item.verdict == Verdict::Unchecked).count();
    let claimed = work.items.iter().filter(|item| item.verdict == Verdict::Claimed).count();
    if let [checked] = passed.as_slice() {
        lines.push(passed_line(checked, None));
    } else if !passed.is_empty() {
        lines.push(Cell::default().and(format!("✓ {} checks passed", passed.len()), Some(Color::Green)));
    }
    let has_other = !lines.is_empty();
    if unchecked > 0 {
        let of = if has_other { format!(" for {}", table::many(unchecked, "item")) } else { String::new() };
        lines.push(open(&format!("no check{of}")));
    }
    if claimed > 0 {
        lines.push(open(&format!("{} claimed, made before and not checked", table::many(claimed, "item"))));
    }
    lines
}

fn passed(verdict: &Verdict) -> Option<&Checked> {
    match verdict {
        Verdict::Passed(checked) => Some(checked),
        _ => None,
    }
}

/// Returns the lines about one item, named if there are others.
fn item_lines(item: &ItemWork, id: Option<&ItemId>, is_empty: bool) -> Vec<Cell> {
    let name = id.map(|id| format!("{id}: ")).unwrap_or_default();
    let mut lines = match &item.verdict {
        Verdict::Passed(checked) => vec![passed_line(checked, id.map(ItemId::as_str))],
        Verdict::CheckFailed(checked) => vec![red_cell(format!("! {name}check failed: {}", why_failed(checked, item)))],
        Verdict::Red(reason) => vec![red_cell(format!("! {name}{reason}"))],
        Verdict::Failed { reason, exit } => vec![red_cell(format!("✗ {name}{}", why_ended(reason, *exit, item)))],
        Verdict::Claimed => vec![open(&format!("{name}claimed, made before and not checked"))],
        Verdict::Unchecked if is_empty => Vec::new(),
        Verdict::Unchecked => vec![open(&format!("{name}no check"))],
        Verdict::Undone => Vec::new(),
    };
    // The output of the command itself was on the screen.
    let is_new =
        |it: &&Explained| matches!((&item.verdict, it), (Verdict::CheckFailed(_), _) | (_, Explained::Tests(_)));
    lines.extend(item.explained.iter().filter(is_new).flat_map(explained));
    lines
}

fn red_cell(words: String) -> Cell {
    Cell::default().and(words, Some(Color::Red))
}

fn passed_line(checked: &Checked, id: Option<&str>) -> Cell {
    let name = id.map(|id| format!("{id}: ")).unwrap_or_default();
    let Some(line) = &checked.line else {
        let by = if checked.is_own_word { ", by the item's own word" } else { "" };
        return Cell::default().and(format!("✓ {name}check passed{by}"), Some(Color::Green));
    };
    let took = checked.took.map(|took| format!(" ({})", duration(took))).unwrap_or_default();
    let start = format!("✓ {name}check passed: ");
    let left = WIDTH.saturating_sub(console::measure_text_width(&start) + took.len());
    let line = table::wrap::cut(&printable::line(&first_line(line)), left);
    Cell::default().and(start, Some(Color::Green)).and(format!("{line}{took}"), None)
}

/// Returns the number of failed tests, else the command line with its exit.
fn why_failed(checked: &Checked, item: &ItemWork) -> String {
    if let Some(Explained::Tests(failure)) = &item.explained {
        return failure.to_string();
    }
    let Some(line) = &checked.line else {
        return if checked.is_own_word { "by the item's own word" } else { "as recorded" }.to_owned();
    };
    let exit = checked.exit.map_or_else(|| "not run".to_owned(), exit_words);
    format!("{exit}: {}", first_line(line))
}

/// Returns the recorded reason of a failure, with the number of failed tests.
fn why_ended(reason: &str, exit: Option<Exit>, item: &ItemWork) -> String {
    // A check that fails the item ends its reason with the output.
    let reason = reason.strip_prefix(VERIFY_FAILED).map_or(reason, |_| "check failed");
    match (&item.explained, exit) {
        (Some(Explained::Tests(failure)), _) => format!("failed: {failure}: {}", first_line(reason)),
        _ => format!("failed: {}", first_line(reason)),
    }
}

/// Returns the lines that explain a failure, indented.
fn explained(explained: &Explained) -> Vec<Cell> {
    match explained {
        Explained::Tests(failure) => failure.assertion.iter().map(|line| quoted_line(line)).collect(),
        Explained::Tail(lines) => {
            let head = Cell::default().and("  the end of its output:", Some(Color::Dim));
            std::iter::once(head).chain(lines.iter().map(|line| quoted_line(line))).collect()
        }
    }
}

/// Returns a line of output, indented.
fn quoted_line(line: &str) -> Cell {
    Cell::from(format!("    {}", printable::line(line).replace('\t', "  ")))
}

/// Returns further remarks on the verdict: changes to protected files that the check judged or that
/// are allowed, checks without protected files, and checks in worktrees of workers.
fn notes(view: &View, work: &Work) -> Vec<Cell> {
    let items = view.state.items.iter().filter(|item| !item.red && !item.judged);
    let paths: Vec<&str> = items.flat_map(|item| item.protected.iter().map(|change| change.path.as_str())).collect();
    let allowed = (!paths.is_empty())
        .then(|| format!("! {} changed: {}", table::many(paths.len(), "protected file"), paths.join(", ")));
    let judged = view.state.judged_remarks();
    allowed
        .into_iter()
        .chain(judged)
        .chain(work.check_remarks.clone())
        .map(|words| Cell::default().and(words, Some(Color::Yellow)))
        .collect()
}

/// Returns the line about changed files, cut by whole paths.
fn changes(work: &Work) -> Option<Cell> {
    if work.items.iter().all(|item| matches!(item.verdict, Verdict::Undone | Verdict::Failed { .. })) {
        return None;
    }
    if work.changed_nothing() {
        return Some(open("nothing changed"));
    }
    let outputs = if work.outputs > 0 { table::many(work.outputs, "output") } else { String::new() };
    if work.files.is_empty() && work.is_counted {
        return Some(outputs.into());
    }
    let (added, removed) = work.files.iter().fold((0, 0), |(a, r), file| (a + file.added, r + file.removed));
    let more = if work.is_counted { "" } else { " and a large patch" };
    let mut line = format!("{} changed{more}, +{added} −{removed}", table::many(work.files.len(), "file"));
    let end = if outputs.is_empty() { outputs } else { format!("; {outputs}") };
    let paths: Vec<String> = work.files.iter().map(|file| printable::line(&file.path)).collect();
    for (at, path) in paths.iter().enumerate() {
        let longer = format!("{line}{}{path}", if at == 0 { ": " } else { ", " });
        let room = end.len() + if at + 1 < paths.len() { 3 } else { 0 };
        if console::measure_text_width(&longer) + room > WIDTH {
            line += if at == 0 { "" } else { ", …" };
            break;
        }
        line = longer;
    }
    Some((line + &end).into())
}

/// Returns the line about the agents, each once, with what the only one says about itself.
fn agents(work: &Work) -> Option<Cell> {
    let mut names: Vec<&str> = work.agents.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let [(name, claims)] = work.agents.as_slice() else {
        return (!names.is_empty()).then(|| format!("agents: {}", names.join(", ")).into());
    };
    let model = claims.as_ref().and_then(|claims| claims.model.clone());
    let used = claims.as_ref().and_then(|claims| claims.usage.as_ref()).map(usage::in_short);
    let parts = [Some(name.clone()), model, used].into_iter().flatten().filter(|part| !part.is_empty());
    Some(format!("agent: {}", parts.collect::<Vec<_>>().join(", ")).into())
}

/// Returns whose keys signed.
fn whose(signers: &[SignerSeen], repository: &Repository) -> String {
    let own = repository.own_fingerprint();
    let one = |signer: &SignerSeen| match &signer.principal {
        _ if Some(&signer.fingerprint) == own.as_ref() => "your key".to_owned(),
        Some(principal) => format!("key of {principal}"),
        None if signer.trusted => "a known key".to_owned(),
        None => "an unknown key".to_owned(),
    };
    match signers {
        [signer] => one(signer),
        [] => "no key".to_owned(),
        signers if signers.iter().all(|signer| signer.trusted) => format!("{} known keys", signers.len()),
        signers => format!("{} keys, not all known", signers.len()),
    }
}

/// Returns a line about something that was not checked or not done.
fn open(words: &str) -> Cell {
    Cell::default().and(format!("─ {words}"), Some(Color::Dim))
}

fn first_line(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default().trim().to_owned();
    if lines.next().is_some() { first + " …" } else { first }
}

fn exit_words(exit: Exit) -> String {
    match (exit.code, exit.signal) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit".to_owned(),
    }
}

/// Formats milliseconds: `51 ms`, `1.2 s`, `3 min 20 s`.
fn duration(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        _ => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1000),
    }
}
