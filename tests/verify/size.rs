//! Large runs. Slow to write, so run on demand: `cargo nextest run --release --run-ignored only large_run`.

use std::fmt::Write as _;
use std::time::Instant;

use super::lab::{Lab, assert_intact};
use super::teller::Teller;

#[test]
#[ignore = "writes twenty thousand entries"]
fn a_large_run_is_verified_in_a_second() {
    for (items, format) in [(1_000, "sha1"), (10_000, "sha1"), (5_000, "sha256")] {
        let lab = Lab::with_format(format);
        let mut plan = String::from(r#"{"id":"handoff-dag-1","items":["#);
        for at in 0..items {
            let comma = if at == 0 { "" } else { "," };
            write!(plan, r#"{comma}{{"id":"item-{at}","executor":"command","inputs":{{"command":["true"]}}}}"#)
                .unwrap();
        }
        let mut run = Teller::submit(&lab, &(plan + "]}"));
        for at in 0..items {
            let item = format!("item-{at}");
            run.fire(&item);
            run.done(&item, &[("outputs/report", b"fine\n")]);
        }
        run.seal();
        lab.finish(run);
        let timed = |what: &str| {
            let start = Instant::now();
            assert_intact(&lab.verify());
            let took = start.elapsed();
            // Shown with `--no-capture`.
            let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default().to_owned();
            assert!(took.as_secs() < 10, "{took:?}");
            std::fs::write(lab.path().join(what), format!("{items} {format} {what}: {took:?} {peak}\n")).unwrap();
            std::fs::read_to_string(lab.path().join(what)).unwrap()
        };
        let loose = timed("loose");
        lab.git(&["gc", "-q"]);
        let packed = timed("packed");
        if let Ok(file) = std::env::var("HANDOFF_TIMES") {
            let before = std::fs::read_to_string(&file).unwrap_or_default();
            std::fs::write(file, before + &loose + &packed).unwrap();
        }
    }
}
