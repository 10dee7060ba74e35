//! Safe quotations of foreign text.

use crate::model::credential;
use crate::model::printable::written_out;

/// The maximum length of a quotation, in characters.
const LONGEST: usize = 120;

/// Quotes a text: truncated, printable, and without credentials.
pub fn quoted(text: &str) -> String {
    // Truncated generously first, because searching a long text for credentials is expensive.
    let near: String = text.chars().take(4 * LONGEST).collect();
    let clean = credential::redact(&near);
    let mut excerpt: String = clean.chars().take(LONGEST).collect();
    if clean.chars().count() > LONGEST || near.len() < text.len() {
        excerpt.push('…');
    }
    let marked = excerpt.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", written_out(&marked))
}
