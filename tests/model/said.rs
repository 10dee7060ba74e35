//! The last lines of a check's output.

use git_handoff::model::last_lines::last_lines;

#[test]
fn last_lines_of_a_check_are_bounded() {
    assert_eq!(last_lines(b""), "");
    assert_eq!(last_lines(b"1\n2\n\n3\n 4 \n5\n6\n"), "2 | 3 | 4 | 5 | 6");
    let long = last_lines("ä".repeat(4_000).as_bytes());
    assert_eq!((long.chars().count(), long.starts_with('…')), (401, true));
    assert!(!last_lines(b"a\x1b[31mb\r\nc").contains('\x1b'));
    assert_eq!(last_lines(b"\x1b[1;31merror\x1b[0m: no\n\x1b]0;title\x07end\x1b(B\n"), "error: no | end");
    let token = format!("token ghp_{}", "a1B2".repeat(9));
    insta::assert_snapshot!(last_lines(token.as_bytes()), @"token [redacted:github-token]");
}
