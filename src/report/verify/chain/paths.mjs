// The paths of the tree where entries store items, pipelines and imports (section 5).

import { hexOfSha256 } from '../crypto/hashes.mjs';
import { encodeSegment } from '../names.mjs';

/** Returns the folder of an item. With `fanOut`, it is below one of 256 folders. */
export function itemFolder(item, fanOut) {
  return fanOut ? `items/${pathOfName(item)}/` : `items/${encodeSegment(item)}/`;
}

const pathOfName = (name) => `${hexOfSha256(name).slice(0, 2)}/${encodeSegment(name)}`;
export const pipelinePath = (digest) => `pipelines/${digest.slice(7)}.json`;
export const importPath = (name) => `imports/${hexOfSha256(name)}/`;
