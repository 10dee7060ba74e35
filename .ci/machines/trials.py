"""The trials: each drives one run from several machines while something goes wrong, and judges it in the end."""

import collections
import contextlib
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
        took = time.monotonic() - started
        clean_up(made)
        return judge.conclude(made, count, took, kills)[1]


def clean_up(made):
    """Removes what killed drivers left on the remote."""
    last = next(machine for machine in reversed(made.machines) if machine.process.returncode == 0)
    last.handoff("clean", "--remote", "--force")
    left = call(["git", "for-each-ref", "refs/handoff/drivers"], cwd=made.hub)
    if left:
        raise Failed(f"`clean --remote` left: {left}")


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
    """Drives from a clone that has only the blobs of its checkout and no history, and hands products over."""
    with field(options, "blobless") as made:
        made.machine("m0")
        made.machine("m1", "--filter=blob:none", "--depth=1")
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


def told(options):
    """Stops a driver and says that it is lost: its attempts are given back long before `lostAfter`."""
    with field(options, "told", handoff_lostAfter="10m") as made:
        count = 4
        started = begin(made, 2, made.items(count, lambda number: 3.0))
        made.wait_for("an attempt of the second driver", lambda: holds(made, "agent:m1"), 30)
        made.machines[1].pause()
        victim = next(e["driver"] for e in made.entries() if e["kind"] == "item.fired" and e["actor"] == "agent:m1")
        made.machines[0].handoff("lost", RUN, "--driver", victim[:8])
        if not any(e["because"] == "told" for e in judge.taken(made.entries())):
            raise Failed("`lost` recorded nothing")
        made.wait_for("the attempts of another driver", lambda: not holds(made, "agent:m1"), 10)
        made.machines[1].resume()
        made.wait_for_end(options.patience)
        return judge.conclude(made, count, time.monotonic() - started)[1]


def cut_off(options):
    """Cuts one driver off that holds a lock. Its attempt must have ended before another driver starts the item."""
    with field(options, "cut-off") as made:
        count, lock = 3, made.folder / "lock"
        made.machine("m0")
        server = servers.Http(made.folder)
        made.url = f"{server.url}/hub.git"
        victim = made.machine("m1")
        # The first attempt of the first item would outlast its take-over by far.
        long = "$(test $HANDOFF_ITEM$HANDOFF_ATTEMPT = i01 && echo 30 || echo 1)"
        made.submit(made.machines[0], made.items(count, lambda number: f'"{long}" {lock}', resourceLocks=["one"]))
        started = time.monotonic()
        try:
            victim.start()
            made.wait_for("an attempt of the driver", lambda: holds(made, "agent:m1"), 30)
            made.machines[0].start()
            server.close()
            made.wait_for("a take-over", lambda: judge.taken(made.entries()), 60)
            made.wait_for("an attempt of the other driver", lambda: holds(made, "agent:m0"), 30)
            server = servers.Http(made.folder, port=server.port)
            made.wait_for_end(options.patience)
        finally:
            server.close()
        if "end i0 1 " in made.trace.read_text():
            raise Failed("the attempt of the driver that was cut off came to its end")
        return judge.conclude(made, count, time.monotonic() - started)[1]


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


def keys(options):
    """Rotates the key of a machine while it drives: a new key is admitted, and the old one dismissed."""
    with field(options, "keys") as made:
        count = 14
        owner, old, new = (made.machine(name) for name in ("owner", "old", "new"))
        for machine in (old, new):
            own_key(made, machine)
        made.submit(owner, made.items(count, lambda number: 2.0))
        owner.handoff("admit", RUN, line(old), "--as", "work")
        owner.handoff("push", "origin", RUN)
        started = time.monotonic()
        old.start()
        made.wait_for("an attempt with the old key", lambda: holds(made, "agent:old"), 30)
        owner.start()
        made.wait_for("an attempt of the owner", lambda: holds(made, "agent:owner"), 30)
        owner.handoff("admit", RUN, line(new), "--as", "work")
        new.start()
        made.wait_for("an attempt with the new key", lambda: holds(made, "agent:new"), 30)
        old.is_ours = True
        owner.handoff("dismiss", RUN, line(old))
        made.wait_for_end(options.patience)
        return judge.conclude(made, count, time.monotonic() - started)[1]


def own_key(made, machine):
    """Gives a machine a key of its own. It trusts the key that submitted the run."""
    key = machine.folder / "key"
    call(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", machine.name, "-f", key])
    for name, value in (("handoff.signingKey", key), ("handoff.signers", made.signers)):
        call(["git", "config", name, str(value)], cwd=machine.clone)
    with made.signers.open("a") as signers:
        signers.write(line(machine) + "\n")


def line(machine):
    return f'{machine.name} namespaces="git" ' + (machine.folder / "key.pub").read_text().strip()


def clocks(options):
    """Drives over ssh with clocks that differ by minutes. Drivers whose clocks are hours behind, or in 1971, refuse the run."""
    library = next(iter(sorted(pathlib.Path("/").glob(LIBRARY[1:]))), None)
    # Every call of ssh takes most of a second on a busy machine.
    with field(options, "clocks", handoff_heartbeat="2s", handoff_lostAfter="20s") as made:
        server = servers.Ssh(made.folder / "sshd")
        made.environment["GIT_SSH_COMMAND"] = server.command
        made.url = f"{server.url}{made.hub}"
        try:
            count = 5
            def machine(number, clock):
                machine = made.machine(f"m{number}")
                if library and clock != "+0":
                    machine.extra.update(LD_PRELOAD=str(library), FAKETIME=clock, FAKETIME_DONT_FAKE_MONOTONIC="1")
                return machine

            drivers = [machine(number, clock) for number, clock in enumerate(("+0", "+120", "-120"))]
            behind = [machine(number, clock) for number, clock in enumerate(("-5h", "-20000d"), 3) if library]
            if not library:
                print("SKIPPED: clocks that differ; this machine has no libfaketime")
            made.submit(made.machines[0], made.items(count, lambda number: 0.5))
            started = time.monotonic()
            for each in behind:
                try:
                    each.handoff("run", RUN, "--via", "origin")
                except Failed as refusal:
                    if "more than 5 minutes ahead of" not in str(refusal):
                        raise
                else:
                    raise Failed(f"{each.name} drove a run that is dated in its future")
            for each in drivers:
                each.start()
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
