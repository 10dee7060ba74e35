// The parts that the reports of runs, threads and proofs share.

import { exitOf } from './findings.mjs';

/** A decision for a report: signed by the key that made it, or claimed by the one that signed. */
export function decisionOf({ item, decision, by }, signed, signer) {
  return { item, decision, by, signed, ...(signed ? {} : { onWordOf: signer }) };
}

/** One entry of a chain as a report shows it. */
export const linkOf = (commit) => ({
  commit: commit.name,
  leafHash: commit.hash,
  entry: commit.entry,
});

/** Returns the part that all reports have, of what was concluded and the keys that signed. */
export function reportOf(concluded, toHeadline, signers, outcome) {
  const { rows, codes, finding, failure } = concluded;
  if (['chain', 'plan'].includes(finding?.stage)) outcome = null;
  const isTrusted = signers.length > 0 && signers.every((signer) => signer.trusted);
  const headline = toHeadline(concluded, isTrusted);
  return { rows, codes, finding, failure, headline, outcome, exit: exitOf(failure, outcome), signers };
}
