// The status that an entry gives an item, whether that is red, and the subject of its commit.

import { byteLength, sortNames } from '../bytes.mjs';

export const authorOf = (actor) => actor.replace(/[\p{Cc}<>]/gu, '_');

const statusInSubject = {
  'item.fired': 'running',
  'item.retried': 'pending',
  'item.requeued': 'pending',
  'item.skipped': 'skipped',
  'item.cancelled': 'cancelled',
};

/** Returns the status of an item after an entry about it. */
export const statusOf = (entry) => statusInSubject[entry.kind] ?? entry.status;

export function subjectOf(entry) {
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
  return `${kind} ${entry.thread ?? entry.archive ?? entry.run}`;
}

/** Returns true if the end of an item makes it red, without any approval (section 11). */
export function isEndRed(end) {
  if (end.kind === 'item.decided') return end.decision === 'rejected';
  return end.verify?.passed === false || changesProtected(end);
}

/** Returns true if an item changes protected files, unallowed and not judged by a check. */
export function changesProtected(end) {
  return 'protected' in end && !end.protectedAllowed && !end.protectedJudged;
}

/** A driver's claim about itself in a dispatch, `host` or `job`, if it is short enough to show. */
export function driverClaim({ claims = {} }, name) {
  const text = claims[name];
  return typeof text === 'string' && byteLength(text) <= 255 ? text : undefined;
}
