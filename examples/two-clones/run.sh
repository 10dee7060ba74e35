#!/bin/sh
# A week of Ada and Ben, each with a clone of a bare repository, and of Carol, who only reads.
# They follow docs/reference/sharing.md, docs/reference/roles.md and docs/how-to/rotate-a-key.md.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
enter_repository "$here"
mv "$scratch/repository" "$scratch/ada"

# Begins a day: its commands run at the given date, so that screens are reproducible.
day() {
	printf '\n\n## %s\n' "$1"
	export HANDOFF_CLOCK="$2T09:00:00.000Z" GIT_AUTHOR_DATE="$2T09:00:00Z" GIT_COMMITTER_DATE="$2T09:00:00Z"
}

# Goes to the clone of the given person.
at() {
	cd "$scratch/$1"
	export HANDOFF_ACTOR="human:$1"
}

# Creates a key with the given name and its allowed-signers line. EXAMPLE_KEYS names a folder of
# existing keys.
key() {
	if [ -n "${EXAMPLE_KEYS:-}" ]; then
		cp "$EXAMPLE_KEYS/$2" "$scratch/keys/$2"
		chmod 600 "$scratch/keys/$2"
	else
		ssh-keygen -q -t ed25519 -N '' -C "$2" -f "$scratch/keys/$2"
	fi
	git -C "$scratch/$1" config handoff.signingKey "$scratch/keys/$2"
	git -C "$scratch/$1" handoff key >"$scratch/keys/$2.line"
}

mkdir "$scratch/keys"
git init --quiet --bare --initial-branch=main "$scratch/hub"
git -C "$scratch/ada" remote add origin "$scratch/hub"
git -C "$scratch/ada" push --quiet --set-upstream origin main
for who in ben carol; do
	git clone --quiet "$scratch/hub" "$scratch/$who"
done
for who in ada ben carol; do
	git -C "$scratch/$who" config user.name "$who"
	git -C "$scratch/$who" config user.email "$who@example.com"
	git -C "$scratch/$who" config include.path ../.handoff/config
	git -C "$scratch/$who" config handoff.workspace.root "$scratch/worktrees-$who"
	# The screens are the same on every machine, whatever it can confine workers with.
	git -C "$scratch/$who" config handoff.sandbox none
	key "$who" "$who"
done

day Monday 2026-06-01

say "Everybody prints a line for the others, and all of them keep the lines in one file."
for who in ada ben; do
	at "$who"
	show git handoff key
	cat "$scratch/keys/$who.line" >>"$scratch/signers"
done
for who in ada ben carol; do
	git -C "$scratch/$who" config gpg.ssh.allowedSignersFile "$scratch/signers"
done

say "Ada runs a plan and pushes it by name."
at ada
ends 0 git handoff run plan.json
ends 0 git handoff verify words
ends 0 git handoff push origin words

say "Ben fetches, verifies and applies it."
at ben
ends 0 git handoff fetch
ends 0 git handoff runs --all
ends 0 git handoff verify origin/words
ends 0 git handoff apply --dry-run origin/words
ends 0 git handoff apply --commit -m "Accept words" origin/words/parser
ends 0 git handoff whence HEAD
git push --quiet origin main

say "Ada looks at what he pushed."
at ada
git pull --quiet
ends 0 git handoff whence parser.txt:1
ends 0 git handoff verify --commits HEAD~1..HEAD

day Tuesday 2026-06-02

say "Both of them run a plan with the same id. Ada pushes hers first."
at ada
ends 0 git handoff run plans/ada.json
ends 0 git handoff push origin tuesday
at ben
ends 0 git handoff run plans/ben.json
ends 0 git handoff verify tuesday
ends 1 git handoff push origin tuesday
ends 0 git handoff fetch
ends 0 git handoff runs --all
ends 0 git handoff verify tuesday
ends 0 git handoff verify origin/tuesday
ends 1 git handoff push origin tuesday
ends 0 git handoff run plans/ben.json --id tuesday-ben
ends 0 git handoff push origin tuesday-ben
ends 0 git handoff delete tuesday --yes

say "Carol has no run of that id."
at carol
ends 0 git handoff fetch
ends 0 git handoff verify origin/tuesday

say "Ben pushes his log as well, as plain git does. It names another run with that id."
at ben
ends 0 git push --quiet origin 'refs/handoff/logs/*'
at carol
ends 0 git handoff fetch
ends 3 git handoff verify origin/tuesday
ends 0 git handoff verify origin/tuesday --signer ada@example.com
ends 3 git handoff verify --all
say "Her own run of that plan gets an id of its own."
ends 0 git handoff submit plans/ben.json
ends 0 git handoff delete tuesday --yes
ends 0 git handoff run plans/ben.json --id tuesday-carol

at ada
ends 0 git handoff fetch
ends 0 git handoff verify tuesday

day Wednesday 2026-06-03

say "Ada runs a plan that waits for Ben."
at ada
ends 0 git handoff submit plans/release.json --admit "$scratch/keys/ben.line=approve"
ends 4 git handoff run release
ends 0 git handoff status release
ends 0 git handoff waiting
ends 0 git handoff push origin release

at ben
ends 0 git handoff fetch
ends 0 git handoff waiting
ends 0 git handoff approve origin/release/sign-off -m "reads well"
ends 0 git handoff waiting
ends 0 git handoff push --all

at ada
ends 0 git handoff fetch
ends 0 git handoff status release
ends 0 git handoff

say "She hands over where she stands, uncommitted files included."
echo 'three sources' >sources.txt
printf '\n$ %s\n' 'echo gathered | git handoff checkpoint research --state - --worktree --summary "gathered 3 sources"'
echo 'gathered' | git handoff checkpoint research --state - --worktree --summary 'gathered 3 sources'
ends 0 git handoff push origin research
printf '\n$ %s\n' 'git handoff offer research --to ben >offer.json'
git handoff offer research --to ben >"$scratch/offer.json"
at ben
ends 0 git handoff fetch
ends 0 git handoff adopt "$scratch/offer.json" --as writing --me ben --from origin --checkout
ends 0 git handoff resume writing
ends 0 git handoff thread verify writing
ends 0 git handoff thread list

day Thursday 2026-06-04

say "Ada has a new key. The old one admits it to the run that is open."
at ada
key ada ada-new
show git handoff key
ends 1 git handoff run release
cat "$scratch/keys/ada-new.line" >>"$scratch/signers"
ends 0 git -c handoff.signingKey="$scratch/keys/ada" handoff admit release "$scratch/keys/ada-new.line" --as own,work,seal
ends 0 git handoff run release
ends 0 git handoff verify release
ends 0 git handoff push origin release

at ben
ends 0 git handoff fetch
ends 0 git handoff verify origin/release
printf '\n$ %s\n' 'git handoff prove origin/release/package:outputs/package.txt >package.proof'
git handoff prove origin/release/package:outputs/package.txt >"$scratch/package.proof"
ends 0 git handoff verify --proof "$scratch/package.proof"

say "From now on the old key signs nothing. What it signed stays trusted."
sed -i '1s/namespaces="git"/namespaces="git",valid-before="20260605Z"/' "$scratch/signers"
ends 0 git handoff verify origin/release
ends 0 git handoff verify words

say "Had it been stolen, it would be revoked, and nothing but an anchor could show what it signed before."
printf 'since=2026-06-05T00:00:00Z %s\n' "$(cut -d ' ' -f 3- "$scratch/keys/ada.line")" >"$scratch/revoked"
ends 3 git handoff verify words --revoked "$scratch/revoked"

day Friday 2026-06-05

say "Ben has an open run, and loses his key."
at ben
ends 4 git handoff run plans/report.json
ends 0 git handoff push origin report
rm "$scratch/keys/ben"
ends 1 git handoff retry report/notes
key ben ben-new
ends 1 git handoff retry report/notes
sed -i '2s/namespaces="git"/namespaces="git",valid-before="20260606Z"/' "$scratch/signers"
cat "$scratch/keys/ben-new.line" >>"$scratch/signers"

say "Ada goes on with it, under another id."
at ada
ends 0 git handoff fetch
git config handoff.executor.flaky.command "mkdir -p outputs && cp parser.txt outputs/notes.txt"
ends 0 git handoff adopt-run origin/report --id report-2
ends 0 git handoff status report-2
ends 0 git handoff run report-2
ends 0 git handoff verify report-2
ends 0 git handoff push origin report-2

say "What is here at the end of the week, and what may go."
ends 0 git handoff runs --all
ends 0 git handoff waiting
ends 0 git handoff verify tuesday
# The run that Ben cannot end any more is not sealed.
ends 3 git handoff verify --all
ends 0 git handoff doctor
ends 0 git handoff archive words release
ends 0 git handoff push --all
ends 0 git handoff runs --archived
ends 0 git handoff verify words
ends 0 git handoff clean

at ben
ends 0 git handoff fetch
ends 0 git handoff runs --all
ends 0 git handoff verify origin/report-2
ends 0 git handoff delete report --yes
ends 3 git handoff verify report
ends 0 git handoff verify tuesday-ben
ends 0 git handoff doctor
ends 0 git handoff clean
