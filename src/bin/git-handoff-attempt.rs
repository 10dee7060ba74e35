//! The supervisor of an attempt: a small executable that starts faster than `git-handoff` itself.
//! It also hands the commands of people on to that one.

use std::io::{self, Write as _};
use std::process::ExitCode;

use git_handoff::process::attendant;

const USAGE: &str = "run SPEC.json | spec RUN ITEM SPEC.json (`git handoff run` needs neither)";

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(ended) = attendant::serve(std::env::args_os().skip(1)) {
        return ended;
    }
    let command = std::env::args_os().nth(1).unwrap_or_default();
    if command == "--version" {
        return match writeln!(io::stdout(), "{}", attendant::VERSION) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    if attendant::COMMANDS.iter().any(|name| command == *name) {
        let program = std::env::current_exe();
        let error = program.map_or_else(|error| error, |own| attendant::execute(&own, std::env::args_os().skip(1)));
        let _ = writeln!(io::stderr(), "error: cannot start `git-handoff` beside {}: {error}", attendant::NAME);
        return ExitCode::FAILURE;
    }
    let _ = writeln!(io::stderr(), "usage: {} {USAGE}", attendant::NAME);
    ExitCode::from(2)
}
