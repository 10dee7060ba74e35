// Compares the claims of a page with what its evidence says.

import { isObject, sameSet } from '../json.mjs';
import {
  anyOf,
  arrayOf,
  between,
  hasDistinct,
  isBoolean,
  isFingerprint,
  isString,
  isTime,
  mapOf,
  matches,
  oneOf,
  shape,
} from '../values.mjs';
import { isRunName } from '../names.mjs';
import { codesOfRow, isPartial, rowNames } from '../findings.mjs';
import { threadRows } from '../thread/chain.mjs';
import { toLine } from './printable.mjs';
import { faultsOfPicture } from './picture.mjs';

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
        names.includes(row) && arrayOf(oneOf(...codesOfRow(row)), 1)(codes),
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
export const areClaims = shape({
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
export function faultsOfClaims(claims, report) {
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
  if (claims.isReadable && !report.replay)
    say('the page shows items, and the entries cannot be read');
  if (!claims.isReadable && report.replay) say('the page does not show the items');
  if (claims.isReadable && report.replay) faults.push(...faultsOfPicture(claims, report));
  return faults;
}
