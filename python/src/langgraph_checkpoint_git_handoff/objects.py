"""Objects and refs, read by plain git. Every object is checked against its hash."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from .errors import HandoffError
from .names import THREADS, name_of_ref
from .program import environment

# How many bytes are asked of git at once, and how many are kept for the next call.
_BATCH_BYTES = 32 << 20
_KEPT_BYTES = 64 << 20


@dataclass(frozen=True)
class Blob:
    """A state as a signed entry names it."""

    oid: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Commit:
    """The commit of an entry: its parents, and the entry."""

    parents: list[str]
    entry: dict[str, Any]


class Objects:
    """The objects of one repository."""

    def __init__(self, repository: Path) -> None:
        """Keeps the place; starts nothing."""
        self._repository = repository
        self._folder: Path | None = None
        self._lock = Lock()
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._kept_bytes = 0

    def head(self, ref: str) -> str | None:
        """Returns the commit of a ref, or `None` if there is no such ref."""
        try:
            loose = (self._refs() / ref).read_text("ascii")
        except (OSError, ValueError):
            loose = ""
        if re.fullmatch(r"([0-9a-f]{40}|[0-9a-f]{64})\n", loose):
            return loose.strip()
        # It is packed, symbolic or missing.
        done = self._git(["rev-parse", "--verify", "--quiet", ref])
        if done.returncode == 1:
            return None
        return _succeeded(done).decode().strip()

    def _refs(self) -> Path:
        """Returns the folder of the repository's loose refs, which take precedence."""
        if self._folder is None:
            done = self._git(["rev-parse", "--git-common-dir"])
            self._folder = self._repository / os.fsdecode(_succeeded(done).rstrip(b"\n"))
        return self._folder

    def thread_names(self) -> list[str]:
        """Returns the names of all threads of this repository."""
        done = self._git(["for-each-ref", "--format=%(refname)", THREADS])
        names = (name_of_ref(ref) for ref in _succeeded(done).decode().splitlines())
        return [name for name in names if name is not None]

    def commit(self, oid: str) -> Commit:
        """Reads the commit of an entry."""
        (content,) = self._cat([oid])
        hasher = hashlib.sha1 if len(oid) == 40 else hashlib.sha256
        if hasher(b"commit %d\0" % len(content) + content).hexdigest() != oid:
            raise HandoffError("altered", f"the commit {oid} does not match its name")
        header, _, message = content.partition(b"\n\n")
        parents = [line[7:].decode() for line in header.splitlines() if line[:7] == b"parent "]
        try:
            entry = json.loads(message.partition(b"\n\n")[2])
        except ValueError as error:
            raise HandoffError("altered", f"the commit {oid} carries no entry") from error
        return Commit(parents, entry)

    def keep(self, blob: Blob, content: bytes) -> None:
        """Keeps the bytes of a state in memory for later reads; the oldest make room."""
        with self._lock:
            if blob.sha256 in self._kept:
                self._kept.move_to_end(blob.sha256)
                return
            self._kept[blob.sha256] = content
            self._kept_bytes += len(content)
            while self._kept_bytes > _KEPT_BYTES and len(self._kept) > 1:
                self._kept_bytes -= len(self._kept.popitem(last=False)[1])

    def read(self, blob: Blob) -> bytes:
        """Returns the bytes of a state."""
        ((_, content),) = self.read_all([blob])
        return content

    def read_all(self, blobs: Iterable[Blob]) -> Iterator[tuple[Blob, bytes]]:
        """Yields the bytes of states; asks git for many at once."""
        batch: list[Blob] = []
        size = 0
        for blob in blobs:
            batch.append(blob)
            size += blob.size
            if size > _BATCH_BYTES:
                yield from self._read_batch(batch)
                batch, size = [], 0
        yield from self._read_batch(batch)

    def _read_batch(self, batch: Sequence[Blob]) -> list[tuple[Blob, bytes]]:
        with self._lock:
            found = {b.sha256: self._kept[b.sha256] for b in batch if b.sha256 in self._kept}
        absent = list({b.sha256: b for b in batch if b.sha256 not in found}.values())
        for blob, content in zip(absent, self._cat([b.oid for b in absent]), strict=True):
            if len(content) != blob.size or hashlib.sha256(content).hexdigest() != blob.sha256:
                message = f"the state {blob.oid} is not what its signed entry says"
                raise HandoffError("altered", message)
            found[blob.sha256] = content
            self.keep(blob, content)
        return [(blob, found[blob.sha256]) for blob in batch]

    def _cat(self, oids: Sequence[str]) -> list[bytes]:
        if not oids:
            return []
        done = self._git(["cat-file", "--batch"], "".join(f"{oid}\n" for oid in oids).encode())
        # After a damaged object git ends, and the answers before it are of no use.
        output, at, contents = _succeeded(done), 0, []
        for oid in oids:
            end = output.find(b"\n", at)
            header = output[at:end].split()
            if len(header) != 3 or header[0] != oid.encode():
                raise HandoffError("altered", f"the object {oid} is missing")
            begin = end + 1
            at = begin + int(header[2]) + 1
            contents.append(output[begin : at - 1])
        return contents

    def _git(self, arguments: list[str], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                ["git", *arguments],
                cwd=self._repository,
                env=environment(),
                input=stdin,
                capture_output=True,
                check=False,
            )
        except OSError as error:
            if not self._repository.is_dir():
                message = f"cannot open the repository {self._repository}: no such folder"
                raise HandoffError("no-repository", message) from error
            raise HandoffError("git", f"cannot run git: {error.strerror}") from error


def _succeeded(done: subprocess.CompletedProcess[bytes]) -> bytes:
    if done.returncode == 0:
        return done.stdout
    text = done.stderr.decode(errors="replace").strip()
    code = "no-repository" if "not a git repository" in text else "git"
    raise HandoffError(code, f"git {done.args[1]} failed: {text}")
