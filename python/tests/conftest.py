from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.base.id import uuid6

from langgraph_checkpoint_git_handoff import GitHandoffSaver


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("GIT_", "HANDOFF_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home/.cache"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    (tmp_path / "home").mkdir()


def run(repository: Path, *command: str, stdin: bytes = b"") -> str:
    done = subprocess.run(command, cwd=repository, input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr.decode()}"
    return done.stdout.decode(errors="surrogateescape").rstrip("\n")


def init(path: Path) -> Path:
    """Creates a repository without commits."""
    subprocess.run(["git", "init", "-q", str(path)], check=True)
    return path


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return init(tmp_path / "repository")


@pytest.fixture
def saver(repository: Path) -> GitHandoffSaver:
    return GitHandoffSaver(repository)


Fresh = Callable[[], GitHandoffSaver]


@pytest.fixture
def fresh(repository: Path) -> Fresh:
    """Returns a function that makes a saver without anything in memory."""
    return lambda: GitHandoffSaver(repository)


@pytest.fixture
def clones(tmp_path: Path) -> tuple[Path, Path]:
    """Two clones of one bare repository, whose owners know each other's keys."""
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "shared.git")], check=True)
    signers = tmp_path / "signers"
    paths = []
    for name in ("ada", "ben"):
        path = tmp_path / name
        run(tmp_path, "git", "clone", "-q", str(tmp_path / "shared.git"), str(path))
        run(path, "git", "config", "handoff.signers", str(signers))
        paths.append(path)
    lines = [run(path, "git-handoff", "key", "--principal", path.name) for path in paths]
    signers.write_text("".join(f"{line}\n" for line in lines))
    return paths[0], paths[1]


def config(thread_id: str, checkpoint_id: str | None = None, ns: str = "") -> RunnableConfig:
    found: dict[str, Any] = {"thread_id": thread_id, "checkpoint_ns": ns}
    if checkpoint_id is not None:
        found["checkpoint_id"] = checkpoint_id
    return {"configurable": found}


def checkpoint(values: dict[str, Any]) -> Checkpoint:
    return Checkpoint(
        v=2,
        id=str(uuid6(clock_seq=-1)),
        ts="2026-06-04T02:00:00+00:00",
        channel_values=values,
        channel_versions=dict.fromkeys(values, 1),
        versions_seen={},
        updated_channels=None,
    )


def put(
    saver: GitHandoffSaver,
    thread_id: str,
    values: dict[str, Any],
    parent: str | None = None,
    ns: str = "",
    **metadata: Any,
) -> str:
    """Stores a checkpoint, and returns its id."""
    whole: Any = {"source": "loop", "step": 0, "parents": {}, **metadata}
    made = checkpoint(values)
    saver.put(config(thread_id, parent, ns), made, whole, made["channel_versions"])
    return made["id"]


def values(saver: GitHandoffSaver, thread_id: str, checkpoint_id: str | None = None) -> Any:
    found = saver.get_tuple(config(thread_id, checkpoint_id))
    return None if found is None else found.checkpoint["channel_values"]


def writes(saver: GitHandoffSaver, thread_id: str) -> Any:
    found = saver.get_tuple(config(thread_id))
    return None if found is None else found.pending_writes
