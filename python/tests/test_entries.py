"""Every put is one signed entry, and names of threads are injective."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.serde.types import ERROR

from conftest import Fresh, config, put, run, values, writes
from langgraph_checkpoint_git_handoff import GitHandoffSaver, thread_name
from langgraph_checkpoint_git_handoff.names import name_of_ref, thread_id_of, thread_ref

ODD = [
    "run 42",
    "a/b",
    "../../etc/passwd",
    "-x",
    "--json",
    "@me",
    ".",
    "..",
    "a..b",
    ".hidden.",
    "x.lock",
    "x.LOCK",
    ".lock",
    "a:0-0123456789ab",
    "%41",
    "A",
    "a%2Fb",
    "Zürich ☃ 𝄞",
    "e\u0301",
    "\u00e9",
    "nul\0and\nline",
    "\ud800",
    " ",
    "",
    "x" * 128,
    "x" * 129,
    "ü" * 20,
    "ü" * 21,
    "y" * 5000,
    "%sha256-" + "0" * 64,
    "refs/handoff/threads/x",
]


def test_each_put_is_one_signed_entry(
    saver: GitHandoffSaver, repository: Path, tmp_path: Path
) -> None:
    first = put(saver, "run-42", {"a": 1})
    saver.put_writes(config("run-42", first), [("a", 2), ("b", 3)], "task")
    put(saver, "run-42", {"a": 2}, first, summary="gathered 3 sources")
    report = json.loads(run(repository, "git-handoff", "--json", "thread", "verify", "run-42"))
    assert (report["intact"], report["entries"], report["checkpoints"]) == (True, 3, 3)
    signers = tmp_path / "allowed"
    signers.write_text(run(repository, "git-handoff", "key", "--principal", "me") + "\n")
    commits = run(repository, "git", "rev-list", thread_ref("run-42")).split()
    assert len(commits) == 3
    for commit in commits:
        allowed = f"gpg.ssh.allowedSignersFile={signers}"
        run(repository, "git", "-c", allowed, "verify-commit", commit)
    log = run(repository, "git-handoff", "thread", "log", "run-42")
    assert f"checkpoint {first}" in log
    assert "gathered 3 sources" in log


def test_the_header_of_a_state_is_json(saver: GitHandoffSaver, repository: Path) -> None:
    made = put(saver, "run-42", {"a": 1})
    state = run(repository, "git-handoff", "thread", "cat", "run-42")
    header = json.loads(state.split("\n")[0])
    assert header["schema"] == "git-handoff.langgraph/1"
    assert header["records"][0]["checkpoint_id"] == made


def test_odd_ids_round_trip(saver: GitHandoffSaver, fresh: Fresh, repository: Path) -> None:
    made = {}
    for thread_id in ODD:
        assert saver.get_tuple(config(thread_id)) is None
        made[thread_id] = put(saver, thread_id, {"id": ascii(thread_id)})
    reader = fresh()
    for thread_id in ODD:
        found = reader.get_tuple(config(thread_id))
        assert found is not None
        assert found.checkpoint["channel_values"] == {"id": ascii(thread_id)}
        assert found.config == config(thread_id, made[thread_id])
    listed = [one.config["configurable"]["thread_id"] for one in reader.list(None)]
    assert listed == ODD[::-1]
    names = {thread_name(thread_id) for thread_id in ODD}
    assert len(names) == len(ODD)
    refs = run(repository, "git", "for-each-ref", "--format=%(refname)", "refs/handoff/threads")
    assert {name_of_ref(ref) for ref in refs.split("\n")} == names
    known = json.loads(run(repository, "git-handoff", "--json", "thread", "list"))["threads"]
    assert {one["thread_id"] for one in known} == names


def test_a_name_tells_its_id_or_none() -> None:
    for thread_id in ODD:
        assert thread_id_of(thread_name(thread_id)) in (thread_id, None)
    assert thread_id_of("%zz") is None
    assert thread_id_of("a b") is None
    assert name_of_ref("refs/heads/x") is None
    assert name_of_ref("refs/handoff/threads/%78") is None


def test_plain_ids_are_their_own_names() -> None:
    assert thread_name("run-42") == "run-42"
    assert (
        thread_name("0c3b84d1-aa07-4f5e-9d0c-3b84d1aa074f")
        == "0c3b84d1-aa07-4f5e-9d0c-3b84d1aa074f"
    )
    assert thread_name("user/7") == "user%2F7"


def test_a_number_as_id_is_its_text(saver: GitHandoffSaver) -> None:
    made = put(saver, 7, {"a": 1})  # type: ignore[arg-type]
    assert values(saver, "7", made) == {"a": 1}


def test_other_entries_of_the_program_are_followed(
    saver: GitHandoffSaver, repository: Path
) -> None:
    """A rollback undoes what came after, a fork begins with the checkpoint, a resume is nothing."""
    first = put(saver, "run", {"a": 1})
    put(saver, "run", {"a": 2}, first)
    log = run(repository, "git-handoff", "thread", "log", "run").splitlines()
    oldest = log[-1].split()[0]
    run(repository, "git-handoff", "resume", "run")
    assert values(saver, "run") == {"a": 2}
    run(repository, "git-handoff", "rollback", f"run:{oldest}")
    assert values(saver, "run") == {"a": 1}
    saver.put_writes(config("run", first), [("a", 9)], "task")
    assert writes(saver, "run") == [("task", "a", 9)]
    run(repository, "git-handoff", "fork", f"run:{oldest}", "--as", "other")
    assert values(saver, "other") == {"a": 1}
    assert len(list(saver.list(config("other")))) == 1


def test_the_first_write_and_the_last_error_count(saver: GitHandoffSaver, fresh: Fresh) -> None:
    made = put(saver, "run", {"a": 1})
    for number in (1, 2):
        saver.put_writes(config("run", made), [("a", number)], "task", "path-b")
        saver.put_writes(config("run", made), [(ERROR, number)], "task", "path-b")
    saver.put_writes(config("run", made), [("a", 3)], "another", "path-a")
    expected = [("another", "a", 3), ("task", ERROR, 2), ("task", "a", 1)]
    assert writes(saver, "run") == expected
    assert writes(fresh(), "run") == expected


def test_deletions_are_entries(saver: GitHandoffSaver, fresh: Fresh, repository: Path) -> None:
    first = put(saver, "run", {"a": 1})
    saver.delete_thread("run")
    saver.delete_thread("run")
    assert values(saver, "run") is None
    assert values(fresh(), "run", first) is None
    report = json.loads(run(repository, "git-handoff", "--json", "thread", "verify", "run"))
    assert (report["intact"], report["entries"]) == (True, 2)
    again = put(saver, "run", {"a": 3})
    assert values(fresh(), "run") == {"a": 3}
    assert [one.checkpoint["id"] for one in fresh().list(config("run"))] == [again]


def test_prune_keeps_what_delta_channels_need(saver: GitHandoffSaver) -> None:
    counters: dict[str, Any] = {"counters_since_delta_snapshot": {"log": [1, 1]}}
    old = put(saver, "run", {"log": [0]}, step=0)
    snapshot = put(saver, "run", {"log": [1]}, old, step=1)
    between = put(saver, "run", {}, snapshot, step=2, **counters)
    latest = put(saver, "run", {}, between, step=3, **counters)
    saver.prune(["run"])
    kept = [one.checkpoint["id"] for one in saver.list(config("run"))]
    assert kept == [latest, between, snapshot]


def test_copies_go_into_empty_threads_only(saver: GitHandoffSaver, fresh: Fresh) -> None:
    put(saver, "source", {"a": 1})
    put(saver, "target", {"a": 2})
    with pytest.raises(Exception, match="thread-exists"):
        saver.copy_thread("source", "target")
    assert values(fresh(), "target") == {"a": 2}
    with pytest.raises(Exception, match="strategy"):
        saver.prune(["source"], strategy="keep_all")


def test_sha256_repositories(tmp_path: Path) -> None:
    path = tmp_path / "sha256"
    subprocess.run(["git", "init", "-q", "--object-format=sha256", str(path)], check=True)
    saver = GitHandoffSaver(path)
    first = put(saver, "run", {"a": 1})
    put(saver, "run", {"a": 2}, first)
    assert values(saver, "run") == {"a": 2}
    assert values(GitHandoffSaver(path), "run", first) == {"a": 1}
