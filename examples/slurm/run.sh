#!/bin/sh
# Two tasks of a Slurm array drive one run, each on a node of its own. Starts a private Slurm with
# two nodes; without Slurm's programs and root's rights, it does nothing.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"

if ! lacks=$(python3 "$here/cluster.py" --check); then
	printf 'SKIPPED: %s\n' "$lacks"
	exit 0
fi
enter_repository "$here"

say "All nodes see one home, with one key and these settings."
export GIT_CONFIG_GLOBAL="$scratch/gitconfig"
ssh-keygen -q -t ed25519 -N '' -C cluster -f "$scratch/key"
show git config --global handoff.signingKey "$scratch/key"
git config --global user.name Example
git config --global user.email example@localhost
git config --global include.path "$PWD/.handoff/config"

say "The run goes to a remote that all nodes reach."
git init --quiet --bare --initial-branch=main "$scratch/hub"
git remote add origin "$scratch/hub"
git push --quiet origin main
show git handoff submit plan.json
show git handoff push origin words

say "Two tasks drive it."
export TMPDIR="$scratch"
show python3 "$here/cluster.py" "$scratch/slurm" \
	sbatch --wait --array=1-2 --output="$scratch/task-%a.log" "$here/drive.sbatch" "$scratch/hub" words
for task in 1 2; do
	printf '\n== what task %s printed\n' "$task"
	cat "$scratch/task-$task.log"
done

say "The chain says which node did what."
show git handoff fetch origin
ends 0 git handoff verify origin/words
git handoff log origin/words --json | python3 -c '
import json, sys
for entry in map(json.loads, sys.stdin):
    if entry["kind"] == "item.fired":
        claims = entry["claims"]
        print(entry["item"], "by", claims["host"], "in job", claims["job"])
'
show git handoff cat origin/words/sum:outputs/words
