#!/usr/bin/env python3
"""Runs the hooks of the plugin by hand, as agents run them, in good places and bad ones.

usage: hooks.py <plugin> <folder>       the plugin's folder; an empty folder to work in

PATH leads to git-handoff. A hook fails this if it ends with another code than 0, uses the processor for longer than SECONDS or takes
longer than its time-out, prints what it should not, or changes a repository that it should leave alone.
"""
import json
import os
import re
import pathlib
import resource
import shutil
import subprocess
import sys

SECONDS = 2
MISSING = "git-handoff is not on PATH"
# A credential, which no checkpoint may hold; in two parts, so that this file has none either.
CREDENTIAL = "ghp_0123456789abcdefghij" + "ABCDEFGHIJ012345\n"
# The events, and what agents do with their output: text for the model, or JSON.
TEXT, JSON = ("SessionStart",), ("PreCompact", "Stop")


class Hooks:
    def __init__(self, plugin, folder):
        self.plugin, self.folder = pathlib.Path(plugin).resolve(), pathlib.Path(folder).resolve()
        configured = json.loads((self.plugin / "hooks/hooks.json").read_text())["hooks"]
        assert set(configured) == set(TEXT + JSON), f"there are hooks on other events: {sorted(configured)}"
        self.hooks = {event: [hook for group in groups for hook in group["hooks"]] for event, groups in configured.items()}
        self.count = 0

    def environment(self, **more):
        home = {"HOME": str(self.folder), "XDG_CACHE_HOME": str(self.folder / "cache"), "GIT_CONFIG_NOSYSTEM": "1", "LANG": "C.UTF-8"}
        return {"PATH": os.environ["PATH"], "CLAUDE_PLUGIN_ROOT": str(self.plugin), **home, **more}

    def run(self, event, cwd, stdout=subprocess.PIPE, stdin='{"session_id": "x"}', **more):
        """Runs the hooks of an event and returns what they print on standard output and standard error."""
        said = ["", ""]
        for hook in self.hooks[event]:
            before = processor_seconds()
            done = subprocess.run(["sh", "-c", hook["command"]], cwd=cwd, env=self.environment(**more), input=stdin, stdout=stdout,
                                  stderr=subprocess.PIPE, text=True, timeout=hook["timeout"])
            assert done.returncode == 0, f"{event} in {cwd} ended with {done.returncode}: {done.stderr}"
            assert processor_seconds() - before < SECONDS, f"{event} in {cwd} used the processor for {processor_seconds() - before:.1f} s"
            said = [said[0] + (done.stdout or ""), said[1] + done.stderr]
            self.count += 1
        return said

    def silent(self, cwd, **more):
        """Fails unless all hooks print nothing there, and leave the repository as it is."""
        before = records(cwd)
        for event in TEXT + JSON:
            said = self.run(event, cwd, **more)
            assert said == ["", ""], f"{event} in {cwd} prints {said}"
        assert records(cwd) == before, f"the hooks changed {cwd}"


def processor_seconds():
    """Returns the seconds for which ended child processes used the processor."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def git(cwd, *arguments):
    return subprocess.run(["git", *arguments], cwd=cwd, check=True, capture_output=True, text=True).stdout


def records(cwd):
    """Returns the refs of a repository, and the files that `git handoff` keeps beside them."""
    found = subprocess.run(["git", "rev-parse", "--absolute-git-dir"], cwd=cwd, capture_output=True, text=True).stdout.strip()
    if not found:
        return sorted(os.listdir(cwd))
    return git(cwd, "for-each-ref"), sorted(str(path) for path in (pathlib.Path(found) / "handoff").glob("**/*"))


def repository(folder, name):
    git(folder, "init", "-q", "-b", "main", name)
    git(folder / name, "commit", "-q", "--allow-empty", "-m", "Start")
    return folder / name


def begin(cwd):
    """Saves the checkpoint that turns the hooks on."""
    subprocess.run(["git", "handoff", "checkpoint", "notes", "--state", "-"], cwd=cwd, input="x", check=True, capture_output=True, text=True)


def without(programs, folder):
    """Returns a PATH that leads to what the hooks use, except for these programs."""
    for name in ("sh", "git", "head", "tr", "sed", "git-handoff"):
        if name not in programs:
            (folder / name).symlink_to(shutil.which(name))
    return str(folder)


def bad_places(hooks, folder):
    """Runs the hooks where they have nothing to do, and where something is missing."""
    empty = folder / "empty"
    empty.mkdir()
    hooks.silent(empty)
    git(folder, "init", "-q", "unborn")
    hooks.silent(folder / "unborn")
    plain = repository(folder, "plain")
    hooks.silent(plain)
    hooks.silent(plain, stdin="")
    bare = folder / "bare"
    git(folder, "clone", "-q", "--bare", "plain", "bare")
    hooks.silent(bare)
    used = repository(folder, "worker")
    begin(used)
    hooks.silent(used, HANDOFF_ITEM="a")
    for missing in ("git-handoff", "git"):
        (folder / f"no-{missing}").mkdir()
        path = without([missing], folder / f"no-{missing}")
        for event in TEXT + JSON:
            said = hooks.run(event, used, PATH=path)
            expected = ["", ""]
            if missing == "git-handoff":
                expected[event in JSON] = f"{MISSING}: install it, or disable the plugin git-handoff\n"
            assert said == expected, f"{event} without {missing} prints {said}"


def closed_pipes(hooks, folder):
    """Runs the hooks with an output that no process reads: as they are, without the program, and when a checkpoint is refused."""
    there = repository(folder, "pipe")
    begin(there)
    for path, refused in ((os.environ["PATH"], False), (str(folder / "no-git-handoff"), False), (os.environ["PATH"], True)):
        if refused:
            (there / "key.txt").write_text(CREDENTIAL)
        for event in TEXT + JSON:
            reading, writing = os.pipe()
            os.close(reading)
            try:
                hooks.run(event, there, stdout=writing, PATH=path)
            finally:
                os.close(writing)


def use(hooks, folder):
    """Runs the hooks in a repository with a thread, as in a session."""
    used = repository(folder, "used")
    begin(used)
    (used / "draft.txt").write_text("half a sentence\n")
    said, errors = hooks.run("SessionStart", used)
    main = thread_of(said)
    assert re.fullmatch("session-main-[a-z]{6}", main) and "notes" in said and len(said.splitlines()) <= 30, said
    # The same state is saved once, whichever hook comes first.
    half, whole = "half\n", "half a sentence\n"
    for event, text in (("Stop", half), ("Stop", half), ("PreCompact", half), ("PreCompact", whole), ("Stop", whole)):
        (used / "draft.txt").write_text(text)
        said = hooks.run(event, used, HANDOFF_ACTOR="agent:tested")
        assert said == ["", ""], f"{event} prints {said}"
    log = git(used, "handoff", "thread", "log", main).splitlines()
    assert len(log) == 2 and "before compaction" in log[0] and "at stop" in log[1], log
    assert all("agent:tested" in line for line in log), log
    assert "CLEAN" in git(used, "handoff", "check", main)
    assert "?? draft.txt" in git(used, "handoff", "resume", main)
    (used / "draft.txt").unlink()
    git(used, "handoff", "resume", main, "--checkout", "--accept", "operational")
    assert (used / "draft.txt").read_text() == "half a sentence\n"
    git(used, "handoff", "thread", "verify", "--all")
    clean_trees(hooks, used, main)
    # Each branch has a thread, whatever its name is, and so has each detached work tree.
    names = {main}
    for branch in ("größer/als+mein", "groesser", "feature-login", "long" * 40 + "/a", "long" * 40 + "/b"):
        git(used, "switch", "-q", "-c", branch)
        names.add(thread_of(hooks.run("SessionStart", used)[0]))
        hooks.run("Stop", used)
    git(used, "switch", "-q", "-c", "feature/login")
    names.add(thread_of(hooks.run("SessionStart", used)[0]))
    git(used, "switch", "-q", "--detach")
    hooks.run("Stop", used)
    names.add(thread_of(hooks.run("SessionStart", used)[0]))
    git(used, "worktree", "add", "-q", "--detach", str(folder / "other"))
    other = thread_of(hooks.run("SessionStart", folder / "other")[0])
    names.add(other)
    assert len(names) == 9 and all(len(name) <= 100 for name in names), names
    threads = [line.split()[0] for line in git(used, "handoff", "thread", "list").splitlines()]
    detached = [name for name in threads if name.startswith("session-detached-")]
    assert len(threads) == 8 and len(detached) == 1 and other not in threads, threads
    assert "agent:session" in git(used, "handoff", "thread", "log", detached[0])
    # What cannot be saved is told, and saved as nothing.
    (used / "key.txt").write_text(CREDENTIAL)
    before = records(used)
    said, _ = hooks.run("Stop", used)
    told = json.loads(said)["systemMessage"]
    assert "saved no checkpoint" in told and "key.txt:1" in told, told
    assert records(used)[0] == before[0], "a refused checkpoint left something"


def thread_of(said):
    """Returns the thread that the start of a session names."""
    return re.search(r"The thread of this branch is (\S+)\.", said)[1]


def clean_trees(hooks, used, main):
    """A clean work tree is saved once for each commit."""
    def checkpoints():
        return len(git(used, "handoff", "thread", "log", main).splitlines())

    git(used, "add", ".")
    git(used, "commit", "-q", "-m", "Add the draft")
    before = checkpoints()
    for event in ("Stop", "Stop", "PreCompact"):
        hooks.run(event, used)
    assert checkpoints() == before + 1, f"a clean work tree was saved {checkpoints() - before} times"
    git(used, "commit", "-q", "--allow-empty", "-m", "Go on")
    hooks.run("Stop", used)
    assert checkpoints() == before + 2, "the next commit was not saved"


def main():
    folder = pathlib.Path(sys.argv[2])
    (folder / ".gitconfig").write_text("[user]\n\tname = CI\n\temail = ci@localhost\n")
    hooks = Hooks(sys.argv[1], folder)
    os.environ.update({key: value for key, value in hooks.environment().items() if key != "PATH"})
    for stage in (bad_places, closed_pipes, use):
        stage(hooks, folder)
    print(f"hooks: {hooks.count} calls, none failed")


if __name__ == "__main__":
    main()
