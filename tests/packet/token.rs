//! The resume token.

use git_handoff::thread::packet::State;
use serde_json::{Value, json};

use super::{check, row, with};

#[test]
fn plain_markers_pass() {
    for token in [
        "handoff-mig-v2-20240610",
        "resume-order-sync-042",
        "session-resume-042",
        "bearer-refactor-20240610",
        "rotate-api-key-20240610",
        "token-bucket-limiter-7",
        "jwt-migration-042",
        "550e8400-e29b-41d4-a716-446655440000",
        "handoff_dag_1",
        "12345678",
        &"a".repeat(128),
    ] {
        let report = check(&with(&json!({ "resume_token": token })));
        let row = row(&report, "resume_token");
        assert_eq!(row.detail, format!("{token} — valid plain handoff continuity ID"));
        assert_eq!(row.state, State::Ok);
    }
}

#[test]
fn invalid_or_credential_like_tokens_fail() {
    for (token, why) in [
        ("ab!", "\"ab!\" is shorter than 8 characters"),
        ("my resume token", "\"my resume token\" has characters other than letters, digits, - and _"),
        ("handoff\n20240610", r#""handoff\n20240610" has characters other than letters, digits, - and _"#),
        (&"a".repeat(129), &format!("\"{}…\" is longer than 128 characters", "a".repeat(120))),
        ("h\u{430}ndoff-20240610", "\"h\u{430}ndoff-20240610\" has characters other than letters, digits, - and _"),
        ("Bearer abc123.def456", "credential-like (bearer-token)"),
        ("bearer-abc123def456", "credential-like (labelled-secret)"),
        ("api_key_9f8e7d6c5b4a", "credential-like (labelled-secret)"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P", "credential-like (jwt)"),
        ("eyJhbGciOiJIUzI1NiJ9", "credential-like (jwt)"),
        ("https://b.s3.amazonaws.com/k?X-Amz-Signature=abc", "credential-like (signed-url)"),
        ("sessionid=38afes7a8; Path=/", "credential-like (cookie)"),
        ("Set-Cookie: a=b", "credential-like (cookie)"),
        ("sk-proj-abcdefghijklmnopqrst12", "credential-like (api-key)"),
        ("sk_live_abcdefgh", "credential-like (api-key)"),
        ("ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8", "credential-like (github-token)"),
        ("AKIAIOSFODNN7EXAMPLE", "credential-like (aws-access-key-id)"),
        ("xoxb-123456789012-abcdefghijkl", "credential-like (slack-token)"),
        ("9fceb02d0ae598e95dc970b74767f19372d61af8", "credential-like (opaque-secret)"),
    ] {
        let report = check(&with(&json!({ "resume_token": token })));
        let row = row(&report, "resume_token");
        assert_eq!(row.state, State::Failed, "{token}");
        assert_eq!(row.detail, format!("{why} — fails continuity ID check"), "{token}");
        let step = "Generate a new plain `resume_token` continuity ID before proceeding, such as \
                    `handoff-migrate-user-database-20240610`.";
        assert!(report.recovery.iter().any(|found| found == step), "{:?}", report.recovery);
    }
}

#[test]
fn a_token_is_used_once() {
    let used: [Value; 8] = [
        json!({ "consumed": true }),
        json!({ "resume_token_consumed": "yes" }),
        json!({ "resume_token_consumed_at": "2024-06-10T15:00:00Z" }),
        json!({ "resume_token_status": "Consumed" }),
        json!({ "resume_token_status": "revoked" }),
        json!({ "token_invalidated": true }),
        json!({ "handoff_state": { "resume_token_status": "used" } }),
        json!({ "status": "invalidated" }),
    ];
    let mut details = Vec::new();
    for fields in used {
        let report = check(&with(&fields));
        let row = row(&report, "resume_token");
        assert_eq!(row.state, State::Failed, "{fields}: {}", row.detail);
        details.push(row.detail.clone());
    }
    assert_eq!(
        details,
        [
            "consumed",
            "resume_token_consumed",
            "resume_token_consumed_at",
            "resume_token_status",
            "resume_token_status",
            "token_invalidated",
            "handoff_state.resume_token_status",
            "status",
        ]
        .map(|field| format!("handoff-mig-v2-20240610 is already consumed ({field}) — fails continuity ID check"))
    );
    for fields in [
        json!({ "consumed": false }),
        json!({ "resume_token_consumed_at": null }),
        json!({ "resume_token_status": "active" }),
        json!({ "status": "in progress" }),
        json!({ "notes": "the last token was consumed" }),
    ] {
        assert_eq!(row(&check(&with(&fields)), "resume_token").state, State::Ok, "{fields}");
    }
}

#[test]
fn offer_has_another_token() {
    let fields = json!({ "resume_token": "handoff-migrate-user-database-20240610", "consumed": true });
    let report = check(&with(&fields));
    assert!(
        report.recovery.iter().any(|step| step.contains("`handoff-migrate-user-database-20240610-2`")),
        "{:?}",
        report.recovery
    );
}
