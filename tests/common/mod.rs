//! The environment that commands are tested in: nothing of the machine's but the programs, a clock
//! that advances one second a command, one signing key. Commit ids are therefore the same
//! everywhere, and a changed byte of the format shows.

pub(crate) mod answers;
pub(crate) mod chain_builder;
pub(crate) mod clone;
pub(crate) mod counting;
pub(crate) mod forge;
pub(crate) mod part;
pub(crate) mod repo;
pub(crate) mod report;

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::StatVfsMountFlags;
use tempfile::TempDir;

/// The day of the first command in June 2026, and its second on that day: two o'clock.
const START: (u32, u32) = (4, 2 * 60 * 60);

/// A signing key that everybody knows.
pub(crate) const KEY: &str = include_str!("../fixtures/signing_key");

/// The memory that the tests' folders may need, in bytes.
const ROOM: u64 = 4 << 30;

/// Makes a folder that is removed when dropped.
///
/// Uses memory if there is enough, unless `TMPDIR` is set, because flushing thousands of small
/// files dominates the tests otherwise.
pub(crate) fn folder() -> TempDir {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    let place = PLACE.get_or_init(|| {
        let memory = Path::new("/dev/shm");
        let fits = rustix::fs::statvfs(memory).is_ok_and(|found| {
            let unfit = StatVfsMountFlags::NOEXEC | StatVfsMountFlags::RDONLY;
            found.f_bavail.saturating_mul(found.f_frsize) >= ROOM && !found.f_flag.intersects(unfit)
        });
        let chosen = std::env::var_os("TMPDIR").is_some();
        if fits && !chosen { memory.to_owned() } else { std::env::temp_dir() }
    });
    tempfile::Builder::new().prefix("git-handoff-test.").tempdir_in(place).expect("a temporary folder")
}

/// A folder with a home and repositories in it, removed when dropped.
pub(crate) struct Environment {
    root: TempDir,
    path: PathBuf,
    commands: AtomicU32,
}

impl Environment {
    /// Makes an environment without a repository.
    pub(crate) fn empty() -> Self {
        Self::in_folder(folder())
    }

    /// Makes one on a disk, below the folder of all temporary files, where everybody may look.
    pub(crate) fn on_disk() -> Self {
        let root = tempfile::Builder::new().prefix("git-handoff-test.").tempdir_in("/tmp").expect("a temporary folder");
        Self::in_folder(root)
    }

    fn in_folder(root: TempDir) -> Self {
        let path = root.path().canonicalize().expect("it exists");
        let env = Self { root, path, commands: AtomicU32::new(0) };
        fs::create_dir_all(env.path().join("home")).expect("the folder is new");
        env.write("home/signing_key", KEY);
        let own = fs::Permissions::from_mode(0o600);
        fs::set_permissions(env.path().join("home/signing_key"), own).expect("the mode can be set");
        // The programs of this machine would change every commit id.
        let text = format!(
            "[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n\
             [maintenance]\n\tauto = false\n\
             [handoff]\n\tsigningKey = {0}/home/signing_key\n\tsandbox = none\n\trecordProgram = false\n[handoff \"workspace\"]\n\troot = {0}/worktrees\n",
            env.path().display()
        );
        env.write("home/gitconfig", &text);
        env
    }

    /// Makes an environment with the repository of one of the examples in `repo/`.
    pub(crate) fn example(name: &str) -> Self {
        Self::example_with(name, &[])
    }

    /// Makes such an environment whose repository is made with more options of `git init`.
    pub(crate) fn example_with(name: &str, init: &[&str]) -> Self {
        let env = Self::empty();
        let example = examples().join(name);
        let repo = env.repo();
        copy_tree(&example.join("repository"), &repo);
        copy_tree(&examples().join("agents"), &repo.join(".handoff"));
        fs::copy(example.join("plan.json"), repo.join("plan.json")).expect("the example has a plan");
        fs::copy(example.join("handoff.config"), repo.join(".handoff/config")).expect("the example has settings");
        env.git(["init", "--quiet"].iter().chain(init)).success();
        env.git(["config", "include.path", "../.handoff/config"]).success();
        env.git(["add", "--all"]).success();
        env.git(["commit", "--quiet", "--message", "Start"]).success();
        env
    }

    /// Returns the environment's folder.
    pub(crate) fn path(&self) -> &Path {
        debug_assert!(self.root.path().exists());
        &self.path
    }

    /// Leaves the folder where it is when this is dropped, to be looked at.
    pub(crate) fn keep(&mut self) {
        self.root.disable_cleanup(true);
    }

    /// Returns the folder of the repository.
    pub(crate) fn repo(&self) -> PathBuf {
        self.path().join("repo")
    }

    /// Writes a file, with the folders above it.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("the folder can be made");
        fs::write(path, text).expect("the file can be written");
    }

    /// Runs git in the repository.
    pub(crate) fn git<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, args: I) -> Output {
        self.git_in("repo", args)
    }

    /// Runs git in a folder.
    pub(crate) fn git_in<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, dir: &str, args: I) -> Output {
        self.run("git".as_ref(), dir, args)
    }

    /// Runs the program in the repository.
    pub(crate) fn handoff<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, args: I) -> Output {
        self.handoff_in("repo", args)
    }

    /// Runs the program in a folder.
    pub(crate) fn handoff_in<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, dir: &str, args: I) -> Output {
        self.run(program_path().as_ref(), dir, args)
    }

    /// Runs a line of shell in a folder.
    pub(crate) fn shell(&self, dir: &str, line: &str) -> Output {
        self.run("sh".as_ref(), dir, ["-c", line])
    }

    fn run<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, program: &OsStr, dir: &str, args: I) -> Output {
        let mut command = self.command(program, dir);
        command.args(args);
        self.ended(command)
    }

    /// Runs a command, with whatever was changed of it, to its end.
    pub(crate) fn ended(&self, mut command: Command) -> Output {
        let output = command.output().expect("the program can be run");
        answers::hold(&command, &output);
        let text = |bytes: &[u8]| self.normalise(&String::from_utf8_lossy(bytes));
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        Output { raw: output.stdout, stdout, stderr, status: output.status.code() }
    }

    /// Returns a command with the environment that every command of a test gets.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>, dir: &str) -> Command {
        let second = self.commands.fetch_add(1, Ordering::Relaxed);
        let (day, second) = (START.0 + (START.1 + second) / 86_400, (START.1 + second) % 86_400);
        let clock = format!("2026-06-{day:02}T{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
        let path = std::env::var_os("PATH").expect("there is a PATH");
        let own = Path::new(program_path()).parent().expect("the program lies in a folder").to_owned();
        // A test can put programs of its own into the folder `programs`.
        let first = [own, self.path().join("programs")].into_iter();
        let path = std::env::join_paths(first.chain(std::env::split_paths(&path))).expect("paths join");
        let mut command = spawned(program.as_ref(), &path);
        command
            .current_dir(self.path().join(dir))
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.path().join("home"))
            .env("LANG", "C")
            .env("TZ", "UTC")
            .env("NO_COLOR", "1")
            .env("COLUMNS", "100")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", self.path().join("home/gitconfig"))
            // Nothing outside the test's folder is ever taken for its repository.
            .env("GIT_CEILING_DIRECTORIES", self.path())
            .env("GIT_AUTHOR_DATE", format!("{clock}Z"))
            .env("GIT_COMMITTER_DATE", format!("{clock}Z"))
            .env("HANDOFF_CLOCK", format!("{clock}.000Z"))
            .env("HANDOFF_ACTOR", "human:ada")
            .stdin(Stdio::null());
        command
    }

    fn normalise(&self, text: &str) -> String {
        text.replace(self.path().to_str().expect("temporary folders have plain names"), "$TEST")
    }
}

/// Returns a command that is not looked up by the name of its program.
///
/// A program that is looked up under another environment is started by a copy of this process, and
/// copying the memory of some thousand tests took most of their time. See [`Command`] and
/// `posix_spawn`.
pub(crate) fn spawned(program: &OsStr, path: &OsStr) -> Command {
    let is_program = |file: &PathBuf| fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0);
    let is_name = !program.as_encoded_bytes().contains(&b'/');
    let found = std::env::split_paths(path).map(|folder| folder.join(program)).find(is_program);
    let mut command = Command::new(found.filter(|_| is_name).as_deref().unwrap_or(Path::new(program)));
    command.arg0(program);
    command
}

/// Returns an environment in which the example has run.
pub(crate) fn finished() -> Environment {
    let env = Environment::example("handoff-dag");
    env.handoff(["submit", "plan.json"]).success();
    env.handoff(["run", "handoff-dag-1"]).success();
    env
}

/// The output and exit status of a command.
#[must_use = "compare the output with a snapshot, or say what it must be"]
pub(crate) struct Output {
    /// Standard output, exact bytes.
    pub(crate) raw: Vec<u8>,
    /// Standard output as text, with the folder's name removed.
    pub(crate) stdout: String,
    /// Standard error as text, with the folder's name removed.
    pub(crate) stderr: String,
    /// The exit code.
    pub(crate) status: Option<i32>,
}

impl Output {
    /// Fails the test unless the command ended with 0; returns what it printed.
    #[track_caller]
    pub(crate) fn success(self) -> String {
        self.exit(0).stdout
    }

    /// Fails the test unless the command ended with this exit code, whatever its output.
    #[track_caller]
    pub(crate) fn ends(self, code: i32) {
        assert_eq!(self.status, Some(code), "\n{self}");
    }

    /// Fails the test unless the command ended with this exit code.
    #[track_caller]
    pub(crate) fn exit(self, code: i32) -> Self {
        assert_eq!(self.status, Some(code), "\n{self}");
        self
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.stdout)?;
        if !self.stderr.is_empty() {
            write!(f, "------- stderr -------\n{}", self.stderr)?;
        }
        match self.status {
            Some(0) => Ok(()),
            Some(code) => writeln!(f, "[exit status: {code}]"),
            None => writeln!(f, "[ended by a signal]"),
        }
    }
}

/// Compares an output with the snapshot that stands behind it, or, where that is long, in the file
/// of a name in `snapshots/`.
macro_rules! assert_output {
    ($output:expr, @$snapshot:literal) => {
        insta::assert_snapshot!($output, @$snapshot)
    };
    ($name:expr, $output:expr) => {
        insta::with_settings!({
            snapshot_path => concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots"),
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!($name, $output);
        })
    };
}
pub(crate) use assert_output;

/// Returns true if this process runs one test alone; if not, runs the test in such a process.
///
/// For tests of what belongs to a whole process, such as its children and its memory: `cargo test`
/// runs all tests in one.
#[track_caller]
pub(crate) fn alone(test: &str) -> bool {
    const ALONE: &str = "GIT_HANDOFF_TEST_ALONE";
    if std::env::var_os(ALONE).is_some_and(|name| name == test) {
        return true;
    }
    let program = std::env::current_exe().expect("the test binary is there");
    let output = Command::new(program).args(["--exact", test, "--include-ignored"]).env(ALONE, test).output();
    let output = output.expect("the test binary can be run");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}");
    false
}

/// Returns the folder of the examples.
pub(crate) fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// Returns the path of the program.
pub(crate) fn program_path() -> &'static str {
    env!("CARGO_BIN_EXE_git-handoff")
}

/// Returns the path of the small program that serves beside it.
pub(crate) fn attendant_path() -> &'static str {
    env!("CARGO_BIN_EXE_git-handoff-attempt")
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the folder can be made");
    for entry in fs::read_dir(from).expect("the folder can be read") {
        let entry = entry.expect("the folder can be read");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("it has a type").is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("the file can be copied");
        }
    }
}

/// Takes the objects of a repository out of their packs, for tests that change or remove the file
/// of one.
pub(crate) fn loosen(repository: &Path) {
    let objects = repository.join(".git/objects");
    let moved_packs = repository.join(".git/loosened");
    fs::create_dir_all(objects.join("pack")).expect("the folder of packs can be made");
    fs::rename(objects.join("pack"), &moved_packs).expect("the packs can be moved");
    fs::create_dir(objects.join("pack")).expect("the folder of packs can be made");
    for entry in fs::read_dir(&moved_packs).expect("the packs can be listed") {
        let path = entry.expect("the packs can be listed").path();
        if path.extension().is_some_and(|extension| extension == "pack") {
            let pack = fs::File::open(path).expect("the pack can be read");
            let mut git = Command::new("git");
            git.args(["unpack-objects", "-q"]).current_dir(repository).stdin(pack);
            assert!(git.status().expect("git runs").success(), "the pack can be unpacked");
        }
    }
    fs::remove_dir_all(moved_packs).expect("the packs can be removed");
}
