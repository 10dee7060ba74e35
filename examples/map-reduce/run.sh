#!/bin/sh
# One item splits the work, each part is done on its own, and one item puts all of it together.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
enter_repository "$here"

show git handoff submit --run plan.json
show git handoff cat map-reduce-1/reduce:outputs/all.txt
show git handoff verify map-reduce-1
