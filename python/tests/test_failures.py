"""Failures name their reason and the way out, and nothing is half-written."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path

import ormsgpack
import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from conftest import Fresh, checkpoint, config, put, run, values
from langgraph_checkpoint_git_handoff import GitHandoffSaver, HandoffError, thread_name
from langgraph_checkpoint_git_handoff.records import Builder, read
from plumbing import entries


def failure(saver: GitHandoffSaver, thread_id: str = "run") -> HandoffError:
    with pytest.raises(HandoffError) as caught:
        saver.get_tuple(config(thread_id))
    return caught.value


def test_without_the_program(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = shutil.which("git")
    assert git is not None
    (tmp_path / "bin").mkdir()
    os.symlink(git, tmp_path / "bin/git")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    saver = GitHandoffSaver(repository)
    error = failure(saver)
    assert error.code == "no-program"
    assert "PATH" in str(error)
    with pytest.raises(HandoffError, match="no-program"):
        put(saver, "run", {"a": 1})
    monkeypatch.setenv("PATH", "")
    assert failure(saver).code == "git"


def test_without_a_repository(tmp_path: Path) -> None:
    assert failure(GitHandoffSaver(tmp_path)).code == "no-repository"
    assert failure(GitHandoffSaver(tmp_path / "missing")).code == "no-repository"
    with pytest.raises(HandoffError) as caught:
        put(GitHandoffSaver(tmp_path / "missing"), "run", {"a": 1})
    assert caught.value.code == "no-repository"


def test_another_repository_in_the_environment(
    saver: GitHandoffSaver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    put(saver, "run", {"a": 1})
    assert values(saver, "run") == {"a": 1}


def test_a_subfolder_and_a_bare_repository(repository: Path, tmp_path: Path) -> None:
    (repository / "deep").mkdir()
    put(GitHandoffSaver(repository / "deep"), "run", {"a": 1})
    assert values(GitHandoffSaver(repository), "run") == {"a": 1}
    run(tmp_path, "git", "init", "-q", "--bare", "bare.git")
    put(GitHandoffSaver(tmp_path / "bare.git"), "run", {"a": 2})
    assert values(GitHandoffSaver(tmp_path / "bare.git"), "run") == {"a": 2}


def test_a_secret_is_not_stored(saver: GitHandoffSaver, repository: Path) -> None:
    with pytest.raises(HandoffError) as caught:
        put(saver, "run", {"key": "AKIAIOSFODNN7EXAMPLQ"})
    assert caught.value.code == "secret-found"
    assert caught.value.hint
    assert saver.get_tuple(config("run")) is None


def test_a_thread_of_something_else(repository: Path, fresh: Fresh) -> None:
    run(repository, "git-handoff", "checkpoint", "notes", "--state", "-", stdin=b"a note")
    put(fresh(), "run", {"a": 1})
    assert failure(fresh(), "notes").code == "not-langgraph"
    assert len(list(fresh().list(None))) == 1
    run(repository, "git-handoff", "checkpoint", "run", "--state", "-", stdin=b"a note")
    assert failure(fresh()).code == "not-langgraph"
    with pytest.raises(HandoffError, match="not-langgraph"):
        list(fresh().list(None))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}\n",
        b'{"schema":"git-handoff.langgraph/1"}\n',
        b'{"schema":"git-handoff.langgraph/2","thread_id":"run","records":[]}\n',
        b'{"schema":"git-handoff.langgraph/1","thread_id":"run","records":[]}',
        b'{"schema":"git-handoff.langgraph/1","thread_id":"run","records":[]}\nx',
        b'{"schema":"git-handoff.langgraph/1","thread_id":7,"records":[]}\n',
        b'{"schema":"git-handoff.langgraph/1","thread_id":"run","records":[{"kind":"x"}]}\n',
        b'{"schema":"git-handoff.langgraph/1","thread_id":"run","records":'
        + b"[" * 5000
        + b"]" * 5000
        + b"}\n",
    ],
)
def test_malformed_states(content: bytes) -> None:
    with pytest.raises(HandoffError, match="not-langgraph"):
        read(content)


def test_sizes_must_add_up() -> None:
    builder = Builder("run")
    builder.put("", "a", None, ("bytes", b"12"), ("bytes", b"3"))
    good = builder.file()
    assert len(read(good).records) == 1
    for bad in (good[:-1], good + b"x", good.replace(b'"bytes",2', b'"bytes",-2')):
        with pytest.raises(HandoffError, match="not-langgraph"):
            read(bad)


class Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (os.mkdir, ("trapped",))


def test_pickles_are_not_decoded(
    repository: Path, fresh: Fresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trap = pickle.dumps(Trap())
    for tag in ("pickle", "json"):
        builder = Builder(tag)
        builder.put("", "1", None, (tag, trap), ("null", b""))
        name = thread_name(tag)
        run(repository, "git-handoff", "checkpoint", name, "--state", "-", stdin=builder.file())
        assert failure(fresh(), tag).code == "wrong-type"
    assert not (tmp_path / "trapped").exists()


def test_constructors_are_not_called(
    repository: Path, fresh: Fresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state that names a function of its reader, which a permissive serializer would call."""
    monkeypatch.chdir(tmp_path)
    call = ormsgpack.Ext(0, ormsgpack.packb(("os", "mkdir", "trapped")))
    evil = ormsgpack.packb({**checkpoint({}), "id": "1", "channel_values": {"a": call}})
    builder = Builder("run")
    builder.put("", "1", None, ("msgpack", evil), JsonPlusSerializer().dumps_typed({}))
    run(repository, "git-handoff", "checkpoint", "run", "--state", "-", stdin=builder.file())
    assert failure(fresh()).code == "wrong-type"
    assert not (tmp_path / "trapped").exists()
    JsonPlusSerializer(allowed_msgpack_modules=True).loads_typed(("msgpack", evil))
    assert (tmp_path / "trapped").exists()


def test_unserializable_values_store_nothing(saver: GitHandoffSaver, repository: Path) -> None:
    with pytest.raises(TypeError):
        put(saver, "run", {"a": object()})
    assert saver.get_tuple(config("run")) is None


def test_errors_can_be_pickled(saver: GitHandoffSaver) -> None:
    error = HandoffError("code", "message", hint="hint", causes=["a", "b"])
    copied = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (copied.code, copied.message, copied.hint, copied.causes) == (
        "code",
        "message",
        "hint",
        ("a", "b"),
    )
    assert str(copied) == "message [code]: a: b\nhint: hint"
    with pytest.raises(HandoffError, match="missing-thread-id"):
        saver.get_tuple({"configurable": {}})


def test_a_large_state(saver: GitHandoffSaver, fresh: Fresh, repository: Path) -> None:
    text = "lorem ipsum " * 700_000
    first = put(saver, "run", {"text": text})
    put(saver, "run", {"text": "small"}, first)
    assert values(fresh(), "run", first) == {"text": text}
    assert entries(repository, "run")[0]["size"] > 8_000_000
