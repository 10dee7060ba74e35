//! Markdown for a comment or a job summary.

use crate::common::{assert_output, finished};
use crate::report::pages::mixed;

#[test]
fn the_verdict_comes_first_and_everything_is_quoted() {
    let ground = mixed();
    assert_output!("report_markdown", ground.env.handoff(["report", "--markdown", "mixed"]));
}

#[test]
fn threads_have_a_section_of_their_own() {
    let env = finished();
    env.write("state", "one");
    env.handoff(["checkpoint", "login work", "--state", "../state"]).success();
    assert_output!("report_markdown_thread", env.handoff(["report", "--markdown", "login work"]));
}
