//! File systems that a test mounts.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mount, taken away when dropped.
pub(crate) struct Mount(PathBuf);

impl Mount {
    /// Mounts something, or says on stderr why the test cannot be done here.
    #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
    pub(crate) fn new(arguments: &[&str], at: &Path) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let output = Command::new("mount").args(arguments).arg(at).output();
        let reason = match &output {
            Ok(output) if output.status.success() => return Some(Self(at.to_owned())),
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        eprintln!("skipped: this test needs to mount a file system: {reason}");
        None
    }

    pub(crate) fn tmpfs(size: &str, at: &Path) -> Option<Self> {
        Self::new(&["-t", "tmpfs", "-o", &format!("size={size}"), "git-handoff-test"], at)
    }

    pub(crate) fn remount(&self, options: &str) {
        let status = Command::new("mount").args(["-o", &format!("remount,bind,{options}")]).arg(&self.0).status();
        assert!(status.unwrap().success());
    }

    /// Changes options of the file system itself.
    pub(crate) fn remount_with(&self, options: &str) {
        let status = Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(&self.0).status();
        assert!(status.unwrap().success());
    }

    pub(crate) fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    /// Fills the disk but for some bytes.
    pub(crate) fn fill(&self, but: u64) {
        self.free();
        let mut file = File::create(self.filler()).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
        let full = file.metadata().unwrap().len();
        file.set_len(full.saturating_sub(but)).unwrap();
    }

    pub(crate) fn free(&self) {
        let _ = fs::remove_file(self.filler());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
