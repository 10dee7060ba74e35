//! Verification: honest runs pass, and each way of tampering is found by the row that should find
//! it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod archives;
mod bounds;
pub(crate) mod bundle_json;
mod bundle_json_fields;
mod by_patch;
mod dates;
mod documents;
pub(crate) mod eddsa;
mod expected;
mod false_alarms;
mod letter;
mod objects;
mod recheck;
mod reproduce;
mod rows;
mod signers;
mod story;
mod trust;
