"""Verifies the commits of a pull request or a push, and reports the verdict.

Reads the inputs of action.yml from the environment, and the event that started the job. Fetches
the missing commits and all runs, and calls `git handoff verify --commits`. Writes a check run with
an annotation for each finding, and a job summary. Ends with the exit code of the verification; a
report that cannot be written is named, and changes neither code nor verdict.
"""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import runner
from checks import Check
from runner import Stop, git, handoff, printable, variable
from summary import Finding, job_summary, commit_table, is_claimed, is_red

# The name of the remote that stands for the repository of a fork.
FORK = "pull-request"

# Where annotations are put that are about no file, as the runner does it.
NO_FILE = (".github", 1)

OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

# A branch of the remote, as one side of a range.
REMOTE_BRANCH = re.compile(r"origin/([\w./-]+)")


class Commits(NamedTuple):
    """The commits to verify."""

    range: str
    wanted: list
    fork: str
    branches: tuple = ()


class Verdict(NamedTuple):
    """The verdict, as the output, the check run and the process tell it."""

    word: str
    conclusion: str
    title: str
    code: int


def head_of(event):
    """Returns the commit that a check run is about."""
    for part, key in (("pull_request", "head"), ("merge_group", "head_sha")):
        if part in event:
            head = event[part][key]
            return head["sha"] if isinstance(head, dict) else head
    return event.get("after") or variable("GITHUB_SHA")


def is_here(commit):
    """Returns true if a commit is in the checkout."""
    return runner.run("git", "cat-file", "-e", f"{commit}^{{commit}}")[0] == 0


def is_gone(before):
    """Returns true if the commit before a push is not here, and the remote does not give it."""
    fetch = ("git", "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "origin", before)
    return not is_here(before) and runner.run(*fetch)[0] != 0


def fetch_line(branch):
    """Returns what fetches a branch of the remote into the checkout."""
    return f"+refs/heads/{branch}:refs/remotes/origin/{branch}"


def named_branches(text):
    """Returns what fetches the branches of the remote that a range names and the checkout lacks."""
    found = (REMOTE_BRANCH.fullmatch(side) for side in text.split(".."))
    return tuple(fetch_line(match[1]) for match in found if match and not is_here(match[0]))


def choose_commits(event, head):
    """Returns the commits of the input `commits`, or else those of the event."""
    fork, base = "", ""
    if "pull_request" in event:
        base = event["pull_request"]["base"]["sha"]
        source = event["pull_request"]["head"]["repo"] or {}
        if source.get("full_name", variable("GITHUB_REPOSITORY")) != variable("GITHUB_REPOSITORY"):
            fork = source["clone_url"]
    elif "merge_group" in event:
        base = event["merge_group"]["base_sha"]
    elif "before" in event:
        base = event["before"]
    if not OID.fullmatch(head):
        raise Stop("this event names no commit that a check run could be about")
    if variable("COMMITS").strip():
        text = variable("COMMITS").strip()
        return Commits(text, [head], fork, named_branches(text))
    is_new = bool(base) and not base.strip("0")
    if is_new or ("before" in event and OID.fullmatch(base) and is_gone(base)):
        # A push that creates a branch has no commit before, and the host may have removed that of a
        # forced push.
        default = event["repository"]["default_branch"]
        if variable("GITHUB_REF_NAME") == default:
            why = f"this push creates the branch {default}" if is_new else f"the commit before this push ({base}) is gone"
            raise Stop(f"{why}: name its commits by the input `commits`")
        git("fetch", "--quiet", "--no-tags", "origin", fetch_line(default))
        base = git("rev-parse", f"refs/remotes/origin/{default}").strip()
    if not OID.fullmatch(base):
        raise Stop("this event names no commits: name them by the input `commits`, as A..B")
    return Commits(f"{base}..{head}", [base, head], fork)


def fetch_commits(commits):
    """Fetches commits that the checkout has not, and the history that a shallow one lacks."""
    shallow = git("rev-parse", "--is-shallow-repository").strip() == "true"
    missing = [commit for commit in commits.wanted if not is_here(commit)]
    if shallow or missing or commits.branches:
        depth = ["--unshallow"] if shallow else []
        wanted = (*commits.wanted, *commits.branches)
        try:
            git("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", *depth, "origin", *wanted)
        except Stop as stop:
            raise Stop(f"cannot fetch {commits.range}: {stop} (or name others by the input `commits`)") from stop


def fetch_runs(remote):
    """Fetches all runs of a remote; returns a finding for each that is not what it was."""
    # With exit code 1 some runs may have been refused, which the answer tells.
    code, out, errors = runner.run("git", "handoff", "--json", "fetch", remote)
    if not out.strip():
        raise Stop(f"git handoff fetch {remote} failed: {runner.reason(errors, code)}")
    answer, findings = json.loads(out), []
    for ref in answer["refs"]:
        if ref["status"] in ("rewritten", "unfit", "unsound"):
            why = ref.get("reason") or {"rewritten": "it was rewritten"}.get(ref["status"], "it is no commit")
            title = f"{ref['kind']} {ref['name']} was not fetched from {remote}"
            findings.append(Finding("warning", title, why, *NO_FILE))
    for gone in answer.get("vanished", []):
        title = f"{gone['kind']} {gone['name']} is not on {remote}"
        findings.append(Finding("warning", title, "a log names it: it was deleted, or never pushed", *NO_FILE))
    return findings


def place_of(commit):
    """Returns the first file that a commit changes, and the first line that it changes there."""
    code, parent, _ = runner.run("git", "rev-parse", "--verify", "--quiet", f"{commit}^1")
    base = parent.strip() if code == 0 else git("hash-object", "-t", "tree", "--stdin").strip()
    compare = ("--literal-pathspecs", "diff-tree", "-r", "--no-renames", "--diff-filter=d")
    try:
        path = git(*compare, "--name-only", "-z", base, commit).split("\0")[0]
        shown = ("-p", "--unified=0", "--no-ext-diff", "--no-textconv", "--no-color")
        change = git(*compare, *shown, base, commit, "--", path) if path else ""
    except Stop:
        # A partial clone may lack the trees.
        return NO_FILE
    lines = re.search(r"^@@ -\S+ \+(\d+)", change, re.MULTILINE)
    return (path, max(1, int(lines[1])) if lines else 1) if path else NO_FILE


def commit_findings(answer, allowed):
    """Returns a finding for each commit that fails, and for each that an item made red."""
    for commit in answer["commits"]:
        oid, about = commit["commit"], f"\ncommit {commit['commit']}: {printable(commit['subject'])}"
        if commit["verdict"] not in ("product", "person"):
            title = f"{commit['verdict']}: commit {oid[:12]}"
            yield Finding("failure", title, printable(commit["detail"]) + about, *place_of(oid))
        elif is_red(commit):
            items = ", ".join(f"{item['run']}/{item['item']}" for item in commit["items"])
            why = f"the check of {printable(items)} did not pass" + about
            yield Finding("warning" if allowed else "failure", f"red: commit {oid[:12]}", why, *place_of(oid))


def run_findings(answers):
    """Returns what contradicts a run or is missing of it, row by row."""
    for answer in answers:
        for name, row in answer["checks"].items():
            if row["ok"] is not True:
                for found in row.get("findings", []):
                    code = f", {found['code']}" if found["code"] else ""
                    yield Finding("warning", f"{name}{code}: run {answer['run']}", printable(found["text"]), *NO_FILE)


def runs_of(answer):
    """Returns the names of the runs that the commits come from, in order of appearance."""
    refs = {item["ref"]: item["run"] for commit in answer["commits"] for item in commit["items"]}
    fetched = "refs/handoff/remotes/"
    return [f"{ref.split('/')[3]}/{run}" if ref.startswith(fetched) else run for ref, run in refs.items()]


def judge(answer, code):
    """Returns the verdict on the commits."""
    commits = answer["commits"]
    products = sum(commit["verdict"] == "product" for commit in commits)
    failing = sum(commit["verdict"] not in ("product", "person") for commit in commits)
    if code == 3:
        return Verdict("failed", "failure", f"✗ FAILED: commits that do not pass: {failing} of {len(commits)}", code)
    if code == 4:
        red = sum(map(is_red, commits))
        title = f"✗ RED: commits from items whose check did not pass: {red} of {len(commits)}"
        return Verdict("red", "failure", title, code)
    if products == 0:
        return Verdict("no-run", "neutral", f"─ NO RUN: commits from runs: 0 of {len(commits)}", code)
    claimed = sum(map(is_claimed, commits))
    title = f"✓ PASSED: commits from runs: {products} of {len(commits)}"
    return Verdict("passed", "success", title + (f", claimed: {claimed}" if claimed else ""), code)


def verify(event, head, place):
    """Verifies the commits; returns verdict, answer, findings, and the reports on the runs."""
    runner.trust(place)
    if not shutil.which("git-handoff"):
        raise Stop("there is no git-handoff on PATH: leave the input `install` as it is, or install it before")
    code, _, errors = runner.run("git", "rev-parse", "--git-dir")
    if code != 0:
        why = runner.reason(errors, code)
        raise Stop(f"cannot read the repository in the workspace: {why} (call actions/checkout before)")
    commits = choose_commits(event, head)
    fetch_commits(commits)
    findings = fetch_runs("origin")
    if commits.fork:
        runner.configure([(f"remote.{FORK}.url", commits.fork)])
        try:
            findings += fetch_runs(FORK)
        except Stop as stop:
            findings.append(Finding("warning", f"no runs were fetched from {commits.fork}", str(stop), *NO_FILE))
    allowed = variable("ALLOW_PARTIAL") == "true"
    partial = ["--allow-partial"] if allowed else []
    code, out = handoff("verify", *partial, f"--commits={commits.range}", codes=(0, 3, 4))
    (place / "commits.json").write_text(out, encoding="utf-8")
    runner.output("report", place / "commits.json")
    answer = json.loads(out)
    names = runs_of(answer)
    reports = []
    if names:
        _, out = handoff("verify", "--", *names, codes=(0, 3, 4))
        findings += run_findings(json.loads(line) for line in out.splitlines())
        reports = [handoff("report", "--markdown", "--", name)[1] for name in names]
    findings = [*commit_findings(answer, allowed), *findings]
    return judge(answer, code), answer, findings, reports


def main():
    """Verifies, reports, and returns the exit code."""
    event = json.loads(Path(variable("GITHUB_EVENT_PATH")).read_text(encoding="utf-8"))
    head, place, token = head_of(event), runner.folder(), runner.log_in()
    answer, findings, reports = None, [], []
    try:
        verdict, answer, findings, reports = verify(event, head, place)
    except Stop as stop:
        verdict = Verdict("error", "failure", "✗ ERROR: the commits were not verified", 1)
        findings = [Finding("failure", "not verified", str(stop), *NO_FILE)]
    head_text = commit_table(verdict.title, answer, findings)
    check = Check(token, head, verdict)
    problem = check.write(head_text, findings)
    if problem:
        runner.command("warning", problem)
    job_summary(head_text, problem, reports)

    runner.output("verdict", verdict.word)
    runner.output("exit-code", verdict.code)
    runner.output("check-run", check.url)
    for finding in findings:
        runner.log(f"{finding.level}: {finding.title}: {finding.message}")
    if verdict.code:
        reason = f": {findings[0].message}" if verdict.word == "error" else ""
        runner.command("error", verdict.title + reason)
    else:
        runner.log(verdict.title)
    return verdict.code


if __name__ == "__main__":
    sys.exit(main())
