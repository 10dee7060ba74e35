//! Programs that people use must work inside: each is run for real, on all layers and on the
//! kernel's alone.

use std::process::Command;

use serde_json::Value;

use super::scene::{Layers, Scene, has_bubblewrap, skipped};
use crate::common::repo::item;

/// A program that must be there, and what is done with it.
const PROGRAMS: &[(&str, &str, &str)] = &[
    (
        "git",
        "git-commit",
        "echo x >>a.txt && git add a.txt && git commit -qm one && git log --oneline | grep -q one && git branch b && git checkout -q b",
    ),
    ("git", "git-stash", "echo x >>a.txt && git stash -q && git stash pop -q && git diff --quiet; test $? = 1"),
    (
        "git",
        "git-rebase",
        "git checkout -qb one && echo 1 >one && git add one && git commit -qm one && git checkout -q --detach HEAD~1 && echo 2 >two && git add two && git commit -qm two && git rebase -q one && test -e one && test -e two",
    ),
    (
        "git",
        "git-apply",
        "echo x >>a.txt && git diff >p && git checkout -q a.txt && git apply --index p && git diff --cached --quiet; test $? = 1",
    ),
    (
        "git",
        "git-elsewhere",
        "cd $TMPDIR && git init -q other && cd other && git commit -q --allow-empty -m first && git clone -q . ../third && git -C ../third log -1 --format=%an | grep -q Ada",
    ),
    (
        "python3",
        "rename",
        "python3 -c 'import os\nfor top in (\".\", os.environ[\"TMPDIR\"]):\n os.chdir(top); os.makedirs(\"p/d\"); os.mkdir(\"q\"); open(\"p/f\", \"w\").close(); os.rename(\"p/f\", \"q/f\"); os.rename(\"p/d\", \"q/d\"); os.link(\"q/f\", \"p/g\")'",
    ),
    ("make", "make", "printf 'all: a b c d\\n%%:\\n\\techo $@ >$@\\n' >Makefile && make -j4 && test -e d"),
    (
        "tar",
        "attributes",
        "python3 -c 'import tarfile, io\nwith tarfile.open(\"x.tar\", \"w\", format=tarfile.PAX_FORMAT) as t:\n i = tarfile.TarInfo(\"f\"); i.size = 2; i.pax_headers = {\"SCHILY.xattr.user.x\": \"y\", \"SCHILY.acl.access\": \"user::rw-,user:1:r--,group::r--,mask::r--,other::r--\"}; t.addfile(i, io.BytesIO(b\"x\\n\"))' && tar --xattrs --acls -xf x.tar && cp -a f g && python3 -c 'import shutil; shutil.copy2(\"g\", \"h\")' && install -m 0755 h i && mv i $TMPDIR/i && grep -q x $TMPDIR/i",
    ),
    ("gcc", "gcc", "echo 'int main(void){return 0;}' >x.c && gcc -pipe -o x x.c && ./x"),
    (
        "ssh-keygen",
        "ssh-keygen",
        "ssh-keygen -q -t ed25519 -N '' -f $TMPDIR/key && echo x >f && ssh-keygen -q -Y sign -f $TMPDIR/key -n git f && test -s f.sig",
    ),
    ("sqlite3", "sqlite", "sqlite3 x.db 'create table t(a); insert into t values(1); select a from t;' | grep -q 1"),
    (
        "python3",
        "asyncio",
        "python3 -c 'import asyncio\nasync def main():\n p = await asyncio.create_subprocess_exec(\"echo\", \"hi\", stdout=asyncio.subprocess.PIPE)\n out, _ = await p.communicate()\n s = await asyncio.start_unix_server(lambda r, w: w.close(), path=__import__(\"os\").environ[\"TMPDIR\"] + \"/s\")\n r, w = await asyncio.open_unix_connection(__import__(\"os\").environ[\"TMPDIR\"] + \"/s\")\n assert out == b\"hi\\n\" and await r.read() == b\"\"\nasyncio.run(main())'",
    ),
    (
        "python3",
        "multiprocessing",
        "cat >m.py <<'END'\nimport multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n    for how in ('fork', 'spawn', 'forkserver'):\n        c = m.get_context(how)\n        with c.Pool(2) as p: assert p.map(f, [1, 2, 3]) == [1, 4, 9]\n        with c.Manager() as g: g.list([1])\n        q = c.Queue(); q.put(1); assert q.get() == 1\nEND\npython3 m.py",
    ),
    (
        "python3",
        "venv-and-pip",
        "python3 -m venv $TMPDIR/v && mkdir -p $TMPDIR/index/thing && mkdir -p pkg/thing && echo 'x = 1' >pkg/thing/__init__.py && $TMPDIR/v/bin/python - <<'END'\nimport zipfile, os\nt = os.environ['TMPDIR'] + '/index/thing/thing-1-py3-none-any.whl'\nwith zipfile.ZipFile(t, 'w') as z:\n    z.write('pkg/thing/__init__.py', 'thing/__init__.py')\n    z.writestr('thing-1.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: thing\\nVersion: 1\\n')\n    z.writestr('thing-1.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n    z.writestr('thing-1.dist-info/RECORD', '')\nEND\n$TMPDIR/v/bin/pip install -q --no-index --find-links $TMPDIR/index/thing --disable-pip-version-check thing && $TMPDIR/v/bin/python -c 'import thing'",
    ),
    (
        "python3",
        "server-on-loopback",
        "python3 -c 'import http.server, threading, urllib.request\ns = http.server.HTTPServer((\"127.0.0.1\", 0), http.server.SimpleHTTPRequestHandler)\nthreading.Thread(target=s.serve_forever, daemon=True).start()\nassert urllib.request.urlopen(\"http://127.0.0.1:%d/a.txt\" % s.server_port).read()'",
    ),
    (
        "python3",
        "terminal",
        "python3 -c 'import pty, os\nassert pty.spawn([\"sh\", \"-c\", \"test -t 0 && tty && stty size\"]) == 0'",
    ),
    (
        "node",
        "node",
        "node -e 'const {spawnSync, fork} = require(\"child_process\"); const net = require(\"net\"); const p = process.env.TMPDIR + \"/n\"; if (spawnSync(\"echo\", [\"hi\"]).stdout.toString() !== \"hi\\n\") process.exit(1); const s = net.createServer(c => c.end(\"x\")).listen(p, () => net.connect(p).on(\"data\", () => s.close(() => process.exit(0))))'",
    ),
    (
        "npm",
        "npm-ci",
        "mkdir -p dep && echo '{\"name\":\"dep\",\"version\":\"1.0.0\"}' >dep/package.json && echo '{\"name\":\"top\",\"version\":\"1.0.0\",\"dependencies\":{\"dep\":\"file:dep\"}}' >package.json && npm install --offline --no-audit --no-fund --package-lock-only >/dev/null && npm ci --offline --no-audit --no-fund && test -e node_modules/dep/package.json",
    ),
    ("java", "java", "java -XX:+UseSerialGC -version"),
    ("java", "java-and-control-groups", "java -XX:+UseSerialGC -XshowSettings:system -version"),
    (
        "sh",
        "agent",
        "out=$(mktemp) && mkfifo $TMPDIR/p && (cat $HANDOFF_TASK >$TMPDIR/p &) && cat $TMPDIR/p >$out && test -s $out && (sleep 0.1 & wait) && echo '{\"verify\":{\"passed\":true}}' >$HANDOFF_RESULT.new && mv $HANDOFF_RESULT.new $HANDOFF_RESULT",
    ),
    ("bwrap", "nested-sandbox", "bwrap --ro-bind / / true 2>said || test -s said"),
    (
        "df",
        "look-around",
        "ls /usr >/dev/null && df . >/dev/null && ps >/dev/null && nproc >/dev/null && cat /proc/self/status /proc/meminfo /etc/passwd >/dev/null && getent hosts localhost >/dev/null && echo x >/dev/null && echo x >/dev/stdout && cat /dev/null && date >/dev/null",
    ),
];

#[test]
fn they_work_on_all_layers() {
    if has_bubblewrap("programs on all layers") {
        work(Layers::All, None);
    }
}

#[test]
fn they_work_on_the_kernels_layers() {
    work(Layers::Inner, None);
}

#[test]
fn they_work_for_another_user() {
    if !rustix::process::geteuid().is_root() {
        skipped("programs for another user", "only root can become another user");
    } else if has_bubblewrap("programs for another user") {
        work(Layers::All, Some(65_534));
    }
}

#[test]
fn cargo_builds_and_tests() {
    let rustc = Command::new("rustc").args(["--print", "sysroot"]).output();
    let Ok(sysroot) = rustc.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()) else {
        skipped("cargo", "rustc says nothing of where it lies");
        return;
    };
    for layers in [Layers::Inner, Layers::All] {
        let scene = Scene::new(layers);
        // A variable names the toolchain if it is elsewhere.
        scene.repo.config(
            "handoff.subagent.cargo.command",
            "PATH=$TOOLCHAIN/bin:$PATH; cargo init -q --name x --vcs none c && cd c && cargo test -q --offline",
        );
        scene.repo.config("handoff.subagent.cargo.env", &format!("TOOLCHAIN={sysroot}"));
        scene.repo.config("handoff.subagent.cargo.readable", &sysroot);
        let item = serde_json::json!({ "id": "a", "executor": "dispatch", "inputs": { "subagent": "cargo" }, "maxAttempts": 1 });
        let output = scene.drive("cargo", &[item]);
        let transcript = scene.handoff(&["cat", "cargo/a:transcript"]).stdout;
        assert_eq!(output.status, Some(0), "{layers:?}: {output}{transcript}");
    }
}

fn work(layers: Layers, user: Option<u32>) {
    let scene = Scene::for_user(layers, user);
    let is_there = |program: &str| {
        let found = ["/usr/local/bin", "/usr/bin", "/bin"]
            .iter()
            .any(|folder| std::path::Path::new(folder).join(program).exists());
        if !found {
            skipped(program, "it is not installed");
        }
        found
    };
    let tried: Vec<_> = PROGRAMS.iter().filter(|(program, ..)| is_there(program)).collect();
    let items: Vec<Value> = tried.iter().map(|(_, name, script)| item(name, script)).collect();
    let output = scene.drive("programs", &items);
    let mut failed = Vec::new();
    for (_, name, _) in tried {
        if scene.repo.item("programs", name).status != "done" {
            let transcript = scene.handoff(&["cat", &format!("programs/{name}:transcript")]).stdout;
            failed.push(format!("{name}:\n{transcript}"));
        }
    }
    assert!(failed.is_empty(), "{layers:?}, {user:?}: {output}\n{}", failed.join("\n"));
}
