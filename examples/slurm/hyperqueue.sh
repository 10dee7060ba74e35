#!/bin/sh
set -eu
place=$(mktemp -d "${TMPDIR:-/tmp}/handoff-XXXXXX")
git clone --quiet --no-checkout "$1" "$place/clone"
cd "$place/clone"
git config handoff.workspace.root "$place/worktrees"
exec git-handoff run "$2" --via origin --jobs "${HQ_CPUS_COUNT:-1}"
