"""A stand-in for a git host, on the loopback interface: repositories, check runs and releases.

The repositories are real ones, served by git's own `http-backend` to requests that carry exactly
one right token. Check runs are kept and held to the limits that GitHub documents.
"""

import base64
import contextlib
import gzip
import http.server
import json
import os
import re
import subprocess
import threading

READ_ONLY = {"message": "Resource not accessible by integration", "status": "403"}
LEVELS = {"notice", "warning", "failure"}
CONCLUSIONS = {"success", "failure", "neutral", "cancelled", "skipped", "timed_out", "action_required"}


def refusal(body, is_new):
    """Returns why the API would refuse a check run, or `None`."""
    needed = {"name", "head_sha", "status", "conclusion", "details_url", "output"} if is_new else {"output"}
    output = body.get("output", {})
    if not needed <= set(body):
        return f"missing: {sorted(needed - set(body))}"
    if is_new and (body["conclusion"] not in CONCLUSIONS or not re.fullmatch("[0-9a-f]{40}", body["head_sha"])):
        return "conclusion or head_sha is not valid"
    if not output.get("title") or not output.get("summary") or len(output["summary"]) > 65_535:
        return "title or summary is missing or too long"
    if len(output["annotations"]) > 50:
        return "no more than 50 annotations"
    for one in output["annotations"]:
        if one["annotation_level"] not in LEVELS or not one["path"] or not one["message"]:
            return f"annotation is not valid: {one}"
        if not 1 <= one["start_line"] <= one["end_line"] or len(one["title"]) > 255 or len(one["message"]) > 65_536:
            return f"annotation is not valid: {one}"
    return None


class Host(http.server.ThreadingHTTPServer):
    """The server, with what it was asked for."""

    def __init__(self, root, token):
        """Serves the repositories below `root`/git and the files below `root`/releases."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.root, self.token, self.requests, self.refuse = root, token, [], {}
        self.url = f"http://127.0.0.1:{self.server_port}"

    @contextlib.contextmanager
    def serving(self):
        """Serves in a thread until the block ends."""
        thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.shutdown()
            thread.join()
            self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Prints nothing."""

    def do_GET(self):
        """Answers a request without a body."""
        self.answer(b"")

    def do_POST(self):
        """Answers a request with a body."""
        self.answer(self.read_body())

    do_PATCH = do_POST

    def read_body(self):
        """Returns the body, which git sends in chunks if it is long."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def send(self, code, body, kind="application/json", headers=()):
        """Sends an answer."""
        self.send_response(code)
        for name, value in [("Content-Type", kind), ("Content-Length", str(len(body))), *headers]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def answer(self, body):
        """Answers by the path."""
        path, _, query = self.path.partition("?")
        if path.startswith("/api/"):
            code, reply = self.check_run(path, json.loads(body))
            self.send(code, json.dumps(reply).encode())
        elif path.startswith("/releases/"):
            file = self.server.root / path[1:]
            self.send(200, file.read_bytes(), "application/gzip") if file.is_file() else self.send(404, b"")
        else:
            self.serve_git(path, query, body)

    def check_run(self, path, body):
        """Keeps a check run, unless the case wants it refused."""
        server = self.server
        server.requests.append({"method": self.command, "path": path, "body": body})
        if self.headers.get_all("Authorization") != [f"Bearer {server.token}"]:
            return 401, {"message": "Bad credentials"}
        if len(server.requests) in server.refuse:
            return server.refuse[len(server.requests)]
        new = path == "/api/repos/octo/greeting/check-runs" and self.command == "POST"
        if not new and not (path == "/api/repos/octo/greeting/check-runs/7" and self.command == "PATCH"):
            return 404, {"message": "Not Found"}
        why = refusal(body, new)
        return (
            (422, {"message": why})
            if why
            else (201 if new else 200, {"id": 7, "html_url": f"{server.url}/octo/greeting/runs/7"})
        )

    def serve_git(self, path, query, body):
        """Serves a repository to a request with the right token, or without one from a public fork."""
        word = base64.b64encode(f"x-access-token:{self.server.token}".encode()).decode()
        given = [value.lower() for value in self.headers.get_all("Authorization") or []]
        if len(given) > 1:
            return self.send(400, b"duplicate header: Authorization\n", "text/plain")
        if given != [f"basic {word}".lower()] and not path.startswith("/forker/"):
            return self.send(401, b"", "text/plain", [("WWW-Authenticate", 'Basic realm="git"')])
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        path = path.replace("/greeting.git/", "/greeting/")
        environment = os.environ | {
            "GIT_PROJECT_ROOT": str(self.server.root / "git"),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
        code = int(headers.pop("Status", "200").split()[0])
        return self.send(code, content, headers.pop("Content-Type", "text/plain"), headers.items())
