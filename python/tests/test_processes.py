"""Several processes, and several threads of one process, that write at the same time."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from conftest import Fresh, config, put, run, values
from langgraph_checkpoint_git_handoff import GitHandoffSaver

WRITER = """
import sys
sys.path[:0] = sys.argv[4:]
from conftest import config, put, values
from langgraph_checkpoint_git_handoff import GitHandoffSaver

saver, mine = GitHandoffSaver(sys.argv[1]), sys.argv[2]
made = put(saver, "shared", {"by": mine, "number": 0})
print("ready", flush=True)
sys.stdin.readline()
for number in range(1, int(sys.argv[3])):
    made = put(saver, "shared", {"by": mine, "number": number}, made)
    assert values(saver, "shared", made) == {"by": mine, "number": number}
    saver.put_writes(config("shared", made), [("ch", number)], mine)
"""


def test_two_processes_write_into_one_thread(repository: Path, fresh: Fresh) -> None:
    count = 4
    command = [sys.executable, "-c", WRITER, str(repository)]
    pipe = subprocess.PIPE
    writers = [
        subprocess.Popen([*command, by, str(count), *sys.path], stdin=pipe, stdout=pipe, text=True)
        for by in ("a", "b")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.communicate("\n", timeout=60)
    assert [writer.returncode for writer in writers] == [0, 0]
    found = [one.checkpoint["channel_values"] for one in fresh().list(config("shared"))]
    expected = {(by, number) for by in ("a", "b") for number in range(count)}
    assert {(one["by"], one["number"]) for one in found} == expected
    report = json.loads(run(repository, "git-handoff", "--json", "thread", "verify", "shared"))
    assert (report["intact"], report["entries"]) == (True, 2 * (2 * count - 1))


def test_threads_of_one_process(saver: GitHandoffSaver, fresh: Fresh) -> None:
    made = put(saver, "run", {"a": 1})

    def write(number: int) -> None:
        saver.put_writes(config("run", made), [("ch", number)], f"task-{number}")
        assert values(saver, "run", made) == {"a": 1}

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(8)))
    for one in (saver, fresh()):
        found = one.get_tuple(config("run"))
        assert found is not None
        assert found.pending_writes == [(f"task-{n}", "ch", n) for n in range(8)]


def test_two_savers_see_each_other(fresh: Fresh) -> None:
    one, two = fresh(), fresh()
    first = put(one, "run", {"by": "one"})
    assert values(two, "run") == {"by": "one"}
    second = put(two, "run", {"by": "two"}, first)
    assert values(one, "run") == {"by": "two"}
    # `two` appends what `one` has not read when it appends itself.
    two.put_writes(config("run", second), [("a", 0)], "first")
    third = put(one, "run", {"by": "one again"}, second)
    found = one.get_tuple(config("run", second))
    assert found is not None
    assert found.pending_writes == [("first", "a", 0)]
    assert values(two, "run", third) == {"by": "one again"}


def test_a_write_after_anothers(fresh: Fresh) -> None:
    one, two = fresh(), fresh()
    second = put(one, "run", {"by": "one"})
    one.put_writes(config("run", second), [("a", 1)], "task")
    assert two.get_tuple(config("run", second)).pending_writes == [("task", "a", 1)]  # type: ignore[union-attr]
