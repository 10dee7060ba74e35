//! Verifies all that is in a bundle, by the keys of an allowed-signers file: `embed runs.bundle
//! signers`.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use git_handoff::model::printable;
use git_handoff::verify::{AskAnchors, Bundle, Logs, Options, Signers, TimeZone};

/// A larger bundle is not opened, nor one that takes more when it is unpacked.
const LARGEST: u64 = 1 << 30;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [bundle, signers] = arguments.as_slice() else { return Err("usage: embed <bundle> <signers>".into()) };
    let signers = Signers::parse(&fs::read_to_string(signers)?, &TimeZone::UTC)?;
    // Strict: a signature by any other key fails.
    let options = Options { signers: Some(signers), strict_signers: true, ..Options::default() };
    let bundle = Bundle::open(Path::new(bundle), LARGEST)?;
    let mut all_intact = true;
    for report in bundle.verify(&[], Logs::default(), AskAnchors::none(), &options)? {
        let report = report?;
        all_intact &= report.is_intact();
        say(&format!("{}: {}", report.name(), if report.is_intact() { "intact" } else { "NOT INTACT" }));
        for row in report.rows() {
            say(&format!("{} {:<10} {}", row.state.mark(), row.name, row.detail));
        }
    }
    Ok(ExitCode::from(if all_intact { 0 } else { 3 }))
}

/// Prints a line. What others wrote stands in it, and must not steer a terminal.
fn say(text: &str) {
    println!("{}", printable::line(text));
}
