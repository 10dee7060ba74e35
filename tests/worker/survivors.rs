//! Nothing that a worker started outlives its attempt. Each test runs in a process of its own.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use git_handoff::process::survivors;

use crate::common;
use crate::worker::running::{run, shell};

pub(super) fn alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

pub(super) fn pid_in(path: &Path) -> String {
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until {
        match fs::read_to_string(path) {
            Ok(pid) if pid.ends_with('\n') => return pid.trim().to_owned(),
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    panic!("no pid in {}", path.display());
}

fn dir() -> (tempfile::TempDir, PathBuf) {
    let dir = crate::common::folder();
    let path = fs::canonicalize(dir.path()).unwrap();
    (dir, path)
}

/// Ways to get out of the process group, each leaving its number in `pid`.
const ESCAPES: [&str; 6] = [
    "HANDOFF_TASK=/another/task.json setsid sh -c 'echo $$ >pid; cd /; exec sleep 100' & while ! test -s pid; do sleep 0.01; done",
    "setsid sh -c 'echo $$ >pid; exec sleep 100' & while ! test -s pid; do sleep 0.01; done",
    "(setsid sh -c 'echo $$ >pid; cd /; exec sleep 100' >/dev/null 2>&1 &) ; while ! test -s pid; do sleep 0.01; done",
    "setsid env -i PATH=\"$PATH\" sh -c 'echo $$ >pid; exec sleep 100' & while ! test -s pid; do sleep 0.01; done",
    "P=$PWD; setsid env -i PATH=\"$PATH\" P=$P sh -c 'cd /; echo $$ >$P/pid; exec sleep 100' & while ! test -s pid; do sleep 0.01; done",
    "setsid sh -c 'trap \"\" TERM HUP INT; setsid sh -c \"cd /; echo \\$\\$ >$PWD/pid; exec sleep 100\" & wait' & while ! test -s pid; do sleep 0.01; done",
];

#[test]
fn no_daemon_outlives_its_attempt() {
    if !common::alone("worker::survivors::no_daemon_outlives_its_attempt") {
        return;
    }
    for script in ESCAPES {
        let (_guard, dir) = dir();
        let started = Instant::now();
        run(&shell(&dir, script), 1000).0.unwrap();
        assert!(!alive(&pid_in(&dir.join("pid"))), "{script}");
        assert!(started.elapsed() < Duration::from_secs(90), "{script}: {:?}", started.elapsed());
    }
}

#[test]
fn without_a_supervisor_the_marked_are_found() {
    if !common::alone("worker::survivors::without_a_supervisor_the_marked_are_found") {
        return;
    }
    for script in &ESCAPES[1..4] {
        let (_guard, dir) = dir();
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(&dir).env("HANDOFF_TASK", dir.join("task.json"));
        assert!(command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success());
        survivors::end(&dir);
        assert!(!alive(&pid_in(&dir.join("pid"))), "{script}");
    }
}

#[test]
fn no_other_process_is_touched() {
    if !common::alone("worker::survivors::no_other_process_is_touched") {
        return;
    }
    let ((_guard, one), (_other_guard, other)) = (dir(), dir());
    // Another attempt that runs on with a daemon of its own, and a child of ours in our own group.
    let long = shell(&other, &format!("{}; sleep 1", ESCAPES[2]));
    let running = std::thread::spawn(move || run(&long, 1000).0.unwrap());
    let daemon = pid_in(&other.join("pid"));
    let mut plain = Command::new("sleep").arg("100").current_dir("/").stdout(Stdio::null()).spawn().unwrap();
    run(&shell(&one, ESCAPES[1]), 1000).0.unwrap();
    survivors::end(&one);
    assert!(!alive(&pid_in(&one.join("pid"))));
    assert!(alive(&daemon));
    assert_eq!(running.join().unwrap().exit.unwrap().code, Some(0));
    assert!(!alive(&daemon));
    assert_eq!(plain.try_wait().unwrap(), None);
    plain.kill().unwrap();
    plain.wait().unwrap();
}

#[test]
fn hidden_process_is_ended_while_others_run() {
    if !common::alone("worker::survivors::hidden_process_is_ended_while_others_run") {
        return;
    }
    // As attempts lie: each in the folder of its run, these in one folder.
    let (_guard, root) = dir();
    let attempt = |run: &str| {
        let dir = root.join(run).join("item.1");
        fs::create_dir_all(&dir).unwrap();
        dir
    };
    let (one, other) = (attempt("one"), attempt("other"));
    let long = shell(&other, "sleep 3");
    let running = std::thread::spawn(move || run(&long, 1000).0.unwrap());
    let pid = one.join("pid");
    let hidden = format!(
        "(cd /; setsid env -i sh -c 'echo $$ >{0}.new; mv {0}.new {0}; exec sleep 100' >/dev/null 2>&1 &); until test -e {0}; do sleep 0.01; done",
        pid.display()
    );
    run(&shell(&one, &hidden), 1000).0.unwrap();
    assert!(!alive(&pid_in(&pid)), "it outlived its attempt");
    assert_eq!(running.join().unwrap().exit.unwrap().code, Some(0));
}

#[test]
fn survivors_of_a_dead_driver_are_found() {
    if !common::alone("worker::survivors::survivors_of_a_dead_driver_are_found") {
        return;
    }
    let (_guard, dir) = dir();
    // The starting shell ends immediately, so that it has no parent.
    let script = "setsid sh -c 'echo $$ >pid; sleep 100 & wait' >/dev/null 2>&1 & exit 0";
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(&dir).env("HANDOFF_TASK", dir.join("task.json"));
    assert!(command.status().unwrap().success());
    let pid = pid_in(&dir.join("pid"));
    assert!(alive(&pid));
    assert!(survivors::end(&dir) >= 1);
    assert!(!alive(&pid));
    assert_eq!(survivors::end(&dir), 0);
}

#[test]
fn a_fork_bomb_in_new_sessions_is_ended() {
    if !common::alone("worker::survivors::a_fork_bomb_in_new_sessions_is_ended") {
        return;
    }
    let (_guard, dir) = dir();
    let script = "f() { test $1 -gt 6 || { setsid sh -c \"$F; f $(($1+1))\" & setsid sh -c \"$F; f $(($1+1))\" & }; sleep 100; }";
    let mut invocation = shell(&dir, &format!("export F='{script}'; eval \"$F\"; (f 1 >/dev/null 2>&1 &); sleep 0.2"));
    invocation.timeout = Duration::from_secs(10);
    run(&invocation, 1000).0.unwrap();
    let ours = |pid: &str| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        alive(pid) && String::from_utf8_lossy(&environ).contains(dir.to_str().unwrap())
    };
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    assert_eq!(pids.filter(|pid| pid.parse::<i32>().is_ok() && ours(pid)).count(), 0);
}

/// Says of itself that its environment is 600 MiB large, and lies where nothing is.
const LARGE: &str = "import ctypes, struct, time
libc = ctypes.CDLL(None)
libc.mmap.restype = libc.sbrk.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
size = 600 << 20
at = libc.mmap(None, size, 1, 0x4022, -1, 0)
stat = [0, 0, 0] + [int(field) for field in open('/proc/self/stat').read().rsplit(')', 1)[1].split()[1:]]
stat = [0] + stat
fields = [stat[26], stat[27], stat[45], stat[46], stat[47], libc.sbrk(0), stat[28], stat[48], stat[49], at, at + size, 0]
layout = ctypes.create_string_buffer(struct.pack('12QII', *fields, 0, 0xffffffff))
print(libc.prctl(35, 14, layout, 104, 0), flush=True)
time.sleep(100)
";

#[test]
fn an_environment_is_read_up_to_what_one_can_be() {
    if !common::alone("worker::survivors::an_environment_is_read_up_to_what_one_can_be") {
        return;
    }
    let (_guard, dir) = dir();
    let mut large = Command::new("python3").args(["-c", LARGE]).stdout(Stdio::piped()).spawn().unwrap();
    let mut environment = String::new();
    BufReader::new(large.stdout.take().unwrap()).read_line(&mut environment).unwrap();
    assert_eq!(environment, "0\n");
    let claimed = fs::File::open(format!("/proc/{}/environ", large.id())).unwrap();
    assert_eq!(std::io::copy(&mut claimed.take(5 << 20), &mut std::io::sink()).unwrap(), 5 << 20);
    assert!(!survivors::are_left(&dir));
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
    assert!(peak.is_some_and(|peak: u64| peak < 200_000), "{peak:?}");
    large.kill().unwrap();
    large.wait().unwrap();
}
