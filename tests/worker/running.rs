//! Running commands.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use git_handoff::model::digest::Digest;
use git_handoff::model::entry::Exit;
use git_handoff::model::limits::Limits;
use git_handoff::process::agent::{self, Cause, Ended, Invocation, Stdin};
use git_handoff::process::transcript::TranscriptWriter;
use tokio::sync::watch;

use crate::common;

/// A command of `sh` in `dir`, marked as one of the attempt there.
pub(super) fn shell(dir: &Path, script: &str) -> Invocation {
    Invocation {
        argv: ["sh", "-c", script].map(String::from).to_vec(),
        tree: dir.to_owned(),
        cwd: dir.to_owned(),
        attempt_dir: dir.to_owned(),
        env: BTreeMap::from([
            ("PATH".to_owned(), std::env::var_os("PATH").unwrap()),
            ("HANDOFF_TASK".to_owned(), dir.join("task.json").into_os_string()),
        ]),
        stdin: Stdin::Null,
        timeout: Duration::from_secs(20),
        supervisor: Some(env!("CARGO_BIN_EXE_git-handoff").into()),
        confinement: None,
        limits: Limits::default(),
        folders: Vec::new(),
        lease: None,
    }
}

/// Runs it to its end; returns the transcript too.
pub(super) fn run(invocation: &Invocation, limit: u64) -> (Result<Ended, agent::Error>, String) {
    run_until(invocation, limit, |_| ())
}

pub(super) fn run_until(
    invocation: &Invocation,
    limit: u64,
    control: impl FnOnce(watch::Sender<bool>),
) -> (Result<Ended, agent::Error>, String) {
    let mut transcript = TranscriptWriter::create(&invocation.attempt_dir, &[b"hunter2".to_vec()], limit).unwrap();
    let (sender, receiver) = watch::channel(false);
    control(sender);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ended = runtime.block_on(agent::run(invocation, &mut transcript, receiver));
    let (summary, mut file) = transcript.finish().unwrap();
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut file, &mut bytes).unwrap();
    assert_eq!((summary.sha256, summary.size), (Digest::compute(&bytes), bytes.len() as u64));
    (ended, String::from_utf8_lossy(&bytes).into_owned())
}

fn dir() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = crate::common::folder();
    let path = fs::canonicalize(dir.path()).unwrap();
    (dir, path)
}

fn code(code: i32) -> Exit {
    Exit { code: Some(code), signal: None }
}

#[test]
fn exit_output_and_environment() {
    let (_guard, dir) = dir();
    let mut invocation = shell(&dir, "cat; echo err >&2; pwd; env | sort; exit 3");
    invocation.stdin = Stdin::Bytes(b"{\"in\":1}\n".to_vec());
    let (ended, text) = run(&invocation, 1 << 20);
    let ended = ended.unwrap();
    assert_eq!((ended.exit, ended.cause), (Some(code(3)), Cause::Exited));
    assert!(text.contains("{\"in\":1}\n") && text.contains("err\n") && text.contains(dir.to_str().unwrap()));
    assert!(!text.contains("CARGO") && !text.contains("HOME="));
    let (second_ended, _) = run(&shell(&dir, "kill -9 $$"), 100);
    assert_eq!(second_ended.unwrap().exit, Some(Exit { code: None, signal: Some(9) }));
}

#[test]
fn secrets_are_redacted_across_writes_and_streams() {
    let (_guard, dir) = dir();
    let (_, text) =
        run(&shell(&dir, "printf hun; printf ter >&2; sleep 0.1; printf 'ter2\\n'; echo 2 >&2; printf hunter2"), 1000);
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(text.matches("[redacted:secret]").count(), 2, "{text}");
}

#[test]
fn an_unread_stdin_does_no_harm() {
    let (_guard, dir) = dir();
    for script in ["exit 0", "exec <&-; sleep 0.2", "head -c 1 >/dev/null"] {
        let mut invocation = shell(&dir, script);
        invocation.stdin = Stdin::Bytes(vec![b'x'; 4 << 20]);
        assert_eq!(run(&invocation, 1000).0.unwrap().exit, Some(code(0)), "{script}");
    }
    let mut invocation = shell(&dir, "wc -c");
    invocation.stdin = Stdin::Bytes(vec![b'x'; 4 << 20]);
    assert_eq!(run(&invocation, 1000).1.trim(), (4 << 20).to_string());
}

#[test]
fn a_flood_is_cut_and_counted_and_never_blocks() {
    // The peak of memory is the whole process's.
    if !common::alone("worker::running::a_flood_is_cut_and_counted_and_never_blocks") {
        return;
    }
    let (_guard, dir) = dir();
    let invocation = shell(&dir, "yes 0123456789abcdef | head -c 300000000; echo done >&2; exit 5");
    let (ended, text) = run(&invocation, 10_000);
    assert_eq!(ended.unwrap().exit, Some(code(5)));
    assert!(text.len() <= 10_000 && text.starts_with("0123456789abcdef\n"));
    let last = text.lines().last().unwrap();
    let dropped: usize = last.split(' ').nth(1).unwrap().parse().unwrap();
    let written = text.len() - last.len() - 2;
    assert_eq!(written + dropped, 300_000_005, "{last}");
    // One line without an end.
    let (_, second_text) = run(&shell(&dir, "head -c 50000000 /dev/zero | tr '\\0' x"), 1 << 20);
    assert!(second_text.ends_with("bytes were dropped]\n"));
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 120_000, "{peak} kB");
}

#[test]
fn closed_and_inherited_pipes_do_not_hang() {
    let (_guard, dir) = dir();
    for script in ["exec >&- 2>&-; sleep 0.3", "sleep 100 & exit 0", "(trap '' TERM HUP; sleep 100) & echo started"] {
        let started = Instant::now();
        assert_eq!(run(&shell(&dir, script), 1000).0.unwrap().exit, Some(code(0)), "{script}");
        assert!(started.elapsed() < Duration::from_secs(90), "{script}");
    }
}

#[test]
fn time_out_and_cancel_end_the_group() {
    let (_guard, dir) = dir();
    let mut invocation = shell(&dir, "trap 'echo bye; exit 7' TERM; echo on; sleep 100 & wait");
    invocation.timeout = Duration::from_millis(300);
    let (ended, text) = run(&invocation, 1000);
    let ended = ended.unwrap();
    assert_eq!((ended.exit, ended.cause, text.as_str()), (Some(code(7)), Cause::TimedOut, "on\nbye\n"));
    assert!(ended.duration_ms < 2000, "{ended:?}");

    invocation = shell(&dir, "trap '' TERM; echo on; while :; do sleep 0.1; done");
    let (cancelled, _) = run_until(&invocation, 1000, |sender| {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            sender.send(true)
        });
    });
    let cancelled = cancelled.unwrap();
    assert_eq!((cancelled.exit.unwrap().signal, cancelled.cause), (Some(9), Cause::Cancelled));
    assert!((2000..5000).contains(&cancelled.duration_ms), "{cancelled:?}");

    // Cancelled before its start, and not cancelled at all.
    let (cancelled_early, _) = run_until(&shell(&dir, "sleep 100"), 1000, |sender| assert!(!sender.send_replace(true)));
    assert_eq!(cancelled_early.unwrap().cause, Cause::Cancelled);
    let (ended_alone, _) = run_until(&shell(&dir, "sleep 0.2"), 1000, drop);
    let ended_alone = ended_alone.unwrap();
    assert_eq!((ended_alone.exit, ended_alone.cause), (Some(code(0)), Cause::Exited));
}

#[test]
fn failed_start_names_the_program() {
    let (_guard, dir) = dir();
    let start_error = |argv: &[&str]| {
        let mut invocation = shell(&dir, "");
        invocation.argv = argv.iter().map(|arg| (*arg).to_owned()).collect();
        run(&invocation, 1000).0.unwrap_err().to_string()
    };
    insta::assert_snapshot!(start_error(&["./no-such-program"]), @"cannot start `./no-such-program`: there is no such program, or its interpreter is missing");
    fs::write(dir.join("plain"), "x").unwrap();
    insta::assert_snapshot!(start_error(&["./plain"]), @"cannot start `./plain`: it may not be executed, or a folder of PATH may not be entered");
    fs::set_permissions(dir.join("plain"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(dir.join("plain"), "#!/no/such/interpreter\n").unwrap();
    insta::assert_snapshot!(start_error(&["./plain"]), @"cannot start `./plain`: there is no such program, or its interpreter is missing");
    insta::assert_snapshot!(start_error(&["true", &"x".repeat(5 << 20)]), @"cannot start `true`: its arguments and environment are too long");
    insta::assert_snapshot!(start_error(&[]), @"the command is empty");
    let mut invocation = shell(&dir, "true");
    invocation.cwd = dir.join("gone");
    assert!(run(&invocation, 1000).0.unwrap_err().to_string().contains("gone"));
}
