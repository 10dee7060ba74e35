#!/bin/sh
# One item edits a file, the next applies its patch and builds on it; then anyone can check who made
# what from what.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
enter_repository "$here"

show git handoff submit --run plan.json
show git handoff verify handoff-dag-1

# The repository above is gone in a moment; the program stays.
cat <<END

Next, in a repository of your own: install the program, and let your agent do a first task.

  cargo install --locked --path "$(cd "$here/../.." && pwd)" --profile quick
  git handoff record --agent claude 'TASK'
END
