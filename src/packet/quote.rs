//! Other people's words made safe to print.

use crate::model::credential;
use crate::model::printable::written_out;

/// The longest quotation, in characters.
const LONGEST: usize = 120;

/// Returns a text in quotation marks: cut, its credentials taken out, nothing in it that steers a terminal or hides.
pub fn quoted(text: &str) -> String {
    // Cut first, generously: looking for credentials in all of a long text would cost more than what is shown is worth.
    let near: String = text.chars().take(4 * LONGEST).collect();
    let clean = credential::without(&near);
    let mut shown: String = clean.chars().take(LONGEST).collect();
    if clean.chars().count() > LONGEST || near.len() < text.len() {
        shown.push('…');
    }
    let marked = shown.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", written_out(&marked))
}
