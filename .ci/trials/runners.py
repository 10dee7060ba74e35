"""Plays test runners against one added file: with the settings that `init` writes, none makes a failing check green.

The stories are in tests/protect/runners.json. Each has a repository whose check fails, files of which each makes it green
where nothing is protected, and honest work that is green with protection.
"""
import json
import os
import pathlib
import re
import shlex
import shutil

import ways

STORIES = pathlib.Path(__file__).resolve().parents[2] / "tests/protect/runners.json"
SAMPLE = ("pytest",)
# install.sh does not bring these.
OPTIONAL = ("nextest",)
LIMIT = 300


def slug(name):
    """A name without blanks."""
    return re.sub(r"\W+", "-", name)


def stories(sample=False):
    """Reads the stories, or those of the sample."""
    return [story for story in json.loads(STORIES.read_text()) if not sample or story["runner"] in SAMPLE]


class Played:
    """A repository of a story, in which git-handoff runs as a user."""

    def __init__(self, story, folder, user, handoff):
        self.story, self.folder, self.user = story, folder, user
        self.environment = environment(user, handoff)
        shutil.rmtree(folder, ignore_errors=True)

    def run(self, *command, codes=(0,)):
        log = self.user.tmp / "runner.log"
        code = self.user.run(["sh", "-c", 'exec "$@"', "sh", *command], self.folder, self.environment, timeout=LIMIT, log=log)
        text = log.read_bytes().decode(errors="replace")
        if code not in codes:
            raise RuntimeError(f"{shlex.join(command)} ended with {code}:\n{text}")
        return text

    def make(self, *options):
        """Makes the repository, with the settings that `init` writes."""
        self.folder.mkdir(parents=True)
        os.chown(self.folder, self.user.account.pw_uid, self.user.account.pw_gid)
        self.run("git", "init", "-q")
        self.run("sh", "-c", script(self.story["files"]))
        self.run("git", "add", "-A")
        self.run("git", "commit", "-q", "-m", "Start")
        self.run("git", "handoff", "init", "--yes", "--check", self.story["check"], *options)
        self.run("git", "config", "handoff.executor.command.onVerifyFail", "keep")

    def green(self, name, works):
        """Runs one item for each work, the files that it writes: which of them are green."""
        items = [{"id": f"i{at}", "executor": "command", "maxAttempts": 1, "inputs": {"command": script(files)}}
                 for at, files in enumerate(works.values())]
        plan = self.user.tmp / f"{name}.json"
        plan.write_text(json.dumps({"id": name, "items": items}))
        plan.chmod(0o644)
        # It ends with 4 if an item is red.
        self.run("git", "handoff", "run", str(plan), codes=(0, 4))
        items = json.loads(self.run("git", "handoff", "--json", "status", name))["items"]
        return {work for at, work in enumerate(works) if items[at]["status"] == "done" and not items[at].get("red")}


def environment(user, handoff):
    """The environment of a user, in which `python3` has pytest."""
    given = user.environment(handoff)
    return {**given, "PATH": f"{ways.TOOLS}/py/pytest/bin:{given['PATH']}"}


def script(files):
    """A line of shell that writes files."""
    lines = ""
    for name, text in files.items():
        folder = os.path.dirname(name) or "."
        lines += f"mkdir -p {shlex.quote(folder)} && printf %s {shlex.quote(text)} >{shlex.quote(name)} && "
    return lines + "true"


def play(story, folder, user, handoff):
    """Plays a story. Returns what is wrong, each in a sentence."""
    path = environment(user, handoff)["PATH"]
    missing = [f"{name} is not installed" for name in story["needs"] if not shutil.which(name, path=path)]
    if missing:
        return missing
    bends = {name: {name: text} for name, text in story["bends"].items()}
    bare, guarded = (Played(story, folder / name, user, handoff) for name in ("bare", "guarded"))
    bare.make("--no-protect")
    guarded.make()
    # Outside first, which fills the caches and tells rustup of its toolchain.
    check = story["check"]
    bare.run("sh", "-c", check, codes=range(1, 256))
    without = bare.green("bends", {**bends, "no change": {}})
    wrong = [f"{name} does not make `{check}` green without protection" for name in bends if name not in without]
    wrong += [f"`{check}` is green without work"] if "no change" in without else []
    wrong += [f"{name} makes `{check}` green" for name in sorted(guarded.green("bends", bends))]
    honest = guarded.green("honest", story["honest"])
    return wrong + [f"{name} is not green" for name in story["honest"] if name not in honest]
