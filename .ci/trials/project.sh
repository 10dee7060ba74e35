#!/usr/bin/env bash
# Makes the small project that the tools of tools.txt work on: project.sh DIR. It needs the package managers and their
# registries, for the lock files.
set -euo pipefail

more=$(realpath "$(dirname "$0")")/more-project.sh
dir=$1
mkdir -p "$dir"
cd "$dir"
git init -q -b main .
git config user.name Trial
git config user.email trial@localhost

printf 'CC ?= gcc\nall: a.o b.o c.o d.o\n%%.o: %%.c\n\t$(CC) -c $< -o $@\n' >Makefile
for name in a b c d; do echo "int $name(void) { return 1; }" >$name.c; done
printf '#include <stdio.h>\nint main(void)\n{\n\tputs("hello");\n\treturn 0;\n}\n' >m.c
printf '%s\n' '*.o' node_modules/ target/ v/ v2/ v4/ e5/ v6/ .venv/ __pycache__/ '*.egg-info/' >.gitignore

mkdir -p rs/src
cat >rs/Cargo.toml <<'X'
[package]
name = "rs"
version = "0.1.0"
edition = "2021"

[dependencies]
itoa = "1.0.11"
X
cat >rs/src/main.rs <<'X'
fn main() {
    println!("{}", itoa::Buffer::new().format(42));
}

#[test]
fn formats() {
    assert_eq!(itoa::Buffer::new().format(42), "42");
}
X
(cd rs && cargo generate-lockfile -q)

lock() { (cd "$1" && npm install --no-audit --no-fund --package-lock-only --ignore-scripts >/dev/null); }
mkdir js js2 gyp pn ya bu de
cat >js/package.json <<'X'
{"name": "js", "version": "1.0.0", "private": true, "type": "commonjs",
 "dependencies": {"left-pad": "1.3.0"}, "devDependencies": {"vitest": "1.6.0"}}
X
echo 'export const sum = (a: number, b: number): number => a + b;' >js/sum.ts
cat >js/sum.test.ts <<'X'
import { expect, test } from "vitest";
import { sum } from "./sum";
test("sum", () => expect(sum(1, 2)).toBe(3));
X
cat >js/net.js <<'X'
const http = require("http");
const server = http.createServer((_, answer) => answer.end("x")).listen(0, () =>
  http.get({ port: server.address().port }, (answer) => process.exit(answer.statusCode === 200 ? 0 : 1)));
X
echo '{"name": "js2", "version": "1.0.0", "private": true, "devDependencies": {"jest": "29.7.0"}}' >js2/package.json
echo 'test("sum", () => expect(1 + 2).toBe(3));' >js2/sum.test.js
lock js
lock js2

echo '{"name": "gyp", "version": "1.0.0", "private": true, "gypfile": false}' >gyp/package.json
echo '{"targets": [{"target_name": "addon", "sources": ["addon.c"]}]}' >gyp/binding.gyp
cat >gyp/addon.c <<'X'
#include <node_api.h>
static napi_value answer(napi_env env, napi_callback_info info)
{
	napi_value value;
	(void)info;
	napi_create_int32(env, 42, &value);
	return value;
}
static napi_value init(napi_env env, napi_value exports)
{
	napi_value function;
	napi_create_function(env, "answer", NAPI_AUTO_LENGTH, answer, NULL, &function);
	napi_set_named_property(env, exports, "answer", function);
	return exports;
}
NAPI_MODULE(NODE_GYP_MODULE_NAME, init)
X

for tool in pn ya bu; do
	echo "{\"name\": \"$tool\", \"version\": \"1.0.0\", \"private\": true, \"dependencies\": {\"left-pad\": \"1.3.0\"}}" >$tool/package.json
done
# The sample is tried without these three.
if command -v pnpm >/dev/null; then
	(cd pn && pnpm install --silent --lockfile-only)
	(cd ya && yarn install --silent && rm -rf node_modules)
	(cd bu && bun install --silent && rm -rf node_modules)
fi
cat >de/main.js <<'X'
import leftPad from "npm:left-pad@1.3.0";
console.log(leftPad("42", 4, "0"));
X

mkdir -p py pkg/src/pkg po/po wheels
cat >py/mp_t.py <<'X'
import multiprocessing
import unittest


def same(value):
    return value


class Pools(unittest.TestCase):
    def test_every_start_method(self):
        for kind in ("fork", "spawn", "forkserver"):
            with multiprocessing.get_context(kind).Pool(2) as pool:
                self.assertEqual(pool.map(same, [1, 2, 3]), [1, 2, 3])


if __name__ == "__main__":
    unittest.main()
X
echo 'def test_sum(): assert 1 + 2 == 3' >py/test_sum.py
cat >pkg/pyproject.toml <<'X'
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "pkg"
version = "1.0.0"
requires-python = ">=3.9"
dependencies = ["six"]

[tool.setuptools.packages.find]
where = ["src"]

[tool.tox]
legacy_tox_ini = """
[tox]
env_list = py
[testenv]
commands = python -c 'import pkg'
"""
X
touch pkg/src/pkg/__init__.py po/po/__init__.py
cat >po/pyproject.toml <<'X'
[tool.poetry]
name = "po"
version = "1.0.0"
description = "A package"
authors = ["Trial <trial@localhost>"]

[tool.poetry.dependencies]
python = ">=3.9"

[build-system]
requires = ["poetry-core"]
build-backend = "poetry.core.masonry.api"
X
cat >pyproject.toml <<'X'
[tool.setuptools_scm]
X
cat >pc.yaml <<'X'
repos:
  - repo: local
    hooks:
      - id: six
        name: six
        language: python
        entry: python -c 'import six'
        additional_dependencies: [six==1.16.0]
        always_run: true
        pass_filenames: false
X
/usr/bin/python3 -m pip download -q -d wheels pytest pytest-xdist

mkdir java
cat >java/A.java <<'X'
import com.sun.tools.attach.VirtualMachine;
import java.nio.file.Path;

public class A {
    public static void main(String[] args) throws Exception {
        if (args.length == 2) {
            VirtualMachine machine = VirtualMachine.attach(args[1]);
            System.out.println("attached " + machine.id());
            machine.detach();
        } else if (args.length == 1) {
            Thread.sleep(20000);
        } else {
            String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
            String own = Long.toString(ProcessHandle.current().pid());
            System.exit(new ProcessBuilder(java, "-cp", ".", "A", "attach", own).inheritIO().start().waitFor());
        }
    }
}
X

mkdir gr mv go rb co
echo "task hello { doLast { println 'hello' } }" >gr/build.gradle
cat >mv/pom.xml <<'X'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>trial</groupId>
  <artifactId>mv</artifactId>
  <version>1.0</version>
</project>
X
cat >mv/settings.xml <<'X'
<settings>
  <mirrors>
    <mirror><id>debian</id><mirrorOf>*</mirrorOf><url>file:///usr/share/maven-repo</url></mirror>
  </mirrors>
</settings>
X
mkdir -p mv/src/main/java
echo 'public class B {}' >mv/src/main/java/B.java
printf 'module trial/hello\n\ngo 1.19\n' >go/go.mod
printf 'package main\n\nimport "fmt"\n\nfunc sum(a, b int) int { return a + b }\n\nfunc main() { fmt.Println(sum(40, 2)) }\n' >go/main.go
printf 'package main\n\nimport "testing"\n\nfunc TestSum(t *testing.T) {\n\tif sum(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n}\n' >go/main_test.go

mkdir -p rb/tiny/lib co/tiny/src
cat >rb/tiny/tiny.gemspec <<'X'
Gem::Specification.new do |s|
  s.name = "tiny"
  s.version = "1.0.0"
  s.summary = "A gem"
  s.authors = ["Trial"]
  s.files = ["lib/tiny.rb"]
end
X
printf 'module Tiny\n  ANSWER = 42\nend\n' >rb/tiny/lib/tiny.rb
printf 'gem "tiny", path: "tiny"\n' >rb/Gemfile
echo '{"name": "trial/tiny", "version": "1.0.0", "autoload": {"files": ["src/tiny.php"]}}' >co/tiny/composer.json
printf '<?php\nnamespace Tiny;\nfunction answer() { return 42; }\n' >co/tiny/src/tiny.php
cat >co/composer.json <<'X'
{"name": "trial/co", "repositories": [{"type": "path", "url": "tiny"}, {"packagist.org": false}],
 "require": {"trial/tiny": "1.0.0"}}
X

git add -A
git commit -qm 'Start'
git tag -a -m 'One' v1.0
git branch dev
echo '# A project' >README.md
git add README.md
git commit -qm 'Add a page'

"$more" more
git add -A
git commit -qm 'Add the folder of more tools'
for number in 1 2 3 4; do
	echo $number >>more/hist
	git add -A
	git commit -qm "Add the line $number"
done
