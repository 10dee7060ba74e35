//! Death at any moment: the driver is killed again and again, or stops between two writes; what is
//! done stays done, nothing is done twice, and the run ends whole.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod killed;
mod pruned;
mod windows;
