//! A repository whose workers are confined, with something to be had outside of it.

use std::fs;
use std::io::Write as _;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::repo::{TestRepo, item};
use crate::common::{Environment, Output, attendant_path, program_path, spawned};

/// The victim's environment.
pub(super) const SECRET: &str = "a-secret-of-the-victim";

/// How workers are confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layers {
    /// By nothing.
    None,
    /// By what the kernel has.
    Inner,
    /// By bubblewrap as well.
    All,
}

/// The repository, and what lies around it.
pub(super) struct Scene {
    pub(super) repo: TestRepo,
    layers: Layers,
    /// The folder of all programs but bubblewrap.
    inner: String,
    user: Option<u32>,
    victim: Child,
    terminal: Child,
    _programs: Arc<TempDir>,
    pub(super) tcp: TcpListener,
    pub(super) udp: UdpSocket,
    _sockets: [UnixListener; 2],
}

impl Scene {
    pub(super) fn new(layers: Layers) -> Self {
        Self::for_user(layers, None)
    }

    /// Makes one that belongs to another user, where we are root and can.
    pub(super) fn for_user(layers: Layers, user: Option<u32>) -> Self {
        let repo = TestRepo::in_environment(Environment::on_disk());
        let sandbox = if layers == Layers::None { "none" } else { "auto" };
        repo.config("handoff.sandbox", sandbox);
        repo.config("handoff.queue.default.concurrency", "2");
        let env = &repo.env;
        env.write("home/.gitconfig", &settings(env));
        // We look at what is another user's.
        env.write("home/gitconfig", &format!("{}[safe]\n\tdirectory = *\n", settings(env)));
        for (path, text) in [
            ("home/.ssh/id_ed25519", "SECRET"),
            ("home/.netrc", "SECRET"),
            ("home/.bashrc", "# nothing\n"),
            ("home/.aws/credentials", "SECRET"),
            ("home/.tool/login", "SECRET"),
            ("home/.cache/pip/cached", "mine"),
            ("home/.cache/pip/wheels/wheel", "mine"),
            ("beside/file", "SECRET"),
            ("tools/bin/hello", "#!/bin/sh\necho hello\n"),
        ] {
            env.write(path, text);
        }
        fs::set_permissions(repo.path("tools/bin/hello"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(repo.path("bin")).unwrap();
        let programs = programs();
        let by_path = UnixListener::bind(repo.path("beside/socket")).unwrap();
        let name = SocketAddr::from_abstract_name(abstract_name(&repo)).unwrap();
        let by_name = UnixListener::bind_addr(&name).unwrap();
        if let Some(user) = user {
            // The folder is new, and nothing in it leads out.
            let owner = format!("{user}:{user}");
            assert!(Command::new("chown").args(["-R", &owner]).arg(repo.path("")).status().unwrap().success());
        }
        for program in fs::read_dir(programs.path().join("bin")).unwrap() {
            let program = program.unwrap();
            fs::hard_link(program.path(), repo.path("bin").join(program.file_name())).unwrap();
        }
        let inner = programs.path().join("inner").to_str().unwrap().to_owned();
        let mut victim = Command::new("sleep");
        victim.arg("600").env("VICTIM", SECRET).stdin(Stdio::null());
        let victim = as_user(victim, user).spawn().unwrap();
        // A terminal with an idle user.
        let mut terminal = Command::new("script");
        terminal.args(["-q", "-c", "exec sleep 600", "/dev/null"]).current_dir("/");
        terminal.stdin(Stdio::piped()).stdout(Stdio::null());
        let terminal = as_user(terminal, user).spawn().unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_nonblocking(true).unwrap();
        Self {
            repo,
            layers,
            inner,
            user,
            victim,
            terminal,
            _programs: programs,
            tcp,
            udp,
            _sockets: [by_path, by_name],
        }
    }

    /// Gives the scene programs of its own, for a worker that may succeed in writing to them.
    pub(super) fn copy_programs(&self) {
        for program in [program_path(), attendant_path()] {
            let place = self.repo.path("bin").join(Path::new(program).file_name().unwrap());
            fs::remove_file(&place).unwrap();
            copy_to(&[program], &place);
        }
    }

    /// Returns an abstract socket with a listener.
    pub(super) fn abstract_name(&self) -> String {
        abstract_name(&self.repo)
    }

    /// Returns the id of an unrelated process.
    pub(super) fn victim(&self) -> u32 {
        self.victim.id()
    }

    /// Returns the path of the user's terminal.
    pub(super) fn terminal(&self) -> String {
        loop {
            let pid = self.terminal.id();
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
            let input = children.split_whitespace().find_map(|child| fs::read_link(format!("/proc/{child}/fd/0")).ok());
            if let Some(path) = input.filter(|input| input.starts_with("/dev/pts")) {
                return path.to_str().unwrap().to_owned();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns whether it still lives, and is not stopped.
    pub(super) fn victim_is_well(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/stat", self.victim())).unwrap();
        matches!(status.rsplit_once(") ").unwrap().1.chars().next(), Some('S' | 'R'))
    }

    /// Returns the folders to look for programs in.
    pub(super) fn path(&self) -> &str {
        if self.layers == Layers::Inner { &self.inner } else { "/usr/local/bin:/usr/bin:/bin" }
    }

    /// Runs the program as whom the repository belongs to.
    pub(super) fn handoff(&self, args: &[&str]) -> Output {
        self.handoff_where(args, &[])
    }

    /// Runs it with other variables in its environment.
    pub(super) fn handoff_where(&self, args: &[&str], variables: &[(&str, &str)]) -> Output {
        // With an unrelated file open.
        let mut command = self.repo.env.command("sh", "repo");
        command.args(["-c", "exec 9</dev/null; exec \"$@\"", "sh"]).arg(self.repo.path("bin/git-handoff"));
        command.args(args).env_remove("GIT_CONFIG_GLOBAL").env("PATH", self.path()).envs(variables.iter().copied());
        let output = as_user(command, self.user).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        Output { raw: output.stdout, stdout, stderr, status: output.status.code() }
    }

    /// Runs items to their end and returns the output of the command.
    pub(super) fn drive(&self, run: &str, items: &[Value]) -> Output {
        let plan = self.repo.plan(run, items);
        self.handoff(&["run", &plan])
    }

    /// Runs one line of shell and returns what it wrote.
    #[track_caller]
    pub(super) fn run_script(&self, run: &str, script: &str) -> String {
        let output = self.drive(run, &[item("a", script)]);
        let written = self.handoff(&["cat", &format!("{run}/a:transcript")]).stdout;
        assert_eq!(output.status, Some(0), "{output}{written}");
        written
    }

    /// Returns what the manifest of an item says.
    pub(super) fn manifest(&self, piece: &str) -> Value {
        serde_json::from_str(&self.handoff(&["cat", &format!("{piece}:manifest")]).success()).unwrap()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for child in [&mut self.victim, &mut self.terminal] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns a folder where everybody may look, with our programs, which the scenes link to, and with
/// links to all others but bubblewrap: the first are large with debug information, the others
/// many, and scenes are many, too. It is removed with the last scene.
fn programs() -> Arc<TempDir> {
    static FOLDER: Mutex<Weak<TempDir>> = Mutex::new(Weak::new());
    let mut shared = FOLDER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(folder) = shared.upgrade() {
        return folder;
    }
    let folder = tempfile::Builder::new().prefix("git-handoff-programs.").tempdir_in("/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["bin", "inner"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    copy_to(&[program_path(), attendant_path()], &folder.path().join("bin"));
    without_bubblewrap(&folder.path().join("inner"));
    let folder = Arc::new(folder);
    *shared = Arc::downgrade(&folder);
    folder
}

/// Copies programs by another process: a concurrent test's child could otherwise hold a copy open
/// for writing, and the copy could not be started.
fn copy_to(programs: &[&str], place: &Path) {
    assert!(Command::new("cp").args(programs).arg(place).status().unwrap().success());
}

/// Returns all that is below a folder: names, kinds, modes, times and contents.
pub(super) fn tree(folder: &Path) -> Vec<String> {
    let script = "cd \"$1\" && find . -printf '%p %y %m %u %n %s %T@ %C@ %l\\n' | sort && find . -type f | sort | xargs -r sha256sum && \
                  getfattr -Rdhm - . 2>/dev/null; true";
    let listed = Command::new("sh").args(["-c", script, "sh"]).arg(folder).output().unwrap();
    assert!(!listed.stdout.is_empty(), "{listed:?}");
    String::from_utf8(listed.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn abstract_name(repo: &TestRepo) -> String {
    format!("victim-{}", repo.path("").file_name().unwrap().to_str().unwrap())
}

fn settings(env: &Environment) -> String {
    format!(
        "[user]\n\tname = Ada\n\temail = ada@example.com\n[maintenance]\n\tauto = false\n[handoff]\n\tsigningKey = {0}/home/signing_key\n\
         [handoff \"workspace\"]\n\troot = {0}/worktrees\n",
        env.path().display()
    )
}

/// Returns a command that runs as another user.
fn as_user(command: Command, user: Option<u32>) -> Command {
    let Some(user) = user else { return command };
    let mut other = spawned("setpriv".as_ref(), &std::env::var_os("PATH").unwrap());
    let id = |what: &str| format!("--{what}={user}");
    other.args([id("reuid"), id("regid"), "--clear-groups".to_owned(), "--".to_owned()]);
    other.arg(command.get_program()).args(command.get_args()).env_clear();
    other.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    other.current_dir(command.get_current_dir().unwrap_or(Path::new("/"))).stdin(Stdio::null());
    other
}

/// Fills a folder with links to all programs but bubblewrap.
fn without_bubblewrap(folder: &Path) {
    for from in ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from) {
        for entry in fs::read_dir(from).unwrap().flatten().filter(|entry| entry.file_name() != "bwrap") {
            // The first of a name is the one that counts, as in PATH.
            let _ = std::os::unix::fs::symlink(entry.path(), folder.join(entry.file_name()));
        }
    }
}

/// Returns whether bubblewrap can be used here; where it cannot, says loudly what is not tried.
pub(crate) fn has_bubblewrap(what: &str) -> bool {
    let tried = Command::new("bwrap").args(["--unshare-pid", "--ro-bind", "/", "/", "true"]).output();
    let works = tried.is_ok_and(|output| output.status.success());
    if !works {
        skipped(what, "bubblewrap is not installed, or does not work here");
    }
    works
}

/// Says loudly what was not tried, past whatever keeps what tests print; who has it all can insist
/// on it.
pub(super) fn skipped(what: &str, why: &str) {
    assert!(std::env::var_os("HANDOFF_TEST_SANDBOX").is_none(), "NOT TRIED: {what}: {why}");
    let line = format!("NOT TRIED: {what}: {why}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// Returns whether a folder lies on ext4.
pub(super) fn is_ext4(folder: &Path) -> bool {
    rustix::fs::statfs(folder).unwrap().f_type == 0xEF53
}
