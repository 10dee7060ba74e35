// Reads JSON strictly, and writes it in its canonical form (sections 1 and 14).

import { byteLength, ensure, sortNames, toBytes, toText, tryToRead } from './bytes.mjs';
import { limits } from './limits.mjs';
import { digestOf } from './crypto/hashes.mjs';

export const maxInteger = Number.MAX_SAFE_INTEGER;

/** A number that is not written as an integer in digits alone, or that is compared exactly. */
export class WrittenNumber {
  constructor(text) {
    this.text = text;
  }
}

export const isObject = (value) =>
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
export function readJson(bytes, { size, exactNumbers = false, containers, commas } = {}) {
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
export const tryJson = (bytes, options) => tryToRead(() => readJson(bytes, options));

/** Returns the canonical JSON (RFC 8785) of a value. */
export function canonical(value) {
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

/**
 * Returns the text of an entry: the canonical form with each key and each element on a line of its
 * own, indented by one space a level (section 3).
 */
export function entryText(value, lineStart = '\n') {
  const isArray = Array.isArray(value);
  if (!isArray && !isObject(value)) return canonical(value);
  const inner = `${lineStart} `;
  const withText = (key) => `${JSON.stringify(key)}: ${entryText(value[key], inner)}`;
  const parts = isArray
    ? value.map((element) => entryText(element, inner))
    : Object.keys(value).sort().map(withText);
  const [open, close] = isArray ? '[]' : '{}';
  return open + (parts.length ? inner + parts.join(`,${inner}`) + lineStart : '') + close;
}

/** Returns an object of those of the fields that a value has. */
export const pickFields = (value, fields) =>
  Object.fromEntries(
    fields.filter((field) => field in value).map((field) => [field, value[field]]),
  );

export const canonicalBytes = (value) => toBytes(canonical(value));
export const canonicalDigest = (value) => digestOf(canonicalBytes(value));

/** Returns true if both values are absent, or both are the same JSON. */
export function sameJson(a, b) {
  if (a === undefined || b === undefined) return a === b;
  return canonical(a) === canonical(b);
}

/** Returns a text that two arrays share exactly if they have the same members. */
export const sameSet = (names) => canonical(sortNames(new Set(names)));
