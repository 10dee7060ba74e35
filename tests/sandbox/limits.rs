//! Who uses more than they may fails by themselves, with the reason, and disturbs nobody.

use serde_json::{Value, json};

use super::scene::{Layers, Scene, has_bubblewrap, skipped};
use crate::common::ground::item;

/// A setting, what somebody does who does not keep to it, and what the reason says.
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
        "python3 -c 'import os\nf = os.memfd_create(\"x\")\nwhile True: os.write(f, bytes(1 << 20))'",
        "used more than 220200960 bytes of memory",
    ),
    (
        "maxDisk",
        "50m",
        "while :; do head -c 10000000 /dev/zero >$TMPDIR/$(date +%N); sleep 0.05; done",
        "filled more than 52428800 bytes of the disk",
    ),
    (
        "maxDisk",
        "60m",
        "mkdir outputs/x; while :; do head -c 10000000 /dev/zero >outputs/x/$(date +%N); sleep 0.05; done",
        "filled more than 62914560 bytes of the disk",
    ),
    ("maxOutput", "5m", "yes", "wrote more than 5242880 bytes to its output"),
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
    let scene = Scene::of(layers, user);
    let mut items: Vec<Value> = Vec::new();
    for (at, (setting, most, script, _)) in HOGS.iter().enumerate() {
        scene.ground.config(&format!("handoff.subagent.hog{at}.command"), script);
        scene.ground.config(&format!("handoff.subagent.hog{at}.{setting}"), most);
        let id = format!("hog{at}");
        items.push(
            json!({ "id": id, "executor": "dispatch", "inputs": { "subagent": id }, "maxAttempts": 1, "timeout": 120 }),
        );
    }
    // Who keeps to it is beside them all the time.
    items.extend((0..4).map(|at| item(&format!("good{at}"), "sleep 1; echo fine >outputs/x")));
    scene.drive("hogs", &items).ends(4);
    for (at, (setting, _, _, reason)) in HOGS.iter().enumerate() {
        let seen = scene.ground.item("hogs", &format!("hog{at}"));
        assert!(seen.reason.starts_with(reason), "{layers:?}, {user:?}, {setting}: {seen:?}");
    }
    for at in 0..4 {
        assert_eq!(scene.ground.item("hogs", &format!("good{at}")).status, "done");
    }
    scene.ground.no_process_is_left();
    scene.ground.passes_fsck();
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
        let scene = Scene::of(Layers::All, Some(65_534));
        scene.ground.config("handoff.maxMemory", "100m");
        let said = scene.says(
            "shared",
            "head -c 50m /dev/zero >/dev/shm/a && echo some; head -c 90m /dev/zero >/dev/shm/b || echo no more",
        );
        assert!(said.starts_with("some\n") && said.ends_with("no more\n"), "{said}");
    }
}
