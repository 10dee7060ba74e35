#!/usr/bin/env python3
"""A stand-in for the HTTP APIs of language models, on loopback, so that agent programs run without an account.

    model_stub.py [LOG]        prints its URL and serves until it is killed; LOG gets one JSON line for each request

It speaks Anthropic's Messages, OpenAI's Responses and Chat Completions, and Gemini's generateContent, each with and without
streaming. Every conversation that offers tools does the same work, with whatever tools the agent has for it: it asks for the
working directory, reads inputs/note, edits src/greet.js or the file that the task names, writes outputs/report.md and runs a command. The report holds the
token that stands in inputs/note, so it shows that the agent could read the file. The state of a conversation is the number of
tool results in it. A conversation without tools is answered with edit blocks if it asks for such, else with one sentence.
A request without a key is refused, as the real services do. A key that names a status, such as key-answered-with-401, gets it.
Each answer counts 1000 tokens of input, 400 of them from a cache, and 50 of output.
"""
import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OLD, NEW = '"Hello, "', '"Hallo, "'
# The names that agents give to their tools, and to the arguments of these.
TOOLS = {
    "shell": ["Bash", "bash", "run_shell_command", "exec_command", "shell_command", "shell", "execute"],
    "read": ["Read", "read_file", "read", "view"],
    "edit": ["Edit", "edit", "replace", "str_replace_editor"],
    "write": ["Write", "write_file", "write", "create"],
}
ARGUMENTS = {
    "command": ["command", "cmd"],
    "path": ["file_path", "filePath", "absolute_path", "path"],
    "old": ["old_string", "oldString", "old_str"],
    "new": ["new_string", "newString", "new_str"],
    "content": ["content", "file_text"],
}
EMPTY = {"boolean": False, "integer": 1, "number": 1, "array": [], "object": {}}
# The command by which mini-swe-agent knows the end.
LAST = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
DONE = "The greeting is Dutch now."
INPUT, CACHED, OUTPUT = 1000, 400, 50
KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key")
# The types of errors by status, as Anthropic and OpenAI name them, and as Google does.
ERRORS = {400: ("invalid_request_error", "INVALID_ARGUMENT"), 401: ("authentication_error", "UNAUTHENTICATED"),
          403: ("permission_error", "PERMISSION_DENIED"), 429: ("rate_limit_error", "RESOURCE_EXHAUSTED"),
          529: ("overloaded_error", "UNAVAILABLE")}


def work(text):
    """The steps of the work, given the text of the conversation: (kind, arguments, the same as a command)."""
    found = re.search(r"token: ([0-9a-f]{16})", text)
    note = found[1] if found else "not read"
    named = re.search(r"Greet in Dutch in (src/[\w./-]*\w)", text)
    file = named[1] if named else "src/greet.js"
    where = re.search(r"PWD=(/[^\s\"'\\<]+)", text)
    below = (where[1] + "/" if where else "") + "{}"
    report = f"# Report\n\nThe note says {note}.\n"
    steps = [
        ("shell", {"command": "echo PWD=$PWD"}),
        ("read", {"path": below.format("inputs/note")}, "cat inputs/note"),
        ("read", {"path": below.format(file)}, f"cat {file}"),
        ("edit", {"path": below.format(file), "old": OLD, "new": NEW}, f"sed -i 's/{OLD}/{NEW}/' {file}"),
        ("write", {"path": below.format("outputs/report.md"), "content": report}, f"printf '{report}' >outputs/report.md"),
        ("shell", {"command": "git status --short >outputs/status.txt; cp inputs/note outputs/copy.txt"}),
    ]
    if LAST in text:
        steps.append(("shell", {"command": f"echo {LAST}"}))
    return steps


def blocks(text):
    """The edit blocks of an agent that has no tools."""
    report = next(values for kind, values, *_ in work(text) if kind == "write")
    edit = "{}\n```\n<<<<<<< SEARCH\n{}=======\n{}>>>>>>> REPLACE\n```\n"
    return edit.format("src/greet.js", f"  return {OLD} + name;\n", f"  return {NEW} + name;\n") + edit.format("outputs/report.md", "", report["content"])


def call(step, tools):
    """The tool and the arguments that do a step; `None` where no tool can."""
    kind, values, *command = step
    name = next((name for name in TOOLS[kind] if name in tools), None)
    if name is None and command:
        return call(("shell", {"command": command[0]}), tools)
    if name is None and "exec" in tools:  # Codex calls its tools from a script
        return "exec", f"text(await tools.exec_command({json.dumps({'cmd': values['command']})}))"
    if name is None:
        return None
    schema = tools[name] or {}
    known, arguments = schema.get("properties", {}), {}
    for meaning, value in values.items():
        argument = next((argument for argument in ARGUMENTS[meaning] if argument in known), None)
        if argument:
            arguments[argument] = ["bash", "-c", value] if known[argument].get("type") == "array" else value
    for argument in schema.get("required", []):
        kind = known.get(argument, {}).get("type", "string")
        choice = known.get(argument, {}).get("enum", [EMPTY.get(kind if isinstance(kind, str) else kind[0], "as asked")])
        arguments.setdefault(argument, choice[0])
    return name, arguments


class Anthropic:
    def tools(self, body):
        return {tool["name"]: tool.get("input_schema") for tool in body.get("tools") or []}

    def results(self, body):
        lists = [message["content"] for message in body["messages"] if isinstance(message["content"], list)]
        return sum(part.get("type") == "tool_result" for parts in lists for part in parts)

    def whole(self, body, said, call):
        content = [{"type": "tool_use", "id": fresh("toolu"), "name": call[0], "input": call[1]}] if call else [{"type": "text", "text": said}]
        return {"id": fresh("msg"), "type": "message", "role": "assistant", "model": body["model"], "content": content,
                "stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None,
                "usage": {"input_tokens": INPUT - CACHED, "cache_read_input_tokens": CACHED, "cache_creation_input_tokens": 0, "output_tokens": OUTPUT}}

    def events(self, whole):
        block = whole["content"][0]
        tool = block["type"] == "tool_use"
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])} if tool else {"type": "text_delta", "text": block["text"]}
        empty = {**block, "input": {}} if tool else {**block, "text": ""}
        end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield "message_start", {"message": {**whole, "content": [], "stop_reason": None}}
        yield "content_block_start", {"index": 0, "content_block": empty}
        yield "content_block_delta", {"index": 0, "delta": delta}
        yield "content_block_stop", {"index": 0}
        yield "message_delta", {"delta": end, "usage": whole["usage"]}
        yield "message_stop", {}


class Responses:
    def listed(self, body):
        """Every tool with the namespace it stands in; Codex sends its tools as an item of the input."""
        more = [tool for item in items(body) if item.get("type") == "additional_tools" for tool in item["tools"]]
        for tool in (body.get("tools") or []) + more:
            inner = tool.get("tools") if tool["type"] == "namespace" else None
            yield from [(tool, None)] if inner is None else ((one, tool["name"]) for one in inner)

    def tools(self, body):
        return {tool["name"]: tool.get("parameters") for tool, _ in self.listed(body) if tool["type"] in ("function", "custom")}

    def results(self, body):
        return sum(item.get("type") in ("function_call_output", "custom_tool_call_output") for item in items(body))

    def whole(self, body, said, call):
        item = {"type": "message", "id": fresh("msg"), "role": "assistant", "content": [{"type": "output_text", "text": said, "annotations": []}]}
        if call:
            given = {"input": call[1]} if isinstance(call[1], str) else {"arguments": json.dumps(call[1])}
            kind = "custom_tool_call" if isinstance(call[1], str) else "function_call"
            item = {"type": kind, "id": fresh("fc"), "call_id": fresh("call"), "name": call[0], **given}
            space = next((space for tool, space in self.listed(body) if tool.get("name") == call[0]), None)
            item.update({"namespace": space} if space else {})
        usage = {"input_tokens": INPUT, "input_tokens_details": {"cached_tokens": CACHED}, "output_tokens": OUTPUT,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": INPUT + OUTPUT}
        return {"id": fresh("resp"), "object": "response", "created_at": int(time.time()), "status": "completed", "model": body["model"],
                "output": [{**item, "status": "completed"}], "usage": usage, "error": None, "tools": [], "tool_choice": "auto"}

    def events(self, whole):
        yield "response.created", {"response": {**whole, "status": "in_progress", "output": []}}
        yield "response.output_item.added", {"output_index": 0, "item": whole["output"][0]}
        yield "response.output_item.done", {"output_index": 0, "item": whole["output"][0]}
        yield "response.completed", {"response": whole}


class Chat:
    def tools(self, body):
        return {tool["function"]["name"]: tool["function"].get("parameters") for tool in body.get("tools") or []}

    def results(self, body):
        return sum(message["role"] == "tool" for message in body["messages"])

    def whole(self, body, said, call):
        message = {"role": "assistant", "content": None if call else said}
        if call:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            message["tool_calls"] = [{"index": 0, "id": fresh("call"), "type": "function", "function": function}]
        return {"id": fresh("chatcmpl"), "object": "chat.completion", "created": int(time.time()), "model": body["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}],
                "usage": {"prompt_tokens": INPUT, "prompt_tokens_details": {"cached_tokens": CACHED}, "completion_tokens": OUTPUT,
                          "total_tokens": INPUT + OUTPUT}}

    def events(self, whole):
        choice = whole["choices"][0]
        head = {**whole, "object": "chat.completion.chunk"}
        yield None, {**head, "choices": [{"index": 0, "delta": choice["message"], "finish_reason": None}]}
        yield None, {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}


class Gemini:
    def tools(self, body):
        declared = [one for tool in body.get("tools") or [] for one in tool.get("functionDeclarations") or []]
        return {one["name"]: one.get("parametersJsonSchema") or one.get("parameters") for one in declared}

    def results(self, body):
        return sum("functionResponse" in part for content in body.get("contents") or [] for part in content.get("parts") or [])

    def filled(self, body):
        """An answer in the form that the request demands, as Gemini CLI does to choose a model; None if it demands none."""
        wanted = body.get("generationConfig", {})
        schema = wanted.get("responseJsonSchema") or wanted.get("responseSchema")
        if not schema:
            return None
        kinds = {name: str(value.get("type", "string")).lower() for name, value in schema.get("properties", {}).items()}
        return json.dumps({name: EMPTY.get(kind, "as asked") for name, kind in kinds.items()})

    def whole(self, body, said, call):
        part = {"functionCall": {"name": call[0], "args": call[1]}} if call else {"text": self.filled(body) or said}
        return {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}], "modelVersion": "stub",
                "usageMetadata": {"promptTokenCount": INPUT, "cachedContentTokenCount": CACHED, "candidatesTokenCount": OUTPUT,
                                  "totalTokenCount": INPUT + OUTPUT}}

    def events(self, whole):
        yield None, whole


DIALECTS = {"/messages": Anthropic(), "/responses": Responses(), "/chat/completions": Chat(), "enerateContent": Gemini()}


def items(body):
    return body["input"] if isinstance(body["input"], list) else []


def fresh(kind):
    return f"{kind}_{time.time_ns()}"


class Stub(BaseHTTPRequestHandler):
    protocol_version, log, lock = "HTTP/1.1", None, threading.Lock()

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(200, {})

    def do_GET(self):
        if self.headers.get("upgrade"):  # Codex asks for a WebSocket first, and takes this for a no
            return self.answer(426, {"error": {"type": "upgrade_required", "message": "there are no WebSockets here"}})
        known = self.path.split("?")[0].endswith("/models")
        self.answer(200 if known else 404, {"object": "list", "data": [{"id": "stub", "object": "model"}], "models": []})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        path, text = self.path.split("?")[0], json.dumps(body)
        dialect = next((dialect for ending, dialect in DIALECTS.items() if path.endswith(ending)), None)
        if self.log:
            with self.lock, open(self.log, "a") as out:
                out.write(json.dumps({"path": self.path, "agent": self.headers.get("user-agent"), "body": body}) + "\n")
        if "count_tokens" in path or "countTokens" in path:
            return self.answer(200, {"input_tokens": INPUT, "totalTokens": INPUT})
        if dialect is None:
            return self.answer(404, {"error": {"type": "not_found_error", "message": path}})
        keys = " ".join(self.headers.get(name, "") for name in KEY_HEADERS) + self.path
        named = re.search(r"answered-with-(\d+)", keys)
        if named or not any(name in self.headers for name in KEY_HEADERS) and "key=" not in self.path:
            return self.refuse(int(named[1]) if named else 401, path)
        tools, done = dialect.tools(body), dialect.results(body)
        steps = [step for step in (call(step, tools) for step in work(text)) if step]
        said = DONE if steps or "SEARCH" not in text else blocks(text)
        whole = dialect.whole(body, said, steps[done] if done < len(steps) else None)
        if not body.get("stream") and "stream" not in self.path:
            return self.answer(200, whole)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for kind, data in dialect.events(whole):
            head = f"event: {kind}\n" if kind else ""
            self.wfile.write(f"{head}data: {json.dumps({'type': kind, **data} if kind else data)}\n\n".encode())
        if isinstance(dialect, Chat):
            self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def refuse(self, status, path):
        """Answers with an error in the words of the API."""
        ours, googles = ERRORS[status]
        message = f"the stand-in answers with {status}"
        if status == 401:
            message = "invalid x-api-key" if path.endswith("/messages") else "Incorrect API key provided"
        if "enerateContent" in path:
            return self.answer(status, {"error": {"code": status, "message": message, "status": googles}})
        self.answer(status, {"type": "error", "error": {"type": ours, "code": ours, "message": message}})

    def answer(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


if __name__ == "__main__":
    Stub.log = sys.argv[1] if len(sys.argv) > 1 else None
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    server.daemon_threads, server.handle_error = True, lambda *_: None  # clients that hang up
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
