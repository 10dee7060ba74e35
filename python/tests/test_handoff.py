"""`handoff_checkpoint` and `adopt_checkpoint`: fields, refusals, and between two clones."""

from __future__ import annotations

import asyncio
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from conftest import config, init, put, run, values, writes
from langgraph_checkpoint_git_handoff import GitHandoffSaver, HandoffError, thread_name
from plumbing import entries, loosen, overwrite, raw

FIELDS = [
    "source",
    "thread_id",
    "checkpoint_id",
    "blob_id",
    "blob_sha256",
    "to_agent",
    "summary",
    "descriptor",
]


@pytest.fixture
def offered(saver: GitHandoffSaver) -> dict[str, Any]:
    made = put(saver, "run-42", {"a": 1}, summary="researcher gathered 3 sources")
    return saver.handoff_checkpoint("run-42", made, "writer")


def code(call: Any) -> str:
    with pytest.raises(HandoffError) as caught:
        call()
    return caught.value.code


def test_the_descriptor_and_the_answer(saver: GitHandoffSaver, repository: Path) -> None:
    made = put(saver, "run-42", {"a": 1}, summary="researcher gathered 3 sources")
    descriptor = saver.handoff_checkpoint(thread_id="run-42", checkpoint_id=made, to_agent="writer")
    entry = entries(repository, "run-42")[0]
    assert list(descriptor) == FIELDS
    assert {name: descriptor[name] for name in FIELDS[:-1]} == {
        "source": f"run-42:{made}",
        "thread_id": "run-42",
        "checkpoint_id": made,
        "blob_id": entry["blob_id"],
        "blob_sha256": entry["blob_sha256"],
        "to_agent": "writer",
        "summary": "researcher gathered 3 sources",
    }
    assert len(entries(repository, "run-42")) == 1
    result = saver.adopt_checkpoint(handoff_json=descriptor, new_thread_id="run-42-writer")
    assert result == {
        "adopted_from": f"run-42:{made}",
        "new_thread_id": "run-42-writer",
        "checkpoint_id": made,
        "blob_id": entry["blob_id"],
        "verified": True,
    }
    found = saver.get_tuple(config("run-42-writer"))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"a": 1}
    assert found.parent_config is None
    assert dict(found.metadata)["adopted_from"] == f"run-42:{made}"
    assert "adopted" in entries(repository, "run-42-writer")[0]["entry"]


def test_positional_arguments_and_json_text(saver: GitHandoffSaver) -> None:
    made = put(saver, "run-42", {"a": 1})
    descriptor = json.dumps(saver.handoff_checkpoint("run-42", made, "writer"))
    result = saver.adopt_checkpoint(descriptor, "run-42-writer")
    assert result["verified"] is True
    again = saver.handoff_checkpoint("run-42-writer", made)
    assert again["to_agent"] is None
    assert saver.adopt_checkpoint(again, "third")["adopted_from"] == f"run-42-writer:{made}"
    found = saver.get_tuple(config("third"))
    assert found is not None
    assert dict(found.metadata)["adopted_from"] == f"run-42-writer:{made}"


def test_asynchronous(saver: GitHandoffSaver) -> None:
    made = put(saver, "run-42", {"a": 1})

    async def both() -> Any:
        descriptor = await saver.ahandoff_checkpoint("run-42", made, to_agent="writer")
        return await saver.aadopt_checkpoint(descriptor, new_thread_id="new")

    assert asyncio.run(both())["verified"] is True


def test_a_thread_with_checkpoints_is_refused(
    saver: GitHandoffSaver, offered: dict[str, Any]
) -> None:
    put(saver, "busy", {"b": 1})
    assert code(lambda: saver.adopt_checkpoint(offered, "busy")) == "thread-exists"
    assert values(saver, "busy") == {"b": 1}
    assert code(lambda: saver.adopt_checkpoint(offered, "run-42")) == "thread-exists"


def test_every_changed_field_is_refused(saver: GitHandoffSaver, offered: dict[str, Any]) -> None:
    for name in FIELDS[:-1]:
        missing = {key: value for key, value in offered.items() if key != name}
        changed = [{**offered, name: value} for value in ("0" * 40, None, 7, f"{offered[name]} ")]
        for bad in [missing, *changed]:
            assert code(partial(saver.adopt_checkpoint, bad, "new")) == "bad-descriptor", bad
    assert saver.get_tuple(config("new")) is None
    assert saver.adopt_checkpoint(offered, "new")["verified"] is True


@pytest.mark.parametrize("name", ["blob_sha256", "nonce", "commit", "expires", "thread_id"])
def test_a_changed_signed_field_is_refused(
    saver: GitHandoffSaver, offered: dict[str, Any], name: str
) -> None:
    """Also if the field outside is changed with it."""
    value = offered["descriptor"][name]
    other = "x" if name == "thread_id" else value[:-1] + ("0" if value[-1] != "0" else "1")
    changed = {**offered, "descriptor": {**offered["descriptor"], name: other}}
    if name in offered:
        changed[name] = other
        changed["source"] = f"{changed['thread_id']}:{changed['checkpoint_id']}"
    if name == "expires":
        changed["descriptor"][name] = "2999-01-01T00:00:00.000Z"
    refused = code(lambda: saver.adopt_checkpoint(changed, "new"))
    # The program compares the thread with the ref before it checks the signature.
    assert refused == ("bad-descriptor" if name == "thread_id" else "bad-signature")
    assert saver.get_tuple(config("new")) is None


def test_text_that_is_no_descriptor_is_refused(saver: GitHandoffSaver) -> None:
    for text in ("", "[]", "null", "{", '{"source": "a:b"}', '{"a": 1, "a": 1}'):
        assert code(partial(saver.adopt_checkpoint, text, "new")) == "bad-descriptor", text


def test_an_altered_blob_is_refused(
    saver: GitHandoffSaver, repository: Path, offered: dict[str, Any]
) -> None:
    loosen(repository)
    content = raw(repository, "blob", offered["blob_id"])
    overwrite(repository, offered["blob_id"], content.replace(b"researcher", b"reresearch"))
    assert code(lambda: saver.adopt_checkpoint(offered, "new")) in ("unsound", "altered", "source")
    assert saver.get_tuple(config("new")) is None


def test_an_offer_is_used_once_by_whom_it_is_for(
    saver: GitHandoffSaver, repository: Path, offered: dict[str, Any]
) -> None:
    critic = GitHandoffSaver(repository, agent="critic")
    assert code(lambda: critic.adopt_checkpoint(offered, "new")) == "wrong-recipient"
    writer = GitHandoffSaver(repository, agent="writer")
    assert writer.adopt_checkpoint(offered, "new")["verified"] is True
    assert entries(repository, "new")[0]["actor"] == "agent:writer"
    assert code(lambda: writer.adopt_checkpoint(offered, "new-2")) == "used"
    assert saver.get_tuple(config("new-2")) is None


def test_an_offer_expires(saver: GitHandoffSaver) -> None:
    made = put(saver, "run-42", {"a": 1})
    descriptor = saver.handoff_checkpoint("run-42", made, expires="1s")
    time.sleep(1.1)
    assert code(lambda: saver.adopt_checkpoint(descriptor, "new")) == "expired"


def test_a_checkpoint_that_is_not_there(saver: GitHandoffSaver) -> None:
    assert code(lambda: saver.handoff_checkpoint("run-42", "x")) == "no-checkpoint"
    put(saver, "run-42", {"a": 1})
    assert code(lambda: saver.handoff_checkpoint("run-42", "x")) == "no-checkpoint"
    assert code(lambda: saver.handoff_checkpoint("run-42", "")) == "no-checkpoint"
    assert code(lambda: saver.handoff_checkpoint("run-42", "0-0", "a\0b")) == "no-checkpoint"


def test_an_earlier_checkpoint_is_handed_over(saver: GitHandoffSaver) -> None:
    first = put(saver, "run-42", {"a": 1})
    put(saver, "run-42", {"a": 2}, first)
    saver.adopt_checkpoint(saver.handoff_checkpoint("run-42", first), "new")
    assert values(saver, "new") == {"a": 1}


def test_writes_and_subgraphs_travel_with_it(saver: GitHandoffSaver, repository: Path) -> None:
    made = put(saver, "run-42", {"a": 1}, summary="paused")
    child = put(saver, "run-42", {"b": 1}, ns="child:1", parents={"": made})
    put(saver, "run-42", {"b": 2}, ns="child:1", parents={"": "another"})
    saver.put_writes(config("run-42", made), [("a", 2)], "task", "path")
    saver.put_writes(config("run-42", child, "child:1"), [("b", 3)], "inner")
    before = len(entries(repository, "run-42"))
    descriptor = saver.handoff_checkpoint("run-42", made, "writer")
    assert descriptor["summary"] == "paused"
    assert len(entries(repository, "run-42")) == before + 1
    saver.adopt_checkpoint(descriptor, "new")
    assert writes(saver, "new") == [("task", "a", 2)]
    inner = list(saver.list(config("new", ns="child:1")))
    assert [one.checkpoint["id"] for one in inner] == [child]
    assert inner[0].pending_writes == [("inner", "b", 3)]
    assert "adopted_from" not in inner[0].metadata


def test_writes_travel_with_it(saver: GitHandoffSaver) -> None:
    made = put(saver, "run-42", {"a": 1})
    saver.put_writes(config("run-42", made), [("a", 2)], "task", "path")
    saver.adopt_checkpoint(saver.handoff_checkpoint("run-42", made), "new")
    assert writes(saver, "new") == [("task", "a", 2)]


@pytest.mark.parametrize("new", ["new/thread", "z" * 300])
def test_odd_ids_are_handed_over(saver: GitHandoffSaver, repository: Path, new: str) -> None:
    made = put(saver, "a/b c", {"a": 1})
    descriptor = saver.handoff_checkpoint("a/b c", made)
    assert descriptor["source"] == f"a/b c:{made}"
    result = saver.adopt_checkpoint(descriptor, new)
    assert (result["adopted_from"], result["new_thread_id"]) == (f"a/b c:{made}", new)
    listed = GitHandoffSaver(repository).list(None)
    assert {one.config["configurable"]["thread_id"] for one in listed} == {"a/b c", new}


def test_between_two_clones(clones: tuple[Path, Path], caplog: pytest.LogCaptureFixture) -> None:
    ada, ben = (GitHandoffSaver(path, agent=path.name) for path in clones)
    made = put(ada, "run-42", {"sources": 3}, summary="gathered 3 sources")
    descriptor = ada.handoff_checkpoint("run-42", made, to_agent="ben")
    assert "git handoff push origin run-42" in caplog.text
    # It was not pushed yet.
    assert code(lambda: ben.adopt_checkpoint(descriptor, "mine")) == "source"
    run(clones[0], "git-handoff", "push", "origin", thread_name("run-42"))
    assert ben.adopt_checkpoint(descriptor, "mine", source="origin")["verified"] is True
    assert values(ben, "mine") == {"sources": 3}
    put(ben, "mine", {"article": "done"}, made)
    report = run(clones[1], "git-handoff", "--json", "thread", "verify", "mine")
    assert json.loads(report)["intact"] is True


def test_an_unknown_key_is_refused(
    tmp_path: Path, saver: GitHandoffSaver, repository: Path
) -> None:
    made = put(saver, "run-42", {"a": 1})
    descriptor = saver.handoff_checkpoint("run-42", made)
    stranger = GitHandoffSaver(init(tmp_path / "stranger"))
    refused = code(lambda: stranger.adopt_checkpoint(descriptor, "new", source=str(repository)))
    assert refused == "unknown-signer"
    assert stranger.get_tuple(config("new")) is None


def test_a_fetched_thread_is_not_ones_own(clones: tuple[Path, Path]) -> None:
    ada, ben = (GitHandoffSaver(path) for path in clones)
    put(ada, "run-42", {"a": 1})
    run(clones[0], "git-handoff", "push", "origin", "run-42")
    run(clones[1], "git-handoff", "fetch", "origin")
    assert ben.get_tuple(config("run-42")) is None
    put(ben, "run-42", {"b": 1})
    assert values(ben, "run-42") == {"b": 1}
