// Ids of schemas, their versions, and the versions that a need accepts.

import { byteLength } from './bytes.mjs';
import { compareBy } from './values.mjs';

const versionNumber = '(0|[1-9][0-9]*)';
const versionPattern = new RegExp(
  `^${versionNumber}\\.${versionNumber}\\.${versionNumber}` +
    '(?:-([0-9A-Za-z.-]+))?(?:\\+([0-9A-Za-z.-]+))?$',
);
const maxVersionNumber = 2n ** 64n - 1n;

const areIdentifiers = (text, numbersMayHaveZeros) =>
  text.split('.').every((id) => id !== '' && (numbersMayHaveZeros || !/^0[0-9]+$/.test(id)));

/** Reads a semantic version, or returns null. */
export function readVersion(text) {
  const match = typeof text === 'string' ? versionPattern.exec(text) : null;
  if (!match) return null;
  const [major, minor, patch] = match.slice(1, 4).map(BigInt);
  if ([major, minor, patch].some((number) => number > maxVersionNumber)) return null;
  if (match[4] !== undefined && !areIdentifiers(match[4], false)) return null;
  if (match[5] !== undefined && !areIdentifiers(match[5], true)) return null;
  return { major, minor, patch, pre: match[4] ?? '' };
}

export const isSchemaId = (value) =>
  typeof value === 'string' &&
  value !== '' &&
  byteLength(value) <= 128 &&
  !/[@\p{White_Space}\p{Cc}]/u.test(value);

/** Reads `id@version` and completes the version with zeros, or returns null. */
export function readSchema(text) {
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
export function readWantedSchema(text) {
  if (typeof text !== 'string') return null;
  const at = text.indexOf('@');
  const id = at < 0 ? text : text.slice(0, at);
  const comparators = at < 0 ? null : readRequirement(text.slice(at + 1));
  if (!isSchemaId(id) || (at >= 0 && !comparators)) return null;
  return { id, comparators };
}

/** Returns true if a document of the schema {id, version} satisfies the wanted schema. */
export function satisfiesSchema(schema, wantedText) {
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
