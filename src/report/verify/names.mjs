// Names, paths and their segments in refs and trees (section 1).

import { byteLength, toBytes, toHex } from './bytes.mjs';

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
export function encodeSegment(name) {
  return encodeURIComponent(name)
    .replace(/[!'()*~]/g, (character) => '%' + toHex(toBytes(character)).toUpperCase())
    .replace(/^\.|\.$|\.(?=lock$)/gi, '%2E')
    .replaceAll('..', '.%2E');
}

export const encodePath = (path) => path.split('/').map(encodeSegment).join('/');

/** Decodes a segment, or returns null unless it is exactly the encoding of the decoded name. */
export function decodeSegment(segment) {
  try {
    const name = decodeURIComponent(segment);
    return segment !== '' && encodeSegment(name) === segment ? name : null;
  } catch {
    return null;
  }
}

export const isItemName = (value) =>
  isName(value) &&
  byteLength(value) <= 128 &&
  !value.startsWith('@') &&
  encodeSegment(value).length <= 200;

export const isRunName = (value) => isItemName(value) && !value.includes('/') && !value.startsWith('-');

/** Returns true if git refuses the segment on some system, because it means `.git` there. */
function isSpellingOfGit(segment) {
  const visible = segment.replace(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, '');
  const name = visible.split(':')[0].replace(/[. ]+$/, '');
  return /^(?:\.git|git~1)$/.test(name.replace(/[A-Z]/g, (letter) => letter.toLowerCase()));
}

export function isPath(value) {
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

export const isDocumentName = (value) => isPath(value) && byteLength(value) <= 128;

export const foldCase = (text) => text.toLowerCase().normalize('NFC');

/** Returns the folders above a path. */
function foldersAbove(path) {
  const segments = path.split('/');
  return segments.slice(1).map((_, i) => segments.slice(0, i + 1).join('/'));
}

/** Returns true if two of the paths clash. */
export function haveClash(paths) {
  const folded = [...paths].map(foldCase);
  const all = new Set(folded);
  return (
    all.size < folded.length || folded.some((path) => foldersAbove(path).some((f) => all.has(f)))
  );
}
