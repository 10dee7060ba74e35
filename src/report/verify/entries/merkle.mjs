// The Merkle tree over the entries of a run (section 7).

import { concatBytes, fromHex } from '../bytes.mjs';
import { sha256 } from '../crypto/hashes.mjs';

const nodeHash = (left, right) => sha256(concatBytes(Uint8Array.of(1), left, right));

/** Returns the largest power of two below n. */
function splitOf(count) {
  let split = 1;
  while (split * 2 < count) split *= 2;
  return split;
}

export function merkleRoot(leaves) {
  if (leaves.length === 0) return sha256(new Uint8Array(0));
  if (leaves.length === 1) return leaves[0];
  const split = splitOf(leaves.length);
  return nodeHash(merkleRoot(leaves.slice(0, split)), merkleRoot(leaves.slice(split)));
}

/** Returns the root that an inclusion path gives, or null if the path has another length. */
export function rootByInclusion(path, index, count, leaf) {
  if (index >= count) return null;
  if (count === 1) return path.length === 0 ? leaf : null;
  if (path.length === 0) return null;
  const split = splitOf(count);
  const [last, rest] = [path.at(-1), path.slice(0, -1)];
  if (index < split) {
    const left = rootByInclusion(rest, index, split, leaf);
    return left && nodeHash(left, last);
  }
  const right = rootByInclusion(rest, index - split, count - split, leaf);
  return right && nodeHash(last, right);
}

/** Returns the roots {before, after} that a consistency path gives, or null. */
export function rootsByConsistency(path, earlier, count, earlierRoot, isWhole = true) {
  if (earlier === count) {
    if (isWhole) return path.length === 0 ? { before: earlierRoot, after: earlierRoot } : null;
    return path.length === 1 ? { before: path[0], after: path[0] } : null;
  }
  if (path.length === 0) return null;
  const split = splitOf(count);
  const [last, rest] = [path.at(-1), path.slice(0, -1)];
  if (earlier <= split) {
    const left = rootsByConsistency(rest, earlier, split, earlierRoot, isWhole);
    return left && { before: left.before, after: nodeHash(left.after, last) };
  }
  const right = rootsByConsistency(rest, earlier - split, count - split, earlierRoot, false);
  return right && { before: nodeHash(last, right.before), after: nodeHash(last, right.after) };
}

export const digestBytes = (digest) => fromHex(digest.slice(7));
