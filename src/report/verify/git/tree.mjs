// Reads a tree object.

import { toBytes, toHex, toLatin } from '../bytes.mjs';

/** The nodes of a tree object, which stay bytes until one of them is asked for. */
export class Tree {
  constructor(bytes, format) {
    this.bytes = bytes;
    this.nameLength = format === 'sha1' ? 20 : 32;
    /** The place of each node in the bytes, and the end of the last one. */
    this.starts = [0];
    /** False if git would not write such a tree. It has no nodes then. */
    this.isWellFormed = this.findNodes();
    if (!this.isWellFormed) this.starts = [0];
    this.count = this.starts.length - 1;
  }

  /** Notes where nodes start. Returns false unless they are whole, named, and in git's order. */
  findNodes() {
    const { bytes, nameLength, starts } = this;
    for (let at = 0; at < bytes.length; at = starts.at(-1)) {
      const space = bytes.indexOf(32, at);
      const zero = space < 0 ? -1 : bytes.indexOf(0, space);
      const end = zero + 1 + nameLength;
      if (zero <= space + 1 || end > bytes.length) return false;
      if (bytes.subarray(space + 1, zero).includes(47)) return false;
      if (at > 0 && !this.isInOrder(starts.at(-2), at)) return false;
      starts.push(end);
    }
    return true;
  }

  /** Returns true if the node at one place precedes that at another: folders end with a slash. */
  isInOrder(before, at) {
    const { bytes } = this;
    let [i, j] = [bytes.indexOf(32, before) + 1, bytes.indexOf(32, at) + 1];
    while (bytes[i] === bytes[j] && bytes[i] !== 0) {
      i++;
      j++;
    }
    const next = (place, start) => bytes[place] || (this.isFolderAt(start) ? 47 : 0);
    return next(i, before) < next(j, at);
  }

  /** Returns true if the node at a place of the bytes has the mode 40000. */
  isFolderAt(at) {
    return folderMode.every((byte, i) => this.bytes[at + i] === byte);
  }

  /** Returns {name, mode, isFolder, key, oid}: `key` is the name, and a slash if it is a folder. */
  node(index) {
    const [at, end] = this.starts.slice(index, index + 2);
    const space = this.bytes.indexOf(32, at);
    const name = toLatin(this.bytes.subarray(space + 1, end - this.nameLength - 1));
    const mode = toLatin(this.bytes.subarray(at, space));
    const isFolder = this.isFolderAt(at);
    const oid = toHex(this.bytes.subarray(end - this.nameLength, end));
    return { name, mode, isFolder, key: isFolder ? name + '/' : name, oid };
  }

  get nodes() {
    return Array.from({ length: this.count }, (_, index) => this.node(index));
  }
}

const folderMode = toBytes('40000 ');
