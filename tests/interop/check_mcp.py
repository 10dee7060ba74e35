"""Hands a checkpoint over between two repositories with the official Python client of the Model Context Protocol.

usage: check_mcp.py <git-handoff> <repository> <clone of it>

Needs mcp from PyPI. The repository and its clone sign with one key, so that they know each other.
"""

import asyncio
import sys

from mcp import Client, ClientSession, StdioServerParameters, stdio_client

TOOLS = {
    "submit", "status", "watch", "verify", "packet_check", "checkpoint", "resume", "diff", "fork", "rollback",
    "handoff_checkpoint", "adopt_checkpoint", "doc_put", "doc_get", "doc_list", "doc_log", "plan_validate",
    "subagents_list", "schemas_list", "thread_list", "thread_push", "thread_fetch", "cat",
}


def server(program, repository, *more):
    return StdioServerParameters(command=program, args=["mcp", *more], cwd=repository)


def answer(result):
    assert not result.is_error, result
    return result.structured_content


async def main(program, repository, clone):
    async with Client(server(program, repository)) as sender:
        tools = (await sender.list_tools()).tools
        listed = {tool.name for tool in tools}
        assert listed == TOOLS, listed ^ TOOLS
        # By these the client checks every answer itself.
        assert all(tool.output_schema for tool in tools), tools
        saved = answer(await sender.call_tool("checkpoint", {"thread_id": "run-42", "state": "gathered 3 sources"}))
        offered = {"thread_id": "run-42", "checkpoint_id": saved["checkpoint_id"], "to_agent": "writer"}
        descriptor = answer(await sender.call_tool("handoff_checkpoint", offered))
        failed = await sender.call_tool("resume", {"thread_id": "none"})
        assert failed.is_error and "hint: call `thread_list`" in failed.content[0].text, failed

    # The other end speaks as clients did before servers could be discovered.
    async with stdio_client(server(program, clone, "--me", "writer")) as (read, write):
        async with ClientSession(read, write) as receiver:
            await receiver.initialize()
            adoption = {"handoff_json": descriptor, "new_thread_id": "run-42-writer"}
            adopted = answer(await receiver.call_tool("adopt_checkpoint", adoption))
            assert adopted["adopted_from"] == descriptor["source"] and adopted["verified"], adopted
            resumed = answer(await receiver.call_tool("resume", {"thread_id": "run-42-writer"}))
            assert resumed["state"] == "gathered 3 sources", resumed
            again = await receiver.call_tool("adopt_checkpoint", {**adoption, "new_thread_id": "again"})
            assert again.is_error and again.structured_content["code"] == "used", again
            report = answer(await receiver.call_tool("verify", {"thread_id": "run-42-writer"}))
            assert report["intact"], report
    print(f"mcp: {descriptor['source']} was adopted as run-42-writer; {len(listed)} tools")


asyncio.run(main(*sys.argv[1:]))
