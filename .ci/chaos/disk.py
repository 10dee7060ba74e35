"""A file system in an image on a loop device, whose power can be cut."""

import fcntl
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time

# The ioctl by which ext4 stops at once: nothing more reaches the device, neither its journal nor dirty pages.
SHUTDOWN, WITHOUT_FLUSHING = 0x8004587D, struct.pack("I", 2)

KINDS = {"journal": ((), "commit=600"), "no-journal": (("-O", "^has_journal"), "defaults")}


def call(*words, good=(0,)):
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode not in good:
        said = (done.stdout + done.stderr).decode(errors="replace").strip()
        raise RuntimeError(f"{' '.join(map(str, words))} ends with {done.returncode}: {said}")
    return done.stdout.decode(errors="replace")


class Disk:
    """An image, and the folder that it is mounted at."""

    def __init__(self, kind, image, at):
        self.kind, self.image, self.at = kind, pathlib.Path(image), pathlib.Path(at)
        self.device, self.handle = None, None
        self.at.mkdir(exist_ok=True)

    def make(self, size=64 << 20):
        with open(self.image, "wb") as file:
            file.truncate(size)
        call("mkfs.ext4", "-q", *KINDS[self.kind][0], self.image)

    def mount(self):
        self.device = call("losetup", "--find", "--show", self.image).strip()
        try:
            call("mount", "-t", "ext4", "-o", KINDS[self.kind][1], self.device, self.at)
        finally:
            # The kernel detaches it with the last mount.
            call("losetup", "--detach", self.device)
        self.handle = os.open(self.at, os.O_RDONLY)

    def mend(self):
        """Does what a start after a power cut does: without a journal, e2fsck. The mount replays a journal."""
        if self.kind == "no-journal":
            call("e2fsck", "-fy", self.image, good=(0, 1))

    def writes(self):
        """Counts the writes that reached the device."""
        return int(pathlib.Path(f"/sys/block/{os.path.basename(self.device)}/stat").read_text().split()[4])

    def cut(self):
        fcntl.ioctl(self.handle, SHUTDOWN, WITHOUT_FLUSHING)

    def users(self):
        """Returns the processes that hold the file system; only this script's are there."""
        found = set()
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                places = [os.readlink(process / "cwd"), *(os.readlink(one) for one in (process / "fd").iterdir())]
            except OSError:
                continue
            if any(place == str(self.at) or place.startswith(f"{self.at}/") for place in places):
                found.add(int(process.name))
        return found - {os.getpid()}

    def unmount(self):
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None
        for attempt in range(100):
            if subprocess.run(["umount", self.at], capture_output=True).returncode == 0:
                break
            for process in self.users() if attempt > 20 else ():
                os.kill(process, signal.SIGKILL)
            time.sleep(0.05)
        else:
            raise RuntimeError(f"{self.at} stays in use by {self.users()}")
        self.device = None

    def copy_of(self, template):
        shutil.copyfile(template, self.image)


def missing():
    """Returns why no file system can be cut here, or None."""
    if os.geteuid() != 0:
        return "it needs root's rights"
    for program in ("losetup", "mkfs.ext4", "e2fsck", "mount", "unshare"):
        if not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
            return f"there is no {program}"
    if not os.path.exists("/dev/loop-control"):
        return "there are no loop devices"
    return None
