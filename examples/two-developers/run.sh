#!/bin/sh
# A day of two developers: agents that work, fail, are flaky and hang, a gate in CI that fails and
# then passes, and the changes applied in the end.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
enter_repository "$here"

git init --quiet --bare --initial-branch=main "$scratch/hub"
git remote add origin "$scratch/hub"
git push --quiet --set-upstream origin main
for who in ben ci; do
	git clone --quiet "$scratch/hub" "$scratch/$who"
	git -C "$scratch/$who" config user.name "$who"
	git -C "$scratch/$who" config user.email "$who@localhost"
done

# The agents are the same everywhere, whatever the machine can confine them with.
git config handoff.sandbox none

say "Ada, in the morning: nothing is here yet."
show git handoff
show git handoff validate plan.json

say "One agent works, one is flaky, one fails and one hangs."
ends 4 git handoff run plan.json
show git handoff show monday/parser
show git handoff cat monday/flaky:transcript@1
ends 0 git handoff

say "She shares it as it is. In CI the gate stays shut."
show git handoff push origin monday
{ printf 'ada '; git handoff key | cut -d ' ' -f 2-; } >"$scratch/signers"
cd "$scratch/ci"
show git handoff fetch origin
ends 3 git handoff verify --signers "$scratch/signers" origin/monday

say "Ada: the check asked for too much, and the reviewer waited for a login."
cd "$scratch/repository"
git config handoff.executor.checker.command "grep -q words parser.txt"
git config handoff.executor.reviewer.command "echo 'reads well'"
show git handoff retry monday/check
show git handoff retry monday/reviewer
ends 0 git handoff run monday
ends 0 git handoff

say "In CI the gate opens, and what it says is what it said of the run before it."
show git handoff push origin monday
cd "$scratch/ci"
show git handoff fetch origin
ends 0 git handoff verify --signers "$scratch/signers" origin/monday
git handoff verify --signers "$scratch/signers" --format snapshot origin/monday >"$scratch/monday"
ends 0 diff "$here/verify.snapshot" "$scratch/monday"

say "Ben takes it: first he looks, then he commits it."
cd "$scratch/ben"
git config gpg.ssh.allowedSignersFile "$scratch/signers"
show git handoff fetch origin
ends 0 git handoff apply --dry-run --commit origin/monday/parser
ends 0 git handoff apply --commit -m "Accept words" origin/monday/parser
show git log -1 --format=%B
ends 0 git handoff whence HEAD

say "In the afternoon Ben has an agent whose check does not pass and whose work is kept all the same."
git config handoff.sandbox none
git config handoff.executor.writer.command "echo 'accepts: everything' >parser.txt"
git config handoff.executor.writer.verify "echo 'FAIL: too much is accepted'; exit 1"
git config handoff.executor.writer.onVerifyFail keep
printf '{"id": "tuesday", "items": [{"id": "parser", "executor": "writer", "inputs": {}}]}' >"$scratch/tuesday.json"
ends 4 git handoff run "$scratch/tuesday.json"
ends 4 git handoff verify tuesday
ends 1 git handoff apply tuesday
show git handoff runs --all
