//! Shared memory, control groups and scheduling: a worker has its own, and reaches nothing of the
//! machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::scene::{Layers, Scene, has_bubblewrap, skipped};

/// Returns scenes for root and another user, without and with bubblewrap.
fn scenes(what: &str) -> Vec<(Layers, Option<u32>, Scene)> {
    let all = has_bubblewrap(what).then_some(Layers::All);
    let other = rustix::process::geteuid().is_root().then_some(65_534);
    let users = std::iter::once(None).chain(other.map(Some));
    let kinds: Vec<_> =
        users.flat_map(|user| [Some(Layers::Inner), all].into_iter().flatten().map(move |l| (l, user))).collect();
    kinds.into_iter().map(|(layers, user)| (layers, user, Scene::for_user(layers, user))).collect()
}

/// Returns whether a user may make a namespace of mounts, which only bubblewrap or we do for a
/// worker.
fn mounts(user: Option<u32>) -> bool {
    let mut command = Command::new("setpriv");
    if let Some(user) = user {
        command.args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()]);
    }
    command.arg("unshare");
    if user.is_some() || !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"]).output().is_ok_and(|o| o.status.success())
}

#[test]
fn shared_memory_ends_with_the_attempt_and_that_of_others_stays() {
    for (layers, user, scene) in scenes("shared memory") {
        if layers == Layers::Inner && !mounts(user) {
            skipped("shared memory without bubblewrap", "no namespace of mounts can be made");
            continue;
        }
        let [mine, others] = ["own", "others"].map(|name| PathBuf::from(format!("/dev/shm/{name}-{}", scene.victim())));
        fs::write(&others, "mine").unwrap();
        let script = format!(
            "ls -A /dev/shm; echo x >{0} && mkdir {0}.d && echo y >{0}.d/f && cat {0} && \
             python3 -c 'import _multiprocessing; _multiprocessing.SemLock(0, 1, 1, \"/own-{1}\", False)'; ls /dev/shm | wc -l",
            mine.display(),
            scene.victim()
        );
        assert_eq!(scene.run_script("shared", &script), "x\n3\n", "{layers:?}, {user:?}");
        assert_eq!(fs::read_to_string(&others).unwrap(), "mine", "{layers:?}, {user:?}");
        fs::remove_file(&others).unwrap();
        let left: Vec<_> = fs::read_dir("/dev/shm").unwrap().flatten().map(|entry| entry.file_name()).collect();
        let is_ours = |name: &std::ffi::OsString| name.to_string_lossy().contains(&format!("own-{}", scene.victim()));
        assert!(!left.iter().any(is_ours), "{layers:?}, {user:?}: {left:?}");
        // The next command of an attempt begins with none, too.
        assert_eq!(scene.run_script("next", "ls -A /dev/shm"), "", "{layers:?}, {user:?}");
    }
}

#[test]
fn shared_memory_is_bounded_by_the_memory_of_the_attempt() {
    if !mounts(None) {
        return skipped("the bound of shared memory", "no namespace of mounts can be made");
    }
    let scene = Scene::new(Layers::Inner);
    scene.repo.config("handoff.maxMemory", "100m");
    let transcript = scene.run_script(
        "bounded",
        "head -c 50m /dev/zero >/dev/shm/a && echo some; head -c 90m /dev/zero >/dev/shm/b 2>/dev/null || echo no more",
    );
    assert_eq!(transcript, "some\nno more\n");
}

/// A folder of shared memory that a worker is given stays visible.
#[test]
fn a_given_folder_of_shared_memory_is_there() {
    let scene = Scene::new(Layers::Inner);
    let given = tempfile::tempdir_in("/dev/shm").unwrap();
    fs::write(given.path().join("f"), "given").unwrap();
    scene.repo.config("handoff.executor.command.readable", given.path().to_str().unwrap());
    assert_eq!(scene.run_script("given", &format!("cat {}/f", given.path().display())), "given");
}

/// Java ends with an error if `/proc/self/cgroup` names a group that the mounts do not show.
#[test]
fn control_groups_are_the_workers_own_and_cannot_be_written() {
    let mounted = fs::read_to_string("/proc/self/mountinfo").unwrap();
    if !mounted.contains(" - cgroup cgroup ") {
        return skipped("control groups of version 1", "none are mounted");
    }
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    for (layers, user, scene) in scenes("control groups") {
        if layers == Layers::Inner {
            continue;
        }
        let lines = scene.run_script("groups", "grep ' - cgroup cgroup ' /proc/self/mountinfo; cat /proc/self/cgroup");
        let (mounts, groups): (Vec<_>, Vec<_>) = lines.lines().partition(|line| line.contains(" - cgroup "));
        assert!(!mounts.is_empty(), "{lines}");
        for line in mounts {
            let words: Vec<_> = line.split(' ').collect();
            assert_eq!(words[3], "/", "the mount begins at the worker's group: {line}");
        }
        assert!(groups.iter().all(|line| line.ends_with(":/")), "{groups:?}");
        // Neither the groups of others, nor a new one.
        for line in own.lines() {
            let (name, group) = line.split_once(':').unwrap().1.split_once(':').unwrap();
            let folder = Path::new("/sys/fs/cgroup").join(name);
            let Some(first) = Path::new(group).iter().nth(1).filter(|_| folder.is_dir()) else { continue };
            let folder = folder.display();
            let script = format!(
                "ls {folder} | grep -c tasks; ls {folder}/{} 2>/dev/null; mkdir {folder}/new 2>/dev/null; \
                 touch /sys/fs/cgroup/new 2>/dev/null; echo $$ >{folder}/tasks; true",
                first.display()
            );
            let transcript = scene.run_script("reach", &format!("({script}) 2>/dev/null"));
            assert_eq!(transcript, "1\n", "{user:?}: {line}");
        }
    }
}

/// `ZeroMQ` aborts if a thread's request for the usual scheduling is refused.
#[test]
fn a_thread_asks_for_the_usual_scheduling_and_others_keep_theirs() {
    let scene = Scene::new(Layers::Inner);
    let policy = || {
        let output = Command::new("chrt").arg("-p").arg(scene.victim().to_string()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let batch = Command::new("chrt").args(["--batch", "-p", "0"]).arg(scene.victim().to_string()).status().unwrap();
    assert!(batch.success());
    let before = policy();
    assert!(before.contains("SCHED_BATCH"), "{before}");
    let script = format!(
        "python3 - <<'END'\n\
         import os, threading\n\
         def usual(number): os.sched_setscheduler(number, os.SCHED_OTHER, os.sched_param(0))\n\
         thread = threading.Thread(target=lambda: usual(threading.get_native_id())); thread.start(); thread.join()\n\
         usual({0})\n\
         try: os.sched_setscheduler({0}, os.SCHED_IDLE, os.sched_param(0)); print('changed')\n\
         except PermissionError: print('refused')\n\
         END",
        scene.victim()
    );
    assert_eq!(scene.run_script("policy", &script), "refused\n");
    assert_eq!(policy(), before);
}
