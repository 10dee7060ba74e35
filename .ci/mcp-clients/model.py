#!/usr/bin/env python3
"""Plays a language model on loopback, for clients of the Model Context Protocol that need one.

usage: model.py <script> <record>

The script is a JSON list of [tool, arguments]. The model calls these tools of the server "handoff" one after the other and
then says that it is done. It speaks the streaming APIs of Anthropic (Messages), OpenAI (Responses) and Google (Gemini). Prints
its URL. Appends one JSON line per conversational request to the record: the path, the tools that the client offers, and the
results of the calls so far, as text.
"""

import itertools
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NUMBERS = itertools.count(1)


def offered(body):
    """Returns the names of the tools that a request offers, each with its namespace."""
    names = []
    for tool in body.get("tools") or []:
        if "functionDeclarations" in tool:
            names += [("", declared["name"]) for declared in tool["functionDeclarations"]]
        elif tool.get("type") == "namespace":
            names += [(tool["name"], inner["name"]) for inner in tool["tools"]]
        else:
            names.append(("", tool.get("name") or tool.get("type")))
    return names


def results(body):
    """Returns the results of tool calls in a conversation, as text."""
    found = []
    for message in body.get("messages") or []:
        parts = message["content"] if isinstance(message["content"], list) else []
        found += [part["content"] for part in parts if part.get("type") == "tool_result"]
    found += [item["output"] for item in body.get("input") or [] if str(item.get("type", "")).endswith("_call_output")]
    for content in body.get("contents") or []:
        found += [part["functionResponse"]["response"] for part in content["parts"] if "functionResponse" in part]
    return [one if isinstance(one, str) else json.dumps(one) for one in found]


def named(tool, names):
    """Returns the namespace and the name under which a client offers a tool of ours, or `None`."""
    for space, name in names:
        whole = (space + "__" + name).replace("__", "_").strip("_")
        if whole.endswith("handoff_" + tool) or whole == tool:
            return space, name
    return None


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script, record = [], ""

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_json({"object": "list", "data": [], "models": []})

    def do_HEAD(self):
        self.send_json({})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        path = self.path.split("?")[0]
        if path.endswith(("count_tokens", ":countTokens")):
            return self.send_json({"input_tokens": 1, "totalTokens": 1})
        if not path.endswith(("/messages", "/responses", ":generateContent", ":streamGenerateContent")):
            return self.send_json({})
        names, done = offered(body), results(body)
        call = None
        if names and len(done) < len(self.script):
            tool, arguments = self.script[len(done)]
            place = named(tool, names)
            call = place and (*place, arguments)
        if names:
            tools = [space + ("__" if space else "") + name for space, name in names]
            with open(self.record, "a", encoding="utf-8") as record:
                record.write(json.dumps({"path": path, "tools": tools, "results": done, "call": call}) + "\n")
        if path.endswith("/messages"):
            self.as_messages(call, body.get("stream"))
        elif path.endswith("/responses"):
            self.as_responses(call)
        else:
            self.as_gemini(call, "stream" in path)

    def as_messages(self, call, streams):
        block = {"type": "text", "text": "Done."}
        if call:
            block = {"type": "tool_use", "id": f"toolu_{next(NUMBERS)}", "name": call[1], "input": call[2]}
        reason = "tool_use" if call else "end_turn"
        message = {"id": f"msg_{next(NUMBERS)}", "type": "message", "role": "assistant", "model": "stub", "content": [block]}
        message.update(stop_reason=reason, stop_sequence=None, usage={"input_tokens": 1, "output_tokens": 1})
        if not streams:
            return self.send_json(message)
        empty, delta = dict(block, text=""), {"type": "text_delta", "text": "Done."}
        if call:
            empty, delta = dict(block, input={}), {"type": "input_json_delta", "partial_json": json.dumps(call[2])}
        self.send_events([
            {"type": "message_start", "message": dict(message, content=[], stop_reason=None)},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ])

    def as_responses(self, call):
        text = {"type": "output_text", "text": "Done.", "annotations": []}
        item = {"type": "message", "id": f"msg_{next(NUMBERS)}", "role": "assistant", "status": "completed", "content": [text]}
        if call:
            number = next(NUMBERS)
            item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": call[1]}
            item.update(arguments=json.dumps(call[2]), status="completed")
            if call[0]:
                item["namespace"] = call[0]
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        usage.update(input_tokens_details={"cached_tokens": 0}, output_tokens_details={"reasoning_tokens": 0})
        whole = {"id": f"resp_{next(NUMBERS)}", "object": "response", "status": "completed", "model": "stub", "output": [item]}
        self.send_events([
            {"type": "response.created", "response": dict(whole, status="in_progress", output=[])},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": dict(whole, usage=usage)},
        ])

    def as_gemini(self, call, streams):
        part = {"functionCall": {"name": call[1], "args": call[2]}} if call else {"text": "Done."}
        candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        answer = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "stub"}
        self.send_events([answer]) if streams else self.send_json(answer)

    def send_json(self, value):
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def send_events(self, events):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event in events:
            kind = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{kind}data: {json.dumps(event)}\n\n".encode())
        self.close_connection = True


def main():
    Model.script, Model.record = json.loads(sys.argv[1]), sys.argv[2]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    server.daemon_threads = True
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
