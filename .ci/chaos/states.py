"""The states of a work tree that `files` tries: shell lines that bring a prepared repository into each of them."""

import os
import shutil
import subprocess

# Runs in the work tree's folder. P is the path of the file, D its folder, OUT a folder outside, RESULTS the files of the run.
HEAD = """
set -eu
have() { [ -e "$1" ] || { mkdir -p "$(dirname "$1")"; echo "$1" >"$1"; git add --sparse -f -- "$1"; }; }
mine() { mkdir -p "$D"; echo mine >>"$P"; }
quiet() { "$@" >/dev/null 2>&1 || true; }
exclude() { at=$(git rev-parse --git-path info/exclude); mkdir -p "$(dirname "$at")"; echo "$1" >>"$at"; }
"""

# A copy has other inodes than its index says, which `stale` leaves so.
INDEX = {
    "clean": "",
    "stale": "",
    "staged-change": "have other/side.txt; echo staged >>other/side.txt; git add other/side.txt",
    "staged-deletion": "have other/side.txt; git rm -qf other/side.txt",
    "staged-new": "mkdir -p other; echo one >other/fresh.txt; git add other/fresh.txt; echo two >>other/fresh.txt",
    "intent-to-add": "mkdir -p other; echo mine >other/intended.txt; git add -N other/intended.txt",
    "merge": "quiet git merge -q --no-commit --no-ff clean-side",
    "merge-conflict": "quiet git merge theirs",
    "rebase-conflict": 'quiet git rebase "$(git rev-parse HEAD)" theirs',
    "pick-conflict": "quiet git cherry-pick theirs",
    "revert": "quiet git revert --no-commit HEAD",
    "bisect": "quiet git bisect start",
    "stash": "have other/side.txt; echo stashed >>other/side.txt; git stash -q",
    "skip-worktree": "have other/side.txt; git update-index --skip-worktree other/side.txt; echo mine >>other/side.txt",
    "assume-unchanged": "have other/side.txt; git update-index --assume-unchanged other/side.txt; echo mine >>other/side.txt",
    "sparse": "quiet git sparse-checkout set doc new",
    "sparse-target": "quiet git sparse-checkout set other",
    "sparse-index": "quiet git sparse-checkout set --sparse-index doc new",
    "sparse-patterns": "quiet git sparse-checkout set --no-cone '/*' '!/doc/gone.txt' '!/run.sh'",
    "split-index": "quiet git update-index --split-index; have other/side.txt; git update-index --chmod=+x other/side.txt",
    "untracked-cache": "git config core.untrackedCache true; git update-index --untracked-cache; quiet git status",
    "fsmonitor": 'printf \'#!/bin/sh\\nprintf "t\\\\0/\\\\0"\\n\' >"$OUT/monitor"; chmod +x "$OUT/monitor"; '
    'git config core.fsmonitor "$OUT/monitor"; git update-index --fsmonitor',
    "index-4": "git update-index --index-version 4",
    "index-lock": ': >"$(git rev-parse --git-path index.lock)"',
}

FILE = {
    "unchanged": "",
    "touched": '[ ! -e "$P" ] || touch -d 2001-01-01 "$P"',
    "modified": "mine",
    "same": 'mkdir -p "$D"; rm -f "$P"; [ ! -e "$RESULTS/$P" ] || cp "$RESULTS/$P" "$P"',
    "deleted": 'rm -f "$P"',
    "staged-modified": 'mine; git add --sparse -f "$P"',
    "staged-same": 'mkdir -p "$D"; rm -f "$P"; [ ! -e "$RESULTS/$P" ] || cp "$RESULTS/$P" "$P"; '
    '[ ! -e "$P" ] && quiet git rm -q --sparse --cached "$P" || git add --sparse -f "$P"',
    "staged-then-modified": 'mine; git add --sparse -f "$P"; echo more >>"$P"',
    "staged-untracked": 'quiet git rm -q --sparse --cached "$P"; mine',
    "staged-deleted": 'quiet git rm -qf --sparse "$P"; rm -f "$P"',
    "intended": 'quiet git rm -q --sparse --cached "$P"; mine; git add --sparse -fN "$P"',
    "ignored": 'exclude "/$P"; exclude "*.ign"; mine; echo secret >"$P.ign"',
    "directory": 'rm -f "$P"; mkdir -p "$P"; echo inside >"$P/inside"',
    "empty-directory": 'rm -f "$P"; mkdir -p "$P"',
    "symlink": 'mkdir -p "$D"; ln -sf ../other/side.txt "$P"',
    "dangling-link": 'mkdir -p "$D"; ln -sf nowhere "$P"',
    "link-outside": 'mkdir -p "$D"; echo outside >"$OUT/kept"; ln -sf "$OUT/kept" "$P"',
    "fifo": 'mkdir -p "$D"; rm -f "$P"; mkfifo "$P"',
    "folder-link": 'mkdir -p "$D"; mv "$D" "$OUT/moved"; ln -s "$OUT/moved" "$D"',
    "folder-file": 'rm -rf "$D"; echo mine >"$D"',
    "mode": '[ -e "$P" ] || mine; chmod +x "$P"',
    "mode-off": 'git config core.fileMode false; [ -e "$P" ] || mine; chmod +x "$P"',
    "read-only": 'mine; chmod 444 "$P"',
    "autocrlf": "git config core.autocrlf true",
    "crlf": 'git config core.autocrlf true; [ -e "$P" ] || mine; sed -i "s/$/\\r/" "$P"',
    "crlf-modified": 'git config core.autocrlf input; mine; sed -i "s/$/\\r/" "$P"',
    "name-newline": 'mkdir -p "$D"; echo mine >"$D/"$\'new\\nline\'',
    "name-dash": 'mkdir -p "$D"; echo mine >"$D/-rf"; echo mine >-n',
    "name-bytes": 'mkdir -p "$D"; echo mine >"$D/"$\'\\xff\\xfe\'; git add --sparse "$D/"$\'\\xff\\xfe\'',
    "name-case": 'mkdir -p "$D"; echo mine >"$D/$(basename "$P" | tr a-z A-Z)"',
    "name-long": 'mkdir -p "$D"; echo mine >"$D/$(printf %0250d 0)"',
    "name-magic": 'mkdir -p "$D"; echo mine >"$D/:(top)*"; echo mine >":(exclude)$(basename "$P")"',
    "nested": 'rm -f "$P"; git init -q --object-format="$(git rev-parse --show-object-format)" "$P"; echo x >"$P/file"',
    "nested-beside": 'mkdir -p "$D"; form=$(git rev-parse --show-object-format); git init -q --object-format=$form "$D/own"; '
    'cd "$D/own"; echo x >file; git add file; git commit -qm Own; git init -q --object-format=$form empty',
    "hard-link": 'have "$P"; cp -p "$P" "$OUT/linked"; ln -f "$OUT/linked" "$P"',
    "skip-modified": 'have "$P"; git update-index --skip-worktree "$P"; mine',
    "assume-modified": 'have "$P"; git update-index --assume-unchanged "$P"; mine',
    "lock-beside": 'mkdir -p "$D"; echo mine >"$P.lock"',
    "large": 'mkdir -p "$D"; seq 400000 >"$P.large"',
}

# The file of a state: one that the run changes, adds or deletes, or one that it leaves alone.
PATHS = {"changed": "doc/mod.txt", "added": "doc/new.txt", "gone": "doc/gone.txt", "beside": "other/quiet.txt"}

# Where the work tree is in the folder of a state, and the folder in it where the command is given.
PLACES = {
    "main": ("repo", "."),
    "subdirectory": ("repo", "doc/deep"),
    "linked": ("linked", "."),
    "sha256": ("repo", "."),
    "super": ("repo", "."),
    "in-submodule": ("repo/lib", "."),
    "submodule-changed": ("repo", "."),
    "unborn": ("repo", "."),
    "detached": ("repo", "."),
}

COMMANDS = {
    "apply": ["apply", "r"],
    "apply --commit": ["apply", "--commit", "r"],
    "apply --3way": ["apply", "--commit", "--3way", "r"],
    "resume": ["resume", "--checkout", "t"],
    "adopt": ["adopt", "{}/offer.json", "--as", "u", "--checkout"],
    "checkpoint": ["checkpoint", "w", "--state", "{}/state", "--worktree"],
    "record": ["record", "--as", "w", "--", "sh", "-c", "echo made >made.txt"],
}

# What the run does, and what the thread saved: path and bytes with the mode, or None if it is gone.
RESULT = {
    "doc/mod.txt": ("".join(f"line {at}\n" for at in range(1, 21)).encode() + b"by the run\n", 0o644),
    "doc/new.txt": (b"new by the run\n", 0o644),
    "doc/gone.txt": None,
    "new/dir/file.txt": (b"deep by the run\n", 0o644),
    "run.sh": (b"#!/bin/sh\necho run\n", 0o755),
}

CHANGE = """echo 'by the run' >>doc/mod.txt; echo 'new by the run' >doc/new.txt; rm doc/gone.txt; chmod +x run.sh
mkdir -p new/dir; echo 'deep by the run' >new/dir/file.txt"""

START = """set -eu
mkdir -p doc/deep other sub
for path in doc/keep.txt doc/gone.txt doc/deep/leaf.txt other/side.txt other/quiet.txt other/conflict.txt sub/inner.txt; do
    echo "$path" >$path
done
for at in $(seq 20); do echo "line $at"; done >doc/mod.txt
printf '#!/bin/sh\\necho run\\n' >run.sh
printf '*.ign\\n' >.gitignore
git add -A; git commit -qm Root
git branch clean-side; git branch theirs
git checkout -q theirs; echo theirs >other/conflict.txt; git commit -qam Theirs
git checkout -q clean-side; echo merged >other/merged.txt; git add -A; git commit -qm Aside
git checkout -q main; echo ours >other/conflict.txt; git commit -qam Base
"""


def impossible(index, file, where, place, command):
    """Returns True if the state cannot be, or is another one's twin."""
    path = PATHS[where]
    if place == "unborn":
        commits = ("merge", "merge-conflict", "rebase-conflict", "pick-conflict", "revert", "bisect", "stash")
        if index in (*commits, "sparse", "sparse-target", "sparse-index", "sparse-patterns") or where in ("changed", "gone"):
            return True
    if place == "subdirectory" and (index == "sparse-target" or (file.startswith("folder-") and path.startswith("doc/"))):
        return True
    if file in ("touched", "deleted", "staged-deleted") and where == "added":
        return True
    return place == "unborn" and file in ("touched", "deleted", "staged-deleted", "unchanged") and where == "beside"


# States that put something of the person's into the place of a file of the run, or do so for its whole folder.
HARMLESS = ("unchanged", "touched", "autocrlf", "same", "staged-same", "lock-beside", "large", "hard-link", "nested-beside")


def may_refuse(state, code):
    """Returns True if the state has a reason for this refusal."""
    index, file, where, place, command = state
    applies, restores = command.startswith("apply"), command in ("resume", "adopt")
    in_the_way = where != "beside" and file not in HARMLESS and not file.startswith("name-")
    in_the_way = in_the_way and (file, where) != ("empty-directory", "added")
    # The run's file is there already, with another's bytes.
    in_the_way = in_the_way or (file, where) == ("hard-link", "added")
    unmerged = index in ("merge-conflict", "rebase-conflict", "pick-conflict")
    staged = index in ("staged-change", "staged-deletion", "staged-new", "intent-to-add", "merge", "revert", "split-index")
    staged = staged or file.startswith("staged-") or file in ("intended", "name-bytes")
    return {
        "unborn": place == "unborn" and (applies or command == "record"),
        "locked": index == "index-lock" and applies,
        # The thread of an unborn branch holds every file.
        "local-changes": in_the_way
        or (applies and unmerged)
        or (command == "apply --3way" and staged)
        or (restores and place == "unborn")
        or (restores and index.startswith("sparse") and file.startswith("folder-")),
        # What no checkpoint can hold; the revert of a submodule makes an untracked repository of it.
        "worktree": command == "checkpoint" and (place == "submodule-changed" or file in ("nested", "nested-beside", "fifo") or index == "revert"),
        "checkout": restores and (file == "fifo" or (file == "nested" and where != "added")),
    }.get(code, False)


def git_environment(home, programs, tmp, cache):
    """Returns the environment of every command: nothing of the caller's but PATH."""
    return {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(home),
        "TMPDIR": str(tmp),
        "XDG_CACHE_HOME": str(cache),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_EDITOR": "true",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C.UTF-8",
    }


def shell(script, cwd, env):
    done = subprocess.run(["bash", "-c", script], cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode:
        said = (done.stdout + done.stderr).decode(errors="replace")
        raise RuntimeError(f"cannot prepare {cwd}: {said.strip()}")


def home(folder):
    """Creates the home directory that all states read."""
    folder.mkdir()
    (folder / ".gitconfig").write_text(
        "[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n\ttemplateDir =\n[advice]\n"
        "\tdetachedHead = false\n\tsparseIndexExpanded = false\n[protocol \"file\"]\n\tallow = always\n"
        "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"
    )


def template(place, folder, env):
    """Prepares the repository of a place, with the run `r` and the thread `t`."""
    folder.mkdir()
    (folder / "state").write_text("state\n")
    (folder / "out").mkdir()
    for path, result in RESULT.items():
        (folder / "results" / path).parent.mkdir(parents=True, exist_ok=True)
        if result:
            (folder / "results" / path).write_bytes(result[0])
    form = "sha256" if place == "sha256" else "sha1"
    make = f"git init -q --object-format={form} repo; cd repo; {START}"
    if place in ("super", "submodule-changed"):
        library = f"git init -q {folder}/library; cd {folder}/library; echo lib >lib.txt; git add -A; git commit -qm Lib; "
        make = f"({library}); {make} git submodule --quiet add {folder}/library lib; git commit -qm Sub"
    if place == "in-submodule":
        make = f"(git init -q library; cd library; {START}); git init -q repo; cd repo; git submodule --quiet add ../library lib"
        make = make.replace("../library", str(folder / "library"))
    shell(f"set -eu; {make}", folder, env)
    tree = folder / PLACES[place][0]
    if place == "linked":
        shell("git worktree add -q ../linked -b side", folder / "repo", env)
    if place == "detached":
        shell("git checkout -q --detach", tree, env)
    if place == "in-submodule":
        shell("git branch -q clean-side origin/clean-side; git branch -q theirs origin/theirs", tree, env)
    shell(f'git handoff record --as r -- sh -c "{CHANGE}" 2>&1', tree, env)
    if place == "unborn":
        shell("git symbolic-ref HEAD refs/heads/empty; rm .git/index", tree, env)
    save = f"git handoff checkpoint t --state {folder}/state --worktree; git handoff offer t >{folder}/offer.json"
    shell(f"set -eu; {CHANGE}; {save}", tree, env)
    if place == "unborn":
        shell("rm -r doc other sub new run.sh .gitignore", tree, env)
    else:
        shell("set -eu; git reset -q --hard; git clean -qfdx", tree, env)
    if place == "submodule-changed":
        shell("echo mine >>lib/lib.txt; echo new >lib/new.txt", tree, env)


def copy(made, folder):
    """Copies a template; the two files of a linked work tree hold absolute paths."""
    shutil.copytree(made, folder, symlinks=True)
    if (folder / "linked").exists():
        (folder / "linked/.git").write_text(f"gitdir: {folder}/repo/.git/worktrees/linked\n")
        (folder / "repo/.git/worktrees/linked/gitdir").write_text(f"{folder}/linked/.git\n")


def set_up(state, folder, made, env):
    """Brings the copy into the state."""
    path = PATHS[state.where]
    names = {"P": path, "D": os.path.dirname(path), "OUT": str(folder / "out"), "RESULTS": str(made / "results")}
    fresh = "" if state.index == "stale" else "git update-index -q --refresh || true"
    steps = [fresh, INDEX[state.index], FILE[state.file]]
    if state.index == "index-lock":
        # git itself can stage nothing beside the lock.
        steps[1:] = reversed(steps[1:])
    shell("\n".join((HEAD, *steps)), folder / PLACES[state.place][0], {**env, **names})


# Takes every cause away: operations underway, marks, settings, and files.
MEND = """set -u
git_dir=$(git rev-parse --git-dir)
rm -f "$git_dir/index.lock"
for what in merge rebase cherry-pick revert; do git $what --abort; done
git bisect reset
git sparse-checkout disable
for key in core.autocrlf core.fileMode core.fsmonitor core.untrackedCache; do git config --unset-all $key; done
rm -f "$(git rev-parse --git-path info/exclude)" "$git_dir/index"
find . -mindepth 1 -maxdepth 1 ! -name .git ! -name lib -exec rm -rf {} +
"""


def mend(state, tree, env):
    """Makes the tree clean again, at the commit of the run or of the thread."""
    script = MEND
    if state.place != "unborn":
        script += "git checkout -q --force --detach $BASE\n"
        script += "[ ! -e lib ] || { git -C lib reset -q --hard; git -C lib clean -qffdx; }\n"
    elif state.command.startswith(("apply", "record")):
        script += "git symbolic-ref HEAD refs/heads/main; git reset -q --hard\n"
    subprocess.run(["bash", "-c", script + "true"], cwd=tree, env=env, stdin=subprocess.DEVNULL, capture_output=True)
