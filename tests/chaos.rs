//! Whatever may happen, at random: commands that are killed at any moment, stored state of which
//! anything was changed, and an hour of everything at once.
//!
//! All of it is short in CI. [`SEED`] gives another sequence, [`KILLS`] and [`MUTATIONS`] the
//! number of rounds, [`SOAK`] the seconds that everything at once goes on for. A round follows from
//! the seed and its number alone, and begins from the same state: `17..18` does one again. What
//! fails says its seed and round, and leaves its folder behind.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "what was done is told, and what could not be done here")]

pub(crate) mod dice;
mod kills;
mod losses;
mod mutations;
mod scene;
mod soak;

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The seed of the sequence; 0 by default.
const SEED: &str = "HANDOFF_CHAOS_SEED";

/// How many times commands are killed in each kind of repository: a number, or a range of rounds.
const KILLS: &str = "HANDOFF_KILL_ROUNDS";

/// How many times something that is stored is changed in each kind of repository: a number, or a
/// range of rounds.
const MUTATIONS: &str = "HANDOFF_MUTATION_ROUNDS";

/// For how many seconds everything happens at once.
const SOAK: &str = "HANDOFF_SOAK_SECONDS";

/// Returns what an environment variable says, as a number.
fn number(name: &str, default: u64) -> u64 {
    let variable = std::env::var(name).ok();
    variable.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// Returns the rounds that an environment variable asks for.
fn rounds(name: &str, default: u64) -> Range<u64> {
    let value = std::env::var(name).unwrap_or_else(|_| default.to_string());
    let range = value.split_once("..").unwrap_or(("0", &value));
    let end = |text: &str| text.parse().unwrap_or_else(|_| panic!("{name} is neither a number nor a range: {value}"));
    end(range.0)..end(range.1)
}

/// Returns the distance between two places where a command is killed: `sample`, or 1, each place,
/// if [`KILLS`] is set.
pub(crate) fn kill_step(sample: usize) -> usize {
    if std::env::var_os(KILLS).is_some() { 1 } else { sample }
}

/// Returns the files and folders that a process leaves in a git directory only when it is killed.
fn leftovers(git: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![git.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            // Locks of the operating system, which end with their process.
            if path.ends_with("handoff/locks") {
                continue;
            }
            let begins = ["tmp_", ".tmp", "handoff-push-"].iter().any(|beginning| name.starts_with(beginning));
            if begins || name == "packed-refs.new" || [".lock", ".keep"].iter().any(|ending| name.ends_with(ending)) {
                found.push(path.clone());
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            }
        }
    }
    found
}

/// Makes what killed processes left in a git directory look as if an hour had passed.
fn let_an_hour_pass(git: &Path) {
    let then = SystemTime::now() - Duration::from_secs(61 * 60);
    for path in leftovers(git) {
        // It may be gone by now.
        let _ = fs::File::open(path).and_then(|file| file.set_modified(then));
    }
}
