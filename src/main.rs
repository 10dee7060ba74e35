//! The `git-handoff` command.

mod cli;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(not(feature = "mcp"))]
#[path = "mcp/left_out.rs"]
mod mcp;
mod output;

fn main() -> std::process::ExitCode {
    cli::main()
}
