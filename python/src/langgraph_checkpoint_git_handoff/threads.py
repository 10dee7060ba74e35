"""Threads as they were last verified.

Nothing is read from a thread before the program has verified its chain, keys and logs at the very
commit that is read. A verified thread is kept in memory until its ref moves. An entry that this
process appends through the program, directly after the commit that it has verified, extends it.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, RLock
from typing import Any

from .errors import HandoffError
from .history import RESUMED, Entry, History, check_thread, effective
from .names import thread_id_of, thread_name, thread_ref
from .objects import Blob, Objects
from .program import Program
from .records import File, is_file, read

_ATTEMPTS = 20


@dataclass
class Thread:
    """A verified thread at one commit."""

    name: str
    thread_id: str
    head: str
    history: History


class Threads:
    """The LangGraph threads of one repository."""

    def __init__(self, repository: Path, program: Program) -> None:
        """Keeps the place; starts nothing."""
        self.program = program
        self.objects = Objects(repository)
        self._verified: dict[str, Thread] = {}
        self._files: dict[str, File] = {}
        self._locks: defaultdict[str, RLock] = defaultdict(RLock)
        self._lock = Lock()

    def lock(self, name: str) -> RLock:
        """Returns the lock under which a thread is loaded, examined and appended to."""
        with self._lock:
            return self._locks[name]

    def load(self, thread_id: str) -> Thread | None:
        """Returns a verified thread, or `None` if there is none of this id."""
        name = thread_name(thread_id)
        with self.lock(name):
            thread = self._load(name, thread_id)
            if thread is None and not self.program.is_unknown(name):
                # It was created in between, or only a fetched thread has this name.
                thread = self._load(name, thread_id)
            return thread

    def load_all(self) -> list[Thread]:
        """Returns all LangGraph threads of the repository; threads of other programs are skipped.

        A thread that does not verify is an error, whatever it holds.
        """
        threads = []
        for name in self.objects.thread_names():
            with self.lock(name):
                thread = self._load(name, thread_id_of(name), is_required=False)
            if thread is not None:
                threads.append(thread)
        return threads

    def append(self, thread_id: str, state: bytes, summary: str) -> Entry:
        """Appends a state to the thread, and returns its entry."""
        name = thread_name(thread_id)
        with self.lock(name):
            known = self._verified.get(name)
            made = self.program.checkpoint(name, state, summary)
            blob = Blob(made["blob_id"], hashlib.sha256(state).hexdigest(), len(state))
            if made["blob_sha256"] != blob.sha256:
                raise HandoffError("bad-answer", f"git-handoff stored other bytes in {name}")
            entry = Entry(made["checkpoint_id"], blob, summary)
            self._extend(known, thread_id, made["commit"], entry, state)
            return entry

    def _extend(
        self, known: Thread | None, thread_id: str, commit: str, entry: Entry, state: bytes
    ) -> None:
        """Extends the verified thread by an entry that follows it directly."""
        parents = self.objects.commit(commit).parents
        if parents != ([] if known is None else [known.head]):
            return
        name, file = thread_name(thread_id), read(state)
        thread = known or Thread(name, thread_id, commit, History())
        thread.history.apply(entry, file)
        thread.head = commit
        self._verified[name] = thread
        self._files[entry.blob.sha256] = file
        self.objects.keep(entry.blob, state)

    def _load(self, name: str, thread_id: str | None, *, is_required: bool = True) -> Thread | None:
        ref = thread_ref(name)
        for _ in range(_ATTEMPTS):
            head = self.objects.head(ref)
            if head is None:
                self._verified.pop(name, None)
                return None
            known = self._verified.get(name)
            if known is not None and known.head == head:
                return known
            lines = self.program.log(name)
            if not self._is_at(head, lines[-1]):
                continue
            # The chain that is vouched for has this checkpoint, and so all before it.
            self.program.vouch(name, lines[-1]["checkpoint_id"])
            if self.objects.head(ref) == head:
                entries = [Entry.of(line) for line in lines]
                return self._verify(name, thread_id, head, entries, is_required)
        raise HandoffError("busy", f"the thread {name} kept changing while it was verified")

    def _is_at(self, head: str, latest: dict[str, Any]) -> bool:
        """Returns true if the log was read at this commit: its latest checkpoint is there."""
        if latest["commit"] == head:
            return True
        entry = self.objects.commit(head).entry
        is_resumed = entry["kind"] == RESUMED
        return is_resumed and bool(entry["checkpoint"] == latest["checkpoint_id"])

    def _verify(
        self, name: str, thread_id: str | None, head: str, entries: list[Entry], is_required: bool
    ) -> Thread | None:
        """Reads the states of verified entries, each against the hash in its entry."""
        counted = effective(entries)
        files = self._read(counted, is_required)
        if files is None:
            return None
        thread_id = thread_id or _own_id(name, files)
        if thread_id is None:
            return None
        check_thread(name, thread_id, files)
        thread = Thread(name, thread_id, head, History())
        for entry, file in files:
            thread.history.apply(entry, file)
        self._verified[name] = thread
        return thread

    def _read(self, entries: list[Entry], is_required: bool) -> list[tuple[Entry, File]] | None:
        absent = {e.blob.sha256: e.blob for e in entries if e.blob.sha256 not in self._files}
        for blob, content in self.objects.read_all(absent.values()):
            is_first = blob == entries[0].blob
            if is_first and not is_required and not is_file(content):
                return None
            self._files[blob.sha256] = read(content)
        return [(entry, self._files[entry.blob.sha256]) for entry in entries]


def _own_id(name: str, files: list[tuple[Entry, File]]) -> str | None:
    """Returns the id of a thread whose name is only a hash of it."""
    ids = {file.thread_id for entry, file in files if not entry.is_from_another}
    return next((found for found in ids if thread_name(found) == name), None)
