//! An item above its limits fails alone, with the reason, without affecting others.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::scene::{Layers, Scene, has_bubblewrap, skipped};
use crate::common::repo::item;

/// A setting, a command that exceeds it, and the text of the reason.
const HOGS: &[(&str, &str, &str, &str)] = &[
    (
        "maxProcesses",
        "60",
        "for i in 1 2 3 4 5 6 7 8 9 10; do (while :; do sleep 100 & done) & done; wait",
        "had more than 60 processes",
    ),
    (
        "maxMemory",
        "200m",
        "python3 -c 'x = []\nwhile True: x.append(bytearray(1 << 20))'",
        "used more than 209715200 bytes of memory",
    ),
    (
        "maxMemory",
        "210m",
        "python3 -c 'import os, time\nf = os.memfd_create(\"x\")\nwhile True: os.write(f, bytes(1 << 20)); time.sleep(0.001)'",
        "used more than 220200960 bytes of memory",
    ),
    (
        "maxMemory",
        "220m",
        "python3 -c 'import threading, ctypes, time\ndef eat():\n x = []\n while True: x.append(bytearray(1 << 20)); time.sleep(0.001)\nthreading.Thread(target=eat).start()\nctypes.CDLL(None).syscall(60, 0)'",
        "used more than 230686720 bytes of memory",
    ),
    (
        "maxProcesses",
        "61",
        "python3 -c 'import threading, time\nfor i in range(100): threading.Thread(target=time.sleep, args=(100,)).start()'",
        "had more than 61 processes",
    ),
    (
        "maxDisk",
        "5m",
        "exec 3>a 4>b; rm a b; while :; do head -c 500000 /dev/zero >&3; head -c 500000 /dev/zero >&4; sleep 0.05; done",
        "filled more than 5242880 bytes of the disk",
    ),
    (
        "maxDisk",
        "7m",
        "python3 -c 'import os, time\nfor i in range(30): os.mkdir(\"x\" * 250); os.chdir(\"x\" * 250)\nfor i in range(1000): open(str(i), \"wb\").write(bytes(1 << 16)); time.sleep(0.01)\ntime.sleep(100)'",
        "filled more than 7340032 bytes of the disk",
    ),
    (
        "maxDisk",
        "6m",
        "while :; do head -c 1000000 /dev/zero >$TMPDIR/$(date +%N); sleep 0.05; done",
        "filled more than 6291456 bytes of the disk",
    ),
    (
        "maxDisk",
        "9m",
        "mkdir outputs/x; while :; do head -c 1000000 /dev/zero >outputs/x/$(date +%N); sleep 0.05; done",
        "filled more than 9437184 bytes of the disk",
    ),
    (
        "maxDisk",
        "8m",
        "python3 -c 'import time\nfor i in range(6000): open(str(i), \"w\").close()\ntime.sleep(100)'",
        "filled more than 8388608 bytes of the disk",
    ),
    ("maxOutput", "1m", "yes", "wrote more than 1048576 bytes to its output"),
    ("maxFileSize", "1m", "trap '' XFSZ; head -c 2000000 /dev/zero >big", "exited with 1"),
    ("maxCpuTime", "1", "exec python3 -c 'while True: pass'", "was ended by signal"),
    (
        "maxOpenFiles",
        "20",
        "exec python3 -c 'import os\nx = [os.open(\"/dev/null\", 0) for i in range(30)]'",
        "exited with 1",
    ),
];

fn hogs(layers: Layers, user: Option<u32>) {
    let scene = Scene::for_user(layers, user);
    let mut items: Vec<Value> = Vec::new();
    for (at, (setting, most, script, _)) in HOGS.iter().enumerate() {
        scene.repo.config(&format!("handoff.subagent.hog{at}.command"), script);
        scene.repo.config(&format!("handoff.subagent.hog{at}.{setting}"), most);
        let id = format!("hog{at}");
        items.push(
            json!({ "id": id, "executor": "dispatch", "inputs": { "subagent": id }, "maxAttempts": 1, "timeout": 120 }),
        );
    }
    // A well-behaved item runs beside them.
    items.extend((0..4).map(|at| item(&format!("good{at}"), "sleep 1; echo fine >outputs/x")));
    scene.drive("hogs", &items).ends(4);
    let second_items = scene.repo.items("hogs");
    for (at, (setting, _, _, reason)) in HOGS.iter().enumerate() {
        let hog = &second_items[&format!("hog{at}")];
        assert!(hog.reason.starts_with(reason), "{layers:?}, {user:?}, {setting}: {hog:?}");
    }
    for at in 0..4 {
        assert_eq!(second_items[&format!("good{at}")].status, "done");
    }
    scene.repo.no_process_is_left();
    scene.repo.passes_fsck();
}

#[test]
fn with_nothing_that_confines() {
    hogs(Layers::None, None);
}

#[test]
fn with_all_layers() {
    if has_bubblewrap("limits below bubblewrap") {
        hogs(Layers::All, None);
    }
}

#[test]
fn for_another_user() {
    if !rustix::process::geteuid().is_root() {
        skipped("limits for another user", "only root can become another user");
    } else if has_bubblewrap("limits for another user") {
        hogs(Layers::All, Some(65_534));
    }
}

#[test]
fn shared_memory_is_bounded_for_another_user() {
    if !rustix::process::geteuid().is_root() {
        skipped("shared memory of another user", "only root can become another user");
    } else if has_bubblewrap("shared memory of another user") {
        let scene = Scene::for_user(Layers::All, Some(65_534));
        scene.repo.config("handoff.maxMemory", "100m");
        let transcript = scene.run_script(
            "shared",
            "head -c 50m /dev/zero >/dev/shm/a && echo some; head -c 90m /dev/zero >/dev/shm/b || echo no more",
        );
        assert!(transcript.contains("some\n") && transcript.contains("no more\n"), "{transcript}");
    }
}

/// Runs an item with its own settings, and returns the output.
pub(super) fn ends_by(scene: &Scene, settings: &[(&str, &str)], script: &str) -> String {
    scene.repo.env.write("hog.py", script);
    let command = format!("exec python3 {}", scene.repo.path("hog.py").display());
    scene.repo.config("handoff.subagent.hog.command", &command);
    for (key, value) in settings {
        scene.repo.config(&format!("handoff.subagent.hog.{key}"), value);
    }
    let item =
        json!({ "id": "a", "executor": "dispatch", "inputs": { "subagent": "hog" }, "maxAttempts": 1, "timeout": 240 });
    scene.drive("hog", &[item]).ends(4);
    scene.repo.item("hog", "a").reason
}

#[test]
fn a_folder_deeper_than_files_may_be_open_counts() {
    let deep = "import os, time
for i in range(90):
    os.mkdir('d')
    os.chdir('d')
for i in range(100):
    with open(str(i), 'wb') as file: file.write(bytes(1 << 20))
time.sleep(100)
";
    for layers in [Layers::None, Layers::Inner] {
        let reason = ends_by(&Scene::new(layers), &[("maxDisk", "50m"), ("maxOpenFiles", "64")], deep);
        assert_eq!(reason, "filled more than 52428800 bytes of the disk", "{layers:?}");
    }
}

#[test]
fn of_system_vs_memory_there_is_little_and_none_without_bubblewrap() {
    let asks = "python3 -c 'import ctypes
l = ctypes.CDLL(None)
l.shmget.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_int]
for what, made in [(\"page\", l.shmget(0, 4096, 0o1600)), (\"more\", l.shmget(0, 4097, 0o1600)), (\"all\", l.shmget(0, 1 << 32, 0o1600)),
                   (\"set\", l.semget(0, 32, 0o1600)), (\"sets\", l.semget(0, 33, 0o1600)), (\"queue\", l.msgget(0, 0o1600))]:
    if made >= 0: print(what)'";
    assert_eq!(Scene::new(Layers::Inner).run_script("inner", asks), "");
    if has_bubblewrap("what System V gives below bubblewrap") {
        assert_eq!(Scene::new(Layers::All).run_script("all", asks), "page\nset\nqueue\n");
    }
}

#[test]
fn kernel_limits_apply_to_the_command_alone() {
    for layers in [Layers::None, Layers::Inner, Layers::All] {
        let scene = Scene::new(layers);
        scene.repo.config("handoff.subagent.small.command", "wc -c >outputs/read");
        scene.repo.config("handoff.subagent.small.maxFileSize", "100k");
        scene.repo.config("handoff.subagent.small.maxOpenFiles", "20");
        let inputs = json!({ "subagent": "small", "text": "x".repeat(300_000) });
        scene
            .drive("small", &[json!({ "id": "a", "executor": "dispatch", "inputs": inputs, "maxAttempts": 1 })])
            .ends(0);
        let read: usize = scene.handoff(&["cat", "small/a:outputs/read"]).stdout.trim().parse().unwrap();
        assert!(read > 300_000, "{layers:?}: {read}");
    }
}

/// Chains of short-lived processes, each starting the next, for a limited time: a scan finds only
/// ended ones.
const LINES: &str = "#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int main(int count, char **words) {
    time_t end = time(0) + atoi(words[2]);
    for (int line = 0; line < atoi(words[1]); line++)
        if (!fork()) {
            setsid();
            for (int at = 0; at < 3; at++) close(at);
            while (time(0) < end) if (fork() > 0) _exit(0);
            _exit(0);
        }
    return usleep(300000);
}
";

#[test]
fn a_worker_that_forks_faster_than_it_is_found_is_ended_at_once() {
    for layers in [Layers::Inner, Layers::All] {
        let scene = Scene::new(layers);
        scene.repo.env.write("lines.c", LINES);
        if scene.repo.env.shell("", "gcc -o lines lines.c").status != Some(0) {
            return skipped("lines of processes", "gcc is not installed");
        }
        let layer = scene.run_script("layers", "true");
        assert_eq!(layer, "");
        let sandbox = scene.manifest("layers/a")["claims"]["sandbox"].as_str().unwrap().to_owned();
        let landlock = sandbox.split(' ').find_map(|part| part.strip_prefix("landlock:")?.parse::<u32>().ok());
        if layers == Layers::Inner && landlock.is_none_or(|version| version < 6) {
            skipped("lines of processes without bubblewrap", "Landlock is older than version 6");
            continue;
        }
        let lines = scene.repo.path("lines");
        scene.repo.config("handoff.subagent.lines.readable", lines.to_str().unwrap());
        // On a busy machine those that ended wait to be reaped, and count: their number is not what
        // this is about.
        scene.repo.config("handoff.subagent.lines.maxProcesses", "1000000");
        let began = Instant::now();
        for (id, rest, timeout) in [("ends", "echo ended", 60), ("hangs", "exec sleep 60", 2)] {
            scene.repo.config("handoff.subagent.lines.command", &format!("{} 4 25; {rest}", lines.display()));
            let item = json!({ "id": "a", "executor": "dispatch", "inputs": { "subagent": "lines" }, "maxAttempts": 1, "timeout": timeout });
            scene.drive(id, &[item]).ends(if id == "ends" { 0 } else { 4 });
            scene.repo.no_process_is_left();
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{layers:?}: {:?}", began.elapsed());
    }
}

#[test]
fn a_process_whose_first_thread_ended_is_none_that_is_gone() {
    let scene = Scene::new(Layers::None);
    let (beats, program) = (scene.repo.path("beats"), scene.repo.path("beat.py"));
    let beat = "import ctypes, sys, threading, time
def beat():
    while True:
        open(sys.argv[1], 'a').write('x')
        time.sleep(0.02)
threading.Thread(target=beat).start()
ctypes.CDLL(None).syscall(60, 0)
";
    scene.repo.env.write("beat.py", beat);
    // A worker that can kill its supervisor must not outlive it.
    let lives = format!("setsid python3 {} {} & sleep 1; kill -9 $PPID; sleep 9", program.display(), beats.display());
    scene.drive("beats", &[item("first", &lives)]).ends(4);
    let length = || std::fs::metadata(&beats).unwrap().len();
    let before = length();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(before > 0);
    assert_eq!(length(), before);
}
