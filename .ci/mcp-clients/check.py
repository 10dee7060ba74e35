#!/usr/bin/env python3
"""Checks what a client did with our tools.

usage: check.py listed <names.json>                 the names of the tools that a client lists
       check.py played <script.json> <record.jsonl> the conversation that model.py recorded

Prints one line, or fails with the first thing that is not as it should be.
"""

import json
import re
import sys

TOOLS = set(
    "adopt_checkpoint cat checkpoint diff doc_get doc_list doc_log doc_put fork handoff_checkpoint packet_check plan_validate "
    "resume rollback schemas_list status subagents_list submit thread_fetch thread_list thread_push verify watch".split()
)


def listed(names):
    """Fails unless every tool is there; clients put the name of the server before."""
    plain = {re.sub(r"^mcp_+handoff_+", "", name) for name in names}
    missing = TOOLS - plain
    assert not missing, f"the client does not list {sorted(missing)}"
    return len(TOOLS)


def played(script, record):
    """Fails unless the client made each call, and gave the model the text that is expected of its answer."""
    assert record, "the client did not talk to the model"
    count = max(listed(one["tools"]) for one in record[-1:])
    results = record[-1]["results"]
    assert len(results) == len(script), f"{len(results)} results for {len(script)} calls: {results}"
    for (tool, _, expected), result in zip(script, results):
        # Some clients write the answer into a text of theirs, so that quotes are escaped.
        plain = result.replace("\\", "")
        assert expected in plain, f"{tool}: there is no {expected!r} in {result}"
    return f"lists {count} tools; {len(results)} calls answered"


def main():
    what, *files = sys.argv[1:]
    if what == "listed":
        with open(files[0], encoding="utf-8") as file:
            print(f"lists {listed(json.load(file))} tools")
    else:
        with open(files[0], encoding="utf-8") as file:
            script = json.load(file)
        with open(files[1], encoding="utf-8") as file:
            record = [json.loads(line) for line in file]
        print(played(script, record))


if __name__ == "__main__":
    main()
