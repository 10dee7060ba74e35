#!/bin/sh
# Six specialists that never call each other: each reads documents and writes one, and rules
# choose the next from the documents alone. One fails once, one is down and is replaced, and
# finished work is not repeated.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
features=cli,schemas
enter_repository "$here"
run=refs/handoff/runs/article-1

# Ends the example where something is not as it should be.
expect() {
	if [ "$2" != "$3" ]; then
		printf '%s: expected\n%s\nfound\n%s\n' "$1" "$2" "$3" >&2
		exit 1
	fi
}

# Lists the steps with a status, in the order of the chain, without the hashes in their names.
steps() {
	git log --reverse --format=%s $run | sed -n "s/^item.reconciled \([a-z]*\).* #\([0-9]\): $1$/\1 \2/p" | tr '\n' ','
}

# Lists the commits that wrote a document, newest first.
revisions() {
	git log --diff-filter=AM --format=%h $run -- "documents/$1"
}

show git handoff submit plan.json
show git handoff coordinate article-1 --explain

# The categorizer fails once and is retried; the translator is down, so the run settles with an
# unfinished step.
code=0
show git handoff run article-1 || code=$?
expect "a run with a failed step" 4 $code
expect "what was done so far" "fetch 1,categorize 2," "$(steps done)"

# Another translator that writes a document of the same shape; the next steps need no change.
show git config handoff.subagent.translator.command "sh specialists/translate.sh"
failed=$(git handoff status article-1 | sed -n 's/.*\(translate-[0-9a-f]*\).*/\1/p')
show git handoff retry "article-1/$failed"
show git handoff run article-1
expect "every step, once each" "fetch 1,categorize 2,translate 3,review 1,polish 1,review 1,publish 1," "$(steps done)"

# The story, with plain git. The tree of an entry has what this entry names, so a document is in the
# commits that wrote it.
show git log --reverse --format=%s $run
show git log --reverse --diff-filter=AM --format='%h %s' $run -- documents/translate-output
expect "revisions of the translation" 2 "$(revisions translate-output | wc -l | tr -d ' ')"
review=$(revisions review-output | head -1)
show git show "$review:documents/review-output"
expect "the last review" '{"score":9,"concerns":[]}' "$(git show "$review:documents/review-output")"
show git show "$(revisions publish-output | head -1):documents/publish-output"
show git handoff doc log article-1 translate-output

show git handoff coordinate article-1 --explain
show git handoff verify article-1
