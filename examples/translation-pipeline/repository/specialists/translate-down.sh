#!/bin/sh
# A translator whose service is down.
echo "503 Service Unavailable" >&2
exit 1
