#!/bin/sh
# Stands in for the agent that builds on another's work. `setup` has applied inputs/patch by now, so the edit is here.
set -eu

grep -q 'reviewed = "src/main.ts"' src/main.ts
cat >src/main.test.ts <<'TEST'
import { greet, reviewed } from "./main";

console.assert(greet("Ada") === "Hello, Ada");
console.assert(reviewed === "src/main.ts");
TEST

# What is put into outputs/ is handed over by name, beside the patch.
git diff --cached --stat HEAD >outputs/applied.txt
printf '{"summary":"applied the patch and wrote a test","verify":{"passed":true}}\n' >"$HANDOFF_RESULT"
echo "built on $(sed -n 's/^diff --git a\/\([^ ]*\) .*/\1/p' inputs/patch)"
