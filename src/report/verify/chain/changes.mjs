// The changes of a tree by one entry, and those that the entry allows (sections 5 and 9).

import { limits } from '../limits.mjs';
import { encodePath } from '../names.mjs';
import { Tree } from '../git/tree.mjs';
import { importPath, itemFolder, pipelinePath } from './paths.mjs';

/** The changes of a tree by one entry. Folders that the entry must not change are not read. */
export class TreeChanges {
  constructor(store, allowed) {
    this.store = store;
    this.allowed = allowed;
    /** Allowed paths that changed, to the blob that is there now, or null if it is gone. */
    this.paths = new Map();
    /** The other changes: {path, text}. */
    this.problems = [];
    /** Folders that cannot be read: {path, oid}. */
    this.unread = [];
  }

  /** Compares the trees before and after the entry; there may be none before. */
  static of(store, allowed, before, now) {
    const changes = new TreeChanges(store, allowed);
    if (before !== now) changes.compareFolders(before, now, '');
    return changes;
  }

  problem(path, text) {
    this.problems.push({ path, text: `${path || '/'} ${text}` });
  }

  compareFolders(before, now, path) {
    if (path.length > limits.path) {
      this.problem(path, 'is deeper than any path');
      return;
    }
    const none = new Tree(new Uint8Array(0), this.store.format);
    const read = (oid) => (oid === null ? none : this.store.readTree(oid));
    const [left, right] = [read(before), read(now)];
    if (!left || !right) {
      this.unread.push({ path, oid: left ? now : before });
      return;
    }
    if (!left.isWellFormed || !right.isWellFormed) {
      this.problem(path, 'is not a well-formed folder');
      return;
    }
    if (now !== null && right.count === 0 && path !== '') this.problem(path, 'is an empty folder');
    for (let i = 0, j = 0; i < left.count || j < right.count;) {
      const [isOldLeft, isNewLeft] = [i < left.count, j < right.count];
      if (isOldLeft && isNewLeft && left.hasSame(i, right, j)) {
        i++;
        j++;
        continue;
      }
      const x = isOldLeft ? left.node(i) : null;
      const y = isNewLeft ? right.node(j) : null;
      const isOld = x && (!y || x.key <= y.key);
      const isNew = y && (!x || y.key <= x.key);
      this.compareNodes(isOld ? x : null, isNew ? y : null, path);
      if (isOld) i++;
      if (isNew) j++;
    }
  }

  /** Compares two nodes of one key, or notes that one is new or gone. */
  compareNodes(before, now, folder) {
    const { allowed } = this;
    const { key, isFolder } = now ?? before;
    const path = folder + key;
    if (isFolder) {
      if (allowed.reaches(path)) this.compareFolders(before?.oid ?? null, now?.oid ?? null, path);
      else this.problem(path, 'is changed');
    } else if (!now) {
      if (allowed.mayRemove(path)) this.paths.set(path, null);
      else this.problem(path, 'is removed');
    } else if (!allowed.sets.has(path)) this.problem(path, 'is changed');
    else if (now.mode !== '100644') this.problem(path, `has the mode ${now.mode}`);
    else this.paths.set(path, now.oid);
  }
}

/** What a map of files has instead of an object if a folder above the path cannot be read. */
export const unreadFile = { unread: 'unread', leftOut: 'left out' };

/**
 * Applies changes to a map from paths to objects. Only what an entry may change ever gets into it,
 * so that a later entry does not see any other change.
 */
export function applyChanges(files, { store, allowed, paths, unread }) {
  for (const { path: folder, oid } of unread) {
    const word = store.isLeftOut(oid) ? unreadFile.leftOut : unreadFile.unread;
    for (const path of allowed.sets.keys()) if (path.startsWith(folder)) files.set(path, word);
  }
  for (const [path, oid] of paths) {
    if (oid === null) files.delete(path);
    else files.set(path, oid);
  }
}

/** The paths that an entry may change (section 5). */
export class AllowedChanges {
  constructor(entry, fanOut) {
    /** Path to the object that must be there, or to null if any blob may. */
    this.sets = new Map();
    /** The patch of an item, and the folder of its outputs, if the entry may remove these. */
    this.patch = this.outputs = null;
    this.allowItem(entry, fanOut);
    this.allowRun(entry, fanOut);
    this.folders = new Set();
    for (const path of this.sets.keys()) {
      for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1))
        this.folders.add(path.slice(0, at + 1));
    }
  }

  allowItem(entry, fanOut) {
    const { kind } = entry;
    if (!kind.startsWith('item.')) return;
    const folder = itemFolder(entry.item, fanOut);
    if (kind === 'item.fired') this.sets.set(folder + 'manifest.json', null);
    if (kind !== 'item.reconciled') return;
    if ('reused' in entry) this.sets.set(folder + 'reused.json', null);
    this.patch = folder + 'patch';
    this.outputs = folder + 'outputs/';
    for (const [key, { oid }] of Object.entries(entry.products))
      this.sets.set((key.startsWith('documents/') ? '' : folder) + encodePath(key), oid);
  }

  allowRun(entry, fanOut) {
    const { kind, artifacts = {}, imports = {}, pipelines = {} } = entry;
    const allowAny = (path) => this.sets.set(path, null);
    if (kind === 'document.written')
      this.sets.set(`documents/${encodePath(entry.name)}`, entry.oid);
    if (kind === 'run.extended')
      for (const item of Object.keys(entry.items)) allowAny(itemFolder(item, fanOut) + 'item.json');
    if (kind === 'run.submitted')
      for (const name of ['plan', 'rules', 'continues'])
        if (name in entry) allowAny(`${name}.json`);
    for (const path of Object.keys(artifacts)) allowAny(`artifacts/${encodePath(path)}`);
    for (const [name, { product }] of Object.entries(imports)) {
      this.sets.set(importPath(name) + 'product', product.oid);
      allowAny(importPath(name) + 'evidence.json');
    }
    for (const digest of Object.values(pipelines)) allowAny(pipelinePath(digest));
  }

  mayRemove(path) {
    if (this.sets.has(path)) return false;
    return path === this.patch || (this.outputs !== null && path.startsWith(this.outputs));
  }

  /** Returns true if the entry may change something below a folder, whose path ends with `/`. */
  reaches(folder) {
    if (this.folders.has(folder)) return true;
    if (this.outputs === null) return false;
    return this.outputs.startsWith(folder) || folder.startsWith(this.outputs);
  }
}
