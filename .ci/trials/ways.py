"""The ways in which a trial runs a command: as which user, inside or outside of an item, with bubblewrap or without."""
import contextlib
import fcntl
import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import time

BASE = pathlib.Path(os.environ.get("TRIAL_DIR", "/var/cache/git-handoff-trial"))
TOOLS = pathlib.Path(os.environ.get("TRIAL_TOOLS", "/opt/git-handoff-trial/tools"))
ACCOUNT = "handoff-trial"
SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The clients' own configuration: which registry they ask, by which proxy, and whose certificates they accept.
CLIENTS = (".npmrc", ".config/pip/pip.conf", ".pip/pip.conf", ".cargo/config.toml", ".config/uv/uv.toml")
PASSED = ("PIP_", "UV_", "NPM_CONFIG_", "npm_config_", "CARGO_HTTP_", "CARGO_REGISTRIES_")
ENDINGS = ("_CA_BUNDLE", "_CA_CERTS", "_CAINFO", "_CERT_FILE", "_CERT_DIR", "_proxy", "_PROXY")
# In a mount namespace of its own: the account's home is that of the trial, as Java asks no variable, and a device hides each program
# named, as it is none.
MOUNT = 'mount --bind "$1" /etc/passwd && for f in $2; do mount --bind /dev/null "$f" || exit; done; shift 2; exec "$@"'


class User:
    """An account that takes part in a trial, with a home directory and a folder of its own."""

    def __init__(self, name, trial):
        self.name = name
        self.account = pwd.getpwnam(name if name == "root" else ACCOUNT)
        self.folder = BASE / trial / name
        self.home = self.folder / "home"
        self.tmp = self.folder / "tmp"
        self.passwd = self.folder / "passwd"

    def make(self):
        """Makes the folders, and gives the home what a developer's has: git's identity, Rust, the clients' configuration."""
        shutil.rmtree(self.tmp, ignore_errors=True)
        is_new = not self.home.exists()
        for folder in (self.folder, self.home, self.tmp):
            folder.mkdir(parents=True, exist_ok=True)
        real = pathlib.Path(pwd.getpwuid(0).pw_dir)
        for name in CLIENTS:
            if (real / name).is_file():
                (self.home / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(real / name, self.home / name)
        (self.home / ".gitconfig").write_text("[user]\n\tname = Trial\n\temail = trial@localhost\n")
        lines = [line.split(":") for line in pathlib.Path("/etc/passwd").read_text().splitlines()]
        lines = [[*line[:5], str(self.home), line[6]] if line[0] == self.account.pw_name else line for line in lines]
        self.passwd.write_text("".join(":".join(line) + "\n" for line in lines))
        self.give_rust(real)
        # The files of the toolchain are links to those of another home directory: only what is not shared changes hands.
        own = f"{self.account.pw_uid}:{self.account.pw_gid}"
        subprocess.run(["find", self.folder if is_new else self.tmp, "(", "-links", "1", "-o", "-type", "d", ")", "-exec", "chown", "-h", own, "{}", "+"], check=True)

    def give_rust(self, real):
        """Links the default toolchain of the account that runs this into the home directory."""
        cargo = shutil.which("cargo", path=f"{real}/.cargo/bin")
        if not cargo or (self.home / ".rustup").exists():
            return
        root = subprocess.run(["rustc", "--print", "sysroot"], check=True, capture_output=True, text=True).stdout.strip()
        toolchain = self.home / ".rustup/toolchains" / pathlib.Path(root).name
        toolchain.parent.mkdir(parents=True)
        (self.home / ".cargo/bin").mkdir(parents=True, exist_ok=True)
        for source, target in ((root, toolchain), (f"{real}/.cargo/bin/.", self.home / ".cargo/bin")):
            if subprocess.run(["cp", "-al", source, target], stderr=subprocess.DEVNULL).returncode != 0:
                subprocess.run(["cp", "-a", source, target], check=True)
        settings = f'version = "12"\nprofile = "minimal"\ndefault_toolchain = "{toolchain.name}"\n'
        (self.home / ".rustup/settings.toml").write_text(settings)

    def environment(self, handoff, more=None):
        """The whole environment of a command: a login's, and the clients' configuration."""
        postgres = sorted(str(path) for path in pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
        path = [str(handoff), str(TOOLS / "bin"), f"{self.home}/.cargo/bin", f"{self.home}/.npm-global/bin", SYSTEM, *postgres]
        kept = {k: v for k, v in os.environ.items() if k.startswith(PASSED) or k.endswith(ENDINGS)}
        kept.update({k: v for k, v in os.environ.items() if k == "NODE_EXTRA_CA_CERTS" or k.startswith("SSL_CERT")})
        login = {"HOME": str(self.home), "USER": self.account.pw_name, "LOGNAME": self.account.pw_name, "SHELL": "/bin/bash",
                 "LANG": "C.UTF-8", "TERM": "xterm", "PATH": ":".join(path)}
        return {**kept, **login, **(more or {})}

    def run(self, command, cwd, environment, hidden=False, timeout=None, log=None):
        """Runs a command as this user and returns its exit code; what it prints goes to the file `log`."""
        found = filter(os.path.exists, (f"{folder}/bwrap" for folder in SYSTEM.split(":"))) if hidden else []
        line = ["unshare", "--mount", "sh", "-c", MOUNT, "mount", self.passwd, " ".join(found)]
        if self.account.pw_uid != 0:
            line += ["setpriv", f"--reuid={self.account.pw_uid}", f"--regid={self.account.pw_gid}", "--init-groups"]
        with open(log or os.devnull, "wb") as out:
            if log:
                os.chown(log, self.account.pw_uid, self.account.pw_gid)
            child = subprocess.Popen(line + command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                     stderr=subprocess.STDOUT, start_new_session=True)
            try:
                return child.wait(timeout)
            except subprocess.TimeoutExpired:
                out.write(b"timed out\n")
                return 124
            finally:
                # It leads a process group of its own: what it started in there ends with it.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()


def start(trial):
    """Keeps a second trial out of the same folders until this process ends."""
    if os.geteuid() != 0:
        sys.exit("this needs root's rights: it installs packages and runs as two users")
    BASE.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    start.lock = open(BASE / f"{trial}.lock", "w")
    try:
        fcntl.flock(start.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"a trial of {trial} runs below {BASE} already; TRIAL_DIR names another folder")


def users(names, trial):
    """Makes the account where it is missing, and the users' folders for this trial."""
    try:
        pwd.getpwnam(ACCOUNT)
    except KeyError:
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", ACCOUNT], check=True)
    made = [User(name, trial) for name in names]
    for user in made:
        user.make()
    return made


def binaries(trial):
    """Returns the folder of the programs, copied to where every user can read it."""
    source = os.environ.get("HANDOFF_BIN_DIR") or os.environ.get("CARGO_TARGET_DIR", "target") + "/debug"
    folder = BASE / trial / "handoff"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("git-handoff", "git-handoff-attempt"):
        if not os.access(f"{source}/{name}", os.X_OK):
            sys.exit(f"there is no program {source}/{name}: build it, or set HANDOFF_BIN_DIR")
        shutil.copyfile(f"{source}/{name}", folder / f"{name}.new")
        (folder / f"{name}.new").chmod(0o755)
        (folder / f"{name}.new").rename(folder / name)
    return folder


class Items:
    """One run of a plan in a repository: how each item ended, and what it printed."""

    def __init__(self, user, repository, environment, hidden):
        self.user, self.repository, self.environment, self.hidden = user, repository, environment, hidden
        self.name = f"t{time.time_ns()}"

    def run(self, items, timeout, jobs=2):
        plan = self.user.tmp / f"{self.name}.json"
        plan.write_text(json.dumps({"id": self.name, "items": items}))
        plan.chmod(0o644)
        self.log = self.user.tmp / f"{self.name}.log"
        self.code = self.user.run(["git", "handoff", "run", "--jobs", str(jobs), str(plan)], self.repository, self.environment,
                                  self.hidden, timeout, self.log)
        status = json.loads(self.answer("--json", "status", self.name) or "{}")
        return {item["id"]: item for item in status.get("items", [])}

    def answer(self, *arguments):
        """What `git handoff` answers; the empty text where it fails."""
        log = self.user.tmp / "answer"
        code = self.user.run(["sh", "-c", 'exec git handoff "$@" 2>/dev/null', "git", *arguments], self.repository, self.environment, log=log)
        return log.read_bytes().decode(errors="replace") if code == 0 else ""

    def product(self, item, what):
        return self.answer("cat", f"{self.name}/{item}:{what}")


def tail(text, lines=4, width=220):
    """The last lines of a text that say something."""
    kept = [line[:width] for line in text.splitlines() if line.strip()]
    return kept[-lines:]
