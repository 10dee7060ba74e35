//! Drives a run: a pure function decides what comes next, and one driver does and records it.

pub mod command;
pub mod decide;
pub mod drive;
pub mod event;
pub mod execute;
pub mod machine;
pub mod operations;
pub mod recheck;
pub mod run_lock;

pub(crate) mod recover;

mod access;
mod agent_folders;
mod attempt;
mod beat;
mod drive_result;
mod end_entries;
mod finished_attempt;
mod identity;
mod locks;
mod login;
mod lone_driver;
mod mise;
mod needs;
pub mod pipeline;
mod prepare;
mod product_capture;
pub(crate) mod programs;
pub mod record;
mod renewal;
mod report;
mod secrets;
mod shell_line;
mod shortage;
mod silence;
mod slots;
mod start;
mod status;
mod transcript_push;
mod transcript_refs;
