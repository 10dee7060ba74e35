"""Repositories with real runs: a project, its host, forks and checkouts, all the same every time."""

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEY = ROOT / "tests/fixtures/signing_key"


class Scene:
    """A project `octo/greeting` below a folder, with a home, a key and a clock of its own."""

    def __init__(self, folder, host):
        """Makes the project, with one commit on `main`."""
        self.folder, self.host, self.seconds = folder, host, 0
        self.home, self.project = folder / "home", folder / "project"
        self.hub = host.root / "git/octo/greeting"
        self.home.mkdir(parents=True)
        shutil.copy(KEY, self.home / "signing_key")
        (self.home / "signing_key").chmod(0o600)
        lines = [
            "[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0",
            f"[handoff]\n\tsigningKey = {self.home}/signing_key\n\tsandbox = none\n\trecordProgram = false",
            f'[handoff "workspace"]\n\troot = {folder}/worktrees\n',
        ]
        (self.home / "gitconfig").write_text("\n".join(lines))
        shutil.rmtree(host.root / "git", ignore_errors=True)
        self.git("init", "--quiet", "--bare", self.hub, where=folder)
        self.git("init", "--quiet", self.project, where=folder)
        self.commit("Start", **{"greeting.txt": "Hello, world\n", "notes.txt": "one\n"})
        self.git("remote", "add", "origin", self.hub)
        self.git("push", "--quiet", "origin", "main")
        self.signers = self.handoff("key")

    def environment(self):
        """Returns the environment of a command, a second after the one before."""
        self.seconds += 1
        clock = f"2026-06-04T02:{self.seconds // 60:02}:{self.seconds % 60:02}"
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": str(self.home / "gitconfig"),
            "GIT_CEILING_DIRECTORIES": str(self.folder),
            "GIT_AUTHOR_DATE": f"{clock}Z",
            "GIT_COMMITTER_DATE": f"{clock}Z",
            "HANDOFF_CLOCK": f"{clock}.000Z",
            "HANDOFF_ACTOR": "human:ada",
        }

    def command(self, *line, where=None, codes=(0,), text=None):
        """Runs a program in the project; returns what it prints."""
        line = [str(word) for word in line]
        where, given = where or self.project, text.encode() if text is not None else b""
        done = subprocess.run(line, cwd=where, env=self.environment(), input=given, capture_output=True, check=False)
        if done.returncode not in codes:
            raise RuntimeError(f"{line} ended with {done.returncode}:\n{(done.stdout + done.stderr).decode()}")
        return done.stdout.decode().strip()

    def git(self, *arguments, **how):
        """Runs git in the project."""
        return self.command("git", *arguments, **how)

    def handoff(self, *arguments, **how):
        """Runs git handoff in the project."""
        return self.command("git", "handoff", *arguments, **how)

    def commit(self, message, **files):
        """Commits files, as a person does; returns the commit."""
        for name, content in files.items():
            (self.project / name).write_text(content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD")

    def run(self, run, items, codes=(0,)):
        """Runs a plan whose items are shell commands, each on what the one before made."""
        plan = {"id": run, "items": []}
        before = None
        for name, line in items.items():
            item = {"id": name, "executor": "command", "maxAttempts": 1, "inputs": {"command": line}}
            if before:
                item["inputs"]["command"] = f"git apply inputs/work && {line}"
                item["needs"] = {"work": {"from": before, "select": {"kind": "patch"}}}
            plan["items"].append(item)
            before = name
        (self.folder / "plan.json").write_text(json.dumps(plan))
        self.handoff("run", self.folder / "plan.json", codes=codes)

    def apply(self, run, branch="work", *options):
        """Puts the patches of a run onto a branch, one commit for each item."""
        self.handoff("apply", run, "--branch", branch, *options)

    def push(self, branch="work", runs=True):
        """Pushes a branch, as that of a pull request, and all runs."""
        self.git("push", "--quiet", "--force", "origin", branch)
        if runs:
            self.handoff("push", "origin", "--all")

    def pull_request(self, branch="work", fork=""):
        """Opens a pull request, as the host does: two refs, and an event."""
        base, head = (self.git("rev-parse", name) for name in ("main", branch))
        if self.git("rev-list", f"{base}..{head}"):
            tree = self.git("merge-tree", "--write-tree", base, head).splitlines()[0]
            merge = self.git("commit-tree", tree, "-p", base, "-p", head, "-m", "Merge")
        else:
            merge = head
        self.git("push", "--quiet", "--force", "origin", f"{head}:refs/pull/1/head", f"{merge}:refs/pull/1/merge")
        name = fork or "octo/greeting"
        repository = {"full_name": name, "clone_url": f"{self.host.url}/{name}.git"}
        pull = {"base": {"sha": base}, "head": {"sha": head, "repo": repository}}
        return {"name": "pull_request", "sha": merge, "ref": "1/merge", "payload": {"pull_request": pull}}

    def push_event(self, branch, before, after):
        """Returns the event of a push."""
        payload = {"before": before, "after": after, "repository": {"default_branch": "main"}}
        return {"name": "push", "sha": after, "ref": branch, "payload": payload}

    def checkout(self, event, persist=True, depth=1):
        """Checks the commit of an event out, as actions/checkout does; returns the workspace."""
        workspace = self.folder / "workspace"
        shutil.rmtree(workspace, ignore_errors=True)
        made = self.folder / f"checkout-{event['sha']}-{persist}-{depth}"
        if not made.exists():
            self.make_checkout(made, event, persist, depth)
        return Path(shutil.copytree(made, workspace, symlinks=True))

    def make_checkout(self, workspace, event, persist, depth):
        """Makes a checkout in a new folder."""
        workspace.mkdir()
        word = base64.b64encode(f"x-access-token:{self.host.token}".encode()).decode()
        name, header = f"http.{self.host.url}/.extraheader", f"AUTHORIZATION: basic {word}"
        self.git("init", "--quiet", "--template=", where=workspace)
        self.git("remote", "add", "origin", f"{self.host.url}/octo/greeting", where=workspace)
        self.git("config", "--local", name, header, where=workspace)
        refs = (
            f"+{event['sha']}:refs/remotes/{'pull' if 'pull_request' in event['payload'] else 'origin'}/{event['ref']}"
        )
        fetch = ["fetch", "--quiet", "--no-tags", "--prune", "--no-recurse-submodules"]
        self.git(*fetch, *([f"--depth={depth}"] if depth else []), "origin", refs, where=workspace)
        self.git("checkout", "--quiet", "--force", "--detach", event["sha"], where=workspace)
        if not persist:
            self.git("config", "--local", "--unset-all", name, where=workspace)
