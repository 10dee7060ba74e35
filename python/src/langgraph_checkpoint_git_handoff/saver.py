"""The checkpointer."""

from __future__ import annotations

import asyncio
import builtins
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from . import descriptor as descriptors
from .ancestors import needed, superseded
from .asynchronous import AsyncSaver
from .configs import config_of, thread_id_in
from .errors import HandoffError
from .history import Stored, StoredWrite
from .names import thread_name
from .program import Program
from .records import Builder
from .serde import StrictSerializer
from .threads import Thread, Threads

_CHUNK = 64

Selected = tuple[str, Stored, list[StoredWrite]]


class Adopted(TypedDict):
    """The answer of `adopt_checkpoint`."""

    adopted_from: str
    new_thread_id: str
    checkpoint_id: str
    blob_id: str
    verified: bool


class GitHandoffSaver(AsyncSaver):
    """Stores checkpoints as signed entries of threads of `git handoff`.

    Every `put` and `put_writes` appends one entry. Reads go through the program's verification,
    and every state is checked against the hash in its signed entry. Nothing is ever removed:
    deletions are entries, too.
    """

    def __init__(
        self,
        repository: str | os.PathLike[str],
        *,
        agent: str | None = None,
        serde: SerializerProtocol | None = None,
        allowed_types: Iterable[type | tuple[str, str]] = (),
        program: str = "git-handoff",
    ) -> None:
        """Uses a repository; starts nothing.

        `agent` is the name in which entries are recorded and offers adopted. `allowed_types` are
        the types of your own that states may have; with `serde`, the serializer decides.
        """
        super().__init__(serde=serde or StrictSerializer(allowed_types))
        path = Path(repository).absolute()
        self.agent = agent
        actor = None if agent is None else f"agent:{agent}"
        self._threads = Threads(path, Program(path, program, actor))

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Returns a checkpoint, or the latest of the namespace if the config names none."""
        thread_id, ns = thread_id_in(config), config["configurable"].get("checkpoint_ns", "")
        with self._threads.lock(thread_name(thread_id)):
            thread = self._threads.load(thread_id)
            stored = thread.history.find(ns, get_checkpoint_id(config)) if thread else None
            if thread is None or stored is None:
                return None
            selected = _selected(thread, stored)
        return self._tuple(selected)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yields checkpoints, newest first."""
        before_id = get_checkpoint_id(before) if before else None
        found = [one for one in self._select(config) if not before_id or one[1].put.id < before_id]
        count = 0
        for at in range(0, len(found), _CHUNK):
            chunk = found[at : at + _CHUNK]
            self._prefetch(chunk)
            for selected in chunk:
                if limit is not None and count >= limit:
                    return
                metadata = self._metadata(selected[1])
                if all(metadata.get(key) == value for key, value in (filter or {}).items()):
                    count += 1
                    yield self._tuple(selected)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint as one signed entry."""
        thread_id, ns = thread_id_in(config), config["configurable"].get("checkpoint_ns", "")
        whole = get_checkpoint_metadata(config, metadata)
        builder = Builder(thread_id)
        builder.put(
            ns,
            checkpoint["id"],
            get_checkpoint_id(config),
            self.serde.dumps_typed(checkpoint),
            self.serde.dumps_typed(whole),
        )
        summary = descriptors.summary_of(cast("dict[str, Any]", whole))
        kind = "subgraph checkpoint" if ns else "checkpoint"
        line = descriptors.summary_line(checkpoint["id"], summary, kind)
        self._threads.append(thread_id, builder.file(), line)
        return config_of(thread_id, ns, checkpoint["id"])

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Stores pending writes of a task as one signed entry."""
        thread_id, checkpoint_id = thread_id_in(config), config["configurable"]["checkpoint_id"]
        ns = config["configurable"].get("checkpoint_ns", "")
        listed = [
            (WRITES_IDX_MAP.get(channel, idx), channel, self.serde.dumps_typed(value))
            for idx, (channel, value) in enumerate(writes)
        ]
        builder = Builder(thread_id)
        builder.writes(ns, checkpoint_id, (task_id, task_path), listed)
        line = descriptors.summary_line(checkpoint_id, None, "writes for")
        self._threads.append(thread_id, builder.file(), line)

    def delete_thread(self, thread_id: str) -> None:
        """Records that all checkpoints of the thread until now are deleted."""
        self._delete(str(thread_id), None, "deleted")

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Records the deletion of the checkpoints that these runs made, in all threads."""
        wanted = set(run_ids)
        if not wanted:
            return
        for thread in self._threads.load_all():
            with self._threads.lock(thread.name):
                stored = thread.history.all()
            doomed = [one.key for one in stored if self._metadata(one).get("run_id") in wanted]
            if doomed:
                self._delete(thread.thread_id, doomed, "deleted for runs")

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints and writes into a thread that has none, as one signed entry."""
        source, target = str(source_thread_id), str(target_thread_id)
        selected = self._select(config_of(source))
        if not selected:
            return
        if self._select(config_of(target)):
            raise HandoffError("thread-exists", f"the thread {target!r} has checkpoints")
        state = self._file(target, reversed(selected))
        self._threads.append(target, state, f"copied from {thread_name(source)}")

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Records the deletion of all checkpoints, or of all but the latest of each namespace."""
        if strategy not in ("keep_latest", "delete"):
            raise HandoffError("usage", f"there is no strategy {strategy!r}")
        for thread_id in map(str, thread_ids):
            if strategy == "delete":
                self._delete(thread_id, None, "pruned")
                continue
            with self._threads.lock(thread_name(thread_id)):
                thread = self._threads.load(thread_id)
                doomed = superseded(thread.history, self._loaded) if thread else []
                if doomed:
                    self._delete(thread_id, doomed, "pruned")

    def handoff_checkpoint(
        self,
        thread_id: str,
        checkpoint_id: str,
        to_agent: str | None = None,
        *,
        expires: str | None = None,
    ) -> dict[str, Any]:
        """Returns the descriptor of a checkpoint, to be passed on as it is.

        Pending writes, checkpoints of subgraphs and ancestors for delta channels are handed over
        with it; one more entry is recorded if there are any. `expires` is a number and `s`, `m`,
        `h` or `d`, and 48 hours unless given.
        """
        name = thread_name(str(thread_id))
        with self._threads.lock(name):
            selected = self._handed_over(str(thread_id), checkpoint_id)
            stored = selected[0][1]
            metadata = self._metadata(stored)
            summary = descriptors.summary_of(metadata)
            line = descriptors.summary_line(checkpoint_id, summary)
            is_whole = len(selected) == 1 and not selected[0][2] and stored.is_alone
            if is_whole and stored.entry.summary == line:
                entry = stored.entry
            else:
                state = self._file(str(thread_id), selected)
                entry = self._threads.append(str(thread_id), state, line)
        signed = self._threads.program.offer(name, entry.id, to_agent, expires)
        return descriptors.make(str(thread_id), checkpoint_id, summary, signed)

    def adopt_checkpoint(
        self,
        handoff_json: Mapping[str, Any] | str | bytes,
        new_thread_id: str,
        *,
        source: str | None = None,
    ) -> Adopted:
        """Fetches and verifies what was handed over, and begins a new thread with it.

        Without `source`, which is a remote, URL, path or bundle, the repository and then its
        remotes are asked. A saver without `agent` adopts what is offered to any agent.
        """
        offered = descriptors.parse(handoff_json)
        me = self.agent if self.agent is not None else offered["to_agent"]
        name, new_id = thread_name(new_thread_id), str(new_thread_id)
        with self._threads.lock(name):
            made = self._threads.program.adopt(offered["descriptor"], name, me, source)
            if name.startswith("%sha256-"):
                # The name does not tell the id, so an entry without records does.
                self._threads.append(new_id, Builder(new_id).file(), "adopted")
            thread = self._threads.load(new_id)
            stored = thread.history.find("", offered["checkpoint_id"]) if thread else None
            if stored is None:
                message = f"the adopted state has no checkpoint {offered['checkpoint_id']}"
                raise HandoffError("not-langgraph", message)
        return {
            "adopted_from": offered["source"],
            "new_thread_id": new_id,
            "checkpoint_id": stored.put.id,
            "blob_id": made["blob_id"],
            "verified": made["verified"] is True,
        }

    async def ahandoff_checkpoint(
        self,
        thread_id: str,
        checkpoint_id: str,
        to_agent: str | None = None,
        *,
        expires: str | None = None,
    ) -> dict[str, Any]:
        """Does `handoff_checkpoint` in another thread of the process."""
        hand = self.handoff_checkpoint
        return await asyncio.to_thread(hand, thread_id, checkpoint_id, to_agent, expires=expires)

    async def aadopt_checkpoint(
        self,
        handoff_json: Mapping[str, Any] | str | bytes,
        new_thread_id: str,
        *,
        source: str | None = None,
    ) -> Adopted:
        """Does `adopt_checkpoint` in another thread of the process."""
        adopt = self.adopt_checkpoint
        return await asyncio.to_thread(adopt, handoff_json, new_thread_id, source=source)

    def _select(self, config: RunnableConfig | None) -> builtins.list[Selected]:
        """Returns the checkpoints that a config names, newest first; without one, all."""
        if config is None:
            threads = self._threads.load_all()
        else:
            thread = self._threads.load(thread_id_in(config))
            threads = [] if thread is None else [thread]
        configurable = config["configurable"] if config else {}
        ns, checkpoint_id = configurable.get("checkpoint_ns"), configurable.get("checkpoint_id")
        found = []
        for thread in threads:
            with self._threads.lock(thread.name):
                for stored in thread.history.all():
                    if ns in (None, stored.put.ns) and checkpoint_id in (None, "", stored.put.id):
                        found.append(_selected(thread, stored))
        return sorted(found, key=lambda one: one[1].put.id, reverse=True)

    def _handed_over(self, thread_id: str, checkpoint_id: str) -> builtins.list[Selected]:
        """Returns a checkpoint, followed by all that loading it and going on needs.

        That is the checkpoints that its subgraphs made on top of it, and ancestors for deltas.
        """
        thread = self._threads.load(thread_id)
        stored = thread.history.find("", checkpoint_id) if thread and checkpoint_id else None
        if thread is None or stored is None:
            message = f"the thread {thread_id!r} has no checkpoint {checkpoint_id!r}"
            raise HandoffError("no-checkpoint", message)
        found: dict[tuple[str, str], Stored] = {}
        for one in [stored, *self._of_subgraphs(thread, checkpoint_id)]:
            found.update((each.key, each) for each in needed(thread.history, one, self._loaded))
        return [_selected(thread, one) for one in found.values()]

    def _of_subgraphs(self, thread: Thread, checkpoint_id: str) -> builtins.list[Stored]:
        """Returns the checkpoints of subgraphs that began from a checkpoint."""
        inner = [one for one in thread.history.all() if one.put.ns]
        self._prefetch([_selected(thread, one) for one in inner])
        parents = ((one, self._metadata(one).get("parents")) for one in inner)
        return [
            one
            for one, parent in parents
            if isinstance(parent, dict) and parent.get("") == checkpoint_id
        ]

    def _file(self, thread_id: str, selected: Iterable[Selected]) -> bytes:
        """Returns a state with checkpoints and their writes."""
        builder = Builder(thread_id)
        read = self._threads.objects.read
        for _, stored, writes in selected:
            put, content = stored.put, read(stored.entry.blob)
            checkpoint, metadata = put.checkpoint.typed(content), put.metadata.typed(content)
            builder.put(put.ns, put.id, put.parent, checkpoint, metadata)
            for write in writes:
                value = write.value.typed(read(write.blob))
                task = write.task_id, write.task_path
                builder.writes(put.ns, put.id, task, [(write.idx, write.channel, value)])
        return builder.file()

    def _delete(
        self, thread_id: str, checkpoints: builtins.list[tuple[str, str]] | None, line: str
    ) -> None:
        """Records a deletion, unless there is nothing to delete."""
        with self._threads.lock(thread_name(thread_id)):
            thread = self._threads.load(thread_id)
            if thread is None or not thread.history.all():
                return
            builder = Builder(thread_id)
            builder.delete(checkpoints)
            self._threads.append(thread_id, builder.file(), line)

    def _prefetch(self, selected: builtins.list[Selected]) -> None:
        """Reads many states with one call of git."""
        blobs = [stored.entry.blob for _, stored, _ in selected]
        blobs += [write.blob for _, _, writes in selected for write in writes]
        for _ in self._threads.objects.read_all(blobs):
            pass

    def _loaded(self, stored: Stored) -> tuple[Checkpoint, dict[str, Any]]:
        content = self._threads.objects.read(stored.entry.blob)
        checkpoint = self.serde.loads_typed(stored.put.checkpoint.typed(content))
        if checkpoint["id"] != stored.put.id:
            message = f"the checkpoint {stored.put.id} holds the state of {checkpoint['id']}"
            raise HandoffError("not-langgraph", message)
        return checkpoint, self._metadata(stored)

    def _metadata(self, stored: Stored) -> dict[str, Any]:
        """Returns the metadata; that of an adopted checkpoint names where it came from."""
        content = self._threads.objects.read(stored.entry.blob)
        metadata: dict[str, Any] = self.serde.loads_typed(stored.put.metadata.typed(content))
        if stored.entry.adopted_from is None or stored.put.ns:
            return metadata
        return {**metadata, "adopted_from": f"{stored.entry.adopted_from}:{stored.put.id}"}

    def _tuple(self, selected: Selected) -> CheckpointTuple:
        thread_id, stored, writes = selected
        read, put = self._threads.objects.read, stored.put
        checkpoint, metadata = self._loaded(stored)
        pending = [
            (
                write.task_id,
                write.channel,
                self.serde.loads_typed(write.value.typed(read(write.blob))),
            )
            for write in writes
        ]
        return CheckpointTuple(
            config=config_of(thread_id, put.ns, put.id),
            checkpoint=checkpoint,
            metadata=cast("CheckpointMetadata", metadata),
            parent_config=config_of(thread_id, put.ns, put.parent) if put.parent else None,
            pending_writes=pending,
        )


def _selected(thread: Thread, stored: Stored) -> Selected:
    return thread.thread_id, stored, thread.history.writes(*stored.key)
