#!/bin/sh
# A gate sends work back until it is good. The newest fix is applied, and verify accounts for every
# added item.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
enter_repository "$here"

show git handoff validate plan.json
show git handoff submit --run plan.json
show git handoff cat gate-1/ship~2:outputs/shipped.txt
show git handoff verify gate-1
