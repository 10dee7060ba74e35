"""Edits at rest are refused when a checkpoint is loaded."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Fresh, config, put, run, values, writes
from langgraph_checkpoint_git_handoff import GitHandoffSaver, HandoffError
from langgraph_checkpoint_git_handoff.names import thread_ref
from langgraph_checkpoint_git_handoff.records import Builder
from plumbing import entries, forge, head, loosen, overwrite, raw

REFUSED = {"altered", "tampered", "unsound"}


@pytest.fixture
def two(saver: GitHandoffSaver, repository: Path) -> tuple[str, str]:
    """A thread with two checkpoints and a write, another thread, and only loose objects."""
    first = put(saver, "run", {"paid": "no"}, step=0)
    second = put(saver, "run", {"paid": "yes"}, first, step=1)
    put(saver, "other", {"paid": "other"})
    loosen(repository)
    return first, second


def refused(call: Callable[[], object]) -> HandoffError:
    with pytest.raises(HandoffError) as caught:
        call()
    assert caught.value.code in REFUSED, caught.value
    return caught.value


def test_the_threads_are_sound_before(fresh: Fresh, two: tuple[str, str]) -> None:
    assert values(fresh(), "run") == {"paid": "yes"}
    assert values(fresh(), "run", two[0]) == {"paid": "no"}


@pytest.mark.parametrize(("old", "new"), [(b"yes", b"nay"), (b"loop", b"fork"), (b"put", b"pot")])
def test_bytes_of_a_state_changed(
    repository: Path, fresh: Fresh, two: tuple[str, str], old: bytes, new: bytes
) -> None:
    """The value, the metadata and the header of a stored state."""
    blob = entries(repository, "run")[1]["blob_id"]
    content = raw(repository, "blob", blob)
    assert old in content
    overwrite(repository, blob, content.replace(old, new))
    refused(lambda: fresh().get_tuple(config("run")))
    refused(lambda: list(fresh().list(config("run"))))
    refused(lambda: list(fresh().list(None)))
    refused(lambda: fresh().handoff_checkpoint("run", two[1]))


def test_a_state_that_left_memory_is_checked_again(
    repository: Path, saver: GitHandoffSaver, two: tuple[str, str]
) -> None:
    """A verified thread in memory does not vouch for bytes that are read from disk."""
    blob = entries(repository, "run")[1]["blob_id"]
    overwrite(repository, blob, raw(repository, "blob", blob).replace(b"yes", b"nay"))
    saver._threads.objects._kept.clear()
    assert refused(lambda: saver.get_tuple(config("run"))).code == "altered"


@pytest.mark.parametrize("thread", ["run", "other"])
def test_a_state_swapped_for_another(
    repository: Path, fresh: Fresh, two: tuple[str, str], thread: str
) -> None:
    """For an earlier checkpoint of the thread, and for one of another thread."""
    blob = entries(repository, "run")[1]["blob_id"]
    overwrite(repository, blob, raw(repository, "blob", entries(repository, thread)[0]["blob_id"]))
    refused(lambda: fresh().get_tuple(config("run")))


def test_a_thread_swapped_for_another(repository: Path, fresh: Fresh, two: tuple[str, str]) -> None:
    run(repository, "git", "update-ref", thread_ref("run"), head(repository, "other"))
    refused(lambda: fresh().get_tuple(config("run")))


def test_a_thread_swapped_for_a_commit(
    repository: Path, fresh: Fresh, saver: GitHandoffSaver, two: tuple[str, str]
) -> None:
    """Of a person, whose message is no entry."""
    tree = run(repository, "git", "mktree")
    identity = ("-c", "user.name=Eve", "-c", "user.email=eve@localhost")
    commit = run(repository, "git", *identity, "commit-tree", "-m", "Start", tree)
    run(repository, "git", "update-ref", thread_ref("run"), commit)
    refused(lambda: fresh().get_tuple(config("run")))
    refused(lambda: saver.get_tuple(config("run")))
    refused(lambda: put(saver, "run", {"paid": "again"}))
    with pytest.raises(HandoffError, match="carries no entry"):
        saver._threads.objects.commit(commit)


def test_a_replaced_object_is_not_followed(
    repository: Path, fresh: Fresh, two: tuple[str, str]
) -> None:
    blobs = [entry["blob_id"] for entry in entries(repository, "run")]
    run(repository, "git", "replace", blobs[1], blobs[0])
    assert values(fresh(), "run") == {"paid": "yes"}


def test_an_entry_changed_with_its_commit(
    repository: Path, fresh: Fresh, saver: GitHandoffSaver, two: tuple[str, str]
) -> None:
    """The entry names another state, in a correct new commit with the old signature."""
    tip = head(repository, "run")
    first, second = entries(repository, "run")
    text = raw(repository, "commit", tip).decode()
    for name in ("blob_id", "blob_sha256"):
        text = text.replace(second[name], first[name])
    tree = run(repository, "git", "rev-parse", f"{tip}~1^{{tree}}")
    text = f"tree {tree}\n" + text.split("\n", 1)[1]
    store = ("git", "hash-object", "-t", "commit", "-w", "--stdin")
    forged = run(repository, *store, stdin=text.encode())
    run(repository, "git", "update-ref", thread_ref("run"), forged)
    refused(lambda: fresh().get_tuple(config("run")))
    refused(lambda: saver.get_tuple(config("run")))


def test_a_commit_changed_in_place(repository: Path, fresh: Fresh, two: tuple[str, str]) -> None:
    tip = head(repository, "run")
    text = raw(repository, "commit", tip)
    overwrite(repository, tip, text.replace(b'"seq": 1', b'"seq": 2'), "commit")
    refused(lambda: fresh().get_tuple(config("run")))


@pytest.mark.parametrize("is_signed", [True, False])
def test_a_pending_write_added(
    repository: Path,
    fresh: Fresh,
    saver: GitHandoffSaver,
    two: tuple[str, str],
    tmp_path: Path,
    is_signed: bool,
) -> None:
    """A correct entry by a stranger's key, or with the signature of another entry."""
    builder = Builder("run")
    value = saver.serde.dumps_typed("approved")
    builder.writes("", two[1], ("task", ""), [(0, "decision", value)])
    key = tmp_path / "stranger"
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
    subprocess.run(make, check=True, stdin=subprocess.DEVNULL)
    tip = head(repository, "run")
    forge(repository, "run", builder.file(), key=key if is_signed else None, signature_of=tip)
    assert "sign" in str(refused(lambda: fresh().get_tuple(config("run"))))
    refused(lambda: saver.get_tuple(config("run")))
    refused(lambda: saver.put_writes(config("run", two[1]), [("a", 1)], "task"))


def test_a_write_by_the_key_of_the_thread_is_accepted(
    repository: Path, fresh: Fresh, saver: GitHandoffSaver, two: tuple[str, str]
) -> None:
    """The forgery above fails for its signature alone."""
    builder = Builder("run")
    value = saver.serde.dumps_typed("approved")
    builder.writes("", two[1], ("task", ""), [(0, "decision", value)])
    key, tip = repository / ".git/handoff/signing_key", head(repository, "run")
    forge(repository, "run", builder.file(), key=key, signature_of=tip)
    assert writes(fresh(), "run") == [("task", "decision", "approved")]


def test_an_entry_written_for_another_thread(
    repository: Path, fresh: Fresh, two: tuple[str, str]
) -> None:
    """The state of another thread, appended by the program with the thread's own key."""
    blob = entries(repository, "other")[0]["blob_id"]
    state = raw(repository, "blob", blob)
    run(repository, "git-handoff", "checkpoint", "run", "--state", "-", stdin=state)
    with pytest.raises(HandoffError, match="written for 'other'"):
        fresh().get_tuple(config("run"))


def test_a_thread_cut_back(
    repository: Path, fresh: Fresh, saver: GitHandoffSaver, two: tuple[str, str]
) -> None:
    run(repository, "git", "update-ref", thread_ref("run"), head(repository, "run") + "~1")
    refused(lambda: fresh().get_tuple(config("run")))
    refused(lambda: saver.get_tuple(config("run")))


def test_a_thread_whose_ref_is_gone(
    repository: Path, fresh: Fresh, saver: GitHandoffSaver, two: tuple[str, str]
) -> None:
    run(repository, "git", "update-ref", "-d", thread_ref("run"))
    for one in (fresh(), saver):
        with pytest.raises(HandoffError, match="gone"):
            one.get_tuple(config("run"))
        with pytest.raises(HandoffError, match="gone"):
            put(one, "run", {"paid": "again"})


def test_a_state_that_is_missing(repository: Path, fresh: Fresh, two: tuple[str, str]) -> None:
    blob = entries(repository, "run")[0]["blob_id"]
    (repository / ".git/objects" / blob[:2] / blob[2:]).unlink()
    refused(lambda: fresh().get_tuple(config("run")))


def test_a_key_that_is_trusted_no_more(
    repository: Path, fresh: Fresh, two: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "signers").touch()
    run(repository, "git", "config", "handoff.signers", str(tmp_path / "signers"))
    with pytest.raises(HandoffError) as caught:
        fresh().get_tuple(config("run"))
    assert caught.value.code == "untrusted"
