#!/bin/sh
# The fetcher: takes the text out of a page.
set -eu
title=$(sed -n 's:.*<title>\(.*\)</title>.*:\1:p' articles/handoffs.html)
text=$(sed -n 's:^<p>\(.*\)</p>$:\1:p' articles/handoffs.html | tr '\n' ' ' | sed 's/ $//')
printf '{"source":"articles/handoffs.html","title":"%s","text":"%s"}\n' "$title" "$text" >outputs/fetch.json
