// Compares the protected files that an entry names with those that its patch changes.

import { toBytes, toLatin } from '../bytes.mjs';
import { pathspecsOf } from '../plan/items.mjs';
import { unquotePath } from './patch.mjs';
import { readProtectRules } from './pathspec.mjs';

/** The most bytes of pathspecs with wildcards times bytes of changed paths, in a whole run. */
export const mostPathWork = 2 ** 31;
const submoduleMode = 0o160000;
const isSubmodule = (side) => side.mode === submoduleMode;
const isSameSide = (one, other) =>
  one === null || other === null
    ? one === other
    : one.mode !== null && one.oid !== null && one.mode === other.mode && one.oid === other.oid;

/** Returns the kind of a change to a path that no other patch changes. */
function kindOfChange({ old, now }) {
  if (old === null) return 'added';
  if (now === null) return 'deleted';
  const typeOf = ({ mode }) => mode & 0o170000;
  const areKnown = old.mode !== null && now.mode !== null;
  return areKnown && typeOf(old) !== typeOf(now) ? 'type' : 'modified';
}

/**
 * Compares the listed changes to protected files with a patch; `others` are the changes of patches
 * that the item builds on. Returns what is wrong, or null if that would take more than `work`,
 * which it reduces.
 */
export function faultsOfProtected({ rules, changes, others, listed, work }) {
  const lengthOf = (texts) => [...texts].reduce((sum, text) => sum + text.length + 1, 0);
  const patterns = pathspecsOf(rules).filter((pathspec) => /[*?[\\]/.test(pathspec));
  work.left -= lengthOf(patterns) * lengthOf(changes.keys());
  if (work.left < 0) return null;
  const isProtected = readProtectRules(rules);
  const bytesOf = (path) => unquotePath(toLatin(toBytes(path)));
  const kinds = new Map(listed.map(({ path, change }) => [bytesOf(path), change]));
  const shown = (path) => JSON.stringify(path);
  const unlisted = ', and the entry does not list it';
  const faults = [];
  const protectedPaths = new Set();
  for (const [path, change] of changes) {
    const protectedSide = (side) => (side && isProtected(path, isSubmodule(side)) ? side : null);
    const [old, now] = [protectedSide(change.old), protectedSide(change.now)];
    if (old === null && now === null) continue;
    protectedPaths.add(path);
    const states = others.filter((other) => other.has(path)).map((other) => other.get(path));
    const kind = kinds.get(path);
    if (states.length > 0) {
      // Which state is the reference takes the base.
      const isAsBefore = states.some(
        ({ old, now }) => isSameSide(change.now, old) || isSameSide(change.now, now),
      );
      if (kind === undefined && !isAsBefore)
        faults.push(`${shown(path)} differs from the patches before${unlisted}`);
    } else if (kind === undefined) {
      faults.push(`${shown(path)} was ${kindOfChange({ old, now })}${unlisted}`);
    } else if (kind !== kindOfChange({ old, now })) {
      faults.push(`${shown(path)} was ${kindOfChange({ old, now })}, and the entry says ${kind}`);
    }
  }
  for (const path of kinds.keys())
    if (!protectedPaths.has(path))
      faults.push(`the entry lists ${shown(path)}, which the patch leaves alone`);
  return faults;
}
