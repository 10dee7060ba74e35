#!/bin/sh
# One item edits a file, the next applies its patch and builds on it; then anyone can check who made
# what from what.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
enter_repository "$here"

show git handoff submit --run plan.json
show git handoff verify handoff-dag-1
