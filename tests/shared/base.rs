//! Shared runs whose base is not on the remote.

use serde_json::{Value, json};

use crate::common::repo::item;
use crate::common::report::find_line;

use super::Hub;

#[test]
fn unpushed_base_is_reported_on_both_sides() {
    let hub = Hub::new(&json!({ "id": "r", "items": [item("a", "true")] }));
    let env = &hub.repo.env;
    // With a pushed base there is no message.
    assert!(!env.handoff(["push", "origin", "r"]).exit(0).stderr.contains("is based"));
    env.git(["commit", "--quiet", "--allow-empty", "--message", "Not pushed"]).success();
    let base = env.git(["rev-parse", "HEAD"]).success().trim().to_owned();
    env.write("late.json", &json!({ "id": "late", "items": [item("a", "true")] }).to_string());
    env.handoff(["submit", "../late.json"]).success();
    let pushed = env.handoff(["push", "origin", "late"]).exit(0);
    assert_eq!(
        find_line(&pushed.stderr, "warning: "),
        format!(
            "warning: the commit {base}, on which the run late is based, is on no known branch of origin: without it, \
             no other repository can run its items"
        )
    );
    let hint = |remote: &str| {
        format!("git push {remote} {base}:refs/heads/NAME   # in the repository where the run was submitted")
    };
    assert_eq!(find_line(&pushed.stderr, "hint: "), format!("hint: {}", hint("origin")));
    hub.clone("other", &[]);
    let refused = env.handoff_in("other", ["--json", "run", "--via", "origin", "late"]).exit(1);
    let failure: Value = serde_json::from_str(&refused.stderr).unwrap();
    assert_eq!(failure["code"], "no-base", "{failure}");
    assert_eq!(
        failure["message"],
        format!("origin does not have the commit {base}, on which the run \"late\" is based")
    );
    assert_eq!(failure["hint"], hint("origin"));
    // The hint is the way out.
    env.git(["push", "--quiet", "origin", &format!("{base}:refs/heads/late")]).success();
    let again = env.handoff_in("other", ["--json", "run", "--via", "origin", "late"]);
    assert!(!again.stderr.contains("no-base"), "{again}");
}
