//! Runs the commands of an attempt: starts them confined, limits them, records their output, and
//! kills every process that they leave.
//!
//! [`agent`] runs one command to its end below a [`supervisor`], [`confine`] applies the inner
//! layers of the sandbox, [`survivors`] kills processes that a command left, and [`transcript`]
//! writes the redacted output. [`live`] shows the latest output, and [`attendant`] starts our
//! helper processes.

pub mod agent;
pub mod attendant;
pub mod confine;
pub mod disk;
mod domain;
pub mod lease;
pub mod live;
pub mod redact;
pub mod supervisor;
pub mod survivors;
pub mod transcript;
