//! The `git-handoff` command.
fn main() {}
