//! A disk of the test's own, which can be made full at any moment.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// How large it is while it is not full, in bytes.
const SIZE: u64 = 6 << 30;

/// A file system in memory; taken away when dropped.
pub(super) struct Disk {
    at: PathBuf,
    /// Locked while the disk is full.
    full: Mutex<()>,
}

impl Disk {
    /// Mounts one, or says why that cannot be done here.
    pub(super) fn new(at: &Path) -> Option<Self> {
        let options = format!("size={SIZE}");
        let output = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "git-handoff-test"]).arg(at).output();
        let reason = match output {
            Ok(output) if output.status.success() => return Some(Self { at: at.to_owned(), full: Mutex::new(()) }),
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        eprintln!("no disk is full in this soak: that needs a file system to be mounted: {}", reason.trim());
        None
    }

    /// Leaves no more than some pages free while something happens.
    pub(super) fn full_but(&self, pages: u64, meanwhile: impl FnOnce()) {
        let _alone = self.full.lock().unwrap();
        self.resize(self.used() + pages * 4096);
        meanwhile();
        self.resize(SIZE);
    }

    fn used(&self) -> u64 {
        let output = Command::new("df").args(["--output=used", "--block-size=1"]).arg(&self.at).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().last().unwrap().trim().parse().unwrap()
    }

    /// Used space cannot be taken away, so the disk may be less full than planned.
    fn resize(&self, size: u64) {
        let options = format!("remount,size={size}");
        let _ = Command::new("mount").args(["-o", &options]).arg(&self.at).status();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.resize(SIZE);
        // Keeps the files of a failure for inspection.
        if !std::thread::panicking() {
            let _ = Command::new("umount").arg("--lazy").arg(&self.at).status();
        }
    }
}
