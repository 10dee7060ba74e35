//! The answers of the program: those that combine several modules, and the schemas of all.
//!
//! An answer is described once, by its type: the doc comments are the descriptions of its fields.
//! `docs/schema` is generated from the [`list`], and the MCP server describes its tools with it.

#[cfg(feature = "schemas")]
mod forms;
#[cfg(feature = "schemas")]
mod schema;

pub mod program;

#[cfg(feature = "schemas")]
pub use forms::{list, schema};
