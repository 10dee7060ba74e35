//! The `git-handoff` command.

mod cli;
mod mcp;

fn main() -> std::process::ExitCode {
    cli::main()
}
