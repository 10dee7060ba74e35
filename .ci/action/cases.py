"""Plays the action on real repositories, and compares what comes out with files below expected/.

    cases.py FOLDER [CASE…]

FOLDER must be empty. `git-handoff` is the one in PATH. UPDATE=1 writes the files anew.
"""

import hashlib
import importlib
import json
import os
import platform
import re
import shutil
import sys
import tarfile
import time
from pathlib import Path

import cmarkgfm
from host import READ_ONLY, Host
from player import Player
from scene import ROOT, Scene

TOKEN = "ghs_stand-in"
EXPECTED = Path(__file__).parent / "expected"
ODD = "a|b``c`::error::x%0A**b** <img src=x> @ada #1 [l](u) $x$ ##[error]y \\"
CASES = {}


def case(function):
    """Makes a function a case."""
    CASES[function.__name__.replace("_", "-")] = function
    return function


class Stage:
    """Where the cases are played: a folder, a host, and the programs on PATH."""

    def __init__(self, folder):
        """Starts in an empty folder."""
        self.folder, self.host, self.played = folder, Host(folder / "host", TOKEN), 0
        # A shim of `python3` takes longer to start than a step of the action.
        (folder / "python").mkdir()
        (folder / "python/python3").symlink_to(Path(sys.executable).resolve())
        os.environ["PATH"] = os.pathsep.join([str(folder / "python"), os.environ["PATH"]])
        places = os.environ["PATH"].split(os.pathsep)
        self.without = os.pathsep.join(place for place in places if not (Path(place) / "git-handoff").exists())
        self.failed, self.digest = [], "no digest yet"

    def scene(self):
        """Makes a project."""
        self.played += 1
        return Scene(self.folder / f"scene-{self.played}", self.host)

    def play(self, name, scene, event, refuse=None, persist=True, depth=1, empty=False, more=None, **inputs):
        """Plays the action on a new checkout, and compares everything that comes out of it."""
        self.host.requests, self.host.refuse = [], refuse or {}
        workspace = scene.checkout(event, persist, depth)
        if empty:
            shutil.rmtree(workspace / ".git")
        temp = scene.folder / f"temp-{name}"
        temp.mkdir()
        (temp / "event.json").write_text(json.dumps(event["payload"]))
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(temp),
            "LANG": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CEILING_DIRECTORIES": str(scene.folder),
            "GITHUB_API_URL": f"{self.host.url}/api",
            "GITHUB_SERVER_URL": self.host.url,
            "GITHUB_REPOSITORY": "octo/greeting",
            "GITHUB_EVENT_NAME": event["name"],
            "GITHUB_EVENT_PATH": str(temp / "event.json"),
            "GITHUB_REF_NAME": event["ref"],
            "GITHUB_RUN_ID": "42",
            "GITHUB_SHA": event["sha"],
            "RUNNER_TEMP": str(temp),
        } | (more or {})
        given = {"signers": scene.signers, "install": "false"} | {k.replace("_", "-"): v for k, v in inputs.items()}
        player = Player(ROOT / "action", workspace, temp, environment, TOKEN)
        played = player.play(given)
        for command, properties, data in played.commands:
            assert command in ("error", "warning") and properties == "title=git handoff", (command, properties, data)
        check_markdown(played.summary, self.host.url)
        if played.outputs["report"]:
            json.loads(Path(played.outputs["report"]).read_text())
        found = {
            "success": played.success,
            "outputs": played.outputs,
            "requests": self.host.requests,
            "called": played.called,
            "log": played.log.splitlines(),
        }
        self.compare(f"{name}.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n", scene)
        self.compare(f"{name}.md", played.summary, scene)
        return played, player

    def compare(self, name, text, scene):
        """Compares a text with an expected one, or writes it."""
        text = text.replace(self.host.url, "https://host").replace(str(scene.folder), "/folder")
        text = re.sub(r"git-handoff[-.](?:[0-9a-f]{16}|\w{6})\b(?=[/\"])", "git-handoff-RANDOM", text)
        text = text.replace(str(ROOT), "/root").replace(platform.machine(), "MACHINE").replace(self.digest, "DIGEST")
        # What entries say is compared elsewhere, so that another format of them changes no file here.
        text = re.sub(r"\bmerkle [0-9a-f]{8}\b", "merkle ROOT", text)
        text = re.sub(r"\bsha256:[0-9a-f]{64}\b", "sha256:HASH", text)
        text = re.sub(r"(/logs/SHA256%3A[\w%]+)\.[0-9a-f]{12}\b", r"\1.FIRST", text)
        path = EXPECTED / name
        if not text:
            # git keeps no file for nothing.
            assert not path.exists(), f"there is no summary, and {path} expects one"
        elif os.environ.get("UPDATE"):
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            (self.folder / name).write_text(text)
            self.failed.append(f"diff {path.relative_to(ROOT)} {self.folder / name}")


def check_markdown(text, url):
    """Fails unless tables keep their columns, and only links to commits and known elements are there."""
    page = cmarkgfm.github_flavored_markdown_to_html(text)
    for table in re.findall("<table>(.*?)</table>", page, re.DOTALL):
        rows = [len(re.findall("<t[hd]", row)) for row in re.findall("<tr>(.*?)</tr>", table, re.DOTALL)]
        assert len(set(rows)) == 1, f"a table has rows of {rows} cells:\n{text}"
    # A row with more cells than the head loses the rest, so each is counted in the source, too.
    for line in text.splitlines():
        if line.startswith("| ") and line.endswith(" |"):
            cells = len(re.findall(r"(?<!\\)\|", line)) - 1
            assert cells in (2, 5, 6), f"a row has {cells} cells: {line}"
    for link in re.findall('href="([^"]*)"', page):
        assert re.fullmatch(re.escape(url) + "/octo/greeting/commit/[0-9a-f]{40}", link), link
    known = "h1|h2|p|table|thead|tbody|tr|th|td|code|a|pre|ul|li|blockquote"
    strange = set(re.findall(r"<([a-z0-9]+)", page)) - set(known.split("|"))
    assert not strange, f"the summary has the elements {strange}:\n{page}"


def dutch(stage):
    """Returns a project with a run of two items on the branch `work`, and a commit of a person."""
    scene = stage.scene()
    scene.run(
        "dutch",
        {
            "translate": "sed -i s/Hello/Hallo/ greeting.txt",
            "shout": "sed -i s/world/WORLD/ greeting.txt; echo 3 >outputs/words",
        },
    )
    scene.apply("dutch")
    scene.git("checkout", "--quiet", "work")
    scene.commit("Add a note", **{"notes.txt": "one\ntwo\n"})
    scene.push()
    return scene


@case
def intact(stage):
    """Runs that are intact, and what can go wrong around them."""
    scene = dutch(stage)
    event = scene.pull_request()
    stage.play("intact", scene, event)
    stage.play("intact-whole-checkout", scene, event, depth=0, persist=False)
    stage.play("key-not-trusted", scene, event, signers=scene.signers.replace("AAAAIC", "AAAAIB"))
    stage.play("no-signers", scene, event, signers=" \n")
    stage.play("no-token", scene, event, token="")
    stage.play("no-token-private", scene, event, token="", persist=False)
    stage.play("no-permission", scene, event, refuse={1: (403, READ_ONLY)})
    stage.play("no-checkout", scene, event, empty=True)
    stage.play("no-api", scene, event, more={"GITHUB_API_URL": "http://127.0.0.1:1"})
    played, _ = stage.play("attested", scene, event, attest="dutch/shout:outputs/words")
    given = played.called[0]["with"]
    predicate = json.loads(Path(given["predicate-path"]).read_text())
    assert predicate["buildDefinition"]["externalParameters"]["item"] == "shout", predicate
    assert predicate["runDetails"]["metadata"]["invocationId"] == "dutch/shout#1", predicate
    assert given["subject-digest"].removeprefix("sha256:") == hashlib.sha256(b"3\n").hexdigest(), given
    stage.play("attest-unknown-product", scene, event, attest="dutch/shout:outputs/none\n::error::x")
    stage.play("attest-unknown-run", scene, event, attest="frisian/shout:patch")
    stage.play("commits-unknown", scene, event, commits="none..HEAD")
    main, work = scene.git("rev-parse", "main"), scene.git("rev-parse", "work")
    stage.play("push", scene, scene.push_event("work", main, work))
    stage.play("push-new-branch", scene, scene.push_event("work", "0" * 40, work))
    stage.play("push-default-branch", scene, scene.push_event("main", "0" * 40, main))
    stage.play("push-forced", scene, scene.push_event("work", "1" * 40, work))
    stage.play("push-forced-default-branch", scene, scene.push_event("main", "1" * 40, main))
    group = {
        "name": "merge_group",
        "sha": work,
        "ref": "work",
        "payload": {"merge_group": {"base_sha": main, "head_sha": work}},
    }
    stage.play("merge-group", scene, group)
    hand = {"name": "workflow_dispatch", "sha": work, "ref": "work", "payload": {}}
    stage.play("no-commits-named", scene, hand)
    stage.play("commits-named", scene, hand, commits=f"{main}..HEAD")
    stage.play("commits-of-branch", scene, hand, commits="origin/main..HEAD")
    stage.play("commits-of-branch-whole-checkout", scene, hand, commits="origin/main..HEAD", depth=0)
    stage.play("commits-of-missing-branch", scene, hand, commits="origin/none..HEAD")
    stage.play("commits-none", scene, hand, commits="HEAD..HEAD")


@case
def sample(stage):
    """The plays that show most, for every run of CI."""
    scene = dutch(stage)
    event = scene.pull_request()
    stage.play("intact", scene, event)
    stage.play("key-not-trusted", scene, event, signers=scene.signers.replace("AAAAIC", "AAAAIB"))
    stage.play("no-permission", scene, event, refuse={1: (403, READ_ONLY)})
    stage.play("no-signers", scene, event, signers=" \n")


@case
def no_run(stage):
    """Commits of people alone, and a commit whose run was not pushed."""
    scene = stage.scene()
    scene.git("checkout", "--quiet", "-b", "work")
    scene.commit("Greet in Frisian", **{"greeting.txt": "Goeie, wrâld\n"})
    scene.push(runs=False)
    stage.play("no-run", scene, scene.pull_request())
    scene.run("dutch", {"translate": "sed -i s/Goeie/Hallo/ greeting.txt"})
    scene.apply("dutch", "other")
    scene.push("other", runs=False)
    stage.play("run-not-pushed", scene, scene.pull_request("other"))


@case
def red(stage):
    """A run with an item whose check did not pass."""
    scene = stage.scene()
    scene.git("config", "handoff.executor.command.verify", "grep -q Hallo greeting.txt")
    scene.git("config", "handoff.executor.command.onVerifyFail", "keep")
    scene.run("dutch", {"translate": "sed -i s/Hello/Bonjour/ greeting.txt"}, codes=(4,))
    scene.apply("dutch", "work", "--allow-red")
    scene.push()
    event = scene.pull_request()
    stage.play("red", scene, event)
    stage.play("red-allowed", scene, event, allow_partial="true")


@case
def forged(stage):
    """A run that was cut short, one whose product was replaced, and commits that were amended."""
    scene = dutch(stage)
    event = scene.pull_request()
    ref = "refs/handoff/runs/dutch"
    whole = scene.git("rev-parse", ref)
    scene.git("push", "--quiet", "--force", "origin", f"{ref}~1:{ref}")
    stage.play("cut-short", scene, event)
    patch = scene.command("git", "cat-file", "blob", f"{ref}^{{/item.reconciled shout }}:patch").replace("WORLD", "MARS") + "\n"
    blob = scene.git("hash-object", "-w", "--stdin", text=patch)
    scene.git("read-tree", "--index-output=.git/forged", ref)
    scene.command(
        "env", "GIT_INDEX_FILE=.git/forged", "git", "update-index", "--add", "--cacheinfo", f"100644,{blob},patch"
    )
    tree = scene.command("env", "GIT_INDEX_FILE=.git/forged", "git", "write-tree")
    commit = re.sub("^tree .*", f"tree {tree}", scene.git("cat-file", "commit", whole)) + "\n"
    forged = scene.git("hash-object", "-w", "-t", "commit", "--stdin", text=commit)
    scene.git("push", "--quiet", "--force", "origin", f"{forged}:{ref}")
    stage.play("product-replaced", scene, event)
    scene.git("push", "--quiet", "--force", "origin", f"{whole}:{ref}")
    scene.git("reset", "--quiet", "--hard", "HEAD~1")
    (scene.project / "notes.txt").write_text("one\nslipped in\n")
    scene.git("commit", "--quiet", "--all", "--amend", "--no-edit")
    scene.push(runs=False)
    stage.play("amended", scene, scene.pull_request())


@case
def many(stage):
    """More findings than one request may have."""
    scene = stage.scene()
    scene.git("checkout", "--quiet", "-b", "work")
    for number in range(101):
        scene.commit(f"Claim {number}\n\nHandoff-Run: none\nHandoff-Item: i{number}\n", **{"notes.txt": f"{number}\n"})
    scene.push(runs=False)
    event = scene.pull_request()
    _, player = stage.play("many", scene, event)
    assert [len(r["body"]["output"]["annotations"]) for r in stage.host.requests] == [50, 50, 1]
    stage.play("many-cut-off", scene, event, refuse={2: (502, {"message": "Server Error"})})


@case
def long(stage):
    """Summaries that are longer than the host takes: whole lines and whole reports are left out."""
    sys.path.append(str(ROOT / "action"))
    os.environ |= {"GITHUB_SERVER_URL": "https://host", "GITHUB_REPOSITORY": "octo/greeting"}
    checks, summary = importlib.import_module("checks"), importlib.import_module("summary")
    one = {"commit": "1" * 40, "verdict": "product", "subject": "`|" * 500, "detail": "|*" * 500}
    item = {"run": "\u202e" * 50, "item": "|" * 100, "made": None}
    answer = {"range": "a..b", "commits": [one | {"items": [item] * 64}] * 60}
    head = summary.commit_table("✓ PASSED", answer, [])
    assert len(head) > 65_535 and "61 more" in head and "10 more commits are not listed." in head
    shown = checks.cut(head)
    assert len(shown) <= 65_535 and shown.endswith("|\n\nThe rest is in the summary of the job.\n"), shown[-300:]
    check_markdown(shown, "https://host")
    os.environ["GITHUB_STEP_SUMMARY"] = str(stage.folder / "summary")
    summary.job_summary(head, None, ["é" * 200_000] * 5)
    written = (stage.folder / "summary").read_text()
    assert 900_000 - len(head.encode()) < len(written.encode()) < 1024 * 1024
    assert written.endswith("The reports on 3 runs are not shown, because they are too long.\n"), written[-100:]


@case
def fork(stage):
    """A pull request from a fork, whose token cannot write, with the run in the fork."""
    scene = dutch(stage)
    shutil.copytree(scene.hub, stage.host.root / "git/forker/greeting")
    for ref in scene.git("for-each-ref", "--format=%(refname)", "refs/handoff", where=scene.hub).splitlines():
        scene.git("update-ref", "-d", ref, where=scene.hub)
    event = scene.pull_request(fork="forker/greeting")
    stage.play("fork", scene, event, refuse={1: (403, READ_ONLY)})
    shutil.rmtree(stage.host.root / "git/forker/greeting")
    stage.play("fork-gone", scene, event, refuse={1: (403, READ_ONLY)})
    event["payload"]["pull_request"]["head"]["repo"] = None
    stage.play("fork-deleted", scene, event)


@case
def odd(stage):
    """Names that would be commands, links or columns if they were not quoted."""
    scene = stage.scene()
    line = "printf 'Hallo\\n' >greeting.txt; printf x >'a|b\n::error::c`.txt'"
    scene.run(ODD, {ODD: line, "::warning::é\u202e": "printf x >>greeting.txt"})
    scene.apply(ODD)
    scene.git("checkout", "--quiet", "work")
    scene.commit(ODD, **{"::error::d|`%0A.txt": "x\n"})
    scene.commit(f"::error::{ODD}\n\nHandoff-Run: {ODD}\nHandoff-Item: {ODD}\n", **{"a|b\n::error::c`.txt": "y\n"})
    scene.push()
    event = scene.pull_request()
    stage.play("odd", scene, event)
    stage.play("odd-range", scene, event, commits=f"HEAD\n::error::x..{ODD}")
    stage.play("odd-option", scene, event, commits="--all")


@case
def installed(stage):
    """The program from a release, from source, and not at all."""
    scene = dutch(stage)
    event = scene.pull_request()
    bare = {"PATH": stage.without}
    name = f"git-handoff-0.1.0-{platform.machine()}-unknown-linux-musl"
    release = stage.host.root / "releases/v0.1.0" / f"{name}.tar.gz"
    release.parent.mkdir(parents=True)
    with tarfile.open(release, "w:gz", compresslevel=1) as archive:
        for program in ("git-handoff", "git-handoff-attempt"):
            archive.add(shutil.which(program), f"{name}/{program}")
    digest = stage.digest = hashlib.sha256(release.read_bytes()).hexdigest()
    given = {"install": "release", "releases": f"{stage.host.url}/releases", "more": bare}
    _, player = stage.play("release", scene, event, sha256=digest, **given)
    assert "git-handoff." in shutil.which("git-handoff", path=player.environment["PATH"])
    stage.play("release-other-bytes", scene, event, sha256="0" * 64, **given)
    stage.play("release-without-sha256", scene, event, **given)
    stage.play("release-missing", scene, event, sha256=digest, version="9.9.9", **given)
    stage.play("release-odd-version", scene, event, sha256=digest, version="1/../\n::error::x", **given)
    stage.play("install-odd", scene, event, install="::error::x\n%0A", more=bare)
    stage.play("not-installed", scene, event, more=bare)
    programs = scene.folder / "programs"
    programs.mkdir()
    # Cargo is a stand-in that puts the program where cargo would, because a build takes minutes.
    made = shutil.which("git-handoff")
    lines = ["#!/bin/bash", 'echo "in $PWD: cargo $*"', 'mkdir -p "${@: -1}/bin"', f'cp {made} "${{@: -1}}/bin"', ""]
    (programs / "cargo").write_text("\n".join(lines))
    (programs / "cargo").chmod(0o755)
    stage.play("cargo", scene, event, install="cargo", more={"PATH": f"{programs}:{stage.without}"})


def main():
    """Plays the named cases, or all; returns the exit code."""
    folder, names = Path(sys.argv[1]).resolve(), sys.argv[2:] or [name for name in CASES if name != "sample"]
    stage = Stage(folder)
    with stage.host.serving():
        for name in names:
            start = time.monotonic()
            CASES[name](stage)
            print(f"{name}: {time.monotonic() - start:.1f} s", flush=True)
    for line in stage.failed:
        print(line, file=sys.stderr)
    return 1 if stage.failed else 0


if __name__ == "__main__":
    sys.exit(main())
