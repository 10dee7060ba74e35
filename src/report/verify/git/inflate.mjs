// Inflates what zlib compressed (RFC 1950 and 1951).

import { ensure, FormatError } from '../bytes.mjs';

/** Huffman codes as a table from the next bits to symbol and length. */
function buildHuffman(lengths) {
  const counts = new Uint16Array(16);
  let longest = 0;
  for (const length of lengths) {
    counts[length]++;
    if (length > longest) longest = length;
  }
  counts[0] = 0;
  const next = new Uint16Array(16);
  let code = 0;
  let unused = 1;
  for (let bits = 1; bits < 16; bits++) {
    code = (code + counts[bits - 1]) << 1;
    next[bits] = code;
    unused = unused * 2 - counts[bits];
    ensure(unused >= 0, 'a compressed stream with an impossible code');
  }
  const table = new Uint16Array(1 << Math.max(longest, 1));
  for (let symbol = 0; symbol < lengths.length; symbol++) {
    const length = lengths[symbol];
    if (!length) continue;
    let reversed = 0;
    for (let i = 0, bits = next[length]++; i < length; i++, bits >>= 1) {
      reversed = (reversed << 1) | (bits & 1);
    }
    for (let i = reversed; i < table.length; i += 1 << length) table[i] = (symbol << 4) | length;
  }
  return { table, mask: table.length - 1 };
}

// A length or distance is the base of its code plus some extra bits: a base follows the last value
// of the code before it.
const lengthExtra = Array.from({ length: 29 }, (_, i) => (i < 8 || i === 28 ? 0 : (i >> 2) - 1));
const distanceExtra = Array.from({ length: 30 }, (_, i) => (i < 4 ? 0 : (i >> 1) - 1));
const basesFrom = (first, extra) =>
  extra.map((_, i) => extra.slice(0, i).reduce((sum, bits) => sum + (1 << bits), first));
const lengthBase = [...basesFrom(3, lengthExtra).slice(0, 28), 258];
const distanceBase = basesFrom(1, distanceExtra);
const codeLengthOrder = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

const fixedLiterals = buildHuffman(
  Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8)),
);
const fixedDistances = buildHuffman(new Array(30).fill(5));

/** Inflates one zlib stream whose size is known, and notes where the stream ends. */
export class Inflater {
  constructor(bytes, at, size) {
    this.bytes = bytes;
    this.at = at;
    this.output = new Uint8Array(size);
    this.length = 0;
    this.bitBuffer = 0;
    this.bitCount = 0;
  }

  needByte() {
    ensure(this.at < this.bytes.length, 'a compressed stream that ends too early');
    this.bitBuffer |= this.bytes[this.at++] << this.bitCount;
    this.bitCount += 8;
  }

  takeBits(count) {
    while (this.bitCount < count) this.needByte();
    const value = this.bitBuffer & ((1 << count) - 1);
    this.bitBuffer >>>= count;
    this.bitCount -= count;
    return value;
  }

  takeSymbol({ table, mask }) {
    for (;;) {
      const entry = table[this.bitBuffer & mask];
      const length = entry & 15;
      if (length && length <= this.bitCount) {
        this.bitBuffer >>>= length;
        this.bitCount -= length;
        return entry >> 4;
      }
      ensure(this.bitCount < 15, 'a compressed stream with an unused code');
      this.needByte();
    }
  }

  readCodes() {
    const literalCount = this.takeBits(5) + 257;
    const distanceCount = this.takeBits(5) + 1;
    const codeCount = this.takeBits(4) + 4;
    const codeLengths = new Uint8Array(19);
    for (let i = 0; i < codeCount; i++) codeLengths[codeLengthOrder[i]] = this.takeBits(3);
    const codes = buildHuffman(codeLengths);
    const lengths = new Uint8Array(literalCount + distanceCount);
    for (let i = 0; i < lengths.length;) {
      const symbol = this.takeSymbol(codes);
      if (symbol < 16) {
        lengths[i++] = symbol;
        continue;
      }
      ensure(symbol !== 16 || i > 0, 'a compressed stream that repeats nothing');
      const value = symbol === 16 ? lengths[i - 1] : 0;
      const least = symbol === 18 ? 11 : 3;
      const end = i + least + this.takeBits({ 16: 2, 17: 3, 18: 7 }[symbol]);
      ensure(end <= lengths.length, 'a compressed stream with too many codes');
      while (i < end) lengths[i++] = value;
    }
    return [
      buildHuffman(lengths.subarray(0, literalCount)),
      buildHuffman(lengths.subarray(literalCount)),
    ];
  }

  readCompressed(literals, distances) {
    const { output } = this;
    for (;;) {
      const symbol = this.takeSymbol(literals);
      if (symbol < 256) {
        ensure(this.length < output.length, 'an object that is larger than it says');
        output[this.length++] = symbol;
        continue;
      }
      if (symbol === 256) return;
      ensure(symbol < 286, 'a compressed stream with an unused code');
      const length = lengthBase[symbol - 257] + this.takeBits(lengthExtra[symbol - 257]);
      const code = this.takeSymbol(distances);
      ensure(code < 30, 'a compressed stream with an unused code');
      const distance = distanceBase[code] + this.takeBits(distanceExtra[code]);
      ensure(distance <= this.length, 'a compressed stream that copies from nowhere');
      ensure(this.length + length <= output.length, 'an object that is larger than it says');
      for (let i = 0; i < length; i++, this.length++) {
        output[this.length] = output[this.length - distance];
      }
    }
  }

  readStored() {
    this.at -= this.bitCount >> 3;
    this.bitBuffer = this.bitCount = 0;
    const length = this.takeBits(16);
    ensure((length ^ this.takeBits(16)) === 0xffff, 'a compressed stream with a wrong length');
    const end = this.at + length;
    ensure(end <= this.bytes.length, 'a compressed stream that ends too early');
    ensure(this.length + length <= this.output.length, 'an object that is larger than it says');
    this.output.set(this.bytes.subarray(this.at, end), this.length);
    this.length += length;
    this.at = end;
  }

  readStream() {
    const header = (this.bytes[this.at] << 8) | this.bytes[this.at + 1];
    ensure(header % 31 === 0 && (header & 0x0f20) === 0x0800, 'a compressed stream that is none');
    this.at += 2;
    for (let isLast = false; !isLast;) {
      isLast = this.takeBits(1) === 1;
      const kind = this.takeBits(2);
      if (kind === 0) this.readStored();
      else if (kind === 1) this.readCompressed(fixedLiterals, fixedDistances);
      else if (kind === 2) this.readCompressed(...this.readCodes());
      else throw new FormatError('a compressed stream with an unknown block');
    }
    this.at -= this.bitCount >> 3;
    ensure(this.length === this.output.length, 'an object that is smaller than it says');
    this.checkSum();
    return this.output;
  }

  checkSum() {
    let a = 1;
    let b = 0;
    for (let i = 0; i < this.output.length;) {
      const end = Math.min(i + 3800, this.output.length);
      for (; i < end; i++) {
        a += this.output[i];
        b += a;
      }
      a %= 65521;
      b %= 65521;
    }
    ensure(this.at + 4 <= this.bytes.length, 'a compressed stream that ends too early');
    const view = new DataView(this.bytes.buffer, this.bytes.byteOffset + this.at, 4);
    ensure(view.getUint32(0) === b * 65536 + a, 'a compressed stream with a wrong checksum');
    this.at += 4;
  }
}
