"""A field of machines: a remote, clones that stand for machines, and a driver in each.

A machine has a clone, a home and a cache of its own. Machines share the account, as on a cluster, unless a trial gives them
keys of their own.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
RUN = "r"
RUN_REF = f"refs/handoff/runs/{RUN}"
PASSED = ("PATH", "LANG", "TERM")


class Failed(Exception):
    """A check of a trial that did not hold."""


def call(command, cwd=None, env=None, check=True, timeout=120):
    """Runs a command and returns what it printed; its error output is in the exception."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=timeout)
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def descendants(pid):
    """Returns the processes below a process, the nearest first."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        found.append((int(folder.name), int(fields[1])))
    below, wave = [], {pid}
    while wave:
        wave = {child for child, parent in found if parent in wave}
        below.extend(wave)
    return below


def send(pids, sign):
    """Sends a signal to processes, some of which may have ended."""
    for pid in pids:
        try:
            os.kill(pid, sign)
        except ProcessLookupError:
            pass


class Machine:
    """A clone with its caches, and the driver that works in it."""

    def __init__(self, field, name, url, options):
        self.field, self.name, self.url = field, name, url
        self.folder = field.folder / "machines" / name
        self.clone = self.folder / "clone"
        self.log = self.folder / "log"
        self.traces = field.folder / "traces" / name
        self.extra = {}
        self.process = None
        self.is_ours = False  # Whether the trial ended the driver.
        self.lock = threading.RLock()
        for folder in (self.folder, self.traces):
            folder.mkdir(parents=True)
        # Servers may be told to spoil requests; making a clone is no part of a trial.
        call(["git", "clone", "-q", *options, f"file://{field.hub}", self.clone], env=self.environment(False))
        call(["git", "remote", "set-url", "origin", url], cwd=self.clone, env=self.environment(False))

    def environment(self, traced=True):
        """Returns the environment of every command of this machine."""
        env = {name: os.environ[name] for name in PASSED if name in os.environ}
        env["PATH"] = f"{self.field.programs}:{env['PATH']}"
        env.update(HOME=str(self.field.home), XDG_CACHE_HOME=str(self.folder / "cache"), HANDOFF_ACTOR=f"agent:{self.name}")
        env.update(GIT_CONFIG_NOSYSTEM="1", **self.field.environment, **self.extra)
        if traced:
            env["GIT_TRACE2_EVENT"] = str(self.traces)
        return env

    def handoff(self, *words, check=True):
        """Runs a command of git handoff to its end and returns what it printed."""
        return call(["git", "handoff", *words], cwd=self.clone, env=self.environment(False), check=check)

    def start(self, *words, run=RUN, via="origin"):
        """Starts a driver, without a remote if `via` is None."""
        self.is_ours = False
        command = ["git-handoff", "run", run, *(["--via", via] if via else []), *words]
        path = self.environment()["PATH"]
        command[0] = shutil.which("git-handoff", path=path)
        with self.log.open("a") as log:
            log.write(f"--- started at {time.time():.3f}\n")
            log.flush()
            self.process = subprocess.Popen(
                command,
                cwd=self.clone,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def processes(self):
        return [self.process.pid, *descendants(self.process.pid)] if self.is_alive() else []

    def kill(self, whole=False):
        """Kills the driver, with `whole` also all that it started, as a power failure does. Returns false if it had ended."""
        if not self.is_alive():
            return False
        send(self.processes() if whole else [self.process.pid], signal.SIGKILL)
        self.process.wait()
        self.is_ours = True
        return True

    def restart(self, whole=False):
        """Kills the driver and starts it again, while other threads judge drivers. Returns false if it had ended."""
        with self.lock:
            return self.kill(whole) and self.start() is self

    def tell_to_end(self):
        """Sends SIGTERM to the driver."""
        self.process.terminate()
        self.is_ours = True

    def has_failed(self):
        """Returns true if the driver ended with an error, which no driver of a trial may do by itself."""
        with self.lock:
            return self.process is not None and not self.is_ours and self.process.poll() not in (None, 0)

    def pause(self):
        """Stops all processes of the machine, as a suspended one."""
        self.paused = self.processes()
        send(self.paused, signal.SIGSTOP)

    def resume(self):
        send(self.paused, signal.SIGCONT)


class Field:
    """A remote with a run, and its machines."""

    def __init__(self, folder, programs, settings=()):
        self.folder, self.programs = pathlib.Path(folder), programs
        self.home = self.folder / "home"
        self.hub = self.folder / "hub.git"
        self.url = f"file://{self.hub}"
        self.trace = self.folder / "trace"
        self.environment, self.machines = {}, []
        self.home.mkdir(parents=True)
        self.trace.touch()
        self.config = dict(
            {
                "user.name": "Trial",
                "user.email": "trial@localhost",
                "init.defaultBranch": "main",
                "handoff.sandbox": "none",
                "handoff.signingKey": str(self.folder / "key"),
                "handoff.heartbeat": "500ms",
                "handoff.lostAfter": "4s",
                "handoff.via.interval": "200ms",
                "handoff.queue.default.concurrency": "2",
                "handoff.maxCrashes": "100",
            },
            **dict(settings),
        )
        call(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "cluster", "-f", self.folder / "key"])
        self.signers = self.folder / "signers"
        self.signers.write_text('cluster namespaces="git" ' + (self.folder / "key.pub").read_text())
        for name, value in self.config.items():
            call(["git", "config", "--file", self.home / ".gitconfig", name, value])
        self.begin()

    def begin(self):
        """Makes the remote with one commit."""
        env = {"HOME": str(self.home), "PATH": os.environ["PATH"]}
        call(["git", "init", "-q", "--bare", self.hub], env=env)
        for name in ("http.receivepack", "uploadpack.allowFilter"):
            call(["git", "config", name, "true"], cwd=self.hub, env=env)
        seed = self.folder / "seed"
        call(["git", "clone", "-q", self.hub, seed], env=env)
        (seed / "file").write_text("text\n")
        for words in (["add", "."], ["commit", "-qm", "Start"], ["push", "-q", "origin", "HEAD"]):
            call(["git", *words], cwd=seed, env=env)

    def machine(self, name, *options):
        """Adds a machine, whose clone is made with options."""
        made = Machine(self, name, self.url, options)
        self.machines.append(made)
        return made

    def submit(self, machine, items, **fields):
        """Submits a run in the clone of a machine and pushes it."""
        plan = {"id": RUN, "items": items, **fields}
        (machine.clone / "plan.json").write_text(json.dumps(plan))
        machine.handoff("submit", "plan.json")
        machine.handoff("push", "origin", RUN)

    def items(self, count, seconds, **fields):
        """Returns items that say in the trace when each attempt starts and ends."""
        work = HERE / "work.sh"
        return [
            {
                "id": f"i{number}",
                "executor": "command",
                "inputs": {"command": f"sh {work} {self.trace} {seconds(number)} > outputs/out"},
                "maxAttempts": 9,
                **fields,
            }
            for number in range(count)
        ]

    def entries(self, run=RUN):
        """Returns the entries of a run, as the remote has them now."""
        reader = self.folder / "reader"
        env = {**os.environ, "HOME": str(self.home), "PATH": f"{self.programs}:{os.environ['PATH']}"}
        if not reader.exists():
            call(["git", "clone", "-q", self.hub, reader], env=env)
        ref = f"refs/handoff/runs/{run}"
        call(["git", "fetch", "-q", "origin", f"+{ref}:{ref}"], cwd=reader, env=env)
        out = call(["git", "handoff", "log", run, "--json"], cwd=reader, env=env)
        return [json.loads(line) for line in out.splitlines()]

    def wait_for(self, what, condition, seconds):
        """Waits until a condition holds."""
        until = time.monotonic() + seconds
        while not condition():
            self.expect_no_failure()
            if time.monotonic() > until:
                raise Failed(f"{what} did not happen within {seconds} s\n{self.tails()}")
            time.sleep(0.1)

    def wait_for_end(self, seconds):
        """Waits until every driver has ended."""
        self.wait_for("the end of all drivers", lambda: not any(one.is_alive() for one in self.machines), seconds)
        self.expect_no_failure()

    def expect_no_failure(self):
        """Fails if a driver ended with an error."""
        for one in self.machines:
            if one.has_failed():
                raise Failed(f"the driver of {one.name} ended with {one.process.returncode}\n{self.tails()}")

    def tails(self):
        """Returns the last lines of every driver that was started."""
        logs = [one.log for one in self.machines if one.log.exists()]
        return "\n".join(f"== {log}\n" + "\n".join(log.read_text().splitlines()[-6:]) for log in logs)

    def close(self):
        """Ends what the field started."""
        for machine in self.machines:
            if machine.is_alive():
                left = machine.processes()
                send(left, signal.SIGCONT)
                machine.process.terminate()
                try:
                    machine.process.wait(5)
                except subprocess.TimeoutExpired:
                    machine.kill(whole=True)
