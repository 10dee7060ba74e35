"""git servers for trials: git-http-backend behind a small HTTP server that can misbehave, and sshd on the loopback."""

import getpass
import http.server
import os
import pathlib
import random
import shutil
import socket
import subprocess
import threading
import time

from field import Failed, call


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Faults:
    """What a server does to requests, each with a probability, while it is told to."""

    SHARES = {
        "cut": 0.04,  # Ends the connection in the middle of a push.
        "deaf": 0.04,  # Lets a push land and ends the connection before the answer.
        "busy": 0.04,  # Answers 503.
        "slow": 0.02,  # Answers after a second.
    }

    def __init__(self):
        self.made = dict.fromkeys(self.SHARES, 0)
        self.is_on = False

    def begin(self):
        self.is_on = True

    def end(self):
        self.is_on = False

    def choose(self, name):
        if not self.is_on or random.random() >= self.SHARES[name]:
            return False
        self.made[name] += 1
        return True


class Backend(http.server.BaseHTTPRequestHandler):
    """Runs git-http-backend as a CGI program."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def cgi(self, body):
        path, _, query = self.path.partition("?")
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.server.root),
            "GIT_PROJECT_ROOT": str(self.server.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": "trial",
            "REMOTE_ADDR": "127.0.0.1",
        }
        return subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True).stdout

    def answer(self):
        faults, body = self.server.faults, self.body()
        is_push = self.command == "POST" and self.path.endswith("git-receive-pack")
        if faults.choose("busy"):
            return self.send_error(503)
        if faults.choose("slow"):
            time.sleep(1)
        if is_push and faults.choose("cut"):
            # The server sees only a part of the pack.
            self.cgi(body[: len(body) - 40])
            self.close_connection = True
            return None
        out = self.cgi(body)
        time.sleep(self.server.delay)
        if is_push and faults.choose("deaf"):
            self.close_connection = True
            return None
        head, _, content = out.partition(b"\r\n\r\n")
        status, lines = 200, []
        for line in head.decode().splitlines():
            name, _, value = line.partition(": ")
            if name == "Status":
                status = int(value.split()[0])
            else:
                lines.append((name, value))
        self.send_response(status)
        for name, value in lines:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        return None

    do_GET = do_POST = answer


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Says nothing of clients that were killed."""


class Http:
    """Serves the repositories of a folder over HTTP. `delay` is added to the time of each request."""

    def __init__(self, root, delay=0.0, port=0):
        self.faults = Faults()
        self.server = Server(("127.0.0.1", port), Backend)
        self.port = self.server.server_address[1]
        self.server.root, self.server.faults, self.server.delay = pathlib.Path(root), self.faults, delay
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Ssh:
    """An sshd on the loopback, with a configuration, a port and keys of its own."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        program = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")
        if not program:
            raise Failed("there is no sshd")
        for name in ("host", "client"):
            call(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name])
        port = free_port()
        keys = self.folder / "authorized"
        shutil.copy(self.folder / "client.pub", keys)
        config = self.folder / "config"
        config.write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {self.folder}/host\nPidFile {self.folder}/pid\n"
            f"AuthorizedKeysFile {keys}\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
            "PermitRootLogin yes\nAcceptEnv GIT_PROTOCOL\nMaxStartups 100\n"
        )
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        with (self.folder / "log").open("w") as log:
            self.process = subprocess.Popen([program, "-D", "-e", "-f", config], stdout=log, stderr=log)
        known = self.folder / "known"
        known.write_text(f"[127.0.0.1]:{port} " + (self.folder / "host.pub").read_text())
        self.command = f"ssh -F /dev/null -i {self.folder}/client -o UserKnownHostsFile={known} -o BatchMode=yes"
        self.url = f"ssh://{getpass.getuser()}@127.0.0.1:{port}"
        self.wait(port)

    def wait(self, port):
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.05)
        raise Failed(f"sshd does not listen:\n{(self.folder / 'log').read_text()}")

    def close(self):
        self.process.terminate()
        self.process.wait()
