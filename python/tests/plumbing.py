"""Edits at rest with real git plumbing, as someone with write access to the files can make them."""

from __future__ import annotations

import hashlib
import json
import subprocess
import zlib
from pathlib import Path
from typing import Any

from conftest import run
from langgraph_checkpoint_git_handoff.names import thread_ref


def head(repository: Path, thread: str) -> str:
    return run(repository, "git", "rev-parse", thread_ref(thread))


def loosen(repository: Path) -> None:
    """Turns all packs into loose objects, so that single ones can be edited."""
    packs = repository / ".git/objects/pack"
    for pack in list(packs.glob("*.pack")):
        content = pack.read_bytes()
        for part in packs.glob(f"{pack.stem}.*"):
            part.unlink()
        run(repository, "git", "unpack-objects", "-q", stdin=content)


def overwrite(repository: Path, oid: str, content: bytes, kind: str = "blob") -> None:
    """Replaces the bytes of an object, and leaves its name."""
    path = repository / ".git/objects" / oid[:2] / oid[2:]
    path.chmod(0o644)
    path.write_bytes(zlib.compress(b"%s %d\0" % (kind.encode(), len(content)) + content))


def raw(repository: Path, kind: str, oid: str) -> bytes:
    done = subprocess.run(
        ["git", "cat-file", kind, oid], cwd=repository, capture_output=True, check=True
    )
    return done.stdout


def entries(repository: Path, thread: str) -> list[dict[str, Any]]:
    """Returns the lines of `thread log`, oldest first."""
    lines = run(repository, "git-handoff", "--json", "thread", "log", thread).splitlines()
    return [json.loads(line) for line in reversed(lines)]


def forge(
    repository: Path, thread: str, state: bytes, *, key: Path | None, signature_of: str
) -> None:
    """Appends a correct entry with this state, signed by another key or with an old signature."""
    tip = head(repository, thread)
    last = entries(repository, thread)[-1]
    blob = run(repository, "git", "hash-object", "-w", "--stdin", stdin=state)
    product = {
        "oid": blob,
        "sha256": "sha256:" + hashlib.sha256(state).hexdigest(),
        "size": len(state),
    }
    entry = {**last["entry"], "seq": last["entry"]["seq"] + 1, "prev": last["hash"]}
    entry["state"] = product
    entry.pop("summary", None)
    text = json.dumps(entry, indent=1, sort_keys=True, ensure_ascii=False)
    tree = run(repository, "git", "mktree", stdin=f"100644 blob {blob}\tstate\n".encode())
    header, message = raw(repository, "commit", tip).decode().split("\n\n", 1)
    subject = message.split("\n")[0]
    people = [line for line in header.split("\n") if line.startswith(("author ", "committer "))]
    begin = "\n".join([f"tree {tree}", f"parent {tip}", *people])
    rest = f"\n\n{subject}\n\n{text}\n"
    if key is None:
        old = raw(repository, "commit", signature_of).decode()
        signature = old[old.index("gpgsig ") : old.index("\n\n")]
    else:
        signature = signed(key, (begin + rest).encode())
    commit = f"{begin}\n{signature}{rest}".encode()
    forged = run(repository, "git", "hash-object", "-t", "commit", "-w", "--stdin", stdin=commit)
    run(repository, "git", "update-ref", thread_ref(thread), forged)


def signed(key: Path, payload: bytes) -> str:
    """Returns the header with a signature by an SSH key."""
    done = subprocess.run(
        ["ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", str(key)],
        input=payload,
        capture_output=True,
        check=True,
    )
    return "gpgsig " + done.stdout.decode().strip().replace("\n", "\n ")
