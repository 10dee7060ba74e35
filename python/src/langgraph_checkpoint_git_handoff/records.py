"""The state of an entry: records of LangGraph in one file.

The first line is a JSON object with `schema`, `thread_id` and `records`. A value is named there by
the serializer's tag and its size in bytes. The bytes of all values follow, in order, without
anything between them. README.md shows one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .errors import HandoffError

SCHEMA = "git-handoff.langgraph/1"

Typed: TypeAlias = tuple[str, bytes]


@dataclass(frozen=True)
class Value:
    """A serialized value: its tag, and its place in the file that was read or its bytes."""

    tag: str
    start: int
    size: int

    def typed(self, file: bytes) -> Typed:
        """Returns the tag and the bytes, out of the file."""
        return self.tag, file[self.start : self.start + self.size]


@dataclass(frozen=True)
class Put:
    """A checkpoint."""

    ns: str
    id: str
    parent: str | None
    checkpoint: Value
    metadata: Value


@dataclass(frozen=True)
class Write:
    """One pending write."""

    idx: int
    channel: str
    value: Value


@dataclass(frozen=True)
class Writes:
    """Pending writes of one task for one checkpoint."""

    ns: str
    id: str
    task_id: str
    task_path: str
    writes: tuple[Write, ...]


@dataclass(frozen=True)
class Delete:
    """A deletion: of some checkpoints with their writes, or, with `None`, of all until here."""

    checkpoints: tuple[tuple[str, str], ...] | None


Record: TypeAlias = Put | Writes | Delete


@dataclass(frozen=True)
class File:
    """A state that was read: the thread that it was written for, and its records."""

    thread_id: str
    records: tuple[Record, ...]


class Builder:
    """Collects records, and returns the file with them."""

    def __init__(self, thread_id: str) -> None:
        """Begins an empty file for a LangGraph thread."""
        self._thread_id = thread_id
        self._records: list[dict[str, Any]] = []
        self._values: list[bytes] = []

    def put(
        self, ns: str, checkpoint_id: str, parent: str | None, checkpoint: Typed, metadata: Typed
    ) -> None:
        """Adds a checkpoint."""
        self._records.append(
            {
                "kind": "put",
                "checkpoint_ns": ns,
                "checkpoint_id": checkpoint_id,
                "parent_checkpoint_id": parent,
                "checkpoint": self._value(checkpoint),
                "metadata": self._value(metadata),
            }
        )

    def writes(
        self,
        ns: str,
        checkpoint_id: str,
        task: tuple[str, str],
        writes: Sequence[tuple[int, str, Typed]],
    ) -> None:
        """Adds pending writes of the task with this id and path."""
        self._records.append(
            {
                "kind": "writes",
                "checkpoint_ns": ns,
                "checkpoint_id": checkpoint_id,
                "task_id": task[0],
                "task_path": task[1],
                "writes": [[idx, channel, *self._value(value)] for idx, channel, value in writes],
            }
        )

    def delete(self, checkpoints: Sequence[tuple[str, str]] | None) -> None:
        """Adds a deletion."""
        listed = None if checkpoints is None else [list(pair) for pair in checkpoints]
        self._records.append({"kind": "delete", "checkpoints": listed})

    def file(self) -> bytes:
        """Returns the file."""
        header = {"schema": SCHEMA, "thread_id": self._thread_id, "records": self._records}
        line = json.dumps(header, separators=(",", ":"))
        return b"".join([line.encode(), b"\n", *self._values])

    def _value(self, value: Typed) -> list[Any]:
        tag, content = value
        self._values.append(bytes(content))
        return [tag, len(content)]


def is_file(content: bytes) -> bool:
    """Returns true if the bytes claim to be such a file."""
    return content.startswith(b'{"schema":"git-handoff.langgraph/')


def read(content: bytes) -> File:
    """Reads a file; raises `not-langgraph` unless it is exactly of this form."""
    line, newline, _ = content.partition(b"\n")
    try:
        header = json.loads(line)
        if not newline or header["schema"] != SCHEMA:
            raise ValueError("it has another schema")
        reader = _Reader(len(line) + 1)
        records = tuple(reader.record(record) for record in header["records"])
        if reader.at != len(content):
            raise ValueError(f"it has {len(content)} bytes instead of {reader.at}")
        return File(_text(header["thread_id"]), records)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
        message = f"the state of a thread is not of the form {SCHEMA}: {error}"
        raise HandoffError("not-langgraph", message) from error


class _Reader:
    """Reads records, and counts the bytes of their values."""

    def __init__(self, at: int) -> None:
        self.at = at

    def record(self, record: dict[str, Any]) -> Record:
        kind = record["kind"]
        if kind == "delete":
            listed = record["checkpoints"]
            pairs = None if listed is None else tuple((_text(n), _text(i)) for n, i in listed)
            return Delete(pairs)
        ns, checkpoint_id = _text(record["checkpoint_ns"]), _text(record["checkpoint_id"])
        if kind == "put":
            parent = record["parent_checkpoint_id"]
            return Put(
                ns,
                checkpoint_id,
                None if parent is None else _text(parent),
                self._value(*record["checkpoint"]),
                self._value(*record["metadata"]),
            )
        if kind != "writes":
            raise ValueError(f"there are no records of kind {kind!r}")
        writes = tuple(
            Write(_whole(idx), _text(channel), self._value(tag, size))
            for idx, channel, tag, size in record["writes"]
        )
        task_id, task_path = _text(record["task_id"]), _text(record["task_path"])
        return Writes(ns, checkpoint_id, task_id, task_path, writes)

    def _value(self, tag: str, size: int) -> Value:
        value = Value(_text(tag), self.at, _whole(size))
        if size < 0:
            raise ValueError("a size is negative")
        self.at += size
        return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not an integer")
    return value
