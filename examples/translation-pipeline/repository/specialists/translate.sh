#!/bin/sh
# A translator, word by word; it keeps to the words of the category.
set -eu
text=$(sed -n 's/.*"text":"\([^"]*\)".*/\1/p' inputs/article)
category=$(sed -n 's/.*"category":"\([^"]*\)".*/\1/p' inputs/category)
german=$(echo "$text" | sed -e 's/The chain breaks when one link is gone/Die Kette bricht wenn ein Glied ist weg/' \
	-e 's/A document stays where it was put/Ein Dokument bleibt wo es wurde hingelegt/')
printf '{"language":"de","category":"%s","passes":0,"text":"%s"}\n' "$category" "$german" >outputs/translate.json
