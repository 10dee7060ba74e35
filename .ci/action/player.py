"""Plays a composite action as the runner does: expressions, files, workflow commands, steps."""

import os
import re
import subprocess
from typing import NamedTuple

import yaml

# The workflow commands that the runner knows.
COMMANDS = {
    "add-mask", "add-matcher", "add-path", "debug", "echo", "endgroup", "error", "group", "notice",
    "remove-matcher", "save-state", "set-env", "set-output", "stop-commands", "warning",
}  # fmt: skip

# The inputs of the actions that are called, in the versions that action.yml names.
CALLED = {
    "actions/attest@1e69f48acb82d1966a394da916b4c1698aa569d6": {
        "subject-path", "subject-digest", "subject-name", "subject-checksums", "subject-version", "sbom-path",
        "predicate-type", "predicate", "predicate-path", "push-to-registry", "create-storage-record",
        "show-summary", "github-token",
    },
}  # fmt: skip


class Played(NamedTuple):
    """What came out of an action."""

    success: bool
    outputs: dict
    summary: str
    commands: list
    log: str
    called: list


def commands(log):
    """Returns the workflow commands in a log, in both forms, as the runner finds them."""
    found = []
    for line in log.splitlines():
        new = re.match(r"\s*::(\S*?)(?: (.*?))?::(.*)", line)
        old = re.search(r"##\[([^\] ]*)(?: ([^\]]*))?\](.*)", line)
        for match in (new, old):
            if match and match[1] in COMMANDS:
                found.append((match[1], match[2] or "", match[3]))
                break
    return found


def read_values(path):
    """Returns what a file of the runner's holds: NAME=VALUE, or NAME<<END with lines up to END."""
    values, lines = {}, iter(path.read_text(encoding="utf-8").splitlines())
    for line in lines:
        equals, heredoc = line.find("="), line.find("<<")
        if heredoc >= 0 and (equals < 0 or heredoc < equals):
            name, end = line.split("<<", 1)
            value = []
            while (part := next(lines)) != end:
                value.append(part)
            values[name] = "\n".join(value)
        else:
            name, value = line.split("=", 1)
            values[name] = value
    return values


class Player:
    """Plays the action of a folder in a workspace, with the environment of a runner."""

    def __init__(self, action, workspace, temp, environment, token):
        """Reads the action."""
        self.action, self.workspace, self.temp, self.token = action, workspace, temp, token
        self.environment = dict(environment)
        self.text = yaml.safe_load((action / "action.yml").read_text(encoding="utf-8"))
        self.inputs, self.outputs = {}, {}

    def evaluate(self, text):
        """Returns a value with its expressions replaced."""
        if not isinstance(text, str):
            return {True: "true", False: "false"}.get(text, str(text))
        return re.sub(r"\$\{\{(.*?)\}\}", lambda match: self.look_up(match[1].strip()), text)

    def look_up(self, expression):
        """Returns what a context has under a name."""
        if expression == "github.token":
            return self.token
        match expression.split("."):
            case ["inputs", name] if name in self.inputs:
                return self.inputs[name]
            case ["steps", step, "outputs", name]:
                return self.outputs.get(step, {}).get(name, "")
        raise ValueError(f"this player does not know {expression}")

    def holds(self, condition):
        """Returns whether the condition of a step holds."""
        match = re.fullmatch(r"(\S+) (==|!=) '([^']*)'", condition)
        if not match:
            raise ValueError(f"this player does not know the condition {condition}")
        return (self.look_up(match[1]) == match[3]) == (match[2] == "==")

    def play(self, inputs):
        """Runs the steps in order until one fails; returns what came out."""
        unknown = set(inputs) - set(self.text["inputs"])
        assert not unknown, f"the action has no inputs {unknown}"
        for name, about in self.text["inputs"].items():
            self.inputs[name] = inputs.get(name, self.evaluate(about.get("default", "")))
        log, summary, called, success = "", "", [], True
        for number, step in enumerate(self.text["runs"]["steps"]):
            if "if" in step and not self.holds(step["if"]):
                continue
            if "uses" in step:
                called.append(self.call(step))
                continue
            code, printed, written = self.run(number, step)
            log, summary = log + printed, summary + written
            if code != 0:
                success = False
                break
        outputs = {name: self.evaluate(about["value"]) for name, about in self.text["outputs"].items()}
        return Played(success, outputs, summary, commands(log), log, called)

    def call(self, step):
        """Returns what another action would be called with."""
        given = {name: self.evaluate(value) for name, value in step["with"].items()}
        assert set(given) <= CALLED[step["uses"]], f"{step['uses']} does not have all of {sorted(given)}"
        self.outputs[step["id"]] = {"attestation-url": "https://attestation.invalid/1"}
        return {"uses": step["uses"], "with": given}

    def run(self, number, step):
        """Runs the script of a step; returns exit code, log and summary."""
        assert step["shell"] == "bash" and "${{" not in step["run"], step
        place = self.temp / f"step-{number}"
        place.mkdir(parents=True)
        script = place / "script.sh"
        script.write_text(step["run"], encoding="utf-8")
        files = {}
        for name in ("OUTPUT", "STEP_SUMMARY", "ENV", "PATH", "STATE"):
            files[name] = place / name
            files[name].touch()
        environment = self.environment | {f"GITHUB_{name}": str(path) for name, path in files.items()}
        environment |= {name: self.evaluate(value) for name, value in step.get("env", {}).items()}
        environment |= {"GITHUB_ACTION_PATH": str(self.action), "GITHUB_WORKSPACE": str(self.workspace)}
        line = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)]
        pipe = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        done = subprocess.run(line, cwd=self.workspace, env=environment, check=False, **pipe)
        if "id" in step:
            self.outputs[step["id"]] = read_values(files["OUTPUT"])
        self.environment |= read_values(files["ENV"])
        added = files["PATH"].read_text(encoding="utf-8").splitlines()
        self.environment["PATH"] = os.pathsep.join([*reversed(added), self.environment["PATH"]])
        summary = files["STEP_SUMMARY"].read_text(encoding="utf-8")
        assert len(summary.encode()) <= 1024 * 1024, "the runner drops a summary above 1 MiB"
        return done.returncode, done.stdout.decode(errors="replace"), summary
