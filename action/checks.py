"""The check run: the verdict first, and an annotation for each finding."""

import http.client
import json
import urllib.error
import urllib.request

from runner import printable, variable

# The most annotations that the API takes in a request.
MOST_ANNOTATIONS = 50

# The most characters of a title, of a message and of a summary that the API takes.
MOST_TITLE, MOST_MESSAGE, MOST_SUMMARY = 255, 16_000, 65_535

HINT = "the job needs `permissions: checks: write`, which no pull request from a fork gets"


class Failed(Exception):
    """A reason why a request failed."""


class Check:
    """A check run that is not written yet, or written up to some annotation."""

    def __init__(self, token, head, verdict):
        """Makes one about a commit."""
        self.token, self.head, self.verdict, self.url = token, head, verdict, ""

    def write(self, summary, findings):
        """Writes the check run; returns what could not be written, or `None`."""
        if not self.token:
            return "the check run was not written: there is no token"
        output = {"title": self.verdict.title[:MOST_TITLE], "summary": cut(summary)}
        annotations = [annotation(finding) for finding in findings]
        parts = [annotations[at : at + MOST_ANNOTATIONS] for at in range(0, len(annotations), MOST_ANNOTATIONS)]
        first, rest = (parts or [[]])[0], parts[1:]
        body = {"name": variable("CHECK_NAME"), "head_sha": self.head, "status": "completed"}
        body |= {"conclusion": self.verdict.conclusion, "details_url": job_url()}
        try:
            made = self.call("POST", "", body | {"output": output | {"annotations": first}})
            self.url = str(made.get("html_url", made["id"]))
            for number, part in enumerate(rest, start=1):
                written = f"{number * MOST_ANNOTATIONS} of {len(annotations)} annotations were written"
                self.call("PATCH", f"/{made['id']}", {"output": output | {"annotations": part}})
        except Failed as failed:
            return f"only {written}: {failed}" if self.url else f"the check run was not written: {failed}"
        return None

    def call(self, method, path, body):
        """Makes a request about check runs; returns the answer."""
        url = f"{variable('GITHUB_API_URL')}/repos/{variable('GITHUB_REPOSITORY')}/check-runs{path}"
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "User-Agent": "git-handoff-action",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        request = urllib.request.Request(url, json.dumps(body).encode(), headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                made = json.load(answer)
            if not isinstance(made, dict) or not isinstance(made.get("id"), int):
                raise ValueError("the answer has no id")
            return made
        except urllib.error.HTTPError as error:
            hint = f" ({HINT})" if error.code in (403, 404) else ""
            raise Failed(f"HTTP {error.code}: {message(error)}{hint}") from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise Failed(printable(str(getattr(error, "reason", error)))) from error


def message(error):
    """Returns what the API says about an error."""
    try:
        return printable(str(json.load(error)["message"]))
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return printable(str(error.reason))


def cut(summary):
    """Returns as many lines of a summary as it may have, because a half line may end in a code span."""
    rest = "\n\nThe rest is in the summary of the job.\n"
    if len(summary) <= MOST_SUMMARY:
        return summary
    return summary[: MOST_SUMMARY - len(rest)].rpartition("\n")[0] + rest


def job_url():
    """Returns the URL of the workflow run, whose summary has the reports."""
    server, repository = variable("GITHUB_SERVER_URL"), variable("GITHUB_REPOSITORY")
    return f"{server}/{repository}/actions/runs/{variable('GITHUB_RUN_ID')}"


def annotation(finding):
    """Returns a finding in the form of the API."""
    return {
        "path": finding.path,
        "start_line": finding.line,
        "end_line": finding.line,
        "annotation_level": finding.level,
        "title": printable(finding.title)[:MOST_TITLE],
        "message": finding.message[:MOST_MESSAGE],
    }
