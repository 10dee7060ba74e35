"""The commands that `power` interrupts, what each of them reports, and what must be there afterwards."""

import collections
import json
import re
import subprocess

Step = collections.namedtuple("Step", "name words given", defaults=(None,))
Report = collections.namedtuple("Report", "step line code")

# The plans and the state are outside of the disk.
STEPS = (
    Step("submit", ["submit", "{home}/p.json"]),
    Step("run", ["run", "p", "--jobs", "2"]),
    Step("push", ["push", "origin", "p"]),
    Step("submit an open run", ["submit", "{home}/q.json"]),
    Step("doc put", ["doc", "put", "q", "note"], "words\n"),
    Step("checkpoint", ["checkpoint", "t", "--state", "{home}/state", "--worktree", "--if-changed"]),
    Step("cancel", ["cancel", "q"]),
    Step("delete", ["delete", "q", "--yes"]),
    Step("record", ["record", "--as", "w", "--", "sh", "-c", "echo recorded >recorded.txt"]),
    Step("apply", ["apply", "--commit", "p"]),
    Step("run --via", ["run", "{home}/s.json", "--via", "origin"]),
    Step("push all", ["push", "origin", "--all"]),
    Step("delete a sealed run", ["delete", "w", "--yes"]),
)


def item(name, command, *after):
    needs = {one: {"from": one, "select": {"kind": "output", "path": one}} for one in after}
    return {"id": name, "executor": "command", "inputs": {"command": command}, "needs": needs}


def home(folder):
    """Creates what is outside of the disk: git's settings, plans, the state."""
    folder.mkdir()
    (folder / ".gitconfig").write_text(
        "[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n\ttemplateDir =\n"
        "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[safe]\n\tdirectory = *\n"
    )
    names = ("a", "b", "c", "d")
    works = {name: f"seq 2000 >outputs/{name}; echo {name} >{name}.txt" for name in names}
    items = [item(name, works[name], *names[max(0, at - 1) : at]) for at, name in enumerate(names)]
    items.append(item("e", "echo e >outputs/e; echo e >e.txt"))
    for run in ("p", "s"):
        (folder / f"{run}.json").write_text(json.dumps({"id": run, "items": items}))
    (folder / "q.json").write_text(json.dumps({"id": "q", "openEnded": True, "items": [item("a", "true")]}))
    (folder / "state").write_text("state\n")


def prepare(at, hub, env):
    """Makes the repository on a new disk, and its remote."""
    script = """set -eu
    git init -q repo; git init -q --bare "$HUB"; cd repo
    git -C "$HUB" config core.fsync all
    git remote add origin "$HUB"
    seq 500 >start.txt; mkdir sub; echo x >sub/x; git add -A; git commit -qm Start; git push -q origin main
    git config handoff.heartbeat 1s
    git config handoff.lostAfter 4s
    echo mine >untracked.txt
    git handoff key >/dev/null; sync -f ."""
    done = subprocess.run(["bash", "-c", script], cwd=at, env={**env, "HUB": str(hub)}, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"cannot prepare the disk: {done.stderr}")


class Judge:
    """Compares a disk after a cut with what was reported before it."""

    def __init__(self, at, hub, env):
        self.places, self.env, self.wrong, self.behind = {"repo": at / "repo", "remote": hub}, env, [], 0
        self.hub_was_cut = hub.is_relative_to(at)

    def call(self, *words, given=None, where="repo"):
        words = [word.replace("{home}", self.env["HOME"]) for word in words]
        given = (given or "").encode()
        return subprocess.run(words, cwd=self.places[where], env=self.env, input=given, capture_output=True, timeout=900)

    def handoff(self, *words, given=None):
        return self.call("git", "handoff", *words, given=given)

    def works(self, done, about):
        if done.returncode:
            said = (done.stdout + done.stderr).decode(errors="replace").strip()
            self.wrong.append(f"{about} ends with {done.returncode}: {said[-600:]}")
        return done.returncode == 0

    def answer(self, *words):
        """Returns the JSON answer of a command, or None if it fails."""
        done = self.handoff("--json", *words)
        return json.loads(done.stdout) if done.returncode in (0, 4) and done.stdout.strip() else None

    def judge(self, reports):
        """Returns what is wrong."""
        self.objects("after the cut", strict=False)
        steps = {report.step for report in reports if report.code == 0}
        # The command that was cut may have deleted a run and not yet reported it.
        begun = steps | {step.name for step in [step for step in STEPS if step.name not in steps][:1]}
        for report in reports:
            self.compare(report, begun)
        self.compare_remote(begun)
        self.go_on(steps)
        self.objects("at the end", strict=True)
        return self.wrong

    def objects(self, when, strict):
        """Every ref can be read with all that it reaches; git's own loose objects may be cut short if no ref needs them."""
        for where in self.places:
            refs = self.call("git", "for-each-ref", where=where)
            if refs.returncode or refs.stderr:
                self.wrong.append(f"{when}, refs of the {where}: {refs.stderr.decode(errors='replace')}")
            objects = self.call("git", "rev-list", "--objects", "--all", "--quiet", where=where)
            self.works(objects, f"{when}, reading all objects of the {where}")
            # Connectivity alone passes over loose objects that no ref needs.
            fsck = ["git", "fsck", "--strict", "--no-dangling", "--no-progress"]
            fsck += [] if strict else ["--connectivity-only"]
            self.works(self.call(*fsck, where=where), f"{when}, {' '.join(fsck)} of the {where}")

    def compare_remote(self, steps):
        """The repository has every entry that it had sent to the remote."""
        for line in self.call("git", "for-each-ref", "refs/handoff/runs", where="remote").stdout.decode().splitlines():
            name, _, ref = line.split()
            if ref.endswith("/w") and "delete a sealed run" in steps:
                continue
            if self.call("git", "merge-base", "--is-ancestor", name, ref).returncode:
                self.wrong.append(f"the remote has {ref} at {name}, which is not here")

    def compare(self, report, steps):
        """What one line or the end of a command reported is there, unless one of the begun steps takes it away."""
        if found := re.match(r"✓ (\w+)  done", report.line):
            run = {"run": "p", "run --via": "s", "record": "w"}[report.step]
            if "delete a sealed run" not in steps or run != "w":
                self.is_done(run, found.group(1))
        if report.code == 0 and (check := CHECKS.get(report.step)):
            check(self, steps)

    def is_done(self, run, name):
        status = self.answer("status", run)
        states = {one["id"]: one["status"] for one in status["items"]} if status else {}
        if states.get(name) != "done":
            self.wrong.append(f"{run}/{name} was reported as done and is {states.get(name, 'not there')}")

    def submitted(self, run):
        if self.answer("status", run) is None:
            self.wrong.append(f"the run {run} was reported and is not there")

    def sealed(self, run):
        report = self.answer("verify", run)
        if not report or not report["intact"] or not report["sealed"]:
            self.wrong.append(f"the run {run} was reported as sealed, and verify says {str(report)[:300]}")

    def text(self, about, want, *words):
        done = self.handoff(*words)
        if done.stdout.decode(errors="replace") != want:
            said = (done.stdout + done.stderr).decode(errors="replace")
            self.wrong.append(f"{about} was reported, and git handoff {' '.join(words)} says {said[:300]!r}")

    def pushed(self, run):
        here = self.call("git", "rev-parse", "--verify", "-q", f"refs/handoff/runs/{run}").stdout
        there = self.call("git", "rev-parse", "--verify", "-q", f"refs/handoff/runs/{run}", where="remote").stdout
        if not here or (here != there and not self.hub_was_cut):
            self.wrong.append(f"the run {run} was pushed; here it is at {here!r}, in the remote at {there!r}")
        # git flushes a ref and not its folder, so a remote can lose what was just pushed.
        self.behind += here != there

    def gone(self, run):
        if self.answer("status", run) is not None:
            self.wrong.append(f"the run {run} was deleted and is there")

    def applied(self):
        for name in "abcde":
            if self.call("git", "show", f"HEAD:{name}.txt").stdout.decode() != f"{name}\n":
                self.wrong.append(f"{name}.txt was committed and is not in HEAD")
        status = self.call("git", "status", "--porcelain").stdout.decode()
        if status != "?? untracked.txt\n":
            self.wrong.append(f"after apply, git status says {status!r}")

    def go_on(self, steps):
        """The remaining commands work as they are; the one that was cut is given again if it had no effect."""
        left = [step for step in STEPS if step.name not in steps]
        # git in the remote leaves locks, as it does when it is killed.
        done = self.call("git", "handoff", "doctor", "--fix", where="remote")
        if done.returncode not in (0, 3):
            self.works(done, "doctor --fix in the remote")
        for step in left:
            words = list(step.words)
            if step is left[0] and self.is_over(step):
                continue
            if step is left[0] and step.name == "record" and self.answer("status", "w") is not None:
                words = words[: words.index("--")]
            self.works(self.handoff(*words, given=step.given), f"going on with {step.name}")
        before = self.behind
        self.works(self.handoff("push", "origin", "--all"), "pushing again")
        for run in ("p", "s"):
            self.sealed(run)
        for check in CHECKS.values():
            check(self, {step.name for step in STEPS})
        if self.behind > before:
            self.wrong.append("the remote lacks a run after another push")

    def is_over(self, step):
        """Returns True if a command that was cut had done everything but report it."""
        if run := {"cancel": "q", "record": "w"}.get(step.name):
            # A seal that no log has yet: verify's hint mends it.
            self.handoff("doctor", "--fix")
            report = self.answer("verify", run)
            return bool(report and report["sealed"])
        return step.words[0] == "delete" and self.answer("status", step.words[1]) is None


PRODUCT = "".join(f"{line}\n" for line in range(1, 2001))

CHECKS = {
    "submit": lambda judge, steps: judge.submitted("p"),
    "run": lambda judge, steps: (judge.sealed("p"), judge.text("a product", PRODUCT, "cat", "p/d:d")),
    "push": lambda judge, steps: judge.pushed("p"),
    "submit an open run": lambda judge, steps: "delete" in steps or judge.submitted("q"),
    "doc put": lambda judge, steps: "delete" in steps or judge.text("a document", "words\n", "doc", "cat", "q", "note"),
    "checkpoint": lambda judge, steps: judge.text("a checkpoint", "state\n", "thread", "cat", "t"),
    "cancel": lambda judge, steps: "delete" in steps or judge.sealed("q"),
    "delete": lambda judge, steps: judge.gone("q"),
    "record": lambda judge, steps: "delete a sealed run" in steps or judge.sealed("w"),
    "apply": lambda judge, steps: judge.applied(),
    "run --via": lambda judge, steps: (judge.sealed("s"), judge.pushed("s")),
    "delete a sealed run": lambda judge, steps: judge.gone("w"),
}
