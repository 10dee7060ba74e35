// Reads the objects of a pack, differences included.

import { ensure, equalBytes, toHex, toLatin } from '../bytes.mjs';
import { limits } from '../limits.mjs';
import { objectName, sha1, sha256 } from '../crypto/hashes.mjs';
import { Inflater } from './inflate.mjs';
import { ByteReader, endOfHead } from './reader.mjs';

/** Builds an object from its base and git's list of differences. */
function applyDelta(base, delta) {
  const reader = new ByteReader(delta);
  ensure(reader.takeSize() === base.length, 'a difference from another object');
  const output = new Uint8Array(reader.takeSize());
  let length = 0;
  while (!reader.isAtEnd) {
    const command = reader.takeByte();
    ensure(command !== 0, 'a difference with an unknown command');
    let part;
    if (command & 128) {
      const takeNumber = (bits) =>
        bits.reduce((sum, bit, i) => sum + (command & bit ? reader.takeByte() * 256 ** i : 0), 0);
      const offset = takeNumber([1, 2, 4, 8]);
      const count = takeNumber([16, 32, 64]) || 65536;
      ensure(offset + count <= base.length, 'a difference that copies from nowhere');
      part = base.subarray(offset, offset + count);
    } else part = reader.take(command);
    ensure(length + part.length <= output.length, 'a difference that makes too much');
    output.set(part, length);
    length += part.length;
  }
  ensure(length === output.length, 'a difference that makes too little');
  return output;
}

const packTypes = { 1: 'commit', 2: 'tree', 3: 'blob', 4: 'tag' };
const offsetDelta = 6;
const namedDelta = 7;

/** Reads the head of each object in a pack, and inflates it, within the limit of section 15. */
function readPackEntries(pack, format) {
  const nameLength = format === 'sha1' ? 20 : 32;
  ensure(pack.length >= 12 + nameLength && toLatin(pack.subarray(0, 4)) === 'PACK', 'no pack');
  const body = pack.subarray(0, -nameLength);
  const sum = (format === 'sha1' ? sha1 : sha256)(body);
  ensure(equalBytes(sum, pack.subarray(-nameLength)), 'a pack with a wrong checksum');
  const reader = new ByteReader(body, 4);
  ensure([2, 3].includes(reader.takeUint32()), 'a pack of an unknown version');
  let left = limits.pack + limits.packRatio * pack.length;
  const spend = (size) => {
    left -= size;
    ensure(left >= 0, 'a pack whose objects are larger than one of its size may hold');
  };
  const entries = [];
  for (let count = reader.takeUint32(); count > 0; count--) {
    const start = reader.at;
    let byte = reader.takeByte();
    const type = (byte >> 4) & 7;
    const size = reader.takeSize(byte, byte & 15, 16);
    spend(size);
    let base = null;
    if (type === offsetDelta) {
      byte = reader.takeByte();
      let back = byte & 127;
      while (byte & 128) {
        byte = reader.takeByte();
        back = (back + 1) * 128 + (byte & 127);
      }
      base = start - back;
    } else if (type === namedDelta) base = toHex(reader.take(nameLength));
    else ensure(type in packTypes, 'an object of an unknown type');
    const inflater = new Inflater(body, reader.at, size);
    const bytes = inflater.readStream();
    reader.at = inflater.at;
    if (base !== null) {
      const sizes = new ByteReader(bytes);
      sizes.takeSize();
      spend(sizes.takeSize());
    }
    entries.push({ start, base, type: packTypes[type], bytes, packed: reader.at - start });
  }
  ensure(reader.isAtEnd, 'a pack with more than its objects');
  return entries;
}

/** Throws FormatError if git refuses a commit for its dates, which it counts from 1970. */
function checkDates(commit) {
  const end = endOfHead(commit);
  for (const line of toLatin(end < 0 ? commit : commit.subarray(0, end)).split('\n')) {
    if (!line.startsWith('author ') && !line.startsWith('committer ')) continue;
    const [, date] = / (0|[1-9][0-9]{0,18}) [+-][0-9]{4}$/.exec(line.slice(-26)) ?? [];
    ensure(date !== undefined && BigInt(date) < 2n ** 63n, 'a commit with a date that git refuses');
  }
}

/** Reads all objects of a pack into a map from their names, each computed from its bytes. */
export function readPack(pack, format) {
  const entries = readPackEntries(pack, format);
  const objects = new Map();
  /** The place or the name of a base to the differences from it. */
  const waiting = new Map();
  for (const entry of entries.filter(({ base }) => base !== null))
    waiting.set(entry.base, [...(waiting.get(entry.base) ?? []), entry]);
  // A difference is resolved as soon as its base is known, by its place or by its name.
  const resolved = entries.filter(({ base }) => base === null);
  for (const { start, type, bytes, packed } of resolved) {
    if (type === 'commit') checkDates(bytes);
    const name = objectName(format, type, bytes);
    objects.set(name, { type, bytes, packed });
    for (const base of [start, name]) {
      for (const child of waiting.get(base) ?? [])
        resolved.push({ ...child, type, bytes: applyDelta(bytes, child.bytes) });
      waiting.delete(base);
    }
  }
  ensure(waiting.size === 0, 'a pack with a difference from an object that it does not have');
  return objects;
}
