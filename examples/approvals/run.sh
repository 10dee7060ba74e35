#!/bin/sh
# Two people approve a change, each in a clone of a bare remote. The run's driver records their
# decisions and cannot make any.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
enter_repository "$here"

git init --quiet --bare --initial-branch=main "$scratch/hub"
git remote add origin "$scratch/hub"
git push --quiet --set-upstream origin main
for who in bob carol; do
	ssh-keygen -q -t ed25519 -N '' -C "$who" -f "$scratch/$who"
	git clone --quiet "$scratch/hub" "$scratch/clone-$who"
	git -C "$scratch/clone-$who" config handoff.signingKey "$scratch/$who"
	git -C "$scratch/clone-$who" config user.name "$who"
	git -C "$scratch/clone-$who" config user.email "$who@localhost"
done

show git handoff submit plan.json --admit "$scratch/bob.pub=approve" --admit "$scratch/carol.pub=approve"
# Nothing is left to do but to decide: exit 4.
show git handoff run approvals-1 || test $? = 4
show git handoff push origin approvals-1

cd "$scratch/clone-bob"
show git handoff fetch
show git handoff waiting
show git handoff approve "origin/approvals-1/change::rev-0" -m "agreed with the shops"
# One key is one vote.
if show git handoff approve "origin/approvals-1/change::rev-1"; then exit 1; fi
show git handoff push --all

cd "$scratch/clone-carol"
show git handoff fetch
show git handoff approve "origin/approvals-1/change::rev-1"
show git handoff push --all

cd "$scratch/repository"
show git handoff fetch
show git handoff run approvals-1
show git handoff cat approvals-1/change::commit:outputs/prices.txt
# Whose keys those are is for this repository to say.
{
	git handoff key
	printf 'bob %s\n' "$(cat "$scratch/bob.pub")"
	printf 'carol %s\n' "$(cat "$scratch/carol.pub")"
} >"$scratch/signers"
git config gpg.ssh.allowedSignersFile "$scratch/signers"
show git handoff verify approvals-1
