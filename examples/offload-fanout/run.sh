#!/bin/sh
# Three independent edits run side by side, and one item waits for all of them.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
enter_repository "$here"

show git handoff submit --run plan.json
show git handoff verify fanout-1
