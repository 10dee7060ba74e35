"""Which ancestors a checkpoint needs to be loaded.

The values of most channels are in the checkpoint. Those of delta channels follow from the writes of
its ancestors, back to the last snapshot of the channel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .history import History, Stored

Load = Callable[[Stored], tuple[Mapping[str, Any], Mapping[str, Any]]]


def superseded(history: History, load: Load) -> list[tuple[str, str]]:
    """Returns all checkpoints except the latest of each namespace, and what that one needs.

    `load` returns a checkpoint and its metadata.
    """
    removed = []
    for ns, by_id in history.checkpoints.items():
        kept = {one.key for one in needed(history, by_id[max(by_id)], load)} if by_id else set()
        removed += [(ns, one) for one in by_id if (ns, one) not in kept]
    return removed


def needed(history: History, stored: Stored, load: Load) -> list[Stored]:
    """Returns a checkpoint, followed by the ancestors that its delta channels need."""
    by_id = history.checkpoints[stored.put.ns]
    found: dict[str, Stored] = {}
    at: Stored | None = stored
    open_channels: set[str] | None = None
    while at is not None and at.put.id not in found:
        found[at.put.id] = at
        checkpoint, metadata = load(at)
        if open_channels is None:
            open_channels = set(metadata.get("counters_since_delta_snapshot") or {})
        open_channels -= set(checkpoint["channel_values"])
        if not open_channels:
            break
        at = by_id.get(at.put.parent or "")
    return list(found.values())
