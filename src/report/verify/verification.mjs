// Verifies all runs and threads of a bundle.

import { compareNames } from './bytes.mjs';
import { decodeSegment } from './names.mjs';
import { verifyRun } from './run/report.mjs';
import { verifyThread } from './thread/verifier.mjs';

/** Verifies the runs and threads of a store, or only those of some names. */
export async function verifyAll(store, options, names) {
  const isChosen = (name) => names?.includes(name) ?? true;
  const reports = [];
  for (const run of namesIn(store, 'runs').filter(isChosen))
    reports.push(await verifyRun(store, run, options));
  for (const thread of namesIn(store, 'threads').filter(isChosen))
    reports.push(await verifyThread(store, thread, options));
  return reports;
}

/** Returns the names of the runs or threads that a bundle has refs of. */
export function namesIn(store, folder) {
  const prefix = `refs/handoff/${folder}/`;
  return [...store.refs.keys()]
    .filter((ref) => ref.startsWith(prefix))
    .map((ref) => decodeSegment(ref.slice(prefix.length)))
    .filter((name) => name !== null)
    .sort(compareNames);
}
