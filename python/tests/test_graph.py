"""Graphs of LangGraph that run with the checkpointer."""

from __future__ import annotations

import asyncio
import operator
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from conftest import Fresh
from langgraph_checkpoint_git_handoff import GitHandoffSaver, HandoffError


class State(TypedDict):
    steps: Annotated[list[str], operator.add]


def config(thread_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id}}


def approval(saver: GitHandoffSaver) -> Any:
    """A graph with two parallel steps, one of which waits for an answer."""
    graph = StateGraph(State)
    graph.add_node("plan", lambda state: {"steps": ["plan"]})
    graph.add_node("fast", lambda state: {"steps": ["fast"]})
    graph.add_node("ask", lambda state: {"steps": [f"answer {interrupt('go on?')}"]})
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "fast")
    graph.add_edge("plan", "ask")
    graph.add_edge("fast", END)
    graph.add_edge("ask", END)
    return graph.compile(checkpointer=saver)


def nested(saver: GitHandoffSaver) -> Any:
    """The same in a subgraph."""
    inner = StateGraph(State)
    inner.add_node("first", lambda state: {"steps": ["first"]})
    inner.add_node("ask", lambda state: {"steps": [f"answer {interrupt('go on?')}"]})
    inner.add_edge(START, "first")
    inner.add_edge("first", "ask")
    outer = StateGraph(State)
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "inner")
    return outer.compile(checkpointer=saver)


def test_an_interrupt_is_answered_by_another_process(fresh: Fresh) -> None:
    paused = approval(fresh()).invoke({"steps": []}, config("run"))
    assert paused["__interrupt__"][0].value == "go on?"
    done = approval(fresh()).invoke(Command(resume="yes"), config("run"))
    assert sorted(done["steps"]) == ["answer yes", "fast", "plan"]


@pytest.mark.parametrize("make", [approval, nested])
def test_an_interrupt_is_handed_over(saver: GitHandoffSaver, fresh: Fresh, make: Any) -> None:
    make(saver).invoke({"steps": []}, config("run"))
    latest = make(saver).get_state(config("run")).config["configurable"]["checkpoint_id"]
    saver.adopt_checkpoint(saver.handoff_checkpoint("run", latest, "other"), "theirs")
    received = make(fresh())
    assert received.get_state(config("theirs")).next
    done = received.invoke(Command(resume="yes"), config("theirs"))
    assert "answer yes" in done["steps"]
    # Steps that were done before the handover are not done again.
    assert len(done["steps"]) == len(set(done["steps"]))
    assert make(saver).get_state(config("run")).next


def test_messages_and_time_travel(saver: GitHandoffSaver) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("say", lambda state: {"messages": [AIMessage(str(len(state["messages"])))]})
    graph.add_edge(START, "say")
    agent = graph.compile(checkpointer=saver)
    for text in ("a", "b"):
        agent.invoke({"messages": [HumanMessage(text)]}, config("chat"))
    history = list(agent.get_state_history(config("chat")))
    assert [m.content for m in history[0].values["messages"]] == ["a", "1", "b", "3"]
    early = next(one for one in history if len(one.values["messages"]) == 2)
    forked = agent.invoke({"messages": [HumanMessage("c")]}, early.config)
    assert [m.content for m in forked["messages"]] == ["a", "1", "c", "3"]


@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="LangGraph's interrupt needs 3.11 in asynchronous graphs"
)
def test_asynchronous_graphs_in_parallel(saver: GitHandoffSaver) -> None:
    async def main() -> list[Any]:
        agent = approval(saver)
        runs = [agent.ainvoke({"steps": []}, config(f"run-{n}")) for n in range(3)]
        await asyncio.gather(*runs)
        answers = [agent.ainvoke(Command(resume=str(n)), config(f"run-{n}")) for n in range(3)]
        return await asyncio.gather(*answers)

    for number, done in enumerate(asyncio.run(main())):
        assert f"answer {number}" in done["steps"]


def extended(value: list[str] | None, changes: Sequence[list[str]]) -> list[str]:
    return [*(value or []), *(text for change in changes for text in change)]


class Log(TypedDict):
    log: Annotated[list[str], DeltaChannel(extended)]


def test_delta_channels_are_pruned_and_handed_over(saver: GitHandoffSaver, fresh: Fresh) -> None:
    """Their values follow from the writes of ancestors, which must not be left behind."""
    graph = StateGraph(Log)
    graph.add_node("say", lambda state: {"log": [f"n{len(state['log'])}"]})
    graph.add_edge(START, "say")
    for _ in range(3):
        graph.compile(checkpointer=saver).invoke({"log": ["u"]}, config("run"))
    saver.prune(["run"])
    agent = graph.compile(checkpointer=fresh())
    state = agent.get_state(config("run"))
    assert state.values == {"log": ["u", "n1", "u", "n3", "u", "n5"]}
    latest = state.config["configurable"]["checkpoint_id"]
    saver.adopt_checkpoint(saver.handoff_checkpoint("run", latest), "theirs")
    assert agent.get_state(config("theirs")).values == state.values
    done = agent.invoke({"log": ["u"]}, config("theirs"))
    assert done["log"][-2:] == ["u", "n7"]


@dataclass
class Finding:
    text: str


class Findings(TypedDict):
    found: Finding


def test_types_of_ones_own_must_be_allowed(repository: Path) -> None:
    def agent(saver: GitHandoffSaver) -> Any:
        graph = StateGraph(Findings)
        graph.add_node("find", lambda state: {"found": Finding("x")})
        graph.add_edge(START, "find")
        return graph.compile(checkpointer=saver)

    with pytest.raises(HandoffError, match=r"test_graph\.Finding"):
        agent(GitHandoffSaver(repository)).invoke({}, config("refused"))
    allowing = GitHandoffSaver(repository, allowed_types=[Finding])
    agent(allowing).invoke({}, config("run"))
    state = agent(allowing).get_state(config("run"))
    assert state.values["found"] == Finding("x")
    with pytest.raises(HandoffError, match="wrong-type"):
        agent(GitHandoffSaver(repository)).get_state(config("run"))
