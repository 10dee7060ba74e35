"""Descriptors of checkpoints that are handed over.

The seven fields of a descriptor speak of LangGraph's thread and checkpoint. `descriptor` has the
signed descriptor of the program, whose summary names the checkpoint. So the signature binds all of
them, and a changed field is refused before anything is fetched.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from .errors import HandoffError
from .names import thread_name

FIELDS = (
    "source",
    "thread_id",
    "checkpoint_id",
    "blob_id",
    "blob_sha256",
    "to_agent",
    "summary",
)
_SUMMARY_CHARACTERS = 160


def summary_of(metadata: Mapping[str, Any]) -> str | None:
    """Returns the field `summary` of a checkpoint's metadata as one line, or `None`."""
    text = metadata.get("summary")
    if not isinstance(text, str):
        return None
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if len(line) > _SUMMARY_CHARACTERS:
        line = line[: _SUMMARY_CHARACTERS - 1].rstrip() + "…"
    return line or None


def summary_line(checkpoint_id: str, summary: str | None, kind: str = "checkpoint") -> str:
    """Returns the summary of an entry: its kind, the id and the checkpoint's own summary."""
    named = checkpoint_id
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", checkpoint_id):
        named = "%" + hashlib.sha256(checkpoint_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{kind} {named}: {summary}" if summary else f"{kind} {named}"


def make(
    thread_id: str, checkpoint_id: str, summary: str | None, signed: dict[str, Any]
) -> dict[str, Any]:
    """Returns the descriptor of a checkpoint, around the program's signed one."""
    descriptor = {
        "source": f"{thread_id}:{checkpoint_id}",
        "thread_id": thread_id,
        "checkpoint_id": checkpoint_id,
        "blob_id": signed["blob_id"],
        "blob_sha256": signed["blob_sha256"],
        "to_agent": signed["to_agent"],
        "summary": summary,
        "descriptor": signed,
    }
    check(descriptor)
    return descriptor


def parse(handoff_json: Mapping[str, Any] | str | bytes) -> dict[str, Any]:
    """Reads a descriptor, and raises `bad-descriptor` unless its fields agree."""
    if isinstance(handoff_json, Mapping):
        descriptor = dict(handoff_json)
    else:
        try:
            descriptor = json.loads(handoff_json, object_pairs_hook=_without_duplicates)
        except ValueError as error:
            raise _bad(f"it is not JSON: {error}") from error
    check(descriptor)
    return descriptor


def check(descriptor: object) -> None:
    """Raises `bad-descriptor` unless every field is what the signed descriptor says."""
    if not isinstance(descriptor, dict):
        raise _bad("it is no object")
    signed = descriptor.get("descriptor")
    if not isinstance(signed, dict):
        raise _bad("it has no signed descriptor in the field `descriptor`")
    for name in FIELDS:
        if name not in descriptor:
            raise _bad(f"it has no field `{name}`")
        if not isinstance(descriptor[name], str) and (
            name not in ("to_agent", "summary") or descriptor[name] is not None
        ):
            raise _bad(f"its field `{name}` is not a string")
    thread_id, checkpoint_id = descriptor["thread_id"], descriptor["checkpoint_id"]
    expected = {
        "thread_id": thread_name(thread_id),
        "blob_id": descriptor["blob_id"],
        "blob_sha256": descriptor["blob_sha256"],
        "to_agent": descriptor["to_agent"],
        "summary": summary_line(checkpoint_id, descriptor["summary"]),
    }
    for name, value in expected.items():
        if signed.get(name) != value:
            raise _bad(f"its field `{name}` differs from the signed descriptor")
    if descriptor["source"] != f"{thread_id}:{checkpoint_id}":
        raise _bad("its field `source` is not its thread and checkpoint")


def _bad(reason: str) -> HandoffError:
    return HandoffError("bad-descriptor", f"the descriptor cannot be used: {reason}")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found
