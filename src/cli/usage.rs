//! The table of tokens and prices.

use git_handoff::model::usage::{Dollars, Usage};
use git_handoff::run::query::list::{ItemStatus, Status};
use git_handoff::run::query::usage::{ItemUsage, RunUsage};

use super::Output;
use super::table::{self, Cell};

/// Prints the use of each item with attempts, then their sum.
pub(crate) fn print(status: &Status, output: &mut Output) {
    let rows: Vec<_> = status.items.iter().filter_map(|item| Some(row(item, item.usage.as_ref()?))).collect();
    table::print(&rows, output);
    if let Some(usage) = &status.usage {
        output.line(&format!("{}: {}", status.run, sum(usage)));
    }
}

fn row(item: &ItemStatus, usage: &ItemUsage) -> Vec<Cell> {
    let mut cells: Vec<Cell> = vec![item.id.as_str().into()];
    if usage.is_unknown() {
        cells.extend([usage.models.join(", ").into(), "unknown".into()]);
        return cells;
    }
    let sum = usage.sum;
    let input = token_words(sum.input_tokens, "in").unwrap_or_default();
    let read = match sum.cached_tokens {
        Some(cached) if cached > 0 => format!("{input} ({cached} cached)"),
        _ => input,
    };
    let price = sum.cost_usd.map_or_else(|| "no price".to_owned(), dollars);
    let unknown = match usage.unknown_attempts {
        0 => String::new(),
        1 => "1 attempt unknown".to_owned(),
        more => format!("{more} attempts unknown"),
    };
    let written = token_words(sum.output_tokens, "out").unwrap_or_default();
    cells.extend([usage.models.join(", "), read, written, price, unknown].map(Cell::from));
    cells
}

/// Formats a sum with the number of items that it lacks.
pub(crate) fn sum(usage: &RunUsage) -> String {
    if usage.items > 0 && usage.unknown_items == usage.items {
        return "unknown: no worker says what it used".to_owned();
    }
    let is_unpriced = usage.items > 0 && usage.unpriced_items + usage.unknown_items == usage.items;
    let price = if is_unpriced { "price unknown".to_owned() } else { dollars(usage.cost_usd) };
    let mut parts = vec![format!("{} tokens in", usage.input_tokens), format!("{} out", usage.output_tokens), price];
    if usage.unpriced_items > 0 {
        parts.push(format!("no price for {} of {}", usage.unpriced_items, items(usage.items)));
    }
    if usage.unknown_items > 0 {
        parts.push(format!("unknown for {} of {}", usage.unknown_items, items(usage.items)));
    }
    format!("{}, as the workers say", parts.join(", "))
}

/// Formats the use of one attempt.
pub(crate) fn in_words(usage: &Usage) -> String {
    let parts = [
        token_words(usage.input_tokens, "tokens in"),
        token_words(usage.cached_tokens.filter(|cached| *cached > 0), "of them cached"),
        token_words(usage.output_tokens, "tokens out"),
        usage.cost_usd.map(dollars),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn token_words(tokens: Option<u64>, what: &str) -> Option<String> {
    tokens.map(|tokens| format!("{tokens} {what}"))
}

/// Formats the use of one attempt without its parts: `7000 tokens in, 350 out, $0.03`.
pub(crate) fn in_short(usage: &Usage) -> String {
    let parts = [
        usage.input_tokens.map(|tokens| format!("{tokens} tokens in")),
        usage.output_tokens.map(|tokens| format!("{tokens} out")),
        usage.cost_usd.map(dollars),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Formats the number of denied actions.
pub(crate) fn denied(count: u64) -> String {
    let actions = if count == 1 { "action" } else { "actions" };
    format!("{count} {actions} for lack of a permission")
}

fn dollars(price: Dollars) -> String {
    format!("${price}")
}

fn items(count: u64) -> String {
    if count == 1 { "1 item".to_owned() } else { format!("{count} items") }
}
