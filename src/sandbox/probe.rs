//! Tests which layers this machine can enforce.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::thread;

use super::Sandbox;
use super::mounts::{self, Mounts, PROGRAM};
use super::overlay;
use super::policy::{self, Surroundings, joined};
use super::scratch::Over;
use super::shared_memory::SharedMemory;
use crate::model::confinement::Network;
use crate::sandbox::folder::Folder;

/// The argument that makes the program report by which layers it could confine itself.
pub const ARGUMENT: &str = "probe-sandbox";

/// The argument that makes the program test overlays.
pub const OVERLAYS: &str = "probe-overlays";

/// The argument that makes the program test whether it can mount shared memory.
pub const SHARED: &str = "probe-shared-memory";

/// The prefix of temporary folders.
const SCRATCH: &str = "probe-";

/// The file with the result.
const WORKING: &str = "working";

/// The amount of shared memory for testing whether it can be limited.
const SOME: u64 = 1 << 20;

/// The names of bubblewrap's program and package.
const NAMES: (&str, &str) = ("bwrap", "bubblewrap");

impl Sandbox {
    /// Tests what can be enforced: `program` serves as `git-handoff` does, and `path` is searched
    /// for bubblewrap.
    pub fn probe(around: Surroundings, program: Option<&Path>, path: Option<&OsString>) -> Self {
        let program = program.and_then(|program| std::fs::canonicalize(program).ok());
        let mut sandbox = Self { around, program, ..Self::none() };
        let Some(attendant) = sandbox.program.clone().filter(|_| cfg!(target_os = "linux")) else {
            sandbox.missing.push("workers are confined on Linux, by a program that can start itself again".into());
            return sandbox;
        };
        let (name, package) = NAMES;
        let bwrap = super::folders(path).iter().map(|folder| folder.join(name)).find(|file| file.is_file());
        sandbox.around.programs.extend([Some(attendant.clone()), bwrap.clone()].into_iter().flatten());
        // The folders are searched while the programs start.
        let (inner, outer) = thread::scope(|scope| {
            let inner = scope.spawn(|| layers(&output(Command::new(&attendant).arg(ARGUMENT)).ok()?));
            let outer = bwrap
                .as_deref()
                .map(|bwrap| scope.spawn(move || version(&output(Command::new(bwrap).arg("--version")).ok()?)));
            sandbox.around.look();
            (joined(inner), outer.and_then(joined))
        });
        sandbox.note_inner(inner.unwrap_or_default());
        match bwrap {
            Some(bwrap) => sandbox.outer(&attendant, bwrap, outer),
            None => sandbox.missing.push(format!("{package} is not installed (no `{name}` in PATH)")),
        }
        if sandbox.bwrap.is_none() {
            let tried = output(Command::new(&attendant).arg(SHARED));
            sandbox.mounts_shared = tried.is_ok_and(|tried| tried.status.success());
        }
        if sandbox.layers.reach_sockets() {
            sandbox.missing.push("the user's sockets are reachable, such as those of an SSH agent and of tmux".into());
        }
        sandbox
    }

    /// Notes by which layers this program confined itself.
    fn note_inner(&mut self, (landlock, seccomp): (Option<u32>, bool)) {
        (self.layers.landlock, self.layers.seccomp) = (landlock, seccomp);
        if landlock.is_none() {
            self.missing.push("the kernel has no Landlock, or it is not enabled".into());
        }
        if !seccomp {
            self.missing.push("the kernel accepts no seccomp filter".into());
        }
    }

    /// Starts this program below bubblewrap, with the machine's programs and nothing else.
    fn outer(&mut self, program: &Path, bwrap: PathBuf, version: Option<String>) {
        let map = policy::system();
        let tried = |shared: Option<u64>| {
            let mounts = Mounts {
                map: &map,
                over: &Over::default(),
                homes: &[],
                program: Some(program),
                network: Network::Loopback,
                shared,
                landlock: self.layers.landlock.is_some(),
            };
            output(Command::new(&bwrap).args(mounts::arguments(&mounts).0).args([PROGRAM, ARGUMENT]))
        };
        let mut tried_with = tried(Some(SOME));
        // bubblewrap before 0.7, or with setuid, cannot limit it.
        self.mounts_shared = tried_with.as_ref().is_ok_and(|output| layers(output).is_some());
        if !self.mounts_shared {
            tried_with = tried(None);
        }
        match (tried_with, version) {
            (Ok(output), Some(version)) if layers(&output).is_some() => {
                self.bwrap = Some(bwrap);
                self.layers.bwrap = Some(version);
            }
            (Ok(output), _) => {
                let reason = String::from_utf8_lossy(&output.stderr);
                let reason: String = reason.lines().next().unwrap_or("it says nothing").chars().take(200).collect();
                self.missing.push(format!("{} does not work here: {reason}", NAMES.1));
            }
            (Err(error), _) => self.missing.push(format!("{} does not start: {error}", NAMES.1)),
        }
    }
}

/// Runs a program without an environment.
fn output(command: &mut Command) -> io::Result<Output> {
    command.env_clear().stdin(Stdio::null()).output()
}

impl Sandbox {
    /// Returns the numbers of the folders that overlays can cover below bubblewrap.
    pub(super) fn try_overlays(&self, lowers: &[PathBuf]) -> Option<Vec<usize>> {
        let (program, bwrap) = (self.program.as_ref()?, self.bwrap.as_ref().filter(|_| !lowers.is_empty())?);
        let private = &self.around.private;
        DirBuilder::new().mode(0o700).recursive(true).create(private).ok()?;
        let scratch = tempfile::Builder::new().prefix(SCRATCH).tempdir_in(private).ok()?.keep();
        let mut command = Command::new(program);
        command.arg(OVERLAYS).args([bwrap.as_os_str(), scratch.as_os_str()]).args(lowers);
        let ended = output(&mut command);
        let works = ended.is_ok_and(|ended| ended.status.success());
        let working = std::fs::read_to_string(scratch.join(WORKING)).ok().filter(|_| works);
        // Leftovers are a few empty folders.
        let name = scratch.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let _ = Folder::open(private).and_then(|root| root.remove(name));
        Some(working?.lines().filter_map(|line| line.parse().ok()).collect())
    }
}

/// Tests which overlays can be mounted and used below bubblewrap. This is the process's whole life.
pub(crate) fn overlays(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let mut tried = || {
        let bwrap = arguments.next()?;
        let (scratch, working) = overlay::try_out(&mut arguments)?;
        let [_, _, on] = overlay::folders(&scratch, *working.first()?);
        let numbers: Vec<String> = working.iter().map(usize::to_string).collect();
        std::fs::write(scratch.join(WORKING), numbers.join("\n")).ok()?;
        let program = std::fs::read_link("/proc/self/exe").ok()?;
        let mut below = Command::new(bwrap);
        below.args(["--unshare-pid", "--ro-bind", "/", "/", "--bind"]).args([&on, &on]).arg("--").arg(program);
        let ended = output(below.arg("--version")).ok()?;
        ended.status.success().then_some(())
    };
    if tried().is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Tests whether shared memory can be mounted. This is the process's whole life.
pub(crate) fn shared_memory() -> ExitCode {
    if (SharedMemory { most: Some(SOME) }).try_out() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The bit in the exit code for a completed test.
const ENDED: u8 = 1 << 6;
/// The bit in the exit code for working system call filters.
const REFUSING: u8 = 1 << 7;

/// Encodes the layers of a process as an exit code.
pub(crate) fn code(landlock: Option<u32>, seccomp: bool) -> u8 {
    let version = landlock.map_or(0, |version| u8::try_from(version).unwrap_or(u8::MAX).min(ENDED - 1));
    ENDED | version | if seccomp { REFUSING } else { 0 }
}

/// Decodes the result of [`code`], or returns `None` if the program did not complete.
fn layers(output: &Output) -> Option<(Option<u32>, bool)> {
    let code = u8::try_from(output.status.code()?).ok().filter(|code| code & ENDED != 0)?;
    let version = code & (ENDED - 1);
    Some(((version > 0).then_some(version.into()), code & REFUSING != 0))
}

/// Returns the version in a program's output without its last part: `0.8` for `bubblewrap 0.8.0`.
fn version(output: &Output) -> Option<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let parts: Vec<&str> = version.split('.').take(2).collect();
    parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())).then(|| parts.join("."))
}
