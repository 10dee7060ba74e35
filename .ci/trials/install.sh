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
python="uv pytest"
if [ -z "$sample" ]; then
	debian="$debian default-jdk-headless gradle maven maven-debian-helper libsurefire-java junit4 ruby ruby-rspec bundler
		php-cli phpunit composer ccache
		strace gdb valgrind chromium xvfb xauth tmux git-lfs gnupg openssh-client faketime inotify-tools watchman acl attr
		sqlite3 ripgrep lsof psmisc procps iproute2 iputils-ping rsync cron openssl"
	npm="pnpm@9 yarn@1 bun deno @jdxcode/mise-linux-x64 node-gyp@10 jest vitest mocha"
	python="uv pytest poetry tox pipx pre-commit"
fi

command -v npm >/dev/null || debian="$debian nodejs npm"

missing=()
for package in $debian; do
	dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null | grep -q '^installed' || missing+=("$package")
done
if [ "${#missing[@]}" != 0 ]; then
	apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" >"$dir/apt.log" || {
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
