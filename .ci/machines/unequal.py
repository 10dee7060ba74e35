"""One run on three machines that are unequally far from the remote, each with a trouble of its own.

One machine lacks an executor, the disk of one is full, and the driver of one is killed every five seconds. Beside them is the
clone that submitted the run: it does not drive, and watches, cancels and runs. The best time is that of the same three machines
without troubles, at the same distances, just before. Every machine must do items, but for the one whose driver is killed if that
is also the farthest: it needs about nine calls to the remote, of 400 ms, before its first item runs.
"""

import collections
import concurrent.futures
import contextlib
import datetime
import itertools
import json
import random
import re
import shutil
import subprocess
import time

import judge
from field import HERE, RUN, Failed, call
from trials import field

DELAYS = (0, 0.1, 0.4)  # Seconds by which each call of a machine to the remote takes longer.
SECONDS = 1.5  # The length of each item.
KILL_EVERY = 5
MOST = 2  # The most that troubles may multiply the time by.
OTHER = "other"  # The run that is cancelled.
SPECIAL = "special"  # The executor that one machine lacks.
DECLINED = (
    f'the executor "{SPECIAL}" is not registered here; `git config handoff.executor.{SPECIAL}.command LINE` registers it'
)
SHORT = "nothing more is started until this is over: no-space: "
OVER = "this machine can work again: the run goes on"
SHARES = re.compile(r"(\d+) of (\d+) items here(?:; (.*))?")


def unequal(options):
    """Three machines at different distances, without an executor, with a full disk and killed every 5 s, need at most twice as long."""
    if lacks := cannot_mount(options.folder):
        print(f"SKIPPED: unequal machines; a full disk cannot be mounted here: {lacks}")
        return None
    if options.sample:
        # Times are compared in the long form, which has the machine to itself.
        return row_of(play(options, 28, ("lacking", "full", "killed")))
    count = 120
    best, rows = play(options, count, None), []
    for roles in itertools.permutations(("lacking", "killed", "full")):
        row = play(options, count, roles, best["starts"])
        if row["took"] > MOST * best["took"]:
            # Other work on this machine may have made the difference.
            best = max(best, play(options, count, None), key=lambda one: one["took"])
        rows.append(row)
        words = ", ".join(f"{role} at {delay * 1000:.0f} ms: {row['by'][role]}" for role, delay in zip(roles, DELAYS))
        print(f"  {row['seconds']} s, best {best['seconds']} s; items of {words}")
        if row["took"] > MOST * best["took"]:
            raise Failed(f"the run took {row['took']:.1f} s, more than {MOST} times the best, {best['took']:.1f} s: {words}")
    return row_of(max(rows, key=lambda row: row["took"]))


def row_of(played):
    """Returns the row of the table."""
    return {name: value for name, value in played.items() if name not in ("took", "by", "starts")}


@contextlib.contextmanager
def machines(options, name, count, roles):
    """Makes the submitter and three machines, each at its distance from the remote, and submits the run."""
    # A push to the farthest takes a second and more.
    with field(options, name, handoff_heartbeat="4s", handoff_lostAfter="30s") as made:
        submitter = made.machine("submitter")
        drivers = {role: made.machine(role) for role in roles}
        for machine, delay in zip(drivers.values(), DELAYS):
            set_apart(machine, delay)
        made.machine("second")
        for machine in made.machines:
            if machine.name != "lacking":
                call(["git", "config", f"handoff.executor.{SPECIAL}.command", work(made)], cwd=machine.clone)
        items = made.items(count, lambda number: SECONDS)
        for item in items[::4]:
            item.update(executor=SPECIAL, inputs={})
        made.submit(submitter, items)
        yield made, submitter, drivers


def set_apart(machine, delay):
    """Makes each call of a machine to the remote take longer: half of it on the way there, half on the way back."""
    folder = machine.folder / "before"
    folder.mkdir()
    git, pause = shutil.which("git"), f"sleep {delay / 2}"
    wrapper = folder / "git"
    wrapper.write_text(
        f'#!/bin/sh\ncase " $* " in\n*" push "* | *" fetch "* | *" ls-remote "*) ;;\n*) exec {git} "$@" ;;\nesac\n'
        f'{pause}\n{git} "$@"\ncode=$?\n{pause}\nexit "$code"\n'
    )
    wrapper.chmod(0o755)
    machine.extra["PATH"] = f"{folder}:{machine.environment()['PATH']}"


def work(made):
    return f"sh {HERE}/work.sh {made.trace} {SECONDS} > outputs/out"


def play(options, count, roles, starts=()):
    """Drives the run to its end, with a trouble for each machine if roles are named. Returns its row.

    `starts` are the seconds that the machine at each distance needs until its first item runs.
    """
    name = "unequal-" + ("-".join(roles) if roles else "best")
    with machines(options, name, count, roles or ("near", "middle", "far")) as (made, submitter, drivers):
        with contextlib.ExitStack() as stack:
            disk = stack.enter_context(full_disk(drivers["full"])) if roles else None
            started = time.monotonic()
            for machine in drivers.values():
                machine.start()
            kills = 0
            if roles:
                with concurrent.futures.ThreadPoolExecutor(1) as pool:
                    looks = pool.submit(use, made, submitter, drivers, disk, count)
                    kills = kill_often(made, drivers, looks, pause(roles, starts), options.patience)
                    took = time.monotonic() - started
                    looks.result()
            else:
                made.wait_for_end(options.patience)
                took = time.monotonic() - started
        entries, row = judge.conclude(made, count, took, kills)
        by = done_by(entries)
        for machine in drivers.values():
            check_end(machine, entries, count)
            is_expected = not options.sample and (roles is None or roles[-1] != "killed" or machine.name != "killed")
            if is_expected and not by[f"agent:{machine.name}"]:
                raise Failed(f"{machine.name} did no item: {dict(by)}\n{made.tails()}")
        if roles:
            check_troubles(made, entries, drivers)
        done = {machine.name: by[f"agent:{machine.name}"] for machine in drivers.values()}
        return {**row, "took": took, "by": done, "starts": [start(machine, entries) for machine in drivers.values()]}


def start(machine, entries):
    """Returns the seconds from the start of a driver to its first claim."""
    started = float(re.search(r"--- started at ([0-9.]+)", machine.log.read_text()).group(1))
    first = next((e["at"] for e in entries if e["kind"] == "item.fired" and e["actor"] == f"agent:{machine.name}"), None)
    return datetime.datetime.fromisoformat(first.replace("Z", "+00:00")).timestamp() - started if first else 0


def pause(roles, starts):
    """Returns the time between two kills: longer where this machine is so busy that a driver could start nothing in it."""
    place = roles.index("killed")
    return KILL_EVERY if place == len(roles) - 1 else max(KILL_EVERY, 2 * starts[place] + 2 * SECONDS)


def mount(folder):
    """Mounts a small file system."""
    folder.mkdir()
    call(["mount", "-t", "tmpfs", "-o", "size=4m", "git-handoff-trial", folder])


def cannot_mount(folder):
    """Returns why no file system can be mounted here, or None."""
    tried = folder / "mount"
    try:
        mount(tried)
        call(["umount", tried])
    except (Failed, OSError) as error:
        return str(error).splitlines()[:2][-1]
    finally:
        tried.rmdir()
    return None


@contextlib.contextmanager
def full_disk(machine):
    """Gives a machine's worktrees a small file system without any space. Yields a call that frees it."""
    small = machine.folder / "small"
    mount(small)
    filler = small / "filler"
    try:
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(b"\0" * 4096):
                pass
        call(["git", "config", "handoff.workspace.root", small], cwd=machine.clone)
        yield filler.unlink
    finally:
        call(["umount", "--lazy", small])


def kill_often(made, drivers, looks, every, patience):
    """Kills one driver every few seconds and starts it again, until all drivers have ended. Returns the number of kills."""
    victim, kills = drivers["killed"], 0
    until, due = time.monotonic() + patience, time.monotonic() + every
    while any(machine.is_alive() for machine in drivers.values()):
        time.sleep(0.05)
        made.expect_no_failure()
        if looks.done():
            looks.result()
        if time.monotonic() > until:
            raise Failed(f"the drivers did not end within {patience} s\n{made.tails()}")
        if time.monotonic() >= due:
            due += every
            kills += victim.restart(whole=random.random() < 0.5)
    made.expect_no_failure()
    return kills


def use(made, submitter, drivers, disk, count):
    """Uses the clone that submitted the run while others drive it, and judges every screen."""
    lacks = set()
    look_until(made, submitter, lacks, lambda entries: sum(done_by(entries).values()) >= count // 3)
    wait_for_shortage(made, submitter, drivers)
    disk()
    cancel(made, submitter)
    look_until(made, submitter, lacks, lambda entries: sum(done_by(entries).values()) >= count * 2 // 3)
    join(made, submitter)
    last = look_until(made, submitter, lacks, lambda entries: entries[-1]["kind"] == "run.sealed")
    if not lacks:
        raise Failed("`status --drivers` never named what a machine lacks")
    answer = json.loads(submitter.handoff("run", RUN, "--json"))
    shares = {share["driver"]: share["items"] for share in answer["drivers"]}
    if not answer["sealed"] or answer["outcome"]["done"] != count or shares != shares_of(last):
        raise Failed(f"`run` of the sealed run answered: {answer}")


def look_until(made, submitter, lacks, condition):
    """Compares `status` with the chain before and after it, until a condition on the entries holds. Returns them.

    Adds to `lacks` what `status --drivers` says that machines lack.
    """
    before = made.entries()
    while True:
        shown = json.loads(submitter.handoff("status", RUN, "--json"))
        after = made.entries()
        expect_true(shown, before, after)
        if condition(after):
            return after
        before = after
        lacks |= look_at_drivers(made, submitter)[0]
        # The drivers share this machine's processors with the trial.
        time.sleep(1)


def expect_true(shown, before, after):
    """Fails if `status` shows anything that the chain did not say when it was read."""
    old, new = phases(before), phases(after)
    wrong = []
    for item in shown["items"]:
        # The chain does not tell when a worker starts.
        name, status = item["id"], "running" if item["status"] == "claimed" else item["status"]
        possible = {phase for phase in (old.get(name), new.get(name))}
        if old.get(name) != new.get(name) or sum(e.get("item") == name for e in after[len(before) :]) > 1:
            # Other phases may lie between.
            continue
        if ("ready" if possible == {None} else possible.pop()) != status:
            wrong.append(f"{name} is shown as {status}")
    done = shown["outcome"]["done"]
    if not sum(done_by(before).values()) <= done <= sum(done_by(after).values()):
        wrong.append(f"{done} items are shown as done")
    is_sealed = [entries[-1]["kind"] == "run.sealed" for entries in (before, after)]
    if not is_sealed[0] <= shown["sealed"] <= is_sealed[1]:
        wrong.append(f"sealed: {shown['sealed']}")
    if not shown["sealed"] and ("failure" in shown["remote"] or shown["remote"]["remote"] != "origin"):
        wrong.append(f"the remote: {shown['remote']}")
    if wrong:
        raise Failed(f"`status` is wrong, between entries {len(before)} and {len(after)}: {'; '.join(wrong)}")


def phases(entries):
    """Returns the phase of each item that an entry is about."""
    found = {}
    for entry in entries:
        if entry["kind"] == "item.fired":
            found[entry["item"]] = "running"
        elif entry["kind"] == "item.reconciled":
            found[entry["item"]] = entry["status"]
        elif "item" in entry:
            found[entry["item"]] = None
    return found


def look_at_drivers(made, submitter):
    """Judges `status --drivers`. Returns what machines lack, and the actors of the drivers that hold items."""
    shown = json.loads(submitter.handoff("status", RUN, "--drivers", "--json"))
    actors = {e["driver"]: e["actor"] for e in made.entries() if e["kind"] == "item.fired"}
    why = {one["why"] for each in shown["drivers"] for one in each.get("declines", ())}
    if shown["remote"] != "origin" or why - {DECLINED}:
        raise Failed(f"`status --drivers` is wrong: {shown}")
    return why, {actors[one["driver"]] for one in shown["drivers"] if one["holds"]}


def wait_for_shortage(made, submitter, drivers):
    """Waits until the driver with the full disk says so and holds nothing."""
    said = lambda: any(line.startswith(SHORT) for line in drivers["full"].log.read_text().splitlines())
    holds = lambda: "agent:full" in look_at_drivers(made, submitter)[1]
    made.wait_for("the driver with the full disk to say so and hold nothing", lambda: said() and not holds(), 30)


def cancel(made, submitter):
    """Cancels another run that a machine of its own drives: its driver ends, and the run is sealed."""
    plan = {"id": OTHER, "items": [{"id": "long", "executor": "command", "inputs": {"command": "sleep 600"}}]}
    (submitter.clone / "other.json").write_text(json.dumps(plan))
    submitter.handoff("submit", "other.json")
    submitter.handoff("push", "origin", OTHER)
    machine = next(one for one in made.machines if one.name == "second")
    machine.start(run=OTHER)
    made.wait_for("an attempt of the other run", lambda: "item.fired" in kinds(made), 30)
    machine.is_ours = True
    submitter.handoff("cancel", OTHER)
    try:
        code = machine.process.wait(30)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"the driver of the cancelled run did not end\n{made.tails()}") from error
    if code != 4 or kinds(made)[-2:] != ["run.cancelled", "run.sealed"]:
        raise Failed(f"`cancel` ended the driver with {code} and the run with {kinds(made)[-2:]}\n{made.tails()}")


def kinds(made):
    return [entry["kind"] for entry in made.entries(OTHER)]


def join(made, submitter):
    """Runs the run in the clone that submitted it: it joins the others, does some work, and hands back what it holds."""
    submitter.start("-j", "1", via=None)
    held = lambda: [e for e in made.entries() if e["kind"] == "item.fired" and e["actor"] == "agent:submitter"]
    made.wait_for("an attempt of the submitter", lambda: held() or not submitter.is_alive(), 30)
    submitter.tell_to_end()
    code = submitter.process.wait(30)
    said = submitter.log.read_text().splitlines()
    if code not in (0, 130) or f"{RUN}: driven through origin, as with --via" not in said:
        raise Failed(f"`run` of the submitter ended with {code}\n{made.tails()}")


def done_by(entries):
    """Counts the items that are done, by the actor that ended each."""
    return collections.Counter(e["actor"] for e in entries if e["kind"] == "item.reconciled" and e["status"] == "done")


def shares_of(entries):
    """Returns how many items each driver ended, by the chain."""
    fired = {e["driver"] for e in entries if e["kind"] == "item.fired"}
    last = {e["item"]: e["driver"] for e in entries if e["kind"] == "item.reconciled"}
    ended = collections.Counter(last.values())
    return {driver: ended[driver] for driver in fired}


def check_end(machine, entries, count):
    """Judges the last line of a driver that says what each did."""
    said = machine.log.read_text().rpartition("--- started at")[2].splitlines()
    found = next(filter(None, map(SHARES.fullmatch, reversed(said))), None)
    if not found:
        raise Failed(f"the driver of {machine.name} did not say at its end what it did: {said[-6:]}")
    here, all_items, elsewhere = int(found.group(1)), int(found.group(2)), found.group(3) or ""
    expected = {driver[:8]: number for driver, number in shares_of(entries).items()}
    others = {driver: int(number) for number, driver in re.findall(r"(\d+) on \S+ \(([0-9a-f]{8})\)", elsewhere)}
    own = sum(number for driver, number in expected.items() if driver not in others)
    if all_items != count or here != own or any(expected.get(driver) != number for driver, number in others.items()):
        raise Failed(f"the driver of {machine.name} said {found.group(0)!r}, but the chain has {expected}")


def check_troubles(made, entries, drivers):
    """Checks that no trouble of a machine became one of the run, and that each driver said its own."""
    wrong = [e for e in entries if e["kind"] == "item.retried" or e.get("status") == "failed"]
    fired = {(e["item"], e["attempt"]): e for e in entries if e["kind"] == "item.fired"}
    robbed = {fired[e["item"], e["attempt"]]["actor"] for e in judge.taken(entries)} - {"agent:killed"}
    special = {e["item"] for e in entries if e["kind"] == "item.fired" and e["actor"] == "agent:lacking"}
    special &= {f"i{number}" for number in range(0, len(fired), 4)}
    said = {role: machine.log.read_text().splitlines() for role, machine in drivers.items()}
    if wrong or robbed or special:
        raise Failed(f"failed: {wrong}; robbed: {robbed}; fired where nothing can run them: {special}\n{made.tails()}")
    if OVER not in said["full"]:
        raise Failed(f"the driver with the full disk did not say that it goes on\n{made.tails()}")
    if not any(line.endswith(f": cannot be run here: {DECLINED}; it is left to other machines") for line in said["lacking"]):
        raise Failed(f"the driver without the executor did not say so\n{made.tails()}")
