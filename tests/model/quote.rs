//! Words as a shell reads them back.

use git_handoff::model::printable::is_unprintable;
use git_handoff::model::quote::quoted;

#[test]
fn a_shell_reads_back_what_was_meant() {
    for word in ["plain", "a b", "it's", "$(x)", "a\u{202e}b", "\u{1b}]0;x\u{7}'\\n7", "\u{9b}1\u{200b}é"] {
        let line = format!("printf %s {}", quoted(word));
        assert!(!line.chars().any(is_unprintable), "{line}");
        let output = std::process::Command::new("bash").args(["-c", &line]).output().expect("there is a shell");
        assert_eq!(String::from_utf8_lossy(&output.stdout), word);
    }
}
