#!/bin/sh
# A program of thirty lines uses only the verifier of git handoff to verify two bundles: a new
# one, and one with an altered product.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
enter_repository "$here/../handoff-dag"

git handoff submit --run plan.json
git handoff key --principal example >"$scratch/signers"
git handoff bundle handoff-dag-1 --output "$scratch/handoff-dag-1.bundle"

root=$(cd "$here/../.." && pwd)
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
export CARGO_TARGET_DIR
cargo build --quiet --locked --profile quick --manifest-path "$here/Cargo.toml"
PATH=$CARGO_TARGET_DIR/quick:$PATH

cd "$scratch"
show embed handoff-dag-1.bundle signers

vectors=$root/docs/vectors
ended=0
show embed "$vectors/product-bytes.bundle" "$vectors/signers" || ended=$?
[ "$ended" = 3 ]
