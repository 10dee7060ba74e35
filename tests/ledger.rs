//! One chain and what is proved of it.

mod program;
mod prove;
