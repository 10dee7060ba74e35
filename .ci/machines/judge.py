"""Judges a run that several machines drove: what the chain says against what really ran."""

import collections
import json
import os
import re

from field import RUN, RUN_REF, Failed, call


def verify(field):
    """Verifies the run in a fresh clone, by the field's signers alone."""
    judge = field.folder / "judge"
    env = {**os.environ, "HOME": str(field.home), "PATH": f"{field.programs}:{os.environ['PATH']}"}
    call(["git", "clone", "-q", field.hub, judge], env=env)
    call(["git", "handoff", "fetch", "origin"], cwd=judge, env=env)
    wanted = ["--signers", field.signers, "--require-trusted", "--require", "tamper-detecting"]
    call(["git", "handoff", "verify", f"origin/{RUN}", *wanted], cwd=judge, env=env)
    out = call(["git", "fsck", "--strict", "--no-progress"], cwd=field.hub, env=env)
    # What a lost push left is no fault.
    wrong = [line for line in out.splitlines() if not line.startswith("dangling ")]
    if wrong:
        raise Failed(f"git fsck reports of the remote: {wrong}")


def compare(field, count):
    """Compares the chain with the trace of what ran. Returns the entries."""
    entries = field.entries()
    lines = [line.split() for line in field.trace.read_text().splitlines()]
    started = collections.Counter((item, int(attempt)) for word, item, attempt, _ in lines if word == "start")
    ended = {(item, int(attempt)) for word, item, attempt, _ in lines if word == "end"}
    wrong = [f"attempt {one} was started {times} times" for one, times in started.items() if times > 1]
    wrong += [f"{line} while another process held its lock" for line in lines if line[0] == "clash"]
    fired = collections.Counter((entry["item"], entry["attempt"]) for entry in entries if entry["kind"] == "item.fired")
    wrong += [f"attempt {one} was fired {times} times" for one, times in fired.items() if times > 1]
    wrong += [f"attempt {one} ran and was never fired" for one in started if one not in fired]
    done = [
        (entry["item"], entry["attempt"]) for entry in entries if entry["kind"] == "item.reconciled" and entry["status"] == "done"
    ]
    wrong += [f"attempt {one} is done and did not end" for one in done if one not in ended]
    times = collections.Counter(item for item, _ in done)
    wrong += [f"{item} is done {often} times" for item, often in times.items() if often > 1]
    if len(times) != count:
        wrong.append(f"{len(times)} of {count} items are done")
    if entries[-1]["kind"] != "run.sealed":
        wrong.append(f"the last entry is {entries[-1]['kind']}, not the seal")
    if wrong:
        raise Failed("\n".join(wrong) + "\n" + field.tails())
    return entries


def taken(entries):
    """Returns the take-overs of a chain."""
    return [entry for entry in entries if entry["kind"] == "item.requeued" and entry.get("reason") == "lost"]


def pushes(field):
    """Counts the pushes of the chain in the traces of git: all, and those that lost or failed."""
    every = failed = beats = 0
    for path in (field.folder / "traces").glob("*/*"):
        text = path.read_text(errors="replace")
        start = re.search(r'"event":"start".*?"argv":(\[.*?\])\}', text)
        if not start:
            continue
        words = json.loads(start.group(1))
        if "push" not in words:
            continue
        if not any(word.startswith(f"--force-with-lease={RUN_REF}:") for word in words):
            beats += 1
            continue
        every += 1
        code = re.search(r'"event":"exit".*?"code":(\d+)', text)
        failed += code is None or code.group(1) != "0"
    return {"pushes": every, "races lost": failed, "beats": beats}


def figures(field, entries, seconds, kills=0):
    """Returns one row of the table."""
    done = sum(entry["kind"] == "item.reconciled" for entry in entries)
    attempts = sum(entry["kind"] == "item.fired" for entry in entries)
    row = {"items": done, "attempts": attempts, "seconds": round(seconds), "items/min": round(done * 60 / seconds)}
    row.update({"kills": kills, "take-overs": len(taken(entries)), **pushes(field)})
    return row


def conclude(field, count, seconds, kills=0):
    """Makes every check that each trial ends with, and returns its row."""
    entries = compare(field, count)
    verify(field)
    return entries, figures(field, entries, seconds, kills)
