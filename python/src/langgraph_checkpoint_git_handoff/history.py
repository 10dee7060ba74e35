"""What the entries of a thread add up to: the checkpoints and pending writes of LangGraph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from .errors import HandoffError
from .names import thread_id_of
from .objects import Blob
from .records import Delete, File, Put, Record, Value, Writes

RESUMED = "thread.resumed"


@dataclass(frozen=True)
class Entry:
    """A signed entry that makes a checkpoint of the thread of `git handoff`."""

    id: str
    blob: Blob
    summary: str | None
    back_to: str | None = None
    adopted_from: str | None = None
    is_from_another: bool = False

    @staticmethod
    def of(line: dict[str, Any]) -> Entry:
        """Reads a line of `thread log`."""
        entry = line["entry"]
        origin = entry["adopted"]["thread"] if "adopted" in entry else None
        return Entry(
            id=line["checkpoint_id"],
            blob=Blob(line["blob_id"], line["blob_sha256"], line["size"]),
            summary=line["summary"],
            back_to=entry.get("to"),
            adopted_from=None if origin is None else thread_id_of(origin) or origin,
            is_from_another="adopted" in entry or "from" in entry,
        )


@dataclass(frozen=True)
class Stored:
    """A checkpoint of LangGraph, and the entry that holds it."""

    put: Put
    entry: Entry
    is_alone: bool

    @property
    def key(self) -> tuple[str, str]:
        """The namespace and the id."""
        return self.put.ns, self.put.id


@dataclass(frozen=True)
class StoredWrite:
    """A pending write, and the state that holds it."""

    task_id: str
    task_path: str
    idx: int
    channel: str
    value: Value
    blob: Blob


_Node: TypeAlias = "tuple[_Node, Entry] | None"


@dataclass
class History:
    """The checkpoints and writes after some entries."""

    checkpoints: dict[str, dict[str, Stored]] = field(default_factory=dict)
    _writes: dict[tuple[str, str], dict[tuple[str, int], StoredWrite]] = field(default_factory=dict)

    def apply(self, entry: Entry, file: File) -> None:
        """Adds the records of the next entry."""
        is_alone = len(file.records) == 1
        for record in file.records:
            self._apply(record, entry, is_alone)

    def writes(self, ns: str, checkpoint_id: str) -> list[StoredWrite]:
        """Returns the pending writes of a checkpoint, in the order that LangGraph applies."""
        found = self._writes.get((ns, checkpoint_id), {}).values()
        return sorted(found, key=lambda write: (write.task_path, write.task_id, write.idx))

    def all(self) -> list[Stored]:
        """Returns all checkpoints, newest first."""
        stored = [stored for by_id in self.checkpoints.values() for stored in by_id.values()]
        return sorted(stored, key=lambda one: one.put.id, reverse=True)

    def find(self, ns: str, checkpoint_id: str | None) -> Stored | None:
        """Returns a checkpoint, or the latest one if no id is given."""
        by_id = self.checkpoints.get(ns, {})
        return by_id.get(checkpoint_id or max(by_id, default=""))

    def _apply(self, record: Record, entry: Entry, is_alone: bool) -> None:
        if isinstance(record, Put):
            stored = Stored(record, entry, is_alone)
            self.checkpoints.setdefault(record.ns, {})[record.id] = stored
        elif isinstance(record, Delete):
            self._delete(record)
        else:
            self._write(record, entry)

    def _write(self, record: Writes, entry: Entry) -> None:
        found = self._writes.setdefault((record.ns, record.id), {})
        for write in record.writes:
            key = (record.task_id, write.idx)
            # A repeated write is ignored; errors and interrupts, below 0, replace earlier ones.
            if write.idx < 0 or key not in found:
                found[key] = StoredWrite(
                    record.task_id,
                    record.task_path,
                    write.idx,
                    write.channel,
                    write.value,
                    entry.blob,
                )

    def _delete(self, record: Delete) -> None:
        if record.checkpoints is None:
            self.checkpoints.clear()
            self._writes.clear()
            return
        for ns, checkpoint_id in record.checkpoints:
            self.checkpoints.get(ns, {}).pop(checkpoint_id, None)
            self._writes.pop((ns, checkpoint_id), None)


def effective(entries: Sequence[Entry]) -> list[Entry]:
    """Returns the entries that count: a rollback undoes those after the entry that it goes to."""
    nodes: dict[str, _Node] = {}
    head: _Node = None
    for entry in entries:
        head = (head, entry) if entry.back_to is None else nodes[entry.back_to]
        nodes[entry.id] = head
    counted: list[Entry] = []
    while head is not None:
        head, entry = head
        counted.append(entry)
    counted.reverse()
    return counted


def check_thread(name: str, thread_id: str | None, files: Iterable[tuple[Entry, File]]) -> None:
    """Raises if an entry was written for another LangGraph thread.

    Only the state of an adopted or forked thread's first entry names the thread that it came from.
    """
    for entry, file in files:
        if not entry.is_from_another and file.thread_id != thread_id:
            message = f"entry {entry.id} of thread {name} was written for {file.thread_id!r}"
            raise HandoffError("not-langgraph", message)
