#!/bin/sh
# Traces a line back to the item that made it, with proof: through a rebase, a cherry-pick and a
# squash. Finds a commit that was amended later. Needs no network.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
enter_repository "$here"

show git handoff run plan.json
show git handoff apply whence-1 --branch feature

# main moves on, and the branch is rebased onto it.
sed -i '1i // Greets people.' src/main.ts
git commit --quiet --all --message 'Say what this is'
git checkout --quiet feature
show git rebase --quiet main
show git handoff verify --commits main..feature
show git handoff whence feature

# All of it becomes one commit, whose message says nothing of where it comes from.
git checkout --quiet main
git merge --quiet --squash feature >/dev/null
git commit --quiet --message 'Greet with a review'
show git handoff whence src/main.ts:6
show git handoff whence src/main.test.ts:1
if show git handoff whence src/main.ts:1; then
	echo "a person's line was said to be an item's" >&2
	exit 1
fi

# A person adds a line to a commit that says that it is an item's.
git checkout --quiet feature
echo '// and I was never here' >>src/main.test.ts
git commit --quiet --all --amend --no-edit
if show git handoff verify --commits main~1..feature; then
	echo "a commit that was changed passed" >&2
	exit 1
fi
