#!/usr/bin/env bash
# Installs the tools that `.ci/tools` tries: install.sh [--sample] DIR. Debian's go into the system, npm's and Python's into DIR.
set -euo pipefail

sample=
if [ "$1" = --sample ]; then
	sample=1
	shift
fi
dir=$1
mkdir -p "$dir/bin"

debian="git curl bubblewrap python3-venv python3-pip golang-go postgresql zsh build-essential util-linux"
npm=""
lab=""
python="uv pytest"
if [ -z "$sample" ]; then
	debian="$debian default-jdk-headless gradle maven maven-debian-helper libsurefire-java junit4 ruby ruby-rspec bundler
		php-cli phpunit composer ccache
		strace gdb valgrind chromium xvfb xauth tmux git-lfs gnupg openssh-client faketime inotify-tools watchman acl attr
		sqlite3 ripgrep lsof psmisc procps iproute2 iputils-ping rsync cron openssl
		bazel-bootstrap podman runc docker.io gh screen linux-perf ghc elixir memcached redis-server
		mariadb-server rabbitmq-server etcd-server mosquitto nginx-light rr qemu-user devscripts debhelper fakeroot sccache
		sudo bind9-dnsutils expect at dbus libsecret-tools gnome-keyring squashfuse squashfs-tools fuse3 entr parallel ffmpeg
		imagemagick pandoc graphviz ghostscript octave r-base-core ocaml-dune ocaml-nox mercurial subversion restic age
		vim-tiny clang lld clang-tidy netcat-openbsd locales"
	npm="pnpm@9 yarn@1 bun deno @jdxcode/mise-linux-x64 node-gyp@10 jest vitest mocha vite@5 webpack@5 webpack-cli@5
		webpack-dev-server@5 tsx@4 typescript@5.4 prettier@3 eslint@8 oxlint@0.15 pm2@5 concurrently@8 turbo@2.3
		playwright@1.49 puppeteer-core@23 aws-cdk@2.170 wrangler@3 lerna@8 husky@9
		lint-staged@15"
	python="uv pytest poetry tox pipx pre-commit"
	command -v kubectl >/dev/null || debian="$debian kubernetes-client"
	lab="pdm hatch nox pytest pytest-xdist jupyter-core nbconvert ipykernel gunicorn flask uvicorn watchfiles fastapi django
		celery[redis] distributed keyring testcontainers mkdocs sphinx pyinstaller cython setuptools watchdog ansible-core
		go-task-bin rust-just hishel<2"
fi

command -v npm >/dev/null || debian="$debian nodejs npm"

missing=()
for package in $debian; do
	dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null | grep -q '^installed' || missing+=("$package")
done
if [ "${#missing[@]}" != 0 ]; then
	apt-get update -q
	# Runlevel 1, so that no server of a package starts.
	RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" >"$dir/apt.log" || {
		tail -5 "$dir/apt.log"
		exit 1
	}
fi

if [ -n "$npm" ] && [ "$(cat "$dir/npm/installed" 2>/dev/null)" != "$npm" ]; then
	# Some of them are a script that fetches the program.
	# shellcheck disable=SC2086 # one word a package
	npm install --silent --global --prefix "$dir/npm" --no-audit --no-fund --allow-scripts=bun,deno $npm
	ln -sfn "$dir"/npm/bin/* "$dir/bin/"
	echo "$npm" >"$dir/npm/installed"
fi

for package in $python; do
	if [ ! -d "$dir/py/$package" ]; then
		/usr/bin/python3 -m venv "$dir/py/$package"
		"$dir/py/$package/bin/pip" install -q --disable-pip-version-check "$package" || echo "pip does not install $package"
	fi
	for program in "$package" "${package}x"; do
		[ ! -x "$dir/py/$package/bin/$program" ] || ln -sfn "$dir/py/$package/bin/$program" "$dir/bin/"
	done
done

# One environment for all of these, whose programs do not hide others of their name.
if [ -n "$lab" ] && [ "$(cat "$dir/py/lab/installed" 2>/dev/null)" != "$lab" ]; then
	/usr/bin/python3 -m venv "$dir/py/lab"
	# shellcheck disable=SC2086 # one word a package
	"$dir/py/lab/bin/pip" install -q --disable-pip-version-check $lab
	printf '#!/bin/sh\nexec %s "$@"\n' "$dir/py/lab/bin/python3" >"$dir/bin/lab"
	chmod +x "$dir/bin/lab"
	for program in ansible-playbook hatch just mkdocs nox pdm pyinstaller sphinx-build task; do
		ln -sfn "$dir/py/lab/bin/$program" "$dir/bin/"
	done
	echo "$lab" >"$dir/py/lab/installed"
fi
