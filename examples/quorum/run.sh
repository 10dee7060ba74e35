#!/bin/sh
# Two of three reviewers must approve; the third is outvoted, and the approved change is committed.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
enter_repository "$here"

show git handoff submit --run plan.json
show git handoff status quorum-1
show git handoff verify quorum-1
