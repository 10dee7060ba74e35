// Rows `root` and `anchor` of a run: its seal, and the logs that name it.

import { sameJson } from '../json.mjs';
import { hashText } from '../entries/commit.mjs';
import { merkleRoot } from '../entries/merkle.mjs';
import { isSealAdmission, rolesOfEntryZero } from '../chain/roles.mjs';
import { logsOf } from '../chain/log.mjs';
import { counted } from '../findings.mjs';

export function checkRoot(verifier) {
  const { findings, commits } = verifier;
  const at = commits.findIndex(({ entry }) => entry.kind === 'run.sealed');
  const before = at < 0 ? commits : commits.slice(0, at);
  verifier.root = hashText(merkleRoot(before.map(({ leaf }) => leaf)));
  if (at < 0) {
    const soFar = counted(before.length, 'entry', 'entries');
    findings.add('root', 'not-sealed', `not sealed; ${verifier.root} over ${soFar} so far`);
    return;
  }
  const { entry, hash } = commits[at];
  verifier.seal = { root: verifier.root, last: hash, lastSeq: at };
  if (entry.root !== verifier.root)
    verifier.report('root', 'seal-root', commits[at], 'the seal has another root');
  findings.details.root = `merkle ${verifier.root.slice(7, 15)} = sealed root`;
}

/** Returns the keys with the role `seal` by entry 0, or by an admission of its owners. */
function writersOfSeal(verifier) {
  const writers = new Set();
  if (!verifier.begin) return writers;
  const initial = rolesOfEntryZero(verifier.begin.entry);
  for (const [key, given] of initial) if (given.has('seal')) writers.add(key);
  for (const { entry, signer } of verifier.commits)
    if (isSealAdmission(entry, signer, initial, verifier.begin)) writers.add(entry.key);
  return writers;
}

export async function checkAnchors(verifier) {
  const { findings } = verifier;
  const writers = writersOfSeal(verifier);
  const isKnown = (key) => verifier.signers.isKnown(key);
  const areWritersKnown = [...writers].some(isKnown);
  const state = {
    isNamed: false,
    isHeld: false,
    isHeldByWriter: false,
    isUnread: false,
    faults: [],
    otherSeals: [],
  };
  for (const log of await logsOf(verifier.store)) {
    const isWriter = writers.has(log.key);
    if (!isWriter && !isKnown(log.key) && areWritersKnown) continue;
    if (isWriter && log.isBroken) {
      state.faults.push(['anchor-broken', `the log ${log.ref} is broken`]);
    }
    if (isWriter && log.isUnread) state.isUnread = true;
    compareLog(verifier, log, isWriter, state);
  }
  // Only a seal that a sound log of a writer has, too, shows that both ends were recorded.
  const codeOfSeals = state.isHeldByWriter ? 'driven-twice' : 'anchor-differs';
  for (const text of state.otherSeals) state.faults.push([codeOfSeals, text]);
  const codes = state.faults.map(([code]) => code);
  const conflicts = ['driven-twice', 'same-id'];
  const hiding = [['anchor-differs'], conflicts].find((group) =>
    group.some((code) => codes.includes(code)),
  );
  for (const [code, text] of state.faults)
    if (!hiding || hiding.includes(code)) findings.add('anchor', code, text);
  if (state.faults.length > 0) return;
  if (state.isUnread) findings.addLeftOut('anchor');
  else if (!state.isNamed) findings.addOpen('anchor', 'no log at hand holds the run');
  else if (verifier.seal === null) findings.addOpen('anchor', 'not sealed, submission logged');
  else if (!state.isHeld) findings.add('anchor', 'anchor-missing', 'no log at hand has the seal');
  if (!state.isHeld) return;
  findings.details.anchor = 'local (detect)';
  findings.details.root = findings.details.root?.replace('sealed root', 'anchored root');
}

function compareLog(verifier, log, isWriter, state) {
  const stated = log.runs.get(verifier.run);
  if (!stated) return;
  const { first, root, last, lastSeq } = stated;
  const isSealed = root !== undefined;
  if (!verifier.first) {
    state.isNamed = true;
    if (isSealed) state.faults.push(['anchor-differs', `the log ${log.ref} has a seal of the run`]);
    return;
  }
  const { seal, signers } = verifier;
  const isKnown = signers.isKnown(log.key);
  const isOtherFirst = first !== verifier.first.hash;
  const isOtherSeal = isSealed && !sameJson({ root, last, lastSeq }, seal ?? undefined);
  const beganBy = verifier.first.signer;
  const isOtherRun = isOtherFirst
    ? beganBy !== null && beganBy !== log.key
    : seal !== null && !isWriter && isOtherSeal;
  if (isOtherRun) {
    noteOtherRun(verifier, log, first, isKnown, state);
    return;
  }
  // The key may have been admitted later than this copy of the run goes.
  if (isSealed && seal === null && !isOtherFirst && !isWriter) return;
  const isWitness = isWriter && !log.isBroken;
  if (isOtherFirst) {
    state.faults.push(['anchor-differs', `the log ${log.ref} has another first entry`]);
  } else if (isOtherSeal && isWitness && seal !== null) {
    state.otherSeals.push(`the log ${log.ref} has another seal`);
  } else if (isOtherSeal) {
    state.faults.push(['anchor-differs', `the log ${log.ref} has another seal`]);
  } else if (isSealed && (isWriter || !isKnown)) {
    state.isHeld = true;
    state.isHeldByWriter ||= isWitness;
  }
  if (isWriter || !isKnown) state.isNamed = true;
}

/** Notes another run of the same id, which is a conflict if it is unknown which is meant. */
function noteOtherRun(verifier, log, first, isKnown, state) {
  const isAsked = verifier.signers.wanted !== null || verifier.options.base != null;
  if (isAsked || !(isKnown || !verifier.signers.isKnown(verifier.first.signer))) return;
  const other = `that of ${log.key} began with ${first}`;
  const own = `that of ${verifier.first.signer} began with ${verifier.first.hash}`;
  state.faults.push(['same-id', `a log holds another run by this name: ${other}; ${own}`]);
}
