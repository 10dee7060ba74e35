// The objects and refs of a bundle, with those that it leaves out.

import { ensure } from '../bytes.mjs';
import { limits } from '../limits.mjs';
import { objectName } from '../crypto/hashes.mjs';
import { Tree } from './tree.mjs';

/** The refs and objects of a bundle. `filtered` says that objects were left out on purpose. */
export class Store {
  constructor() {
    this.format = 'sha1';
    this.refs = new Map();
    /** The refs that are none of this format. */
    this.otherRefs = [];
    this.objects = new Map();
    this.filtered = false;
    this.filter = null;
    /** Object name to {@link Tree}, for the trees that were read. */
    this.trees = new Map();
  }

  /** Returns the bytes of an object of the type, or null. */
  read(name, type) {
    const object = this.objects.get(name);
    if (object) return object.type === type ? object.bytes : null;
    // Git knows the empty tree without having it.
    const none = new Uint8Array(0);
    return type === 'tree' && name === objectName(this.format, 'tree', none) ? none : null;
  }

  readBlob(name) {
    return this.read(name, 'blob');
  }

  /** Returns a tree object, or null if it is not here or too large. */
  readTree(name) {
    if (!this.trees.has(name)) {
      const bytes = this.read(name, 'tree');
      const isRead = bytes !== null && bytes.length <= limits.folder;
      this.trees.set(name, isRead ? new Tree(bytes, this.format) : null);
    }
    return this.trees.get(name);
  }

  /** Takes the capabilities of a bundle of version 3, each of them once. */
  setCapabilities(capabilities) {
    const named = { 'object-format': 'sha1', filter: null };
    const known = new Set();
    for (const capability of capabilities) {
      const [name, value] = capability.split(/=(.*)/s);
      ensure(name in named && !known.has(name), 'a bundle with an unknown or a second capability');
      known.add(name);
      named[name] = value;
    }
    this.format = named['object-format'];
    ensure(['sha1', 'sha256'].includes(this.format), 'a bundle with an unknown object format');
    this.filter = named.filter;
    const isKnown = this.filter === null || /^blob:(?:none|limit=[0-9]{1,18})$/.test(this.filter);
    ensure(isKnown, 'a bundle with a filter that is not one of blobs');
    this.filtered = this.filter !== null;
  }

  /** Returns true if an object is not here because the bundle leaves objects out. */
  isLeftOut(name) {
    return this.filtered && !this.objects.has(name) && this.read(name, 'tree') === null;
  }
}
