// Reads pathspecs, and selects paths with them as git does.

import { ensure, toBytes, toLatin } from '../bytes.mjs';
import { isString } from '../values.mjs';
import { areRulesBounded, isPathspec, pathspecsOf } from '../plan/items.mjs';

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
export function readProtectRules(rules) {
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
export function readPathspec(pathspec) {
  const text = toLatin(toBytes(pathspec));
  const long = /^:\(([^)]*)\)(.*)$/s.exec(text);
  const short = /^:(?!\()(\/*)(?![/!"#%&',;<=>@_`~-]):?(.*)$/s.exec(text);
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
