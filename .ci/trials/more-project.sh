#!/usr/bin/env bash
# Makes the files that the tools of more-tools.txt work on: more-project.sh DIR, a folder in the project of project.sh.
set -euo pipefail

mkdir -p "$1"
cd "$1"
mkdir -p pnpm/packages/{a,b} yarn/packages/a bun vite webpack/src js own turbo/p/q py hatch/hp c bazel java deb/debian/source \
	go rs/{a,b}/src ansible terraform doc mkdocs/docs sphinx dune
printf "%s\n" dist/ _b/ _build/ build/ >.gitignore

cat >with-server <<'X'
#!/bin/sh
# with-server SERVER CLIENT: tries the client for at most half a minute until it works while the server runs.
sh -c "exec $1" &
server=$!
result=1
for _ in $(seq 60); do
	sleep 0.5
	kill -0 $server 2>/dev/null || break
	if sh -c "$2"; then
		result=0
		break
	fi
done
kill $server 2>/dev/null
wait $server
exit $result
X
chmod +x with-server

echo '{"name": "pnpm", "private": true}' >pnpm/package.json
printf 'packages:\n  - "packages/*"\n' >pnpm/pnpm-workspace.yaml
cat >pnpm/packages/a/package.json <<'X'
{"name": "a", "version": "1.0.0", "dependencies": {"left-pad": "1.3.0"},
 "scripts": {"check": "node -e 'require(\"left-pad\")'"}}
X
cat >pnpm/packages/b/package.json <<'X'
{"name": "b", "version": "1.0.0", "dependencies": {"a": "workspace:*"}, "scripts": {"check": "node -p 1"}}
X
echo '{"name": "yarn", "private": true, "workspaces": ["packages/*"]}' >yarn/package.json
cp pnpm/packages/a/package.json yarn/packages/a/
echo '{"name": "bun", "dependencies": {"left-pad": "1.3.0"}}' >bun/package.json
printf 'import { expect, test } from "bun:test";\ntest("one", () => expect(1).toBe(1));\n' >bun/one.test.js
echo '{"name": "vite", "type": "module"}' >vite/package.json
echo '<script type="module" src="/main.js"></script>' >vite/index.html
echo 'console.log(1);' | tee vite/main.js >webpack/src/index.js
echo '{"name": "webpack"}' >webpack/package.json
echo 'module.exports = { mode: "development", devServer: { host: "127.0.0.1", port: 38911 } };' >webpack/webpack.config.js

echo '{"name": "js", "version": "1.0.0", "scripts": {"x": "node -p 1"}}' >js/package.json
echo 'test("a", () => {});' >js/a.test.js
echo 'describe("a", () => it("b", () => {}));' >js/mocha.js
echo 'import test from "node:test"; test("x", () => {});' >js/own.test.mjs
echo 'const a: number = 1; console.log(a);' >js/t.ts
echo 'const   a=1;' >js/ugly.js
echo 'module.exports = [{ rules: { semi: "error" } }];' >js/eslint.config.js
cat >js/cluster.js <<'X'
const cluster = require("cluster");
if (cluster.isPrimary) {
  cluster.fork();
  cluster.on("exit", (_, code) => process.exit(code));
} else {
  require("net").createServer().listen(0, "127.0.0.1", () => process.exit(0));
}
X
cat >js/playwright.js <<'X'
const { chromium } = require("playwright");
(async () => {
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium" });
  const page = await browser.newPage();
  await page.setContent("<h1>hi</h1>");
  if ((await page.textContent("h1")) !== "hi") process.exit(1);
  await page.screenshot({ path: "s.png" });
  await browser.close();
})().catch((error) => { console.error(error); process.exit(1); });
X
cat >js/puppeteer.js <<'X'
const puppeteer = require("puppeteer-core");
(async () => {
  const browser = await puppeteer.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  const page = await browser.newPage();
  await page.setContent("<title>hi</title>");
  if ((await page.title()) !== "hi") process.exit(1);
  await browser.close();
})().catch((error) => { console.error(error); process.exit(1); });
X
echo '{"name": "own", "version": "1.0.0", "bin": {"hello-own": "hello.js"}, "files": ["*.js"]}' >own/package.json
printf '#!/usr/bin/env node\nrequire("./part.js");\n' >own/hello.js
echo 'console.log("own");' >own/part.js
chmod +x own/hello.js

cat >turbo/package.json <<'X'
{"name": "turbo", "private": true, "packageManager": "npm@10.0.0", "workspaces": ["p/*"]}
X
echo '{"name": "q", "version": "1.0.0", "scripts": {"build": "echo built >out.txt"}}' >turbo/p/q/package.json
echo '{"tasks": {"build": {"outputs": ["out.txt"]}}}' >turbo/turbo.json
cat >turbo/package-lock.json <<'X'
{"name": "turbo", "lockfileVersion": 3, "requires": true, "packages": {
  "": {"name": "turbo", "workspaces": ["p/*"]},
  "node_modules/q": {"resolved": "p/q", "link": true}, "p/q": {"version": "1.0.0"}}}
X

cat >py/fl.py <<'X'
from flask import Flask

app = Flask(__name__)


@app.get("/")
def root():
    return "flaskok"
X
cat >py/fa.py <<'X'
from fastapi import FastAPI

app = FastAPI()


@app.get("/")
def root():
    return "fastok"
X
cat >py/ce.py <<'X'
from celery import Celery

app = Celery("ce", broker="redis://127.0.0.1:38912/0", backend="redis://127.0.0.1:38912/0")


@app.task
def add(a, b):
    return a + b
X
echo 'x: int = 1' >py/good.py
printf 'def test_a(tmp_path):\n    (tmp_path / "x").write_text("1")\n' >py/test_a.py
cat >py/dk.py <<'X'
from dask.distributed import Client

if __name__ == "__main__":
    client = Client(n_workers=1, threads_per_worker=1, dashboard_address=None)
    assert client.submit(lambda x: x + 1, 1).result() == 2
    client.close()
X
cat >py/nb.ipynb <<'X'
{"cells": [{"cell_type": "code", "execution_count": null, "id": "a", "metadata": {}, "outputs": [], "source": ["print(6*7)"]}],
 "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
 "nbformat": 4, "nbformat_minor": 5}
X
cat >py/tc.py <<'X'
from testcontainers.core.container import DockerContainer

with DockerContainer("redis:7") as container:
    print(container)
X
cat >py/wd.py <<'X'
import os
import time

from watchdog.events import FileSystemEventHandler
from watchdog.observers import Observer


class Handler(FileSystemEventHandler):
    def on_any_event(self, event):
        os._exit(0)


observer = Observer()
observer.schedule(Handler(), ".", recursive=True)
observer.start()
time.sleep(0.5)
open("made", "w").close()
time.sleep(4)
os._exit(1)
X
cat >py/call.py <<'X'
"""Makes a system call with a number and a zeroed structure: call.py NAME NUMBER FIRST."""
import ctypes
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
name, number, first = sys.argv[1:]
if libc.syscall(int(number), int(first), ctypes.create_string_buffer(256)) < 0:
    sys.exit(f"{name}: {os.strerror(ctypes.get_errno())}")
X
cat >py/shm.py <<'X'
import mmap
import os
from multiprocessing import Semaphore, shared_memory

if __name__ == "__main__":
    memory = shared_memory.SharedMemory(create=True, size=64 << 20)
    memory.buf[0] = 1
    memory.close()
    memory.unlink()
    Semaphore(1).acquire()
    handle = os.memfd_create("x")
    os.ftruncate(handle, 1 << 20)
    mmap.mmap(handle, 1 << 20)[0]
X
cat >py/setup_cy.py <<'X'
from Cython.Build import cythonize
from setuptools import setup

setup(name="cyx", ext_modules=cythonize("cyx.pyx"))
X
printf 'def f(int x):\n    return x * 2\n' >py/cyx.pyx
cat >hatch/pyproject.toml <<'X'
[project]
name = "hp"
version = "0.1"
requires-python = ">=3.9"
dependencies = ["six==1.16.0"]

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build.targets.wheel]
packages = ["hp"]
X
touch hatch/hp/__init__.py
cat >hatch/noxfile.py <<'X'
import nox


@nox.session(python=False)
def one(session):
    session.run("python3", "-c", "print(1)")
X

echo 'int main(void) { return 0; }' >c/m.c
touch bazel/WORKSPACE
echo 'genrule(name = "g", outs = ["o"], cmd = "echo hi >$@")' >bazel/BUILD
cat >java/S.java <<'X'
import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;

public class S {
    public static void main(String[] args) {
        OperatingSystemMXBean bean = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        bean.getCpuLoad();
        if (bean.getTotalMemorySize() <= 0 || bean.getAvailableProcessors() <= 0) {
            System.exit(1);
        }
    }
}
X
cat >deb/debian/changelog <<'X'
hx (1.0) unstable; urgency=low

  * Start

 -- Trial <trial@localhost>  Thu, 01 Jan 2026 00:00:00 +0000
X
cat >deb/debian/control <<'X'
Source: hx
Maintainer: Trial <trial@localhost>
Build-Depends: debhelper-compat (= 13)
Standards-Version: 4.6.0

Package: hx
Architecture: all
Description: a package
 It is empty.
X
printf '#!/usr/bin/make -f\n%%:\n\tdh $@\n' >deb/debian/rules
chmod +x deb/debian/rules
echo '3.0 (native)' >deb/debian/source/format

printf 'module example.com/x\n\ngo 1.19\n' >go/go.mod
printf 'package main\n\nfunc main() { println("ok") }\n' >go/main.go
cat >go/main_test.go <<'X'
package main

import "testing"

func TestX(t *testing.T) {}

func FuzzX(f *testing.F) { f.Fuzz(func(t *testing.T, b []byte) {}) }
X
printf '[workspace]\nmembers = ["a", "b"]\nresolver = "2"\n' >rs/Cargo.toml
for name in a b; do
	printf '[package]\nname = "%s"\nversion = "0.1.0"\nedition = "2021"\n' $name >rs/$name/Cargo.toml
	printf '#[test]\nfn runs() {}\n' >rs/$name/src/lib.rs
done
cat >ansible/p.yml <<'X'
- hosts: localhost
  connection: local
  gather_facts: true
  tasks:
    - copy: {content: "x", dest: "{{ playbook_dir }}/made"}
    - command: id
X
cat >terraform/main.tf <<'X'
terraform {}
resource "terraform_data" "x" { input = "1" }
output "o" { value = terraform_data.x.output }
X

printf '# Title\n\ntext\n' | tee doc/d.md >mkdocs/docs/index.md
echo 'site_name: x' >mkdocs/mkdocs.yml
echo 'project = "x"' >sphinx/conf.py
printf 'x\n=\n' >sphinx/index.rst
echo '(lang dune 2.0)' >dune/dune-project
echo '(executable (name m))' >dune/dune
echo 'let () = print_endline "ok"' >dune/m.ml
echo 'main = putStrLn "ok"' >m.hs
echo 'IO.puts(1 + 1)' >m.exs
printf '#!/usr/bin/expect -f\nspawn cat\nsend "hi\\r"\nexpect "hi"\n' >expect.exp
