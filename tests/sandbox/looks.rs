//! Inspecting a worker's files has bounded memory and time.

use super::limits::ends_by;
use super::scene::{Layers, Scene, skipped};
use crate::common::ground::item;

/// How many kilobytes a process of ours may have had at most.
const MOST: u64 = 150_000;

/// Prints what its supervisor had at most, in kilobytes.
const PEAK: &str = "
import os
status = open('/proc/%d/status' % os.getppid()).read()
print(status.split('VmHWM:')[1].split()[0], file=open('outputs/peak', 'w'))
";

/// Runs an item that says what its supervisor had at most.
fn peak(script: &str) -> u64 {
    let scene = Scene::new(Layers::None);
    scene.ground.env.write("peak.py", &format!("{script}{PEAK}"));
    let command = format!("exec python3 {}", scene.ground.path("peak.py").display());
    scene.drive("peak", &[item("a", &command)]).ends(0);
    scene.handoff(&["cat", "peak/a:outputs/peak"]).stdout.trim().parse().unwrap()
}

#[test]
fn names_of_what_is_mapped_are_as_long_as_somebody_likes() {
    let maps = "import ctypes, os, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
top = os.getcwd()
for i in range(40):
    os.mkdir('d' * 250)
    os.chdir('d' * 250)
file = os.open('x', os.O_RDWR | os.O_CREAT)
os.write(file, bytes(4096))
for i in range(30000): libc.mmap(None, 4096, 1, 1, file, 0)
os.chdir(top)
time.sleep(3.5)
os.system('rm -r ddd*')
";
    let peak = peak(maps);
    assert!(peak < MOST, "{peak}");
}

/// Has many threads of which each has many files open, writes 60 MiB to the disk and waits.
const HANDLES: &str = "import os, resource, threading, time
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
file = os.open('x', os.O_RDWR | os.O_CREAT)
for i in range(min(most - 100, 8000)): os.dup(file)
threading.stack_size(1 << 16)
for i in range(400): threading.Thread(target=time.sleep, args=(200,), daemon=True).start()
time.sleep(.5)
for i in range(60):
    with open('f%d' % i, 'wb') as file: file.write(bytes(1 << 20))
time.sleep(200)
";

#[test]
fn whoever_has_more_open_than_can_be_looked_at_is_held_to_the_limits() {
    let filled = "filled more than 52428800 bytes of the disk";
    let hidden = "kept what it has on the disk or in memory from being counted, of which it may have 52428800 bytes";
    for layers in [Layers::None, Layers::Inner] {
        let reason = ends_by(&Scene::new(layers), &[("maxDisk", "50m")], HANDLES);
        // Where all threads of a process have the same files open, there is little to look at.
        assert!(reason == filled || layers == Layers::None && reason == hidden, "{layers:?}: {reason}");
    }
}

const OWN_FILES: &str = "#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static int thread(void *nothing) { syscall(SYS_exit, 0); return 0; }
static void *ordinary(void *nothing) { return 0; }
int main(void) {
    pthread_t id;
    if (!pthread_create(&id, 0, ordinary, 0) && !pthread_join(id, 0)) puts(\"ordinary\");
    if (!syscall(SYS_close_range, 1000, 1001, 0)) puts(\"close\");
    if (!unshare(CLONE_FILES)) puts(\"unshare\");
    if (!syscall(SYS_close_range, 1000, 1001, 2)) puts(\"close apart\");
    char *stack = malloc(1 << 16);
    if (clone(thread, stack + (1 << 16), CLONE_VM | CLONE_SIGHAND | CLONE_THREAD, 0) > 0) puts(\"clone\");
    usleep(100000);
    return 0;
}
";

#[test]
fn no_thread_inside_has_files_of_its_own() {
    let layers =
        [(Layers::None, "ordinary\nclose\nunshare\nclose apart\nclone\n"), (Layers::Inner, "ordinary\nclose\n")];
    for (layers, says) in layers {
        let scene = Scene::new(layers);
        if scene.ground.env.shell("", "gcc --version").status != Some(0) {
            return skipped("files of threads", "gcc is not installed");
        }
        let made = format!("cat >own.c <<'END'\n{OWN_FILES}END\ngcc -pthread -o own own.c && ./own");
        assert_eq!(scene.says("own", &made), says, "{layers:?}");
    }
}
