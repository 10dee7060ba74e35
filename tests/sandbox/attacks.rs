//! Everything that a worker was seen to do to those around it: with nothing that confines it each
//! attack works, and each layer takes its part of them away. `docs/reference/sandbox.md` shows the
//! table that this is.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::links;
use super::scene::{Layers, SECRET, Scene, has_bubblewrap, is_ext4, skipped, tree};
use super::stories::STORIES;
use crate::common::part;
use crate::common::repo::{item, items_in};

/// An attack: a shell command that exits with 0 if it worked. `{…}` are placeholders for places
/// outside.
struct Attack {
    name: &'static str,
    /// A description.
    what: &'static str,
    script: &'static str,
    /// Whether Landlock and seccomp stop it without bubblewrap.
    inner: Stopped,
    /// The run that it is tried in.
    run: &'static str,
}

/// The runs, with what `handoff.network` is meanwhile; what deletes refs comes last.
const RUNS: [(&str, &str); 3] = [("any", "any"), ("shut", "none"), ("last", "any")];

/// An agent's files in the home directory.
const AGENT: [(&str, &str); 4] = [
    ("home/.claude/settings.json", "{}"),
    ("home/.claude/.credentials.json", "{}"),
    ("home/.claude/projects/session", "mine"),
    ("home/.claude.json", "{}"),
];

/// Programs in folders that are linked into worktrees.
const LINKED: [&str; 2] = ["node_modules/.bin/tool", ".venv/bin/activate"];

/// Whether something is stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopped {
    Yes,
    No,
    /// Root alone could do it, or could not: it is reported and not required.
    Either,
}
use Stopped::{Either, No, Yes};

const fn attack(name: &'static str, what: &'static str, script: &'static str, inner: Stopped) -> Attack {
    Attack { name, what, script, inner, run: "any" }
}

/// Each of them works where nothing confines the worker.
const ATTACKS: &[Attack] = &[
    attack("read-key", "read the key that signs the evidence", "grep -q PRIVATE {home}/signing_key", Yes),
    attack("read-ssh", "read `~/.ssh`", "cat {home}/.ssh/id_ed25519", Yes),
    attack("read-netrc", "read `~/.netrc`", "cat {home}/.netrc", Yes),
    attack("read-cloud", "read the credentials of a cloud", "cat {home}/.aws/credentials", Yes),
    attack("read-login", "read another agent's login", "cat {home}/.tool/login", Yes),
    attack("read-beside", "read a file beside the repository", "cat {beside}/file", Yes),
    attack(
        "read-environ",
        "read another process's environment",
        "tr '\\0' '\\n' </proc/{victim}/environ | grep -q VICTIM",
        Yes,
    ),
    attack(
        "read-driver",
        "read the driver's environment",
        "for p in /proc/[0-9]*; do [ $p = /proc/$$ ] || tr '\\0' '\\n' <$p/environ 2>/dev/null; done | grep -q ^HANDOFF_CLOCK=",
        Yes,
    ),
    attack("read-memory", "read another process's memory", "head -c 1 /proc/{victim}/maps | grep -q .", Yes),
    attack("read-refs", "read the repository's refs", "cat {repo}/.git/HEAD", Yes),
    attack("read-tree", "read the user's own work tree", "cat {repo}/a.txt", Yes),
    attack(
        "read-shadow",
        "read the machine's passwords, as root",
        "[ $(id -u) != 0 ] || cat /etc/shadow >/dev/null",
        Either,
    ),
    attack(
        "read-disk",
        "read the disk below all files, as root",
        "[ $(id -u) != 0 ] || head -c 1 $(df --output=source / | tail -1) >/dev/null",
        Either,
    ),
    attack(
        "write-config",
        "set hooks in the repository's configuration",
        "git config --file {repo}/.git/config core.fsmonitor true",
        Yes,
    ),
    attack("write-hook", "leave a hook in the repository", "echo >{repo}/.git/hooks/post-commit", Yes),
    attack("write-objects", "write into the object database", "echo >{repo}/.git/objects/planted", Yes),
    attack(
        "damage-objects",
        "damage an object through a hard link",
        "f=$(find {repo}/.git/objects -name '*.pack' | head -1); [ -n \"$f\" ] || f=$(find {repo}/.git/objects -path '*/[0-9a-f][0-9a-f]/*' | head -1); ln $f held && chmod u+w held && touch held",
        Yes,
    ),
    attack(
        "move-main",
        "move a branch",
        "git --git-dir={repo}/.git update-ref refs/heads/moved $(cat {repo}/.git/refs/heads/main)",
        Yes,
    ),
    Attack { run: "last", ..attack("delete-refs", "delete the run's ref", "rm {repo}/.git/refs/handoff/runs/*", Yes) },
    attack(
        "submit",
        "record a run of its own, signed",
        "cd {repo} && echo '{\"id\":\"forged\",\"items\":[{\"id\":\"a\",\"executor\":\"command\",\"inputs\":{\"command\":\"true\"}}]}' >/tmp/forged.{victim} && HOME={home} {bin}/git-handoff submit /tmp/forged.{victim}",
        Yes,
    ),
    attack("write-home", "write the user's `.bashrc`", "echo evil >>{home}/.bashrc", Yes),
    attack(
        "write-gitconfig",
        "write the user's `.gitconfig`",
        "git config --file {home}/.gitconfig core.pager evil",
        Yes,
    ),
    attack(
        "write-agent-hook",
        "leave a hook in the settings of an agent, which runs it at its next start",
        "echo hooks >~/.claude/settings.json && grep -q hooks {home}/.claude/settings.json",
        Yes,
    ),
    attack(
        "write-agent-server",
        "add a server to an agent's settings beside its folder",
        "echo mcpServers >~/.claude.json && grep -q mcpServers {home}/.claude.json",
        Yes,
    ),
    attack(
        "read-agent-sessions",
        "read what an agent was asked before",
        "cat ~/.claude/projects/session || cat {home}/.claude/projects/session",
        Yes,
    ),
    attack("create-beside-login", "create a file beside an agent's login", "echo evil >{home}/.claude/planted", Yes),
    attack("write-shell", "leave a file that a shell runs at its start", "echo evil >>{home}/.zshenv", Yes),
    attack(
        "write-tasks",
        "leave a task that an editor runs",
        "mkdir -p {home}/.config/Code/User && echo evil >{home}/.config/Code/User/tasks.json",
        Yes,
    ),
    attack(
        "write-python",
        "leave a file that Python runs at its start",
        "mkdir -p {home}/.local/lib/python3/site-packages && echo evil >{home}/.local/lib/python3/site-packages/evil.pth",
        Yes,
    ),
    attack(
        "write-linked-bin",
        "change a program of a linked `node_modules`",
        "echo evil >>node_modules/.bin/tool",
        Yes,
    ),
    attack(
        "write-linked-venv",
        "change the scripts of a linked virtual environment",
        "echo evil >>.venv/bin/activate",
        Yes,
    ),
    attack(
        "write-tmp",
        "change a file in `/tmp`",
        "test -e /tmp/victim-{victim} && echo evil >/tmp/victim-{victim}",
        Yes,
    ),
    attack(
        "write-cache",
        "change the user's cache of a tool",
        "cd {home}/.cache/pip && echo evil >cached && ln cached linked && rm cached && mv linked cached && chmod 0400 cached && rm -r wheels",
        Yes,
    ),
    attack(
        "mark-cache",
        "leave marks in a cache by which an overlay shows other files",
        "cd {home}/.cache/pip && python3 -c 'import os; os.mkdir(\"marked\"); os.setxattr(\"marked\", \"user.overlay.redirect\", b\"/\")' && mknod gone c 0 0",
        Yes,
    ),
    attack("write-above", "write beside the worktree", "echo >../planted", Yes),
    attack(
        "write-neighbour",
        "write into another item's worktree",
        "f=$(ls -d {worktrees}/*/*/neighbour.1/tree) && echo evil >$f/evil",
        Yes,
    ),
    attack("read-neighbour", "read another item's worktree", "cat {worktrees}/*/*/neighbour.1/tree/a.txt", Yes),
    attack(
        "write-shared",
        "write into another process's shared memory",
        "test -e /dev/shm/victim-{victim} && echo evil >/dev/shm/victim-{victim}",
        Either,
    ),
    attack("terminal", "write to, and read from, the user's terminal", "echo evil >{terminal}", No),
    attack("change-mode", "change the mode of a file outside", "chmod 0640 {beside}/file", No),
    attack("change-times", "change the times of a file outside", "touch -d 2001-01-01 {beside}/file", No),
    attack(
        "keep-times",
        "change a file so that no time of it changes, on ext4",
        "python3 -c 'import fcntl,os,struct,time\nwas=os.stat(\"a.txt\")\nd=os.open(\"a.txt\", os.O_RDWR)\no=os.open(os.environ[\"TMPDIR\"] + \"/other\", os.O_RDWR | os.O_CREAT)\nos.write(o, b\"x\" * 4096)\nos.fsync(o); os.fsync(d)\nfor i in range(50):\n try: fcntl.ioctl(o, 0xC028660F, struct.pack(\"IIQQQQ\", 0, d, 0, 0, 1, 0)); break\n except BlockingIOError: time.sleep(0.01)\n except OSError as e:\n  if e.errno != 16: raise\n  time.sleep(0.01)\nassert os.stat(\"a.txt\").st_ctime_ns == was.st_ctime_ns'",
        Yes,
    ),
    attack(
        "change-flags",
        "change the flags of a file that may be read",
        "python3 -c 'import fcntl,glob,os,struct; d=os.open(glob.glob(\"{repo}/.git/objects/[0-9a-p][0-9a-p]*/*\")[0], 0); fcntl.ioctl(d, 0x40086602, struct.pack(\"l\", 0x40 | struct.unpack(\"l\", fcntl.ioctl(d, 0x80086601, bytes(8)))[0]))'",
        Yes,
    ),
    attack(
        "change-flags-by-path",
        "change them by the newer call (Linux 6.17), which takes a path",
        "python3 -c 'import ctypes,glob,struct,sys; l=ctypes.CDLL(None); sys.exit(l.syscall(469, -100, glob.glob(\"{repo}/.git/objects/[0-9a-p][0-9a-p]*/*\")[0].encode(), struct.pack(\"QIIII\", 0x80, 0, 0, 0, 0), 24, 0)!=0)'",
        Yes,
    ),
    attack(
        "change-attributes",
        "give a file outside an attribute of its own (`setxattr`)",
        "python3 -c 'import os; os.setxattr(\"{beside}/file\", \"user.planted\", b\"x\")'",
        Yes,
    ),
    attack(
        "lease",
        "keep others from opening a file that may be read",
        "python3 -c 'import fcntl,glob,os; fcntl.fcntl(os.open(glob.glob(\"{repo}/.git/objects/[0-9a-p][0-9a-p]*/*\")[0], 0), 1024, 0)'",
        Yes,
    ),
    attack(
        "secret-memory",
        "take memory that no figure of a process shows",
        "python3 -c 'import ctypes,sys; l=ctypes.CDLL(None,use_errno=True); sys.exit(0 if l.syscall(447,0)>=0 or ctypes.get_errno() not in (1,38) else 1)'",
        Either,
    ),
    attack("kill", "end another process", "kill -0 {victim}", Yes),
    attack("stop", "stop another process", "kill -STOP {victim} && kill -CONT {victim}", Yes),
    attack(
        "kill-driver",
        "signal the driver, two processes up",
        "kill -0 $(awk '/^PPid/ { print $2 }' /proc/$PPID/status)",
        Yes,
    ),
    attack(
        "supervisor",
        "signal what supervises it, by any of its threads",
        "python3 -c 'import glob,os,sys\nwell=1\nfor task in glob.glob(\"/proc/[0-9]*/task/*\"):\n try:\n  if open(task + \"/cmdline\").read().split(chr(0))[1:2] == [\"supervise-attempt\"]: os.kill(int(task.split(\"/\")[-1]), 0); well=0\n except OSError: pass\nsys.exit(well)'",
        Yes,
    ),
    attack(
        "limits",
        "change how much another process may use",
        "python3 -c 'import resource; resource.prlimit({victim}, resource.RLIMIT_CORE, (0, 0))'",
        Yes,
    ),
    attack(
        "limits-by-address",
        "change them by an address whose lower half is empty",
        "python3 -c 'import ctypes,sys; l=ctypes.CDLL(None); v=ctypes.c_void_p; l.mmap.restype=v; l.mmap.argtypes=[v,ctypes.c_size_t]+[ctypes.c_int]*3+[ctypes.c_long]; p=l.mmap(0x200000000,4096,3,0x32,-1,0); assert p==0x200000000; sys.exit(l.prlimit({victim},4,v(p),None)!=0)'",
        Yes,
    ),
    attack(
        "priority",
        "change the priority of another process",
        "python3 -c 'import os; os.setpriority(os.PRIO_PROCESS, {victim}, os.getpriority(os.PRIO_PROCESS, {victim}))'",
        Yes,
    ),
    attack("processors", "keep another process to some processors", "taskset -p 1 {victim}", Yes),
    attack(
        "ptrace",
        "trace another process",
        "python3 -c 'import ctypes,sys; l=ctypes.CDLL(None); sys.exit(0 if l.ptrace(16,{victim},0,0)==0 else 1)'",
        Yes,
    ),
    attack("see-processes", "see other processes", "test -d /proc/{victim}", No),
    attack(
        "abstract-socket",
        "speak to an abstract socket outside",
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"\\0{name}\")'",
        Yes,
    ),
    attack(
        "path-socket",
        "speak to a socket outside by its path",
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{beside}/socket\")'",
        No,
    ),
    attack("user-namespace", "make a user namespace", "unshare --user true", Yes),
    attack("mount", "mount something, as root", "[ $(id -u) != 0 ] || unshare --mount true", Either),
    attack(
        "io-uring",
        "make a queue that no filter sees through",
        "python3 -c 'import ctypes,sys; l=ctypes.CDLL(None,use_errno=True); b=(ctypes.c_char*120)(); sys.exit(0 if l.syscall(425,1,b)>=0 or ctypes.get_errno() not in (1,38) else 1)'",
        Yes,
    ),
    attack(
        "layout",
        "make one's environment look as large as one likes",
        "python3 -c 'import ctypes,sys; l=ctypes.CDLL(None); sys.exit(l.prctl(35,15,ctypes.byref(ctypes.c_uint()),0,0)!=0)'",
        Yes,
    ),
    attack(
        "keyring",
        "read the keys of the user's session",
        "python3 -c 'import ctypes,sys; l=ctypes.CDLL(None,use_errno=True); sys.exit(0 if l.syscall(250,0,-3,1)>=0 or ctypes.get_errno() not in (1,38) else 1)'",
        Yes,
    ),
    attack(
        "bpf",
        "load a program into the kernel",
        "python3 -c 'import ctypes,sys; l=ctypes.CDLL(None,use_errno=True); l.syscall(321,0,0,0); sys.exit(0 if ctypes.get_errno() not in (1,38) else 1)'",
        Either,
    ),
    attack(
        "other-interface",
        "make refused calls by their other numbers",
        "python3 -c 'import ctypes,sys; l=ctypes.CDLL(None,use_errno=True); l.syscall(0x40000000|425,1,0); sys.exit(0 if ctypes.get_errno() not in (1,38) else 1)'",
        Either,
    ),
    attack(
        "segments",
        "take memory that belongs to no process and outlives it (System V)",
        "python3 -c 'import ctypes,sys; l=ctypes.CDLL(None); i=l.shmget(0,1<<20,0o1600); sys.exit(i<0 or l.shmctl(i,0,None))'",
        Yes,
    ),
    attack(
        "semaphores",
        "take the kernel's memory for semaphores by the thousand",
        "python3 -c 'import ctypes,sys; l=ctypes.CDLL(None); i=l.semget(0,1000,0o1600); sys.exit(i<0 or l.semctl(i,0,0,0))'",
        Yes,
    ),
    attack(
        "packets",
        "open a socket of a strange kind",
        "python3 -c 'import socket; socket.socket(38, socket.SOCK_SEQPACKET)'",
        Either,
    ),
    attack("device", "make a device, as root", "[ $(id -u) != 0 ] || mknod device b 254 0", Either),
    attack(
        "kernel-settings",
        "change a setting of the kernel, as root",
        "[ $(id -u) != 0 ] || echo $(cat /proc/sys/kernel/panic) >/proc/sys/kernel/panic",
        Either,
    ),
    attack("inherited", "use a file left open by a parent process", "test -e /proc/$$/fd/9", Yes),
    Attack {
        run: "shut",
        ..attack(
            "tcp",
            "speak over TCP, where there is no network",
            "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {tcp}))'",
            Yes,
        )
    },
    Attack {
        run: "shut",
        ..attack(
            "udp",
            "speak over UDP, where there is no network",
            "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b\"x\", (\"127.0.0.1\", {udp}))'",
            Yes,
        )
    },
];

#[test]
fn each_works_where_nothing_confines_the_worker() {
    let open = open(Layers::None, None);
    let stopped: Vec<_> = ATTACKS
        .iter()
        .filter(|attack| attack.inner != Either && !open.contains(&attack.name) && can_be_tried(attack))
        .map(|a| a.name)
        .collect();
    assert_eq!(stopped, ["inherited"], "these do not work anywhere, and so show nothing");
}

#[test]
fn the_kernel_alone_stops_what_it_can() {
    only_the_named_are_open(Layers::Inner, None);
}

#[test]
fn the_kernel_alone_stops_it_for_another_user() {
    if let Some(user) = other_user("Landlock and seccomp for another user") {
        only_the_named_are_open(Layers::Inner, Some(user));
    }
}

#[test]
fn with_all_layers_none_is_left() {
    if has_bubblewrap("all attacks on all layers") {
        assert_eq!(open(Layers::All, None), Vec::<&str>::new());
    }
}

#[test]
fn with_all_layers_none_is_left_for_another_user() {
    if has_bubblewrap("all attacks on all layers, for another user")
        && let Some(user) = other_user("all attacks on all layers, for another user")
    {
        let open = open(Layers::All, Some(user));
        // Only root may do this.
        let roots: Vec<_> =
            ATTACKS.iter().filter(|a| a.script.starts_with("[ $(id -u) != 0 ]")).map(|a| a.name).collect();
        let left: Vec<_> = open.into_iter().filter(|name| !roots.contains(name)).collect();
        assert_eq!(left, Vec::<&str>::new());
    }
}

#[test]
fn the_document_shows_every_attack() {
    let mut text = String::from("\n| a worker tries to | Landlock and seccomp | with bubblewrap |\n|---|---|---|\n");
    for attack in ATTACKS {
        let inner = match attack.inner {
            Yes => "stopped",
            No => "**open**",
            Either => "stopped where it could be tried",
        };
        writeln!(text, "| {} (`{}`) | {inner} | stopped |", attack.what, attack.name).unwrap();
    }
    for story in STORIES {
        writeln!(text, "| {} (`{}`) | stopped | stopped |", story.what, story.name).unwrap();
    }
    for (name, what) in links::rows() {
        writeln!(text, "| {what} (`{name}`) | stopped | stopped |").unwrap();
    }
    part::check("docs/reference/sandbox.md", "<!-- attacks -->", &format!("{text}\n"));
}

/// Says loudly what this file system does not know.
fn can_be_tried(attack: &Attack) -> bool {
    let is_there = !matches!(attack.name, "keep-times" | "change-flags" | "change-flags-by-path" | "change-attributes")
        || is_ext4(Path::new("/tmp"));
    if !is_there {
        skipped(attack.what, "/tmp lies on another file system");
    }
    let is_known = attack.name != "change-flags-by-path" || is_linux(6, 17);
    if !is_known {
        skipped(attack.what, "Linux is older than 6.17");
    }
    is_there && is_known
}

/// Returns whether the kernel is of this version, or a newer one.
fn is_linux(major: u32, minor: u32) -> bool {
    let system = rustix::system::uname();
    let mut numbers = system.release().to_str().unwrap().split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(major), Some(minor))
}

fn only_the_named_are_open(layers: Layers, user: Option<u32>) {
    let open: Vec<_> = open(layers, user);
    let of = |stopped: Stopped| ATTACKS.iter().filter(move |a| a.inner == stopped).map(|a| a.name).collect::<Vec<_>>();
    let known: Vec<_> = open.into_iter().filter(|name| !of(Either).contains(name)).collect();
    assert_eq!(known, of(No));
}

/// Tries all of them in one run and returns the names of those that worked.
fn open(layers: Layers, user: Option<u32>) -> Vec<&'static str> {
    let scene = Scene::for_user(layers, user);
    let linked = LINKED.map(|path| (format!("repo/{path}"), "mine"));
    let agent = AGENT.map(|(path, text)| (path.to_owned(), text));
    for (path, text) in linked.into_iter().chain(agent) {
        scene.repo.env.write(&path, text);
        if let Some(user) = user {
            let top = scene.repo.path(&path.split('/').take(2).collect::<Vec<_>>().join("/"));
            let owner = format!("{user}:{user}");
            assert!(Command::new("chown").args(["-R", &owner]).arg(top).status().unwrap().success());
        }
    }
    for (key, value) in [("workspace.link", "node_modules"), ("workspace.link", ".venv")] {
        scene.repo.env.git(["config", "--add", &format!("handoff.{key}"), value]).success();
    }
    for path in ["~/.claude", "~/.claude.json"] {
        scene.repo.env.git(["config", "--add", "handoff.executor.command.private", path]).success();
    }
    let shared = format!("/dev/shm/victim-{}", scene.victim());
    let temporary = format!("/tmp/victim-{}", scene.victim());
    for file in [&shared, &temporary] {
        fs::write(file, "mine").unwrap();
        if let Some(user) = user {
            std::os::unix::fs::chown(file, Some(user), Some(user)).unwrap();
        }
    }
    let cached = || tree(&scene.repo.path("home/.cache/pip"));
    let cached_before = cached();
    let place = |name: &str| scene.repo.path(name).to_str().unwrap().to_owned();
    let fill = |script: &str| {
        let mut script = script.to_owned();
        for name in ["home", "beside", "repo", "worktrees", "bin"] {
            script = script.replace(&format!("{{{name}}}"), &place(name));
        }
        script
            .replace("{victim}", &scene.victim().to_string())
            .replace("{terminal}", &scene.terminal())
            .replace("{name}", &scene.abstract_name())
            .replace("{tcp}", &scene.tcp.local_addr().unwrap().port().to_string())
            .replace("{udp}", &scene.udp.local_addr().unwrap().port().to_string())
    };
    let before = scene.repo.env.git(["rev-parse", "main"]).stdout;
    let mut open: Vec<&str> = Vec::new();
    for (run, network) in RUNS {
        // Where nothing enforces it, it is refused, and what it is to stop is tried without it.
        scene.repo.config("handoff.network", if layers == Layers::None { "any" } else { network });
        let mut tried: Vec<&Attack> = ATTACKS.iter().filter(|attack| attack.run == run).collect();
        // As long as the neighbour is there.
        tried.sort_by_key(|attack| !attack.name.ends_with("neighbour"));
        let script = |attack: &Attack| format!("if ( {} ) ; then echo open >outputs/open; fi", fill(attack.script));
        let mut items: Vec<Value> = tried.iter().map(|attack| item(attack.name, &script(attack))).collect();
        // It is there all the while, and sees what is done to it.
        if tried.iter().any(|attack| attack.name.ends_with("neighbour")) {
            items.insert(0, item("neighbour", "sleep 5; test ! -e evil"));
        }
        let output = scene.drive(run, &items);
        assert!(output.status == Some(0) || layers == Layers::None, "{output}");
        // One command for all of them: each reads the whole run.
        let status = scene.handoff(&["status", "--json", run]);
        let is_gone = status.status != Some(0);
        let second_items =
            if is_gone { BTreeMap::new() } else { items_in(&serde_json::from_str(&status.stdout).unwrap()) };
        let works = |attack: &&Attack| {
            run == "last" && is_gone || second_items.get(attack.name).is_some_and(|item| item.outputs.contains("open"))
        };
        open.extend(tried.iter().copied().filter(works).map(|attack| attack.name));
    }
    // Below bubblewrap a worker changes what it has in the place of the cache.
    if cached() == cached_before {
        open.retain(|name| !name.ends_with("-cache"));
    }
    // Unknown from inside.
    if layers != Layers::None {
        assert_eq!(scene.repo.env.git(["rev-parse", "main"]).stdout, before);
        assert!(scene.victim_is_well());
        assert_eq!(fs::read_to_string(scene.repo.path("home/.bashrc")).unwrap(), "# nothing\n");
        assert!(!scene.repo.path("repo/.git/hooks/post-commit").exists());
        for (path, text) in AGENT {
            assert_eq!(fs::read_to_string(scene.repo.path(path)).unwrap(), text, "{path}");
        }
        for path in LINKED {
            assert_eq!(fs::read_to_string(scene.repo.path(&format!("repo/{path}"))).unwrap(), "mine", "{path}");
        }
        scene.repo.passes_fsck();
    }
    if layers == Layers::All {
        assert_eq!(fs::read_to_string(&shared).unwrap(), "mine", "shared memory");
        assert_eq!(fs::read_to_string(&temporary).unwrap(), "mine", "a temporary file");
        assert_eq!(cached(), cached_before, "a cache");
        assert_eq!(scene.tcp.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(scene.udp.recv(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        scene.repo.no_process_is_left();
    }
    fs::remove_file(&shared).unwrap();
    fs::remove_file(&temporary).unwrap();
    let environ = fs::read(format!("/proc/{}/environ", scene.victim())).unwrap();
    assert!(String::from_utf8_lossy(&environ).contains(SECRET));
    open
}

/// Returns a user other than root, to be had by root alone.
fn other_user(what: &str) -> Option<u32> {
    if !rustix::process::geteuid().is_root() {
        skipped(what, "only root can become another user");
        return None;
    }
    Some(65_534)
}
