//! Changing files during a scan hides nothing.

use super::limits::ends_by;
use super::scene::{Layers, Scene};

#[test]
fn whoever_keeps_the_disk_from_being_looked_at_is_ended() {
    // So deep that one gets back only by the name of the folder above, and always on the move
    // there.
    let moves = "import os
for i in range(145):
    for j in range(3): os.mkdir('s%d' % j)
    os.mkdir('d')
    os.chdir('d')
for name in 'ab': os.mkdir(name)
names = ['x%d' % i for i in range(20)]
for name in names:
    for j in range(40): os.makedirs('a/%s/%d' % (name, j))
for i in range(60):
    with open('a/x19/39/%d' % i, 'wb') as file: file.write(bytes(1 << 20))
while True:
    for way in ('ab', 'ba'):
        for name in names: os.rename('%s/%s' % (way[0], name), '%s/%s' % (way[1], name))
";
    let reason = ends_by(&Scene::new(Layers::None), &[("maxDisk", "50m")], moves);
    assert_eq!(reason, "filled more than 52428800 bytes of the disk");
}

#[test]
fn a_folder_that_is_renamed_whenever_it_would_be_looked_at_counts() {
    // It goes when the first of its neighbours is opened, so that it is not where it was listed.
    let renames = "import ctypes, os, threading, time
libc = ctypes.CDLL(None)
watch = libc.inotify_init()
for i in range(600): os.mkdir('z%d' % i)
listed = [name for name in os.listdir('.') if name[0] == 'z']
names, first, now = listed[:2], listed[-1], 0
os.rmdir(names[1])
libc.inotify_add_watch(watch, first.encode(), 0x20)
def guard():
    global now
    last = 0
    while True:
        os.read(watch, 65536)
        if time.time() - last > .3:
            os.rename(names[now], names[1 - now])
            now, last = 1 - now, time.time()
threading.Thread(target=guard, daemon=True).start()
folder = os.open(names[0], os.O_RDONLY)
for i in range(60):
    file = os.open('f%d' % i, os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=folder)
    os.write(file, bytes(1 << 20))
    os.close(file)
time.sleep(200)
";
    let reason = ends_by(&Scene::new(Layers::Inner), &[("maxDisk", "50m")], renames);
    assert_eq!(reason, "filled more than 52428800 bytes of the disk");
}

/// Has two folders of many, and what takes 60 MiB go from the one that is listed last to the other
/// as soon as that was listed, and back as soon as this one was.
const SHIFTS: &str = "import ctypes, os, select, struct, time
watch = ctypes.CDLL(None).inotify_init1(0o4000)
names = {}
for folder in 'AB':
    os.mkdir(folder)
    for i in range(2000): os.mkdir('%s/%d' % (folder, i))
    names[ctypes.CDLL(None).inotify_add_watch(watch, folder.encode(), 0x20)] = folder
def opened(wait):
    if not select.select([watch], [], [], wait)[0]: return []
    found, at, of = os.read(watch, 1 << 16), 0, []
    while at < len(found):
        which, _, _, length = struct.unpack_from('iIII', found, at)
        # What lies in a folder is opened once that was listed.
        of += [names[which] for _ in range(length > 0 and which in names)]
        at += 16 + length
    return of
first = None
while not first: first = next(iter(opened(5)), None)
second = 'AB'.replace(first, '')
while opened(.5): pass
fill(second)
end = time.time() + 60
while time.time() < end:
    if first in opened(1):
        shift(second, first)
        while second not in opened(1): pass
        shift(first, second)
        while opened(.02): pass
";

const RENAMES: &str = "def fill(folder):
    os.mkdir(folder + '/big')
    for i in range(60):
        with open('%s/big/%d' % (folder, i), 'wb') as file: file.write(bytes(1 << 20))
def shift(a, b): os.rename(a + '/big', b + '/big')
";

/// Files of which one pair is as large as both, and the other pair has nothing.
const EMPTIES: &str = "def fill(folder):
    for i in (1, 2):
        file = os.open('%s/big%d' % (folder, i), os.O_WRONLY | os.O_CREAT)
        os.posix_fallocate(file, 0, 30 << 20)
        os.close(file)
def shift(a, b):
    for i in (1, 2): os.truncate('%s/big%d' % (a, i), 0)
    fill(b)
";

#[test]
fn what_goes_where_it_was_looked_for_already_counts() {
    for how in [RENAMES, EMPTIES] {
        for layers in [Layers::None, Layers::Inner] {
            let reason = ends_by(&Scene::new(layers), &[("maxDisk", "50m")], &format!("import os\n{how}{SHIFTS}"));
            assert_eq!(reason, "filled more than 52428800 bytes of the disk", "{layers:?}: {how}");
        }
    }
}

/// The first thread of a process is traced while another continues.
const TRACED: &str = "child = os.fork()
if child:
    time.sleep(.5)
    assert libc.ptrace(0x4206, child, 0, 0) == 0 and libc.ptrace(0x4207, child, 0, 0) == 0
    os.waitpid(child, 0x40000000)
    time.sleep(60)
    os._exit(0)
threading.Thread(target=lambda: exec(shifts, globals())).start()
time.sleep(60)
";

/// A clock of the process's own wakes it whenever it is stopped.
const WOKEN: &str = "signal.signal(signal.SIGCONT, lambda *_: None)
event, timer = (ctypes.c_char * 64)(), ctypes.c_void_p()
struct.pack_into('qii', event, 0, 0, signal.SIGCONT, 0)
assert libc.timer_create(1, event, ctypes.byref(timer)) == 0
assert libc.timer_settime(timer, 0, struct.pack('qqqq', 0, 5000000, 0, 5000000), None) == 0
exec(shifts)
";

/// Returns how an attempt ends that goes on like this where it was to stand still.
fn ends_by_going_on(layers: Layers, how: &str) -> String {
    let begin = "import ctypes, os, signal, struct, threading, time\nlibc = ctypes.CDLL(None)\n";
    let script = format!("{begin}{RENAMES}shifts = {SHIFTS:?}\n{how}");
    ends_by(&Scene::new(layers), &[("maxDisk", "50m")], &script)
}

#[test]
fn a_process_of_which_one_thread_is_stopped_does_not_stand_still() {
    for layers in [Layers::None, Layers::Inner] {
        let reason = ends_by_going_on(layers, TRACED);
        assert_eq!(reason, "filled more than 52428800 bytes of the disk", "{layers:?}");
    }
}

#[test]
fn whoever_is_woken_while_all_stand_still_is_found_or_ended() {
    let reasons = [
        "filled more than 52428800 bytes of the disk",
        "kept what it has on the disk or in memory from being counted, of which it may have 52428800 bytes",
    ];
    for layers in [Layers::None, Layers::Inner] {
        let reason = ends_by_going_on(layers, WOKEN);
        assert!(reasons.contains(&reason.as_str()), "{layers:?}: {reason}");
    }
}
