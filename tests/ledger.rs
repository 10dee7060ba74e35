//! One chain and what is proved of it.

mod merkle;
mod program;
mod prove;
