//! Inspecting a worker's files has bounded memory and time.

use super::limits::ends_by;
use super::scene::{Layers, Scene};
use crate::common::repo::item;

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
    scene.repo.env.write("peak.py", &format!("{script}{PEAK}"));
    let command = format!("exec python3 {}", scene.repo.path("peak.py").display());
    scene.drive("peak", &[item("a", &command)]).ends(0);
    scene.handoff(&["cat", "peak/a:outputs/peak"]).stdout.trim().parse().unwrap()
}

#[test]
fn names_of_mapped_files_may_have_any_length() {
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
fn limits_apply_to_an_attempt_with_many_open_files() {
    let filled = "filled more than 52428800 bytes of the disk";
    for layers in [Layers::None, Layers::Inner] {
        let reason = ends_by(&Scene::new(layers), &[("maxDisk", "50m")], HANDLES);
        assert_eq!(reason, filled, "{layers:?}");
    }
}
