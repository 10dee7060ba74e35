// SHA-1, SHA-256 and SHA-512.
//
// These are in plain JavaScript because most objects are small: for them, a digest here takes less
// time than one promise of `crypto.subtle`. Destructuring the state would double their time.

import { concatBytes, toBytes, toHex } from '../bytes.mjs';

/** Hashes the blocks of a message, and of its padding with a length of `lengthBytes` bytes. */
function hashPadded(bytes, blockSize, lengthBytes, hashBlocks) {
  const whole = bytes.length - (bytes.length % blockSize);
  hashBlocks(bytes, whole);
  const rest = bytes.length - whole;
  const tail = new Uint8Array(rest + 1 + lengthBytes > blockSize ? 2 * blockSize : blockSize);
  for (let i = 0; i < rest; i++) tail[i] = bytes[whole + i];
  tail[rest] = 0x80;
  let bits = bytes.length * 8;
  for (let i = tail.length - 1; bits > 0; i--) {
    tail[i] = bits % 256;
    bits = Math.floor(bits / 256);
  }
  hashBlocks(tail, tail.length);
}

function readWords(words, bytes, at) {
  for (let i = 0, j = at; i < 16; i++, j += 4) {
    words[i] = (bytes[j] << 24) | (bytes[j + 1] << 16) | (bytes[j + 2] << 8) | bytes[j + 3];
  }
}

/** Adds words to those of a state, whose type sets how many bits remain. */
function addWords(state, words) {
  for (let i = 0; i < words.length; i++) state[i] += words[i];
}

const sha1Schedule = new Int32Array(80);

function sha1Blocks(state, bytes, end) {
  const w = sha1Schedule;
  for (let at = 0; at < end; at += 64) {
    readWords(w, bytes, at);
    for (let i = 16; i < 80; i++) {
      const x = w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16];
      w[i] = (x << 1) | (x >>> 31);
    }
    let a = state[0];
    let b = state[1];
    let c = state[2];
    let d = state[3];
    let e = state[4];
    for (let i = 0; i < 80; i++) {
      let f;
      if (i < 20) f = (d ^ (b & (c ^ d))) + 0x5a827999;
      else if (i < 40) f = (b ^ c ^ d) + 0x6ed9eba1;
      else if (i < 60) f = ((b & c) | (d & (b | c))) - 0x70e44324;
      else f = (b ^ c ^ d) - 0x359d3e2a;
      const next = (((a << 5) | (a >>> 27)) + f + e + w[i]) | 0;
      e = d;
      d = c;
      c = (b << 30) | (b >>> 2);
      b = a;
      a = next;
    }
    addWords(state, [a, b, c, d, e]);
  }
}

function wordsToBytes(words) {
  const bytes = new Uint8Array(words.length * 4);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < words.length; i++) view.setInt32(4 * i, words[i]);
  return bytes;
}

export function sha1(bytes) {
  const state = new Int32Array([0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0]);
  hashPadded(bytes, 64, 8, (part, end) => sha1Blocks(state, part, end));
  return wordsToBytes(state);
}

function firstPrimes(count) {
  const primes = [];
  for (let n = 2; primes.length < count; n++) if (primes.every((p) => n % p)) primes.push(n);
  return primes;
}

/** Returns the first 64 bits of the fraction of the root of degree `degree` of an integer. */
function rootFraction(integer, degree) {
  const scaled = BigInt(integer) << BigInt(64 * degree);
  let low = 0n;
  let high = 1n << 75n;
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** BigInt(degree) <= scaled) low = middle;
    else high = middle;
  }
  return low & 0xffffffffffffffffn;
}

// The constants of SHA-2 are the roots of the first primes, so they are computed here.
const sha512Constants = firstPrimes(80).map((prime) => rootFraction(prime, 3));
const sha512Start = firstPrimes(8).map((prime) => rootFraction(prime, 2));
const sha256Constants = new Int32Array(64);
for (let i = 0; i < 64; i++) sha256Constants[i] = Number(sha512Constants[i] >> 32n);
const sha256Start = new Int32Array(8);
for (let i = 0; i < 8; i++) sha256Start[i] = Number(sha512Start[i] >> 32n);
const sha256Schedule = new Int32Array(64);

function sha256Blocks(state, bytes, end) {
  const w = sha256Schedule;
  const k = sha256Constants;
  for (let at = 0; at < end; at += 64) {
    readWords(w, bytes, at);
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15];
      const y = w[i - 2];
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
    }
    let a = state[0];
    let b = state[1];
    let c = state[2];
    let d = state[3];
    let e = state[4];
    let f = state[5];
    let g = state[6];
    let h = state[7];
    for (let i = 0; i < 64; i++) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + k[i] + w[i]) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    addWords(state, [a, b, c, d, e, f, g, h]);
  }
}

export function sha256(bytes) {
  const state = sha256Start.slice();
  hashPadded(bytes, 64, 8, (part, end) => sha256Blocks(state, part, end));
  return wordsToBytes(state);
}

const low64 = (value) => BigInt.asUintN(64, value);
const rotate64 = (value, count) => (value >> count) | low64(value << (64n - count));

/** Only browsers without `crypto.subtle` use this, so that it may be slow. */
function sha512Blocks(state, bytes, end) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const w = [];
  for (let at = 0; at < end; at += 128) {
    for (let i = 0; i < 16; i++) w[i] = view.getBigUint64(at + 8 * i);
    for (let i = 16; i < 80; i++) {
      const [x, y] = [w[i - 15], w[i - 2]];
      const s0 = rotate64(x, 1n) ^ rotate64(x, 8n) ^ (x >> 7n);
      const s1 = rotate64(y, 19n) ^ rotate64(y, 61n) ^ (y >> 6n);
      w[i] = low64(w[i - 16] + s0 + w[i - 7] + s1);
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 80; i++) {
      const s1 = rotate64(e, 14n) ^ rotate64(e, 18n) ^ rotate64(e, 41n);
      const t1 = h + s1 + (g ^ (e & (f ^ g))) + sha512Constants[i] + w[i];
      const s0 = rotate64(a, 28n) ^ rotate64(a, 34n) ^ rotate64(a, 39n);
      const t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      [h, g, f, e, d, c, b, a] = [g, f, e, low64(d + t1), c, b, a, low64(t1 + t2)];
    }
    addWords(state, [a, b, c, d, e, f, g, h]);
  }
}

export function sha512(bytes) {
  const state = BigUint64Array.from(sha512Start);
  hashPadded(bytes, 128, 16, (part, end) => sha512Blocks(state, part, end));
  const view = new DataView(new ArrayBuffer(64));
  state.forEach((word, i) => view.setBigUint64(8 * i, word));
  return new Uint8Array(view.buffer);
}

export const digestOf = (bytes) => 'sha256:' + toHex(sha256(bytes));
export const hexOfSha256 = (text) => toHex(sha256(toBytes(text)));

/** Returns the name of a git object. */
export function objectName(format, type, bytes) {
  const whole = concatBytes(toBytes(`${type} ${bytes.length}\0`), bytes);
  return toHex((format === 'sha1' ? sha1 : sha256)(whole));
}

/** Returns true if these are the bytes that an entry names. */
export const areNamed = (bytes, { sha256: digest, size }) =>
  bytes.length === size && digestOfBlob(bytes) === digest;

/** Large blobs are hashed once, although several rows may read them. */
const digestsOfBlobs = new WeakMap();

export function digestOfBlob(bytes) {
  if (!digestsOfBlobs.has(bytes)) digestsOfBlobs.set(bytes, digestOf(bytes));
  return digestsOfBlobs.get(bytes);
}
