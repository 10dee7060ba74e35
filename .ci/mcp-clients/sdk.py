#!/usr/bin/env python3
"""Uses our server by the official Python SDK, which checks every answer against the schema of its tool.

usage: sdk.py <git-handoff> <repository> <script.json>
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from mcp import ClientSession, MCPError, StdioServerParameters, stdio_client
from mcp.types import PaginatedRequestParams

import check


def children(pid):
    """Returns the processes that a process has started and that have not ended."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(entry.name))
    return found


async def resources(session):
    """Lists all resources, page by page, and reads each."""
    listed, cursor = [], None
    while True:
        page = await session.list_resources(params=PaginatedRequestParams(cursor=cursor))
        listed += page.resources
        cursor = page.next_cursor
        if not cursor:
            break
    uris = [str(resource.uri) for resource in listed]
    assert len(set(uris)) == len(uris) and "handoff://document/r/notes.md" in uris, uris
    for resource in listed:
        read = await session.read_resource(resource.uri)
        assert resource.mime_type == read.contents[0].mime_type == "application/json", resource
        assert json.loads(read.contents[0].text)["schema"].startswith("git-handoff."), read
    templates = (await session.list_resource_templates()).resource_templates
    assert len(templates) == 2, templates
    for uri in ["handoff://run/none", "handoff://document/r/none", "file:///etc/passwd"]:
        try:
            read = await session.read_resource(uri)
        except MCPError as error:
            assert uri in str(error), error
        else:
            raise AssertionError(read)
    return len(listed)


async def give_up(session, beat, seconds, limit):
    """Gives two calls up in the middle, of which one waits for a remote."""

    async def call(tool, arguments):
        called = session.call_tool(tool, arguments, read_timeout_seconds=seconds, progress_callback=beat)
        try:
            result = await asyncio.wait_for(called, limit)
        except (MCPError, TimeoutError):
            return
        raise AssertionError(result)

    await asyncio.gather(call("watch", {"run": "r", "timeout": 600}), call("thread_fetch", {"remote": "silent"}))
    result = await session.call_tool("status", {"run": "r"})
    assert not result.is_error, result


async def end(server):
    """Waits until no program runs that the server started; git may use five seconds after it was cancelled."""
    until = time.monotonic() + 15
    while children(server):
        assert time.monotonic() < until, f"processes are left: {children(server)}"
        await asyncio.sleep(0.1)


async def main(program, repository, script):
    with open(script, encoding="utf-8") as file:
        script = json.load(file)
    beats = []

    async def beat(progress, total, message):
        beats.append((progress, total, message))

    server = StdioServerParameters(command=program, args=["mcp", "--actor", "agent:sdk"], cwd=repository)
    # A remote that does not answer.
    silent = socket.create_server(("127.0.0.1", 0))
    url = f"git://127.0.0.1:{silent.getsockname()[1]}/x"
    subprocess.run(["git", "remote", "add", "silent", url], check=True, cwd=repository)
    subprocess.run(["git", "config", "--add", "handoff.mcp.remotes", "silent"], check=True, cwd=repository)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        count = check.listed([tool.name for tool in (await session.list_tools()).tools])
        for tool, arguments, expected in script:
            result = await session.call_tool(tool, arguments)
            text = result.content[0].text
            assert expected in text, f"{tool}: there is no {expected!r} in {text}"
        # An argument that is null is not given; a wait reports its progress.
        result = await session.call_tool("status", {"run": None})
        assert not result.is_error, result
        result = await session.call_tool("watch", {"run": "r", "timeout": 2}, progress_callback=beat)
        assert not result.is_error and len(beats) >= 2, (result, beats)
        # By the SDK's own time limit, and as a program does that waits for something else.
        await give_up(session, beat, 1, None)
        await give_up(session, beat, None, 1)
        # Many writes at once are all recorded.
        put = [session.call_tool("doc_put", {"run": "r", "name": f"d{n}", "content": "x"}) for n in range(60)]
        failed = [result for result in await asyncio.gather(*put) if result.is_error]
        assert not failed, failed
        read = await resources(session)
        (process,) = children(os.getpid())
        await end(process)
    calls = len(script) + 62
    print(f"lists {count} tools; {calls} calls answered, 4 cancelled; {len(beats)} notifications of progress; reads {read} resources")


asyncio.run(main(*sys.argv[1:]))
