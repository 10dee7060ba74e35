//! Tampering, exhaustively: everything that can be done to a small sealed run that has every kind
//! of entry, and what says so.
//!
//! The rows that fail for each forgery are snapshots.
//!
//! Long checks use samples; with [`ALL`] set they are complete, as the snapshots are:
//! `HANDOFF_TAMPER_ALL=64 INSTA_UPDATE=always cargo test tamper` writes them again.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod anchored;
mod both;
mod bytes;
mod consumers;
pub(crate) mod edits;
pub(crate) mod fetched;
mod forger;
mod grown;
mod places;
mod promises;
mod proof_asked;
mod proof_files;
mod proofs;
mod random;
pub(crate) mod run;
mod stories;
pub(crate) mod table;

/// Asks for all of what is done by samples otherwise, with a whole report after so many flips of a
/// byte: a number, 1 for each of them.
const ALL: &str = "HANDOFF_TAMPER_ALL";

/// Returns true if all of it is to be done.
fn everything() -> bool {
    std::env::var_os(ALL).is_some()
}

/// Returns after how many flips of a byte to make a whole report.
fn flips() -> usize {
    let variable = std::env::var(ALL).ok();
    let number = variable.map_or(128, |text| text.parse().unwrap_or_else(|_| panic!("{ALL} is not a number: {text}")));
    assert!(number > 0, "{ALL} is 0");
    number
}
