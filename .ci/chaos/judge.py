"""Compares a work tree with what it was before a command: what a person had, and what the command promises."""

import hashlib
import os
import re
import stat
import subprocess

from states import RESULT

# Files of the git folder that are compared by what they mean: index, refs, HEAD. The program's own are its own.
COMPARED = re.compile(
    rb"(^|/)(index|sharedindex\.[0-9a-f]+|packed-refs)$|^handoff(/|$)|^((worktrees|modules)/[^/]+/)?(logs(/|$)|refs(/|$)|HEAD$)"
)
# Names that a command leaves only by mistake.
LEFT = re.compile(r"(\.lock|/tmp_[^/]*|/incoming-[^/]*|/tmp_objdir[^/]*|/quarantine[^/]*|index-[a-z]+)$")


def git(cwd, env, *words, check=True):
    done = subprocess.run(["git", *words], cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True)
    if check and done.returncode:
        raise RuntimeError(f"git {' '.join(words)} ends with {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def relative(folder, name, root):
    return os.path.relpath(os.path.join(os.fsdecode(folder), os.fsdecode(name)), root)


def files(root, skip=()):
    """Returns {path: (kind, mode, bytes or target, time and inode)} of everything below a folder, empty folders too."""
    found = {}
    for folder, names, others in os.walk(os.fsencode(root)):
        for name in [*names, *others]:
            path = os.path.join(folder, name)
            short = os.fsencode(relative(folder, name, root))
            at = os.lstat(path)
            if os.fsdecode(short) in skip:
                continue
            if stat.S_ISLNK(at.st_mode):
                found[short] = ("link", 0, os.readlink(path), (at.st_mtime_ns, at.st_ino))
            elif stat.S_ISREG(at.st_mode):
                with open(path, "rb") as file:
                    found[short] = ("file", stat.S_IMODE(at.st_mode), file.read(), (at.st_mtime_ns, at.st_ino))
            elif stat.S_ISDIR(at.st_mode):
                found[short] = ("folder", stat.S_IMODE(at.st_mode), b"", None)
            else:
                found[short] = ("special", at.st_mode, b"", (at.st_mtime_ns, at.st_ino))
        names[:] = [name for name in names if relative(folder, name, root) not in skip]
    return found


class Snapshot:
    """Everything of a person: files, index, refs, HEAD, and what else is in the git folder."""

    def __init__(self, tree, out, env):
        self.tree, self.env = tree, env
        self.files = files(tree, skip=(".git",))
        self.outside = files(out)
        self.index = git(tree, env, "ls-files", "-v", "-z", "--stage").split(b"\0")
        self.status = git(tree, env, "status", "--porcelain=v2", "-z", "--branch", "--untracked-files=all", "--ignored=traditional")
        self.refs = dict(
            reversed(line.split(" ", 1))
            for line in git(tree, env, "for-each-ref", "--format=%(objectname) %(refname)").decode().splitlines()
        )
        questions = (("--symbolic-full-name", "HEAD"), ("--verify", "-q", "HEAD"))
        self.head = b"".join(git(tree, env, "rev-parse", *words, check=False) for words in questions)
        self.worktrees = git(tree, env, "worktree", "list", "--porcelain")
        self.git_dir = os.fsdecode(git(tree, env, "rev-parse", "--absolute-git-dir").strip())
        self.common = os.path.join(tree, os.fsdecode(git(tree, env, "rev-parse", "--git-common-dir").strip()))
        whole = files(self.common, skip=("objects", "refs/handoff"))
        self.left = {path for path in files(self.common) if LEFT.search(os.fsdecode(path))}
        self.own = {path: entry[:3] for path, entry in whole.items() if not COMPARED.search(path)}

    def entries(self):
        """Returns the index as {(path, stage): (flag, mode, object)}."""
        found = {}
        for line in filter(None, self.index):
            words, path = line.split(b"\t", 1)
            flag, mode, name, stage = words.split()
            found[(path, stage)] = (flag, mode, name)
        return found


def name_of(data, form):
    """Returns the object name of a blob."""
    return hashlib.new(form, b"blob %d\0" % len(data) + data).hexdigest().encode()


def differences(kind, before, after, only=None):
    """Returns lines about the keys whose values differ."""
    keys = sorted((set(before) | set(after)), key=str)
    changed = [key for key in keys if before.get(key) != after.get(key) and (only is None or only(key))]
    return [f"{kind} {key!r}: was {short(before.get(key))}, is {short(after.get(key))}" for key in changed]


def short(entry):
    return "absent" if entry is None else repr(entry)[:120]


def same_everything(before, after):
    """Returns what differs although the command says that it changed nothing."""
    wrong = differences("file", before.files, after.files) + differences("outside", before.outside, after.outside)
    wrong += differences("index", before.entries(), after.entries()) + differences("ref", before.refs, after.refs)
    wrong += differences("git folder", before.own, after.own)
    wrong += differences("worktrees", {"": before.worktrees}, {"": after.worktrees})
    if before.status != after.status:
        wrong.append(f"git status was {before.status!r}, is {after.status!r}")
    if before.head != after.head:
        wrong.append(f"HEAD was {before.head!r}, is {after.head!r}")
    return wrong


def left_behind(before, after, tmp, cache):
    """Returns what the command should have removed."""
    wrong = [f"left {path!r}" for path in sorted(after.left - before.left)]
    wrong += [f"left in TMPDIR: {name}" for name in os.listdir(tmp)]
    wrong += [f"left in the cache: {path!r}" for path in files(cache) if path.count(b"/") > 2] if cache.exists() else []
    if before.worktrees.count(b"worktree ") != after.worktrees.count(b"worktree "):
        wrong.append(f"worktrees were {before.worktrees!r}, are {after.worktrees!r}")
    return wrong


def in_result(path):
    """Returns True for a path of the run, a folder above it, or a file below it."""
    path = os.fsdecode(path)
    return any(path == one or one.startswith(path + "/") for one in RESULT)


def ours(path):
    return os.fsdecode(path) in RESULT


def kept(before, after, crlf, modes, form, base):
    """Returns what a person had in the run's places and has no longer."""
    wrong = []
    for path in filter(ours, before.files):
        entry, now = before.files[path], after.files.get(path)
        if entry[:3] == (now or ())[:3] or entry[0] == "folder":
            continue
        result = RESULT[os.fsdecode(path)]
        if entry[0] == "file":
            texts = {entry[2], entry[2].replace(b"\r\n", b"\n")} if crlf else {entry[2]}
            mode = b"100755" if entry[1] & 0o100 and modes else b"100644"
            if any((mode, name_of(text, form)) == base.get(path) for text in texts):
                continue
            if result and result[0] in texts:
                continue
        wrong.append(f"lost {path!r}: was {short(entry)}, is {short(now)}")
    return wrong


def fulfilled(before, after, state, crlf, sparse):
    """Returns the places of the run that are not as promised."""
    wrong = []
    for path, result in RESULT.items():
        now = after.files.get(path.encode())
        if sparse(path) and now is None:
            continue
        # A checkpoint without a file leaves a person's own in its place; `kept` compares that.
        restores, is_own = state.command in ("resume", "adopt"), now == before.files.get(path.encode())
        if not result and restores and is_own and state.file != "unchanged":
            continue
        texts = {result[0]} if result else set()
        if result and crlf and state.command.startswith("apply"):
            texts.add(result[0].replace(b"\n", b"\r\n"))
        # A person's own folder may be in the place of a file that is gone.
        good = (now is None or now[0] == "folder") if result is None else now is not None and now[0] == "file" and now[2] in texts
        # Without modes in the configuration, git writes the index alone.
        if good and result and (now[1] & 0o111 != result[1] & 0o111):
            good = state.file == "mode-off"
        if not good:
            wrong.append(f"{path} is not what the run made: {short(now)}")
    return wrong


def unchanged_elsewhere(before, after):
    """Returns what changed outside of the run's places.

    git removes a file that the patterns of a sparse checkout leave out if it is just as the index has it.
    """
    skipped = {path for (path, _), (flag, _, _) in after.entries().items() if flag == b"S"}
    folders = {os.path.dirname(path) for path in skipped}
    omitted = lambda path: path not in after.files and (path in skipped or path in folders)  # noqa: E731
    wrong = differences("file", before.files, after.files, only=lambda path: not in_result(path) and not omitted(path))
    return wrong + differences("outside", before.outside, after.outside)


def index_as_promised(before, after, form):
    """Returns the entries of the index that `apply` should not have changed, or did not."""
    entries = after.entries()
    # git leaves out what the patterns of a sparse checkout leave out, and has its bytes in the index.
    omitted = {key for key, entry in entries.items() if entry[0] == b"S" and entry[1:] == before.entries().get(key, entry)[1:]}
    wrong = differences("index", before.entries(), entries, only=lambda key: not ours(key[0]) and key not in omitted)
    for path, result in RESULT.items():
        entry = entries.get((path.encode(), b"0"))
        want = result and (b"100755" if result[1] & 0o100 else b"100644", name_of(result[0], form))
        if (entry and entry[1:]) != want:
            wrong.append(f"index {path}: is {short(entry)}, the run has {short(want)}")
    return wrong


def beyond(path, before):
    """Returns True if a file or a link is in the place of a folder above the path."""
    above = [path[:at] for at, byte in enumerate(path) if byte == ord("/")]
    return any(before.files.get(folder, ("folder",))[0] != "folder" for folder in above)


def same(one, other, modes):
    """Compares two pairs of mode and object, or the objects alone where the configuration turns modes off."""
    return one == other or (not modes and one and other and one[1] == other[1])


def saved_as_it_was(before, tree, saved, env, form):
    """Returns the files that a checkpoint's tree holds otherwise than they were."""
    wrong, held, entries = [], {}, before.entries()
    modes = git(tree, env, "config", "--default", "true", "--get", "core.fileMode").strip() == b"true"
    for line in filter(None, git(tree, env, "ls-tree", "-r", "-z", saved).split(b"\0")):
        words, path = line.split(b"\t", 1)
        held[path] = (words.split()[0], words.split()[2])
    listed = set(git(tree, env, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split(b"\0"))
    for path in filter(None, listed):
        entry = before.files.get(path)
        want = None
        if entry and entry[0] == "file":
            want = (b"100755" if entry[1] & 0o100 else b"100644", name_of(entry[2], form))
        elif entry and entry[0] == "link":
            want = (b"120000", name_of(entry[2], form))
        elif entry and entry[0] == "folder":
            continue
        elif not entry and not beyond(path, before) and entries.get((path, b"0"), b"-")[0] in (b"S", b"s"):
            # A sparse checkout leaves it out, which is no deletion.
            want = entries[(path, b"0")][1:]
        if not same(held.pop(path, None), want, modes):
            wrong.append(f"the checkpoint does not hold {path!r} as it was")
    wrong += [f"the checkpoint holds {path!r}, which was not there" for path in held if path not in before.files]
    return wrong
