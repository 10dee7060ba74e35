"""The Markdown of the check run and of the job summary."""

import re
from typing import NamedTuple

from runner import printable, variable

# The most rows of the table of commits.
MOST_ROWS = 50

# The most items that are named for a commit.
MOST_ITEMS = 3

# The most findings about runs that are listed.
MOST_FINDINGS = 20

# The most characters of a text in a table.
MOST_CHARACTERS = 200

# The most bytes that a job summary may have: the runner drops a step's summary above 1 MiB.
MOST_BYTES = 1_000_000


class Finding(NamedTuple):
    """Something that a reader has to look at."""

    level: str
    title: str
    message: str
    path: str
    line: int


def is_red(commit):
    """Returns true if the check of an item that made the commit did not pass."""
    checks = [(item["made"] or {}).get("check") for item in commit["items"]]
    return commit["verdict"] == "product" and any(check and not check["passed"] for check in checks)


def is_claimed(commit):
    """Returns true if an item that made the commit takes a commit that was made before."""
    grades = [(item["made"] or {}).get("grade") for item in commit["items"]]
    return commit["verdict"] == "product" and "claimed" in grades


def code(text):
    """Returns a code span that shows the text, and links and mentions nothing."""
    text = printable(text)
    if len(text) > MOST_CHARACTERS:
        text = text[:MOST_CHARACTERS] + "…"
    ticks = max(map(len, re.findall("`+", text)), default=0)
    pad = " " if ticks or text != text.strip() or not text else ""
    return "`" * (ticks + 1) + pad + text + pad + "`" * (ticks + 1)


def row(commit):
    """Returns the row of a commit."""
    oid, verdict = commit["commit"], commit["verdict"]
    mark = "✗" if rank(commit) == 0 else "!" if rank(commit) == 1 else "✓" if verdict == "product" else "─"
    link = f"{variable('GITHUB_SERVER_URL')}/{variable('GITHUB_REPOSITORY')}/commit/{oid}"
    names = [code(f"{item['run']}/{item['item']}") for item in commit["items"]]
    more_items = [f"{len(names) - MOST_ITEMS} more"] if len(names) > MOST_ITEMS else []
    items = ", ".join(names[:MOST_ITEMS] + more_items)
    cells = [mark, f"[`{oid[:12]}`]({link})", "red" if is_red(commit) else f"{verdict}, claimed" if is_claimed(commit) else verdict]
    cells += [items, code(commit["subject"]), code(commit["detail"])]
    # In a table, a bar ends a cell even within a code span.
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def rank(commit):
    """Returns the place of a commit among those to list: failing ones first, then red ones."""
    return 0 if commit["verdict"] not in ("product", "person") else 1 if is_red(commit) else 2


def commit_table(title, answer, findings):
    """Returns the verdict, the commits, and the findings that are about no commit."""
    lines = [f"# {title}", ""]
    if answer and answer["commits"]:
        lines += ["| | commit | verdict | item | subject | why |", "|---|---|---|---|---|---|"]
        # The sort is stable.
        commits = sorted(answer["commits"], key=rank)
        lines += [row(commit) for commit in commits[:MOST_ROWS]]
        lines += ["", f"{more(len(commits) - MOST_ROWS, 'commits')}Commits {code(answer['range'])}.", ""]
    others = [finding for finding in findings if finding.path == ".github"]
    lines += [f"- {code(finding.title)}: {code(finding.message)}" for finding in others[:MOST_FINDINGS]]
    lines += ["", more(len(others) - MOST_FINDINGS, "findings")] if len(others) > MOST_FINDINGS else []
    return "\n".join(lines).rstrip() + "\n"


def more(count, what):
    """Returns a sentence about what is not listed, empty if that is nothing."""
    return f"{count} more {what} are not listed. " if count > 0 else ""


def job_summary(head, problem, reports):
    """Writes the summary of the job, with as many reports on runs as it may hold."""
    parts = [head] + ([f"> {code(problem)}\n"] if problem else [])
    for number, report in enumerate(reports):
        if sum(len(part.encode()) + 1 for part in [*parts, report]) > MOST_BYTES:
            parts.append(f"The reports on {len(reports) - number} runs are not shown, because they are too long.\n")
            break
        parts.append(report)
    with open(variable("GITHUB_STEP_SUMMARY"), "a", encoding="utf-8") as file:
        file.write("\n".join(parts))
