// Compares src/report/verify.mjs with what the program found in some bundles.
//
// Usage: node tests/interop/findings.mjs CASES
//
// CASES is a JSON file: an array of {story, file, run, finding, failure, outcome}.

import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import Handoff from '../../src/report/verify.mjs';

const cases = JSON.parse(readFileSync(process.argv[2], 'utf8'));

/** Leaves out the reasons for readers, which may differ. */
function comparable(value) {
  return JSON.parse(JSON.stringify(value ?? null, (key, each) => (key === 'reason' ? '…' : each)));
}

let differing = 0;
for (const expected of cases) {
  const bytes = new Uint8Array(readFileSync(expected.file));
  const store = await Handoff.readBundle(bytes);
  const report = await Handoff.verifyRun(store, expected.run, {});
  for (const field of ['finding', 'failure', 'outcome']) {
    const [wanted, found] = [expected[field], report[field]].map(comparable);
    if (isDeepStrictEqual(wanted, found)) continue;
    differing++;
    console.log(`${expected.story}: ${field}`);
    console.log(`  the program    ${JSON.stringify(wanted)}\n  verify.mjs     ${JSON.stringify(found)}`);
  }
}
console.log(`${cases.length} compared, ${differing} differences`);
process.exitCode = differing === 0 ? 0 : 1;
