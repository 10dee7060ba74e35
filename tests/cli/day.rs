//! The day of two developers that an example plays, screen by screen.

use std::path::Path;
use std::process::Command;

use regex::Regex;

use crate::common::{Environment, assert_output, examples, program_path};

#[test]
fn every_screen_of_the_day_of_two_developers() {
    let env = Environment::empty();
    let mut command: Command = env.command("sh", ".");
    command.arg("-c").arg(format!("{}/two-developers/run.sh 2>&1", examples().display()));
    command.env("HANDOFF_BIN", program_path()).env("HANDOFF_ACTOR", "human:ada").env("TMPDIR", env.path());
    let mut output = env.ended(command);
    // New keys change the hash of everything signed.
    for (what, instead) in [
        (r"\$TEST/tmp\.[A-Za-z0-9]+", "$$DAY"),
        (r"SHA256:[A-Za-z0-9+/]{43}\.[0-9a-f]{12}", "SHA256:<key>.<entry>"),
        (r"SHA256:[A-Za-z0-9+/]{43}", "SHA256:<key>"),
        (r"SHA256:[A-Za-z0-9+/]{3}…", "SHA256:<key>"),
        (r"merkle [0-9a-f]{8}", "merkle <root>"),
        (r"sha256:[0-9a-f]{64} over", "<root> over"),
        (r"\b[0-9a-f]{40}\b", "<commit>"),
        (r"(base|✓) [0-9a-f]{7,12} ", "$1 <commit> "),
        (r"plan sha256:[0-9a-f]{4}", "plan sha256:<plan>"),
        (r"/\S*/sed  sha256:[0-9a-f]{64}  [0-9.]+ [KM]iB", "/…/sed  sha256:<program>  <size>"),
    ] {
        output.stdout = Regex::new(what).unwrap().replace_all(&output.stdout, instead).into_owned();
    }
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).display().to_string();
    output.stdout = output.stdout.replace(&checkout, "$CHECKOUT");
    assert_output!("day_of_two_developers", output);
}
