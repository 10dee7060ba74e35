//! Plain data: names, plan, entries, state. Nothing here touches the world.

pub mod catalog;
pub mod credential;
pub mod descriptor;
pub mod digest;
pub mod document;
pub mod entry;
pub mod event;
pub mod format;
pub mod graph;
pub mod illegal;
pub mod item_state;
pub mod json;
pub mod log_event;
pub mod log_name;
pub mod manifest;
pub mod name;
pub mod packet;
pub mod plan;
pub mod problem;
pub mod proof;
pub mod quote;
pub(crate) mod read;
pub mod schema;
pub mod state;
pub mod thread;
pub mod time;
