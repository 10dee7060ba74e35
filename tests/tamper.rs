//! Tampering, exhaustively: everything that can be done to a small sealed run that has every kind of entry, and what says so.
//!
//! What was tried and which rows fail is written into `docs/tamper.md`, and compared with it:
//! `HANDOFF_UPDATE_DOCS=1 cargo nextest run tamper` writes what is found now.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod anchored;
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
pub(crate) mod run;
mod stories;
pub(crate) mod table;
mod threads;
