// The arguments of the command.

import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

export const usage = `Usage: node verify.mjs FILE [NAME…] [options]

Verifies the runs and threads in a bundle, a proof, or the evidence in an HTML report.

  --signers FILE    Trust exactly the keys of this allowed-signers file
  --revoked FILE    Distrust the keys in this file
  --signer KEY      Require that this key made every signature: a fingerprint or a principal
  --plan FILE       Require that the run has exactly this plan
  --base COMMIT     Require that the run starts from this commit
  --require WORD    \`protected\`: require that all protected files were recomputed
  --json            Print one JSON object for each run and thread

Exits with 0 if all is intact, 4 if it is and not every item is done and green, 3 if it is not
intact, 2 on wrong usage, and 1 if a file cannot be read.`;

export class UsageError extends Error {}

export function readArguments(words) {
  const names = ['signers', 'revoked', 'signer', 'plan', 'base', 'require'];
  const options = Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
  options.json = { type: 'boolean', default: false };
  const { values, positionals } = parseArgs({ args: words, options, allowPositionals: true });
  const { json, ...given } = values;
  const [file, ...chosen] = positionals;
  if (file === undefined) throw new UsageError('name a file');
  if (!['protected', undefined].includes(given.require))
    throw new UsageError('--require takes `protected`');
  for (const name of ['signers', 'revoked'])
    if (name in given) given[name] = readFileSync(given[name], 'utf8');
  if ('plan' in given) given.plan = new Uint8Array(readFileSync(given.plan));
  return { file, names: chosen, options: given, json };
}
