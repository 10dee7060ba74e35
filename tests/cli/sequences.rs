//! Control sequences of terminals in what workers print: nothing of them reaches a reason, a tail
//! or a terminal.

use crate::common::repo::{TestRepo, item};

/// Prints a colour, a title, a character set and a progress bar.
const SAYS: &str =
    r"printf '\033[1;31merror\033[0m: no\n\033]0;title\007plain\033(B\033[K\n10%%\r\033[2K100%%\nplain text\n'";

/// Ends a program on a terminal of its own and returns what it printed there.
fn on_a_terminal(repo: &TestRepo, line: &str) -> String {
    let script = "import pty, sys; sys.exit(pty.spawn(['sh', '-c', sys.argv[1]]) >> 8)";
    repo.env.write("terminal.py", script);
    repo.env.shell("repo", &format!("python3 ../terminal.py '{line}'")).success()
}

#[test]
fn a_tail_and_a_reason_have_none_of_a_control_sequence() {
    let repo = TestRepo::new();
    repo.config(
        "handoff.executor.command.verify",
        "printf '\\033[32mnot \\033]8;;x\\033\\\\good\\033]8;;\\033\\\\\\033[m\\n'; exit 1",
    );
    let run = repo.drive("r", &[item("a", &format!("{SAYS}; exit 1")), item("b", "true")]).exit(4);
    for line in ["    error: no\n", "    plain\n", "    100%\n", "    plain text\n"] {
        assert!(run.stderr.contains(line), "{line:?} in {run}");
    }
    assert_eq!(repo.item("r", "b").reason, "verify-failed: exited with 1: not good");
    assert!(!run.stderr.contains(['\u{1b}', '\u{fffd}']), "{run}");
}

#[test]
fn cat_prints_a_transcript_for_people_on_a_terminal_and_bytes_elsewhere() {
    let repo = TestRepo::new();
    repo.drive("r", &[item("a", SAYS)]).ends(0);
    let bytes = repo.env.handoff(["cat", "r/a:transcript"]).success();
    assert!(bytes.starts_with("\u{1b}[1;31merror\u{1b}[0m: no\n\u{1b}]0;title\u{7}plain"), "{bytes:?}");
    for name in ["r/a:transcript", "r/a:transcript@1"] {
        let screen = on_a_terminal(&repo, &format!("git handoff cat {name}"));
        assert_eq!(screen.replace('\r', ""), "error: no\nplain\n10%\n100%\nplain text\n", "{name}");
    }
    let piped = on_a_terminal(&repo, "git handoff cat r/a:transcript | od -c | head -1");
    assert!(piped.contains("033   [   1   ;   3   1   m"), "{piped}");
}

#[test]
fn record_prints_no_control_sequence_of_a_worker_on_a_terminal_and_bytes_elsewhere() {
    let repo = TestRepo::new();
    let script = format!("#!/bin/sh\n{SAYS}\nprintf 'caf\\303\\251 \\342\\200\\256abc\\n'\n");
    repo.env.write("says.sh", &script);
    let command = format!("git handoff record -- sh {}", repo.path("says.sh").display());
    let screen = on_a_terminal(&repo, &command).replace('\r', "");
    for line in ["error: no", "plain", "10%", "100%", "plain text", "café \u{fffd}abc"] {
        assert!(screen.lines().any(|text| text == line), "{line:?} in {screen:?}");
    }
    assert!(!screen.contains("title") && !screen.contains("\u{1b}]") && !screen.contains("\u{1b}[2K"), "{screen:?}");
    assert!(!screen.contains(['\u{7}', '\u{202e}']), "{screen:?}");
    let piped = repo.env.shell("repo", &format!("{command} 2>&1"));
    assert!(piped.stdout.contains("\u{1b}[1;31merror\u{1b}[0m: no\n\u{1b}]0;title\u{7}plain"), "{piped}");
}
