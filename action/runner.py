"""The action's side of the runner: logs, workflow commands, outputs, and programs it calls."""

import base64
import json
import os
import secrets
import subprocess
from pathlib import Path


class Stop(Exception):
    """A reason why there is no verdict."""


def variable(name):
    """Returns a variable of the environment, empty if it is not set."""
    return os.environ.get(name, "")


def printable(text):
    """Returns a text in one line, with what is invisible as escapes."""
    return "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in text.strip())


def log(text):
    """Prints lines that the runner does not read as commands, whatever they have in them."""
    for line in text.splitlines():
        print("| " + printable(line).replace("##[", "## ["), flush=True)


def command(name, message):
    """Shows a message as an annotation of the job."""
    data = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    print(f"::{name} title=git handoff::{data}", flush=True)


def output(name, value):
    """Sets an output of the step."""
    end = secrets.token_hex(16)
    with open(variable("GITHUB_OUTPUT"), "a", encoding="utf-8") as file:
        file.write(f"{name}<<{end}\n{value}\n{end}\n")


def folder():
    """Makes a folder that later steps of the job can read."""
    path = Path(variable("RUNNER_TEMP")) / f"git-handoff-{secrets.token_hex(8)}"
    path.mkdir()
    return path


def configure(settings):
    """Gives settings to every git of this process, in the environment and not in a file."""
    count = int(variable("GIT_CONFIG_COUNT") or 0)
    for name, value in settings:
        os.environ[f"GIT_CONFIG_KEY_{count}"] = name
        os.environ[f"GIT_CONFIG_VALUE_{count}"] = value
        count += 1
    os.environ["GIT_CONFIG_COUNT"] = str(count)


def trust(place):
    """Trusts exactly the keys of the input `signers`."""
    signers = variable("SIGNERS").strip()
    if not signers:
        raise Stop("the input `signers` is empty: give it the lines that `git handoff key` prints")
    path = place / "signers"
    path.write_text(signers + "\n", encoding="utf-8")
    configure([("handoff.signers", str(path))])
    return path


def log_in():
    """Gives git the token for the server of the repository, in place of one that is configured."""
    token = os.environ.pop("TOKEN", "").strip()
    os.environ["GIT_TERMINAL_PROMPT"] = "0"
    if token:
        name = f"http.{variable('GITHUB_SERVER_URL')}/.extraheader"
        word = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        # The empty value removes the header that actions/checkout may have left.
        configure([(name, ""), (name, f"AUTHORIZATION: basic {word}")])
    return token


def run(*arguments):
    """Runs a program; returns its exit code, and what it wrote to both streams."""
    try:
        done = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as error:
        raise Stop(f"cannot run {arguments[0]}: {error.strerror}") from error
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def git(*arguments):
    """Runs git, which has to succeed; returns what it prints."""
    code, out, errors = run("git", *arguments)
    if code != 0:
        raise Stop(f"git {arguments[0]} failed: {reason(errors, code)}")
    return out


def handoff(*arguments, codes=(0,)):
    """Runs git handoff, which has to end with one of these codes; returns code and output."""
    code, out, errors = run("git", "handoff", "--json", *arguments)
    if code not in codes:
        raise Stop(f"git handoff {arguments[0]} failed: {reason(errors, code)}")
    log(errors)
    return code, out


def reason(errors, code):
    """Returns why a program failed: the message and hint of git handoff, else its last line."""
    lines = errors.strip().splitlines() or [f"exit code {code}"]
    for line in lines:
        try:
            error = json.loads(line)
            hint = f" (hint: {error['hint']})" if error.get("hint") else ""
            return printable(": ".join([error["message"], *error["causes"]]) + hint)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return printable(lines[-1])
