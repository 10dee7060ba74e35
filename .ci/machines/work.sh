#!/bin/sh
# The work of an item: says in the trace when it starts and ends. work.sh TRACE SECONDS [LOCK]
set -eu

trace=$1
echo "start $HANDOFF_ITEM $HANDOFF_ATTEMPT $$" >>"$trace"
if [ -n "${3:-}" ]; then
	exec 9>"$3"
	flock --nonblock 9 || echo "clash $HANDOFF_ITEM $HANDOFF_ATTEMPT $$" >>"$trace"
fi
sleep "$2"
echo "end $HANDOFF_ITEM $HANDOFF_ATTEMPT $$" >>"$trace"
echo "$HANDOFF_ITEM by attempt $HANDOFF_ATTEMPT"
