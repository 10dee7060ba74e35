"""Calls of the program `git-handoff`, which alone writes and verifies threads."""

from __future__ import annotations

import json
import logging
import os
import random
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import HandoffError

# Variables by which the caller of git chooses another repository than the one that was named.
_LOCAL = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
)
logger = logging.getLogger(__name__)

_LOST_RACE = 5
_ATTEMPTS = 10
_INSTALL = "cargo install --locked git-handoff, or put its folder on PATH"


def environment() -> dict[str, str]:
    """Returns the environment of child processes: this one's, without another repository."""
    kept = {name: value for name, value in os.environ.items() if name not in _LOCAL}
    return {**kept, "GIT_NO_REPLACE_OBJECTS": "1"}


class Program:
    """The program in one repository."""

    def __init__(self, repository: Path, program: str, actor: str | None) -> None:
        """Keeps the place; starts nothing."""
        self._repository = repository
        self._command = [program, "--json"] + ([f"--actor={actor}"] if actor else [])

    def checkpoint(self, name: str, state: bytes, summary: str) -> dict[str, Any]:
        """Appends a state to a thread as a signed entry."""
        arguments = ["checkpoint", name, "--state", "-", f"--summary={summary}"]
        return _object(self._run(arguments, state))

    def vouch(self, name: str, checkpoint: str) -> None:
        """Verifies a thread that has a checkpoint, with the trust of this repository.

        Raises unless the state of the checkpoint may be read.
        """
        self._run(["thread", "cat", f"{name}:{checkpoint}"])

    def log(self, name: str) -> list[dict[str, Any]]:
        """Returns the signed entries of a thread that make checkpoints, oldest first."""
        lines = self._run(["thread", "log", name]).splitlines()
        return [_object(line) for line in reversed(lines)]

    def is_unknown(self, name: str) -> bool:
        """Returns true if there was never such a thread here; raises if it vanished."""
        try:
            report = _object(self._run(["thread", "verify", name]))
        except HandoffError as error:
            if error.code == "unknown-thread":
                return True
            raise
        # A fetched thread of this name is another thread.
        return "remote" in report

    def offer(
        self, name: str, checkpoint: str, to_agent: str | None, expires: str | None
    ) -> dict[str, Any]:
        """Returns the signed descriptor of a checkpoint."""
        arguments = ["offer", f"{name}:{checkpoint}"]
        arguments += [f"--to={to_agent}"] if to_agent is not None else []
        arguments += [f"--expires={expires}"] if expires is not None else []
        return _object(self._run(arguments))

    def adopt(
        self, descriptor: Mapping[str, Any], name: str, me: str | None, source: str | None
    ) -> dict[str, Any]:
        """Fetches and checks what was offered, and begins a thread with it."""
        arguments = ["adopt", "-", f"--as={name}"]
        arguments += [f"--me={me}"] if me is not None else []
        arguments += [f"--from={source}"] if source is not None else []
        return _object(self._run(arguments, json.dumps(descriptor).encode()))

    def _run(self, arguments: list[str], stdin: bytes = b"") -> bytes:
        """Runs a command; repeats it if another process was faster."""
        for attempt in range(_ATTEMPTS):
            done = self._start(arguments, stdin)
            if done.returncode == 0:
                for line in done.stderr.decode(errors="replace").splitlines():
                    logger.warning("%s", line)
                return done.stdout
            if done.returncode != _LOST_RACE:
                break
            time.sleep(random.uniform(0.01, 0.05) * (attempt + 1))  # noqa: S311
        raise _failure(done)

    def _start(self, arguments: list[str], stdin: bytes) -> subprocess.CompletedProcess[bytes]:
        command = [*self._command, *arguments]
        try:
            return subprocess.run(
                command,
                cwd=self._repository,
                env=environment(),
                input=stdin,
                capture_output=True,
                check=False,
            )
        except ValueError as error:
            raise HandoffError("usage", f"cannot pass an argument: {error}") from error
        except OSError as error:
            if not self._repository.is_dir():
                message = f"cannot open the repository {self._repository}: no such folder"
                raise HandoffError("no-repository", message) from error
            message = f"cannot run {command[0]}: {error.strerror}"
            raise HandoffError("no-program", message, hint=_INSTALL) from error


def _object(text: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(text)
    except ValueError as error:
        raise HandoffError("bad-answer", "git-handoff printed no JSON object") from error
    if not isinstance(answer, dict):
        raise HandoffError("bad-answer", "git-handoff printed JSON that is no object")
    return answer


def _failure(done: subprocess.CompletedProcess[bytes]) -> HandoffError:
    text = done.stderr.decode(errors="replace")
    for line in reversed(text.splitlines()):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and found.get("schema") == "git-handoff.error/1":
            hint, causes = found.get("hint"), found.get("causes", ())
            return HandoffError(found["code"], found["message"], hint=hint, causes=causes)
    if done.returncode == _LOST_RACE:
        return HandoffError("busy", "other processes kept changing the thread; try again")
    return HandoffError("bad-answer", f"git-handoff ended with {done.returncode}: {text.strip()}")
