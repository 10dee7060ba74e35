//! The supervisor of an attempt: a small executable that starts faster than `git-handoff` itself.

use std::io::{self, Write as _};
use std::process::ExitCode;

use git_handoff::process::attendant;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(ended) = attendant::serve(std::env::args_os().skip(1)) {
        return ended;
    }
    if std::env::args_os().nth(1).is_some_and(|word| word == "--version") {
        return match writeln!(io::stdout(), "{}", attendant::VERSION) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let _ = writeln!(io::stderr(), "{} is started by `git handoff run`, and does nothing by itself", attendant::NAME);
    ExitCode::from(2)
}
