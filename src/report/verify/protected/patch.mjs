// Reads the paths, modes and objects that a patch changes.

import { ensure, FormatError, toLatin } from '../bytes.mjs';
import { isObjectId } from '../values.mjs';

/** Undoes git's quoting of a path. Paths are strings with one byte in each character. */
export function unquotePath(text) {
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
export function readPatch(bytes) {
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
