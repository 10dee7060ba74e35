// Words for the values that a page shows.

import { sortNames } from '../bytes.mjs';
import { canonical, isObject, maxInteger } from '../json.mjs';
import { isCount, isInteger, isString } from '../values.mjs';
import { driverClaim, isEndRed } from '../entries/subject.mjs';
import { isShown } from './template.mjs';

const longestFact = 2000;

/** Cuts a text to a number of characters. */
export function cutTo(text, most) {
  if (text.length <= most) return text;
  const characters = [...text];
  return characters.length <= most ? text : characters.slice(0, most).join('') + '…';
}

/** A string as it is, nothing for a missing or empty value, and others as canonical JSON. */
export function plainWord(value) {
  if (isString(value)) return value;
  const isEmpty = (isObject(value) || Array.isArray(value)) && Object.keys(value).length === 0;
  return isEmpty || !isShown(value) ? '' : canonical(value);
}

export const listWord = (value) => (Array.isArray(value) ? value.filter(isString).join(', ') : '');

export const rolesWord = (roles) =>
  entriesInOrder(roles)
    .map(([key, given]) => `${key}: ${listWord(given)}`)
    .join('; ');

export function durationWord(ms) {
  const whole = (number, unit) => Math.floor(number / unit);
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60000) return `${whole(ms, 1000)}.${whole(ms % 1000, 100)} s`;
  if (ms < 3600000) return `${whole(ms, 60000)} min ${whole(ms % 60000, 1000)} s`;
  return `${whole(ms, 3600000)} h ${whole(ms % 3600000, 60000)} min`;
}

export function bytesWord(value) {
  return isString(value?.sha256) && isCount(value?.size)
    ? `${value.sha256}, ${value.size} bytes`
    : '';
}

export function exitWord(exit) {
  if (isInteger(exit?.code, -maxInteger)) return `exit ${exit.code}`;
  return isInteger(exit?.signal, -maxInteger) ? `signal ${exit.signal}` : '';
}

export const joinWords = (words) => words.filter((word) => word !== '').join(', ');

/** The driver that dispatches an attempt, or from which it was taken; empty for others. */
function driverWord(entry) {
  const { kind, driver, taker, because } = entry;
  if (driver === undefined) return '';
  const id = driver.slice(0, 8);
  if (because !== undefined) {
    return `taken from ${id}${taker === undefined ? '' : ` by ${taker.slice(0, 8)}`}: ${because}`;
  }
  if (kind !== 'item.fired') return '';
  const [host, job] = ['host', 'job'].map((name) => driverClaim(entry, name));
  const place = host === undefined ? '' : ` on ${host}`;
  return `driver ${id}${place}${job === undefined ? '' : `, job ${job}`}`;
}

/** The result that an entry records, such as `done, red, exit 0, 51 ms`. */
export function noteOf(entry) {
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
export function protectionWord(entry) {
  const count = entry.protected?.length ?? 0;
  const files = count === 1 ? 'file' : 'files';
  if (entry.protectedJudged) return `! ${count} protected ${files} changed, judged as in the base`;
  const isChecked = entry.status === 'done' && entry.verify?.by === 'command';
  const isBare = !('reference' in entry) && !('reused' in entry);
  return isChecked && isBare ? 'check: nothing protected' : '';
}

/** Says that a check passed in the worktree that the worker left. */
export function checkPlaceWord(manifest, entry) {
  const { passed, by } = entry.verify ?? {};
  const isPassed = entry.status === 'done' && passed === true && by === 'command';
  const isInWorktree = manifest !== undefined && !('verifyIn' in manifest);
  return isPassed && isInWorktree ? "check in the worker's worktree" : '';
}

/** Returns true if an entry ends an item as red, whatever people approved later. */
export function isEntryRed(entry) {
  const isEnd = entry.kind === 'item.reconciled' || entry.kind === 'item.decided';
  return isEnd && entry.status === 'done' && isEndRed(entry);
}

/** Returns facts from pairs of name and value. Empty values are left out. */
export const factsOf = (pairs) =>
  pairs
    .map(([name, value]) => ({ name, value: cutTo(plainWord(value), longestFact) }))
    .filter(({ value }) => value !== '');

export const entriesInOrder = (object) =>
  sortNames(Object.keys(object ?? {})).map((key) => [key, object[key]]);

/** Returns what the writer of a page says of a row. */
export function wordOfClaim(state, codes) {
  if (state === 'ok') return 'holds';
  if (state !== 'fail') return 'not checked';
  if (codes === 'not-sealed') return 'not sealed yet';
  return codes === '' ? 'does not hold' : `does not hold: ${codes}`;
}

export function claimFacts(claims, anchor, names) {
  const rows = names.map((name) => {
    const codes = (claims.codes[name] ?? []).join(', ');
    const found = wordOfClaim(claims.rows[name], codes);
    return { name, place: `${anchor}-${name}`, found, [`is_${name}`]: true };
  });
  return { headline: claims.headline, rows, keys: claims.keys };
}
