"""Two agents hand a paused graph over between two clones.

    python examples/handover.py

Ada's graph gathers sources and pauses. Ben adopts the checkpoint in his clone, answers the question
and finishes. A changed descriptor is refused. Everything happens in a temporary folder.
"""

from __future__ import annotations

import operator
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from langgraph_checkpoint_git_handoff import GitHandoffSaver, HandoffError, thread_name


class State(TypedDict):
    """The state of the graph: what was done."""

    notes: Annotated[list[str], operator.add]


def graph(saver: GitHandoffSaver) -> Any:
    """Builds the graph that both agents run."""
    builder = StateGraph(State)
    builder.add_node("gather", lambda state: {"notes": ["gathered 3 sources"]})
    builder.add_node("write", lambda state: {"notes": [f"wrote {interrupt('Which form?')}"]})
    builder.add_edge(START, "gather")
    builder.add_edge("gather", "write")
    builder.add_edge("write", END)
    return builder.compile(checkpointer=saver)


def run(folder: Path, *command: str) -> str:
    """Runs a command in a folder, and returns its output."""
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def clone_for(place: Path, name: str) -> Path:
    """Clones the shared repository; `handoff.signers` names the keys that both trust."""
    run(place, "git", "clone", "--quiet", "shared.git", name)
    run(place / name, "git", "config", "handoff.signers", str(place / "signers"))
    with (place / "signers").open("a") as signers:
        signers.write(run(place / name, "git", "handoff", "key", "--principal", name))
    return place / name


def main(place: Path) -> None:
    """Hands over from Ada to Ben."""
    run(place, "git", "init", "--quiet", "--bare", "shared.git")
    ada, ben = clone_for(place, "ada"), clone_for(place, "ben")

    sender = GitHandoffSaver(ada, agent="ada")
    config: Any = {"configurable": {"thread_id": "run-42"}, "metadata": {"summary": "gathered"}}
    graph(sender).invoke({"notes": []}, config)
    checkpoint_id = graph(sender).get_state(config).config["configurable"]["checkpoint_id"]
    descriptor = sender.handoff_checkpoint("run-42", checkpoint_id, to_agent="ben")
    run(ada, "git", "handoff", "push", "origin", thread_name("run-42"))
    print("ada offers", descriptor["source"])

    receiver = GitHandoffSaver(ben, agent="ben")
    try:
        receiver.adopt_checkpoint({**descriptor, "blob_sha256": "0" * 64}, "run-42-ben")
    except HandoffError as error:
        print("ben refuses a changed descriptor:", error.code)
    result = receiver.adopt_checkpoint(descriptor, new_thread_id="run-42-ben", source="origin")
    print("ben adopted it, verified:", result["verified"])
    theirs: Any = {"configurable": {"thread_id": "run-42-ben"}}
    done = graph(receiver).invoke(Command(resume="an article"), theirs)
    print("ben finished:", ", ".join(done["notes"]))
    print(run(ben, "git", "handoff", "thread", "verify", "run-42-ben"), end="")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
