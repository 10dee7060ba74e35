"""Measures put and get with 1, 100 and 1,000 checkpoints in a thread, against SQLite.

    .ci/python/run --measure [--sample]

Both savers store the same states, of about 2 kB, on the same disk. "cold" is a saver that has
nothing in memory, so that the whole thread is verified.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver

from langgraph_checkpoint_git_handoff import GitHandoffSaver

ROUNDS = 7
TEXT = "The quick brown fox jumps over the lazy dog. " * 40


class Writer:
    """Puts one checkpoint after the other into one thread."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        """Begins with an empty thread."""
        self.saver, self.number = saver, 0
        self.config: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}

    def put(self) -> None:
        """Puts the next checkpoint."""
        self.number += 1
        values = {"text": f"{self.number} {TEXT}"}
        checkpoint = {**empty_checkpoint(), "channel_values": values}
        checkpoint["channel_versions"] = {"text": self.number}
        metadata: Any = {"source": "loop", "step": self.number, "parents": {}}
        self.config = self.saver.put(self.config, checkpoint, metadata, {"text": self.number})

    def get(self, saver: BaseCheckpointSaver[Any] | None = None) -> None:
        """Gets the latest checkpoint."""
        found = (saver or self.saver).get_tuple(self.config)
        if found is None or found.metadata["step"] != self.number:
            sys.exit("the latest checkpoint is not the last one that was put")


class Calls:
    """Adds up the time that child processes take."""

    def __init__(self) -> None:
        """Counts from now on."""
        self.spent: dict[str, float] = {}
        self.run = subprocess.run
        subprocess.run = self._run  # type: ignore[assignment]

    def _run(self, command: list[str], *args: Any, **kwargs: Any) -> Any:
        begin = time.perf_counter()
        try:
            return self.run(command, *args, **kwargs)
        finally:
            words = [word for word in command if not word.startswith("-")][:3]
            name = " ".join(words[: 3 if "thread" in words else 2])
            self.spent[name] = self.spent.get(name, 0) + time.perf_counter() - begin


def milliseconds(act: Callable[[], None], rounds: int = ROUNDS) -> float:
    """Returns the median duration of an act."""
    spent = []
    for _ in range(rounds):
        begin = time.perf_counter()
        act()
        spent.append((time.perf_counter() - begin) * 1000)
    return statistics.median(spent)


def parts(calls: Calls, act: Callable[[], None]) -> str:
    """Returns how much of an act's time each program takes."""
    calls.spent.clear()
    begin = time.perf_counter()
    act()
    whole = time.perf_counter() - begin
    named = [f"{name} {spent * 1000:.0f}" for name, spent in calls.spent.items()]
    return ", ".join([*named, f"Python {(whole - sum(calls.spent.values())) * 1000:.1f}"])


def main(sizes: list[int], folder: Path) -> None:
    """Prints a line for each size and operation."""
    print("checkpoints  operation  git handoff ms  SQLite ms  ratio  one call in parts, ms")
    for size in sizes:
        place = folder / str(size)
        subprocess.run(["git", "init", "--quiet", str(place)], check=True)
        ours = Writer(GitHandoffSaver(place))
        with SqliteSaver.from_conn_string(str(folder / f"{size}.sqlite")) as sqlite:
            theirs = Writer(sqlite)
            for _ in range(size):
                ours.put()
                theirs.put()
            report(size, place, ours, theirs)


def report(size: int, place: Path, ours: Writer, theirs: Writer) -> None:
    """Measures at one size."""

    def cold() -> None:
        ours.get(GitHandoffSaver(place))

    operations = [
        ("put", ours.put, theirs.put),
        ("get", ours.get, theirs.get),
        ("get, cold", cold, theirs.get),
    ]
    for name, act, other in operations:
        mine, reference = milliseconds(act), milliseconds(other)
        ratio, split = mine / reference, parts(CALLS, act)
        print(f"{size:11}  {name:9}  {mine:14.1f}  {reference:9.2f}  {ratio:5.0f}  {split}")


CALLS = Calls()
if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main([1, 20] if "--sample" in sys.argv else [1, 100, 1000], Path(temporary))
