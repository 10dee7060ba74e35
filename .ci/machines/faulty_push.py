#!/usr/bin/env python3
"""Stands before git in PATH and spoils some of its pushes of a chain.

    faulty_push.py GIT COUNTS ARGUMENT…

GIT is the real program. Each spoiled push adds a line to the file COUNTS. HANDOFF_FAULTS is the share of pushes to spoil.
"""

import os
import random
import re
import subprocess
import sys
import time

GIT, COUNTS, *WORDS = sys.argv[1:]
LEASE = re.compile(r"--force-with-lease=(refs/handoff/runs/[^:]+):")


def run():
    return subprocess.run([GIT, *WORDS], capture_output=True)


def lost_answer():
    """The push lands, and its answer does not arrive."""
    run()
    sys.stderr.write("fatal: the remote end hung up unexpectedly\n")
    return 128


def lost_push():
    """The push does not arrive."""
    sys.stderr.write("fatal: unable to access the remote\n")
    return 128


def late():
    """The push lands after git has ended without an answer."""
    if os.fork() == 0:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        time.sleep(random.uniform(0.2, 2))
        os.execv(GIT, [GIT, *WORDS])
    return lost_push()


def killed():
    """git is killed in the middle of the push."""
    process = subprocess.Popen([GIT, *WORDS], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(random.uniform(0.005, 0.08))
    process.kill()
    process.wait()
    return lost_push()


def twice():
    """The push is sent twice, and the second answer is shown: it says that all is up to date."""
    run()
    return show(run())


def up_to_date():
    """Nothing is pushed, and the answer says that all is up to date."""
    reference = next(match.group(1) for match in map(LEASE.match, WORDS) if match)
    pushed = next(word for word in WORDS if word.endswith(":" + reference))
    print(f"To remote\n=\t{pushed}\t[up to date]\nDone")
    return 0


def slow():
    """The answer takes a second."""
    done = run()
    time.sleep(1)
    return show(done)


def show(done):
    sys.stdout.buffer.write(done.stdout)
    sys.stderr.buffer.write(done.stderr)
    return done.returncode


KINDS = {kind.__name__: kind for kind in (lost_answer, lost_push, late, killed, twice, up_to_date, slow)}


def main():
    if not any(map(LEASE.match, WORDS)) or random.random() >= float(os.environ.get("HANDOFF_FAULTS", "0")):
        os.execv(GIT, [GIT, *WORDS])
    kind = KINDS[os.environ.get("HANDOFF_FAULT_KIND") or random.choice(list(KINDS))]
    with open(COUNTS, "a", encoding="utf-8") as counts:
        counts.write(kind.__name__ + "\n")
    return kind()


sys.exit(main())
