#!/usr/bin/env python3
"""A private Slurm with two nodes on this machine: configuration, ports, state and munge of its own.

cluster.py --check           says why there can be none here, and ends with 1 then
cluster.py FOLDER COMMAND…   runs a command while it is there; FOLDER must not exist
"""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "munged", "mungekey", "munge", "unmunge")


class Failed(Exception):
    """Slurm does not do what it should."""


def missing():
    """Returns why this machine can have no Slurm, or an empty text."""
    path = os.environ["PATH"] + ":/usr/sbin"
    lacks = [name for name in PROGRAMS if not shutil.which(name, path=path)]
    if lacks:
        return f"this machine has no {', '.join(lacks)}; on Debian: apt-get install slurm-wlm munge"
    return "" if os.geteuid() == 0 else "Slurm's node daemons need root's rights"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def call(command, env):
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


class Slurm:
    """Starts a controller and two nodes, n1 and n2."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.processes = []
        for name in ("state", "spool/n1", "spool/n2", "munge"):
            (self.folder / name).mkdir(parents=True)
        self.configure()
        self.environment = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}
        self.environment["PATH"] += ":/usr/sbin"
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def configure(self):
        name, here = os.uname().nodename.split(".")[0], self.folder
        nodes = "".join(
            f"NodeName=n{n} NodeHostname={name} NodeAddr=127.0.0.1 Port={free_port()} CPUs=1 State=UNKNOWN\n" for n in (1, 2)
        )
        (here / "slurm.conf").write_text(
            f"ClusterName=trial\nSlurmctldHost={name}(127.0.0.1)\nSlurmctldPort={free_port()}\nSlurmUser=root\n"
            f"AuthType=auth/munge\nAuthInfo=socket={here}/munge/socket\nCredType=cred/munge\n"
            f"StateSaveLocation={here}/state\nSlurmdSpoolDir={here}/spool/%n\nSlurmctldPidFile={here}/controller.pid\n"
            f"SlurmdPidFile={here}/%n.pid\nSlurmctldLogFile={here}/controller.log\nSlurmdLogFile={here}/%n.log\n"
            "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSelectType=select/cons_tres\n"
            "SelectTypeParameters=CR_Core\nJobAcctGatherType=jobacct_gather/none\nMpiDefault=none\nReturnToService=2\n"
            "SchedulerParameters=sched_interval=1,sched_min_interval=100000,batch_sched_delay=0\nKillWait=5\n"
            "MinJobAge=300\nSlurmctldTimeout=30\nSlurmdTimeout=30\n"
            f"{nodes}PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO\n"
        )

    def start(self):
        munge = self.folder / "munge"
        # munged asks that no one else can write to the folders of its socket.
        for folder in (self.folder, munge):
            folder.chmod(0o755)
        call(["mungekey", "--create", "--keyfile", f"{munge}/key"], self.environment)
        self.run(
            ["munged", "--foreground", "--force", f"--key-file={munge}/key", f"--socket={munge}/socket", f"--pid-file={munge}/pid"]
            + [f"--seed-file={munge}/seed", f"--log-file={munge}/log", "--num-threads=2"],
            "munged",
        )
        self.wait("munged", lambda: (munge / "socket").exists())
        self.run(["slurmctld", "-D", "-c"], "slurmctld")
        for node in ("n1", "n2"):
            self.run(["slurmd", "-D", "-N", node], node)
        self.wait("two idle nodes", lambda: self.call("sinfo", "--noheader", "--Node", "--format=%T").split() == ["idle"] * 2)

    def run(self, command, name):
        with (self.folder / f"{name}.out").open("w") as log:
            self.processes.append(subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL))

    def wait(self, what, condition, seconds=30):
        until = time.monotonic() + seconds
        while True:
            try:
                if condition():
                    return
            except Failed:
                pass
            if time.monotonic() > until:
                logs = "\n".join(f"== {log}\n{log.read_text()[-600:]}" for log in self.folder.glob("*.out"))
                raise Failed(f"{what}: not within {seconds} s\n{logs}")
            time.sleep(0.1)

    def call(self, *command, **environment):
        """Runs a command to its end and returns what it printed."""
        return call(list(command), {**self.environment, **environment})

    def jobs(self):
        """Returns the states of all jobs that have not ended."""
        return self.call("squeue", "--noheader", "--array", "--format=%T").split()

    def close(self):
        if self.processes:
            subprocess.run(["scancel", "--user", "root"], env=self.environment, capture_output=True)
            time.sleep(0.5)
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def main():
    why = missing()
    if sys.argv[1:] == ["--check"]:
        print(why)
        return 1 if why else 0
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    slurm = Slurm(sys.argv[1])
    try:
        return subprocess.run(sys.argv[2:], env=slurm.environment).returncode
    finally:
        slurm.close()


if __name__ == "__main__":
    sys.exit(main())
