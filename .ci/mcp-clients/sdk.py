#!/usr/bin/env python3
"""Lists and calls our tools by the official Python SDK, which checks every answer against the schema of its tool.

usage: sdk.py <git-handoff> <repository> <script.json>
"""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters, stdio_client

import check


async def main(program, repository, script):
    with open(script, encoding="utf-8") as file:
        script = json.load(file)
    beats = []

    async def beat(progress, total, message):
        beats.append((progress, total, message))

    server = StdioServerParameters(command=program, args=["mcp", "--actor", "agent:sdk"], cwd=repository)
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
        # Many writes at once are all recorded.
        put = [session.call_tool("doc_put", {"run": "r", "name": f"d{n}", "content": "x"}) for n in range(60)]
        failed = [result for result in await asyncio.gather(*put) if result.is_error]
        assert not failed, failed
    print(f"lists {count} tools; {len(script) + 62} calls answered; {len(beats)} notifications of progress")


asyncio.run(main(*sys.argv[1:]))
