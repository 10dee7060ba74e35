// Verifies the file that the arguments of the command name.

import { readFileSync } from 'node:fs';
import { ensure, toLatin } from '../bytes.mjs';
import { readBundle } from '../git/bundle.mjs';
import { verifyProof } from '../proof.mjs';
import { verifyAll } from '../verification.mjs';
import { Handoff } from '../handoff.mjs';
import { readArguments } from './arguments.mjs';
import { jsonOfPage, jsonOfReport, textOfPage, textOfReport } from './text.mjs';
import { checkPageFile } from './page-file.mjs';

async function verifyBundleFile(bytes, names, options) {
  const store = await readBundle(bytes);
  const all = [...Handoff.runsIn(store), ...Handoff.threadsIn(store)];
  for (const name of names)
    ensure(all.includes(name), `there is no run or thread "${name}" in the bundle`);
  const reports = await verifyAll(store, options, names.length === 0 ? all : names);
  ensure(reports.length > 0, 'there is no run or thread in the bundle');
  return reports;
}

async function mainOfPage(bytes, options, json) {
  const result = await checkPageFile(bytes, options);
  console.log(json ? jsonOfPage(result) : textOfPage(result));
  if (result.verdict === 'tampered' || result.runs.some(({ failure }) => failure !== null))
    return 3;
  return result.verdict === 'partial' ? 4 : 0;
}

export async function main(words) {
  const { file, names, options, json } = readArguments(words);
  const bytes = new Uint8Array(readFileSync(file));
  const start = toLatin(bytes.subarray(0, 64)).trimStart();
  let reports;
  if (start.startsWith('<') || file.endsWith('.html')) return mainOfPage(bytes, options, json);
  if (start.startsWith('{')) reports = [await verifyProof(bytes, options)];
  else reports = await verifyBundleFile(bytes, names, options);
  console.log(reports.map(json ? jsonOfReport : textOfReport).join(json ? '\n' : '\n\n'));
  return [3, 4].find((code) => reports.some((report) => report.exit === code)) ?? 0;
}
