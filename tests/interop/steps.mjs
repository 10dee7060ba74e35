// Counts the steps that src/report/verify.mjs takes for files: how often functions and the
// blocks in its modules run. Prints a JSON object with the steps of each file.
//
// Usage: node tests/interop/steps.mjs FILE…

import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import Handoff from '../../src/report/verify.mjs';

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

/** Returns the steps since the last call. */
async function takeSteps() {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const own = result.filter(({ url }) => url.includes('/src/report/verify/'));
  const ranges = own.flatMap(({ functions }) => functions.flatMap((each) => each.ranges));
  return ranges.reduce((sum, { count }) => sum + count, 0);
}

const steps = {};
for (const file of process.argv.slice(2)) {
  await takeSteps();
  const store = await Handoff.readBundle(new Uint8Array(readFileSync(file)));
  for (const run of Handoff.runsIn(store)) await Handoff.verifyRun(store, run, {});
  steps[file] = await takeSteps();
}
console.log(JSON.stringify(steps));
