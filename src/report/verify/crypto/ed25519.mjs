// Ed25519 signatures: checked by `crypto.subtle` where it can, else in plain JavaScript.

import { concatBytes, equalBytes, fromHex, toHex } from '../bytes.mjs';
import { sha512 } from './hashes.mjs';

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
export const settings = { useSubtle: true, pause: async () => {} };
const importedKeys = new Map();

/** Verifies an ed25519 signature as strictly as section 3 requires. */
export async function verifyEd25519(key, signature, message) {
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
