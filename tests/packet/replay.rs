//! The rules of replay.

use serde_json::{Value, json};

use super::{check_bytes, row, sample, tells_apart, terms};

fn actions(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| json!({ "next_action": text })).collect()
}

fn objectives(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| json!({ "objective": text })).collect()
}

/// Executable instructions.
const CONCRETE: &[&str] = &[
    "Review migration script with DBA before Saturday",
    "Continue with step 4 of docs/runbook.md",
    "Finish `cargo nextest run`, two tests were still red",
    "Keep working on PR #812 until the flaky retry test is green",
    "Write integration tests for the checkout flow",
    "Fix the off-by-one in parse_header()",
    "Run the backfill on staging",
    "Ask Maria for the signing certificate",
    "Complete the payment webhook retry logic in src/billing/webhook.rs",
    "Deploy to production",
    "Rename the column \"user_nm\" to \"user_name\"",
    "Update CHANGELOG.md and open a pull request",
    "Profile the importer with 10,000 rows",
    "Set --max-age to 24h in the cron job",
    "Start implementing the OAuth callback in auth/callback.ts",
    "Merge feature/login-v2",
    "Please review the retry budget with the on-call engineer",
    "Continue. Then run ./scripts/smoke.sh against staging",
    "与DBA一起审查迁移脚本",
];

#[test]
fn r1_vague_verb() {
    let vague = actions(&[
        "finish the feature work",
        "continue",
        "Continue working on the feature",
        "keep going",
        "do the rest",
        "Proceed with the next steps",
        "Keep working on the migration",
        "Wrap things up",
        "Finish it up and then continue with the rest",
        "FINISH THE FEATURE WORK",
        "Finish The Feature Work",
        "Look into the remaining problems",
        "work on the remaining 3 tasks",
        "Make it work",
        "Please continue where we left off",
        "Resume the work tomorrow",
        "Carry on as planned.",
        "Handle the remaining edge cases",
        "continue the work on \"the feature\"",
        "Finish the API",
    ]);
    tells_apart("R1", &vague, &actions(CONCRETE));
}

#[test]
fn r2_generic_object() {
    let vague = actions(&[
        "fix remaining issues",
        "Implement the feature",
        "Review the changes",
        "Fix bugs",
        "Test everything",
        "Fix the remaining 2 problems",
        "Start the work",
        "Update the code as needed",
    ]);
    tells_apart("R2", &vague, &actions(CONCRETE));
}

#[test]
fn r3_no_object() {
    let vague = actions(&["deploy", "Test.", "Review it", "merge", "Please debug", "Refactor", "now"]);
    tells_apart("R3", &vague, &actions(CONCRETE));
}

#[test]
fn r4_placeholder() {
    let vague = actions(&["TBD", "n/a", "none", "See above.", "...", "<todo>", "As discussed", "?"]);
    tells_apart("R4", &vague, &actions(CONCRETE));
}

#[test]
fn r5_no_verb() {
    let vague =
        actions(&["the rest", "Everything else", "All remaining tasks", "More of the same", "The migration", "it"]);
    tells_apart("R5", &vague, &actions(CONCRETE));
}

#[test]
fn r6_generic_objective() {
    let vague = objectives(&[
        "Continue the work",
        "Finish the project",
        "The task",
        "Complete all remaining tasks",
        "Do the feature",
    ]);
    let clear = objectives(&[
        "Migrate user database to new schema",
        "Make the importer idempotent",
        "Fix issue #4711",
        "Release 2.4",
        "Complete the checkout redesign",
        "Bring the run \"nightly-7\" to its end with all 12 of its items done",
    ]);
    tells_apart("R6", &vague, &clear);
}

fn done_and_next(cases: &[(&str, &str)]) -> Vec<Value> {
    cases.iter().map(|(done, next)| json!({ "completed": [done], "next_action": next })).collect()
}

#[test]
fn c1_completed_to_be_started() {
    let wrong = done_and_next(&[
        ("Implemented the login page", "Start implementing the login page"),
        ("audit existing schema", "Audit the existing schema"),
        ("Schema audit completed", "Begin the schema audit"),
        ("login page", "Build the login page"),
        ("Drafted migration script", "Draft the migration script, with the DBA"),
        ("wrote tests for src/cart.rs", "Write tests for src/cart.rs"),
        ("Deployed the importer to staging", "Deploy importer to staging"),
        ("Created `users_v2` table", "create `users_v2` table"),
        ("OAuth callback implementation is done", "Implement OAuth callback"),
        ("Updated CHANGELOG.md", "Tag v2.4.0 and update CHANGELOG.md"),
    ]);
    let right = done_and_next(&[
        ("draft migration script", "Review migration script with DBA before Saturday"),
        ("audit existing schema", "Write tests for the schema audit"),
        ("Run migration on staging", "Run migration on production"),
        ("Fixed bug #12 in the parser", "Fix bug #14 in the parser"),
        ("Implement the login page", "Add tests for the login page"),
        ("Started the login page", "Implement the login page, beginning with LoginForm.tsx"),
        ("Ran `cargo bench`", "Re-run `cargo bench` on the release build"),
        ("Design the login page", "Implement the login page"),
        ("Add endpoint for users", "Add endpoint for orders"),
        ("Write the docs", "Review tests and docs of the importer"),
        ("Mostly implemented the export dialog", "Implement the export dialog's error states in ExportDialog.vue"),
        ("none", "Draft the migration script"),
    ]);
    tells_apart("C1", &wrong, &right);
}

#[test]
fn c2_completed_still_unresolved() {
    let cases = |cases: &[(&str, &str)]| -> Vec<Value> {
        cases.iter().map(|(done, open)| json!({ "completed": ["audit schema", done], "unresolved": [open] })).collect()
    };
    let wrong = cases(&[
        ("confirm rollback strategy with DBA", "confirm rollback strategy with DBA"),
        ("Confirmed the rollback strategy", "rollback strategy not confirmed"),
        ("Implemented login page", "login page implementation"),
        ("API keys rotated", "rotate API keys"),
        ("Validation of the import file", "validate import file"),
        ("deployed importer to staging", "Deployment of importer to staging"),
    ]);
    let right = cases(&[
        ("draft migration script", "confirm rollback strategy with DBA"),
        ("draft migration script", "review migration script"),
        ("login page", "login page tests are flaky on Windows"),
        ("Decide retry policy", "Retry policy for webhooks is undocumented"),
        ("Partially rotated API keys", "rotate API keys"),
        ("item \"build\"", "item \"build-2\" is failed: exit code 7"),
        ("Add endpoint for users", "Add endpoint for orders"),
        ("Fixed #12", "none"),
    ]);
    tells_apart("C2", &wrong, &right);
}

#[test]
fn o1_another_objective() {
    let judge = |task: &str| {
        let terms = git_handoff::thread::packet::Terms { objective: Some(task.into()), ..terms() };
        let report = check_bytes(sample().to_string().as_bytes(), &terms);
        let found = report.findings().any(|finding| finding.rule == "O1");
        assert_eq!(found, row(&report, "replay").state == git_handoff::thread::packet::State::Failed);
        found
    };
    for other in [
        "Write the API documentation",
        "Redesign the checkout page",
        "Upgrade the Kubernetes cluster",
        "Rotate the signing keys",
        "Reduce the image size of the importer",
        "新しい機能を追加する",
    ] {
        assert!(judge(other), "{other}");
    }
    for same in [
        "Migrate user database to new schema",
        "Migrate the users DB to the new schema",
        "migrating user databases to the new schema before the June release of the platform",
        "user database migration",
        "Schema migration of the user database",
        "MIGRATE USER DATABASE",
    ] {
        assert!(!judge(same), "{same}");
    }
}

#[test]
fn b1_blocked_by_nothing() {
    let cases = |texts: &[&str], open: &str| -> Vec<Value> {
        texts.iter().map(|text| json!({ "unresolved": [open], "next_action": text })).collect()
    };
    let blocked = [
        "Blocked until the DBA confirms the rollback",
        "Wait for the DBA, then run migrate.sql",
        "Awaiting approval of PR #12 by Maria",
        "Stuck on the TLS handshake in net/tls.go",
        "Resolve the blocker in JIRA-812 with Tom",
    ];
    let mut right = cases(&blocked, "the DBA has not confirmed the rollback");
    right.extend(cases(
        &[
            "Run migrate.sql on staging",
            "The merge is not blocked: merge PR #12",
            "There is no blocker, deploy importer v2 to staging",
        ],
        "none",
    ));
    tells_apart("B1", &cases(&blocked, "none"), &right);
}

#[test]
fn b2_none_and_more() {
    let wrong = [
        json!({ "unresolved": ["none", "confirm rollback strategy with DBA"] }),
        json!({ "risks": ["data loss if rollback untested", "N/A"] }),
        json!({ "completed": ["none", "audit existing schema"] }),
        json!({ "assumptions": ["nothing", "downtime window is approved"] }),
        json!({ "unresolved": ["None.", "rollback untested", "no DBA on call"] }),
    ];
    let right = [
        json!({ "unresolved": ["none"] }),
        json!({ "risks": ["None known."] }),
        json!({ "completed": ["none"] }),
        json!({ "assumptions": ["n/a"] }),
        json!({ "risks": ["none of the replicas was tested", "rollback untested"] }),
    ];
    tells_apart("B2", &wrong, &right);
}

#[test]
fn b3_unstated() {
    let wrong = [
        json!({ "unresolved": ["TBD"] }),
        json!({ "risks": ["?"] }),
        json!({ "unresolved": ["rollback strategy", "..."] }),
        json!({ "risks": ["unknown"] }),
        json!({ "assumptions": ["To be determined"] }),
    ];
    let right = [
        json!({ "unresolved": ["the time zone of the window is to be determined by ops"] }),
        json!({ "risks": ["unknown size of the orders table"] }),
        json!({ "unresolved": ["none"] }),
        json!({ "risks": ["the TODO in parser.rs hides a panic"] }),
        json!({ "assumptions": ["as discussed with Maria on Monday, the window holds"] }),
    ];
    tells_apart("B3", &wrong, &right);
}

#[test]
fn check_lists_unconfirmed_claims() {
    let report = super::check(&super::with(&json!({ "next_action": "finish the feature work" })));
    assert_eq!(
        row(&report, "replay").detail,
        "next_action could not be confirmed — R1 vague-verb: next_action \"finish the feature work\" begins with \"finish\", \
         which names no action, and has no concrete object"
    );
    let second_report = super::check(&super::with(&json!({ "objective": "", "unresolved": [], "next_action": "" })));
    assert_eq!(row(&second_report, "replay").detail, "objective and blocker and next_action could not be confirmed");
}
