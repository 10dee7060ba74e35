//! Under a supervisor nothing hides from the end of its attempt, whatever it says of itself and
//! whom it kills.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use git_handoff::model::entry::Exit;
use git_handoff::process::agent::{Cause, Error, Invocation, Stdin};

use super::running::{run, run_until, shell};
use super::survivors::{alive, pid_in};
use crate::common::{self, Environment};

/// The folders of two attempts, as they lie: each in the folder of its run, these in one folder.
fn attempts() -> (tempfile::TempDir, [PathBuf; 2]) {
    let root = crate::common::folder();
    let path = fs::canonicalize(root.path()).unwrap();
    let folders = ["one", "other"].map(|run| path.join(run).join("item.1"));
    folders.iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
    (root, folders)
}

/// A script whose daemon says that it is another attempt's, by its environment and by where it is;
/// its number is in `pid`.
fn forger(dir: &Path, other: &Path) -> String {
    let (pid, other) = (dir.join("pid"), other.display());
    format!(
        "(cd {other}; setsid env -i HANDOFF_TASK={other}/task.json sh -c 'echo $$ >{0}.new; mv {0}.new {0}; exec sleep 100' >/dev/null 2>&1 &)
         until test -e {0}; do sleep 0.01; done",
        pid.display()
    )
}

fn exited(code: i32) -> Exit {
    Exit { code: Some(code), signal: None }
}

#[test]
fn process_with_a_forged_attempt_ends_with_its_own() {
    if !common::alone("worker::supervised::process_with_a_forged_attempt_ends_with_its_own") {
        return;
    }
    let (_guard, [one, other]) = attempts();
    // It has a daemon of its own, that must live as long as its attempt.
    let honest = other.join("pid");
    let long = format!(
        "setsid sh -c 'echo $$ >pid; exec sleep 100' & until test -e {0}/over; do sleep 0.01; done",
        other.display()
    );
    let long = shell(&other, &long);
    let running = std::thread::spawn(move || run(&long, 1000).0.unwrap());
    let honest = pid_in(&honest);
    let forged = forger(&one, &other);
    // By itself, and where it stops the process that would end it.
    let by_itself = ("exit 7", Some(exited(7)), Cause::Exited);
    for (killer, exit, cause) in [by_itself, ("kill -STOP $PPID; exit 7", None, Cause::TimedOut)] {
        let _ = fs::remove_file(one.join("pid"));
        let mut invocation = shell(&one, &format!("{forged}; {killer}"));
        invocation.timeout = Duration::from_secs(2);
        let ended = run(&invocation, 1000).0.unwrap();
        assert_eq!((ended.exit, ended.cause), (exit, cause), "{killer}");
        assert!(!alive(&pid_in(&one.join("pid"))), "{killer}: it outlived its attempt");
        assert!(alive(&honest), "{killer}: another attempt's process was ended");
    }
    fs::write(other.join("over"), "").unwrap();
    assert_eq!(running.join().unwrap().exit, Some(exited(0)));
    assert!(!alive(&honest));
}

#[test]
fn only_the_supervisor_reports_the_exit_status() {
    if !common::alone("worker::supervised::only_the_supervisor_reports_the_exit_status") {
        return;
    }
    let (_guard, [dir, _]) = attempts();
    // It takes the line out of the supervisor, speaks for it, and kills it; where it may not, it
    // only kills it.
    let script = "(setsid sh -c 'echo $$ >pid.new; mv pid.new pid; exec sleep 100' >/dev/null 2>&1 &)
        until test -e pid; do sleep 0.01; done
        python3 -c 'import ctypes, os
parent = int(open(\"/proc/%d/stat\" % os.getppid()).read().rsplit(\") \")[1].split()[1])
line = ctypes.CDLL(None).syscall(438, os.pidfd_open(parent), 0, 0)
if line >= 0: os.write(line, b\"code 0\\n\")
os.kill(parent, 9)'; sleep 100";
    let ended = run(&shell(&dir, script), 1000).0;
    assert!(matches!(ended, Err(Error::Supervisor(_))), "{ended:?}");
    assert!(!alive(&pid_in(&dir.join("pid"))), "it outlived its attempt");
}

#[test]
fn a_traced_supervisor_delays_no_one() {
    if !common::alone("worker::supervised::a_traced_supervisor_delays_no_one") {
        return;
    }
    let (_guard, [dir, _]) = attempts();
    // PTRACE_SEIZE with PTRACE_O_TRACEEXIT: who is killed stops at its exit, until the tracer is
    // gone.
    let script = "setsid python3 -c 'import ctypes, os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
seized = ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), ctypes.c_void_p(0), ctypes.c_void_p(0x40))
open(\"seized\", \"w\").write(\"%d\\n\" % seized)
time.sleep(100)' $PPID & until test -s seized; do sleep 0.01; done; kill -STOP $PPID; sleep 100";
    let mut invocation = shell(&dir, script);
    invocation.timeout = Duration::from_secs(1);
    let (started, ended) = (Instant::now(), run(&invocation, 1000).0);
    assert!(matches!(ended.as_ref().map(|ended| ended.cause), Ok(Cause::TimedOut)), "{ended:?}");
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

#[test]
fn a_long_line_of_processes_that_take_what_the_next_leaves_is_ended() {
    let (_guard, [dir, _]) = attempts();
    // Each is a sub-reaper: when the first is killed, the second alone falls to the supervisor.
    let script = "python3 -c 'import ctypes, os, time
for depth in range(100):
    ctypes.CDLL(None).prctl(36, 1)
    if os.fork(): time.sleep(100)
open(\"pid.new\", \"w\").write(str(os.getpid()) + \"\\n\")
os.rename(\"pid.new\", \"pid\")
time.sleep(100)' >/dev/null 2>&1 &
        until test -e pid; do sleep 0.01; done";
    let started = Instant::now();
    let ended = run(&shell(&dir, script), 1000).0.unwrap();
    assert_eq!(ended.exit, Some(exited(0)));
    assert!(!alive(&pid_in(&dir.join("pid"))), "the last of them outlived its attempt after {:?}", started.elapsed());
}

#[test]
fn supervisor_reports_the_exit_status_of_the_command() {
    let (_guard, [dir, _]) = attempts();
    for (script, exit) in [
        ("exit 0", Some(exited(0))),
        ("exit 255", Some(exited(255))),
        ("kill -9 $$", Some(Exit { code: None, signal: Some(9) })),
        ("kill -TERM $$", Some(Exit { code: None, signal: Some(15) })),
        ("sleep 100 & exit 3", Some(exited(3))),
    ] {
        let ended = run(&shell(&dir, script), 1000).0.unwrap();
        assert_eq!((ended.exit, ended.cause), (exit, Cause::Exited), "{script}");
    }
    let mut invocation = shell(&dir, "cat; pwd");
    invocation.stdin = Stdin::Bytes(vec![b'x'; 4 << 20]);
    let (ended, text) = run(&invocation, 8 << 20);
    assert_eq!(ended.unwrap().exit, Some(exited(0)));
    assert!(text.starts_with(&"x".repeat(4 << 20)) && text[4 << 20..] == format!("{}\n", dir.display()));
    let open = "cat; readlink /proc/self/fd/0; ls /proc/self/fd";
    // The line to the supervisor is not open in it; `ls` opens the folder.
    assert_eq!(run(&shell(&dir, open), 1000).1, "/dev/null\n0\n1\n2\n3\n");
}

#[test]
fn failed_start_names_the_command_and_not_its_supervisor() {
    let (_guard, [dir, _]) = attempts();
    fs::write(dir.join("text"), "no program").unwrap();
    for program in ["/no/such/program", "no-such-program", "./text", "/", ""] {
        let invocation = Invocation { argv: vec![program.to_owned()], ..shell(&dir, "") };
        let message = run(&invocation, 1000).0.unwrap_err().to_string();
        assert!(message.starts_with(&format!("cannot start `{program}`: ")), "{program}: {message}");
    }
    let invocation = Invocation { cwd: dir.join("gone"), ..shell(&dir, "true") };
    assert!(matches!(run(&invocation, 1000).0, Err(Error::Directory(_))));
    // The program that should supervise is not there.
    let broken_invocation = Invocation { supervisor: Some("/no/such/program".into()), ..shell(&dir, "true") };
    assert!(matches!(run(&broken_invocation, 1000).0, Err(Error::Spawn { .. })));
    let plain_invocation = Invocation { supervisor: None, ..shell(&dir, "true") };
    assert!(matches!(run(&plain_invocation, 1000).0, Err(Error::Unsupervised)));
}

#[test]
fn timeout_and_cancellation_signal_the_command_first() {
    let (_guard, [dir, _]) = attempts();
    let mut invocation = shell(&dir, "trap 'echo asked; exit 9' TERM; sleep 100 & wait");
    invocation.timeout = Duration::from_millis(500);
    let (ended, text) = run(&invocation, 1000);
    let ended = ended.unwrap();
    assert_eq!((ended.exit, ended.cause), (Some(exited(9)), Cause::TimedOut));
    assert_eq!(text, "asked\n");
    invocation.argv[2] =
        "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 100' & while :; do sleep 0.1; done".to_owned();
    let ended_first = run(&invocation, 1000).0.unwrap();
    assert_eq!((ended_first.exit, ended_first.cause), (Some(Exit { code: None, signal: Some(9) }), Cause::TimedOut));
    invocation.timeout = Duration::from_secs(100);
    let (ended_by_signal, _) = run_until(&invocation, 1000, |cancel| {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            cancel.send(true).unwrap();
            // The sender that is dropped would cancel, too.
            std::mem::forget(cancel);
        });
    });
    assert_eq!(ended_by_signal.unwrap().cause, Cause::Cancelled);
}

#[test]
fn when_the_driver_is_killed_nothing_below_it_lives_on() {
    let forge = Environment::example("handoff-dag");
    let [pid, marked] = ["pid", "marked"].map(|name| forge.path().join(name));
    let script = format!(
        "(cd /; setsid env -i sh -c 'trap \"\" TERM; echo $$ >{}; sleep 100; :' >/dev/null 2>&1 &); echo $$ >{}; sleep 100",
        pid.display(),
        marked.display()
    );
    let plan = serde_json::json!({"id": "r", "items": [
        {"id": "a", "executor": "command", "inputs": {"command": script}}]});
    forge.write("repo/long.json", &plan.to_string());
    let mut driver = forge.command(common::program_path(), "repo");
    let mut driver =
        driver.args(["run", "long.json"]).process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pids = [pid_in(&pid), pid_in(&marked)];
    driver.kill().unwrap();
    driver.wait().unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    while pids.iter().any(|process| alive(process)) {
        assert!(Instant::now() < until, "a worker lives on without its driver");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_supervisor_that_hears_nothing_ends() {
    let mut child = Command::new("setsid")
        .args([env!("CARGO_BIN_EXE_git-handoff"), git_handoff::process::supervisor::ARGUMENT, "sleep", "100"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(!child.wait().unwrap().success());
}

#[test]
fn a_supervisor_is_in_a_session_of_its_own_before_it_is_anything() {
    // A signal from the terminal would end one that has yet to see to that itself.
    let (_guard, [dir, _]) = attempts();
    let script = dir.join("supervisor");
    fs::write(&script, "#!/bin/sh\nps -o pid=,sid=,pgid= -p $$ >\"${0%/*}\"/said\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let invocation = Invocation { supervisor: Some(script), ..shell(&dir, "true") };
    assert!(matches!(run(&invocation, 1000).0, Err(Error::Supervisor(_))));
    let text = fs::read_to_string(dir.join("said")).unwrap();
    let numbers: Vec<&str> = text.split_whitespace().collect();
    assert!(numbers.len() == 3 && numbers.iter().all(|number| *number == numbers[0]), "{text}");
}
