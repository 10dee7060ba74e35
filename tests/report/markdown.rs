//! Markdown for a comment or a job summary.

use crate::common::assert_output;
use crate::report::pages::mixed;

#[test]
fn the_verdict_comes_first_and_everything_is_quoted() {
    let ground = mixed();
    assert_output!("report_markdown", ground.env.handoff(["report", "--markdown", "mixed"]));
}
