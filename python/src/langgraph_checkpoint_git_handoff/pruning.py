"""Which checkpoints `prune` removes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .history import History, Stored

Load = Callable[[Stored], tuple[Mapping[str, Any], Mapping[str, Any]]]


def superseded(history: History, load: Load) -> list[tuple[str, str]]:
    """Returns all checkpoints except the latest of each namespace, and what that one needs.

    `load` returns a checkpoint and its metadata. A checkpoint with delta channels needs its
    ancestors back to the last snapshot of each of these channels.
    """
    removed = []
    for ns, by_id in history.checkpoints.items():
        needed = _needed(by_id, max(by_id), load) if by_id else set()
        removed += [(ns, checkpoint_id) for checkpoint_id in by_id if checkpoint_id not in needed]
    return removed


def _needed(by_id: Mapping[str, Stored], latest: str, load: Load) -> set[str]:
    needed: set[str] = set()
    at: str | None = latest
    open_channels: set[str] | None = None
    while at is not None and at in by_id and at not in needed:
        needed.add(at)
        checkpoint, metadata = load(by_id[at])
        if open_channels is None:
            open_channels = set(metadata.get("counters_since_delta_snapshot") or {})
        open_channels -= set(checkpoint["channel_values"])
        if not open_channels:
            break
        at = by_id[at].put.parent
    return needed
