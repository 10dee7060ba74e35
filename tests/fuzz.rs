//! Every parser of bytes that others hand us, fed with real samples that were mutated: it never
//! panics, it gives back the bytes that it read where the format says that there is one way to
//! write them, and it needs a bounded time and memory for it.
//!
//! The mutations follow from a seed that does not change: [`SECONDS`] gives each target more time
//! than CI has for it, [`SEED`] another sequence. What fails is shrunk, and shown as the sample and
//! the edits that made it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod mutate;
mod targets;

use std::cell::Cell;
use std::fs;
use std::time::{Duration, Instant};

use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

use crate::common::alone;

/// For how many seconds each target is fed.
const SECONDS: &str = "HANDOFF_FUZZ_SECONDS";

/// The seed of the mutations; 0 by default.
const SEED: &str = "HANDOFF_FUZZ_SEED";

/// The default number of seconds.
const DEFAULT_SECONDS: u64 = 1;

/// Longer than any input may take, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(30);

/// More memory than a process that reads such inputs one after the other may ever have taken, in
/// KiB.
const MEMORY: u64 = 1 << 20;

/// Feeds a target with mutations of samples until its time is up; the target returns whether it
/// could read the bytes.
///
/// `name` is the test's: each target has a process of its own, whose memory is that of the target.
/// The samples are made in it.
fn feed(name: &str, samples: impl FnOnce() -> Vec<Vec<u8>>, target: impl Fn(&[u8]) -> bool) {
    if !alone(name) {
        return;
    }
    let samples = samples();
    assert!(samples.iter().all(|sample| target(sample)), "a sample is not what the target reads");
    let (read, refused) = (Cell::new(0), Cell::new(0));
    let number = |label: &str| std::env::var(label).ok().map(|value| value.parse::<u64>().unwrap());
    let time = Duration::from_secs(number(SECONDS).unwrap_or(DEFAULT_SECONDS));
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number(SEED).unwrap_or_default().to_le_bytes());
    let config = Config { cases: 32, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let strategy = mutate::mutations();
    let began = Instant::now();
    while began.elapsed() < time {
        let outcome = runner.run(&strategy, |mutation| {
            let bytes = mutation.mutate(&samples);
            let before = Instant::now();
            let count = if target(&bytes) { &read } else { &refused };
            count.set(count.get() + 1);
            assert!(before.elapsed() < PATIENCE, "{} bytes took {:?}", bytes.len(), before.elapsed());
            Ok(())
        });
        match outcome {
            Ok(()) => {}
            Err(TestError::Fail(why, mutation)) => {
                let bytes = mutation.mutate(&samples);
                panic!("{why}\n{mutation:?}\n{}", bytes.escape_ascii());
            }
            Err(TestError::Abort(why)) => panic!("{why}"),
        }
    }
    // Without both, the mutations would miss the parser.
    assert!(read.get() > 0 && refused.get() > 0, "{} were read, {} refused", read.get(), refused.get());
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    assert!(peak.is_none_or(|peak: u64| peak < MEMORY), "it took {peak:?} KiB");
}
