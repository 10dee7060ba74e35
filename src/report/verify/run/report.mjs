// The report of a run.

import { Signers } from '../chain/signers.mjs';
import { driverClaim } from '../entries/subject.mjs';
import { headlineOf, judgeKeys } from '../findings.mjs';
import { decisionOf, linkOf, reportOf } from '../report.mjs';
import { RunVerifier } from './verifier.mjs';

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
    if (entry.kind === 'item.fired') hosts.set(entry.item, driverClaim(entry, 'host'));
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
export function textOfTakeover({ item, attempt, driver, host, taker, because }) {
  const place = host === undefined ? '' : ` (${host})`;
  const by = taker === undefined ? '' : ` by ${taker.slice(0, 8)}`;
  const from = driver.slice(0, 8) + place;
  return `attempt ${attempt} of ${item} was taken from ${from}${by}: ${because}`;
}

/** Verifies a run of a store and returns the report. */
export async function verifyRun(store, run, options = {}) {
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
    // After a finding in the chain or the plan, later entries have no defined meaning.
    replay: verifier.isUnread || findings.failsBy('plan') ? null : verifier.replay,
    links: commits.map(linkOf),
  };
}
