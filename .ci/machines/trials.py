"""The trials: each drives one run from several machines while something goes wrong, and judges it in the end."""

import collections
import contextlib
import os
import pathlib
import random
import shutil
import time

import judge
import servers
from field import RUN, HERE, Failed, Field, call

LIBRARY = "/usr/lib/*-linux-gnu/faketime/libfaketimeMT.so.1"


@contextlib.contextmanager
def field(options, name, **settings):
    """Makes a field, and removes it if the trial passed."""
    folder = options.folder / name
    shutil.rmtree(folder, ignore_errors=True)
    made = Field(folder, options.programs, {key.replace("_", "."): value for key, value in settings.items()})
    try:
        yield made
    except BaseException:
        made.close()
        print(f"the folder of the trial is kept: {folder}")
        raise
    made.close()
    shutil.rmtree(folder, ignore_errors=True)


def begin(made, drivers, items, before=lambda: None, **fields):
    """Adds machines, submits items in the first of them, and starts all drivers after a last call."""
    for number in range(drivers):
        # Every other clone has no history.
        made.machine(f"m{number}", *(["--depth=1", "--no-checkout"] if number % 2 else []))
    made.submit(made.machines[0], items, **fields)
    before()
    for machine in made.machines:
        machine.start()
    return time.monotonic()


def seconds(least, most):
    """Returns the duration of items: between two bounds, the same for each number in every run."""
    return lambda number: round(random.Random(number).uniform(least, most), 2)


def wait_for_work(made):
    made.wait_for("the first attempt", lambda: made.trace.stat().st_size > 0, 60)


def kill(options, server=None):
    """Kills drivers at random, alone or with all that they started. Half of them come back in the same clone."""
    name = "kill" if server is None else "kill-http"
    with field(options, name) as made:
        if server:
            server.server.root = made.folder
            made.url = f"{server.url}/hub.git"
        count, kills, gone = options.items, 0, 0
        started = begin(
            made, options.drivers, made.items(count, seconds(0.3, 1.2)), server.faults.begin if server else lambda: None
        )
        wait_for_work(made)
        until = time.monotonic() + options.chaos
        while time.monotonic() < until:
            time.sleep(random.uniform(0.5, 2.0))
            alive = [one for one in made.machines if one.is_alive()]
            if len(alive) < 2:
                break
            victim = random.choice(alive)
            if not victim.kill(whole=random.random() < 0.5):
                continue
            kills += 1
            if random.random() < 0.5:
                victim.start()
            else:
                gone += 1
                made.machine(f"n{gone}").start()
        if server:
            server.faults.end()
        made.wait_for_end(options.patience)
        return judge.conclude(made, count, time.monotonic() - started, kills)[1]


def kill_http(options):
    """The same over HTTP, while the server cuts connections, keeps answers, is slow or busy."""
    server = servers.Http(options.folder)
    try:
        row = kill(options, server)
    finally:
        server.close()
    print("  spoiled:", ", ".join(f"{number} {kind}" for kind, number in server.faults.made.items()))
    return row


def pause(options):
    """Stops a driver that holds attempts for less than `lostAfter`: it keeps them."""
    with field(options, "pause") as made:
        count = 6
        started = begin(made, 2, made.items(count, lambda number: 3.0))
        made.wait_for("an attempt of the second driver", lambda: holds(made, "agent:m1"), 30)
        made.machines[1].pause()
        time.sleep(2)
        made.machines[1].resume()
        made.wait_for_end(options.patience)
        entries, row = judge.conclude(made, count, time.monotonic() - started)
        if lost := judge.taken(entries):
            raise Failed(f"a driver that was stopped for less than lostAfter was robbed: {lost}")
        return row


def blobless(options):
    """Drives from a clone that has neither blobs nor history, and hands products over."""
    with field(options, "blobless") as made:
        made.machine("m0")
        made.machine("m1", "--filter=blob:none", "--depth=1", "--no-checkout")
        items = made.items(4, lambda number: 0.3)
        for number, item in enumerate(items[1:]):
            item["needs"] = {"before": {"from": f"i{number}", "select": {"kind": "output", "path": "out"}}}
        made.submit(made.machines[0], items)
        started = time.monotonic()
        made.machines[1].start()
        made.wait_for_end(options.patience)
        return judge.conclude(made, 4, time.monotonic() - started)[1]


def holds(made, actor):
    """Returns the items that the driver of an actor holds."""
    held = {}
    for entry in made.entries():
        if entry["kind"] == "item.fired":
            held[entry["item"]] = entry["actor"]
        elif "item" in entry:
            held.pop(entry["item"], None)
    return [item for item, holder in held.items() if holder == actor]


def robbed(options):
    """Stops a driver for longer than `lostAfter`. Its attempts are taken from it, and its late results are dropped."""
    with field(options, "robbed") as made:
        count = 6
        started = begin(made, 2, made.items(count, lambda number: 3.0))
        victim = made.machines[1]
        made.wait_for("an attempt of the second driver", lambda: holds(made, "agent:m1"), 30)
        victim.pause()
        made.wait_for("a take-over", lambda: judge.taken(made.entries()), 60)
        victim.resume()
        made.wait_for_end(options.patience)
        entries, row = judge.conclude(made, count, time.monotonic() - started)
        lost = {(entry["item"], entry["attempt"]) for entry in judge.taken(entries)}
        late = [e for e in entries if e["kind"] == "item.reconciled" and (e["item"], e["attempt"]) in lost]
        if late:
            raise Failed(f"the result of a lost attempt was recorded: {late}")
        return row


def outage(options):
    """Takes the remote away, and then makes it read-only, each time for longer than `lostAfter`: nobody is robbed."""
    with field(options, "outage") as made:
        count = 14
        started = begin(made, 2, made.items(count, lambda number: 1.0))
        made.wait_for("attempts of both drivers", lambda: holds(made, "agent:m0") and holds(made, "agent:m1"), 30)
        hub, aside = made.hub, made.hub.with_suffix(".aside")
        hub.rename(aside)
        time.sleep(options.outage)
        aside.rename(hub)
        time.sleep(1.5)
        hook = hub / "hooks/pre-receive"
        hook.write_text("#!/bin/sh\necho no pushes now >&2\nexit 1\n")
        hook.chmod(0o755)
        time.sleep(options.outage)
        hook.unlink()
        made.wait_for_end(options.patience)
        entries, row = judge.conclude(made, count, time.monotonic() - started)
        if lost := judge.taken(entries):
            raise Failed(f"a driver was robbed because of an outage: {lost}")
        return row


def faults(options):
    """Spoils a quarter of all pushes of the chain: answers that do not arrive, pushes that land late or twice."""
    with field(options, "faults") as made:
        counts = stand_before_git(made)
        made.environment["HANDOFF_FAULTS"] = "0.25"
        count = options.items
        started = begin(made, options.drivers, made.items(count, seconds(0.2, 0.8)))
        made.wait_for_end(options.patience * 2)
        row = judge.conclude(made, count, time.monotonic() - started)[1]
        spoiled = collections.Counter(counts.read_text().split() if counts.exists() else ())
        if not spoiled:
            raise Failed("no push was spoiled")
        print("  spoiled:", ", ".join(f"{number} {kind}" for kind, number in sorted(spoiled.items())))
        return row


def stand_before_git(made):
    """Puts faulty_push.py before git, for calls that push."""
    folder, counts = made.folder / "before", made.folder / "spoiled"
    folder.mkdir()
    git = shutil.which("git")
    wrapper = folder / "git"
    wrapper.write_text(
        f'#!/bin/sh\ncase " $* " in\n*" push "*) exec {HERE}/faulty_push.py {git} {counts} "$@" ;;\n*) exec {git} "$@" ;;\nesac\n'
    )
    wrapper.chmod(0o755)
    made.programs = f"{folder}:{made.programs}"
    return counts


def clocks(options):
    """Drives over ssh with clocks that differ by hours, one of them in 1971."""
    library = next(iter(sorted(pathlib.Path("/").glob(LIBRARY[1:]))), None)
    with field(options, "clocks") as made:
        server = servers.Ssh(made.folder / "sshd")
        made.environment["GIT_SSH_COMMAND"] = server.command
        made.url = f"{server.url}{made.hub}"
        try:
            count = 5
            for number, clock in enumerate(("+0", "+5h", "-5h", "-20000d")[: max(options.drivers, 3)]):
                machine = made.machine(f"m{number}")
                if library and number:
                    machine.extra.update(LD_PRELOAD=str(library), FAKETIME=clock, FAKETIME_DONT_FAKE_MONOTONIC="1")
            if not library:
                print("SKIPPED: clocks that differ; this machine has no libfaketime")
            made.submit(made.machines[0], made.items(count, lambda number: 0.5))
            started = time.monotonic()
            for machine in made.machines:
                machine.start()
            made.wait_for_end(options.patience)
            return judge.conclude(made, count, time.monotonic() - started)[1]
        finally:
            server.close()


def together(options):
    """Starts every driver at the same moment on items with one lock, and ends one with SIGTERM, which hands its attempts back."""
    with field(options, "together") as made:
        count, lock = 8, made.folder / "lock"
        items = made.items(count, lambda number: f"0.5 {lock}", resourceLocks=["one"])
        started = begin(made, options.drivers, items, concurrency=3)
        wait_for_work(made)
        made.machines[1].tell_to_end()
        made.wait_for("the end of the driver that was told to end", lambda: not made.machines[1].is_alive(), 20)
        made.wait_for_end(options.patience)
        return judge.conclude(made, count, time.monotonic() - started)[1]
