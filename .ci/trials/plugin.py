"""The plugin of `plugin/` in real agents: installed from the marketplace of this repository, into a home directory of its own."""
import json
import pathlib
import shutil
import subprocess

import ways

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARKET = "git-handoff"
TASK = "Greet in Dutch in src/greet.js"
CLAUDE = ["--permission-mode", "bypassPermissions", "--output-format", "stream-json", "--verbose"]
CODEX = ["codex", "exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust"]
INSTALL = {
    "claude": [["claude", "plugin", "marketplace", "add"], ["claude", "plugin", "install", f"{MARKET}@{MARKET}"]],
    "codex": [["codex", "plugin", "marketplace", "add"], ["codex", "plugin", "add", f"{MARKET}@{MARKET}"]],
}
WORK = {"claude": ["claude", "-p", TASK, *CLAUDE], "codex": [*CODEX, TASK]}
# The answers of the stand-in count more tokens than this limit. Codex fails afterwards, since the stand-in cannot compact.
COMPACT = {"claude": ["claude", "-c", "-p", "/compact", *CLAUDE], "codex": [*CODEX, "-c", "model_auto_compact_token_limit=1000", TASK]}
SKILL = "git-handoff:git-handoff"
TOOLS = {"claude": "mcp__plugin_git-handoff_handoff__checkpoint", "codex": "- mcp__handoff: This server lets agents"}
HOOK = "The thread of this branch is session-main-"
THREAD = "$(git handoff thread list | grep -o 'session-main-[a-z]*')"
MISSING = "git-handoff is not on PATH"


class Trial:
    """An agent with the plugin, in a clone of a repository. `requests` is the file in which the stand-in records requests."""

    def __init__(self, user, name, environment, files, requests):
        self.user, self.name, self.requests = user, name, requests
        self.folder = user.folder / f"plugin-{name}"
        self.home, self.clone = self.folder / "home", self.folder / "clone"
        self.environment = {**environment, "HOME": str(self.home), "IS_SANDBOX": "1"}
        shutil.rmtree(self.folder, ignore_errors=True)
        self.home.mkdir(parents=True)
        shutil.copyfile(user.home / ".gitconfig", self.home / ".gitconfig")
        for path, text in files:
            (self.home / path).parent.mkdir(parents=True, exist_ok=True)
            (self.home / path).write_text(text)
        for part in (".claude-plugin", "plugin"):
            shutil.copytree(ROOT / part, self.folder / MARKET / part)
        own = f"{user.account.pw_uid}:{user.account.pw_gid}"
        subprocess.run(["chown", "-R", own, self.folder], check=True)

    def run(self, line, cwd=None, fails=False, environment=None):
        """Runs a command and returns its output, or raises `Wrong`."""
        log = self.user.tmp / "plugin.log"
        code = self.user.run(line, cwd or self.clone, environment or self.environment, False, 180, log)
        said = log.read_bytes().decode(errors="replace")
        if code and not fails:
            raise Wrong("\n    ".join([f"{' '.join(line[:6])} … ended with {code}", *ways.tail(said, 8)]))
        return said

    def asked(self, line, **how):
        """Runs an agent, and returns the conversations that it sent to the stand-in."""
        before = self.requests.stat().st_size if self.requests.exists() else 0
        self.run(line, **how)
        with open(self.requests) as file:
            file.seek(before)
            return "\n".join(json.dumps(json.loads(request)["body"]) for request in file)

    def prepare(self):
        """Clones the repository, and saves the checkpoint that turns the hooks on."""
        self.run(["git", "clone", "-q", str(self.user.folder / "repo"), str(self.clone)], self.folder)
        self.run(["sh", "-c", "echo first | git handoff checkpoint notes --state -"])
        add, install = INSTALL[self.name]
        self.run([*add, str(self.folder / MARKET)], self.folder)
        self.run(install, self.folder)

    def check(self):
        """Fails unless the agent got the skill, the tools and what the hook printed, and the hooks saved checkpoints."""
        asked = self.asked(WORK[self.name])
        for what, text in (("the skill", SKILL), ("the tools", TOOLS[self.name]), ("what the hook prints", HOOK)):
            if text not in asked:
                raise Wrong(f"the model was not given {what}: there is no {text!r} in the requests")
        self.saved("at stop")
        # What did not change since the last checkpoint is not saved again.
        self.run(["sh", "-c", "echo '// changed before compaction' >> src/greet.js"])
        self.run(COMPACT[self.name], fails=self.name == "codex")
        self.saved("before compaction")
        if "CLEAN" not in self.run(["sh", "-c", f"git handoff check {THREAD}"]):
            raise Wrong("the packet of the last checkpoint is not clean")

    def saved(self, summary):
        log = self.run(["sh", "-c", f"git handoff thread log {THREAD} || true"])
        if summary not in log:
            raise Wrong(f"no hook saved a checkpoint {summary}: {log.strip()}")

    def check_harmless(self, handoff):
        """Fails unless the agent works in an empty folder, and without the program."""
        empty = self.folder / "home/empty"
        self.run(["mkdir", empty], self.folder)
        here = [*WORK[self.name], "--skip-git-repo-check"] if self.name == "codex" else WORK[self.name]
        if HOOK in self.asked(here, cwd=empty):
            raise Wrong("the hook speaks outside of a repository")
        path = self.environment["PATH"].replace(f"{handoff}:", "")
        if MISSING not in self.asked(WORK[self.name], environment={**self.environment, "PATH": path}):
            raise Wrong("the hook does not say that the program is missing")


class Wrong(Exception):
    """What is wrong with an agent."""


def prove(trial, handoff, sample):
    """Returns what is wrong with the plugin in an agent; the empty text where nothing is."""
    try:
        trial.prepare()
        trial.check()
        if not sample:
            trial.check_harmless(handoff)
    except Wrong as wrong:
        return str(wrong)
    return ""
