//! Pages: what they show, that they check themselves, and that no change of them goes unseen.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod markdown;
mod modules;
mod pages;
mod script;
