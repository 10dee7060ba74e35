//! Quotations from a packet contain no control characters and no credentials.

use git_handoff::thread::packet::quoted;

#[test]
fn nothing_quoted_steers_a_terminal() {
    assert_eq!(quoted("a\u{1b}[2Jb\nc\u{202e}d\u{200b}e"), r#""a\u{1b}[2Jb\nc\u{202e}d\u{200b}e""#);
    assert_eq!(quoted("\u{9b}31m\u{7}"), r#""\u{9b}31m\u{7}""#);
    assert_eq!(quoted(r#"say "\n" twice"#), r#""say \"\\n\" twice""#);
    assert_eq!(quoted(&"x".repeat(1000)).chars().count(), 123);
}

#[test]
fn nothing_quoted_gives_a_credential_away() {
    let token = format!("use ghp_{} now", "A1b2".repeat(9));
    assert_eq!(quoted(&token), r#""use [redacted:github-token] now""#);
}
