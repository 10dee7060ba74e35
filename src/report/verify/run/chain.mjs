// Rows `chain` and `signature` of a run: its entries, and who signed them.

import { haveClash } from '../names.mjs';
import { checkOrder } from '../chain/chain.mjs';
import { checkRoles, conductsRun } from '../chain/roles.mjs';
import { counted } from '../findings.mjs';

export function checkChain(verifier) {
  const { findings, commits } = verifier;
  const report = (...of) => verifier.report('chain', ...of);
  checkOrder(commits, verifier.chain.isWhole, (...of) => report('order', ...of));
  let isSealed = false;
  for (const [i, commit] of commits.entries()) {
    const { entry, parents } = commit;
    const number = `entry ${entry.seq}`;
    const isFirst = i === 0 && verifier.chain.isWhole;
    if ((i > 0 || isFirst) && parents.length !== (isFirst ? 0 : 1)) {
      report('order', commit, `${number}: its commit has ${counted(parents.length, 'parent')}`);
    }
    if (isFirst && entry.kind !== 'run.submitted')
      report('misplaced', commit, `${number} is no run.submitted`);
    const isForeign = /^(?:log|thread|archive)\./.test(entry.kind);
    if ((i > 0 && entry.kind === 'run.submitted') || isForeign) {
      report('misplaced', commit, `${number}: ${entry.kind} does not belong there`);
    }
    if (isSealed) report('misplaced', commit, `${number} follows the seal`);
    if (entry.run !== verifier.run) report('misplaced', commit, `${number} is of another run`);
    if (haveClashingPaths(entry)) report('paths', commit, `${number} has paths that clash`);
    isSealed ||= entry.kind === 'run.sealed';
  }
  findings.details.chain = `${counted(commits.length, 'entry', 'entries')}, hash-linked, no gaps`;
}

function haveClashingPaths(entry) {
  if (entry.kind === 'run.submitted') return haveClash(Object.keys(entry.artifacts));
  if (entry.kind !== 'item.reconciled') return false;
  const outputs = Object.keys(entry.products).filter((key) => key.startsWith('outputs/'));
  return haveClash(outputs.map((key) => key.slice(8)));
}

export async function checkSigners(verifier) {
  const report = (...of) => verifier.report('signature', ...of);
  if (verifier.chain.isWhole) {
    verifier.keys.push(...(await checkRoles(verifier.commits, report)));
    return;
  }
  for (const commit of verifier.commits) {
    const { entry, signer, seconds } = commit;
    if (signer === null)
      report('signature', commit, `entry ${entry.seq} has no signature that matches`);
    else verifier.keys.push({ key: signer, seconds, conducts: conductsRun(entry), entry });
  }
}
