// A second verifier of the format in docs/reference/format.md, in plain JavaScript.
//
// The part above the line "node only" is also embedded in an HTML page as an ordinary script. It
// therefore has no import and no export, touches no page and no file, and defines one name for
// others, `Handoff`. Section numbers in the comments are those of format.md.

'use strict';

// ---- bytes ----

const utf8Encoder = new TextEncoder();
const utf8Decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Input that is not what the format requires. The message says why. */
class FormatError extends Error {}

function ensure(condition, message) {
  if (!condition) throw new FormatError(message);
}

/** Calls a function that reads input, and returns undefined if it throws FormatError. */
function tryToRead(read) {
  try {
    return read();
  } catch (error) {
    if (error instanceof FormatError) return undefined;
    throw error;
  }
}

const toBytes = (text) => utf8Encoder.encode(text);

function toText(bytes) {
  try {
    return utf8Decoder.decode(bytes);
  } catch {
    throw new FormatError('not UTF-8');
  }
}

/** Decodes each byte to one character, for data that is not UTF-8. */
function toLatin(bytes) {
  let text = '';
  for (let i = 0; i < bytes.length; i += 4096) {
    text += String.fromCharCode.apply(null, bytes.subarray(i, i + 4096));
  }
  return text;
}

const hexOfByte = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

function toHex(bytes) {
  let text = '';
  for (let i = 0; i < bytes.length; i++) text += hexOfByte[bytes[i]];
  return text;
}

function fromHex(text) {
  const bytes = new Uint8Array(text.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = parseInt(text.substr(2 * i, 2), 16);
  return bytes;
}

function concatBytes(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function equalBytes(a, b) {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

function toBase64(bytes, padded = true) {
  const text = btoa(toLatin(bytes));
  return padded ? text : text.replace(/=+$/, '');
}

/** Decodes padded base64, and returns null unless the text is exactly its canonical encoding. */
function fromBase64(text) {
  try {
    const decoded = atob(text);
    return btoa(decoded) === text ? Uint8Array.from(decoded, (c) => c.charCodeAt(0)) : null;
  } catch {
    return null;
  }
}

/** Compares two strings by the bytes of their UTF-8, which is the order of names (section 1). */
function compareNames(a, b) {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return (a.codePointAt(at) ?? -1) - (b.codePointAt(at) ?? -1);
}

const sortNames = (names) => [...names].sort(compareNames);

const byteLength = (text) => toBytes(text).length;

// ---- SHA-1, SHA-256 and SHA-512 ----
//
// These are in plain JavaScript because most objects are small: for them, a digest here takes less
// time than one promise of `crypto.subtle`. Destructuring the state would double their time.

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

function sha1(bytes) {
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

function sha256(bytes) {
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

function sha512(bytes) {
  const state = BigUint64Array.from(sha512Start);
  hashPadded(bytes, 128, 16, (part, end) => sha512Blocks(state, part, end));
  const view = new DataView(new ArrayBuffer(64));
  state.forEach((word, i) => view.setBigUint64(8 * i, word));
  return new Uint8Array(view.buffer);
}

const digestOf = (bytes) => 'sha256:' + toHex(sha256(bytes));
const hexOfSha256 = (text) => toHex(sha256(toBytes(text)));

/** Returns the name of a git object. */
function objectName(format, type, bytes) {
  const whole = concatBytes(toBytes(`${type} ${bytes.length}\0`), bytes);
  return toHex((format === 'sha1' ? sha1 : sha256)(whole));
}

// ---- Ed25519 ----

const fieldPrime = 2n ** 255n - 19n;
const groupOrder = 2n ** 252n + 27742317777372353535851937790883648493n;

function modulo(value, modulus = fieldPrime) {
  const rest = value % modulus;
  return rest < 0n ? rest + modulus : rest;
}

function power(base, exponent) {
  let result = 1n;
  for (let square = modulo(base); exponent > 0n; exponent >>= 1n) {
    if (exponent & 1n) result = modulo(result * square);
    square = modulo(square * square);
  }
  return result;
}

const invert = (value) => power(value, fieldPrime - 2n);

const curveD = modulo(-121665n * invert(121666n));
const rootOfMinusOne = power(2n, (fieldPrime - 1n) / 4n);

function bigFromLittle(bytes) {
  return BigInt('0x' + toHex(Uint8Array.from(bytes).reverse()));
}

/**
 * The encodings of the points of small order, which have few multiples. The last two are those of
 * points with x = 0 whose sign is set, which are not canonical.
 */
const refusedPoints = new Set([
  '0100000000000000000000000000000000000000000000000000000000000000',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  '0000000000000000000000000000000000000000000000000000000000000080',
  '0000000000000000000000000000000000000000000000000000000000000000',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
  '0100000000000000000000000000000000000000000000000000000000000080',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
]);

/** Returns true if a point is encoded as section 3 requires: canonical, not of small order. */
function isStrictEncoding(bytes) {
  // The prime is 2^255 - 19, so that only values of which nearly every bit is set exceed it.
  const isLarge = (bytes[31] & 127) === 127 && bytes.subarray(1, 31).every((byte) => byte === 255);
  return !(isLarge && bytes[0] >= 0xed) && !refusedPoints.has(toHex(bytes));
}

/** Points are in extended coordinates: x = X/Z, y = Y/Z, and T = XY/Z. */
function addPoints(p, q) {
  const a = modulo((p.Y - p.X) * (q.Y - q.X));
  const b = modulo((p.Y + p.X) * (q.Y + q.X));
  const c = modulo(2n * curveD * modulo(p.T * q.T));
  const d = 2n * p.Z * q.Z;
  const [e, f, g, h] = [b - a, d - c, d + c, b + a];
  return { X: modulo(e * f), Y: modulo(g * h), Z: modulo(f * g), T: modulo(e * h) };
}

const neutralPoint = { X: 0n, Y: 1n, Z: 1n, T: 0n };

/** Decodes a point, or returns null if the bytes are none. */
function decodePoint(bytes) {
  const encoded = bigFromLittle(bytes);
  const y = encoded & (2n ** 255n - 1n);
  const u = modulo(y * y - 1n);
  const v = modulo(curveD * y * y + 1n);
  const v3 = modulo(v * v * v);
  let x = modulo(u * v3 * power(u * v3 * v3 * v, (fieldPrime - 5n) / 8n));
  const square = modulo(v * x * x);
  if (square === modulo(-u)) x = modulo(x * rootOfMinusOne);
  else if (square !== u) return null;
  if (x & 1n ? !(encoded >> 255n) : encoded >> 255n) x = modulo(-x);
  return { X: x, Y: y, Z: 1n, T: modulo(x * y) };
}

function encodePoint(point) {
  const inverse = invert(point.Z);
  const y = modulo(point.Y * inverse);
  const x = modulo(point.X * inverse);
  const hex = (y | ((x & 1n) << 255n)).toString(16).padStart(64, '0');
  return fromHex(hex).reverse();
}

/** Returns the multiples of a point by each digit of a number to the base 64. */
function tableOfMultiples(point) {
  const table = [];
  let step = point;
  for (let digit = 0; digit < 43; digit++) {
    const row = [neutralPoint];
    for (let i = 1; i < 64; i++) row.push(addPoints(row[i - 1], step));
    table.push(row);
    step = addPoints(row[63], step);
  }
  return table;
}

function multiplyByTable(table, number) {
  let sum = neutralPoint;
  for (let digit = 0; number > 0n; digit++, number >>= 6n) {
    const value = Number(number & 63n);
    if (value) sum = addPoints(sum, table[digit][value]);
  }
  return sum;
}

let tableOfBase = null;
const tablesOfKeys = new Map();

/** Verifies without the cofactor, for browsers that do not have Ed25519. */
function verifyEd25519Plain(key, signature, message) {
  const keyHex = toHex(key);
  if (!tablesOfKeys.has(keyHex)) {
    const point = decodePoint(key);
    // The table is of the negative key, so that the equation is one sum.
    tablesOfKeys.set(
      keyHex,
      point && tableOfMultiples({ ...point, X: modulo(-point.X), T: modulo(-point.T) }),
    );
  }
  const tableOfKey = tablesOfKeys.get(keyHex);
  if (!tableOfKey) return false;
  tableOfBase ??= tableOfMultiples(decodePoint(fromHex('58' + '66'.repeat(31))));
  const r = signature.subarray(0, 32);
  const s = bigFromLittle(signature.subarray(32));
  const k = bigFromLittle(sha512(concatBytes(r, key, message))) % groupOrder;
  const sum = addPoints(multiplyByTable(tableOfBase, s), multiplyByTable(tableOfKey, k));
  return equalBytes(encodePoint(sum), r);
}

/**
 * `useSubtle`: the test switches this off to exercise the plain code. `pause`: lets a browser draw
 * the page between parts of long work.
 */
const settings = { useSubtle: true, pause: async () => {} };
const importedKeys = new Map();

/** Verifies an ed25519 signature as strictly as section 3 requires. */
async function verifyEd25519(key, signature, message) {
  if (key.length !== 32 || signature.length !== 64) return false;
  // The order is above 2^252, so that most numbers need no comparison.
  if (signature[63] >= 16 && bigFromLittle(signature.subarray(32)) >= groupOrder) return false;
  if (!isStrictEncoding(key) || !isStrictEncoding(signature.subarray(0, 32))) return false;
  const subtle = settings.useSubtle ? globalThis.crypto?.subtle : undefined;
  if (!subtle) return verifyEd25519Plain(key, signature, message);
  const name = 'Ed25519';
  const keyHex = toHex(key);
  if (!importedKeys.has(keyHex)) {
    const imported = subtle.importKey('raw', key, { name }, false, ['verify']);
    importedKeys.set(
      keyHex,
      imported.catch(() => null),
    );
  }
  const imported = await importedKeys.get(keyHex);
  // Older browsers have no Ed25519.
  if (!imported) return verifyEd25519Plain(key, signature, message);
  return subtle.verify({ name }, imported, signature, message).catch(() => false);
}

// ---- JSON (sections 1 and 14) ----

const maxInteger = Number.MAX_SAFE_INTEGER;
const limits = {
  depth: 127,
  // The limit on weight allows 134,217,728 and 8 for each byte, and a byte weighs less than 128.
  unweighed: 1024 * 1024,
  commit: 32 * 1024 * 1024,
  folder: 32 * 1024 * 1024,
  file: 32 * 1024 * 1024,
  manifest: 16 * 1024 * 1024,
  pipeline: 256 * 1024,
  ruleDocument: 16 * 1024 * 1024,
  path: 4096,
  containers: 131072,
  commas: 1048576,
  chain: 64 * 1024 * 1024,
  pack: 256 * 1024 * 1024,
  packRatio: 1024,
  exceptions: 64,
  pathspecs: 128 * 1024,
  invalidCommits: 100,
};

/** A number that is not written as an integer in digits alone, or that is compared exactly. */
class WrittenNumber {
  constructor(text) {
    this.text = text;
  }
}

const isObject = (value) =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof WrittenNumber);

const scalarPattern = /true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const jsonWords = new Map([
  ['true', true],
  ['false', false],
  ['null', null],
]);
// With the flag `u`, only a surrogate without its partner is a surrogate.
const loneSurrogate = /\p{Surrogate}/u;

/** Reads JSON as strictly as section 14 requires. Objects have no prototype. */
class JsonReader {
  constructor(text, exactNumbers) {
    this.text = text;
    this.at = 0;
    this.depth = 0;
    this.containers = 0;
    this.commas = 0;
    this.exactNumbers = exactNumbers;
  }

  readWhole() {
    const value = this.readValue();
    this.skipBlanks();
    ensure(this.at === this.text.length, 'not JSON: there is text after the value');
    return value;
  }

  skipBlanks() {
    while (' \n\r\t'.includes(this.text[this.at] ?? 'end')) this.at++;
  }

  /** Passes a character, if it is the next one behind blanks. */
  take(character) {
    this.skipBlanks();
    if (this.text[this.at] !== character) return false;
    this.at++;
    return true;
  }

  readValue() {
    this.skipBlanks();
    const first = this.text[this.at];
    if (first === '"') return this.readString();
    if (first !== '{' && first !== '[') return this.readScalar();
    this.containers++;
    ensure(++this.depth <= limits.depth, 'more than 127 arrays and objects inside one another');
    const value = first === '{' ? this.readObject() : this.readArray();
    this.depth--;
    return value;
  }

  readScalar() {
    scalarPattern.lastIndex = this.at;
    const text = scalarPattern.exec(this.text)?.[0];
    ensure(text !== undefined, `not JSON at character ${this.at}`);
    this.at += text.length;
    if (jsonWords.has(text)) return jsonWords.get(text);
    if (this.exactNumbers) return new WrittenNumber(text);
    const value = Number(text);
    ensure(Math.abs(value) < 2 ** 53, 'a number that is too large');
    return /^-?[0-9]+$/.test(text) && text !== '-0' ? value : new WrittenNumber(text);
  }

  readString() {
    const start = this.at++;
    for (; this.text[this.at] !== '"'; this.at++) {
      if (this.text[this.at] === '\\') this.at++;
      ensure(this.at < this.text.length, 'not JSON: a string that does not end');
    }
    const text = parseOrNull(this.text.slice(start, ++this.at));
    ensure(text !== null, 'not JSON: a string with an impossible character or escape');
    ensure(!loneSurrogate.test(text), 'a lone surrogate');
    return text;
  }

  readArray() {
    const values = [];
    this.readMembers(']', () => values.push(this.readValue()));
    return values;
  }

  readObject() {
    const members = Object.create(null);
    this.readMembers('}', () => {
      this.skipBlanks();
      ensure(this.text[this.at] === '"', 'not JSON: a key that is no string');
      const key = this.readString();
      ensure(!(key in members), 'a duplicate key');
      ensure(this.take(':'), 'not JSON: a key without a value');
      members[key] = this.readValue();
    });
    return members;
  }

  readMembers(end, readMember) {
    this.at++;
    if (this.take(end)) return;
    readMember();
    for (; this.take(','); this.commas++) readMember();
    ensure(this.take(end), 'not JSON: no comma');
  }
}

function parseOrNull(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function weightOf(value) {
  if (typeof value === 'string') return 64 + byteLength(value);
  if (Array.isArray(value)) {
    return 32 + (value.length ? 96 : 0) + value.reduce((sum, each) => sum + weightOf(each), 0);
  }
  if (!isObject(value)) return 32;
  const keys = Object.keys(value);
  return keys.reduce(
    (sum, key) => sum + byteLength(key) + 128 + weightOf(value[key]),
    32 + (keys.length ? 512 : 0),
  );
}

/**
 * Reads the bytes of a JSON. `exactNumbers` keeps every number as it is written, and sets no bound
 * on numbers and weight; `containers` and `commas` bound what section 15 bounds.
 */
function readJson(bytes, { size, exactNumbers = false, containers, commas } = {}) {
  ensure(size === undefined || bytes.length <= size, 'too large');
  const text = toText(bytes);
  ensure(!text.startsWith('\ufeff'), 'a byte order mark');
  const reader = new JsonReader(text, exactNumbers);
  const value = reader.readWhole();
  ensure(
    containers === undefined || reader.containers <= containers,
    'too many arrays and objects',
  );
  ensure(commas === undefined || reader.commas <= commas, 'too many values');
  if (!exactNumbers && bytes.length > limits.unweighed) {
    ensure(weightOf(value) <= 8 * bytes.length + 134217728, 'too heavy');
  }
  return value;
}

/** Reads JSON, or returns undefined if it is not readable. */
const tryJson = (bytes, options) => tryToRead(() => readJson(bytes, options));

/** Returns the canonical JSON (RFC 8785) of a value. */
function canonical(value) {
  // Strings are written as JavaScript writes them.
  if (typeof value === 'string') return JSON.stringify(value);
  if (value instanceof WrittenNumber) return String(Number(value.text));
  if (Array.isArray(value)) return '[' + value.map(canonical).join(',') + ']';
  if (!isObject(value)) return String(value);
  let text = '';
  for (const key of Object.keys(value).sort())
    text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${canonical(value[key])}`;
  return `{${text}}`;
}

/** Returns an object of those of the fields that a value has. */
const pickFields = (value, fields) =>
  Object.fromEntries(
    fields.filter((field) => field in value).map((field) => [field, value[field]]),
  );

const canonicalBytes = (value) => toBytes(canonical(value));
const canonicalDigest = (value) => digestOf(canonicalBytes(value));

/** Returns true if both values are absent, or both are the same JSON. */
function sameJson(a, b) {
  if (a === undefined || b === undefined) return a === b;
  return canonical(a) === canonical(b);
}

// ---- names (section 1) ----

const startsOrEndsWithSpace = /^\p{White_Space}|\p{White_Space}$/u;
const controlCharacter = /\p{Cc}/u;

/** The most UTF-16 units of any name. The time of what follows grows faster than the length. */
const longestName = 1024;

function isName(value) {
  return (
    typeof value === 'string' &&
    value !== '' &&
    value.length <= longestName &&
    value.normalize('NFC') === value &&
    !controlCharacter.test(value) &&
    !startsOrEndsWithSpace.test(value)
  );
}

/** Encodes a name as one segment of a ref or of a path in a tree. */
function encodeSegment(name) {
  return encodeURIComponent(name)
    .replace(/[!'()*~]/g, (character) => '%' + toHex(toBytes(character)).toUpperCase())
    .replace(/^\.|\.$|\.(?=lock$)/gi, '%2E')
    .replaceAll('..', '.%2E');
}

const encodePath = (path) => path.split('/').map(encodeSegment).join('/');

/** Decodes a segment, or returns null unless it is exactly the encoding of the decoded name. */
function decodeSegment(segment) {
  try {
    const name = decodeURIComponent(segment);
    return segment !== '' && encodeSegment(name) === segment ? name : null;
  } catch {
    return null;
  }
}

const isItemName = (value) =>
  isName(value) &&
  byteLength(value) <= 128 &&
  !value.startsWith('@') &&
  encodeSegment(value).length <= 200;

const isRunName = (value) => isItemName(value) && !value.includes('/') && !value.startsWith('-');

/** Returns true if git refuses the segment on some system, because it means `.git` there. */
function isSpellingOfGit(segment) {
  const visible = segment.replace(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, '');
  const name = visible.split(':')[0].replace(/[. ]+$/, '');
  return /^(?:\.git|git~1)$/.test(name.replace(/[A-Z]/g, (letter) => letter.toLowerCase()));
}

function isPath(value) {
  if (!isName(value) || value.includes('\\')) return false;
  const segments = value.split('/');
  const areValid = segments.every(
    (segment) =>
      segment !== '' &&
      segment !== '.' &&
      segment !== '..' &&
      !isSpellingOfGit(segment) &&
      encodeSegment(segment).length <= 200,
  );
  return areValid && encodePath(value).length <= 1024;
}

const isDocumentName = (value) => isPath(value) && byteLength(value) <= 128;

const foldCase = (text) => text.toLowerCase().normalize('NFC');

/** Returns the folders above a path. */
function foldersAbove(path) {
  const segments = path.split('/');
  return segments.slice(1).map((_, i) => segments.slice(0, i + 1).join('/'));
}

/** Returns true if two of the paths clash. */
function haveClash(paths) {
  const folded = [...paths].map(foldCase);
  const all = new Set(folded);
  return (
    all.size < folded.length || folded.some((path) => foldersAbove(path).some((f) => all.has(f)))
  );
}

// ---- schemas ----

const versionNumber = '(0|[1-9][0-9]*)';
const versionPattern = new RegExp(
  `^${versionNumber}\\.${versionNumber}\\.${versionNumber}` +
    '(?:-([0-9A-Za-z.-]+))?(?:\\+([0-9A-Za-z.-]+))?$',
);
const maxVersionNumber = 2n ** 64n - 1n;

const areIdentifiers = (text, numbersMayHaveZeros) =>
  text.split('.').every((id) => id !== '' && (numbersMayHaveZeros || !/^0[0-9]+$/.test(id)));

/** Reads a semantic version, or returns null. */
function readVersion(text) {
  const match = typeof text === 'string' ? versionPattern.exec(text) : null;
  if (!match) return null;
  const [major, minor, patch] = match.slice(1, 4).map(BigInt);
  if ([major, minor, patch].some((number) => number > maxVersionNumber)) return null;
  if (match[4] !== undefined && !areIdentifiers(match[4], false)) return null;
  if (match[5] !== undefined && !areIdentifiers(match[5], true)) return null;
  return { major, minor, patch, pre: match[4] ?? '' };
}

const isSchemaId = (value) =>
  typeof value === 'string' &&
  value !== '' &&
  byteLength(value) <= 128 &&
  !/[@\p{White_Space}\p{Cc}]/u.test(value);

/** Reads `id@version` and completes the version with zeros, or returns null. */
function readSchema(text) {
  if (typeof text !== 'string' || text.split('@').length !== 2) return null;
  const [id, written] = text.split('@');
  const zeros = /^[0-9]+$/.test(written) ? '.0.0' : /^[0-9]+\.[0-9]+$/.test(written) ? '.0' : '';
  const version = written + zeros;
  return isSchemaId(id) && readVersion(version) ? { id, version } : null;
}

function comparePre(a, b) {
  if (a === b) return 0;
  if (a === '' || b === '') return a === '' ? 1 : -1;
  const [left, right] = [a.split('.'), b.split('.')];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    if (left[i] === right[i]) continue;
    const [x, y] = [left[i], right[i]].map((id) => (/^[0-9]+$/.test(id) ? BigInt(id) : null));
    if (x !== null && y !== null) return x < y ? -1 : 1;
    if (x !== null || y !== null) return x !== null ? -1 : 1;
    return left[i] < right[i] ? -1 : 1;
  }
  return left.length - right.length;
}

const comparatorNumber = '(0|[1-9][0-9]*|[*xX])';
const comparatorPattern = new RegExp(
  '^ *(\\^|~|=|>=|<=|>|<)? *(0|[1-9][0-9]*)' +
    `(?:\\.${comparatorNumber}(?:\\.${comparatorNumber}` +
    '(?:-([0-9A-Za-z.-]+))?(?:\\+([0-9A-Za-z.-]+))?)?)? *$',
);

/** Reads a requirement as the crate `semver` does, or returns null. */
function readRequirement(text) {
  if (/^ *[*xX] *$/.test(text)) return [];
  const parts = text.split(',');
  if (parts.length > 32) return null;
  const comparators = [];
  for (const part of parts) {
    const match = comparatorPattern.exec(part);
    if (!match) return null;
    const [, operator, major, minor, patch, pre, build] = match;
    const isWild = (number) => number !== undefined && /[*xX]/.test(number);
    if (isWild(minor) && patch !== undefined && !isWild(patch)) return null;
    if (isWild(patch) && (pre !== undefined || build !== undefined)) return null;
    if (pre !== undefined && !areIdentifiers(pre, false)) return null;
    if (build !== undefined && !areIdentifiers(build, true)) return null;
    const toNumber = (number) => (number === undefined || isWild(number) ? null : BigInt(number));
    const comparator = {
      // Without an operator, `1.*` means `=1` and `1.2` means `^1.2`.
      operator: operator ?? (isWild(minor) || isWild(patch) ? '=' : '^'),
      major: BigInt(major),
      minor: toNumber(minor),
      patch: toNumber(patch),
      pre: pre ?? '',
    };
    const numbers = [comparator.major, comparator.minor, comparator.patch];
    if (numbers.some((number) => number !== null && number > maxVersionNumber)) return null;
    comparators.push(comparator);
  }
  return comparators;
}

/** Compares the numbers that a comparator names and, if it names all, what is behind them. */
function compareVersions(version, wanted) {
  for (const part of ['major', 'minor', 'patch']) {
    if (wanted[part] === null) return version.pre === '' ? 0 : NaN;
    if (version[part] !== wanted[part]) return version[part] < wanted[part] ? -1 : 1;
  }
  return comparePre(version.pre, wanted.pre);
}

function meetsComparator(version, wanted) {
  const { operator, major, minor } = wanted;
  const order = compareVersions(version, wanted);
  const isSame = (...parts) =>
    parts.every((part) => wanted[part] === null || version[part] === wanted[part]);
  if (operator === '~') return isSame('major', 'minor') && order >= 0;
  if (operator !== '^') return compareBy[operator === '=' ? '==' : operator](order);
  const fixed = ['major', ...(major === 0n ? ['minor', ...(minor === 0n ? ['patch'] : [])] : [])];
  return isSame(...fixed) && !(order < 0);
}

/** Reads the schema that a need wants, `id@requirement` or `id`, or returns null. */
function readWantedSchema(text) {
  if (typeof text !== 'string') return null;
  const at = text.indexOf('@');
  const id = at < 0 ? text : text.slice(0, at);
  const comparators = at < 0 ? null : readRequirement(text.slice(at + 1));
  if (!isSchemaId(id) || (at >= 0 && !comparators)) return null;
  return { id, comparators };
}

/** Returns true if a document of the schema {id, version} satisfies the wanted schema. */
function satisfiesSchema(schema, wantedText) {
  const wanted = readWantedSchema(wantedText);
  if (!schema || schema.id !== wanted.id) return false;
  if (wanted.comparators === null) return true;
  const version = readVersion(schema.version);
  if (!wanted.comparators.every((comparator) => meetsComparator(version, comparator))) return false;
  return (
    version.pre === '' ||
    wanted.comparators.some(
      (c) =>
        c.pre !== '' &&
        c.major === version.major &&
        c.minor === version.minor &&
        c.patch === version.patch,
    )
  );
}

// ---- git's objects: inflate, packs and bundles ----

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
class Inflater {
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

/** Reads bytes from a place on. Throws FormatError at their end. */
class ByteReader {
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
function readPack(pack, format) {
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

/** The refs and objects of a bundle. `filtered` says that objects were left out on purpose. */
class Store {
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
    return this.filtered && !this.objects.has(name);
  }
}

const isKeyFile = (name) => /^SHA256:[A-Za-z0-9+/]{43}(?:\.[0-9a-f]{12})?$/.test(name);

/** The folders of refs that a bundle may have, with the names that are allowed in each. */
const refFolders = {
  runs: isRunName,
  threads: isRunName,
  logs: isKeyFile,
  archives: (name) => isKeyFile(name) && name.includes('.'),
  transcripts: isRunName,
  stamps: isRunName,
  'thread-stamps': isRunName,
};

/** Adds a ref of a bundle. Throws FormatError if it could be mistaken for another (section 2). */
function addRef(store, ref, name) {
  const [, folder, segment] = /^refs\/handoff\/([^/]*)\/(.*)$/s.exec(ref) ?? [];
  if (folder === undefined || !Object.hasOwn(refFolders, folder)) {
    store.otherRefs.push(ref);
    return;
  }
  const decoded = decodeSegment(segment);
  ensure(decoded !== null && refFolders[folder](decoded), 'a ref that names no run, thread or log');
  store.refs.set(ref, name);
}

const longestHead = 16 * 1024 * 1024;
const mostRefs = 50000;

/**
 * Reads the head of a bundle (section 2) and returns the bytes of its pack. Throws FormatError if
 * two readers could understand it differently.
 */
function readBundleHead(store, bytes) {
  ensure(toLatin(bytes.subarray(0, 13)).startsWith('# v'), 'not a git bundle of version 2 or 3');
  const end = endOfHead(bytes.subarray(0, longestHead));
  ensure(end > 0, 'a bundle whose head does not end');
  const [first, ...lines] = toText(bytes.subarray(0, end)).split('\n');
  const version = /^# v([23]) git bundle$/.exec(first)?.[1];
  ensure(version !== undefined, 'not a git bundle of version 2 or 3');
  const isCapability = (line) => line.startsWith('@');
  const at = lines.findIndex((line) => !isCapability(line));
  const capabilities = new Set(at < 0 ? lines : lines.slice(0, at));
  ensure(version === '3' || capabilities.size === 0, 'a bundle of version 2 with a capability');
  store.setCapabilities([...capabilities].map((line) => line.slice(1)));
  const refs = at < 0 ? [] : lines.slice(at);
  ensure(refs.length <= mostRefs, 'a bundle with too many refs');
  const names = new Set();
  for (const line of refs) {
    const [, needed, name, ref] = /^(-?)([0-9a-f]+)(?: (.*))?$/s.exec(line) ?? [];
    ensure(name?.length === (store.format === 'sha1' ? 40 : 64), 'a line that is no ref');
    ensure(needed === '', 'a bundle that needs objects of a repository');
    ensure(ref, 'a ref without a name');
    ensure(!names.has(ref), 'a ref that occurs twice');
    names.add(ref);
    addRef(store, ref, name);
  }
  return bytes.subarray(end + 2);
}

/** Returns where the first empty line begins, less one; -1 without one. */
function endOfHead(bytes) {
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1))
    if (bytes[at + 1] === 10) return at;
  return -1;
}

/** Reads a git bundle of version 2 or 3. Throws FormatError if git could not read it. */
async function readBundle(bytes) {
  const store = new Store();
  ensure(bytes.length < 0x7fffffff, 'a bundle that is too large');
  const pack = readBundleHead(store, bytes);
  store.objects = readPack(pack, store.format);
  for (const name of store.refs.values())
    ensure(store.objects.has(name), 'a ref that names a missing object');
  return store;
}

// ---- SSH signatures (section 3) ----

function sshString(bytes) {
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, bytes.length);
  return concatBytes(length, bytes);
}

const fingerprintOfWire = (wire) => 'SHA256:' + toBase64(sha256(wire), false);
const armourBegin = '-----BEGIN SSH SIGNATURE-----';
const armourEnd = '-----END SSH SIGNATURE-----';

/** Reads an armoured SSHSIG, or returns null unless it has exactly the form of section 3. */
function readSshSignature(armour) {
  const lines = armour.split('\n');
  if (lines.shift() !== armourBegin || lines.pop() !== armourEnd) return null;
  const last = lines.at(-1);
  if (!last || last.length > 70 || lines.slice(0, -1).some((line) => line.length !== 70))
    return null;
  const raw = fromBase64(lines.join(''));
  if (!raw || toLatin(raw.subarray(0, 6)) !== 'SSHSIG') return null;
  return tryToRead(() => readSignatureBytes(new ByteReader(raw, 6))) ?? null;
}

function readSignatureBytes(reader) {
  ensure(reader.takeUint32() === 1, 'another version');
  const wire = reader.takeString();
  const [namespace, reserved, hash] = [0, 1, 2].map(() => toLatin(reader.takeString()));
  const signature = new ByteReader(reader.takeString());
  ensure(reader.isAtEnd && namespace === 'git' && reserved === '', 'another purpose');
  ensure(hash === 'sha512' || hash === 'sha256', 'another hash');
  const key = readEd25519Key(wire);
  ensure(key && toLatin(signature.takeString()) === 'ssh-ed25519', 'another kind of key');
  const bytes = signature.takeString();
  ensure(signature.isAtEnd, 'more bytes than a signature');
  return { key, wire, hash, signature: bytes };
}

/** Returns the 32 bytes of an ed25519 key in SSH's encoding, or null. */
function readEd25519Key(wire) {
  const reader = new ByteReader(wire);
  if (toLatin(reader.takeString()) !== 'ssh-ed25519') return null;
  const key = reader.takeString();
  return reader.isAtEnd && key.length === 32 ? key : null;
}

async function hashForSignature(hash, message) {
  if (hash === 'sha256') return sha256(message);
  if (settings.useSubtle && globalThis.crypto?.subtle) {
    return new Uint8Array(await globalThis.crypto.subtle.digest('SHA-512', message));
  }
  return sha512(message);
}

/** Returns the fingerprint of the key that signed the message, or null. */
async function signerOf(armour, message) {
  const read = readSshSignature(armour);
  if (!read) return null;
  const digest = await hashForSignature(read.hash, message);
  const signed = concatBytes(
    toBytes('SSHSIG'),
    ...['git', '', read.hash].map((text) => sshString(toBytes(text))),
    sshString(digest),
  );
  const holds = await verifyEd25519(read.key, read.signature, signed);
  return holds ? fingerprintOfWire(read.wire) : null;
}

// ---- checks of values ----

const isString = (value) => typeof value === 'string';
const isText = (value) => typeof value === 'string' && value !== '';
const isBoolean = (value) => typeof value === 'boolean';
const isTrue = (value) => value === true;

function isInteger(value, least = 0, most = maxInteger) {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most;
}

const between = (least, most) => (value) => isInteger(value, least, most);
const isCount = between(0);
const isInt32 = between(-(2 ** 31), 2 ** 31 - 1);
const isAttempt = between(0, 2 ** 32 - 1);
const isPositive = between(1);

function isFingerprint(value) {
  if (!isString(value) || !/^SHA256:[A-Za-z0-9+/]{43}$/.test(value)) return false;
  return fromBase64(value.slice(7) + '=') !== null;
}

const oneOf =
  (...words) =>
  (value) =>
    words.includes(value);
const matches = (pattern) => (value) => isString(value) && pattern.test(value);

const allOf =
  (...checks) =>
  (value) =>
    checks.every((check) => check(value));
const anyOf =
  (...checks) =>
  (value) =>
    checks.some((check) => check(value));

/** An array of so many values that are checked. */
const arrayOf =
  (check, least = 0, most = Infinity) =>
  (value) =>
    Array.isArray(value) &&
    value.length >= least &&
    value.length <= most &&
    value.every((each) => check(each));

/** An object that has exactly one of the fields. */
const hasOneOf =
  (...fields) =>
  (value) =>
    fields.filter((field) => field in value).length === 1;

const isDigest = matches(/^sha256:[0-9a-f]{64}$/);
const isObjectId = matches(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/);

/** An object whose keys and values are checked. */
const mapOf = (checkKey, checkValue) => (value) =>
  isObject(value) && Object.keys(value).every((key) => checkKey(key) && checkValue(value[key]));

const notEmpty = (check) => (value) => check(value) && Object.keys(value).length > 0;

/** An object of exactly these fields; a name that ends with `?` may be absent. */
function shape(fields) {
  const checks = Object.create(null);
  const required = [];
  for (const [name, check] of Object.entries(fields)) {
    const optional = name.endsWith('?');
    checks[optional ? name.slice(0, -1) : name] = check;
    if (!optional) required.push(name);
  }
  return (value) =>
    isObject(value) &&
    required.every((name) => name in value) &&
    Object.keys(value).every((name) => name in checks && checks[name](value[name]));
}

/** Returns a time in seconds since 1970, rounded down, or null if it is no time. */
function secondsOf(text) {
  if (!isString(text) || !/^[0-9]/.test(text)) return null;
  const date = new Date(text);
  const isReal = !isNaN(date) && date >= 0 && date.toISOString() === text;
  return isReal ? Math.floor(date / 1000) : null;
}

const isTime = (value) => secondsOf(value) !== null;

// ---- entries (sections 3 and 4) ----

const roles = ['own', 'work', 'approve', 'document', 'seal'];

const isProductKey = (key) =>
  key === 'patch' ||
  (key.startsWith('outputs/') && isPath(key.slice(8))) ||
  (key.startsWith('documents/') && isDocumentName(key.slice(10)));
const productFields = { sha256: isDigest, oid: isObjectId, size: isCount };
const isProduct = shape(productFields);
const isSchemaObject = shape({ id: isSchemaId, version: (text) => readVersion(text) !== null });
const isWantedSchema = (text) => readWantedSchema(text) !== null;

const isSelector = anyOf(
  shape({ kind: oneOf('patch') }),
  shape({ kind: oneOf('output'), path: isPath }),
  shape({ kind: oneOf('document'), name: isDocumentName, 'schema?': isWantedSchema }),
);

const isCheckpointName = matches(/^(?:0|[1-9][0-9]*)-[0-9a-f]{12}$/);

/** Reads a source `@run/…` or `@thread/…` (section 14). */
function isElsewhereSource(value) {
  const match = isString(value) ? /^@(run|thread)\/(.+)$/s.exec(value) : null;
  if (!match) return false;
  const parts = match[2].split('/').map(decodeSegment);
  if (parts.includes(null) || parts.length < 2 || parts.length > 3) return false;
  const [name, last] = parts.slice(-2);
  if (!isRunName(name) || (parts.length === 3 && !isPath(parts[0]))) return false;
  return match[1] === 'run' ? isItemName(last) : last === 'latest' || isCheckpointName(last);
}

const isOwnSource = anyOf(oneOf('@artifacts', '@documents'), isItemName);
const isSource = anyOf(isOwnSource, isElsewhereSource);

const isExit = shape({ 'code?': isInt32, 'signal?': isInt32 });
const isBytesClaim = shape({ sha256: isDigest, size: isCount });
const isVerdict = shape({ passed: isBoolean, by: oneOf('command', 'self') });
const isBlocks = arrayOf(
  shape({
    ordinal: isCount,
    kind: oneOf('agent', 'script', 'capture'),
    status: oneOf('done', 'failed', 'timed-out', 'interrupted'),
    'exit?': isExit,
    durationMs: isCount,
    'verify?': isVerdict,
  }),
  1,
);
const isAbout = mapOf(isSource, mapOf(isProductKey, isDigest));
const isInputRefs = mapOf(isPath, shape({ from: isSource, select: isSelector, ref: isDigest }));
const isCheckRun = shape({
  argv: arrayOf(isString),
  'exit?': isExit,
  durationMs: isCount,
  output: isBytesClaim,
  'restored?': isPositive,
  'heldOut?': isDigest,
});
const isPrice = matches(/^(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{0,8}[1-9])?$/);
const isUsage = notEmpty(
  shape({
    'inputTokens?': isCount,
    'outputTokens?': isCount,
    'cachedTokens?': isCount,
    'costUsd?': isPrice,
  }),
);
const isClaims = notEmpty(
  shape({
    'model?': isString,
    'session?': isString,
    'usage?': isUsage,
    'permissionDenials?': isPositive,
  }),
);

/** An array that is sorted by the bytes of its names, each of them once. */
const inOrder =
  (check, nameOf = (each) => each) =>
  (value) =>
    arrayOf(check)(value) &&
    value.every((each, i) => i === 0 || compareNames(nameOf(value[i - 1]), nameOf(each)) < 0);

/** The sorted rules of a manifest. */
const isSortedRules = (value) =>
  arrayOf(anyOf(isString, shape({ except: inOrder(isString) })))(value) &&
  value.every((each, i) => i === 0 || compareRules(value[i - 1], each) < 0);

const isProtectedChanges = notEmpty(
  inOrder(
    shape({ path: isString, change: oneOf('added', 'modified', 'deleted', 'type') }),
    (change) => change.path,
  ),
);
const isRoleList = (value) =>
  arrayOf(oneOf(...roles), 1)(value) &&
  value.every((role, i) => i === 0 || roles.indexOf(value[i - 1]) < roles.indexOf(role));
const isPipelineDigests = notEmpty(mapOf(isString, isDigest));

const isPacketResult = oneOf('operational', 'critical');
const threadContent = {
  state: isProduct,
  'summary?': isString,
  'packet?': isProduct,
  'worktree?': shape({
    tree: isObjectId,
    ignored: arrayOf(shape({ path: isString, 'sha256?': isDigest })),
  }),
  'base?': isObjectId,
};

const isDriver = matches(/^[0-9a-f]{32}$/);
const isDriverText = (value) => isString(value) && byteLength(value) <= 255;

const ending = {
  item: isItemName,
  attempt: isAttempt,
};
const interruption = {
  ...ending,
  reason: oneOf('failure', 'crash', 'operator', 'lost'),
  'detail?': isString,
  'exit?': isExit,
  'durationMs?': isCount,
  'transcript?': isBytesClaim,
  'claims?': isClaims,
  'notBefore?': isTime,
  'blocks?': isBlocks,
  'driver?': isDriver,
  'taker?': isDriver,
  'because?': oneOf('silent', 'told', 'lock', 'dismissed'),
};

const kindFields = {
  'run.submitted': {
    plan: isDigest,
    artifacts: mapOf(isPath, isDigest),
    'rules?': isDigest,
    'pipelines?': isPipelineDigests,
    'imports?': notEmpty(mapOf(isString, shape({ product: isProduct, evidence: isDigest }))),
    'continues?': shape({
      run: isRunName,
      entries: isPositive,
      root: isDigest,
      evidence: isDigest,
    }),
    base: isObjectId,
    queue: isString,
    openEnded: isBoolean,
    'concurrency?': between(1, 2 ** 32 - 1),
    pattern: isString,
    writers: arrayOf(isFingerprint),
    'roles?': mapOf(isFingerprint, isRoleList),
    fanOut: isBoolean,
    objectFormat: isString,
    tool: isString,
  },
  'item.fired': {
    ...ending,
    manifest: isDigest,
    inputRefs: isInputRefs,
    'driver?': isDriver,
    'host?': isDriverText,
    'job?': isDriverText,
  },
  'item.reconciled': {
    ...ending,
    status: oneOf('done', 'failed'),
    'reason?': isString,
    'exit?': isExit,
    durationMs: isCount,
    products: mapOf(isProductKey, isProduct),
    'verify?': isVerdict,
    'check?': isCheckRun,
    'checkBefore?': isCheckRun,
    'transcript?': isBytesClaim,
    'reused?': shape({
      run: isRunName,
      item: isItemName,
      root: isDigest,
      evidence: isDigest,
      'continued?': isTrue,
    }),
    'blocks?': isBlocks,
    'summary?': isString,
    'claims?': isClaims,
    'excluded?': arrayOf(isString, 0, 100),
    'reference?': isObjectId,
    'protected?': isProtectedChanges,
    'grade?': oneOf('claimed'),
    'protectedAllowed?': isTrue,
    'protectedJudged?': isTrue,
    'driver?': isDriver,
  },
  'item.decided': {
    ...ending,
    decision: oneOf('approved', 'rejected'),
    status: oneOf('done', 'failed'),
    about: isAbout,
    by: isFingerprint,
    'message?': isString,
    'said?': isString,
  },
  'item.retried': interruption,
  'item.requeued': interruption,
  'item.skipped': { ...ending, reason: isString },
  'item.cancelled': { ...ending, reason: isString },
  'document.written': {
    name: isDocumentName,
    revision: isCount,
    'schema?': isSchemaObject,
    ...productFields,
    'previous?': isDigest,
    author: isString,
    'said?': isString,
  },
  'run.extended': {
    cause: anyOf(oneOf('actor'), shape({ rule: isItemName })),
    items: notEmpty(mapOf(isItemName, isDigest)),
    'pipelines?': isPipelineDigests,
  },
  'run.admitted': { key: isFingerprint, role: oneOf(...roles), 'first?': isDigest },
  'run.dismissed': { key: isFingerprint },
  'run.shared': { heartbeat: isCount, lostAfter: isCount },
  'run.concluded': { rule: isItemName, outcome: isString, 'detail?': isString },
  'run.closed': { reason: isString },
  'run.cancelled': { reason: isString },
  'run.sealed': {
    root: isDigest,
    entries: isCount,
    counts: mapOf(isString, isCount),
    'stopped?': notEmpty(mapOf(isItemName, isString)),
  },
  'log.submitted': { log: isFingerprint, first: isDigest },
  'log.sealed': {
    log: isFingerprint,
    root: isDigest,
    entries: isCount,
    seal: isDigest,
    commit: isObjectId,
  },
  'log.decided': {
    log: isFingerprint,
    first: isDigest,
    item: isItemName,
    decision: oneOf('approved', 'rejected'),
    about: isAbout,
    'message?': isString,
    'made?': isTime,
  },
  'log.written': {
    log: isFingerprint,
    first: isDigest,
    name: isDocumentName,
    'schema?': isSchemaObject,
    ...productFields,
    'previous?': isDigest,
    'made?': isTime,
  },
  'log.thread': { log: isFingerprint, entries: isPositive, last: isDigest },
  'thread.checkpointed': { 'run?': shape({ id: isRunName, commit: isObjectId }), ...threadContent },
  'thread.adopted': {
    adopted_from: shape({
      thread: isRunName,
      checkpoint: isCheckpointName,
      commit: isObjectId,
      sha256: isDigest,
      descriptor: isDigest,
      nonce: isString,
      signer: isFingerprint,
      acceptedUnknown: isBoolean,
      'acceptedPacket?': isPacketResult,
      'toAgent?': isString,
    }),
    ...threadContent,
  },
  'thread.forked': {
    from: shape({ thread: isRunName, checkpoint: isCheckpointName, commit: isObjectId }),
    ...threadContent,
  },
  'thread.rolled-back': { to: isCheckpointName },
  'thread.resumed': {
    checkpoint: isCheckpointName,
    'resumeToken?': isString,
    'acceptedPacket?': isPacketResult,
  },
  'archive.added': {
    runs: mapOf(isRunName, shape({ commit: isObjectId, seal: isDigest, 'stamps?': isObjectId })),
  },
};

/** Returns the header field that says what an entry of the kind is about. */
function subjectField(kind) {
  if (kind === 'log.thread' || kind.startsWith('thread.')) return 'thread';
  return kind === 'archive.added' ? 'archive' : 'run';
}

const entryShapes = Object.create(null);
for (const [kind, fields] of Object.entries(kindFields)) {
  const about = subjectField(kind);
  entryShapes[kind] = shape({
    v: oneOf(1),
    kind: isString,
    [about]: about === 'archive' ? isFingerprint : isRunName,
    seq: isCount,
    at: isTime,
    actor: isString,
    'prev?': isDigest,
    'clock?': oneOf('pinned'),
    ...fields,
  });
}

/** Returns the reason why an entry is not valid, or null. */
function faultOfEntry(entry) {
  if (!isObject(entry)) return 'it is no object';
  if (entry.v !== 1) return 'it has another version';
  if (!isString(entry.kind) || !(entry.kind in entryShapes)) return 'it has an unknown kind';
  if (!entryShapes[entry.kind](entry)) return `its fields are not those of ${entry.kind}`;
  if (entry.roles) {
    const writers = new Set(entry.writers);
    const named = Object.keys(entry.roles);
    if (named.length !== writers.size || named.some((key) => !writers.has(key))) {
      return 'its roles are not those of its writers';
    }
  }
  if (entry.kind === 'run.admitted' && 'first' in entry !== (entry.role === 'seal')) {
    return 'its role and its first do not fit';
  }
  if ('made' in entry && !(entry.made < entry.at)) return 'it was made after it was recorded';
  return null;
}

const authorOf = (actor) => actor.replace(/[\p{Cc}<>]/gu, '_');

const statusInSubject = {
  'item.fired': 'running',
  'item.retried': 'pending',
  'item.requeued': 'pending',
  'item.skipped': 'skipped',
  'item.cancelled': 'cancelled',
};

/** Returns the status of an item after an entry about it. */
const statusOf = (entry) => statusInSubject[entry.kind] ?? entry.status;

function subjectOf(entry) {
  const { kind } = entry;
  if (kind.startsWith('item.')) {
    return `${kind} ${entry.item} #${entry.attempt}: ${statusOf(entry)}`;
  }
  if (kind === 'document.written') return `${kind} ${entry.name} #${entry.revision}`;
  if (kind === 'run.concluded') return `${kind} ${entry.rule}: ${entry.outcome}`;
  if (kind === 'run.extended') {
    const [first, ...others] = sortNames(Object.keys(entry.items));
    return `${kind} ${first}` + (others.length ? ` and ${others.length} more` : '');
  }
  return `${kind} ${entry[subjectField(kind)]}`;
}

// ---- commits (section 3) ----

const leafHash = (bytes) => sha256(concatBytes(Uint8Array.of(0), bytes));
const hashText = (hash) => 'sha256:' + toHex(hash);

function indexOfBlankLine(bytes, from = 0) {
  for (let at = bytes.indexOf(10, from); at >= 0; at = bytes.indexOf(10, at + 1)) {
    if (bytes[at + 1] === 10) return at;
  }
  return -1;
}

/**
 * A commit of a chain. `entry` is null if it carries no valid entry; `fault` then says why.
 * `signer` is the fingerprint of the key that signed it, or null, after `checkSignatures`.
 */
class Commit {
  constructor(bytes, format, name = null) {
    this.name = name;
    this.bytes = bytes;
    this.format = format;
    this.tree = null;
    this.parents = [];
    this.entry = null;
    this.fault = null;
    this.armour = null;
    this.signer = null;
    try {
      this.read();
    } catch (error) {
      if (!(error instanceof FormatError)) throw error;
      this.entry = null;
      this.fault = error.message;
    }
  }

  read() {
    const headEnd = indexOfBlankLine(this.bytes);
    ensure(headEnd >= 0, 'the commit has no message');
    const head = toLatin(this.bytes.subarray(0, headEnd)).replace(/\n /g, '\0').split('\n');
    const nameLength = this.format === 'sha1' ? 40 : 64;
    const objectLine = new RegExp(`^(tree|parent) ([0-9a-f]{${nameLength}})$`);
    const signatureHeader = this.format === 'sha1' ? 'gpgsig ' : 'gpgsig-sha256 ';
    const treeLine = objectLine.exec(head[0]);
    ensure(treeLine?.[1] === 'tree', 'the commit names no tree');
    this.tree = treeLine[2];
    for (const line of head.slice(1)) {
      const parentLine = objectLine.exec(line);
      if (parentLine?.[1] !== 'parent') break;
      this.parents.push(parentLine[2]);
    }
    const signatureLine = head.find((line) => line.startsWith(signatureHeader));
    if (signatureLine) {
      this.armour = signatureLine.slice(signatureHeader.length).replaceAll('\0', '\n');
    }
    ensure(this.bytes.length <= limits.commit, 'the commit is too large');
    const subjectEnd = indexOfBlankLine(this.bytes, headEnd + 2);
    const isMessage = subjectEnd >= 0 && this.bytes.at(-1) === 10;
    ensure(isMessage, 'the message is no subject and entry');
    this.readEntry(this.bytes.subarray(subjectEnd + 2, -1));
    this.compareHead(this.bytes.subarray(0, subjectEnd + 2), signatureHeader);
  }

  readEntry(bytes) {
    const { containers, commas } = limits;
    this.entry = readJson(bytes, { containers, commas });
    const fault = faultOfEntry(this.entry);
    ensure(fault === null, `the entry is not valid: ${fault}`);
    ensure(canonical(this.entry) === toText(bytes), 'the entry is not canonical');
    this.leaf = leafHash(bytes);
    this.hash = hashText(this.leaf);
    this.seconds = secondsOf(this.entry.at);
  }

  /** Requires that everything before the entry is what the entry makes. */
  compareHead(bytes, signatureHeader) {
    const who = (name) => `${name} <handoff@localhost> ${this.seconds} +0000\n`;
    const head = [
      `tree ${this.tree}\n`,
      ...this.parents.map((parent) => `parent ${parent}\n`),
      `author ${who(authorOf(this.entry.actor))}`,
      `committer ${who('git-handoff')}`,
    ].join('');
    const signature =
      this.armour === null ? '' : signatureHeader + this.armour.replaceAll('\n', '\n ') + '\n';
    const expected = `${head}${signature}\n${subjectOf(this.entry)}\n\n`;
    ensure(toText(bytes) === expected, 'the commit is not what its entry makes');
    // The signature covers the commit without its header.
    const place = byteLength(head);
    this.signed = concatBytes(
      this.bytes.subarray(0, place),
      this.bytes.subarray(place + signature.length),
    );
  }
}

/** Sets the signer of each commit that carries an entry. */
async function checkSignatures(commits) {
  await Promise.all(
    commits.map(async (commit) => {
      if (!commit.entry || commit.armour === null || commit.isChecked) return;
      commit.isChecked = true;
      commit.signer = await signerOf(commit.armour, commit.signed);
    }),
  );
}

/** Reads a commit whose object format follows from the name of its own tree. */
async function readQuotedCommit(text, format) {
  const bytes = toBytes(text);
  const tree = /^tree ([0-9a-f]+)\n/.exec(text)?.[1] ?? '';
  const own = format ?? (tree.length === 64 ? 'sha256' : 'sha1');
  const commit = new Commit(bytes, own, objectName(own, 'commit', bytes));
  await checkSignatures([commit]);
  return commit;
}

// ---- the Merkle tree (section 7) ----

const nodeHash = (left, right) => sha256(concatBytes(Uint8Array.of(1), left, right));

/** Returns the largest power of two below n. */
function splitOf(count) {
  let split = 1;
  while (split * 2 < count) split *= 2;
  return split;
}

function merkleRoot(leaves) {
  if (leaves.length === 0) return sha256(new Uint8Array(0));
  if (leaves.length === 1) return leaves[0];
  const split = splitOf(leaves.length);
  return nodeHash(merkleRoot(leaves.slice(0, split)), merkleRoot(leaves.slice(split)));
}

/** Returns the root that an inclusion path gives, or null if the path has another length. */
function rootByInclusion(path, index, count, leaf) {
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
function rootsByConsistency(path, earlier, count, earlierRoot, isWhole = true) {
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

const digestBytes = (digest) => fromHex(digest.slice(7));

const hasDistinct = (values) => new Set(values).size === values.length;

// ---- plans, rules, pipelines and manifests (sections 5, 6 and 14) ----

/** The name of a run or thread, behind that of its remote if it has one. */
function isRemoteName(value) {
  if (!isString(value)) return false;
  const slash = value.lastIndexOf('/');
  return isRunName(value.slice(slash + 1)) && (slash < 0 || isPath(value.slice(0, slash)));
}

const isNeed = anyOf(
  shape({ run: isRemoteName, from: isItemName, select: isSelector }),
  shape({
    thread: isRemoteName,
    'from?': anyOf(oneOf('latest'), isCheckpointName),
    select: isSelector,
  }),
  allOf(
    shape({ from: isOwnSource, select: isSelector, 'apply?': isBoolean }),
    ({ from, select, apply }) => !apply || (!from.startsWith('@') && select.kind === 'patch'),
  ),
);

/** Returns needs in the form of `item.json`, where `apply` is only written if it is true. */
function normaliseNeeds(needs) {
  const normal = Object.create(null);
  for (const [key, { apply, ...need }] of Object.entries(needs))
    normal[key] = apply ? { ...need, apply } : need;
  return normal;
}

const isFromElsewhere = (need) => 'run' in need || 'thread' in need;

/** Returns the `from` of the input ref of a need. */
function sourceOf(need) {
  if (!isFromElsewhere(need)) return need.from;
  const name = need.run ?? need.thread;
  const slash = name.lastIndexOf('/');
  const parts = [name.slice(slash + 1), 'run' in need ? need.from : (need.from ?? 'latest')];
  if (slash >= 0) parts.unshift(name.slice(0, slash));
  return `@${'run' in need ? 'run' : 'thread'}/${parts.map(encodeSegment).join('/')}`;
}

/** Returns the item of the run that a need names, or null. */
const itemOfNeed = (need) =>
  isFromElsewhere(need) || need.from.startsWith('@') ? null : need.from;

/** Returns the product that a selector selects. */
function productOf(selector) {
  if (selector.kind === 'patch') return 'patch';
  return selector.kind === 'output' ? `outputs/${selector.path}` : `documents/${selector.name}`;
}

const importName = (need) => `${sourceOf(need)}:${productOf(need.select)}`;

const isPlanSchema = (text) => readSchema(text) !== null;
const isDeclared = anyOf(
  shape({ kind: oneOf('patch'), 'type?': isText }),
  shape({ kind: oneOf('output'), path: isPath, 'schema?': isPlanSchema, 'type?': isText }),
  shape({
    kind: oneOf('document'),
    name: isDocumentName,
    path: isPath,
    'schema?': isPlanSchema,
    'type?': isText,
  }),
);

function isProduces(value) {
  if (!arrayOf(isDeclared)(value)) return false;
  if (!hasDistinct(value.map(productOf))) return false;
  return !haveClash(new Set(value.filter((each) => 'path' in each).map((each) => each.path)));
}

function isPathspec(value) {
  if (!isText(value)) return false;
  let path = value;
  const long = /^:\(([^)]*)\)(.*)$/s.exec(value);
  const short = /^:([!^/]*):?(.*)$/s.exec(value);
  if (long) {
    const isRefused = (word) => word === 'exclude' || /^(?:attr|prefix)/.test(word);
    if (long[1].split(',').some((word) => isRefused(word.trim()))) return false;
    path = long[2];
  } else if (short) {
    const magic = /^:([!-/;-@[-`{-~]*)/.exec(value)[1];
    if (!magic.startsWith('(') && /[!^]/.test(magic)) return false;
    path = short[2];
  }
  return !path.startsWith('/') && !path.split('/').includes('..');
}

/** A rule that protects every file except those that its pathspecs select. */
const isException = shape({ except: arrayOf(isPathspec) });

const pathspecsOf = (rules) => rules.flatMap((rule) => (isString(rule) ? rule : rule.except));

/** Returns true if rules of protected files are within the limits of section 6. */
function areRulesBounded(rules) {
  const bytes = pathspecsOf(rules).reduce((sum, pathspec) => sum + byteLength(pathspec) + 1, 0);
  const exceptions = rules.filter((rule) => !isString(rule));
  return exceptions.length <= limits.exceptions && bytes <= limits.pathspecs;
}

/** Returns the rules of protected files of an item as an array, each exception sorted. */
function normaliseProtect(protect) {
  const rules = Array.isArray(protect) ? protect : [protect];
  return rules.map((rule) =>
    isString(rule) ? rule : { except: sortNames(new Set(rule.except)) },
  );
}

/** Compares two rules of protected files: pathspecs first, then exceptions as lists. */
function compareRules(a, b) {
  if (isString(a) && isString(b)) return compareNames(a, b);
  if (isString(a) || isString(b)) return isString(a) ? -1 : 1;
  const at = a.except.findIndex((name, i) => name !== b.except[i]);
  if (at === -1 || at === b.except.length) return a.except.length - b.except.length;
  return compareNames(a.except[at], b.except[at]);
}

const itemFields = {
  id: isItemName,
  executor: isText,
  '$comment?': isString,
  'inputs?': isObject,
  'depends_on?': arrayOf(isItemName),
  'protect?': allOf(anyOf(isException, arrayOf(anyOf(isPathspec, isException))), (value) =>
    areRulesBounded([value].flat()),
  ),
  'onProtectedChange?': oneOf('red', 'fail', 'judge'),
  'resourceLocks?': allOf(arrayOf(isText), hasDistinct),
  'subagentShape?': isText,
  'needs?': (value) => mapOf(isPath, isNeed)(value) && !haveClash(Object.keys(value)),
  'produces?': isProduces,
  'timeout?': between(1, 315360000),
  'maxAttempts?': between(1, 100),
};
const { id: _, ...unnamedItemFields } = itemFields;
const isItemOf = (fields) =>
  allOf(
    shape({ ...fields, 'replaces?': isItemName, 'continues?': isItemName }),
    (value) => !('replaces' in value && 'continues' in value),
  );
const isPlanItem = shape(itemFields);
const isAddedItem = isItemOf(itemFields);
const isUnnamedItem = isItemOf(unnamedItemFields);

/** Returns the items that an item names in `depends_on` and `needs`, each once. */
function dependenciesOf(item) {
  const needs = item.needs ?? {};
  const all = [
    ...(item.depends_on ?? []),
    ...sortNames(Object.keys(needs)).map((key) => itemOfNeed(needs[key])),
  ];
  return [...new Set(all.filter((each) => each !== null))];
}

/** Returns the item in the form of `item.json` (section 5). */
function normaliseItem(item) {
  const normal = Object.assign(Object.create(null), {
    id: item.id,
    executor: item.executor,
    inputs: item.inputs ?? Object.create(null),
    depends_on: dependenciesOf(item),
    resourceLocks: item.resourceLocks ?? [],
    needs: normaliseNeeds(item.needs ?? {}),
  });
  const optional = ['subagentShape', 'timeout', 'maxAttempts', 'replaces', 'continues'];
  for (const field of [...optional, 'onProtectedChange']) {
    if (field in item) normal[field] = item[field];
  }
  const protect = normaliseProtect(item.protect ?? []);
  if (protect.length) normal.protect = protect;
  if ('produces' in item) {
    normal.produces = item.produces.map((declared) => {
      if (!('schema' in declared)) return declared;
      const { id, version } = readSchema(declared.schema);
      return { ...declared, schema: `${id}@${version}` };
    });
  }
  return normal;
}

const operators = ['<', '<=', '==', '!=', '>=', '>'];
const statesOfItems = ['done', 'green', 'red', 'failed', 'skipped', 'cancelled', 'ended'];

const isState = oneOf(...statesOfItems);
const isItemCondition = allOf(
  shape({
    'items?': arrayOf(isItemName, 1, 1000),
    'createdBy?': isItemName,
    'are?': anyOf(isState, arrayOf(isState, 1)),
    'have?': isPath,
    'count?': oneOf('outputs', 'attempts', 'rounds'),
    'op?': oneOf(...operators),
    'value?': between(0, 2 ** 32 - 1),
  }),
  hasOneOf('items', 'createdBy'),
  hasOneOf('are', 'have', 'count'),
  (value) => 'op' in value === 'value' in value && ('op' in value || !('count' in value)),
  (value) => !('items' in value && value.count === 'rounds'),
);

const isNumber = (value) => typeof value === 'number' || value instanceof WrittenNumber;

const isDocumentCondition = allOf(
  shape({
    document: isDocumentName,
    pointer: matches(/^(?:\/(?:[^~/]|~[01])*)*$/),
    op: oneOf(...operators),
    value: (each) => !Array.isArray(each) && !isObject(each),
  }),
  ({ op, value }) => op === '==' || op === '!=' || isNumber(value),
);

const isDocumentList = allOf(arrayOf(isDocumentName), hasDistinct);
const isWhen = allOf(
  shape({
    'present?': isDocumentList,
    'absent?': isDocumentList,
    'if?': arrayOf(isDocumentCondition),
    'items?': arrayOf(isItemCondition, 0, 20),
    'atMost?': between(1, 10000),
  }),
  ({ present = [], absent = [], if: conditions = [] }) => {
    const named = [...present, ...conditions.map(({ document }) => document)];
    return !absent.some((name) => named.includes(name));
  },
);

const isTemplate = anyOf(
  shape({ again: isItemName }),
  shape({
    item: isAddedItem,
    'optional?': arrayOf(isString),
    'each?': shape({
      outputsOf: isItemName,
      key: isString,
      from: isString,
      select: isSelector,
      'survivors?': isBoolean,
    }),
    'reasons?': mapOf(isString, isItemName),
  }),
);

const isOrder = allOf(mapOf(isItemName, arrayOf(isItemName)), (value) =>
  Object.entries(value).every(([item, others]) => !others.includes(item)),
);

const isRule = allOf(
  shape({
    id: (id) => isItemName(id) && isItemName(id + '-000000000000'),
    'when?': isWhen,
    'create?': anyOf(arrayOf(isTemplate, 0, 1000), isUnnamedItem),
    'forEach?': shape({ outputsOf: isItemName }),
    'outcome?': matches(/^[a-z-]{1,64}$/),
    'order?': isOrder,
    'gate?': shape({ item: isItemName, 'blocks?': isBoolean, 'votes?': isBoolean }),
  }),
  hasOneOf('create', 'outcome', 'order', 'gate'),
  (value) => 'when' in value || 'order' in value || 'gate' in value,
  (value) => !('forEach' in value) || Array.isArray(value.create),
);

const haveDistinctIds = (rules) => hasDistinct(rules.map((rule) => foldCase(rule.id)));
const isRuleList = allOf(arrayOf(isRule, 0, 10000), haveDistinctIds);

/** Returns a function that reads JSON, or returns null unless it fulfils a check. */
const readerOf = (check, bounds) => (bytes) => {
  const value = tryJson(bytes, bounds);
  return check(value) ? value : null;
};

const readRules = readerOf(notEmpty(isRuleList), { size: limits.file });

const isPlan = shape({
  id: isRunName,
  '$schema?': isString,
  '$comment?': isString,
  'queue?': isText,
  'base?': isText,
  'openEnded?': isBoolean,
  'concurrency?': between(1, 100000),
  'pattern?': isText,
  'rules?': isRuleList,
  'artifacts?': (value) => mapOf(isPath, isText)(value) && !haveClash(Object.keys(value)),
  items: arrayOf(isPlanItem, 1, 262144),
});

const readPlan = readerOf(isPlan, { size: limits.file });

const isBlockCommand = allOf(
  matches(/\P{White_Space}/u),
  (text) => byteLength(text) <= 16384 && !text.includes('\0'),
);
const isBlockDefinition = anyOf(
  shape({ kind: oneOf('agent') }),
  shape({ kind: oneOf('capture'), what: oneOf('patch', 'outputs') }),
  shape({
    kind: oneOf('script'),
    command: isBlockCommand,
    'lens?': oneOf('gate', 'verify'),
    'timeoutSeconds?': between(1, 315360000),
  }),
);

const isPipeline = shape({
  schemaVersion: oneOf(1),
  id: matches(/^(?=.{1,128}$)[a-z0-9-]+\.[a-z0-9-]+$/),
  blocks: arrayOf(isBlockDefinition, 1, 100),
  'outputEdgeType?': isText,
  'inputEdgeTypes?': mapOf(isText, isText),
});

const readPipeline = readerOf(isPipeline, { size: limits.pipeline });

/** Returns the pipeline that an item names, or null. */
const pipelineNameOf = (item) => (isString(item.inputs?.pipeline) ? item.inputs.pipeline : null);
const pipelineNamesOf = (items) =>
  new Set(items.map(pipelineNameOf).filter((name) => name !== null));

/** Returns the items that rules contain. */
function itemsInRules(rules) {
  return rules.flatMap(({ create }) => {
    if (!create) return [];
    return Array.isArray(create) ? create.flatMap((each) => each.item ?? []) : [create];
  });
}

const isProgramClaim = {
  path: isString,
  sha256: isDigest,
  size: isCount,
};
const isManifest = shape({
  schema: oneOf('git-handoff.manifest/1'),
  run: isRunName,
  item: isItemName,
  attempt: isAttempt,
  inputRefs: isInputRefs,
  base: isObjectId,
  'start?': isObjectId,
  executor: isString,
  'subagent?': isString,
  argv: arrayOf(isString),
  'setup?': arrayOf(isString),
  'verify?': arrayOf(isString),
  'commandDigest?': isDigest,
  'heldOut?': isDigest,
  'redFirst?': isTrue,
  'verifyIn?': oneOf('fresh'),
  'program?': shape({
    ...isProgramClaim,
    'version?': (value) => isText(value) && [...value].length <= 200,
  }),
  'interpreter?': shape(isProgramClaim),
  'protect?': notEmpty(isSortedRules),
  'onProtectedChange?': oneOf('fail', 'allow', 'judge'),
  'pipeline?': isDigest,
  inputs: isDigest,
  env: arrayOf(isString),
  secretEnv: arrayOf(isString),
  timeout: isCount,
  sandbox: isString,
  'network?': oneOf('any', 'loopback', 'none'),
  'sockets?': oneOf('reachable'),
  'home?': oneOf('real'),
  'readable?': notEmpty(arrayOf(isString)),
  'writable?': notEmpty(arrayOf(isString)),
  'linked?': notEmpty(arrayOf(isString)),
  'copied?': notEmpty(arrayOf(isString)),
  'tags?': isDigest,
  'branches?': isDigest,
  tool: isString,
});

/** Reads `manifest.json`, or returns null. */
function readManifest(bytes) {
  const { containers, commas, manifest: size } = limits;
  const value = readerOf(isManifest, { size, containers, commas })(bytes);
  if (!value || 'tags' in value !== 'branches' in value) return null;
  return equalBytes(canonicalBytes(value), bytes) ? value : null;
}

// ---- the replay: legal transitions and rules (section 6) ----

/** A document that a rule reads is missing, damaged or other bytes. */
class UnreadableDocument extends Error {
  constructor(isLeftOut) {
    super('a document that a rule reads cannot be read');
    this.isLeftOut = isLeftOut;
  }
}

/** A template results in a name that is taken or not valid. */
class NameClash extends Error {}

// -- patches and pathspecs --

/** Undoes git's quoting of a path. Paths are strings with one byte in each character. */
function unquotePath(text) {
  const quoted = readQuotedPath(text);
  return quoted !== null && quoted.end === text.length ? quoted.path : text;
}

const quotedEscapes = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, '"': 34, '\\': 92 };

/** Reads a quoted path at the start of a text: {path, end}, or null. */
function readQuotedPath(text) {
  if (text[0] !== '"') return null;
  const path = [];
  for (let i = 1; i < text.length; i++) {
    if (text[i] === '"') return { path: path.join(''), end: i + 1 };
    if (text[i] !== '\\') {
      path.push(text[i]);
      continue;
    }
    const octal = text.slice(i + 1, i + 4);
    const escape = quotedEscapes[text[i + 1]];
    if (/^[0-3][0-7]{2}$/.test(octal)) path.push(String.fromCharCode(parseInt(octal, 8)));
    else if (escape !== undefined) path.push(String.fromCharCode(escape));
    else return null;
    i += escape === undefined ? 3 : 1;
  }
  return null;
}

const patchHeaders = [
  'old mode ',
  'new mode ',
  'new file mode ',
  'deleted file mode ',
  'similarity index ',
  'dissimilarity index ',
  'rename from ',
  'rename to ',
  'copy from ',
  'copy to ',
  'index ',
  '--- ',
  '+++ ',
  'GIT binary patch',
];

/** Returns the name in `a/<name> b/<name>`, if it is the same twice, or null. */
function nameInBoth(names) {
  const quoted = readQuotedPath(names);
  const end = quoted ? quoted.end : Math.floor(names.length / 2);
  if (names[end] !== ' ') return null;
  const old = quoted ? quoted.path : names.slice(0, end);
  const rest = names.slice(end + 1);
  const now = quoted ? unquotePath(rest) : rest;
  if (!old.startsWith('a/') || !now.startsWith('b/')) return null;
  return old.slice(2) === now.slice(2) && old.length > 2 ? old.slice(2) : null;
}

function readMode(text) {
  ensure(/^[0-7]{1,7}$/.test(text), 'is no mode');
  return parseInt(text, 8);
}

/** The part of a patch from one `diff --git` to the next. */
class PatchSection {
  constructor(names) {
    this.name = nameInBoth(names);
    this.labels = [];
    this.from = null;
    this.to = null;
    this.copiedTo = null;
    this.isCreated = false;
    this.isDeleted = false;
    this.modes = [null, null];
    this.oids = [null, null];
    /** `header`, `hunks` or `binary`. */
    this.part = 'header';
    /** The remaining old and new lines of the hunk. */
    this.left = [0, 0];
  }

  /** Reads a line after the first. Returns false if it begins another section. */
  read(line, first) {
    if (this.part === 'hunks') {
      const [old, added] = this.left;
      if (old > 0 || added > 0) {
        const sides = { '+': [0, 1], '-': [1, 0], ' ': [1, 1], '': [1, 1], '\\': [0, 0] }[first];
        ensure(sides && old >= sides[0] && added >= sides[1], 'is no line of a hunk');
        this.left = [old - sides[0], added - sides[1]];
        return true;
      }
      if (first === '\\') return true;
    }
    const text = line();
    if (text.startsWith('diff --git ')) return false;
    if (this.part === 'binary') {
      ensure(/^(?:(?:literal|delta) [0-9]+|[!-~]*)$/.test(text), 'is no binary patch');
      return true;
    }
    const hunk = /^@@ -[0-9]{1,15}(?:,([0-9]{1,15}))? \+[0-9]{1,15}(?:,([0-9]{1,15}))? @@/.exec(text);
    if (hunk) {
      this.part = 'hunks';
      this.left = [Number(hunk[1] ?? 1), Number(hunk[2] ?? 1)];
      return true;
    }
    const word = this.part === 'header' && patchHeaders.find((each) => text.startsWith(each));
    ensure(word, 'is not as git writes it');
    this.readHeader(word, text.slice(word.length));
    return true;
  }

  readHeader(word, value) {
    const { modes } = this;
    if (word === 'old mode ') modes[0] = readMode(value);
    else if (word === 'new mode ') modes[1] = readMode(value);
    else if (word === 'rename from ') this.from = unquotePath(value);
    else if (word === 'rename to ') this.to = unquotePath(value);
    else if (word === 'copy to ') this.copiedTo = unquotePath(value);
    else if (word === 'new file mode ') {
      this.isCreated = true;
      modes[1] = readMode(value);
    } else if (word === 'deleted file mode ') {
      this.isDeleted = true;
      modes[0] = readMode(value);
    } else if (word === 'index ') {
      const [oids, mode] = value.split(' ');
      const [old, now] = oids.split('..');
      ensure(now !== undefined, 'names no two objects');
      this.oids = [old, now].map((oid) => (isObjectId(oid) ? oid : null));
      if (mode !== undefined) this.modes = [readMode(mode), readMode(mode)];
    } else if (word === '--- ' || word === '+++ ') {
      const [prefix, isAbsent] =
        word === '--- ' ? ['a/', this.isCreated] : ['b/', this.isDeleted];
      const name = value.endsWith('\t') ? value.slice(0, -1) : value;
      ensure(name !== '/dev/null' || isAbsent, 'names no file');
      if (name === '/dev/null') return;
      const path = unquotePath(name);
      ensure(path.startsWith(prefix), 'names no file');
      this.labels.push(path.slice(2));
    } else if (word === 'GIT binary patch') {
      ensure(value === '', 'is no binary patch');
      this.part = 'binary';
    }
  }

  /** Returns the changed paths: pairs of a path and {old, now}, each null or {mode, oid}. */
  changes() {
    ensure(this.left.every((lines) => lines === 0), 'ends within a hunk');
    const [old, now] = [0, 1].map((at) => ({
      mode: this.modes[at] ?? this.modes[1 - at],
      oid: this.oids[at],
    }));
    const { name, from, to, copiedTo } = this;
    if (from === null && to === null && copiedTo !== null) return [[copiedTo, { old: null, now }]];
    ensure((from === null) === (to === null) && copiedTo === null, 'names no file');
    const names = from === null ? [name] : [from, to];
    ensure(names[0] !== null && this.labels.every((label) => names.includes(label)), 'names two');
    if (from !== null)
      return [
        [from, { old, now: null }],
        [to, { old: null, now }],
      ];
    return [[name, { old: this.isCreated ? null : old, now: this.isDeleted ? null : now }]];
  }
}

/**
 * Returns the changed paths of a patch, each with {old, now}. Fails if the patch is not as
 * `git diff-tree -p --full-index --binary` writes it.
 */
function readPatch(bytes) {
  const changes = new Map();
  let section = null;
  let number = 0;
  const readStrictly = (read) => {
    try {
      read();
    } catch (error) {
      if (!(error instanceof FormatError)) throw error;
      throw new FormatError(`line ${number} of the patch is not as git writes it`);
    }
  };
  const endSection = () => {
    for (const [path, { old, now }] of section?.changes() ?? [])
      // A change of the type is a deletion and a creation.
      changes.set(path, { old: changes.has(path) ? changes.get(path).old : old, now });
  };
  for (let at = 0; at < bytes.length; ) {
    const next = bytes.indexOf(10, at);
    const end = next === -1 ? bytes.length : next;
    const line = () => toLatin(bytes.subarray(at, end));
    const first = end > at ? String.fromCharCode(bytes[at]) : '';
    number++;
    readStrictly(() => {
      if (section?.read(line, first)) return;
      const text = line();
      ensure(text.startsWith('diff --git '), 'is not as git writes it');
      endSection();
      section = new PatchSection(text.slice(11));
    });
    at = end + 1;
  }
  readStrictly(endSection);
  return changes;
}

const isUpper = (byte) => byte >= 65 && byte <= 90;
const isLower = (byte) => byte >= 97 && byte <= 122;
const isDigit = (byte) => byte >= 48 && byte <= 57;
const isAlnum = (byte) => isUpper(byte) || isLower(byte) || isDigit(byte);
const characterClasses = {
  alnum: isAlnum,
  alpha: (byte) => isUpper(byte) || isLower(byte),
  blank: (byte) => byte === 32 || byte === 9,
  cntrl: (byte) => byte < 32 || byte === 127,
  digit: isDigit,
  graph: (byte) => byte > 32 && byte < 127,
  lower: isLower,
  print: (byte) => byte >= 32 && byte < 127,
  punct: (byte) => byte > 32 && byte < 127 && !isAlnum(byte),
  space: (byte) => byte === 32 || (byte >= 9 && byte <= 13),
  upper: isUpper,
  xdigit: (byte) => isDigit(byte) || (byte >= 65 && byte <= 70) || (byte >= 97 && byte <= 102),
};

/**
 * Reads a set such as `[a-z]` at the start of a pattern, as git's wildmatch.c does. Returns
 * {matches, end}, or null for a pattern that matches nothing.
 */
function readSet(pattern, start, foldsCase) {
  const tests = [];
  const at = (i) => (i < pattern.length ? pattern.charCodeAt(i) : 0);
  const [dash, backslash, open, close, colon] = [45, 92, 91, 93, 58];
  const range = (low, high) => (byte) =>
    (byte >= low && byte <= high) ||
    (foldsCase && isLower(byte) && byte - 32 >= low && byte - 32 <= high);
  let i = start + 1;
  const isNegated = at(i) === 33 || at(i) === 94;
  if (isNegated) i++;
  let previous = 0;
  for (let isFirst = true; isFirst || at(i) !== close; i++, isFirst = false) {
    let byte = at(i);
    if (byte === 0) return null;
    if (byte === backslash) {
      byte = at(++i);
      if (byte === 0) return null;
      const wanted = byte;
      tests.push((found) => found === wanted);
    } else if (byte === dash && previous !== 0 && at(i + 1) !== 0 && at(i + 1) !== close) {
      byte = at(++i);
      if (byte === backslash) byte = at(++i);
      if (byte === 0) return null;
      tests.push(range(previous, byte));
      byte = 0;
    } else if (byte === open && at(i + 1) === colon) {
      const end = pattern.indexOf(']', i + 2);
      if (end === -1) return null;
      if (end - i >= 3 && at(end - 1) === colon) {
        const name = pattern.slice(i + 2, end - 1);
        if (!Object.hasOwn(characterClasses, name)) return null;
        const test = characterClasses[name];
        tests.push((found) => test(found) || (name === 'upper' && foldsCase && isLower(found)));
        i = end;
        byte = 0;
      } else {
        tests.push((found) => found === open);
      }
    } else {
      const wanted = byte;
      tests.push((found) => found === wanted);
    }
    previous = byte;
  }
  return { matches: (byte) => tests.some((test) => test(byte)) !== isNegated, end: i };
}

/**
 * Turns a pattern of git's wildmatch.c into steps: a test of one byte, or {star}, with what a star
 * may stand for. `isPath` keeps stars, question marks and sets from matching a slash. Returns null
 * for a pattern that matches nothing.
 */
function readGlob(pattern, { isPath, foldsCase }) {
  const steps = [];
  const fold = (byte) => (foldsCase && isUpper(byte) ? byte + 32 : byte);
  const one = (test) => steps.push({ test: (byte) => test(fold(byte)) });
  for (let i = 0; i < pattern.length; i++) {
    const character = pattern[i];
    if (character === '*') {
      let end = i + 1;
      while (pattern[end] === '*') end++;
      const isBehindSlash = i === 0 || pattern[i - 1] === '/';
      const isBeforeSlash =
        end === pattern.length || pattern[end] === '/' || pattern.startsWith('\\/', end);
      const isDouble = end - i > 1 && isBehindSlash && isBeforeSlash;
      // `**` with the slash after it may also stand for nothing.
      const canSkip = isPath && isDouble && pattern[end] === '/';
      steps.push({ star: isPath && !isDouble ? 'segment' : 'all', canSkip });
      i = end - 1;
    } else if (character === '?') {
      one((byte) => !(isPath && byte === 47));
    } else if (character === '[') {
      const set = readSet(pattern, i, foldsCase);
      if (set === null) return null;
      one((byte) => set.matches(byte) && !(isPath && byte === 47));
      i = set.end;
    } else {
      const isEscaped = character === '\\';
      if (isEscaped) i++;
      if (i === pattern.length) return null;
      const byte = pattern.charCodeAt(i);
      const wanted = isEscaped ? byte : fold(byte);
      one((found) => found === wanted);
    }
  }
  return steps;
}

/** Returns true if the steps match a whole text; takes time in proportion to their product. */
function matchesGlob(steps, text) {
  // A star is passed by as soon as it is reached.
  const reach = (places, at) => {
    for (; at < steps.length; at++) {
      places[at] = 1;
      if (!steps[at].star) return;
      if (steps[at].canSkip) reach(places, at + 2);
    }
    places[at] = 1;
  };
  const stay = (places, at) => {
    places[at] = 1;
    reach(places, at + 1);
  };
  let places = new Uint8Array(steps.length + 1);
  reach(places, 0);
  for (let i = 0; i < text.length && places.includes(1); i++) {
    const byte = text.charCodeAt(i);
    const next = new Uint8Array(steps.length + 1);
    for (let at = 0; at < steps.length; at++) {
      if (!places[at]) continue;
      const { star, test } = steps[at];
      if (test?.(byte)) reach(next, at + 1);
      else if (star === 'all' || (star === 'segment' && byte !== 47)) stay(next, at);
    }
    places = next;
  }
  return places[steps.length] === 1;
}

const foldAscii = (text) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/** Removes `.` components and double slashes, as git does with paths. */
function normalisePath(path) {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  const last = path.slice(path.lastIndexOf('/') + 1);
  const isFolder = parts.length > 0 && (last === '' || last === '.');
  return parts.join('/') + (isFolder ? '/' : '');
}

/** Returns the test of rules of protected files for a path and whether it is a submodule. */
function readProtectRules(rules) {
  const areRules = areRulesBounded(rules) && pathspecsOf(rules).every(isPathspec);
  ensure(areRules, 'has rules that cannot protect files');
  const exceptions = rules.filter((rule) => !isString(rule));
  const free = exceptions.map(({ except }) => except.map(readPathspec));
  const tests = rules.filter(isString).map(readPathspec);
  return (path, isSubmodule) => {
    const isSelected = (some) => some.some((test) => test(path, isSubmodule));
    return isSelected(tests) || free.some((some) => !isSelected(some));
  };
}

/** Returns the test of `git ls-files -- <pathspec>` for a path and whether it is a submodule. */
function readPathspec(pathspec) {
  const text = toLatin(toBytes(pathspec));
  const long = /^:\(([^)]*)\)(.*)$/s.exec(text);
  const short = /^:(\/*)(?![/!"#%&',;<=>@_`~-]):?(.*)$/s.exec(text);
  ensure(long || short || text[0] !== ':', 'has unknown magic');
  const words = long ? long[1].split(',').filter((word) => word !== '') : [];
  for (const word of words)
    ensure(
      ['top', 'literal', 'icase', 'glob'].includes(word) || word.startsWith('prefix:'),
      'has unknown magic',
    );
  const has = (word) => words.includes(word);
  ensure(!(has('literal') && has('glob')), 'has magic that contradicts itself');
  const path = long ? long[2] : short ? short[2] : text;
  // A path from the top is taken as it is.
  const isExact = short?.[1] || words.some((word) => /^(?:top$|prefix:)/.test(word));
  const pattern = isExact ? path : normalisePath(path);
  const foldsCase = has('icase');
  const fold = foldsCase ? foldAscii : (name) => name;
  const plain = has('literal') ? -1 : pattern.search(/[*?[\\]/);
  const start = plain === -1 ? pattern : pattern.slice(0, plain);
  const steps =
    plain === -1 ? null : readGlob(pattern.slice(plain), { isPath: has('glob'), foldsCase });
  const folded = fold(pattern);
  return (path, isSubmodule) => {
    if (pattern === '') return true;
    const name = fold(path);
    const folder = folded.endsWith('/') ? folded : folded + '/';
    if (name === folded || name.startsWith(folder)) return true;
    if (isSubmodule && name + '/' === folded) return true;
    return (
      steps !== null && name.startsWith(fold(start)) && matchesGlob(steps, path.slice(start.length))
    );
  };
}

/** The most bytes of pathspecs with wildcards times bytes of changed paths, in a whole run. */
const mostPathWork = 2 ** 31;
const submoduleMode = 0o160000;
const isSubmodule = (side) => side?.mode === submoduleMode;
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
function faultsOfProtected({ rules, changes, others, listed, work }) {
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
    const isLink = isSubmodule(change.old) || isSubmodule(change.now);
    if (!isProtected(path, isLink)) continue;
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
      faults.push(`${shown(path)} was ${kindOfChange(change)}${unlisted}`);
    } else if (kind !== kindOfChange(change)) {
      faults.push(`${shown(path)} was ${kindOfChange(change)}, and the entry says ${kind}`);
    }
  }
  for (const path of kinds.keys())
    if (!protectedPaths.has(path))
      faults.push(`the entry lists ${shown(path)}, which the patch leaves alone`);
  return faults;
}

const endedStates = ['done', 'failed', 'skipped', 'cancelled'];
const templateLimits = { items: 262144, links: 1048576, bytes: 33554432 };

/** An item, its state after the latest legal entry, and what its entries recorded about it. */
class ItemState {
  constructor(definition, origin) {
    this.id = definition.id;
    this.definition = definition;
    /** `plan`, `actor`, or {rule}. */
    this.origin = origin;
    /** null while it waits, otherwise `running`, `done`, `failed`, `skipped` or `cancelled`. */
    this.status = null;
    this.attemptCount = 0;
    /** The attempts that `maxAttempts` limits. */
    this.limitedAttempts = 0;
    this.reason = null;
    this.products = Object.create(null);
    this.blocks = null;
    /** The driver that holds the running attempt, or null. */
    this.holder = null;
    /** The `item.reconciled` or `item.decided` that ended it, while it is the latest end. */
    this.end = null;
    /** The items that it depends on, without those that the plan does not have. */
    this.dependencies = definition.depends_on;
    /** The patches that give the latest attempt the reference state of its protected files. */
    this.referencePatches = [];
  }

  get hasEnded() {
    return endedStates.includes(this.status);
  }

  get outputs() {
    return sortNames(
      Object.keys(this.products)
        .filter((key) => key.startsWith('outputs/'))
        .map((key) => key.slice(8)),
    );
  }

  /** Returns `state.json`. */
  stateJson() {
    const state = { attempts: this.attemptCount, products: this.products };
    if (this.reason !== null) state.reason = this.reason;
    if (this.status !== null) state.status = this.status;
    return canonicalBytes(state);
  }

  settle(status, reason, end = null) {
    this.status = status;
    this.holder = null;
    this.reason = reason ?? null;
    this.products = (status === 'done' && end?.products) || Object.create(null);
    this.end = end;
    this.blocks = end?.blocks ?? null;
  }
}

const documentNamesOf = (item) =>
  (item.produces ?? []).filter((declared) => declared.kind === 'document').map((d) => d.name);

const compareBy = {
  '<': (order) => order < 0,
  '<=': (order) => order <= 0,
  '==': (order) => order === 0,
  '!=': (order) => order !== 0,
  '>=': (order) => order >= 0,
  '>': (order) => order > 0,
};

/** Splits a decimal number into its sign, its digits and the power of ten of the first one. */
function readDecimal(text) {
  const [, sign, whole, fraction = '', exponent = '0'] =
    /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/.exec(text);
  const all = whole + fraction;
  let [zeros, end] = [0, all.length];
  while (zeros < end && all[zeros] === '0') zeros++;
  while (end > zeros && all[end - 1] === '0') end--;
  if (zeros === end) return { sign: 0, digits: '', magnitude: 0n };
  return {
    sign: sign ? -1 : 1,
    digits: all.slice(zeros, end),
    magnitude: BigInt(whole.length - zeros) + BigInt(exponent.replace('+', '')),
  };
}

/** Compares two decimal numbers exactly, however long they are. */
function compareDecimals(a, b) {
  const [x, y] = [readDecimal(a), readDecimal(b)];
  if (x.sign !== y.sign) return x.sign - y.sign;
  if (x.magnitude !== y.magnitude) return x.magnitude < y.magnitude ? -x.sign : x.sign;
  return x.digits === y.digits ? 0 : x.digits < y.digits ? -x.sign : x.sign;
}

/** Compares the value in a document by a condition. Returns null if they do not compare. */
function compareValues(found, operator, wanted) {
  if (isNumber(found) && isNumber(wanted)) {
    return compareBy[operator](compareDecimals(found.text, canonical(wanted)));
  }
  if (operator !== '==' && operator !== '!=') return null;
  const isEqual = found === wanted;
  return operator === '==' ? isEqual : !isEqual;
}

/** Returns the value at a JSON pointer, or undefined. */
function valueAt(value, pointer) {
  for (const part of pointer.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(value)) {
      if (!/^(?:0|[1-9][0-9]*)$/.test(key)) return undefined;
      value = value[Number(key)];
    } else {
      value = isObject(value) && key in value ? value[key] : undefined;
    }
    if (value === undefined) return undefined;
  }
  return value;
}

/** How much a condition in `if` forgives, to find the rules that stopped. */
const forgive = { nothing: 0, missingValue: 1, unusable: 2 };

const outcomeWords = ['red', 'failed', 'skipped', 'cancelled', 'running', 'pending'];

/** In words: `2 of 4 done, 1 failed, 1 skipped`. */
function textOfOutcome(outcome, words = outcomeWords) {
  const counts = words
    .filter((word) => outcome[word] > 0)
    .map((word) => `${outcome[word]} ${word}`);
  return [`${outcome.done} of ${outcome.total} done`, ...counts, ...(outcome.said ?? [])].join(
    ', ',
  );
}

const emptyOutcome = () => ({
  total: 0,
  ...{ done: 0, red: 0, failed: 0, skipped: 0, cancelled: 0, running: 0, pending: 0 },
});

/**
 * The state of a run after each of its entries. `apply` judges one entry, and changes the state
 * only if the entry is a legal transition.
 */
class Replay {
  constructor(plan, addedRules, entryZero, readDocument) {
    this.plan = plan;
    this.entryZero = entryZero;
    this.readDocument = readDocument;
    this.rules = [...(plan.rules ?? []), ...addedRules];
    this.rulesById = new Map(this.rules.map((rule) => [rule.id, rule]));
    this.items = new Map();
    /** Items that the plan has twice: the last one counts, and the others wait for ever. */
    this.shadowedItems = 0;
    for (const item of plan.items) {
      if (this.items.has(item.id)) this.shadowedItems++;
      this.items.set(item.id, new ItemState(normaliseItem(item), 'plan'));
    }
    /** Document name to its revisions, oldest first. */
    this.documents = new Map();
    /** Pipeline name to its digest. */
    this.pipelines = new Map(Object.entries(entryZero.pipelines ?? {}));
    /** Digest to the pipeline, or to null if that cannot be used. */
    this.pipelinesByDigest = new Map();
    /** Rule id to the number of its `run.extended`. */
    this.rounds = new Map();
    /** Rule id to the items that it created. */
    this.createdItems = new Map();
    /** The entries `run.concluded`: {rule, outcome, detail}. */
    this.conclusions = [];
    /** The further conclusions of an early end: {rule, outcome}. */
    this.earlyConclusions = [];
    /** Item to its successor. */
    this.successors = new Map();
    this.superseded = new Set();
    this.isClosed = false;
    this.isSealed = false;
    /** The rules that had stopped at the latest `run.sealed`, legal or not. */
    this.stoppedAtSeal = null;
    /** The entry `run.closed` or `run.cancelled`. */
    this.closing = null;
    /** Statements that an earlier legal entry recorded. */
    this.recordedStatements = new Set();
    /** The roles of each key by entry 0 and the legal entries since. */
    this.roles = rolesOfEntryZero(entryZero);
    this.isShared = false;
    /** The items that run. */
    this.running = new Set();
    const orders = this.rules.map((rule) => rule.order ?? {});
    for (const [id, item] of this.items) {
      const ordered = orders.flatMap((order) => (Object.hasOwn(order, id) ? order[id] : []));
      const all = new Set([...item.dependencies, ...ordered]);
      item.dependencies = [...all].filter((each) => this.items.has(each));
    }
    this.declaredDocuments = new Set(
      [
        ...[...this.items.values()].map((item) => item.definition),
        ...itemsInRules(this.rules),
      ].flatMap(documentNamesOf),
    );
  }

  // -- items --

  newest(id, created = new Map()) {
    for (;;) {
      const successor = created.get(id) ?? this.successors.get(id);
      if (successor === undefined) return id;
      id = successor;
    }
  }

  dependencies(id) {
    return this.items.get(id).dependencies;
  }

  /** Returns the `gate` of the rule that makes the item a gate, or null. */
  gateOf(id) {
    for (;;) {
      const item = this.items.get(id);
      if (!item || item.origin === 'actor') return null;
      const gate = this.rules.findLast((rule) => rule.gate?.item === id)?.gate;
      if (gate) return gate;
      if (!('replaces' in item.definition)) return null;
      id = item.definition.replaces;
    }
  }

  isVote(id) {
    return this.gateOf(id)?.votes === true;
  }

  /** Returns true if a person approved an item's changes to protected files. */
  areChangesApproved(id) {
    return [...this.items.values()].some(
      (item) =>
        item.definition.executor === 'approval' &&
        item.end?.kind === 'item.decided' &&
        item.end.decision === 'approved' &&
        this.dependencies(item.id).includes(id),
    );
  }

  isRed(item) {
    const { end } = item;
    if (item.status !== 'done' || !end) return false;
    if (end.kind === 'item.decided') return end.decision === 'rejected';
    if (end.verify?.passed === false) return true;
    return changesProtected(end) && !this.areChangesApproved(item.id);
  }

  /** Returns true if the item counts as done and good, with a red vote. */
  isGood(item) {
    return item.status === 'done' && (!this.isRed(item) || this.isVote(item.id));
  }

  isLost(id, dependency) {
    const item = this.items.get(dependency);
    if (!item) return false;
    if (['failed', 'skipped', 'cancelled'].includes(item.status)) return true;
    if (!this.isRed(item) || !this.gateOf(dependency)?.blocks) return false;
    return !Object.values(this.items.get(id).definition.needs).some(
      (need) => itemOfNeed(need) === dependency && need.select.kind === 'output',
    );
  }

  isMet(id, dependency) {
    return this.items.get(dependency)?.status === 'done' && !this.isLost(id, dependency);
  }

  areAllMet(id) {
    return this.dependencies(id).every((dependency) => this.isMet(id, dependency));
  }

  get isSettled() {
    return this.shadowedItems === 0 && [...this.items.values()].every((item) => item.hasEnded);
  }

  /** Returns the items that count: all but the superseded ones. */
  countingItems() {
    return [...this.items.values()].filter((item) => !this.superseded.has(item.id));
  }

  /** Returns the latest revision of a document, or undefined. */
  latestRevision(name) {
    return this.documents.get(name)?.at(-1);
  }

  /** Returns the digest to which a need is bound now (section 9), or null. */
  bindingOf(need) {
    const { select } = need;
    if (isFromElsewhere(need)) {
      return this.entryZero.imports?.[importName(need)]?.product.sha256 ?? null;
    }
    if (need.from === '@artifacts') {
      return select.kind === 'output' ? (this.entryZero.artifacts[select.path] ?? null) : null;
    }
    if (need.from === '@documents') {
      const revision = select.kind === 'document' ? this.latestRevision(select.name) : undefined;
      if (!revision) return null;
      const fits = !('schema' in select) || satisfiesSchema(revision.schema, select.schema);
      return fits ? revision.sha256 : null;
    }
    const item = this.items.get(need.from);
    const product = item?.status === 'done' ? item.products[productOf(select)] : undefined;
    if (!product) return null;
    if (select.kind === 'document' && 'schema' in select) {
      const declared = item.definition.produces?.find(
        (each) => each.kind === 'document' && each.name === select.name,
      );
      if (!satisfiesSchema(declared?.schema && readSchema(declared.schema), select.schema))
        return null;
    }
    return product.sha256;
  }

  /** Returns the subject of a decision about the item, or null if a part of it is not there. */
  subjectOfDecision(id) {
    const about = Object.create(null);
    for (const dependency of this.dependencies(id)) {
      about[dependency] = Object.create(null);
      const { products } = this.items.get(dependency);
      for (const key of Object.keys(products)) about[dependency][key] = products[key].sha256;
    }
    for (const need of Object.values(this.items.get(id).definition.needs)) {
      if (itemOfNeed(need) !== null) continue;
      const digest = this.bindingOf(need);
      if (digest === null && need.from === '@documents') return null;
      if (digest === null) continue;
      const source = sourceOf(need);
      about[source] ??= Object.create(null);
      about[source][productOf(need.select)] = digest;
    }
    return about;
  }

  // -- entries --

  /**
   * Judges an entry, and applies it if it is legal. Returns {codes, isLegal, isLeftOut}.
   * `added` is, for `run.extended`, a map from items to their normalised form, or to null if an
   * item cannot be used.
   */
  apply(entry, added) {
    const { kind } = entry;
    this.codes = new Set();
    this.isLeftOut = false;
    const item = this.items.get(entry.item);
    const hasBlocks = ['item.reconciled', 'item.retried', 'item.requeued'].includes(kind);
    // Blocks that do not fit the pipeline are reported whether the entry is legal or not.
    if (item && hasBlocks && !this.areBlocksLegal(item, entry)) this.codes.add('blocks');
    // These are compared with the rules in any case.
    const isOfRule = ['run.extended', 'run.concluded', 'run.sealed'].includes(kind);
    const isLegal =
      `apply ${kind}` in this &&
      !('said' in entry && this.recordedStatements.has(entry.said)) &&
      (!this.isSealed || isOfRule) &&
      (item !== undefined || !kind.startsWith('item.')) &&
      this[`apply ${kind}`](entry, item ?? added);
    // What a rule should have done is a finding of its own.
    if (!isLegal && !this.codes.has('rule')) this.codes.add('transition');
    if (isLegal && 'said' in entry) this.recordedStatements.add(entry.said);
    if (isLegal && item?.status !== 'running') this.running.delete(entry.item);
    return { codes: this.codes, isLegal, isLeftOut: this.isLeftOut };
  }

  /** Calls a function that reads documents, and notes one that cannot be read. */
  tryRules(read) {
    try {
      return { value: read() };
    } catch (error) {
      if (!(error instanceof UnreadableDocument)) throw error;
      if (error.isLeftOut) this.isLeftOut = true;
      else this.codes.add('rule-document');
      return null;
    }
  }

  'apply item.fired'(entry, item) {
    if (item.status !== null || this.isClosed) return false;
    const { executor, maxAttempts = Infinity, resourceLocks } = item.definition;
    if (executor === 'approval' || entry.attempt !== item.attemptCount + 1) return false;
    if (item.limitedAttempts >= maxAttempts || !this.areAllMet(item.id)) return false;
    if (this.isShared && !('driver' in entry)) return false;
    if (this.running.size >= (this.entryZero.concurrency ?? Infinity)) return false;
    const held = [...this.running].flatMap((id) => this.items.get(id).definition.resourceLocks);
    if (resourceLocks.some((lock) => held.includes(lock))) return false;
    item.settle('running', null);
    item.holder = entry.driver ?? null;
    this.running.add(item.id);
    item.referencePatches = this.referencePatches(item, entry.inputRefs);
    item.attemptCount++;
    item.limitedAttempts++;
    return true;
  }

  /** Returns the items whose patches an item applies, directly or through others. */
  appliedItems(item) {
    const applied = new Set();
    const open = [item];
    while (open.length > 0) {
      for (const need of Object.values(open.pop().definition.needs ?? {})) {
        const producer = need.apply ? this.items.get(need.from) : undefined;
        if (producer === undefined || applied.has(producer)) continue;
        applied.add(producer);
        open.push(producer);
      }
    }
    return [...applied];
  }

  /** Returns the patches of items that count for the reference state of protected files. */
  referencePatches(item, inputRefs) {
    const consumed = Object.values(inputRefs)
      .filter(({ select }) => select.kind === 'patch')
      .map(({ from }) => this.items.get(from));
    const continued = this.items.get(item.definition.continues);
    const counts = (each) =>
      each?.status === 'done' && !this.isRed(each) && !each.end.protectedJudged;
    return [...consumed, ...this.appliedItems(item), continued]
      .filter(counts)
      .map(({ products }) => products.patch)
      .filter(Boolean);
  }

  'apply item.reconciled'(entry, item) {
    const isDone = entry.status === 'done';
    const isRunning = item.status === 'running' && entry.attempt === item.attemptCount;
    const isRefused = item.status === null && !isDone;
    if (!(entry.attempt > 0 ? isRunning : isRefused)) return false;
    if ((entry.driver ?? null) !== item.holder || !isExitLegal(entry.exit, isDone)) return false;
    if (!isDone && Object.keys(entry.products).length > 0) return false;
    if ('reused' in entry && (!isDone || 'exit' in entry || 'transcript' in entry)) return false;
    const isClaimed = isDone && item.definition.executor === 'claimed';
    if ('grade' in entry !== isClaimed) return false;
    if (isDone && !hasDeclaredProducts(item.definition, entry.products)) return false;
    item.settle(entry.status, entry.reason, entry);
    if (isDone) this.addProducedDocuments(item, entry);
    return true;
  }

  addProducedDocuments(item, entry) {
    for (const declared of item.definition.produces ?? []) {
      if (declared.kind !== 'document') continue;
      this.addRevision(declared.name, {
        ...entry.products[`documents/${declared.name}`],
        schema: declared.schema ? readSchema(declared.schema) : null,
      });
    }
  }

  addRevision(name, revision) {
    const revisions = this.documents.get(name) ?? [];
    this.documents.set(name, revisions);
    revisions.push({ ...revision, revision: revisions.length + 1 });
  }

  'apply item.decided'(entry, item) {
    if (item.status !== null || this.isClosed) return false;
    const { executor, inputs } = item.definition;
    if (executor !== 'approval' || entry.attempt !== item.attemptCount) return false;
    if (!this.areAllMet(item.id)) return false;
    const subject = this.subjectOfDecision(item.id);
    if (subject === null || !sameJson(subject, entry.about)) return false;
    const { approvers = [entry.by] } = inputs;
    if (!Array.isArray(approvers) || !approvers.includes(entry.by)) return false;
    const isVote = this.isVote(item.id);
    if (isVote && this.hasVotedBefore(item, entry.by)) return false;
    const isApproved = entry.decision === 'approved';
    if (entry.status !== (isApproved || isVote ? 'done' : 'failed')) return false;
    const message = 'message' in entry ? `: ${entry.message}` : '';
    item.settle(entry.status, isApproved ? null : `rejected${message}`, entry);
    return true;
  }

  /** Returns true if the key decided another vote with the same dependencies. */
  hasVotedBefore(item, key) {
    const subject = sameSet(this.dependencies(item.id));
    return [...this.items.values()].some(
      (other) =>
        other !== item &&
        other.end?.kind === 'item.decided' &&
        other.end.by === key &&
        this.isVote(other.id) &&
        sameSet(this.dependencies(other.id)) === subject,
    );
  }

  'apply item.retried'(entry, item) {
    if (item.status !== 'running' || entry.attempt !== item.attemptCount) return false;
    if (entry.reason !== 'failure' || !isExitLegal(entry.exit)) return false;
    if ((entry.driver ?? null) !== item.holder || !isTakeOverLegal(entry)) return false;
    item.settle(null, entry.detail);
    return true;
  }

  'apply item.requeued'(entry, item) {
    if (entry.attempt !== item.attemptCount || !isExitLegal(entry.exit)) return false;
    const byOperator = entry.reason === 'operator';
    if (byOperator) {
      const canRestart = ['running', 'failed', 'skipped', 'cancelled'].includes(item.status);
      if (!canRestart || this.isClosed || this.superseded.has(item.id)) return false;
    } else if (entry.reason === 'failure' || item.status !== 'running') return false;
    // An operator need not name the driver.
    const mustName = !byOperator || 'driver' in entry;
    if (mustName && (entry.driver ?? null) !== item.holder) return false;
    if (!isTakeOverLegal(entry)) return false;
    item.limitedAttempts = byOperator ? 0 : item.limitedAttempts - 1;
    item.settle(null, entry.detail);
    return true;
  }

  'apply item.skipped'(entry, item) {
    if (item.status !== null || entry.attempt !== item.attemptCount) return false;
    if (!this.dependencies(item.id).some((each) => this.isLost(item.id, each))) return false;
    item.settle('skipped', entry.reason);
    return true;
  }

  'apply item.cancelled'(entry, item) {
    if (item.hasEnded || entry.attempt !== item.attemptCount) return false;
    item.settle('cancelled', entry.reason);
    return true;
  }

  'apply document.written'(entry) {
    if (this.isClosed) return false;
    const latest = this.latestRevision(entry.name);
    if (entry.revision !== (latest?.revision ?? 0) + 1) return false;
    if (entry.previous !== latest?.sha256) return false;
    const others = [...this.declaredDocuments, ...this.documents.keys()];
    const clashes = others.some((other) => other !== entry.name && haveClash([other, entry.name]));
    if (clashes) return false;
    const { sha256: digest, oid, schema = null } = entry;
    this.addRevision(entry.name, { sha256: digest, oid, schema });
    return true;
  }

  'apply run.admitted'(entry) {
    if (this.isClosed && entry.role !== 'seal') return false;
    if (this.roles.get(entry.key)?.has(entry.role)) return false;
    this.roles = withRole(this.roles, entry);
    return true;
  }

  'apply run.dismissed'({ key }) {
    const held = this.roles.get(key);
    if (!held || held.has('seal') || this.entryZero.writers.includes(key)) return false;
    this.roles = withoutKey(this.roles, key);
    return true;
  }

  'apply run.shared'({ heartbeat, lostAfter }) {
    if (this.isShared || this.isClosed) return false;
    if (heartbeat < 100 || heartbeat > 3600000) return false;
    if (lostAfter < 4 * heartbeat || lostAfter > 30 * 86400000) return false;
    this.isShared = true;
    return true;
  }

  'apply run.extended'(entry, items) {
    const { cause } = entry;
    const rule = cause === 'actor' ? undefined : this.rulesById.get(cause.rule);
    if (rule) {
      const acting = this.tryRules(() => this.actionOf(rule));
      if (acting && !this.isCreation(acting.value, entry)) {
        this.codes.add('rule');
        return false;
      }
    }
    const areUsable = [...items].every(([id, item]) => item?.id === id);
    if (!areUsable || this.isClosed || this.isSealed) return false;
    if (cause === 'actor') {
      const names = [...pipelineNamesOf([...items.values()])];
      const missing = names.filter((name) => !this.pipelines.has(name));
      const named = Object.keys(entry.pipelines ?? {});
      if (!this.entryZero.openEnded || !this.doItemsFit(items, true)) return false;
      if (sameSet(missing) !== sameSet(named)) return false;
      for (const name of named) this.pipelines.set(name, entry.pipelines[name]);
      this.addItems(items, 'actor');
      return true;
    }
    if (!rule || 'pipelines' in entry || !this.doItemsFit(items, false)) return false;
    if (this.roundsOf(rule) >= (rule.when?.atMost ?? 1)) return false;
    this.rounds.set(rule.id, this.roundsOf(rule) + 1);
    this.addItems(items, { rule: rule.id });
    return true;
  }

  isCreation(action, entry) {
    if (!action?.items || 'pipelines' in entry) return false;
    const digests = Object.create(null);
    for (const [id, item] of action.items) digests[id] = canonicalDigest(item);
    return sameJson(digests, entry.items);
  }

  'apply run.concluded'(entry) {
    const rule = this.rulesById.get(entry.rule);
    if (!rule) return false;
    const acting = this.tryRules(() => this.actionOf(rule));
    const isClash = Boolean(acting?.value?.isClash);
    if (acting && (acting.value?.outcome !== entry.outcome || 'detail' in entry !== isClash)) {
      this.codes.add('rule');
      return false;
    }
    if (this.isClosed || this.isSealed || this.hasConcluded(rule)) return false;
    const { outcome, detail = null } = entry;
    this.conclusions.push({ rule: rule.id, outcome, detail });
    return true;
  }

  hasConcluded(rule) {
    return this.conclusions.some((conclusion) => conclusion.rule === rule.id);
  }

  'apply run.closed'(entry) {
    if (this.isClosed || !this.isSettled) return false;
    if (
      this.countingItems().every((item) => this.isGood(item)) &&
      this.conclusionsInForce().length === 0
    ) {
      for (const rule of this.rules.filter((each) => !each.when?.if?.length)) {
        const action = this.actionOf(rule);
        if (!action) continue;
        const outcome = 'create' in rule ? 'closed-early' : action.outcome;
        this.earlyConclusions.push({ rule: rule.id, outcome });
      }
    }
    this.isClosed = true;
    this.closing = entry;
    return true;
  }

  'apply run.cancelled'(entry) {
    return this['apply run.closed'](entry);
  }

  'apply run.sealed'(entry) {
    const isComplete = () =>
      !this.entryZero.openEnded && this.countingItems().every((item) => item.status === 'done');
    const named = Object.keys(entry.stopped ?? {});
    const areRules = !this.hasConclusion && named.every((id) => this.rulesById.has(id));
    const isLegal =
      !this.isSealed &&
      this.isSettled &&
      (this.isClosed || isComplete()) &&
      (areRules || !('stopped' in entry));
    for (const rule of this.isClosed ? [] : this.rules) {
      const doesWait = () => Boolean(this.actionOf(rule)) || this.hasStoppedShort(rule);
      if (this.tryRules(doesWait)?.value) this.codes.add('rule-waits');
    }
    const read = this.tryRules(() => this.rulesThatStopped());
    this.stoppedAtSeal = read ? read.value : sortNames(named);
    if ('stopped' in entry && sameSet(this.stoppedAtSeal) !== sameSet(named))
      this.codes.add('stopped');
    this.isSealed ||= isLegal;
    return isLegal;
  }

  get hasConclusion() {
    return this.conclusions.length > 0 || this.earlyConclusions.length > 0;
  }

  areBlocksLegal(item, entry) {
    const name = pipelineNameOf(item.definition);
    const digest = name === null ? undefined : this.pipelines.get(name);
    const pipeline = digest === undefined ? undefined : this.pipelinesByDigest.get(digest);
    if (pipeline === null) return true;
    if (pipeline === undefined || entry.attempt === 0) return !('blocks' in entry);
    const blocks = entry.blocks ?? [];
    if (blocks.length > pipeline.blocks.length) return false;
    let canFollow = true;
    let firstVerdict = null;
    for (const [i, block] of blocks.entries()) {
      const definition = pipeline.blocks[i];
      if (!canFollow || block.ordinal !== i || !isBlockLegal(block, definition)) return false;
      firstVerdict ??= block.verify ?? null;
      canFollow = isCheckBlock(definition) ? 'verify' in block : block.status === 'done';
    }
    if (entry.kind !== 'item.reconciled' || entry.status !== 'done') return true;
    if (blocks.length < pipeline.blocks.length || !canFollow) return false;
    const { verify } = entry;
    const isOwnVerdict = verify?.by === 'self';
    const fits = firstVerdict
      ? verify && (isOwnVerdict ? !verify.passed : verify.passed === firstVerdict.passed)
      : !verify || isOwnVerdict;
    if (!fits) return false;
    const captured = pipeline.blocks.map((block) => block.what);
    return Object.keys(entry.products).every((key) =>
      captured.includes(key === 'patch' ? 'patch' : 'outputs'),
    );
  }

  // -- items that are added --

  addItems(items, origin) {
    for (const id of sortNames(items.keys())) {
      const definition = items.get(id);
      const item = new ItemState(definition, origin);
      this.items.set(id, item);
      for (const name of documentNamesOf(definition)) this.declaredDocuments.add(name);
      const before = definition.replaces ?? definition.continues;
      if (before !== undefined) this.successors.set(before, id);
      if ('replaces' in definition) this.superseded.add(definition.replaces);
      if (origin.rule === undefined) continue;
      this.createdItems.set(origin.rule, [...(this.createdItems.get(origin.rule) ?? []), id]);
    }
  }

  doItemsFit(items, byActor) {
    const documents = new Set([...this.declaredDocuments, ...this.documents.keys()]);
    const followed = new Set();
    for (const [id, item] of items) {
      if (this.items.has(id)) return false;
      if (!item.depends_on.every((each) => this.items.has(each) || items.has(each))) return false;
      for (const need of Object.values(item.needs)) {
        if (isFromElsewhere(need) && (byActor || this.bindingOf(need) === null)) return false;
      }
      for (const name of documentNamesOf(item)) documents.add(name);
      const before = item.replaces ?? item.continues;
      if (before === undefined) continue;
      if (byActor || !this.items.has(before) || this.successors.has(before)) return false;
      if (followed.has(before)) return false;
      if ('replaces' in item && !this.items.get(before).hasEnded) return false;
      followed.add(before);
    }
    return !haveClash(documents) && !hasCircle(items);
  }

  // -- rules --

  roundsOf(rule) {
    return this.rounds.get(rule.id) ?? 0;
  }

  namedDocuments(rule) {
    const { present = [], absent = [], if: conditions = [] } = rule.when ?? {};
    return [...present, ...absent, ...conditions.map((condition) => condition.document)];
  }

  /** Returns the JSON of the latest revision, or undefined if it is not such JSON. */
  readLatest(name) {
    const revision = this.latestRevision(name);
    // Many rules may read one revision, and at many entries.
    if (this.latestRead?.revision !== revision) {
      const bytes = this.readDocument(revision);
      const json = tryJson(bytes, { size: limits.ruleDocument, exactNumbers: true });
      this.latestRead = { revision, json };
    }
    return this.latestRead.json;
  }

  holdsForDocument(condition, forgiven) {
    const json = this.readLatest(condition.document);
    if (json === undefined) return forgiven >= forgive.unusable;
    const value = valueAt(json, condition.pointer);
    if (value === undefined) return forgiven >= forgive.missingValue;
    return compareValues(value, condition.op, condition.value) ?? forgiven >= forgive.unusable;
  }

  holdsForItems(condition) {
    const listed = condition.items ?? this.createdItems.get(condition.createdBy) ?? [];
    const items = listed.map((id) => this.items.get(this.newest(id))).filter(Boolean);
    const count = this.countForCondition(condition, items);
    if ('op' in condition) return compareBy[condition.op](count - condition.value);
    return count === listed.length && count !== 0;
  }

  countForCondition(condition, items) {
    if ('are' in condition) {
      const states = [condition.are].flat();
      return items.filter((item) => states.some((state) => this.isInState(item, state))).length;
    }
    if ('have' in condition) {
      return items.filter((item) => `outputs/${condition.have}` in item.products).length;
    }
    if (condition.count === 'rounds') return this.rounds.get(condition.createdBy) ?? 0;
    const numberOf = (item) =>
      condition.count === 'outputs' ? item.outputs.length : item.attemptCount;
    return items.reduce((sum, item) => sum + numberOf(item), 0);
  }

  isInState(item, state) {
    if (state === 'green') return item.status === 'done' && !this.isRed(item);
    if (state === 'red') return this.isRed(item);
    return state === 'ended' ? item.hasEnded : item.status === state;
  }

  doItemConditionsHold(rule) {
    return (rule.when?.items ?? []).every((condition) => this.holdsForItems(condition));
  }

  isAtLimit(rule) {
    return 'create' in rule && this.roundsOf(rule) >= (rule.when?.atMost ?? 1);
  }

  /**
   * Returns what the rule does now, {outcome} or {items}, or null if it does not act.
   * Reads the documents of `if` that the run has whenever the other points hold.
   */
  actionOf(rule, forgiven = forgive.nothing, ignoreLimit = false) {
    if (!('create' in rule || 'outcome' in rule) || this.hasConcluded(rule)) return null;
    if (!ignoreLimit && this.isAtLimit(rule)) return null;
    if (!this.doItemConditionsHold(rule)) return null;
    const action = this.resultOf(rule);
    if (!action) return null;
    const { present = [], absent = [], if: conditions = [] } = rule.when ?? {};
    const has = (name) => this.documents.has(name);
    const holding = conditions
      .filter((condition) => has(condition.document))
      .map((condition) => this.holdsForDocument(condition, forgiven));
    const areThere = [...present, ...conditions.map((each) => each.document)].every(has);
    return areThere && !absent.some(has) && holding.every(Boolean) ? action : null;
  }

  resultOf(rule) {
    if ('outcome' in rule) return { outcome: rule.outcome };
    if (!Array.isArray(rule.create)) return this.createByDocuments(rule);
    try {
      return new TemplateRound(this, rule).create();
    } catch (error) {
      if (error instanceof NameClash) return { outcome: 'name-clash', isClash: true };
      throw error;
    }
  }

  /** Creates the item whose id depends on the revisions that the rule sees. */
  createByDocuments(rule) {
    const documents = Object.create(null);
    for (const name of this.namedDocuments(rule)) {
      const latest = this.latestRevision(name);
      if (latest) documents[name] = { revision: latest.revision, sha256: latest.sha256 };
    }
    const id = `${rule.id}-${hexOfSha256(canonical({ documents, rule })).slice(0, 12)}`;
    if (this.items.has(id)) return null;
    return { items: new Map([[id, normaliseItem({ ...rule.create, id })]]) };
  }

  hasStoppedShort(rule, forgiven = forgive.missingValue) {
    if (this.conclusions.length > 0 || this.namedDocuments(rule).length === 0) return false;
    if (!('create' in rule || 'outcome' in rule) || this.actionOf(rule)) return false;
    const createsOne = 'create' in rule && !Array.isArray(rule.create);
    if (this.isAtLimit(rule) && !createsOne) return false;
    for (const { document } of rule.when?.if ?? []) {
      if (this.documents.has(document)) this.readLatest(document);
    }
    return Boolean(this.actionOf(rule, forgiven, createsOne));
  }

  /** Returns the conclusions of entries that are in force: {rule, outcome, detail}. */
  conclusionsInForce() {
    return this.conclusions.filter(
      ({ rule, outcome }) =>
        outcome === 'name-clash' || this.doItemConditionsHold(this.rulesById.get(rule)),
    );
  }

  /** Returns the ids of the rules that stopped. */
  rulesThatStopped() {
    if (!this.isSettled || this.hasConclusion) return [];
    const areAllGood = this.countingItems().every((item) => this.isGood(item));
    const stopped = [];
    for (const rule of this.rules) {
      try {
        const isActing = Boolean(this.actionOf(rule));
        if (isActing && !this.isClosed) return [];
        if (isActing ? areAllGood : this.hasStoppedShort(rule, forgive.unusable))
          stopped.push(rule.id);
      } catch (error) {
        if (error instanceof UnreadableDocument) error.rule = rule.id;
        throw error;
      }
    }
    return sortNames(new Set(stopped));
  }

  // -- the outcome (section 9) --

  handsOverNothing(item) {
    return (
      Object.keys(item.products).length === 0 &&
      item.definition.executor !== 'approval' &&
      this.gateOf(item.id) === null &&
      item.definition.produces?.length !== 0 &&
      (item.blocks === null || item.blocks.some((block) => block.kind === 'capture'))
    );
  }

  outcome() {
    const counts = emptyOutcome();
    counts.total = counts.pending = this.shadowedItems;
    let withNothing = 0;
    let claimed = 0;
    for (const item of this.countingItems()) {
      counts.total++;
      if (item.status !== 'done') counts[item.status ?? 'pending']++;
      else {
        counts[this.isGood(item) ? 'done' : 'red']++;
        if (this.handsOverNothing(item)) withNothing++;
        if (item.definition.executor === 'claimed') claimed++;
      }
    }
    if (this.superseded.size > 0) counts.superseded = this.superseded.size;
    if (withNothing > 0) counts.handedOverNothing = withNothing;
    if (claimed > 0) counts.claimed = claimed;
    const said = [...this.conclusionsInForce(), ...this.earlyConclusions];
    if (said.length > 0) counts.said = said.map((conclusion) => conclusion.outcome);
    const stopped = [
      ...said.map(({ rule, outcome, detail }) => ({
        rule,
        reason: detail ? `${outcome}: ${detail}` : outcome,
      })),
      ...(this.stoppedAtSeal ?? this.stoppedForOutcome()).map((rule) => ({
        rule,
        reason: this.whyStopped(rule),
      })),
    ];
    if (stopped.length > 0) counts.stopped = stopped[0];
    if (stopped.length > 1) counts.alsoStopped = stopped.slice(1);
    return counts;
  }

  stoppedForOutcome() {
    try {
      return this.rulesThatStopped();
    } catch (error) {
      // A rule whose document cannot be read may have stopped.
      if (error instanceof UnreadableDocument) return [error.rule];
      throw error;
    }
  }

  whyStopped(id) {
    const rule = this.rulesById.get(id);
    if (!rule) return 'the run has no such rule';
    if (this.isAtLimit(rule))
      return `it may act ${rule.when?.atMost ?? 1} times, and would act again`;
    try {
      if (this.isClosed && this.actionOf(rule)) return 'it still acts, and the run was closed';
    } catch (error) {
      if (!(error instanceof UnreadableDocument)) throw error;
      return error.message;
    }
    return 'it finds nothing to compare where it looks';
  }
}

/** Returns a text that two arrays share exactly if they have the same members. */
const sameSet = (names) => canonical(sortNames(new Set(names)));

function isExitLegal(exit, isDone = false) {
  if (exit === undefined) return true;
  if ('code' in exit === 'signal' in exit) return false;
  return !isDone || exit.code === 0;
}

function hasDeclaredProducts(definition, products) {
  const documents = new Set();
  for (const declared of definition.produces ?? []) {
    const product = products[productOf(declared)];
    if (!product) return false;
    if (declared.kind !== 'document') continue;
    if (!sameJson(product, products[`outputs/${declared.path}`])) return false;
    documents.add(productOf(declared));
  }
  return Object.keys(products).every((key) => !key.startsWith('documents/') || documents.has(key));
}

/** Returns true if an entry has `because` exactly with the reason `lost`, and `taker` only then. */
function isTakeOverLegal({ reason, driver, taker, because }) {
  if (reason !== 'lost') return taker === undefined && because === undefined;
  return driver !== undefined && because !== undefined && taker !== driver;
}

const isCheckBlock = (definition) => definition.kind === 'script' && definition.lens === 'verify';

function isBlockLegal(block, definition) {
  if (block.kind !== definition.kind) return false;
  if (!isExitLegal(block.exit) || ('exit' in block && block.kind === 'capture')) return false;
  const isDone = block.status === 'done';
  if (isDone && block.kind !== 'capture' && block.exit?.code !== 0) return false;
  if (!('verify' in block)) return !(isCheckBlock(definition) && isDone);
  const { passed, by } = block.verify;
  return isCheckBlock(definition) && by === 'command' && passed === isDone;
}

/** Returns true if one of the items depends on itself through others of them. */
function hasCircle(items) {
  const dependents = new Map([...items.keys()].map((id) => [id, []]));
  const waiting = new Map();
  for (const [id, { depends_on: all }] of items) {
    const own = all.filter((each) => items.has(each));
    waiting.set(id, own.length);
    for (const each of own) dependents.get(each).push(id);
  }
  const free = [...items.keys()].filter((id) => waiting.get(id) === 0);
  for (const each of free) {
    for (const id of dependents.get(each)) {
      waiting.set(id, waiting.get(id) - 1);
      if (waiting.get(id) === 0) free.push(id);
    }
  }
  return free.length < items.size;
}

/** One application of a rule whose `create` is an array of templates. */
class TemplateRound {
  constructor(replay, rule) {
    this.replay = replay;
    this.rule = rule;
    this.round = String(replay.roundsOf(rule) + 1);
    this.created = new Map();
    this.successors = new Map();
    this.isWaiting = false;
    this.links = 0;
  }

  create() {
    for (const template of this.rule.create) {
      if ('again' in template) {
        this.copyAgain(template.again);
        continue;
      }
      const { forEach } = this.rule;
      const outputs = forEach ? this.outputsOf(forEach.outputsOf) : [null];
      for (const output of outputs) this.applyTemplate(template, output);
    }
    if (this.created.size === 0 || this.isWaiting) return null;
    const sizes = [...this.created.values()].map((item) => canonicalBytes(item).length);
    const size = sizes.reduce((sum, each) => sum + each);
    if (size > templateLimits.bytes || !this.replay.doItemsFit(this.created, false))
      throw new NameClash();
    return { items: this.created };
  }

  newest(id) {
    return this.replay.newest(id, this.successors);
  }

  outputsOf(id) {
    return this.replay.items.get(this.newest(id))?.outputs ?? [];
  }

  hasProduct(need) {
    const item = this.replay.items.get(need.from);
    return item !== undefined && productOf(need.select) in item.products;
  }

  countLinks(count) {
    this.links += count;
    if (this.links > templateLimits.links) throw new NameClash();
  }

  add(item) {
    if (this.created.has(item.id) || !isAddedItem(item)) throw new NameClash();
    if (this.created.size >= templateLimits.items) throw new NameClash();
    this.created.set(item.id, normaliseItem(item));
  }

  copyAgain(id) {
    const { replay } = this;
    const first = this.newest(id);
    if (!replay.items.has(first)) throw new NameClash();
    const copied = new Set([first]);
    for (let grows = true; grows;) {
      grows = false;
      for (const item of replay.items.values()) {
        if (copied.has(item.id) || item.status !== 'skipped' || this.newest(item.id) !== item.id)
          continue;
        if (!replay.dependencies(item.id).some((each) => copied.has(each))) continue;
        copied.add(item.id);
        grows = true;
      }
    }
    for (const each of copied) {
      if (!replay.items.get(each).hasEnded) this.isWaiting = true;
      this.successors.set(each, nameOfCopy(each));
    }
    for (const each of copied) this.add(this.copyOf(each));
  }

  copyOf(id) {
    const { definition } = this.replay.items.get(id);
    const copy = { ...definition, id: nameOfCopy(id), replaces: id };
    delete copy.continues;
    const dependencies = this.replay.dependencies(id);
    this.countLinks(dependencies.length + Object.keys(definition.needs).length);
    copy.depends_on = dependencies.map((each) => this.newest(each));
    copy.needs = Object.create(null);
    for (const key of Object.keys(definition.needs)) {
      const need = definition.needs[key];
      copy.needs[key] =
        itemOfNeed(need) === null ? need : { ...need, from: this.newest(need.from) };
    }
    return copy;
  }

  fill(text, output) {
    const numbered = text.replaceAll('{{n}}', this.round);
    return output === null ? numbered : numbered.replaceAll('{{key}}', () => output);
  }

  fillNeed(need, output) {
    const filled = { ...need, select: { ...need.select } };
    if (!isFromElsewhere(need)) filled.from = this.fill(need.from, output);
    if ('path' in filled.select) filled.select.path = this.fill(filled.select.path, output);
    if (itemOfNeed(filled) !== null) filled.from = this.newest(filled.from);
    return filled;
  }

  applyTemplate(template, output) {
    const item = { ...template.item, id: this.fill(template.item.id, output) };
    const before = 'replaces' in item ? 'replaces' : 'continues';
    if (before in item) {
      item[before] = this.newest(item[before]);
      const named = this.replay.items.get(item[before]);
      if (before === 'replaces' && named && !named.hasEnded) this.isWaiting = true;
    }
    const listed = item.depends_on ?? [];
    this.countLinks(listed.length);
    item.depends_on = listed.map((each) => this.newest(this.fill(each, output)));
    item.needs = this.needsOf(template, output);
    item.inputs = this.inputsOf(template, output);
    this.add(item);
    if (before in item) this.successors.set(item[before], item.id);
  }

  needsOf(template, output) {
    const needs = Object.create(null);
    const add = (key, need) => {
      if (key in needs) throw new NameClash();
      needs[key] = need;
    };
    const { optional = [], each } = template;
    for (const key of Object.keys(template.item.needs ?? {})) {
      this.countLinks(1);
      const need = this.fillNeed(template.item.needs[key], output);
      if (!optional.includes(key) || this.hasProduct(need)) add(this.fill(key, output), need);
    }
    for (const own of each ? this.outputsOf(each.outputsOf) : []) {
      this.countLinks(1);
      const need = this.fillNeed({ from: each.from, select: each.select }, own);
      if (!each.survivors || this.hasProduct(need)) add(this.fill(each.key, own), need);
    }
    return needs;
  }

  inputsOf(template, output) {
    const inputs = Object.assign(Object.create(null), template.item.inputs);
    for (const key of Object.keys(inputs)) {
      if (output !== null && inputs[key] === '{{key}}') inputs[key] = output;
    }
    for (const [key, id] of Object.entries(template.reasons ?? {})) {
      const item = this.replay.items.get(this.newest(id));
      if (item?.status === 'failed' && item.reason !== null) inputs[key] = item.reason;
    }
    return inputs;
  }
}

/** Returns the id of the copy of an item: `a` becomes `a~2`, and `a~2` becomes `a~3`. */
function nameOfCopy(id) {
  const match = /^(.*)~([0-9]+)$/s.exec(id);
  const number = match ? BigInt(match[2]) : null;
  if (number === null || number >= 2n ** 64n) return `${id}~2`;
  if (number === 2n ** 64n - 1n) throw new NameClash();
  return `${match[1]}~${number + 1n}`;
}

// ---- trees (sections 5 and 9) ----

/** The nodes of a tree object, which stay bytes until one of them is asked for. */
class Tree {
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

  /** Returns the node of a key, or undefined. */
  find(key) {
    this.byKey ??= new Map(this.nodes.map((node) => [node.key, node]));
    return this.byKey.get(key);
  }

  /** Returns true if a node is byte for byte one of another tree. */
  hasSame(index, other, otherIndex) {
    let at = other.starts[otherIndex];
    for (let i = this.starts[index]; i < this.starts[index + 1]; i++, at++)
      if (this.bytes[i] !== other.bytes[at]) return false;
    return true;
  }
}

const folderMode = toBytes('40000 ');

/** The changes of a tree by one entry. Folders that the entry must not change are not read. */
class TreeChanges {
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
const unreadFile = { unread: 'unread', leftOut: 'left out' };

/**
 * Applies changes to a map from paths to objects. Only what an entry may change ever gets into it,
 * so that a later entry does not see any other change.
 */
function applyChanges(files, { store, allowed, paths, unread }) {
  for (const { path: folder, oid } of unread) {
    const word = store.isLeftOut(oid) ? unreadFile.leftOut : unreadFile.unread;
    for (const path of allowed.sets.keys()) if (path.startsWith(folder)) files.set(path, word);
  }
  for (const [path, oid] of paths) {
    if (oid === null) files.delete(path);
    else files.set(path, oid);
  }
}

/** Returns the bytes of the blob at a path of a tree, or null. */
function readBlobAt(store, tree, path) {
  const segments = path.split('/');
  let oid = tree;
  for (const [i, segment] of segments.entries()) {
    const node = store.readTree(oid)?.find(i < segments.length - 1 ? segment + '/' : segment);
    if (!node) return null;
    oid = node.oid;
  }
  return store.readBlob(oid);
}

/** Returns the folder of an item. With `fanOut`, it is below one of 256 folders. */
function itemFolder(item, fanOut) {
  return fanOut ? `items/${pathOfName(item)}/` : `items/${encodeSegment(item)}/`;
}

const pathOfName = (name) => `${hexOfSha256(name).slice(0, 2)}/${encodeSegment(name)}`;
const pipelinePath = (digest) => `pipelines/${digest.slice(7)}.json`;
const importPath = (name) => `imports/${hexOfSha256(name)}/`;

/** The paths that an entry may change (section 5). */
class AllowedChanges {
  constructor(entry, fanOut, format) {
    /** Path to the object that must be there, or to null if any blob may. */
    this.sets = new Map();
    /** The patch of an item, and the folder of its outputs, if the entry may remove these. */
    this.patch = this.outputs = null;
    this.allowItem(entry, fanOut);
    this.allowRun(entry, fanOut);
    this.allowLog(entry, format);
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
    this.sets.set(folder + 'state.json', null);
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

  /** The record in a log follows from its entry. */
  allowLog(entry, format) {
    const { kind, run } = entry;
    if (kind === 'log.written')
      this.sets.set(`written/${pathOfName(run)}/${encodePath(entry.name)}`, entry.oid);
    if (!(kind in recordFields)) return;
    const record = pickFields(entry, recordFields[kind]);
    let path = pathOfName(run ?? entry.thread);
    if (kind === 'log.decided') path = `decided/${path}/${encodeSegment(entry.item)}`;
    if (kind === 'log.thread') path = `threads/${path}`;
    this.sets.set(path, objectName(format, 'blob', canonicalBytes(record)));
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

// ---- chains (section 9) ----

/**
 * Yields the commits from a head back to the first one. In place of one that is not here, the last
 * is {name, isMissing, isLeftOut}.
 */
function* commitsFrom(store, head) {
  let name = head;
  do {
    const bytes = store.read(name, 'commit');
    const commit = bytes && new Commit(bytes, store.format, name);
    yield commit ?? { name, isMissing: true, isLeftOut: store.isLeftOut(name) };
    name = commit?.parents[0];
  } while (name !== undefined);
}

/** The commits of a chain, oldest first, and whether it could be read to its first entry. */
class Chain {
  constructor(store, head) {
    this.commits = [];
    this.isWhole = false;
    /** {code, text} of what was wrong with reading. */
    this.faults = [];
    /** True if a commit is not here in a store that leaves objects out. */
    this.isLeftOut = false;
    /** False if the ref names no commit at all. */
    this.hasRef =
      head !== undefined && (!store.objects.has(head) || store.read(head, 'commit') !== null);
    if (this.hasRef) this.walk(store, head);
    else this.fault('ref', 'the ref names no commit');
    this.commits.reverse();
    /** The check of the signatures, which goes on in the background. */
    this.signatures = checkSignatures(this.commits);
  }

  fault(code, text) {
    this.faults.push({ code, text });
  }

  walk(store, head) {
    let [invalid, size, allowed] = [0, 0, limits.chain];
    for (const commit of commitsFrom(store, head)) {
      const { name, entry, parents } = commit;
      if (commit.isMissing) {
        this.isLeftOut = commit.isLeftOut;
        if (!this.isLeftOut) this.fault('object', `object ${name} is not here`);
        return;
      }
      size += commit.bytes.length;
      allowed += 1024 * store.objects.get(name).packed;
      if (size > allowed) {
        this.fault('object', 'the commits are too large together');
        return;
      }
      this.commits.push(commit);
      if (!entry) this.fault('entry', `commit ${name} is no entry: ${commit.fault}`);
      if (!entry && ++invalid > limits.invalidCommits) {
        this.fault('not-read', 'more than 100 commits are no entries');
        return;
      }
      this.isWhole = parents.length === 0 && commit.tree !== null;
    }
  }

  /** The commits that carry a valid entry. */
  get valid() {
    return this.commits.filter((commit) => commit.entry !== null);
  }
}

/** Calls `report(code, commit, text)` for each fault in the order of entries. */
function checkOrder(commits, isWhole, report) {
  for (const [i, commit] of commits.entries()) {
    const { entry } = commit;
    const before = commits[i - 1];
    if (!before) {
      if (!isWhole) continue;
      if (entry.seq !== 0) report('seq', commit, `the first entry has the number ${entry.seq}`);
      if ('prev' in entry) report('prev', commit, 'the first entry names one before it');
      continue;
    }
    if (entry.seq !== before.entry.seq + 1) {
      report('seq', commit, `entry ${entry.seq} follows entry ${before.entry.seq}`);
    }
    if (entry.prev !== before.hash)
      report('prev', commit, `entry ${entry.seq} names another entry before it`);
    if (entry.at < before.entry.at)
      report('time', commit, `entry ${entry.seq} is dated before the one before it`);
  }
}

// ---- the keys that a verifier knows (section 9, keys) ----

/** Reads `valid-after` and `valid-before`; a time without Z is local. */
function readValidity(text) {
  const match = /^([0-9]{4})([0-9]{2})([0-9]{2})(?:([0-9]{2})([0-9]{2})([0-9]{2})?)?(Z?)$/.exec(
    text,
  );
  ensure(match, `a time that cannot be understood: ${text}`);
  const [, year, month, day, hour = '00', minute = '00', second = '00', zone] = match;
  const time = `${year}-${month}-${day}T${hour}:${minute}:${second}.000`;
  ensure(secondsOf(time + 'Z') !== null, `a time that does not exist: ${text}`);
  return new Date(time + zone).getTime() / 1000;
}

function matchesPatterns(name, patterns) {
  let isMatched = false;
  for (const pattern of patterns) {
    const isNegated = pattern.startsWith('!');
    const body = (isNegated ? pattern.slice(1) : pattern).replace(/[.+^${}()|[\]\\]/g, '\\$&');
    const matches = new RegExp(`^${body.replaceAll('*', '.*').replaceAll('?', '.')}$`, 's').test(
      name,
    );
    if (matches && isNegated) return false;
    isMatched ||= matches;
  }
  return isMatched;
}

function splitQuoted(text, separator) {
  const parts = [''];
  let isQuoted = false;
  for (const character of text) {
    if (character === '"') isQuoted = !isQuoted;
    if (character === separator && !isQuoted) parts.push('');
    else parts[parts.length - 1] += character;
  }
  ensure(!isQuoted, 'a quote that does not end');
  return parts;
}

/** Reads a line of an allowed-signers file: {principals, fingerprint, after, before} or null. */
function readSignerLine(line) {
  const words = splitQuoted(line.replace(/\t/g, ' '), ' ').filter((word) => word !== '');
  const principals = words.shift().replaceAll('"', '').split(',');
  const options = {};
  const hasOptions = !/^(?:ssh-|ecdsa-|sk-)/.test(words[0] ?? '');
  const given = hasOptions ? splitQuoted(words.shift() ?? '', ',') : [];
  if (given.some((option) => option.toLowerCase() === 'cert-authority')) return null;
  for (const option of given) {
    const [, name, value] = /^([a-zA-Z-]+)(?:="([^"]*)")?$/.exec(option) ?? [];
    const known = ['namespaces', 'valid-after', 'valid-before'].includes(name?.toLowerCase());
    ensure(known && value !== undefined, `an option that cannot be understood: ${option}`);
    ensure(!(name.toLowerCase() in options), `an option twice: ${option}`);
    options[name.toLowerCase()] = value;
  }
  const [type, encoded, ...comment] = words;
  const wire = fromBase64(encoded ?? '');
  ensure(encoded, 'a line without a key');
  ensure(type !== 'ssh-ed25519' || (wire && wire.length > 4), 'a key that cannot be read');
  const namesKey = comment.some(
    (word) => /AAAA/.test(word) || /sha256:|sha512:|md5:|since=/i.test(word),
  );
  ensure(!namesKey, 'a second key in a comment');
  const after = 'valid-after' in options ? readValidity(options['valid-after']) : -Infinity;
  const before = 'valid-before' in options ? readValidity(options['valid-before']) : Infinity;
  ensure(after <= before, 'a line that is valid at no time');
  const namespaces = options.namespaces?.split(',');
  if (type !== 'ssh-ed25519' || !readEd25519Key(wire)) return null;
  if (namespaces && !matchesPatterns('git', namespaces)) return null;
  return { principals, fingerprint: fingerprintOfWire(wire), after, before };
}

function readLines(text) {
  ensure(!text.slice(1).includes('\ufeff'), 'a byte order mark inside the file');
  const lines = text
    .replace(/^\ufeff/, '')
    .replaceAll('\r\n', '\n')
    .split('\n');
  ensure(
    lines.every((line) => !/[^\P{Cc}\t]|[\u2028\u2029]/u.test(line)),
    'a control character',
  );
  return lines.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'));
}

/** The keys that a verifier knows, requires and distrusts. */
class Signers {
  constructor({ signers, revoked, signer, strictSigners }) {
    this.lines = new Map();
    this.revoked = new Map();
    this.wanted = signer ?? null;
    this.knownOnly = strictSigners ?? (signers !== undefined && signers !== null);
    for (const line of readLines(signers ?? '')) {
      const read = readSignerLine(line);
      if (!read) continue;
      this.lines.set(read.fingerprint, [...(this.lines.get(read.fingerprint) ?? []), read]);
    }
    for (const line of readLines(revoked ?? '')) {
      const [, since, key] = /^(?:since=(\S+)\s+)?(\S.*)$/s.exec(line);
      const wire = /^ssh-ed25519\s+(\S+)/.exec(key);
      const bytes = wire && fromBase64(wire[1]);
      const fingerprint = bytes ? fingerprintOfWire(bytes) : key.split(/\s/)[0];
      ensure(isFingerprint(fingerprint), `a revoked key that cannot be understood: ${line}`);
      this.revoked.set(fingerprint, since ?? null);
    }
  }

  /** Returns true if logs by this key count as those of a known key. */
  isKnown(key) {
    return this.lines.has(key) && this.revoked.get(key) !== null;
  }

  /** Returns the first principal of the key, or null. */
  principalOf(key) {
    return this.lines.get(key)?.[0].principals[0] ?? null;
  }

  /** Returns the code of the finding about a key at a time, or null. */
  judge(key, seconds, conducts) {
    if (this.revoked.has(key)) return 'key-revoked';
    const lines = this.lines.get(key);
    if (!lines && this.knownOnly) return 'key-unknown';
    const valid = (lines ?? []).filter(
      ({ after, before }) => after <= seconds && seconds <= before,
    );
    if (lines && valid.length === 0) return 'key-not-valid';
    if (this.wanted === null || !conducts || this.wanted === key) return null;
    const isWanted = valid.some(({ principals }) => matchesPatterns(this.wanted, principals));
    return isWanted ? null : 'other-signer';
  }
}

// ---- roles and statements (section 6) ----

/** The roles for kinds of entries other than those of owners. */
const rolesByKind = {
  'run.shared': ['own', 'work'],
  'item.fired': ['work'],
  'item.reconciled': ['work'],
  'item.retried': ['work'],
  'item.skipped': ['own', 'work'],
  'run.closed': ['own', 'work'],
  'run.sealed': ['seal'],
  'run.concluded': roles,
};

/**
 * Returns the roles of which a key must have one to sign the entry. `holders` has the keys of the
 * attempts that drivers hold, by item.
 */
function rolesFor(entry, holders) {
  const { kind } = entry;
  const byStatement = ['own', 'work'];
  if (kind === 'item.requeued') {
    if (entry.reason === 'crash') return ['work'];
    if (entry.reason !== 'operator') return byStatement;
    if ('driver' in entry) return ['work'];
    return holders.has(entry.item) ? ['own'] : byStatement;
  }
  if (kind === 'item.decided') return 'said' in entry ? byStatement : ['approve'];
  if (kind === 'document.written') return 'said' in entry ? byStatement : ['document'];
  if (kind === 'run.extended') return entry.cause === 'actor' ? ['own'] : roles;
  return rolesByKind[kind] ?? ['own'];
}

/** Returns a map from each writer to its roles by entry 0. */
function rolesOfEntryZero(entry) {
  const byKey = new Map();
  for (const key of entry.writers) {
    const given = new Set(entry.roles?.[key] ?? roles);
    if (given.has('own') || given.has('work')) given.add('seal');
    byKey.set(key, given);
  }
  return byKey;
}

function withRole(current, { key, role }) {
  return new Map(current).set(key, new Set([...(current.get(key) ?? []), role]));
}

const withoutKey = (current, key) => new Map([...current].filter(([each]) => each !== key));

/** Reads the statement in `said`, or returns null unless it is a statement of the entry. */
async function readStatement(entry, firstHash) {
  const commit = await readQuotedCommit(entry.said);
  const said = commit.entry;
  const isDecision = entry.kind === 'item.decided';
  if (!said || !commit.signer || said.kind !== (isDecision ? 'log.decided' : 'log.written'))
    return null;
  if (commit.signer !== said.log || said.run !== entry.run || said.first !== firstHash) return null;
  const isFirst = said.seq === 0;
  if (commit.parents.length !== (isFirst ? 0 : 1) || 'prev' in said === isFirst) return null;
  const shared = isDecision
    ? ['item', 'decision', 'about', 'message']
    : ['name', 'schema', 'sha256', 'oid', 'size'];
  if (!shared.every((field) => sameJson(said[field], entry[field]))) return null;
  if (isDecision ? entry.by !== said.log : entry.author !== said.actor) return null;
  if (!isDecision && 'previous' in said && said.previous !== entry.previous) return null;
  return { key: commit.signer, seconds: secondsOf(said.made ?? said.at), commit };
}

const conductsRun = (entry) => entry.kind !== 'item.decided' && entry.kind !== 'document.written';

/**
 * Judges who signed the entries of a chain, and notes the roles before each entry in
 * `commit.rolesBefore`. Returns the keys that count: {key, seconds, conducts, entry}.
 */
async function checkRoles(commits, report) {
  const keys = [];
  const first = commits[0]?.entry.kind === 'run.submitted' ? commits[0] : null;
  const initial = first ? rolesOfEntryZero(first.entry) : new Map();
  let current = initial;
  const holders = new Map();
  for (const commit of commits) {
    const { entry, signer } = commit;
    commit.rolesBefore = current;
    const fault =
      signer === null ? 'signature' : faultOfSigner(commit, { first, initial, current, holders });
    if (fault) report(fault, commit, textOfSignerFault(fault, commit));
    if (signer !== null)
      keys.push({ key: signer, seconds: commit.seconds, conducts: conductsRun(entry), entry });
    // A decision by another key than its signer's has its effects nevertheless.
    if (!fault || fault === 'decided-by') {
      if (entry.kind === 'run.admitted') current = withRole(current, entry);
      else if (entry.kind === 'run.dismissed') current = withoutKey(current, entry.key);
      else if (entry.kind === 'item.fired' && 'driver' in entry) holders.set(entry.item, signer);
      else if (entry.kind.startsWith('item.')) holders.delete(entry.item);
    }
    if (!('said' in entry) || signer === null) continue;
    commit.statement = await readStatement(entry, first?.hash);
    const role = entry.kind === 'item.decided' ? 'approve' : 'document';
    if (commit.statement && commit.rolesBefore.get(commit.statement.key)?.has(role)) {
      const { key, seconds } = commit.statement;
      keys.push({ key, seconds, conducts: false, entry });
    } else {
      const text = `entry ${entry.seq} has no statement of a key with the role ${role}`;
      report('statement', commit, text);
    }
  }
  return keys;
}

/** Returns true if an owner of the run admits a key to seal this very run. */
const isSealAdmission = ({ kind, role, first: named }, signer, initial, first) =>
  kind === 'run.admitted' &&
  role === 'seal' &&
  initial.get(signer)?.has('own') === true &&
  named === first?.hash;

function faultOfSigner({ entry, signer }, { first, initial, current, holders }) {
  const held = current.get(signer);
  if (!held || !rolesFor(entry, holders).some((role) => held.has(role))) return 'role';
  const isAdmission = entry.kind === 'run.admitted' && entry.role === 'seal';
  if (isAdmission && !isSealAdmission(entry, signer, initial, first)) return 'admission';
  if (endsForHolder(entry) && (holders.get(entry.item) ?? signer) !== signer) return 'role';
  if (entry.because === 'dismissed' && current.has(holders.get(entry.item))) return 'role';
  if (entry.kind === 'item.decided' && !('said' in entry) && entry.by !== signer)
    return 'decided-by';
  return null;
}

/** Returns true if the entry ends an attempt in the name of the driver that holds it. */
function endsForHolder(entry) {
  if (!('driver' in entry)) return false;
  if (entry.kind === 'item.requeued') return entry.reason !== 'lost';
  return entry.kind === 'item.reconciled' || entry.kind === 'item.retried';
}

function textOfSignerFault(fault, { entry, signer }) {
  const number = `entry ${entry.seq}`;
  if (fault === 'signature') return `${number} has no signature that matches`;
  if (fault === 'role') return `${number}: the key ${signer} has no role for ${entry.kind}`;
  if (fault === 'admission') return `${number} admits a key to seal, and its signer may not`;
  return `${number} is a decision by ${entry.by}, signed by another key`;
}

// ---- logs (section 8) ----

const recordFields = {
  'log.submitted': ['first', 'run'],
  'log.sealed': ['commit', 'entries', 'root', 'run', 'seal'],
  'log.thread': ['entries', 'last', 'thread'],
  'log.decided': ['log', 'first', 'item', 'decision', 'about', 'message', 'made'],
};
const sealOf = (entry) => pickFields(entry, ['root', 'entries', 'seal', 'commit']);

/** A log of a key: what its sound entries say, and whether it is broken or unread. */
class Log {
  constructor(ref) {
    this.ref = ref;
    const [segment, digits = ''] = ref.slice(ref.lastIndexOf('/') + 1).split('.');
    this.key = decodeSegment(segment);
    this.digits = digits;
    this.isBroken = !isFingerprint(this.key);
    this.isUnread = false;
    this.sound = [];
    /** Each entry `log.thread` that the key signed, sound or not. */
    this.signedThreads = [];
    /** Runs and threads one of whose blobs is damaged or missing. */
    this.damaged = new Set();
    this.submitted = new Map();
    this.sealed = new Map();
    this.threads = new Map();
  }

  static async read(store, ref, head) {
    const log = new Log(ref);
    const commits = [...commitsFrom(store, head)].reverse();
    if (commits[0]?.isMissing) {
      if (commits[0].isLeftOut) log.isUnread = true;
      else log.isBroken = true;
    } else {
      await checkSignatures(commits);
      log.readEntries(store, commits);
    }
    const isOwn = ({ hash }) => hash.startsWith(`sha256:${log.digits}`);
    /** False if no sound entry is of the key and the digits in the name of the ref. */
    log.hasOwnName = log.isUnread || log.sound.some(isOwn);
    if (log.digits !== '' && !log.hasOwnName) log.isBroken = true;
    return log;
  }

  readEntries(store, commits) {
    this.signedThreads = commits
      .filter(({ entry, signer }) => entry?.kind === 'log.thread' && signer === this.key)
      .map(({ entry }) => entry);
    const files = new Map();
    for (const [i, commit] of commits.entries()) {
      const before = this.sound.at(-1);
      const isSound =
        this.isInPlace(commit, i, before) &&
        this.isTreeSound(store, commit, before?.tree ?? null, files);
      if (!isSound && !this.isUnread) this.isBroken = true;
      if (!isSound || this.isUnread) return;
      this.sound.push(commit);
      const { entry } = commit;
      if (entry.kind === 'log.submitted') this.submitted.set(entry.run, entry.first);
      if (entry.kind === 'log.sealed') this.sealed.set(entry.run, sealOf(entry));
      if (entry.kind === 'log.thread')
        this.threads.set(entry.thread, [...(this.threads.get(entry.thread) ?? []), entry]);
    }
  }

  isInPlace({ entry, signer, parents }, index, before) {
    if (!entry || !entry.kind.startsWith('log.') || entry.log !== this.key) return false;
    if (signer !== this.key || parents.length !== (index === 0 ? 0 : 1) || entry.seq !== index)
      return false;
    if (entry.prev !== before?.hash || (before && entry.at < before.entry.at)) return false;
    return !this.contradictsEarlier(entry);
  }

  contradictsEarlier(entry) {
    const { run, kind } = entry;
    if (kind === 'log.submitted') {
      return (
        this.sealed.has(run) || (this.submitted.has(run) && this.submitted.get(run) !== entry.first)
      );
    }
    if (kind === 'log.sealed')
      return this.sealed.has(run) && !sameJson(this.sealed.get(run), sealOf(entry));
    if (kind === 'log.thread')
      return (this.threads.get(entry.thread)?.at(-1).entries ?? 0) >= entry.entries;
    return false;
  }

  /** Returns true if an entry changed exactly its own paths in the tree. */
  isTreeSound(store, { entry, tree }, before, files) {
    const allowed = new AllowedChanges(entry, false, store.format);
    const changes = TreeChanges.of(store, allowed, before, tree);
    if (changes.unread.some(({ oid }) => !store.isLeftOut(oid))) return false;
    if (changes.unread.length > 0) this.isUnread = true;
    if (changes.problems.length > 0) return false;
    applyChanges(files, changes);
    if (this.isUnread) return true;
    for (const [path, oid] of allowed.sets) {
      if (files.get(path) !== oid) return false;
      // The record follows from the entry, so that a blob that was left out is known by its name.
      const isHere = entry.kind === 'log.written' || store.readBlob(oid) !== null;
      if (!isHere && !store.isLeftOut(oid)) this.damaged.add(entry.run ?? entry.thread);
    }
    return true;
  }
}

/** Reads the logs of a bundle once. */
async function logsOf(store) {
  store.logs ??= await Promise.all(
    [...store.refs]
      .filter(([ref]) => ref.startsWith('refs/handoff/logs/'))
      .sort(([a], [b]) => compareNames(a, b))
      .map(([ref, head]) => Log.read(store, ref, head)),
  );
  return store.logs;
}

// ---- the rows of a run (section 9) ----

const rowNames = ['chain', 'root', 'signature', 'anchor', 'handoff', 'plan', 'manifest', 'content'];

/** The order in which failures are named. */
const failureOrder = [
  'chain',
  'anchor-missing',
  'root',
  'signature',
  'manifest',
  'plan',
  'handoff',
  'content',
  'mismatch',
  'conflict',
  'required',
  'not-sealed',
  'incomplete',
];

/** The codes of findings that each row of a run can have (section 9). */
const codesOfRows = {
  chain: [
    'ref',
    'object',
    'not-read',
    'entry',
    'seq',
    'prev',
    'parents',
    'time',
    'first',
    'misplaced',
    'after-seal',
    'other-run',
    'author',
    'paths',
    'tree-change',
    'tree-holds',
  ],
  root: [
    'not-sealed',
    'seal-root',
    'seal-entries',
    'seal-counts',
  ],
  signature: [
    'signature',
    'role',
    'admission',
    'decided-by',
    'statement',
    'key-revoked',
    'key-not-valid',
    'key-unknown',
    'other-signer',
  ],
  anchor: [
    'anchor-differs',
    'anchor-missing',
    'anchor-broken',
    'driven-twice',
    'same-id',
  ],
  handoff: [
    'unknown-item',
    'need',
    'input',
    'input-source',
    'input-bytes',
    'reused',
    'import',
    'continues',
    'other-source',
  ],
  plan: [
    'plan-unread',
    'plan-digest',
    'plan-invalid',
    'plan-items',
    'plan-entry',
    'rules-unread',
    'rules-digest',
    'rules-invalid',
    'rules-twice',
    'pipeline-unread',
    'pipeline-digest',
    'pipeline-invalid',
    'pipeline-name',
    'pipelines',
    'protected',
    'imports',
    'item-unread',
    'item-digest',
    'item-invalid',
    'transition',
    'rule',
    'rule-document',
    'rule-waits',
    'stopped',
    'blocks',
    'state',
    'other-plan',
    'other-base',
  ],
  manifest: [
    'manifest-unread',
    'manifest-digest',
    'manifest-invalid',
    'manifest-entry',
    'manifest-plan',
  ],
  content: [
    'content-unread',
    'content-bytes',
  ],
};

/** The failures of codes whose failure is not their row. */
const failureOfCode = {
  'not-sealed': 'not-sealed',
  'other-signer': 'mismatch',
  'anchor-differs': 'root',
  'anchor-missing': 'anchor-missing',
  'anchor-broken': 'anchor-missing',
  'driven-twice': 'conflict',
  'same-id': 'conflict',
  'other-source': 'mismatch',
  'other-plan': 'mismatch',
  'other-base': 'mismatch',
};
const failureOf = ({ row, code }) => failureOfCode[code] ?? row;
const codesOfDistrust = ['key-revoked', 'key-not-valid', 'key-unknown'];

/** Returns a number and a noun, such as `1 entry` and `2 entries`. */
function counted(number, singular, plural = singular + 's') {
  return `${number} ${number === 1 ? singular : plural}`;
}

/** The findings, and the rows that are open, of one verification. */
class Findings {
  constructor() {
    this.list = [];
    /** Row to the reason why it is open. */
    this.open = new Map();
    /** True if a row other than content is open because an object is not here. */
    this.isIncomplete = false;
    this.details = {};
  }

  /** Adds a finding; `place` may have `entry` (its number), `item` and `path`. */
  add(row, code, text, place = {}) {
    this.list.push({ row, code, text, ...place });
  }

  addOpen(row, reason) {
    if (!this.open.has(row)) this.open.set(row, reason);
  }

  addLeftOut(row) {
    this.addOpen(row, 'objects are left out');
    if (row !== 'content') this.isIncomplete = true;
  }

  of(row) {
    return this.list.filter((finding) => finding.row === row);
  }

  codesOf(row) {
    return [...new Set(this.of(row).map(({ code }) => code))];
  }

  has(row) {
    return this.of(row).length > 0;
  }

  /** Returns {rows, codes, failure, isTampered}. */
  conclude(names = rowNames) {
    const rows = {};
    const codes = {};
    const failures = this.list.map(failureOf);
    for (const row of names) {
      const found = this.of(row);
      if (found.length > 0) {
        const more = found.length > 1 ? ` (and ${found.length - 1} more)` : '';
        rows[row] = { state: 'fail', detail: found[0].text + more };
        const named = this.codesOf(row).filter((code) => code !== null);
        if (named.length > 0) codes[row] = named;
      } else if (this.open.has(row)) {
        rows[row] = { state: 'open', detail: this.open.get(row) };
      } else {
        rows[row] = { state: 'ok', detail: this.details[row] ?? '' };
      }
    }
    const doubts = ['anchor-missing', 'mismatch', 'conflict', 'not-sealed'];
    const isTampered = this.list.some(
      (finding) => !codesOfDistrust.includes(finding.code) && !doubts.includes(failureOf(finding)),
    );
    if (failures.length === 0 && this.isIncomplete) failures.push('incomplete');
    const failure = failureOrder.find((each) => failures.includes(each)) ?? null;
    return { rows, codes, failure, isTampered };
  }
}

function headlineOf({ failure, isTampered }, isTrusted) {
  if (failure === null) return isTrusted ? 'INTACT · tamper-detecting' : 'INTACT · unknown key';
  if (isTampered) return 'TAMPERED';
  const words = {
    'anchor-missing': 'NOT ANCHORED',
    signature: 'UNTRUSTED',
    mismatch: 'MISMATCH',
    required: 'MISMATCH',
    conflict: 'CONFLICT',
    'not-sealed': 'NOT SEALED',
  };
  return words[failure] ?? 'INCOMPLETE';
}

const isPartial = (outcome) =>
  Boolean(outcome) && (outcome.done !== outcome.total || 'said' in outcome || 'stopped' in outcome);

function exitOf(failure, outcome) {
  if (failure !== null) return 3;
  return isPartial(outcome) ? 4 : 0;
}

const textsOfKeys = {
  'key-revoked': 'is revoked',
  'key-not-valid': 'is not valid at its time',
  'key-unknown': 'is not known to the signers',
  'other-signer': 'is not the one that is asked for',
};

/** Judges the keys that count, and returns the list of signers for the report. */
function judgeKeys(keys, signers, findings) {
  const listed = new Map();
  for (const { key, seconds, conducts, entry } of keys) {
    const code = signers.judge(key, seconds, conducts);
    const principal = signers.principalOf(key);
    const before = listed.get(key)?.trusted ?? signers.lines.has(key);
    const trusted = before && code === null;
    listed.set(key, { fingerprint: key, principal, trusted, unknown: principal === null });
    if (code === null) continue;
    const place = entry ? { entry: entry.seq } : {};
    const where = entry ? `entry ${entry.seq}: ` : '';
    findings.add('signature', code, `${where}the key ${key} ${textsOfKeys[code]}`, place);
  }
  const list = [...listed.values()];
  const unknown = list.filter((signer) => !signer.trusted);
  if (unknown.length > 0) {
    const words = unknown.map(({ fingerprint }) => `valid, key ${fingerprint} not known to you`);
    findings.addOpen('signature', words.join('; '));
  }
  findings.details.signature = list
    .map(({ fingerprint, principal }) => `ed25519 ${fingerprint} · trusted as ${principal}`)
    .join('; ');
  return list;
}

/** Verifies one run of a store. */
class RunVerifier {
  constructor(store, run, options, signers, sources = new Set()) {
    this.store = store;
    this.run = run;
    this.options = options;
    this.signers = signers;
    /** The runs that are being verified, so that sources of imports end. */
    this.sources = new Set([...sources, run]);
    this.findings = new Findings();
    this.keys = [];
    this.replay = null;
    this.outcome = null;
    this.seal = null;
    this.manifestCount = 0;
    this.inputCount = 0;
    /** Item to the commit of its latest dispatch. */
    this.dispatches = new Map();
    /** Pipeline name to the first digest that an entry gives it. */
    this.pipelineNames = new Map();
    /** What comparing paths with pathspecs may still cost. */
    this.pathWork = { left: mostPathWork };
    /** The items whose protected files were not recomputed: {item, reason}. */
    this.notRecomputed = [];
  }

  async verify() {
    const ref = `refs/handoff/runs/${encodeSegment(this.run)}`;
    this.head ??= this.store.refs.get(ref);
    this.chain = new Chain(this.store, this.head);
    this.commits = this.chain.valid;
    for (const { code, text } of this.chain.faults) this.findings.add('chain', code, text);
    if (!this.chain.hasRef) {
      this.findings.add('root', 'not-sealed', 'not sealed: the ref names no run');
      for (const row of ['content', 'handoff', 'manifest', 'plan', 'signature']) {
        this.findings.addOpen(row, 'no entry can be read');
      }
      await this.checkAnchors();
      return;
    }
    const first = this.chain.isWhole ? this.commits[0] : undefined;
    this.first = first ?? null;
    this.begin = first?.entry.kind === 'run.submitted' ? first : null;
    // The trees are compared while the browser checks the signatures.
    this.checkChain();
    await this.chain.signatures;
    await this.checkSigners();
    if (!this.chain.isWhole) {
      this.openUnreadable();
      this.checkContent();
      return;
    }
    this.checkRoot();
    await settings.pause();
    await this.checkAnchors();
    this.checkContent();
    await this.checkPlan();
  }

  openUnreadable() {
    if (this.chain.isLeftOut) this.findings.addLeftOut('chain');
    for (const row of ['anchor', 'handoff', 'manifest', 'plan', 'root', 'signature']) {
      this.findings.addOpen(row, 'the chain cannot be read to its first entry');
    }
    if (this.commits.length === 0) this.findings.addOpen('content', 'no entry was read');
  }

  /** Adds a finding about an entry; `more` may have the path. */
  report(row, code, { entry }, text, more = {}) {
    const place = pickFields(entry, ['item']);
    this.findings.add(row, code, text, { entry: entry.seq, ...place, ...more });
  }

  /** Adds a finding about a file of an entry. The first entry is entry 0, whatever it says. */
  reportFile(row, code, commit, text, path) {
    const isFirst = commit === this.begin;
    this.report(row, code, commit, text, isFirst ? { entry: 0, path } : { path });
  }

  // -- chain --

  checkChain() {
    const { findings, commits } = this;
    const report = (...of) => this.report('chain', ...of);
    checkOrder(commits, this.chain.isWhole, report);
    let isSealed = false;
    for (const [i, commit] of commits.entries()) {
      const { entry, parents } = commit;
      const number = `entry ${entry.seq}`;
      const isFirst = i === 0 && this.chain.isWhole;
      if ((i > 0 || isFirst) && parents.length !== (isFirst ? 0 : 1)) {
        report('parents', commit, `${number}: its commit has ${counted(parents.length, 'parent')}`);
      }
      if (isFirst && entry.kind !== 'run.submitted')
        report('first', commit, `${number} is no run.submitted`);
      const isForeign = /^(?:log|thread|archive)\./.test(entry.kind);
      if ((i > 0 && entry.kind === 'run.submitted') || isForeign) {
        report('misplaced', commit, `${number}: ${entry.kind} does not belong there`);
      }
      if (isSealed) report('after-seal', commit, `${number} follows the seal`);
      if (entry.run !== this.run) report('other-run', commit, `${number} is of another run`);
      if (entry.kind === 'document.written' && !('said' in entry) && entry.author !== entry.actor) {
        report('author', commit, `${number}: the author of ${entry.name} is not its actor`);
      }
      if (this.haveClashingPaths(entry)) report('paths', commit, `${number} has paths that clash`);
      isSealed ||= entry.kind === 'run.sealed';
    }
    if (this.chain.isWhole) this.checkTrees(report);
    findings.details.chain = `${counted(commits.length, 'entry', 'entries')}, hash-linked, no gaps`;
  }

  haveClashingPaths(entry) {
    if (entry.kind === 'run.submitted') return haveClash(Object.keys(entry.artifacts));
    if (entry.kind !== 'item.reconciled') return false;
    const outputs = Object.keys(entry.products).filter((key) => key.startsWith('outputs/'));
    return haveClash(outputs.map((key) => key.slice(8)));
  }

  checkTrees(report) {
    this.fanOut = this.begin?.entry.fanOut ?? false;
    const files = new Map();
    let before = null;
    for (const commit of this.chain.commits) {
      if (commit.entry) this.compareTree(commit, before, files, report);
      before = commit.tree;
    }
  }

  /** Compares the tree with the entry, and notes the files of the entry in `commit.files`. */
  compareTree(commit, before, files, report) {
    const { entry, tree } = commit;
    const { store } = this;
    const number = `entry ${entry.seq}`;
    const allowed = new AllowedChanges(entry, this.fanOut, store.format);
    const changes = TreeChanges.of(store, allowed, before, tree);
    for (const { path, oid } of changes.unread) {
      if (store.isLeftOut(oid)) this.findings.addLeftOut('chain');
      else report('object', commit, `${number}: object ${oid} is not in the bundle`, { path });
    }
    for (const { path, text } of changes.problems)
      report('tree-change', commit, `${number}: ${text}, and the entry does not say so`, { path });
    applyChanges(files, changes);
    commit.files = new Map();
    for (const [path, wanted] of allowed.sets) {
      const found = files.get(path);
      commit.files.set(path, found);
      const isUnread = Object.values(unreadFile).includes(found);
      if (found === undefined)
        report('tree-holds', commit, `${number}: ${path} is not in the tree`, { path });
      else if (!isUnread && wanted !== null && found !== wanted)
        report('tree-holds', commit, `${number}: ${path} is another object`, { path });
    }
  }

  // -- signature --

  async checkSigners() {
    const report = (...of) => this.report('signature', ...of);
    if (this.chain.isWhole) {
      this.keys.push(...(await checkRoles(this.commits, report)));
      return;
    }
    for (const commit of this.commits) {
      const { entry, signer, seconds } = commit;
      if (signer === null)
        report('signature', commit, `entry ${entry.seq} has no signature that matches`);
      else this.keys.push({ key: signer, seconds, conducts: conductsRun(entry), entry });
    }
  }

  // -- root --

  checkRoot() {
    const { findings, commits } = this;
    const at = commits.findIndex(({ entry }) => entry.kind === 'run.sealed');
    const before = at < 0 ? commits : commits.slice(0, at);
    this.root = hashText(merkleRoot(before.map(({ leaf }) => leaf)));
    if (at < 0) {
      const soFar = counted(before.length, 'entry', 'entries');
      findings.add('root', 'not-sealed', `not sealed; ${this.root} over ${soFar} so far`);
      return;
    }
    const { entry, hash, name } = commits[at];
    this.seal = { root: this.root, entries: at, seal: hash, commit: name };
    const report = (code, text) => this.report('root', code, commits[at], text);
    if (entry.root !== this.root) report('seal-root', 'the seal has another root');
    if (entry.entries !== at) report('seal-entries', 'the seal counts other entries');
    if (!sameJson(countStatuses(before), entry.counts))
      report('seal-counts', 'the seal counts the items otherwise');
    findings.details.root = `merkle ${this.root.slice(7, 15)} = sealed root`;
  }

  // -- anchor --

  /** Returns the keys with the role `seal` by entry 0, or by an admission of its owners. */
  writersOfSeal() {
    const writers = new Set();
    if (!this.begin) return writers;
    const initial = rolesOfEntryZero(this.begin.entry);
    for (const [key, given] of initial) if (given.has('seal')) writers.add(key);
    for (const { entry, signer } of this.commits)
      if (isSealAdmission(entry, signer, initial, this.begin)) writers.add(entry.key);
    return writers;
  }

  async checkAnchors() {
    const { findings } = this;
    const writers = this.writersOfSeal();
    const isKnown = (key) => this.signers.isKnown(key);
    const areWritersKnown = [...writers].some(isKnown);
    const state = {
      isNamed: false,
      isHeld: false,
      isHeldByWriter: false,
      isUnread: false,
      faults: [],
      otherSeals: [],
    };
    for (const log of await logsOf(this.store)) {
      const isWriter = writers.has(log.key);
      if (!isWriter && !isKnown(log.key) && areWritersKnown) continue;
      if (isWriter && (log.isBroken || log.damaged.has(this.run))) {
        state.faults.push(['anchor-broken', `the log ${log.ref} is broken`]);
      }
      if (isWriter && log.isUnread) state.isUnread = true;
      this.compareLog(log, isWriter, state);
    }
    // Only a seal that a sound log of a writer has, too, shows that both ends were recorded.
    const codeOfSeals = state.isHeldByWriter ? 'driven-twice' : 'anchor-differs';
    for (const text of state.otherSeals) state.faults.push([codeOfSeals, text]);
    const codes = state.faults.map(([code]) => code);
    const conflicts = ['driven-twice', 'same-id'];
    const hiding = [['anchor-differs'], conflicts].find((group) =>
      group.some((code) => codes.includes(code)),
    );
    for (const [code, text] of state.faults)
      if (!hiding || hiding.includes(code)) findings.add('anchor', code, text);
    if (state.faults.length > 0) return;
    if (state.isUnread) findings.addLeftOut('anchor');
    else if (!state.isNamed) findings.addOpen('anchor', 'no log at hand holds the run');
    else if (this.seal === null) findings.addOpen('anchor', 'not sealed, submission logged');
    else if (!state.isHeld) findings.add('anchor', 'anchor-missing', 'no log at hand has the seal');
    if (!state.isHeld) return;
    findings.details.anchor = 'local (detect)';
    findings.details.root = findings.details.root?.replace('sealed root', 'anchored root');
  }

  compareLog(log, isWriter, state) {
    const submitted = log.submitted.get(this.run);
    const sealed = log.sealed.get(this.run);
    if (submitted === undefined && sealed === undefined) return;
    if (!this.first) {
      state.isNamed = true;
      if (sealed) state.faults.push(['anchor-differs', `the log ${log.ref} has a seal of the run`]);
      return;
    }
    const beganBy = this.first.signer;
    const isKnown = this.signers.isKnown(log.key);
    const isOtherFirst = submitted !== undefined && submitted !== this.first.hash;
    const isOtherSeal = sealed !== undefined && !sameJson(sealed, this.seal ?? undefined);
    let isOtherRun = !isWriter && isOtherSeal;
    if (isOtherFirst) isOtherRun = beganBy !== null && beganBy !== log.key;
    else if (submitted !== undefined && this.seal === null) isOtherRun = false;
    if (isOtherRun) {
      this.noteOtherRun(log, submitted, isKnown, state);
      return;
    }
    // The key may have been admitted later than this copy of the run goes.
    if (sealed && this.seal === null && !isOtherFirst && !isWriter) return;
    const isWitness = isWriter && !log.isBroken && !log.damaged.has(this.run);
    if (isOtherFirst) {
      state.faults.push(['anchor-differs', `the log ${log.ref} has another first entry`]);
    } else if (isOtherSeal && isWitness && submitted !== undefined && this.seal !== null) {
      state.otherSeals.push(`the log ${log.ref} has another seal`);
    } else if (isOtherSeal) {
      state.faults.push(['anchor-differs', `the log ${log.ref} has another seal`]);
    } else if (sealed && (isWriter || !isKnown)) {
      state.isHeld = true;
      state.isHeldByWriter ||= isWitness;
    }
    if (isWriter || !isKnown) state.isNamed = true;
  }

  /** Notes another run of the same id, which is a conflict if it is unknown which is meant. */
  noteOtherRun(log, first, isKnown, state) {
    const isAsked = this.signers.wanted !== null || this.options.base != null;
    if (isAsked || !(isKnown || !this.signers.isKnown(this.first.signer))) return;
    const other = `that of ${log.key} began with ${first ?? 'an unknown entry'}`;
    const own = `that of ${this.first.signer} began with ${this.first.hash}`;
    state.faults.push(['same-id', `a log holds another run by this name: ${other}; ${own}`]);
  }

  // -- content --

  checkContent() {
    const { findings } = this;
    this.contents = { products: 0, artifacts: 0, bytes: 0 };
    for (const commit of this.commits) {
      const { entry } = commit;
      const examine = (what, product, path) =>
        this.examine('products', what, product, commit, path);
      if (entry.kind === 'document.written')
        examine(`the document ${entry.name}`, entry, entry.name);
      if (entry.kind !== 'item.reconciled') continue;
      for (const [key, product] of Object.entries(entry.products))
        examine(`${key} of ${entry.item}`, product, key);
    }
    if (this.begin) this.checkSealedContent(this.begin);
    const { products, artifacts, bytes } = this.contents;
    const also = artifacts > 0 ? ` and ${counted(artifacts, 'artifact')}` : '';
    findings.details.content = `${counted(products, 'product')}${also}, ${bytes} B re-hashed`;
  }

  /** Examines the artifacts and the imports that entry 0 seals. */
  checkSealedContent({ entry, files }) {
    for (const [path, sha256] of Object.entries(entry.artifacts)) {
      const oid = files?.get(`artifacts/${encodePath(path)}`);
      // Row chain reports an artifact that is not in the tree, or in a folder that is damaged.
      if (oid === unreadFile.leftOut) this.findings.addLeftOut('content');
      else if (oid !== undefined && oid !== unreadFile.unread)
        this.examine('artifacts', `the artifact ${path}`, { oid, sha256 }, this.begin, path);
    }
    for (const [name, { product }] of Object.entries(entry.imports ?? {}))
      this.examine('products', `the import ${name}`, product, this.begin, name);
  }

  /** Compares the bytes of a blob with an entry; a size may be absent. */
  examine(kind, what, { oid, sha256: digest, size }, commit, path) {
    const bytes = this.store.readBlob(oid);
    const fail = (code, text) => this.reportFile('content', code, commit, what + text, path);
    if (bytes === null) {
      if (this.store.isLeftOut(oid)) this.findings.addLeftOut('content');
      else fail('content-unread', `: object ${oid} is not in the bundle`);
    } else if (digestOfBlob(bytes) !== digest || bytes.length !== (size ?? bytes.length)) {
      fail('content-bytes', ' has other bytes than its entry says');
    } else {
      this.contents[kind]++;
      this.contents.bytes += bytes.length;
    }
  }

  /**
   * Reads a file that an entry set. Returns null if it is not in the tree, or its blob is missing
   * or too large, and undefined if it is left out, which leaves `rows` open.
   */
  readFile(commit, path, rows, size = limits.file) {
    const oid = commit.files?.get(path);
    if (oid === undefined || oid === unreadFile.unread) return null;
    const bytes = this.store.readBlob(oid);
    if (bytes === null && this.store.isLeftOut(oid)) {
      for (const row of rows) this.findings.addLeftOut(row);
      return undefined;
    }
    return bytes !== null && bytes.length <= size ? bytes : null;
  }

  // -- plan, handoff and manifest --

  async checkPlan() {
    const { findings } = this;
    if (this.begin) this.replay = this.startReplay();
    else
      for (const row of ['plan', 'handoff'])
        findings.addOpen(row, 'the first entry is no run.submitted');
    for (const [i, commit] of this.commits.entries()) {
      const { entry } = commit;
      if (i % 500 === 499) await settings.pause();
      if (entry.kind === 'item.fired') this.dispatches.set(entry.item, commit);
      if (commit !== this.begin && this.replay) await this.replayEntry(commit);
    }
    for (const commit of this.commits) {
      if (commit.entry.kind === 'item.fired') this.checkManifest(commit);
    }
    if (this.begin) {
      await this.checkImports();
      if ('continues' in this.begin.entry) await this.readContinued();
    }
    this.closePlan();
  }

  closePlan() {
    const { findings, replay } = this;
    if (this.begin && !replay) {
      const remains = ({ row, code }) => row !== 'handoff' || code === 'other-source';
      findings.list = findings.list.filter(remains);
      findings.addOpen('handoff', 'the plan cannot be used');
    }
    if (!replay && this.manifestCount > 0) findings.addOpen('manifest', 'the plan cannot be used');
    if (findings.codesOf('handoff').some((code) => code !== 'other-source')) {
      findings.list = findings.list.filter(({ code }) => code !== 'other-source');
    }
    if (replay) this.outcome = replay.outcome();
    if (!findings.has('plan')) this.checkExpectations();
    const { total, pending, running } = this.outcome ?? emptyOutcome();
    const items = counted(total, 'item');
    const ended = total - pending - running;
    findings.details.plan = `${ended} of ${items} accounted for, every transition legal`;
    if (this.notRecomputed.length > 0) {
      const open = textOfNotRecomputed(this.notRecomputed);
      findings.addOpen('plan', `${findings.details.plan}, protected files of ${open}`);
    }
    const inputs = counted(this.inputCount, 'input ref');
    findings.details.handoff = this.inputCount > 0 ? `${inputs} accounted for` : inputs;
    const manifests = counted(this.manifestCount, 'manifest');
    const bound = this.manifestCount === 1 ? 'its entry' : 'their entries';
    findings.details.manifest = `${manifests} bound to ${bound}`;
  }

  /** Compares the plan and the base with those that the verifier requires. */
  checkExpectations() {
    if (!this.begin) return;
    const isSamePlan = (wanted) => {
      const bytes = this.readFile(this.begin, 'plan.json', []);
      const plan = tryJson(wanted);
      return plan !== undefined && sameJson(plan, bytes ? tryJson(bytes) : undefined);
    };
    compareExpected(this.options, this.begin.entry, this.findings, isSamePlan);
  }

  /** Reads the plan and the rules. Returns null if the replay cannot begin. */
  startReplay() {
    const { entry } = this.begin;
    const report = (code, text, path) => this.report('plan', code, this.begin, text, { path });
    const plan = this.readPlanFile('plan', entry.plan, readPlan, report);
    const nameLength = this.store.format === 'sha1' ? 40 : 64;
    if (entry.objectFormat !== this.store.format || entry.base.length !== nameLength) {
      report('plan-entry', 'entry 0 names another object format');
    }
    if (!plan) return null;
    this.compareEntryZero(plan, entry, report);
    const rules =
      'rules' in entry ? this.readPlanFile('rules', entry.rules, readRules, report) : [];
    if (!rules) return null;
    const ids = new Set((plan.rules ?? []).map((rule) => foldCase(rule.id)));
    if (rules.some((rule) => ids.has(foldCase(rule.id)))) {
      report('rules-twice', 'rules.json has a rule of the plan', 'rules.json');
      return null;
    }
    const replay = new Replay(plan, rules, entry, (revision) => this.readRevision(revision));
    const names = pipelineNamesOf([...plan.items, ...itemsInRules(replay.rules)]);
    if (sameSet(names) !== sameSet(Object.keys(entry.pipelines ?? {}))) {
      report('pipelines', 'entry 0 has other pipelines than its items name');
    }
    const needs = plan.items
      .flatMap((item) => Object.values(item.needs ?? {}))
      .filter(isFromElsewhere);
    if (sameSet(needs.map(importName)) !== sameSet(Object.keys(entry.imports ?? {}))) {
      report('imports', 'entry 0 has other imports than its items need');
    }
    this.readPipelines(replay.pipelinesByDigest);
    const hasUnknown = (item) => dependenciesOf(item).some((each) => !replay.items.has(each));
    if (replay.shadowedItems > 0 || plan.items.some(hasUnknown)) {
      const text = 'the plan has an item twice, or one that depends on an unknown one';
      report('plan-items', text, 'plan.json');
    }
    return replay;
  }

  readPlanFile(name, digest, read, report) {
    const path = `${name}.json`;
    const bytes = this.readFile(this.begin, path, ['plan', 'handoff']);
    if (bytes === undefined) return null;
    if (bytes === null) {
      report(`${name}-unread`, `${path} cannot be read`, path);
      return null;
    }
    if (digestOf(bytes) !== digest)
      report(`${name}-digest`, `${path} is not the one that entry 0 names`, path);
    const value = read(bytes);
    if (value === null) report(`${name}-invalid`, `${path} is not valid`, path);
    return value;
  }

  compareEntryZero(plan, entry, report) {
    const hasRules = Boolean(plan.rules?.length) || 'rules' in entry;
    const fanOut = plan.items.length > 256 || plan.openEnded === true || hasRules;
    const fits =
      plan.id === this.run &&
      (plan.openEnded ?? false) === entry.openEnded &&
      plan.concurrency === entry.concurrency &&
      sameSet(Object.keys(plan.artifacts ?? {})) === sameSet(Object.keys(entry.artifacts)) &&
      entry.fanOut === fanOut;
    if (!fits) report('plan-entry', 'entry 0 contradicts the plan', 'plan.json');
  }

  /** Returns the bytes of a revision that a rule reads. */
  readRevision({ oid, sha256: digest }) {
    const bytes = this.store.readBlob(oid);
    const isRight = bytes !== null && digestOfBlob(bytes) === digest;
    if (!isRight) throw new UnreadableDocument(bytes === null && this.store.isLeftOut(oid));
    return bytes;
  }

  /** Reads the pipelines that entries name, and compares each with its digest and its names. */
  readPipelines(byDigest) {
    for (const commit of this.commits) {
      const { kind, pipelines = {} } = commit.entry;
      if (commit !== this.begin && kind !== 'run.extended') continue;
      for (const digest of Object.values(pipelines))
        if (!byDigest.has(digest)) byDigest.set(digest, this.readSealedPipeline(commit, digest));
    }
    for (const { entry } of this.commits) {
      for (const [name, digest] of Object.entries(entry.pipelines ?? {}))
        if (!this.pipelineNames.has(name)) this.pipelineNames.set(name, digest);
    }
    for (const [name, digest] of this.pipelineNames) {
      const pipeline = byDigest.get(digest);
      const [, id, wanted] = /^([^@]*)(?:@(.*))?$/s.exec(name);
      if (pipeline && (pipeline.id !== id || (wanted ?? digest) !== digest)) {
        const text = `the pipeline ${name} has another id or digest than its name`;
        this.findings.add('plan', 'pipeline-name', text);
      }
    }
  }

  /** Returns a pipeline, or null after a finding. */
  readSealedPipeline(commit, digest) {
    const path = pipelinePath(digest);
    const bytes = this.readFile(commit, path, ['plan'], limits.pipeline);
    const fail = (code, text) => {
      this.report('plan', code, commit, `the pipeline ${digest} ${text}`, { path });
      return null;
    };
    if (bytes === undefined) return null;
    if (bytes === null) return fail('pipeline-unread', 'cannot be read');
    if (digestOf(bytes) !== digest) return fail('pipeline-digest', 'has another digest');
    return readPipeline(bytes) ?? fail('pipeline-invalid', 'is not valid');
  }

  async replayEntry(commit) {
    const { findings, replay } = this;
    const { entry } = commit;
    const report = (code, text, more) => this.report('plan', code, commit, text, more);
    if (entry.kind === 'item.fired') this.checkNeeds(commit);
    let added;
    if (entry.kind === 'run.extended') {
      added = this.readAdded(commit, report);
      if (!added) {
        this.replay = null;
        return;
      }
    }
    if ('reused' in entry) await this.checkReused(commit);
    const { codes, isLegal, isLeftOut } = replay.apply(entry, added);
    for (const code of codes) report(code, textOfPlanCode(code, entry));
    if (isLeftOut) findings.addLeftOut('plan');
    if (!isLegal || !entry.kind.startsWith('item.')) return;
    const isDone = entry.kind === 'item.reconciled' && entry.status === 'done';
    if (isDone && !('reused' in entry)) this.checkProtected(entry, report);
    this.checkState(commit, report);
  }

  checkState(commit, report) {
    const { item } = commit.entry;
    const path = itemFolder(item, this.fanOut) + 'state.json';
    const oid = commit.files?.get(path);
    if (oid === unreadFile.leftOut) {
      this.findings.addLeftOut('plan');
      return;
    }
    // The state follows from the entries, so that a blob that was left out is known by its name.
    const state = this.replay.items.get(item).stateJson();
    const expected = objectName(this.store.format, 'blob', state);
    const isHere = this.store.readBlob(expected) !== null || this.store.isLeftOut(expected);
    if (oid !== expected || !isHere)
      report('state', `state.json of item ${item} is not what the entries give`, { path });
  }

  /** Compares the protected files of an entry with its manifest; their content needs the base. */
  checkProtected(entry, report) {
    const manifest = this.readDispatchedManifest(entry.item, []);
    if (!manifest) return;
    const say = (text) => report('protected', `the protected files of ${entry.item}: ${text}`);
    if (!manifest.protect) {
      const fields = ['reference', 'protected', 'protectedJudged'];
      if (fields.some((field) => field in entry)) say('the manifest protects none');
      return;
    }
    const passes = (effect) => manifest.onProtectedChange === effect && 'protected' in entry;
    const isChecked = entry.verify?.passed === true && entry.verify.by === 'command';
    if ('protectedAllowed' in entry !== (passes('allow') && !this.isWithheld(entry)))
      say('the manifest does not allow what the entry allows');
    else if ('protectedJudged' in entry !== (passes('judge') && isChecked))
      say('the manifest and the check do not judge what the entry says');
    else if (!('reference' in entry)) say('the entry names no reference state');
    else this.compareProtected(entry, manifest.protect, say);
  }

  /** Returns true if the plan protects a changed file, which settings cannot allow. */
  isWithheld(entry) {
    const { protect = [] } = this.replay.items.get(entry.item).definition;
    const isProtected = tryToRead(() => readProtectRules(protect));
    const paths = entry.protected.map(({ path }) => unquotePath(toLatin(toBytes(path))));
    return paths.some((path) => isProtected?.(path, false));
  }

  /** Compares the protected files of an entry with its patch, which takes no base. */
  compareProtected(entry, rules, say) {
    const { replay, findings } = this;
    // What the reference state is takes the bytes of the base.
    this.notRecomputed.push({ item: entry.item, reason: 'without the base' });
    const item = replay.items.get(entry.item);
    const applied = replay.appliedItems(item).map(({ products }) => products.patch);
    const patches = [entry.products.patch, ...item.referencePatches, ...applied.filter(Boolean)];
    // Row content reports a patch that is missing or has other bytes.
    const [own, ...others] = patches.map((patch) => patch && this.store.readBlob(patch.oid));
    if (own === null) return;
    const tryPatch = (bytes) => tryToRead(() => readPatch(bytes)) ?? new Map();
    try {
      const changes = own === undefined ? new Map() : readPatch(own);
      const before = changes.size === 0 ? [] : others.filter(Boolean).map(tryPatch);
      const listed = entry.protected ?? [];
      const faults = faultsOfProtected({
        rules,
        changes,
        others: before,
        listed,
        work: this.pathWork,
      });
      const open = `the patch of ${entry.item} changes too many paths`;
      if (faults === null) findings.addOpen('plan', open);
      else faults.forEach(say);
    } catch (error) {
      if (!(error instanceof FormatError)) throw error;
      say(error.message);
    }
  }

  /** Returns the manifest of the latest dispatch of an item, null, or undefined like `readFile`. */
  readDispatchedManifest(item, rows) {
    const dispatch = this.dispatches.get(item);
    if (!dispatch) return null;
    const bytes = this.readFile(dispatch, this.manifestPath(item), rows, limits.manifest);
    return bytes && readManifest(bytes);
  }

  manifestPath(item) {
    return itemFolder(item, this.fanOut) + 'manifest.json';
  }

  /**
   * Reads the items that a `run.extended` adds: a map to their normalised form, or to null after a
   * finding. Returns null if the replay ends, since an item cannot be read.
   */
  readAdded(commit, report) {
    const { entry } = commit;
    const items = new Map();
    for (const id of sortNames(Object.keys(entry.items))) {
      const path = itemFolder(id, this.fanOut) + 'item.json';
      const bytes = this.readFile(commit, path, ['plan', 'handoff']);
      if (bytes === undefined) return null;
      if (bytes === null) {
        report('item-unread', `item.json of ${id} cannot be read`, { item: id, path });
        return null;
      }
      const item = tryJson(bytes, { size: limits.file });
      let code = null;
      if (digestOf(bytes) !== entry.items[id]) code = 'item-digest';
      else if (!isAddedItem(item)) code = 'item-invalid';
      else if (!equalBytes(canonicalBytes(normaliseItem(item)), bytes)) code = 'item-invalid';
      if (code !== null) report(code, textOfPlanCode(code, entry), { item: id, path });
      items.set(id, code === null ? normaliseItem(item) : null);
    }
    return items;
  }

  checkNeeds(commit) {
    const { entry } = commit;
    const report = (code, text) => this.report('handoff', code, commit, text);
    const item = this.replay.items.get(entry.item);
    if (!item) {
      report('unknown-item', `entry ${entry.seq} dispatches the unknown item ${entry.item}`);
      return;
    }
    const { needs } = item.definition;
    for (const key of Object.keys(needs)) {
      if (!(key in entry.inputRefs)) report('need', `${item.id} has no input ${key}`);
    }
    for (const [key, { from, select, ref }] of Object.entries(entry.inputRefs)) {
      const need = needs[key];
      this.inputCount++;
      if (!need) {
        report('input', `the input ${key} of ${item.id} belongs to no need`);
        continue;
      }
      if (from !== sourceOf(need) || !sameJson(select, need.select)) {
        report('input-source', `the input ${key} of ${item.id} is from elsewhere than its need`);
      } else if (ref !== this.replay.bindingOf(need)) {
        report('input-bytes', `the input ${key} of ${item.id} is not what its need is bound to`);
      }
    }
  }

  checkManifest(commit) {
    const { entry } = commit;
    this.manifestCount++;
    const path = this.manifestPath(entry.item);
    const name = `the manifest of ${entry.item} #${entry.attempt}`;
    const report = (code, text) =>
      this.report('manifest', code, commit, `${name} ${text}`, { path });
    const bytes = this.readFile(commit, path, ['manifest'], limits.manifest);
    if (bytes === undefined) return;
    if (bytes === null) report('manifest-unread', 'cannot be read');
    else if (digestOf(bytes) !== entry.manifest)
      report('manifest-digest', 'is not the one that its entry names');
    else {
      const manifest = readManifest(bytes);
      const item = this.replay?.items.get(entry.item);
      if (!manifest) report('manifest-invalid', 'is not valid');
      else if (!this.fitsEntry(manifest, entry)) report('manifest-entry', 'contradicts its entry');
      else if (item && !this.fitsPlan(manifest, item.definition))
        report('manifest-plan', 'is not as the plan requires');
    }
  }

  fitsEntry(manifest, entry) {
    const fields = ['item', 'attempt', 'inputRefs'];
    return (
      manifest.run === this.run &&
      manifest.base === this.begin?.entry.base &&
      fields.every((field) => sameJson(manifest[field], entry[field]))
    );
  }

  fitsPlan(manifest, definition) {
    const { executor, inputs, timeout, protect = [] } = definition;
    if (manifest.executor !== executor || manifest.inputs !== canonicalDigest(inputs)) return false;
    if (timeout !== undefined && manifest.timeout !== timeout) return false;
    const applies = Object.values(definition.needs ?? {}).some(({ apply }) => apply);
    if ('start' in manifest !== applies) return false;
    const isInManifest = (rule) => manifest.protect?.some((each) => sameJson(each, rule));
    if (!protect.every(isInManifest)) return false;
    const { subagent, command } = inputs;
    const isDispatch = executor === 'dispatch';
    if (isDispatch && subagent !== undefined) {
      if (manifest.subagent !== (isString(subagent) ? subagent : undefined)) return false;
    } else if ('subagent' in manifest !== isDispatch) return false;
    if (executor === 'command') {
      const argv = isString(command) ? ['sh', '-c', command] : command;
      if (!sameJson(manifest.argv, argv)) return false;
    } else if (manifest.argv.length === 0) return false;
    const name = pipelineNameOf(definition);
    const digest = name === null ? undefined : this.pipelineNames.get(name);
    return manifest.pipeline === digest && (name === null || digest !== undefined);
  }

  // -- reuse, imports and continued runs --

  /**
   * Reads canonical evidence of a digest, and checks it. Reports what does not hold, which is the
   * message of a FormatError. Evidence that is left out is not checked.
   */
  async checkEvidence(code, commit, path, digest, subject, check) {
    const bytes = this.readFile(commit, path, ['handoff']);
    if (bytes === undefined) return;
    try {
      ensure(bytes !== null && digestOf(bytes) === digest, 'is not the one that its entry names');
      const evidence = readJson(bytes, { size: limits.file });
      ensure(equalBytes(canonicalBytes(evidence), bytes), 'is not canonical');
      await check(evidence);
    } catch (error) {
      if (!(error instanceof FormatError)) throw error;
      const text = `the evidence of ${subject} ${error.message}`;
      this.reportFile('handoff', code, commit, text, path);
    }
  }

  addKeysOf(keys) {
    this.keys.push(...keys.map((key) => ({ ...key, conducts: false })));
  }

  async checkReused(commit) {
    const { entry } = commit;
    const path = itemFolder(entry.item, this.fanOut) + 'reused.json';
    const { evidence: digest, continued = false } = entry.reused;
    await this.checkEvidence('reused', commit, path, digest, entry.item, async (evidence) => {
      const fields = continued ? { manifest: isObject } : { manifest: isObject, proof: isObject };
      ensure(shape(fields)(evidence), 'has other fields');
      const shown = continued
        ? await this.shownByContinued(entry.reused)
        : await this.shownByProof(entry.reused, evidence.proof);
      this.compareReused(commit, evidence.manifest, shown);
    });
  }

  async shownByProof(reused, json) {
    const proof = await Proof.read(json);
    this.addKeysOf(proof.keys);
    ensure(proof.holds && !('product' in json) && proof.fired, 'has a proof that does not hold');
    const fields = ['run', 'item', 'root'];
    ensure(
      fields.every((field) => json[field] === reused[field]),
      'is about something else',
    );
    await this.compareSource(proof);
    return { fired: proof.fired, end: proof.end };
  }

  async shownByContinued({ run, root, item }) {
    const { continues } = this.begin.entry;
    const isSame = continues && continues.run === run && continues.root === root;
    ensure(isSame, 'is about a run that is not continued');
    const entries = ((await this.readContinued()) ?? []).map((commit) => commit.entry);
    const end = entries.findLast(
      (each) => each.kind === 'item.reconciled' && each.item === item && each.status === 'done',
    );
    ensure(end, 'names an item that was not done');
    const fired = entries.find(
      (each) => each.kind === 'item.fired' && each.item === item && each.attempt === end.attempt,
    );
    ensure(fired, 'names an attempt that there is not');
    return { fired, end };
  }

  compareReused(commit, json, { fired, end }) {
    const { entry } = commit;
    const manifest = readManifest(canonicalBytes(json));
    ensure(
      manifest && canonicalDigest(json) === fired.manifest,
      'has another manifest than was dispatched',
    );
    ensure(manifest.run === entry.reused.run, 'has a manifest of another run');
    const own = this.readDispatchedManifest(entry.item, ['handoff']);
    if (own === undefined) return;
    ensure(own, 'cannot be compared with the manifest');
    const strip = ({ run, item, attempt, branches, ...rest }) => rest;
    ensure(sameJson(strip(manifest), strip(own)), 'is about another task');
    ensure(!('reused' in end) && !isEndRed(end), 'is about an item that is red or was reused');
    ensure(!('protectedJudged' in end), 'is about an item with judged changes to protected files');
    const isSame = ['products', 'verify', 'blocks'].every((field) =>
      sameJson(end[field], entry[field]),
    );
    ensure(isSame, 'shows other products');
  }

  async checkImports() {
    for (const [name, given] of Object.entries(this.begin.entry.imports ?? {})) {
      const path = importPath(name) + 'evidence.json';
      const check = async (evidence) => {
        const [, source, key] = /^([^:]*):(.*)$/s.exec(name) ?? [];
        const parts = (source ?? '').split('/');
        const product =
          parts[0] === '@run'
            ? await this.importedFromRun(evidence, parts, key)
            : await this.importedFromThread(evidence, parts, key);
        const isSame =
          product && product.sha256 === given.product.sha256 && product.size === given.product.size;
        ensure(isSame, 'shows another product');
      };
      const subject = `the import ${name}`;
      await this.checkEvidence('import', this.begin, path, given.evidence, subject, check);
    }
  }

  async importedFromRun(evidence, parts, key) {
    ensure(shape({ proof: isObject })(evidence), 'has other fields');
    const proof = await Proof.read(evidence.proof);
    this.addKeysOf(proof.keys);
    ensure(proof.holds && proof.fired, 'has a proof that does not hold');
    const { run, item } = evidence.proof;
    ensure(
      encodeSegment(run) === parts.at(-2) && encodeSegment(item) === parts.at(-1),
      'is about another item',
    );
    ensure(!isEndRed(proof.end), 'is about an item that is red');
    await this.compareSource(proof);
    return proof.end.products[key];
  }

  async importedFromThread(evidence, parts, key) {
    ensure(shape({ commit: isString })(evidence), 'has other fields');
    const commit = await readQuotedCommit(evidence.commit, this.store.format);
    const { entry } = commit;
    const kinds = ['thread.checkpointed', 'thread.adopted', 'thread.forked'];
    ensure(entry && kinds.includes(entry.kind), 'is no checkpoint');
    ensure(encodeSegment(entry.thread) === parts.at(-2), 'is of another thread');
    if (!commit.signer) {
      this.findings.add('signature', 'signature', 'the checkpoint of an import is not signed');
      throw new FormatError('is not signed');
    }
    this.addKeysOf([{ key: commit.signer, seconds: commit.seconds }]);
    const isFirst = entry.seq === 0;
    ensure('prev' in entry !== isFirst, 'is at a place where it cannot be');
    ensure(
      isFirst || (commit.parents.length > 0 && entry.kind === 'thread.checkpointed'),
      'is at a place where it cannot be',
    );
    ensure(
      parts.at(-1) === 'latest' || parts.at(-1) === encodeSegment(checkpointName(commit)),
      'is another checkpoint',
    );
    ensure(commit.tree === threadTreeOf(entry, this.store.format), 'has another tree');
    return { 'outputs/state': entry.state, 'outputs/packet.json': entry.packet }[key];
  }

  /** Reads the entries of the continued run once. Returns null if their evidence does not hold. */
  async readContinued() {
    this.continued ??= (async () => {
      const { continues } = this.begin.entry;
      let commits = null;
      const check = async (evidence) => {
        ensure(shape({ commits: arrayOf(isString, 1) })(evidence), 'has other fields');
        commits = await Promise.all(evidence.commits.map((text) => readQuotedCommit(text)));
        await this.compareContinued(commits, continues);
      };
      const [path, subject] = ['continues.json', `the continued run ${continues.run}`];
      const { evidence } = continues;
      await this.checkEvidence('continues', this.begin, path, evidence, subject, check);
      return commits;
    })();
    return this.continued;
  }

  async compareContinued(commits, continues) {
    for (const [i, { entry, fault, parents }] of commits.entries()) {
      ensure(entry, `has a commit that is no entry: ${fault}`);
      const isOfRun = entry.run === continues.run && /^(?:run|item|document)\./.test(entry.kind);
      ensure(
        isOfRun && (entry.kind === 'run.submitted') === (i === 0),
        'has an entry that does not belong there',
      );
      ensure(i === 0 || commits[i - 1].entry.kind !== 'run.sealed', 'has an entry behind the seal');
      ensure(
        sameJson(parents, i === 0 ? [] : [commits[i - 1].name]),
        'has commits that are not linked',
      );
    }
    checkOrder(commits, true, (code, commit, text) => {
      throw new FormatError(`is not in order: ${text}`);
    });
    const faults = [];
    this.addKeysOf(await checkRoles(commits, (code) => faults.push(code)));
    ensure(faults.length === 0, 'has a signature that does not hold');
    const last = commits.at(-1).entry;
    const isSealed = last.kind === 'run.sealed';
    const body = isSealed ? commits.slice(0, -1) : commits;
    const root = hashText(merkleRoot(body.map(({ leaf }) => leaf)));
    ensure(body.length === continues.entries && root === continues.root, 'has another root');
    ensure(!isSealed || (last.entries === body.length && last.root === root), 'has another seal');
    await this.compareContinuedCopy(commits, continues);
  }

  /** Compares a copy of the continued run that is in the bundle. */
  async compareContinuedCopy(commits, { run, entries, root }) {
    const copy = await this.verifySource(run);
    if (!copy || copy.first?.hash !== commits[0].hash || copy.commits.length < entries) return;
    if (copy.findings.has('chain') || copy.findings.has('signature')) return;
    const leaves = copy.commits.slice(0, entries).map(({ leaf }) => leaf);
    if (hashText(merkleRoot(leaves)) !== root)
      this.addOtherSource(`the continued run ${run} is here, with other entries`);
  }

  addOtherSource(text) {
    this.findings.add('handoff', 'other-source', text);
  }

  /** Verifies a run of the bundle that is a source of this one, or returns null. */
  async verifySource(run) {
    if (this.sources.has(run) || !this.store.refs.has(`refs/handoff/runs/${encodeSegment(run)}`))
      return null;
    const source = new RunVerifier(this.store, run, {}, this.signers, this.sources);
    await source.verify();
    return source;
  }

  /** Compares the run of a proof that is in the bundle too with the proof. */
  async compareSource(proof) {
    const { run, root } = proof.json;
    const source = await this.verifySource(run);
    if (!source?.seal || source.first?.hash !== proof.first.hash) return;
    const harmless = ['mismatch', 'conflict', 'anchor-missing', 'not-sealed'];
    const doesNotHold = source.findings.list.some((each) => !harmless.includes(failureOf(each)));
    if (doesNotHold || source.seal.root !== root)
      this.addOtherSource(`the run ${run} is here, and contradicts the evidence`);
  }
}

/** Compares the plan and the base of entry 0 with those that the verifier requires. */
function compareExpected({ plan, base }, entry, findings, isSamePlan = () => false) {
  if (plan != null && digestOf(plan) !== entry.plan && !isSamePlan(plan))
    findings.add('plan', 'other-plan', 'the run has another plan than the one that is asked for');
  if (base != null && base !== entry.base)
    findings.add('plan', 'other-base', `the run starts from ${entry.base}`);
}

/** Large blobs are hashed once, although several rows may read them. */
const digestsOfBlobs = new WeakMap();

function digestOfBlob(bytes) {
  if (!digestsOfBlobs.has(bytes)) digestsOfBlobs.set(bytes, digestOf(bytes));
  return digestsOfBlobs.get(bytes);
}

/** Counts the statuses of items by the entries alone, as a seal does. */
function countStatuses(commits) {
  const statuses = new Map();
  for (const { entry } of commits)
    if (entry.kind.startsWith('item.')) statuses.set(entry.item, statusOf(entry));
  const counts = Object.create(null);
  for (const status of statuses.values())
    if (status !== 'pending') counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** Returns true if the end of an item makes it red, without any approval (section 11). */
function isEndRed(end) {
  if (end.kind === 'item.decided') return end.decision === 'rejected';
  return end.verify?.passed === false || changesProtected(end);
}

/** Returns true if an item changes protected files, unallowed and not judged by a check. */
function changesProtected(end) {
  return 'protected' in end && !end.protectedAllowed && !end.protectedJudged;
}

function textOfPlanCode(code, entry) {
  const subject = entry.item ? ` of item ${entry.item}` : '';
  const what = `entry ${entry.seq}: ${entry.kind}${subject}`;
  const texts = {
    transition: 'is not a legal transition',
    rule: 'is not what its rule does there',
    'rule-document': 'depends on a document that cannot be read',
    'rule-waits': 'seals the run although a rule still acts or stopped short',
    stopped: 'names other rules than those that stopped',
    blocks: 'has blocks that do not fit the pipeline',
    'item-digest': 'adds an item whose item.json has another digest',
    'item-invalid': 'adds an item whose item.json is not valid',
  };
  return `${what} ${texts[code] ?? code}`;
}

// ---- proofs (section 11) ----

const isInclusionPath = arrayOf(isDigest);
const isSignedCommit = shape({ commit: isString, path: isInclusionPath });
const isProofShape = shape({
  schema: oneOf('git-handoff.proof/1'),
  run: isRunName,
  entries: isPositive,
  root: isDigest,
  first: isSignedCommit,
  'admitted?': isSignedCommit,
  last: shape({ commit: isString }),
  'item?': isItemName,
  'product?': shape({ key: isProductKey, is: isProduct }),
  'shown?': arrayOf(shape({ entry: isObject, path: isInclusionPath }), 1),
  'since?': shape({ entries: isCount, root: isDigest, path: isInclusionPath }),
});

const isProofJson = allOf(isProofShape, (json) => {
  // The subject is an item with its entries, or how the run continued.
  const isAboutItem = 'item' in json && 'shown' in json;
  const isMixed = 'item' in json !== 'shown' in json || ('product' in json && !isAboutItem);
  return !isMixed && isAboutItem !== 'since' in json;
});

/** A proof, what it shows, and what is wrong with its rows chain, root and signature. */
class Proof {
  constructor(json) {
    this.json = json;
    this.faults = [];
    this.keys = [];
    this.decisions = [];
    this.first = this.last = this.admitted = this.fired = this.end = this.statement = null;
    this.shown = [];
  }

  static async read(json) {
    const proof = new Proof(json);
    const isReadable = isProofJson(json);
    const text = isReadable
      ? 'a commit of the proof carries no such entry'
      : 'the proof is not in the form of a proof';
    if (!isReadable || !(await proof.readCommits())) {
      for (const row of ['chain', 'root']) proof.require(row, false, text);
      return proof;
    }
    proof.checkChain();
    if ('shown' in json) await proof.checkShown();
    proof.checkRoot();
    proof.checkSigners();
    proof.noteDecision();
    return proof;
  }

  require(row, holds, text, code = null) {
    if (!holds) this.faults.push({ row, code, text });
    return Boolean(holds);
  }

  get holds() {
    return this.faults.length === 0;
  }

  /** Returns false unless all commits carry entries of such kinds. */
  async readCommits() {
    const { first, last, admitted } = this.json;
    this.first = await readQuotedCommit(first.commit);
    const { entry, format } = this.first;
    this.format = entry?.objectFormat;
    this.last = await readQuotedCommit(last.commit, this.format);
    if (admitted) this.admitted = await readQuotedCommit(admitted.commit, this.format);
    if (entry?.kind !== 'run.submitted' || format !== this.format || !this.last.entry) return false;
    this.initialRoles = rolesOfEntryZero(entry);
    return true;
  }

  hasRole(key, role) {
    return this.initialRoles.get(key)?.has(role) === true;
  }

  checkChain() {
    const { json, first, last, admitted } = this;
    const require = (holds, text) => this.require('chain', holds, text);
    const zero = first.entry;
    const nameLength = this.format === 'sha1' ? 40 : 64;
    require(zero.base.length === nameLength, 'the base has another object format');
    const isZero = zero.seq === 0 && !('prev' in zero) && first.parents.length === 0;
    require(isZero, 'the first entry is not entry 0');
    const isSeal = last.entry.kind === 'run.sealed' && last.parents.length === 1;
    require(isSeal, 'the last entry is no seal');
    if (admitted) require(this.admitsSealer(), 'the admission does not admit the key that sealed');
    for (const { entry, path } of json.shown ?? []) {
      if (require(faultOfEntry(entry) === null, 'a shown entry is not valid'))
        this.shown.push({ entry, path, leaf: leafHash(canonicalBytes(entry)) });
    }
    const line = [first, ...this.shown];
    if (admitted?.entry) {
      const at = line.findIndex(({ entry }) => entry.seq > admitted.entry.seq);
      line.splice(at < 0 ? line.length : at, 0, admitted);
    }
    line.push(last);
    for (const [i, { entry }] of line.entries()) {
      require(entry.run === json.run, `entry ${entry.seq} is of another run`);
      if (i === 0) continue;
      const { entry: before, leaf } = line[i - 1];
      const isLater = entry.seq > before.seq && entry.at >= before.at && 'prev' in entry;
      const isLinked = entry.seq !== before.seq + 1 || entry.prev === hashText(leaf);
      const text = `entry ${entry.seq} does not follow the one that is shown before it`;
      require(isLater && isLinked, text);
    }
  }

  admitsSealer() {
    const { entry, parents } = this.admitted;
    return (
      entry?.kind === 'run.admitted' &&
      entry.role === 'seal' &&
      parents.length === 1 &&
      entry.key === this.last.signer &&
      !this.hasRole(entry.key, 'seal')
    );
  }

  async checkShown() {
    const { json } = this;
    const require = (holds, text) => this.require('chain', holds, text);
    const entries = this.shown.map(({ entry }) => entry);
    const kinds = entries.map(({ kind }) => kind).join(' ');
    require(entries.every(({ item }) => item === json.item), 'a shown entry is about another item');
    if (kinds === 'item.fired item.reconciled') {
      [this.fired, this.end] = entries;
      const { fired, end } = this;
      const isAttempt = fired.attempt >= 1 && fired.attempt === end.attempt;
      const isDone = end.status === 'done' && isAttempt;
      require(isDone, 'the shown entries are not an attempt that was done');
      if (!json.product) return;
      const { key, is } = json.product;
      require(sameJson(end.products[key], is), `${key} is not a product of the item`);
    } else if (kinds === 'item.decided') {
      [this.end] = entries;
      const isDone = this.end.status === 'done' && !json.product;
      require(isDone, 'the shown decision proves no product');
      if (!('said' in this.end)) return;
      this.statement = await readStatement(this.end, this.first.hash);
      require(this.statement, 'the statement of the decision is about something else');
    } else require(false, 'the shown entries are not those of an item');
  }

  checkRoot() {
    const { json, first, last, admitted } = this;
    const require = (holds, text) => this.require('root', holds, text);
    const { root, entries } = last.entry;
    const isOfSeal =
      root === json.root && entries === json.entries && last.entry.seq === json.entries;
    require(isOfSeal, 'the seal has another root or number of entries');
    const under = [{ ...first, path: json.first.path }, ...this.shown];
    if (admitted?.entry) under.push({ ...admitted, path: json.admitted.path });
    for (const { path, entry, leaf } of under) {
      const found = rootByInclusion(path.map(digestBytes), entry.seq, json.entries, leaf);
      const isUnder = found && hashText(found) === json.root;
      require(isUnder, `entry ${entry.seq} is not under the root`);
    }
    if (json.since)
      require(this.extendsEarlier(json.since), 'the run did not go on from the earlier root');
  }

  extendsEarlier({ entries, root, path }) {
    const { json } = this;
    if (entries < 1 || entries > json.entries) return false;
    const hashes = path.map(digestBytes);
    const roots = rootsByConsistency(hashes, entries, json.entries, digestBytes(root));
    return roots && hashText(roots.before) === root && hashText(roots.after) === json.root;
  }

  checkSigners() {
    const { first, last, admitted } = this;
    const require = (holds, code, text) => this.require('signature', holds, text, code);
    let admits = Boolean(admitted?.entry);
    for (const commit of [first, admitted, last]) {
      if (!commit) continue;
      const { signer: key, seconds, entry } = commit;
      const number = `entry ${entry?.seq}`;
      if (key !== null) this.keys.push({ key, seconds, conducts: true, entry });
      const isFine =
        require(key !== null, 'signature', `${number} has no signature that matches`) &&
        (commit === last ||
          require(this.hasRole(
            key,
            'own',
          ), 'role', `${number}: the key ${key} has not the role own`)) &&
        (commit !== admitted ||
          require(entry.first ===
            first.hash, 'admission', `${number} is an admission to another run`));
      if (commit === admitted && !isFine) admits = false;
    }
    const { signer } = last;
    const isAdmitted = admits && admitted.entry.key === signer;
    const maySeal = signer === null || this.hasRole(signer, 'seal') || isAdmitted;
    require(maySeal, 'role', `the key ${signer} has not the role seal`);
  }

  noteDecision() {
    const { end, last, statement } = this;
    if (end?.kind !== 'item.decided') return;
    const decision = decisionOf(end, statement !== null || end.by === last.signer, last.signer);
    if (statement) {
      const { key, seconds } = statement;
      this.keys.push({ key, seconds, conducts: false, entry: end });
    } else if (!decision.signed)
      this.claimed = { key: end.by, seconds: secondsOf(end.at), entry: end };
    if (!this.hasRole(end.by, 'approve')) decision.roleShown = false;
    this.decisions = [decision];
  }

  /** The outcome of the item alone, or null for a proof about an earlier state. */
  outcome() {
    if (!this.end) return null;
    return { ...emptyOutcome(), total: 1, [isEndRed(this.end) ? 'red' : 'done']: 1 };
  }
}

function headlineOfProof(concluded, isTrusted) {
  if (concluded.failure === null) return isTrusted ? 'PROVEN' : 'PROVEN · unknown key';
  const headline = headlineOf(concluded, isTrusted);
  const kept = ['NOT ANCHORED', 'UNTRUSTED', 'MISMATCH', 'CONFLICT'];
  return kept.includes(headline) ? headline : 'NOT PROVEN';
}

/** Verifies the bytes of a `*.proof.json`. Throws FormatError if they hold no JSON. */
async function verifyProof(bytes, options = {}) {
  const json = readJson(bytes);
  ensure(isObject(json), 'no proof');
  const proof = await Proof.read(json);
  const signers = new Signers(options);
  const findings = new Findings();
  for (const { row, code, text } of proof.faults) findings.add(row, code, text);
  const reasons = {
    anchor: 'no log at hand holds the run',
    handoff: 'a proof shows single entries; this needs the run',
    plan: 'named by entry 0; this needs the run',
    manifest: 'a proof shows single entries; this needs the run',
    content: json.product
      ? `${json.product.key} is ${json.product.is?.sha256}`
      : 'the proof names no product',
  };
  for (const [row, reason] of Object.entries(reasons)) findings.addOpen(row, reason);
  const listed = judgeKeys(proof.keys, signers, findings);
  if (proof.claimed) {
    // The key is only named by the key that sealed, so that it is no signer.
    const { key, seconds, entry } = proof.claimed;
    const code = signers.judge(key, seconds, false);
    const text = `the key ${key} of a claimed decision is not trusted`;
    if (code) findings.add('signature', code, text, { entry: entry.seq });
  }
  const zero = proof.first?.entry ?? null;
  if (zero) compareExpected(options, zero, findings);
  const shown = 2 + proof.shown.length + (proof.admitted ? 1 : 0);
  findings.details.chain = `${shown} of ${json.entries + 1} entries shown, in canonical form`;
  findings.details.root = `merkle ${String(json.root).slice(7, 15)} = sealed root`;
  return {
    kind: 'proof',
    run: isString(json.run) ? json.run : null,
    ...reportOf(findings.conclude(), headlineOfProof, listed, proof.outcome()),
    decisions: proof.decisions,
    root: json.root ?? null,
    entries: json.entries ?? null,
    findings: findings.list,
    proof,
  };
}

// ---- threads (section 10) ----

const checkpointName = ({ entry, hash }) => `${entry.seq}-${hash.slice(7, 19)}`;

/** Returns the tree that follows from the content of a checkpoint. */
function threadTreeOf({ state, packet, worktree }, format) {
  const node = (mode, name, oid) => concatBytes(toBytes(`${mode} ${name}\0`), fromHex(oid));
  const nodes = [];
  if (packet) nodes.push(node('100644', 'packet.json', packet.oid));
  nodes.push(node('100644', 'state', state.oid));
  if (worktree) nodes.push(node('40000', 'worktree', worktree.tree));
  return objectName(format, 'tree', concatBytes(...nodes));
}

const threadRows = ['chain', 'signature', 'anchor', 'lineage', 'content'];
const maxLineage = 1000;
const contentFields = ['state', 'summary', 'packet', 'worktree', 'base'];
const contentOf = (entry) => pickFields(entry, contentFields);

/** Returns the source of an adopted or forked thread, or null. */
const sourceOfThread = (entry) => entry?.adopted_from ?? entry?.from ?? null;

/** A thread read from one of its commits back to its entry 0. */
class ThreadChain {
  constructor(store, name) {
    this.store = store;
    this.name = name;
    this.commits = [];
    this.faults = [];
    this.isWhole = false;
    this.isLeftOut = false;
    /** Checkpoint name to {name, commit, content}. */
    this.checkpoints = new Map();
    this.latest = null;
    this.key = null;
  }

  static async read(store, name, head) {
    const chain = new ThreadChain(store, name);
    chain.walk(head);
    chain.commits.reverse();
    await checkSignatures(chain.commits);
    chain.key = chain.isWhole ? chain.commits[0].signer : null;
    chain.checkEntries();
    return chain;
  }

  fault(text, commit) {
    this.faults.push({ text, entry: commit?.entry?.seq });
  }

  walk(head) {
    for (const commit of commitsFrom(this.store, head)) {
      const { name, entry, parents } = commit;
      if (commit.isMissing) {
        this.isLeftOut = commit.isLeftOut;
        if (!this.isLeftOut) this.fault(`object ${name} is no commit that is here`);
        return;
      }
      if (!entry) {
        this.fault(`commit ${name} is no entry: ${commit.fault}`);
        return;
      }
      this.commits.push(commit);
      this.isWhole = !('prev' in entry);
      if (this.isWhole) return;
      if (parents.length === 0) this.fault(`entry ${entry.seq} has no parent`, commit);
    }
  }

  checkEntries() {
    checkOrder(this.commits, this.isWhole, (_, commit, text) => this.fault(text, commit));
    for (const [i, commit] of this.commits.entries()) {
      const { entry } = commit;
      const number = `entry ${entry.seq}`;
      if (entry.thread !== this.name) this.fault(`${number} is of another thread`, commit);
      const isFirst = i === 0 && this.isWhole;
      if (i > 0 || isFirst) {
        const further = sourceOfThread(entry)?.commit ?? entry.run?.commit;
        const expected = [this.commits[i - 1]?.name, further].filter((name) => name !== undefined);
        if (!sameJson(expected, commit.parents)) this.fault(`${number} has other parents`, commit);
      }
      const checkpoint = this.checkpointOf(commit, isFirst);
      if (!checkpoint) {
        this.fault(`${number} cannot be at this place`, commit);
        continue;
      }
      if (commit.tree !== threadTreeOf(checkpoint.content, this.store.format)) {
        this.fault(`${number} has another tree than its content`, commit);
      }
      if (entry.kind === 'thread.resumed') continue;
      this.latest = { name: checkpointName(commit), commit, content: checkpoint.content };
      this.checkpoints.set(this.latest.name, this.latest);
    }
  }

  /** Returns {content} of the checkpoint that the entry makes or resumes, or null. */
  checkpointOf({ entry }, isFirst) {
    const { kind, adopted_from: adopted, state } = entry;
    if (kind === 'thread.rolled-back')
      return isFirst ? null : (this.checkpoints.get(entry.to) ?? null);
    if (kind === 'thread.resumed')
      return !isFirst && this.latest?.name === entry.checkpoint ? this.latest : null;
    const isTaken = kind === 'thread.forked' || (adopted && adopted.sha256 === state.sha256);
    const isInPlace = kind === 'thread.checkpointed' || (isTaken && isFirst);
    return isInPlace ? { content: contentOf(entry) } : null;
  }

  get tiedRuns() {
    return this.commits.map(({ entry }) => entry.run).filter(Boolean);
  }

  /** Returns the entries that the key of entry 0 did not sign. */
  unsigned() {
    return this.commits.filter(
      ({ signer }) => signer === null || (this.key !== null && signer !== this.key),
    );
  }
}

/** Verifies one thread of a store. */
class ThreadVerifier {
  constructor(store, name, options) {
    this.store = store;
    this.name = name;
    this.options = options;
    this.signers = new Signers(options);
    this.findings = new Findings();
    this.keys = [];
    this.lineage = [];
  }

  async verify() {
    const { findings } = this;
    const head = this.store.refs.get(`refs/handoff/threads/${encodeSegment(this.name)}`);
    this.thread = await ThreadChain.read(this.store, this.name, head);
    const { thread } = this;
    for (const { text, entry } of thread.faults) findings.add('chain', null, text, { entry });
    for (const { entry } of thread.unsigned()) {
      const text = `entry ${entry.seq} is not signed by the key of the thread`;
      findings.add('signature', 'signature', text, { entry: entry.seq });
    }
    for (const { signer: key, seconds, entry } of thread.commits) {
      if (key !== null) this.keys.push({ key, seconds, conducts: true, entry });
    }
    if (thread.commits.length === 0) findings.addOpen('signature', 'no entry could be read');
    const entries = counted(thread.commits.length, 'entry', 'entries');
    findings.details.chain = `${entries}, hash-linked, no gaps`;
    if (!thread.isWhole) {
      if (thread.isLeftOut) findings.addLeftOut('chain');
      for (const row of ['anchor', 'lineage'])
        findings.addOpen(row, 'the thread cannot be read to its first entry');
      return;
    }
    await this.checkAnchor();
    await this.checkLineage();
    for (const chain of [thread, ...this.lineage]) {
      await this.checkRuns(chain);
      this.checkContent(chain);
    }
    const isTied = [thread, ...this.lineage].some((chain) => chain.tiedRuns.length > 0);
    if (this.lineage.length === 0 && !isTied) findings.addOpen('lineage', 'it began by itself');
    findings.details.content = `${counted(thread.checkpoints.size, 'checkpoint')} re-hashed`;
  }

  async checkAnchor() {
    const { findings, thread } = this;
    const report = (text) => findings.add('anchor', null, text);
    const isHeld = await this.compareLogs(thread, true, report);
    const own = (await logsOf(this.store)).filter(({ key }) => key === thread.key);
    if (own.some(({ isUnread }) => isUnread)) findings.addLeftOut('anchor');
    else if (!isHeld) findings.addOpen('anchor', 'no log at hand holds the thread');
    findings.details.anchor = 'local (detect)';
  }

  /**
   * Compares a thread with the latest sound statement of each log at hand, and then with all
   * statements of its key. If the thread is `isWhole`, the logs also say how long it is. Returns
   * true if a log holds the thread.
   */
  async compareLogs(chain, isWhole, report) {
    const logs = await logsOf(this.store);
    const own = logs.filter(({ key }) => key === chain.key);
    const faults = [];
    let isHeld = false;
    const compare = (log, { entries, last }) => {
      const found = chain.commits[entries - 1]?.hash;
      if (found === last) isHeld = true;
      else if (found !== undefined)
        faults.push(`the log ${log.ref} names another entry ${entries - 1}`);
      else if (isWhole)
        faults.push(`the log ${log.ref} knows of ${counted(entries, 'entry', 'entries')}`);
    };
    const latest = (log) => log.threads.get(chain.name)?.at(-1);
    for (const log of logs) {
      if (latest(log) && (own.includes(log) || isWhole)) compare(log, latest(log));
    }
    if (faults.length === 0)
      for (const { isBroken, ref } of own) if (isBroken) faults.push(`the log ${ref} is broken`);
    // Earlier statements matter only if the latest ones cannot be compared.
    const isUnsure = (log) => (latest(log)?.entries ?? 0) > chain.commits.length;
    for (const log of faults.length === 0 ? own.filter(isUnsure) : []) {
      for (const statement of log.signedThreads)
        if (statement.thread === chain.name) compare(log, statement);
    }
    faults.forEach((text) => report(text));
    return isHeld;
  }

  async checkLineage() {
    const { findings } = this;
    const report = (text) => findings.add('lineage', null, text);
    let chain = this.thread;
    for (let steps = 0; ; steps++) {
      const taken = chain.commits[0].entry;
      const source = sourceOfThread(taken);
      if (!source) break;
      if (steps === maxLineage) {
        report('the lineage has more than 1,000 threads');
        return;
      }
      const earlier = await ThreadChain.read(this.store, source.thread, source.commit);
      if (earlier.isLeftOut) {
        findings.addLeftOut('lineage');
        return;
      }
      const say = (text) => report(`thread ${source.thread}: ${text}`);
      this.faultsOfSource(earlier, source, taken).forEach(say);
      if (!earlier.isWhole) return;
      // No log is beside an ancestor, of which only the beginning counts.
      await this.compareLogs(earlier, false, say);
      for (const { signer, seconds, entry } of earlier.commits)
        if (signer !== null) this.judgeLineageKey(signer, seconds, `entry ${entry.seq}`);
      this.lineage.push(earlier);
      chain = earlier;
    }
    const threads = counted(this.lineage.length, 'thread');
    findings.details.lineage =
      chain === this.thread ? 'it has no source' : `${threads} back to the first`;
  }

  faultsOfSource(earlier, source, taken) {
    const faults = earlier.faults.map(({ text }) => text);
    if (earlier.unsigned().length > 0) faults.push('an entry is not signed by its key');
    const last = earlier.commits.at(-1);
    const checkpoint = last && earlier.checkpoints.get(source.checkpoint);
    if (!checkpoint || checkpoint.commit !== last) {
      faults.push(`${source.commit} is not its checkpoint ${source.checkpoint}`);
    } else if (!sameJson(checkpoint.content, contentOf(taken))) {
      faults.push('its checkpoint has another content');
    }
    if ('adopted_from' in taken && earlier.key !== source.signer)
      faults.push('it belongs to another key');
    return faults;
  }

  judgeLineageKey(key, seconds, text) {
    const code = this.signers.judge(key, seconds, false);
    if (code) this.findings.add('lineage', code, `${text}: the key ${key} is not trusted`);
    else if (!this.signers.lines.has(key))
      this.findings.addOpen('lineage', `key ${key} not known to you`);
  }

  /** Verifies the runs to which checkpoints are tied. */
  async checkRuns(chain) {
    for (const { id, commit: head } of chain.tiedRuns) {
      const report = (text, code = null) =>
        this.findings.add('lineage', code, `run ${id}: ${text}`);
      if (this.store.isLeftOut(head)) {
        this.findings.addLeftOut('lineage');
        continue;
      }
      const run = new RunVerifier(this.store, id, {}, this.signers);
      run.head = head;
      await run.verify();
      const rows = ['chain', 'signature', 'handoff', 'plan', 'manifest'];
      const found = run.findings.list.find(({ row }) => rows.includes(row));
      if (found) report(found.text, codesOfDistrust.includes(found.code) ? found.code : null);
      for (const { key, seconds } of run.keys) this.judgeLineageKey(key, seconds, `run ${id}`);
      await this.compareOwnRun(run, chain, report);
    }
  }

  /** Compares the tied run with the run of its id in the bundle, and with logs. */
  async compareOwnRun(run, chain, report) {
    const own = this.store.refs.get(`refs/handoff/runs/${encodeSegment(run.run)}`);
    const { first } = run;
    if (!first) return;
    if (own !== undefined) {
      const copy = new Chain(this.store, own);
      await copy.signatures;
      const isOfKey = copy.isWhole && copy.valid[0]?.signer === first.signer;
      if (isOfKey && !copy.commits.some(({ name }) => name === run.head))
        report('the run that is here does not have the commit');
    }
    const writers = new Set([...(first.entry.writers ?? []), chain.key]);
    for (const log of (await logsOf(this.store)).filter(({ key }) => writers.has(key))) {
      const submitted = log.submitted.get(run.run);
      const isOther = submitted !== undefined && submitted !== first.hash;
      if (isOther && log.key === first.signer) report(`the log ${log.ref} has another first entry`);
      const sealed = log.sealed.get(run.run);
      if (isOther || !sealed || run.commits.length <= sealed.entries) continue;
      if (!run.seal || !sameJson(sealed, run.seal)) report(`the log ${log.ref} has another seal`);
    }
  }

  checkContent(chain) {
    for (const { name, content } of chain.checkpoints.values()) {
      const where = `${chain.name} ${name}`;
      for (const field of ['state', 'packet']) {
        if (!(field in content)) continue;
        const { oid, sha256: digest, size } = content[field];
        const bytes = this.store.readBlob(oid);
        if (bytes === null) this.reportMissing(oid, `the ${field} of ${where}`);
        else if (digestOfBlob(bytes) !== digest || bytes.length !== size) {
          this.findings.add('content', 'content-bytes', `the ${field} of ${where} has other bytes`);
        }
      }
      if (content.worktree) this.checkWorktree(content.worktree.tree, where, new Set());
    }
  }

  reportMissing(oid, what) {
    if (this.store.isLeftOut(oid)) this.findings.addLeftOut('content');
    else
      this.findings.add('content', 'content-unread', `${what}: object ${oid} is not in the bundle`);
  }

  checkWorktree(oid, where, seen) {
    if (seen.has(oid)) return;
    seen.add(oid);
    const tree = this.store.readTree(oid);
    if (!tree?.isWellFormed) {
      this.reportMissing(oid, `a folder of the working tree of ${where}`);
      return;
    }
    for (const node of tree.nodes) {
      if (node.isFolder) this.checkWorktree(node.oid, where, seen);
      else if (node.mode !== '160000' && this.store.readBlob(node.oid) === null) {
        this.reportMissing(node.oid, `the file ${node.name} of the working tree of ${where}`);
      }
    }
  }
}

function headlineOfThread({ failure, isDistrust }, isTrusted) {
  if (failure === null) return isTrusted ? 'INTACT' : 'INTACT · unknown key';
  if (failure === 'incomplete') return 'INCOMPLETE';
  if (failure === 'mismatch') return 'MISMATCH';
  return isDistrust ? 'UNTRUSTED' : 'TAMPERED';
}

/** Verifies a thread of a store and returns the report. */
async function verifyThread(store, name, options = {}) {
  const verifier = new ThreadVerifier(store, name, options);
  await verifier.verify();
  const { findings, signers, thread } = verifier;
  const listed = judgeKeys(verifier.keys, signers, findings);
  const { rows, codes } = findings.conclude(threadRows);
  const failed = threadRows.filter((row) => rows[row].state === 'fail');
  const found = findings.list.map(({ code }) => code);
  const isMismatch = failed.length > 0 && found.every((code) => code === 'other-signer');
  const isDistrust = found.every((code) => codesOfDistrust.includes(code));
  const failure = isMismatch
    ? 'mismatch'
    : (failed[0] ?? (findings.isIncomplete ? 'incomplete' : null));
  const concluded = { rows, codes, failure, isDistrust };
  return {
    kind: 'thread',
    thread: name,
    ...reportOf(concluded, headlineOfThread, listed, null),
    decisions: [],
    entries: thread.commits.length,
    findings: findings.list,
    links: thread.commits.map(linkOf),
  };
}

// ---- reports ----

/** A decision for a report: signed by the key that made it, or claimed by the one that signed. */
function decisionOf({ item, decision, by }, signed, signer) {
  return { item, decision, by, signed, ...(signed ? {} : { onWordOf: signer }) };
}

function decisionsOf(verifier) {
  return (verifier.commits ?? [])
    .filter(({ entry }) => entry.kind === 'item.decided')
    .map(({ entry, signer, statement }) => {
      const isSigned = 'said' in entry ? Boolean(statement) : signer === entry.by;
      return decisionOf(entry, isSigned, signer);
    });
}

/** Returns the attempts that were taken from their drivers, in the order of the entries. */
function takeoversOf(verifier) {
  const hosts = new Map();
  const takeovers = [];
  for (const { entry, signer } of verifier.commits ?? []) {
    if (entry.kind === 'item.fired') hosts.set(entry.item, entry.host);
    if (entry.kind !== 'item.requeued' || entry.reason !== 'lost') continue;
    const { seq, item, attempt, driver, taker, because } = entry;
    if (driver === undefined || because === undefined) continue;
    const takeover = { entry: seq, item, attempt, driver, because };
    if (hosts.get(item) !== undefined) takeover.host = hosts.get(item);
    if (taker !== undefined) takeover.taker = taker;
    if (signer !== null) takeover.key = signer;
    takeovers.push(takeover);
  }
  return takeovers;
}

/** In words: `attempt 1 of X was taken from d1d1d1d1 (node7) by d2d2d2d2: silent`. */
function textOfTakeover({ item, attempt, driver, host, taker, because }) {
  const place = host === undefined ? '' : ` (${host})`;
  const by = taker === undefined ? '' : ` by ${taker.slice(0, 8)}`;
  const from = driver.slice(0, 8) + place;
  return `attempt ${attempt} of ${item} was taken from ${from}${by}: ${because}`;
}

/** One entry of a chain as a report shows it. */
const linkOf = (commit) => ({
  commit: commit.name,
  leafHash: commit.hash,
  entry: commit.entry,
});

/** Returns the part that all reports have, of what was concluded and the keys that signed. */
function reportOf(concluded, toHeadline, signers, outcome) {
  const { rows, codes, failure } = concluded;
  const isTrusted = signers.length > 0 && signers.every((signer) => signer.trusted);
  const headline = toHeadline(concluded, isTrusted);
  return { rows, codes, failure, headline, outcome, exit: exitOf(failure, outcome), signers };
}

/** Names the first of some items and the reason, and counts the others. */
function textOfNotRecomputed([{ item, reason }, ...others]) {
  const more = others.length > 0 ? ` and ${counted(others.length, 'more item')}` : '';
  return `${item}${more} not recomputed ${reason}`;
}

/** Verifies a run of a store and returns the report. */
async function verifyRun(store, run, options = {}) {
  const signers = new Signers(options);
  const verifier = new RunVerifier(store, run, options, signers);
  await verifier.verify();
  const { findings } = verifier;
  const listed = judgeKeys(verifier.keys, signers, findings);
  const commits = verifier.commits ?? [];
  const { notRecomputed } = verifier;
  const concluded = findings.conclude();
  if (options.require === 'protected' && notRecomputed.length > 0) concluded.failure ??= 'required';
  return {
    kind: 'run',
    run,
    ...reportOf(concluded, headlineOf, listed, verifier.outcome),
    ...(notRecomputed.length > 0 ? { notRecomputed } : {}),
    decisions: decisionsOf(verifier),
    takeovers: takeoversOf(verifier),
    root: verifier.root ?? null,
    entries: commits.length,
    submitted: verifier.begin?.entry ?? null,
    findings: findings.list,
    replay: verifier.replay,
    headTree: commits.at(-1)?.tree ?? null,
    links: commits.map(linkOf),
  };
}

/** Verifies the runs and threads of a store, or only those of some names. */
async function verifyAll(store, options, names) {
  const isChosen = (name) => names?.includes(name) ?? true;
  const reports = [];
  for (const run of namesIn(store, 'runs').filter(isChosen))
    reports.push(await verifyRun(store, run, options));
  for (const thread of namesIn(store, 'threads').filter(isChosen))
    reports.push(await verifyThread(store, thread, options));
  return reports;
}

/** Returns the names of the runs or threads that a bundle has refs of. */
function namesIn(store, folder) {
  const prefix = `refs/handoff/${folder}/`;
  return [...store.refs.keys()]
    .filter((ref) => ref.startsWith(prefix))
    .map((ref) => decodeSegment(ref.slice(prefix.length)))
    .filter((name) => name !== null)
    .sort(compareNames);
}

// ---- the page: its template ----

/** Characters that are never shown, because they are invisible or turn the text around. */
const unprintable = new RegExp(
  '[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5' +
    '\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff' +
    '\\uffa0\\ufff0-\\ufffb\\u{13430}-\\u{1343f}\\u{1bca0}-\\u{1bca3}\\u{1d159}' +
    '\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]',
  'gu',
);

/** Makes a text printable on one line of a terminal, because a line end could imitate another. */
const toLine = (text) => text.replace(unprintable, '\ufffd').replaceAll('\n', '\ufffd');

/** Writes the characters of a JSON that are never shown as escapes. */
function toPrintableJson(value) {
  const escapeUnit = (unit) => '\\u' + unit.charCodeAt(0).toString(16).padStart(4, '0');
  const escapeAll = (character) => character.split('').map(escapeUnit).join('');
  return JSON.stringify(value).replace(unprintable, escapeAll);
}

const htmlEscapes = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const toHtml = (text) =>
  text.replace(unprintable, '\ufffd').replace(/[&<>"']/g, (character) => htmlEscapes[character]);

/** Splits a template into texts, values and sections. Throws FormatError if tags do not match. */
function parseTemplate(template) {
  const root = { parts: [] };
  const open = [root];
  // Each second piece is a tag.
  for (const [i, piece] of template.split(/\{\{(\{[^}]*\}|[^}]*)\}\}/).entries()) {
    const { parts } = open.at(-1);
    const [mark, name] = [piece[0], piece.slice(1)];
    if (i % 2 === 0) parts.push({ text: piece });
    else if (mark === '{') parts.push({ value: name.slice(0, -1), isRaw: true });
    else if (mark === '#' || mark === '^') {
      open.push({ section: name, isInverted: mark === '^', parts: [] });
      parts.push(open.at(-1));
    } else if (mark === '/')
      ensure(open.pop().section === name, 'a template whose sections do not match');
    else parts.push({ value: piece, isRaw: false });
  }
  ensure(open.length === 1, 'a template with a section that does not end');
  return root.parts;
}

function lookUp(stack, name) {
  if (name === '.') return stack.at(-1);
  const holder = stack.findLast((value) => isObject(value) && Object.hasOwn(value, name));
  return holder?.[name];
}

const isShown = (value) =>
  Array.isArray(value) ? value.length > 0 : ![undefined, null, false, ''].includes(value);

/** Fills a template with facts. The language is that of src/report/template.rs. */
function fill(template, facts) {
  const filled = [];
  function write(parts, stack) {
    for (const part of parts) {
      if ('text' in part) {
        filled.push(part.text);
      } else if ('value' in part) {
        const value = lookUp(stack, part.value);
        if (typeof value === 'string') filled.push(part.isRaw ? value : toHtml(value));
        else if (isNumber(value)) filled.push(canonical(value));
      } else {
        const value = lookUp(stack, part.section);
        if (isShown(value) === part.isInverted) continue;
        for (const each of part.isInverted ? [] : [value].flat())
          write(part.parts, [...stack, each]);
        if (part.isInverted) write(part.parts, stack);
      }
    }
  }
  write(parseTemplate(template), [facts]);
  return filled.join('');
}

// ---- the page: words ----

const longestFact = 2000;

/** Cuts a text to a number of characters. */
function cutTo(text, most) {
  if (text.length <= most) return text;
  const characters = [...text];
  return characters.length <= most ? text : characters.slice(0, most).join('') + '…';
}

/** A string as it is, nothing for a missing or empty value, and others as canonical JSON. */
function plainWord(value) {
  if (isString(value)) return value;
  const isEmpty = (isObject(value) || Array.isArray(value)) && Object.keys(value).length === 0;
  return isEmpty || !isShown(value) ? '' : canonical(value);
}

const listWord = (value) => (Array.isArray(value) ? value.filter(isString).join(', ') : '');

function durationWord(ms) {
  const whole = (number, unit) => Math.floor(number / unit);
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60000) return `${whole(ms, 1000)}.${whole(ms % 1000, 100)} s`;
  if (ms < 3600000) return `${whole(ms, 60000)} min ${whole(ms % 60000, 1000)} s`;
  return `${whole(ms, 3600000)} h ${whole(ms % 3600000, 60000)} min`;
}

function bytesWord(value) {
  return isString(value?.sha256) && isCount(value?.size)
    ? `${value.sha256}, ${value.size} bytes`
    : '';
}

function exitWord(exit) {
  if (isInteger(exit?.code, -maxInteger)) return `exit ${exit.code}`;
  return isInteger(exit?.signal, -maxInteger) ? `signal ${exit.signal}` : '';
}

const joinWords = (words) => words.filter((word) => word !== '').join(', ');

/** The driver that dispatches an attempt, or from which it was taken; empty for others. */
function driverWord({ kind, driver, host, job, taker, because }) {
  if (driver === undefined) return '';
  const id = driver.slice(0, 8);
  if (because !== undefined) {
    return `taken from ${id}${taker === undefined ? '' : ` by ${taker.slice(0, 8)}`}: ${because}`;
  }
  if (kind !== 'item.fired') return '';
  const place = host === undefined ? '' : ` on ${host}`;
  return `driver ${id}${place}${job === undefined ? '' : `, job ${job}`}`;
}

/** The result that an entry records, such as `done, red, exit 0, 51 ms`. */
function noteOf(entry) {
  const decided = isString(entry.decision) ? `${entry.decision} by ${plainWord(entry.by)}` : '';
  const words = [
    plainWord(entry.status),
    isEntryRed(entry) ? 'red' : '',
    entry.protectedJudged ? protectionWord(entry) : '',
    decided,
    ...['message', 'rule', 'outcome', 'grade', 'reason', 'detail'].map((field) =>
      plainWord(entry[field]),
    ),
    driverWord(entry),
    exitWord(entry.exit),
    isCount(entry.durationMs) ? durationWord(entry.durationMs) : '',
  ];
  return cutTo(joinWords(words), longestFact);
}

/** Says that a check judged changes of protected files, or decided while nothing was protected. */
function protectionWord(entry) {
  const count = entry.protected?.length ?? 0;
  const files = count === 1 ? 'file' : 'files';
  if (entry.protectedJudged) return `! ${count} protected ${files} changed, judged as in the base`;
  const isChecked = entry.status === 'done' && entry.verify?.by === 'command';
  const isBare = !('reference' in entry) && !('reused' in entry);
  return isChecked && isBare ? 'check: nothing protected' : '';
}

/** Says that a check passed in the worktree that the worker left. */
function checkPlaceWord(manifest, entry) {
  const { passed, by } = entry.verify ?? {};
  const isPassed = entry.status === 'done' && passed === true && by === 'command';
  const isInWorktree = manifest !== undefined && !('verifyIn' in manifest);
  return isPassed && isInWorktree ? "check in the worker's worktree" : '';
}

/** Returns true if an entry ends an item as red, whatever people approved later. */
function isEntryRed(entry) {
  const isEnd = entry.kind === 'item.reconciled' || entry.kind === 'item.decided';
  return isEnd && entry.status === 'done' && isEndRed(entry);
}

/** Returns facts from pairs of name and value. Empty values are left out. */
const factsOf = (pairs) =>
  pairs
    .map(([name, value]) => ({ name, value: cutTo(plainWord(value), longestFact) }))
    .filter(({ value }) => value !== '');

const entriesInOrder = (object) =>
  sortNames(Object.keys(object ?? {})).map((key) => [key, object[key]]);

// ---- the page: contents ----

const largestShown = 64 * 1024;
const largestImage = 256 * 1024;
const imageStarts = [
  ['89504e470d0a1a0a', 'image/png'],
  ['ffd8ff', 'image/jpeg'],
  ['47494638', 'image/gif'],
  ['52494646', 'image/webp'],
].map(([start, kind]) => [fromHex(start), kind]);

const dataUrl = (kind, bytes) => `data:${kind};base64,${toBase64(bytes)}`;

/** A product for the page, with its content if the page carries it and it can be shown. */
function productFacts(store, name, product) {
  const shown = { name, sha256: product.sha256 ?? null, size: product.size ?? null };
  return contentFacts(shown, store.readBlob(product.oid));
}

/** Adds a content to what is shown of it, if the page carries it and it can be shown. */
function contentFacts(shown, bytes) {
  if (bytes === null) return { ...shown, leftOut: true };
  if (shown.size > largestImage || bytes.length > largestImage) return shown;
  const image = imageStarts.find(([start]) => start.every((byte, i) => bytes[i] === byte));
  if (image) return { ...shown, image: dataUrl(image[1], bytes) };
  if (shown.size > largestShown || bytes.length === 0) return shown;
  const text = tryToRead(() => toText(bytes));
  if (text?.includes('\0') === false) return { ...shown, text };
  return { ...shown, save: dataUrl('application/octet-stream', bytes) };
}

// ---- the page: when items ran ----

const timelineLimits = { rows: 200, left: 220, width: 640, row: 20, top: 24, names: 2000 };
const millisOf = (time) => Date.parse(time);

/** The times of a run, in milliseconds since 1970. */
class Timing {
  constructor(report) {
    const entries = report.links.map((link) => link.entry);
    this.begin = millisOf(entries[0].at);
    this.items = new Map();
    for (const id of report.replay.items.keys())
      this.items.set(id, { since: this.begin, attempts: [] });
    for (const entry of entries) this.note(entry);
    const last = millisOf(entries.at(-1).at);
    const ends = [...this.items.values()].flatMap(({ attempts }) =>
      attempts.map(({ end }) => end ?? last),
    );
    // A seal may follow much later, and would squeeze everything else.
    if (ends.length === 0) ends.push(last);
    this.end = ends.reduce((latest, end) => Math.max(latest, end), this.begin);
  }

  note(entry) {
    const at = millisOf(entry.at);
    if (entry.kind === 'run.extended') {
      for (const id of Object.keys(entry.items))
        if (this.items.has(id)) this.items.get(id).since = at;
    }
    const times = entry.kind.startsWith('item.') ? this.items.get(entry.item) : undefined;
    if (!times) return;
    if (entry.kind === 'item.fired') {
      const { attempt: number, actor } = entry;
      times.attempts.push({ number, actor, begin: at, end: null, isFailed: false });
      return;
    }
    const open = times.attempts.at(-1);
    if (!open || open.end !== null) return;
    open.end = at;
    open.isFailed = statusOf(entry) !== 'done';
  }

  took(id) {
    const { attempts } = this.items.get(id);
    if (attempts.length === 0) return '';
    const lengths = attempts.map(({ begin, end }) => Math.max((end ?? this.end) - begin, 0));
    return durationWord(lengths.reduce((sum, length) => sum + length, 0));
  }

  endOf(id) {
    const last = this.items.get(id).attempts.at(-1);
    return last ? (last.end ?? this.end) : null;
  }

  /** The items on which the end of the run depended, in the order of the items. */
  critical(dependenciesOfItem) {
    const latest = (ids) => {
      let best = null;
      for (const id of ids) {
        const end = this.endOf(id);
        if (end !== null && (best === null || end > best.end)) best = { end, id };
      }
      return best?.id;
    };
    const path = new Set();
    for (let next = latest(this.items.keys()); next !== undefined && !path.has(next);) {
      path.add(next);
      next = latest(dependenciesOfItem(next));
    }
    return new Set([...this.items.keys()].filter((id) => path.has(id)));
  }

  x(at) {
    const span = Math.max(this.end - this.begin, 1);
    const clamped = Math.min(Math.max(at, this.begin), this.end);
    return timelineLimits.left + Math.floor(((clamped - this.begin) * timelineLimits.width) / span);
  }
}

// ---- the page: the facts of a run ----

const mostDetailed = 2000;
const longestLabel = 22;
const statusRanks = [
  'failed',
  'done, red',
  'running',
  'pending',
  'cancelled',
  'skipped',
  'done, claimed',
  'done',
  'superseded',
];
const marks = {
  done: '✓',
  'done, claimed': '✓',
  'done, red': '!',
  failed: '✗',
  running: '▶',
  skipped: '─',
  cancelled: '─',
  superseded: '─',
};
const markOf = (status) => marks[status] ?? '·';
const statusColors = {
  done: ['#dff3e3', '#1a7f37'],
  'done, claimed': ['#dff3e3', '#1a7f37'],
  'done, red': ['#fff1c2', '#9a6700'],
  failed: ['#ffe1de', '#b3261e'],
  running: ['#dbeafe', '#1d4ed8'],
};
const colorsOf = (status) => statusColors[status] ?? ['#eeeeee', '#6b6b6b'];

function commonPrefix([first = '', ...others]) {
  let prefix = [...first];
  for (const other of others.map((text) => [...text])) {
    const end = prefix.findIndex((character, i) => character !== other[i]);
    if (end >= 0) prefix = prefix.slice(0, end);
  }
  return prefix.join('');
}

/** Row of a table of entries. */
function stepFacts({ entry, leafHash: hash }) {
  const { seq, at, kind, attempt = null, actor } = entry;
  return { seq, at, kind, attempt, actor, note: noteOf(entry), hash };
}

/** The facts that a page shows of one run. All follow from the evidence. */
class RunFacts {
  constructor(store, report, number) {
    this.store = store;
    this.report = report;
    this.number = number;
    this.replay = report.replay;
    this.ids = [...this.replay.items.keys()];
    this.positions = new Map(this.ids.map((id, i) => [id, i]));
    this.timing = new Timing(report);
    this.planned = new Map(this.replay.plan.items.map((item) => [item.id, item]));
  }

  facts(picture) {
    const decisions = this.linksOf((kind) => kind === 'item.decided');
    const documents = this.documents();
    const sources = this.sources();
    const artifacts = this.artifacts();
    return {
      anchor: `r${this.number}`,
      run: this.report.run,
      outcome: textOfOutcome(this.report.outcome, [...outcomeWords, 'superseded', 'claimed']),
      facts: this.runFacts(),
      graph: this.graph(picture),
      timeline: this.timeline(),
      items: this.items(),
      hasDocuments: documents.length > 0,
      documents,
      hasDecisions: decisions.length > 0,
      decisions,
      hasSources: sources.length > 0,
      sources,
      hasArtifacts: artifacts.length > 0,
      artifacts,
      events: this.linksOf((kind) => kind.startsWith('run.')),
    };
  }

  anchorOf(id) {
    return `r${this.number}i${this.positions.get(id)}`;
  }

  dependencies(id) {
    return this.replay.dependencies(id).filter((each) => this.positions.has(each));
  }

  status(id) {
    const item = this.replay.items.get(id);
    if (this.replay.superseded.has(id)) return 'superseded';
    if (item.status === 'done' && this.replay.isRed(item)) return 'done, red';
    if (item.status === 'done' && item.definition.executor === 'claimed') return 'done, claimed';
    return item.status ?? 'pending';
  }

  linksOf(isWanted) {
    return this.report.links
      .filter(({ entry }) => isWanted(entry.kind))
      .map((link) => ({ ...stepFacts(link), item: link.entry.item ?? null }));
  }

  runFacts() {
    const { links } = this.report;
    const first = links[0].entry;
    const last = links.at(-1);
    const { closing } = this.replay;
    return factsOf([
      ['Entries', links.length],
      ['Root', last.entry.root],
      ['Last commit', last.commit],
      ['Submitted at', first.at],
      ['Submitted by', first.actor],
      ['Plan', first.plan],
      ['Base', first.base],
      ['Queue', first.queue],
      ['Pattern', first.pattern],
      ['Rules of the queue', first.rules],
      ['Keys that may write', listWord(first.writers)],
      ['Roles', first.roles],
      ['Pipelines', first.pipelines],
      ['Object format', first.objectFormat],
      ['Program', first.tool],
      ['Closed early', closing?.kind === 'run.closed' ? closing.reason : ''],
      ['Cancelled', closing?.kind === 'run.cancelled' ? closing.reason : ''],
    ]);
  }

  /** Every revision of every document, in the order of the entries. */
  documents() {
    const numbers = new Map();
    const rows = [];
    const add = (name, product, author, at) => {
      numbers.set(name, (numbers.get(name) ?? 0) + 1);
      rows.push({
        ...productFacts(this.store, name, product),
        revision: numbers.get(name),
        at,
        author,
      });
    };
    for (const { entry } of this.report.links) {
      if (entry.kind === 'document.written') add(entry.name, entry, entry.author, entry.at);
      for (const [key, product] of entriesInOrder(entry.products)) {
        if (key.startsWith('documents/'))
          add(key.slice(10), product, plainWord(entry.item), entry.at);
      }
    }
    return rows;
  }

  sources() {
    const { imports, continues } = this.report.links[0].entry;
    const rows = entriesInOrder(imports).map(([name, { product, evidence }]) => ({
      name,
      sha256: product.sha256,
      evidence,
    }));
    if (continues) {
      const { run, root, evidence } = continues;
      rows.push({ name: `${run}, continued`, sha256: root, evidence });
    }
    return rows;
  }

  /** The files that were sealed with the plan. */
  artifacts() {
    const { artifacts } = this.report.links[0].entry;
    return entriesInOrder(artifacts).map(([name, sha256]) => {
      const path = `artifacts/${encodePath(name)}`;
      const bytes = readBlobAt(this.store, this.report.headTree, path);
      return contentFacts({ name, sha256, size: bytes === null ? null : bytes.length }, bytes);
    });
  }

  items() {
    const byItem = new Map(this.ids.map((id) => [id, []]));
    for (const link of this.report.links) byItem.get(link.entry.item)?.push(link);
    const items = this.ids.map((id) => this.item(id, byItem.get(id)));
    if (items.length > 0) items[0].isFirst = true;
    return items;
  }

  item(id, links) {
    const entries = links.map((link) => link.entry);
    const fired = entries.findLast(({ kind }) => kind === 'item.fired');
    const ended = entries.findLast(({ kind }) => kind === 'item.reconciled');
    const status = this.status(id);
    const shown = {
      anchor: this.anchorOf(id),
      id,
      status,
      mark: markOf(status),
      attempts: this.replay.items.get(id).attemptCount,
      took: this.timing.took(id),
      products: Object.keys(ended?.products ?? {}).length,
    };
    if ((status === 'done' || status === 'done, claimed') && this.ids.length > mostDetailed) return shown;
    shown.details = {
      facts: this.itemFacts(id, fired, ended),
      inputs: entriesInOrder(fired?.inputRefs).map(([key, input]) => ({
        key,
        from: plainWord(input.from),
        product: plainWord(input.select),
        sha256: input.ref,
      })),
      contents: entriesInOrder(ended?.products).map(([name, product]) =>
        productFacts(this.store, name, product),
      ),
      protected: ended?.protected ?? null,
      entries: links.map(stepFacts),
    };
    return shown;
  }

  /** Reads JSON at a path of the tree after the last entry. */
  readHead(path) {
    const bytes = readBlobAt(this.store, this.report.headTree, path);
    return bytes === null ? undefined : tryJson(bytes);
  }

  itemFacts(id, fired, ended) {
    const folder = itemFolder(id, this.report.submitted.fanOut);
    const definition = this.planned.get(id) ?? this.readHead(folder + 'item.json');
    const manifest = this.readHead(folder + 'manifest.json');
    const executor = plainWord(definition?.executor);
    const { subagent } = manifest ?? {};
    return factsOf([
      ['Goal', definition?.inputs?.goal],
      ['Executor', isString(subagent) ? `${executor} (${subagent})` : executor],
      ['Inputs in the plan', definition?.inputs],
      ['After', this.dependencies(id).join(', ')],
      ['Locks', listWord(definition?.resourceLocks)],
      ...manifestFacts(manifest ?? {}),
      ['Manifest', fired?.manifest],
      ...(ended ? endFacts(ended) : []),
      ['Protection', ended ? protectionWord(ended) : ''],
      ['Check ran', ended ? checkPlaceWord(manifest, ended) : ''],
      ['Protected changes approved by', this.approverOf(id)],
    ]);
  }

  /** Returns the key that approved the item's changes to protected files, or an empty text. */
  approverOf(id) {
    const item = this.replay.items.get(id);
    if (!item.end || item.end.kind !== 'item.reconciled' || !isEntryRed(item.end)) return '';
    if (item.end.verify?.passed === false) return '';
    const approvals = [...this.replay.items.values()].filter(
      ({ end, id: own }) =>
        end?.kind === 'item.decided' &&
        end.decision === 'approved' &&
        this.dependencies(own).includes(id),
    );
    approvals.sort((a, b) => a.end.seq - b.end.seq);
    return approvals[0]?.end.by ?? '';
  }

  graph({ boxes, edges, width, height }) {
    return {
      width,
      height,
      boxes: boxes.map((box, number) => this.box(box, number)),
      edges: edges.map(([from, to, bend]) => pathOfEdge(boxes[from], boxes[to], bend)),
    };
  }

  box([x, y, width, height, members], number) {
    const ids = members.map((at) => this.ids[at]);
    const counts = new Map();
    for (const id of ids) counts.set(this.status(id), (counts.get(this.status(id)) ?? 0) + 1);
    const rank = (status) =>
      statusRanks.includes(status) ? statusRanks.indexOf(status) : statusRanks.length;
    const statuses = [...counts.keys()].sort((a, b) => rank(a) - rank(b));
    const worst = statuses[0] ?? 'pending';
    const words = statuses.map((status) => `${counts.get(status)} ${status}`).join(', ');
    const prefix = commonPrefix(ids);
    const isOne = ids.length === 1;
    const shown = cutTo(isOne ? ids[0] : `${prefix}… ${ids.length}`, longestLabel);
    const [fillColor, stroke] = colorsOf(worst);
    const anchor = isOne ? this.anchorOf(ids[0]) : `r${this.number}g${number}`;
    const member = (id) => ({ anchor: this.anchorOf(id), id, mark: markOf(this.status(id)) });
    return {
      x,
      y,
      width,
      height,
      textX: x + 10,
      textY: y + Math.floor(height / 2) + 5,
      label: `${markOf(worst)} ${shown}`,
      name: isOne ? ids[0] : `${prefix}…`,
      title: isOne ? worst : words,
      anchor,
      fill: fillColor,
      stroke,
      lineWidth: isOne ? 1 : 3,
      group: isOne ? null : { anchor, members: ids.map(member) },
    };
  }

  timeline() {
    const { timing } = this;
    const { rows: most, left, width, row, top, names } = timelineLimits;
    const critical = timing.critical((id) => this.dependencies(id));
    const ran = this.ids.filter((id) => timing.items.get(id).attempts.length > 0);
    if (ran.length === 0) return null;
    const rows = ran
      .slice(0, most)
      .map((id, i) => this.timelineRow(id, top + i * row, critical.has(id)));
    return {
      width: left + width + 20,
      height: top + rows.length * row + 8,
      took: durationWord(timing.end - timing.begin),
      left,
      right: left + width,
      rows,
      more: Math.max(ran.length - most, 0),
      isMore: ran.length > most,
      critical: cutTo([...critical].join(', '), names),
    };
  }

  timelineRow(id, y, isCritical) {
    const { timing } = this;
    const { since, attempts } = timing.items.get(id);
    const ends = this.dependencies(id)
      .map((each) => timing.endOf(each))
      .filter((end) => end !== null);
    const ready = ends.reduce((latest, end) => Math.max(latest, end), since);
    const [from, to] = [timing.x(ready), timing.x(attempts[0]?.begin ?? ready)];
    return {
      label: cutTo(id, longestLabel),
      anchor: this.anchorOf(id),
      y,
      textY: y + 13,
      waitX: from,
      waitY: y + 7,
      waitWidth: Math.max(to - from, 0),
      bars: attempts.map((attempt) => this.timelineBar(id, attempt, y)),
      weight: isCritical ? 'bold' : 'normal',
    };
  }

  timelineBar(id, { number, actor, begin, end: ended, isFailed }, y) {
    const end = ended ?? this.timing.end;
    const [from, to] = [this.timing.x(begin), this.timing.x(end)];
    const status = ended === null ? 'running' : isFailed ? 'failed' : this.status(id);
    const took = durationWord(Math.max(end - begin, 0));
    const [fillColor, stroke] = colorsOf(status);
    return {
      x: from,
      y: y + 3,
      width: Math.max(to - from, 2),
      mark: markOf(status),
      name: id,
      title: `attempt ${number}, ${took}`,
      actor,
      fill: fillColor,
      stroke,
    };
  }
}

function manifestFacts(manifest) {
  const file = (value) => (isString(value?.path) ? `${value.path}, ${bytesWord(value)}` : '');
  const version = plainWord(manifest.program?.version);
  const program = file(manifest.program);
  const names = Array.isArray(manifest.env) ? manifest.env.length : 0;
  return [
    ['Command', manifest.argv],
    ['Setup', manifest.setup],
    ['Check', manifest.verify],
    ['Program', version === '' ? program : `${program}, ${version}`],
    ['Interpreter', file(manifest.interpreter)],
    ['Sandbox', manifest.sandbox],
    ['Network', manifest.network],
    ['Access', accessWord(manifest)],
    ['Time limit', isCount(manifest.timeout) ? `${manifest.timeout} s` : ''],
    ['Protected files', protectWord(manifest.protect)],
    ['Environment', names > 0 ? `${names} variables, named in the manifest` : ''],
  ];
}

/** Names the pathspecs of protected files, and the exceptions of everything. */
const protectWord = (rules) =>
  Array.isArray(rules)
    ? rules
        .map((rule) => (isString(rule) ? rule : `everything except ${listWord(rule?.except)}`))
        .join(', ')
    : '';

/** Says what a worker could reach besides its worktree. */
function accessWord(manifest) {
  const home = isString(manifest.home) ? [`home: ${manifest.home}`] : [];
  const lists = ['writable', 'readable', 'linked', 'copied'].filter((name) =>
    Array.isArray(manifest[name]),
  );
  const counted = lists.map((name) => {
    const count = manifest[name].length;
    return `${name}: ${count} ${count === 1 ? 'place' : 'places'}: ${listWord(manifest[name])}`;
  });
  return [...home, ...counted].join('; ');
}

function endFacts({ claims, reused, ...ended }) {
  const checkWord = (run) =>
    joinWords([plainWord(run?.argv), exitWord(run?.exit), bytesWord(run?.output)]);
  return [
    ['Summary by the worker', ended.summary],
    ['Model, by its own account', claims?.model],
    ['Session', claims?.session],
    ['Use, by its own account', claims?.usage],
    ['Left out of the patch', listWord(ended.excluded)],
    ['Check before the work', checkWord(ended.checkBefore)],
    ['Check after the work', checkWord(ended.check)],
    ['Reused from', reused ? `${reused.run}/${reused.item}` : ''],
    ['Blocks of the pipeline', ended.blocks],
    ['Transcript, not in this page', bytesWord(ended.transcript)],
  ];
}

/** The path of an edge from the right side of a box to the left side of another. */
function pathOfEdge(from, to, bend) {
  const between = bend ? ` L${bend[0]} ${bend[1]}` : '';
  const start = `M${from[0] + from[2]} ${from[1] + Math.floor(from[3] / 2)}`;
  return `${start}${between} L${to[0]} ${to[1] + Math.floor(to[3] / 2)}`;
}

/** Returns what the writer of a page says of a row. */
function wordOfClaim(state, codes) {
  if (state === 'ok') return 'holds';
  if (state !== 'fail') return 'not checked';
  if (codes === 'not-sealed') return 'not sealed yet';
  return codes === '' ? 'does not hold' : `does not hold: ${codes}`;
}

function claimFacts(claims, anchor, names) {
  const rows = names.map((name) => {
    const codes = (claims.codes[name] ?? []).join(', ');
    const found = wordOfClaim(claims.rows[name], codes);
    return { name, place: `${anchor}-${name}`, found, [`is_${name}`]: true };
  });
  return { headline: claims.headline, rows, keys: claims.keys };
}

/** The facts that a page shows of a thread. */
function threadFacts(store, { thread, links }, claims, number) {
  const anchor = `t${number}`;
  const [first, last] = [links[0], links.at(-1)];
  const facts = factsOf([
    ['Entries', links.length],
    ['Begun at', first?.entry.at],
    ['Begun by', first?.entry.actor],
    ['Last commit', last?.commit],
  ]);
  return {
    thread,
    claims: claimFacts(claims, anchor, threadRows),
    anchor,
    facts,
    steps: links.map((link) => threadStep(store, link)),
  };
}

function threadStep(store, { entry, leafHash: hash }) {
  const { seq, at, kind, actor, summary = null } = entry;
  const contents = ['state', 'packet'].filter((name) => isObject(entry[name]));
  return {
    seq,
    at,
    kind,
    actor,
    checkpoint: kind === 'thread.resumed' ? null : checkpointName({ entry, hash }),
    note: noteOfThread(entry),
    summary,
    contents: contents.map((name) => productFacts(store, name, entry[name])),
    hash,
  };
}

/** Says where an entry of a thread comes from, or what it goes back to. */
function noteOfThread({ run, adopted_from: adopted, from, to, checkpoint }) {
  const place = (source) => `${source.thread}:${source.checkpoint}`;
  const unknown = adopted?.acceptedUnknown ? ', a key unknown to the adopter' : '';
  return joinWords([
    run ? `made in run ${run.id}` : '',
    adopted ? `adopted from ${place(adopted)}, signed by ${adopted.signer}${unknown}` : '',
    from ? `forked from ${place(from)}` : '',
    to === undefined ? '' : `back to ${to}`,
    checkpoint === undefined ? '' : `resumed at ${checkpoint}`,
  ]);
}

/** Counts the blobs that the trees of the evidence name and that it does not have. */
function countLeftOut(store) {
  const missing = new Set();
  for (const [name, { type }] of store.objects) {
    const nodes = (type === 'tree' && store.readTree(name)?.nodes) || [];
    for (const { mode, isFolder, oid } of nodes)
      if (!isFolder && mode !== '160000' && !store.objects.has(oid)) missing.add(oid);
  }
  return missing.size;
}

const inScript = (json) => json.replaceAll('<', '\\u003c');

/** The facts for the template, from the evidence, the claims, and the text of the script. */
function pageFacts(store, reports, claims, scriptText, evidence) {
  const names = sortNames(Object.keys(claims.runs));
  const threadNames = sortNames(Object.keys(claims.threads));
  const runs = names.map((name, number) => {
    const own = claims.runs[name];
    const anchor = `r${number}`;
    const facts = own.isReadable
      ? new RunFacts(store, reports.runs.get(name), number).facts(own)
      : { anchor, run: name, outcome: 'unreadable', isUnreadable: true };
    return { ...facts, claims: claimFacts(own, anchor, rowNames) };
  });
  const threads = threadNames.map((name, number) =>
    threadFacts(store, reports.threads.get(name), claims.threads[name], number),
  );
  return {
    title: [...names, ...threadNames].join(', '),
    tool: claims.tool,
    written: claims.written,
    isNone: claims.content === 'none',
    isSmall: claims.content === 'small',
    isAll: claims.content === 'all',
    omitted: store.filtered ? countLeftOut(store) : 0,
    scriptHash: digestOf(toBytes(scriptText)),
    claimsJson: inScript(canonical(claims)),
    evidence,
    script: scriptText,
    runs,
    threads,
  };
}

// ---- the page: is it what its evidence says? ----

const isPlace = between(0, 10 ** 9);
/** An array of exactly one value for each check. */
const tupleOf =
  (...checks) =>
  (value) =>
    Array.isArray(value) &&
    value.length === checks.length &&
    checks.every((check, i) => check(value[i]));
const isBox = tupleOf(isPlace, isPlace, isPlace, isPlace, arrayOf(isPlace, 1));
const isEdge = tupleOf(isPlace, isPlace, anyOf(oneOf(null), tupleOf(isPlace, isPlace)));
/** A principal as a signers file has it: no blank, quote or backslash, and of bounded length. */
const isPrincipal = (value) =>
  isString(value) &&
  value.length <= longestPrincipal &&
  toLine(value) === value &&
  !/[\s"\\]/.test(value);
const longestPrincipal = 255;
const foundFields = (names) => ({
  headline: isString,
  rows: mapOf(oneOf(...names), oneOf('ok', 'fail', 'open')),
  codes: (value) =>
    isObject(value) &&
    Object.entries(value).every(
      ([row, codes]) =>
        names.includes(row) && arrayOf(oneOf(...(codesOfRows[row] ?? [])), 1)(codes),
    ),
  keys: arrayOf(
    shape({
      fingerprint: isFingerprint,
      principal: isPrincipal,
      standing: oneOf(
        'known to the writer of this page',
        'unknown to the writer of this page',
        'not trusted by the writer of this page',
      ),
    }),
  ),
});
const isRunClaims = shape({
  ...foundFields(rowNames),
  isReadable: isBoolean,
  boxes: arrayOf(isBox),
  edges: arrayOf(isEdge),
  width: isPlace,
  height: isPlace,
});
/** No other program writes pages; a longer text could be read as praise. */
const isTool = matches(/^git-handoff [0-9]{1,5}(?:\.[0-9]{1,5}){2}(?:-rc\.[0-9]{1,5})?$/);
const areClaims = shape({
  tool: isTool,
  written: isTime,
  content: oneOf('none', 'small', 'all'),
  runs: mapOf(isRunName, isRunClaims),
  threads: mapOf(isRunName, shape(foundFields(threadRows))),
});

const headlinePattern = new RegExp(
  '^(?:TAMPERED|NOT ANCHORED|UNTRUSTED|MISMATCH|CONFLICT|NOT SEALED|INCOMPLETE|' +
    'INTACT · (?:unknown key|tamper-detecting))(?: PARTIAL)?$',
);

const failuresOfThreads = [...threadRows, 'mismatch', 'incomplete'];

/** Returns true for a headline of a page. No evidence holds an anchor that cannot be rewritten. */
function isHeadline(text, kind) {
  const failure = /^NOT INTACT: (.*)$/s.exec(text)?.[1];
  if (kind === 'thread')
    return ['INTACT', 'NOT INTACT'].includes(text) || failuresOfThreads.includes(failure);
  return headlinePattern.test(text);
}

/** Returns what is wrong with the claims of a run or thread, as sentences. */
function faultsOfClaims(claims, report) {
  const faults = [];
  const say = (text) => faults.push(`${report.run ?? report.thread}: ${text}`);
  const isThread = report.kind === 'thread';
  for (const [row, { state: found }] of Object.entries(report.rows)) {
    const claimed = claims.rows[row];
    const codes = claims.codes[row];
    if (claimed === undefined) say(`the page says nothing about the row ${row}`);
    if (codes !== undefined && claimed !== 'fail')
      say(`the page has findings in the row ${row}, which does not fail`);
    // The writer may have had logs that are not in the evidence.
    if (row === 'anchor') continue;
    const words = { ok: 'holds, and it does not', fail: 'does not hold', open: 'was not checked' };
    const isOverstated = claimed === 'ok' && found === 'fail';
    // The writer may know keys that this verifier does not.
    const mayDiffer = row === 'signature' || row === 'lineage';
    const isUnderstated =
      (claimed === 'fail' && found !== 'fail') || (claimed === 'open' && found === 'ok');
    if (isOverstated || (isUnderstated && !mayDiffer))
      say(`the page says that the row ${row} ${words[claimed]}`);
    const isOther = sameSet(codes ?? []) !== sameSet(report.codes[row] ?? []);
    if (!isThread && !mayDiffer && claimed === 'fail' && found === 'fail' && isOther)
      say(`the page has other findings in the row ${row}`);
  }
  if (!isHeadline(claims.headline, report.kind)) say('the headline of the page is unknown');
  const doesFail = Object.values(claims.rows).includes('fail');
  const isIntact = claims.headline.startsWith('INTACT');
  if (isIntact && doesFail) say('the headline of the page is not what its rows say');
  if (isIntact && claims.headline.endsWith(' PARTIAL') !== isPartial(report.outcome)) {
    say('the headline of the page is not what the outcome says');
  }
  const signed = sameSet(report.signers.map(({ fingerprint }) => fingerprint));
  const named = claims.keys.map(({ fingerprint }) => fingerprint);
  if (sameSet(named) !== signed || !hasDistinct(named))
    say('the page names other keys than those that signed');
  if (claims.keys.some(({ standing, principal }) => standing.startsWith('unknown') && principal))
    say('the page names a principal of an unknown key');
  if (isThread) return faults;
  const doesHold = ['chain', 'plan'].every((row) => report.rows[row].state !== 'fail');
  if (claims.isReadable && !report.replay)
    say('the page shows items, and the entries cannot be read');
  if (!claims.isReadable && report.replay && doesHold) say('the page does not show the items');
  if (claims.isReadable && report.replay) faults.push(...faultsOfPicture(claims, report));
  return faults;
}

/** Returns the runs and threads that the entries of a page's runs and threads name. */
function namedSources(reports) {
  const named = new Set();
  for (const { links, kind } of reports) {
    for (const { entry } of links) {
      if (kind === 'thread') named.add(entry.run?.id).add(sourceOfThread(entry)?.thread);
      else {
        named.add(entry.reused?.run).add(entry.continues?.run);
        for (const name of Object.keys(entry.imports ?? {})) {
          const parts = name.split(':')[0].split('/');
          named.add(decodeSegment(parts.at(-2) ?? ''));
        }
      }
    }
  }
  return named;
}

/** Every box is wide enough for the longest label. `gap` is the largest space between two. */
const boxSize = { width: 200, height: 34, gap: 64, margin: 16 };

function faultsOfPicture({ boxes, edges, width, height }, report) {
  const faults = [];
  const say = (text) => faults.push(`${report.run}: ${text}`);
  const ids = [...report.replay.items.keys()];
  const boxOf = new Map();
  for (const [number, [x, y, w, h, members]] of boxes.entries()) {
    if (w !== boxSize.width || h !== boxSize.height) say('a box of the graph has another size');
    if (x + w > width || y + h > height) say('a box of the graph is outside the picture');
    for (const at of members) {
      if (at >= ids.length || boxOf.has(at))
        say('an item is in two boxes of the graph, or unknown');
      boxOf.set(at, number);
    }
  }
  if (boxOf.size !== ids.length) say('an item is in no box of the graph');
  const { margin, gap } = boxSize;
  const most = (size) => 2 * margin + boxes.length * (size + gap);
  if (width > most(boxSize.width) || height > most(boxSize.height))
    say('the picture is larger than its boxes');
  const sorted = [...boxes].sort((a, b) => a[0] - b[0]);
  for (const [i, [x, y, w, h]] of sorted.entries()) {
    for (let j = i + 1; j < sorted.length && sorted[j][0] < x + w; j++) {
      const [, otherY, , otherH] = sorted[j];
      if (otherY < y + h && y < otherY + otherH) say('two boxes of the graph overlap');
    }
  }
  const positions = new Map(ids.map((id, i) => [id, i]));
  const expected = new Set();
  for (const id of ids) {
    for (const dependency of report.replay.dependencies(id)) {
      const [from, to] = [boxOf.get(positions.get(dependency)), boxOf.get(positions.get(id))];
      if (from !== undefined && from !== to) expected.add(`${from} ${to}`);
    }
  }
  const drawn = edges.map(([from, to]) => `${from} ${to}`);
  if (!hasDistinct(drawn) || sameSet(drawn) !== sameSet(expected)) {
    say('the edges of the graph are not the dependencies');
  }
  const isOutside = ([, , bend]) => bend !== null && (bend[0] > width || bend[1] > height);
  if (edges.some(isOutside)) say('an edge of the graph is outside the picture');
  return faults;
}

/** Returns the text between two marks that a page has exactly once, or null. */
function textBetween(page, start, end) {
  const at = page.indexOf(start);
  if (at < 0 || page.indexOf(start, at + 1) >= 0) return null;
  const from = at + start.length;
  const to = page.indexOf(end, from);
  return to < 0 ? null : page.slice(from, to);
}

// The marks must not be in the script itself, which is a part of the page.
const openScript = '<' + 'script';
const pageMarks = {
  claims: openScript + ' type="application/json" id="claims">',
  evidence: openScript + ' type="application/octet-stream" id="evidence">',
  script: openScript + ' id="script">',
  end: '<' + '/script>',
};

/**
 * Recomputes everything that the parts of a page say. Returns {verdict, reasons, runs, filled}:
 * `filled` is the whole page as it must be, or null if it cannot be computed.
 */
async function recompute({ claimsText, evidenceText, scriptText, template }, options = {}) {
  const result = { verdict: 'tampered', reasons: [], runs: [], filled: null };
  try {
    const claims = readJson(toBytes(claimsText), { size: limits.file });
    ensure(areClaims(claims), 'the claims of the page are not in their form');
    const bytes = fromBase64(evidenceText);
    ensure(bytes, 'the evidence of the page is not base64');
    const store = await readBundle(bytes);
    const reports = await verifyNamed(store, claims, options, result);
    result.filled = tryToFill(template, store, reports, claims, scriptText, evidenceText);
    for (const { run, thread, failure, findings } of result.runs) {
      if (failure === null || failure === 'not-sealed') continue;
      result.reasons.push(`${run ?? thread}: ${findings[0]?.text ?? failure}`);
    }
    if (result.filled === null) result.reasons.push('the page cannot be computed from its claims');
    if (result.reasons.length === 0) result.verdict = verdictOf(result.runs);
  } catch (error) {
    result.reasons.push(
      error instanceof FormatError ? error.message : `an error in the script: ${error}`,
    );
  }
  return result;
}

/** Returns the page as it must be, or null if the claims do not fit what they are about. */
function tryToFill(template, store, reports, claims, scriptText, evidenceText) {
  try {
    return fill(template, pageFacts(store, reports, claims, scriptText, evidenceText));
  } catch (error) {
    if (error instanceof TypeError || error instanceof FormatError) return null;
    throw error;
  }
}

/** Verifies the runs and threads that the claims name, and compares them with the claims. */
async function verifyNamed(store, claims, options, result) {
  const reports = { runs: new Map(), threads: new Map() };
  for (const [kind, verify] of [
    ['runs', verifyRun],
    ['threads', verifyThread],
  ]) {
    for (const name of sortNames(Object.keys(claims[kind]))) {
      const report = await verify(store, name, options);
      reports[kind].set(name, report);
      result.runs.push(report);
      result.reasons.push(...faultsOfClaims(claims[kind][name], report));
      await settings.pause();
    }
  }
  ensure(result.runs.length > 0, 'the page shows no run and no thread');
  const sources = namedSources(result.runs);
  for (const [kind, inEvidence] of [
    ['runs', Handoff.runsIn(store)],
    ['threads', Handoff.threadsIn(store)],
  ]) {
    for (const name of inEvidence) {
      if (reports[kind].has(name) || sources.has(name)) continue;
      result.reasons.push(`${name} is in the evidence, and not on the page`);
    }
  }
  const isShown = (name) =>
    reports.runs.has(name) || reports.threads.has(name) || sources.has(name);
  result.reasons.push(...(await faultsOfEvidence(store, claims, isShown)));
  return reports;
}

const refOfChain = /^refs\/handoff\/(?:runs|threads|logs)\/[^/]+$/;

/**
 * Returns what is wrong with the head of the bundle: its filter, refs that name no chain, and logs
 * of other runs and threads than those that are shown.
 */
async function faultsOfEvidence(store, { content }, isShown) {
  const faults = [];
  const filter = content === 'none' ? 'blob:none' : 'blob:limit=32769';
  if (store.filter !== null && store.filter !== filter)
    faults.push(`the evidence has the filter ${store.filter} instead of ${filter}`);
  for (const ref of [...store.refs.keys(), ...store.otherRefs])
    if (!refOfChain.test(ref)) faults.push(`${ref} does not belong in the evidence`);
  for (const { ref, hasOwnName, isUnread, sound } of await logsOf(store)) {
    if (!hasOwnName) faults.push(`${ref} in the evidence is not the log of its name`);
    else if (!isUnread && !sound.some(({ entry }) => isShown(entry.run ?? entry.thread)))
      faults.push(`${ref} in the evidence is about nothing on the page`);
  }
  return faults;
}

function verdictOf(runs) {
  const isGood = ({ failure, outcome }) => failure === null && !isPartial(outcome);
  return runs.every(isGood) ? 'intact' : 'partial';
}

/** Says where two texts differ first. */
function firstDifference(expected, found) {
  let at = 0;
  while (at < expected.length && expected[at] === found[at]) at++;
  const line = expected.slice(0, at).split('\n').length;
  const around = (text) => JSON.stringify(text.slice(Math.max(at - 20, 0), at + 40));
  return `line ${line}: it should be ${around(expected)} and is ${around(found)}`;
}

/** Returns the three parts of a page, each null unless the page has exactly one. */
function partsOfPage(page) {
  const part = (name) => textBetween(page, pageMarks[name], pageMarks.end);
  return { claimsText: part('claims'), evidenceText: part('evidence'), scriptText: part('script') };
}

/** Compares a page with the result of `recompute`. Returns {verdict, reasons, runs}. */
function comparePage(page, { verdict, reasons, runs, filled }) {
  if (filled === null || filled === page) return { verdict, reasons, runs };
  const place = firstDifference(filled, page);
  const difference = `the page does not say what its evidence says, ${place}`;
  return { verdict: 'tampered', reasons: [...reasons, difference], runs };
}

/** Checks the text of a page. Returns {verdict, reasons, runs}. */
async function checkPage(page, { template = Handoff.template } = {}) {
  const parts = partsOfPage(page);
  if (Object.values(parts).includes(null)) {
    const reason = 'the page has not exactly one part for claims, evidence and script';
    return { verdict: 'tampered', reasons: [reason], runs: [] };
  }
  return comparePage(page, await recompute({ ...parts, template }));
}

// ---- the page: in a browser ----

const verdictWords = {
  intact: 'recomputed here: everything holds',
  partial: 'recomputed here: the evidence holds, and not everything is done and green',
  tampered: 'recomputed here: TAMPERED, this page does not hold',
};

/** Says in words what a verdict means for the runs. */
function sentenceOf({ verdict, runs, filled }) {
  const words = [verdictWords[verdict]];
  if (verdict === 'tampered' && filled !== null) {
    words.push('what follows is what the evidence says, and not what the file said');
  }
  if (verdict === 'partial' && runs.some(({ failure }) => failure === 'not-sealed')) {
    words.push('a run is not sealed yet');
  }
  if (verdict !== 'tampered') {
    if (runs.some(({ rows }) => rows.content.state === 'open'))
      words.push('contents that were left out were not checked');
    if (runs.some(({ signers }) => signers.some(({ trusted }) => !trusted)))
      words.push('compare the keys below');
  }
  return words.join('; ');
}

function wordOfRow(row, { state }, codes = []) {
  // This script knows no keys, so that signatures that match leave the row open.
  const found = state === 'open' && row === 'signature' ? 'holds; compare the keys' : null;
  return `recomputed here: ${found ?? wordOfClaim(state, codes.join(', '))}`;
}

/**
 * The members of a page's document, by name. An element can take the place of a document's own
 * member by its `name` or `id`, so they come from the prototypes.
 */
let members;

function readMembers({ Document, Element, EventTarget, Node }) {
  const method = ({ prototype }, name) => {
    const own = prototype[name];
    return (target, ...words) => Reflect.apply(own, target, words);
  };
  const getter = ({ prototype }, name) => {
    const { get } = Object.getOwnPropertyDescriptor(prototype, name);
    return (target) => Reflect.apply(get, target, []);
  };
  return {
    addEventListener: method(EventTarget, 'addEventListener'),
    childNodes: getter(Node, 'childNodes'),
    createElement: method(Document, 'createElement'),
    doctype: getter(Document, 'doctype'),
    documentElement: getter(Document, 'documentElement'),
    getElementById: method(Document, 'getElementById'),
    querySelectorAll: method(Document, 'querySelectorAll'),
    readyState: getter(Document, 'readyState'),
    replaceChildren: method(Element, 'replaceChildren'),
  };
}

/** Returns a copy of a page's root with every `details` closed: a browser opens them by itself. */
function copyOfRoot(page) {
  const root = members.documentElement(page).cloneNode(true);
  for (const details of root.querySelectorAll('details[open]')) details.removeAttribute('open');
  return root;
}

/** Returns true if a document has nothing but its root and the doctype of HTML. */
function isPlainDocument(page) {
  const [doctype, childNodes] = [members.doctype(page), members.childNodes(page)];
  const isOfHtml = doctype?.name === 'html' && doctype.publicId === '' && doctype.systemId === '';
  return isOfHtml && childNodes.length === 2;
}

const parsePage = (text) => new globalThis.DOMParser().parseFromString(text, 'text/html');

/** Checks the page that this script is in, and shows the verdict. */
function openPage() {
  const page = globalThis.document;
  if (!page || typeof BigInt === 'undefined' || typeof TextDecoder === 'undefined') return;
  members = readMembers(globalThis);
  settings.pause = () => new Promise((resolve) => globalThis.setTimeout(resolve, 0));
  const start = () => {
    checkDocument(page)
      .catch((error) =>
        showResult(page, { verdict: 'tampered', reasons: [String(error)], runs: [], filled: null }),
      )
      .catch(() =>
        members.replaceChildren(members.documentElement(page), 'This page could not be checked.'),
      );
  };
  if (members.readyState(page) === 'loading')
    members.addEventListener(page, 'DOMContentLoaded', start);
  else start();
}

async function checkDocument(page) {
  const shown = { root: copyOfRoot(page), isPlain: isPlainDocument(page) };
  const parts = {};
  for (const id of ['claims', 'evidence', 'script']) {
    const found = members.querySelectorAll(page, `[id="${id}"]`);
    ensure(found.length === 1, `the page has not exactly one part "${id}"`);
    parts[`${id}Text`] = found[0].textContent;
  }
  const result = await recompute({ ...parts, template: Handoff.template });
  const fresh = result.filled === null ? null : members.documentElement(parsePage(result.filled));
  if (fresh) compareShown(shown, fresh, result);
  showResult(page, result, fresh);
  members.getElementById(page, 'compare').addEventListener('click', () => compareKeys(page, parts));
}

/** Compares the page as it was loaded with the root of the recomputed one. */
function compareShown({ root, isPlain }, fresh, result) {
  const fail = (difference) => {
    result.verdict = 'tampered';
    result.reasons.push(`the page does not say what its evidence says${difference}`);
  };
  if (!isPlain) fail(': there are other nodes around the page');
  if (root.isEqualNode(fresh)) return;
  // A parser may cut long texts at any place, which only the text of the page does not show.
  const [expected, found] = [fresh.outerHTML, root.outerHTML];
  if (expected === found) return;
  const main = (text) => text.slice(text.indexOf('<main>'), text.indexOf('</main>'));
  const isOutside = main(expected) === main(found);
  const cause = isOutside
    ? ' (outside the report itself: a browser extension may be the cause)'
    : '';
  fail(`${cause}, ${firstDifference(expected, found)}`);
}

/**
 * Puts the recomputed page in place of the one that was loaded, and shows the verdict in it. The
 * nodes of a page do not show everything: a shadow root hides what is compared here.
 */
function showResult(page, result, recomputed = null) {
  const title = 'A page that does not hold';
  const fresh = recomputed ?? members.documentElement(parsePage(fill(Handoff.template, { title })));
  const root = members.documentElement(page);
  // The reader may have opened some while this was recomputed.
  const opened = Array.from(members.querySelectorAll(page, 'details'), (details) => details.open);
  for (const { name } of [...root.attributes]) root.removeAttribute(name);
  for (const { name, value } of fresh.attributes) root.setAttribute(name, value);
  root.replaceChildren(...fresh.childNodes);
  members
    .querySelectorAll(page, 'details')
    .forEach((details, at) => (details.open = opened[at] ?? false));
  showVerdict(page, result);
  revealTarget(page);
}

/** Shows again what the address of the page names. */
function revealTarget(page) {
  const name = page.location?.hash.slice(1);
  const target = name ? members.getElementById(page, name) : null;
  for (let node = target; node; node = node.parentElement) {
    if (node.localName === 'details') node.open = true;
  }
  target?.scrollIntoView();
}

function showVerdict(page, result) {
  members.documentElement(page).setAttribute('data-verdict', result.verdict);
  members.getElementById(page, 'verdict').textContent = sentenceOf(result);
  const notes = members.getElementById(page, 'notes');
  for (const reason of result.reasons.slice(0, 50)) {
    const item = members.createElement(page, 'li');
    item.textContent = reason.replace(unprintable, '\ufffd');
    notes.append(item);
  }
  const numbers = { run: 0, thread: 0 };
  for (const report of result.runs) {
    const anchor = `${report.kind === 'run' ? 'r' : 't'}${numbers[report.kind]++}`;
    for (const [row, found] of Object.entries(report.rows)) {
      const cell = members.getElementById(page, `${anchor}-${row}`);
      if (cell) cell.textContent = wordOfRow(row, found, report.codes[row]);
    }
  }
}

/** Reads pasted keys: fingerprints, public keys, or lines of an allowed-signers file. */
function readPastedKeys(text) {
  const signers = [];
  const fingerprints = new Set();
  for (const line of readLines(text)) {
    const bare = /^ssh-ed25519 +(\S+)/.exec(line);
    const named = line.split(/\s+/).find(isFingerprint);
    if (named && !/ssh-ed25519/.test(line)) {
      fingerprints.add(named);
      continue;
    }
    const signer = bare ? `pasted ssh-ed25519 ${bare[1]}` : line;
    try {
      readSignerLine(signer);
    } catch {
      throw new FormatError(
        `"${line}" is neither a fingerprint, a public key nor a line of an allowed-signers file`,
      );
    }
    signers.push(signer);
  }
  return { signers: signers.join('\n'), fingerprints };
}

/** Compares the pasted keys with those that signed, and verifies again with them. */
async function compareKeys(page, { evidenceText }) {
  const answer = members.getElementById(page, 'compared');
  try {
    const pasted = readPastedKeys(members.getElementById(page, 'known').value);
    const known = new Set([...new Signers(pasted).lines.keys(), ...pasted.fingerprints]);
    ensure(known.size > 0, 'paste a fingerprint, a public key or an allowed-signers file');
    const store = await readBundle(fromBase64(evidenceText));
    const options = pasted.fingerprints.size > 0 ? {} : { signers: pasted.signers };
    const reports = await verifyAll(store, options);
    const used = reports.flatMap(({ signers }) => signers).map(({ fingerprint }) => fingerprint);
    const unknown = new Set(used.filter((key) => !known.has(key)));
    const isRefused = reports.some(({ rows }) => rows.signature.state === 'fail');
    if (unknown.size > 0) answer.textContent = `not among these keys: ${[...unknown].join(', ')}`;
    else if (isRefused)
      answer.textContent = 'all keys are among these, and a signature does not hold with them';
    else answer.textContent = 'every key that signed is among these';
  } catch (error) {
    answer.textContent = String(error.message ?? error);
  }
}

const Handoff = {
  readBundle,
  verifyRun,
  verifyProof,
  verifyThread,
  runsIn: (store) => namesIn(store, 'runs'),
  threadsIn: (store) => namesIn(store, 'threads'),
  fill,
  pageFacts,
  checkPage,
  partsOfPage,
  recompute,
  comparePage,
  openPage,
  /** The template of the page. Its script sets it. */
  template: null,
  FormatError,
  settings,
  isPartial,
  readPatch,
  readPathspec,
  toLine,
  codesOfRows,
};

// ---- node only ----

import { readFileSync, realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

export default Handoff;

const usage = `Usage: node verify.mjs FILE [NAME…] [options]

Verifies the runs and threads in a bundle, a proof, or the evidence in an HTML report.

  --signers FILE    Trust exactly the keys of this allowed-signers file
  --revoked FILE    Distrust the keys in this file
  --signer KEY      Require that this key made every signature: a fingerprint or a principal
  --plan FILE       Require that the run has exactly this plan
  --base COMMIT     Require that the run starts from this commit
  --require WORD    \`protected\`: require that all protected files were recomputed
  --json            Print one JSON object for each run and thread

Exits with 0 if all is intact, 4 if it is and not every item is done and green, 3 if it is not
intact, 2 on wrong usage, and 1 if a file cannot be read.`;

class UsageError extends Error {}

function readArguments(words) {
  const names = ['signers', 'revoked', 'signer', 'plan', 'base', 'require'];
  const options = Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
  options.json = { type: 'boolean', default: false };
  const { values, positionals } = parseArgs({ args: words, options, allowPositionals: true });
  const { json, ...given } = values;
  const [file, ...chosen] = positionals;
  if (file === undefined) throw new UsageError('name a file');
  if (!['protected', undefined].includes(given.require))
    throw new UsageError('--require takes `protected`');
  for (const name of ['signers', 'revoked'])
    if (name in given) given[name] = readFileSync(given[name], 'utf8');
  if ('plan' in given) given.plan = new Uint8Array(readFileSync(given.plan));
  return { file, names: chosen, options: given, json };
}

const symbols = { ok: '✓', open: '─', fail: '✗' };

function textOfReport(report) {
  const partial = report.failure === null && isPartial(report.outcome) ? ' PARTIAL' : '';
  const state = report.failure ? 'fail' : report.headline.includes('unknown') ? 'open' : 'ok';
  const name = report.thread ?? report.run;
  const lines = [`${report.kind} ${name}  ${symbols[state]} ${report.headline}${partial}`];
  for (const [row, { state: each, detail }] of Object.entries(report.rows)) {
    lines.push(`${symbols[each]} ${row.padEnd(10)} ${detail}`);
  }
  if (report.outcome) {
    lines.push(
      `${isPartial(report.outcome) ? '✗' : '✓'} outcome    ${textOfOutcome(report.outcome)}`,
    );
  }
  for (const { item, decision, by, signed, onWordOf, roleShown = true } of report.decisions) {
    const unshown = roleShown ? '' : '; that this key may decide is not shown';
    const word = signed ? unshown : `, on the word of ${onWordOf}`;
    const mark = signed && roleShown ? symbols.ok : symbols.open;
    lines.push(`${mark} decided    ${item} ${decision} by ${by}${word}`);
  }
  const takeovers = report.takeovers ?? [];
  if (takeovers.length > 0) {
    lines.push(
      '─ take-over  verify holds holder, key, take-over and taker; ' +
        'that a driver was silent cannot be proven',
    );
  }
  for (const takeover of takeovers) {
    const by = takeover.key ?? 'no valid key';
    lines.push(`─ take-over  ${textOfTakeover(takeover)}, signed by ${by}`);
  }
  if (report.failure === 'required')
    lines.push(
      `✗ required   protected was required: protected files of ` +
        textOfNotRecomputed(report.notRecomputed),
    );
  return lines.map(toLine).join('\n');
}

function jsonOfReport({ replay, proof, submitted, links, headTree, ...shown }) {
  return toPrintableJson({ ...shown, intact: shown.failure === null });
}

async function verifyBundleFile(bytes, names, options) {
  const store = await readBundle(bytes);
  const all = [...Handoff.runsIn(store), ...Handoff.threadsIn(store)];
  for (const name of names)
    ensure(all.includes(name), `there is no run or thread "${name}" in the bundle`);
  const reports = await verifyAll(store, options, names.length === 0 ? all : names);
  ensure(reports.length > 0, 'there is no run or thread in the bundle');
  return reports;
}

const nodeOnly = '// ---- node only ' + '----';

/** Returns the script of every page: this file up to the line "node only", and the template. */
function scriptOf(template) {
  const own = readFileSync(fileURLToPath(import.meta.url), 'utf8');
  const json = inScript(JSON.stringify(template));
  return `\n${own.split(nodeOnly)[0]}\nHandoff.template = ${json};\nHandoff.openPage();\n`;
}

/**
 * Checks a page with the script and the template beside this file. The page is judged without
 * signers, as in a browser; its runs and threads are reported with them.
 */
export async function checkPageFile(bytes, options = {}) {
  const template = readFileSync(new URL('page.html', import.meta.url), 'utf8');
  const page = tryToRead(() => toText(bytes));
  if (page === undefined)
    return { verdict: 'tampered', reasons: ['the page is not UTF-8'], runs: [] };
  const result = await checkPage(page, { template });
  if (textBetween(page, pageMarks.script, pageMarks.end) !== scriptOf(template)) {
    result.verdict = 'tampered';
    result.reasons.push('the script of the page is not the one of this program');
  }
  if (Object.keys(options).length > 0 && result.runs.length > 0) {
    const store = await readBundle(fromBase64(partsOfPage(page).evidenceText));
    result.runs = await Promise.all(
      result.runs.map(({ run, thread }) =>
        run === undefined ? verifyThread(store, thread, options) : verifyRun(store, run, options),
      ),
    );
  }
  return result;
}

function textOfPage({ verdict, reasons, runs }) {
  const marks = { intact: symbols.ok, partial: symbols.open, tampered: symbols.fail };
  const lines = [
    `page  ${marks[verdict]} ${verdict.toUpperCase()}`,
    ...reasons.map((reason) => `  ${reason}`),
  ];
  return [lines.map(toLine).join('\n'), ...runs.map(textOfReport)].join('\n\n');
}

function jsonOfPage({ verdict, reasons, runs }) {
  return toPrintableJson({
    kind: 'page',
    verdict,
    reasons,
    runs: runs.map((run) => JSON.parse(jsonOfReport(run))),
  });
}

async function mainOfPage(bytes, options, json) {
  const result = await checkPageFile(bytes, options);
  console.log(json ? jsonOfPage(result) : textOfPage(result));
  if (result.verdict === 'tampered' || result.runs.some(({ failure }) => failure !== null))
    return 3;
  return result.verdict === 'partial' ? 4 : 0;
}

async function main(words) {
  const { file, names, options, json } = readArguments(words);
  const bytes = new Uint8Array(readFileSync(file));
  const start = toLatin(bytes.subarray(0, 64)).trimStart();
  let reports;
  if (start.startsWith('<') || file.endsWith('.html')) return mainOfPage(bytes, options, json);
  if (start.startsWith('{')) reports = [await verifyProof(bytes, options)];
  else reports = await verifyBundleFile(bytes, names, options);
  console.log(reports.map(json ? jsonOfReport : textOfReport).join(json ? '\n' : '\n\n'));
  return [3, 4].find((code) => reports.some((report) => report.exit === code)) ?? 0;
}

const isMain = process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url);
if (isMain) {
  try {
    process.exitCode = await main(process.argv.slice(2));
  } catch (error) {
    if (error instanceof UsageError || error.code?.startsWith('ERR_PARSE_ARGS')) {
      console.error(`error: ${toLine(error.message)}\n\n${usage}`);
      process.exitCode = 2;
    } else if (error instanceof FormatError || error.code !== undefined) {
      console.error(`error: ${toLine(error.message)}`);
      process.exitCode = 1;
    } else {
      throw error;
    }
  }
}
