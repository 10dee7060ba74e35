#!/bin/sh
# The categorizer: decides where an article belongs. Its first attempt fails, as things do.
set -eu
if [ "$HANDOFF_ATTEMPT" = 1 ]; then
	echo "the model did not answer" >&2
	exit 1
fi
case $(cat inputs/article) in
*document*) category=coordination reasoning="it speaks of documents" ;;
*) category=other reasoning="nothing fits" ;;
esac
printf '{"category":"%s","reasoning":"%s"}\n' "$category" "$reasoning" >outputs/categorize.json
