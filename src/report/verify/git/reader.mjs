// Reads bytes from front to back.

import { ensure } from '../bytes.mjs';

/** Reads bytes from a place on. Throws FormatError at their end. */
export class ByteReader {
  constructor(bytes, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  get isAtEnd() {
    return this.at === this.bytes.length;
  }

  take(count) {
    ensure(this.at + count <= this.bytes.length, 'bytes that end too early');
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }

  takeByte() {
    return this.take(1)[0];
  }

  takeUint32() {
    return this.take(4).reduce((number, byte) => number * 256 + byte, 0);
  }

  /** Reads the string of SSH: its length, and its bytes. */
  takeString() {
    return this.take(this.takeUint32());
  }

  takeLine() {
    const end = this.bytes.indexOf(10, this.at);
    ensure(end >= 0, 'a bundle that ends too early');
    return this.take(end + 1 - this.at).subarray(0, -1);
  }

  /** Reads the rest of a size: 7 bits in each byte, the lowest first, as long as `byte` goes on. */
  takeSize(byte = 128, size = 0, factor = 1) {
    for (; byte & 128; factor *= 128) {
      byte = this.takeByte();
      size += (byte & 127) * factor;
    }
    ensure(size <= 0x7fffffff, 'an object that is too large');
    return size;
  }
}

/** Returns where the first empty line begins, less one; -1 without one. */
export function endOfHead(bytes) {
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1))
    if (bytes[at + 1] === 10) return at;
  return -1;
}
