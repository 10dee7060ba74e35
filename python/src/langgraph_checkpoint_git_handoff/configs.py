"""Configs of LangGraph."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig

from .errors import HandoffError


def thread_id_in(config: RunnableConfig) -> str:
    """Returns the thread id of a config."""
    try:
        return str(config["configurable"]["thread_id"])
    except KeyError as error:
        raise HandoffError("missing-thread-id", "the config names no thread_id") from error


def config_of(
    thread_id: str, ns: str | None = None, checkpoint_id: str | None = None
) -> RunnableConfig:
    """Returns the config that names a thread, and what else is given."""
    configurable: dict[str, Any] = {"thread_id": thread_id}
    if ns is not None:
        configurable["checkpoint_ns"] = ns
    if checkpoint_id is not None:
        configurable["checkpoint_id"] = checkpoint_id
    return {"configurable": configurable}
