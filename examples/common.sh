# shellcheck shell=sh
# Sourced by the run.sh of the examples: finds the program and makes a throw-away repository.

# The features of the program that the example needs. The others take most of the time of a build:
# `mcp`, `anchors` (over HTTP) and `schemas`.
features=cli

# Puts the directory of git-handoff first in PATH, so that git finds it as `git handoff`. Builds
# it, hardly optimised, unless HANDOFF_BIN names it.
find_program() {
	program=${HANDOFF_BIN:-}
	if [ -z "$program" ]; then
		root=$(cd "$examples/.." && pwd)
		(cd "$root" && cargo build --locked --profile quick --no-default-features --features "$features")
		program=${CARGO_TARGET_DIR:-$root/target}/quick/git-handoff
	fi
	PATH=$(cd "$(dirname "$program")" && pwd):$PATH
	export PATH
}

# Creates a repository from the files of one example and enters it. It is removed with the items'
# worktrees when the script ends.
enter_repository() {
	examples=$(dirname "$1")
	find_program
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	trap 'exit 130' HUP INT TERM
	# Ignores the user's settings and an outer repository.
	unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
	export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
	export HANDOFF_ACTOR="${HANDOFF_ACTOR:-human:example}"

	cp -R "$1/repository" "$scratch/repository"
	cd "$scratch/repository"
	mkdir .handoff
	cp "$1/plan.json" .
	cp "$1/handoff.config" .handoff/config
	cp "$examples"/agents/*.sh .handoff
	git init --quiet --initial-branch=main
	git config user.name Example
	git config user.email example@localhost
	git config handoff.workspace.root "$scratch/worktrees"
	# The settings are tracked; a user who trusts them includes them once.
	git config include.path ../.handoff/config
	git add --all
	git commit --quiet --message Start
}

# Shows a command and runs it.
show() {
	printf '\n$ %s\n' "$*"
	"$@"
}

# Shows a command that must end with the given exit code.
ends() {
	wanted=$1
	shift
	code=0
	show "$@" || code=$?
	printf '[exit code %s]\n' "$code"
	test "$code" = "$wanted"
}

# Says what comes next.
say() {
	printf '\n# %s\n' "$*"
}
