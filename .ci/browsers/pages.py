#!/usr/bin/env python3
"""Makes runs with the real program, and a page of each: small, red, partial, open, hostile names, two runs on one page,
a thread, contents of every kind, and many items.

    .ci/browsers/pages.py FOLDER [--many N]

`git-handoff` is the one in PATH. FOLDER must be empty. --many N makes only a page of N items.
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import time
import zlib

HOSTILE_ITEMS = (
    "<script>alert(1)</script>",
    "\"quoted\" 'item' & more &amp; <b>",
    "\u202egnol ton\u202c/\u05d0\u05d1\u05d2/\u0627\u0628",
    "\u6f22\u5b57/\u304b\u306a/\ud55c\uad6d/\U0001f469\u200d\U0001f680\U0001f600",
    "-->]]></title></svg><img src=x onerror=alert(1)>",
    "__proto__",
    "{{title}} {{{evidence}}} {{#runs}}",
)
HOSTILE_OUTPUTS = ("<svg onload=alert(1)>.txt", "'\";&lt;.json", "\u6587\u4ef6 \U0001f4c4.txt", "constructor", "12", "7")
HOSTILE_TEXT = "</pre></td></table><script>alert(document.domain)</script>\r\n\x1b[31mred\u202e &lt;&amp;&quot;\ufeff\u0000\nlast line"


def command(item, line, goal=None, **more):
    """Returns an item that runs a shell line."""
    check = {"check": more.pop("check")} if "check" in more else {}
    purpose = {"goal": goal} if goal else {}
    return {"id": item, "executor": "command", "maxAttempts": 1, "inputs": {**purpose, "command": line, **check}, **more}


def need(item, path, run=None):
    """Returns what a plan says to take an output of an item."""
    return {**({"run": run} if run else {}), "from": item, "select": {"kind": "output", "path": path}}


class Repository:
    """A repository to make runs in; pages are written into the folder above it."""

    def __init__(self, folder, name):
        self.folder, self.path = folder, folder / "repositories" / name
        self.path.mkdir(parents=True)
        self.git("init", "-q", "-b", "main", ".")
        for key, value in (("user.name", "Ada"), ("user.email", "ada@localhost")):
            self.git("config", key, value)
        self.git("commit", "-q", "--allow-empty", "-m", "Start")

    def git(self, *words, given=None, codes=(0,)):
        """Runs git, which must end with one of the codes."""
        done = subprocess.run(["git", *words], cwd=self.path, input=given, capture_output=True, text=True)
        if done.returncode not in codes:
            sys.exit(f"git {' '.join(words)[:200]} ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return done.stdout

    def run(self, name, items, jobs=1, close=True, **plan):
        """Drives a plan until it settles: one item at a time, so that its entries always have the same order."""
        text = json.dumps({"id": name, "items": items, **plan})
        self.git("handoff", "run", "-j", str(jobs), *(["--close"] if close else []), "-", given=text, codes=(0, 1, 3, 4))

    def page(self, name, *words):
        """Writes FOLDER/NAME.html."""
        self.git("handoff", "report", "--output", str(self.folder / f"{name}.html"), *words)


def ordinary(folder):
    """Pages of runs with ordinary names: all done, red, failed, waiting, and two of one page."""
    repository = Repository(folder, "ordinary")
    repository.run("small", [
        command("make", "echo one >list; echo two >outputs/two.txt", "Make a list"),
        command("take", "cat inputs/two >outputs/three.txt", "Use the list", needs={"two": need("make", "two.txt")})])
    repository.page("small", "small")
    for key, value in (("command", "echo draft >text"), ("verify", "echo the text is not final >&2; grep -q final text"), ("onVerifyFail", "keep")):
        repository.git("config", f"handoff.subagent.writer.{key}", value)
    repository.run("red", [
        {"id": "edit", "executor": "dispatch", "inputs": {"subagent": "writer", "goal": "Write the text"}},
        command("print", "true", produces=[], depends_on=["edit"])])
    repository.page("red", "red")
    repository.run("partial", [
        command("good", "echo good >good"),
        command("bad", "echo broken >&2; exit 3", depends_on=["good"]),
        command("after", "true", produces=[], depends_on=["bad"])])
    repository.page("partial", "partial")
    repository.run("open", [
        command("build", "echo built >outputs/built.txt"),
        {"id": "sign-off", "executor": "approval", "depends_on": ["build"]},
        command("publish", "true", produces=[], depends_on=["sign-off"])], close=False)
    repository.page("open", "open")
    repository.run("user", [
        command("report", "cat inputs/text >outputs/report.txt", needs={"text": need("take", "three.txt", run="small")})])
    repository.page("cross", "small", "user")


def hostile(folder):
    """A page whose names and texts would be markup, scripts or other lines if it did not write them as text."""
    repository = Repository(folder, "hostile")
    write = "".join(f"printf '%s' \"$TEXT\" >outputs/{quoted(path)}; " for path in HOSTILE_OUTPUTS)
    items = [command(item, "true", f"goal of {item}", produces=[]) for item in HOSTILE_ITEMS]
    items.append(command("x" * 128, "true", "y" * 3000, produces=[]))
    text = HOSTILE_TEXT.replace("\0", "")
    items.append({"id": "writer", "executor": "command", "maxAttempts": 1,
                  "inputs": {"command": write + "echo a >'a & <b>.txt'", "env": {"TEXT": text}}})
    items.append(command("fails", "echo '</script><script>alert(2)</script>' >&2; exit 7", check="true"))
    repository.run("<b>&amp; \u05d0\U0001f600'\"", items, openEnded=True, close=False)
    (repository.path / "document.json").write_text(json.dumps({"note": text}))
    run = "<b>&amp; \u05d0\U0001f600'\""
    repository.git("handoff", "doc", "put", run, "notes/<img src=x onerror=alert(1)> \u05d0.json", "document.json")
    repository.git("handoff", "close", run, codes=(0, 3, 4))
    repository.page("hostile", run)


def quoted(word):
    """Quotes a word for the shell."""
    return "'" + word.replace("'", "'\\''") + "'"


def contents(folder):
    """Pages of one run with no, small and all contents, with an image and a large output."""
    repository = Repository(folder, "contents")
    (repository.path / "dot.png").write_bytes(picture())
    repository.git("add", "dot.png")
    repository.git("commit", "-q", "-m", "Add a picture")
    (repository.path / "spec.md").write_text("# What to make\n")
    repository.run("contents", [command(
        "make", "mkdir outputs/deep; echo low >outputs/deep/low.txt; cp dot.png outputs/dot.png; seq 1 200000 >outputs/large.txt; printf '\\000\\001\\377' >outputs/bytes.bin; "
        "printf '{\"a\": 1}' >outputs/a.json; seq 1 2000 >numbers")], artifacts={"material/spec.md": "spec.md"})
    for content in ("none", "small", "all"):
        repository.page(f"content-{content}", "contents", "--content", content)


def thread(folder):
    """A page of a thread with two checkpoints, and one of a run beside the thread."""
    repository = Repository(folder, "thread")
    for state in ("first", "second <b>"):
        repository.git("handoff", "checkpoint", "login", "--state", "-", given=state)
    repository.page("thread", "login")
    repository.run("beside", [command("make", "echo one >list")])
    repository.page("beside", "beside", "login")


def many(folder, count):
    """A page of many items without contents: groups of ten, each behind the first of its group."""
    repository = Repository(folder, f"many-{count}")
    items = []
    for number in range(count):
        first = f"step-{number // 10 * 10:05}"
        behind = {} if number % 10 == 0 else {"depends_on": [first]}
        items.append({"id": f"step-{number:05}", "executor": "command", "inputs": {"command": ["true"]}, "produces": [], **behind})
    repository.run("many", items, jobs=8)
    start = time.monotonic()
    repository.page(f"many-{count}", "many", "--content", "none")
    print(f"  {count} items: page written in {time.monotonic() - start:.1f} s")


def picture():
    """Returns a PNG of 2 by 2 pixels."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes((200, 30, 30, 30, 30, 200)) for _ in range(2))
    header = struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    os.environ.update({"HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "home/cache"), "GIT_CONFIG_NOSYSTEM": "1"})
    for name in ("XDG_CONFIG_HOME", "HANDOFF_ACTOR"):
        os.environ.pop(name, None)
    (folder / "home").mkdir(exist_ok=True)
    if sys.argv[2:3] == ["--many"]:
        many(folder, int(sys.argv[3]))
        return
    for make in (ordinary, hostile, contents, thread):
        make(folder)


if __name__ == "__main__":
    main()
