// Compares src/report/verify.mjs with every vector in docs/vectors.
//
// Usage: node tests/interop/vectors.mjs [--plain] [NAME…]
//
// `--plain` switches WebCrypto off, so that the verifier's own Ed25519 and SHA-512 are used.

import { readFileSync } from 'node:fs';
import Handoff from '../../src/report/verify.mjs';

const folder = new URL('../../docs/vectors/', import.meta.url);
const read = (name) => new Uint8Array(readFileSync(new URL(name, folder)));
const readText = (name) => readFileSync(new URL(name, folder), 'utf8');

const words = process.argv.slice(2);
const names = words.filter((word) => !word.startsWith('--'));
if (words.includes('--plain')) Handoff.settings.useSubtle = false;

const { vectors, threads, proofs, refused, signers } = JSON.parse(readText('vectors.json'));

/** Returns the verifier's options for the arguments of a vector. */
function optionsFor(list = ['--signers', signers]) {
  const options = {};
  for (let i = 0; i < list.length; i += 2) {
    const name = list[i].slice(2);
    if (name === 'signers' || name === 'revoked') options[name] = readText(list[i + 1]);
    else options[name] = name === 'plan' ? read(list[i + 1]) : list[i + 1];
  }
  return options;
}

/** Writes keys in order, so that equal values are equal texts. Sentences for readers may differ. */
function comparable(field, value) {
  const withoutReasons = (each) => ({ ...each, reason: '…' });
  if (field === 'outcome' && value?.stopped) {
    value = { ...value, stopped: withoutReasons(value.stopped) };
    if (value.alsoStopped) value.alsoStopped = value.alsoStopped.map(withoutReasons);
  }
  return JSON.stringify(value, (_, each) =>
    each && typeof each === 'object' && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );
}

async function reportOf(vector, options) {
  const bytes = read(vector.file);
  if (vector.file.endsWith('.json')) return Handoff.verifyProof(bytes, options);
  const store = await Handoff.readBundle(bytes);
  const { run, thread } = vector;
  return thread ? Handoff.verifyThread(store, thread, options) : Handoff.verifyRun(store, run, options);
}

async function verify(vector) {
  const report = await reportOf(vector, optionsFor(vector.arguments));
  const open = Object.entries(report.rows).filter(([, { state }]) => state === 'open');
  return { ...report, open: open.map(([row]) => row).sort() };
}

const started = performance.now();
const chosen = [...vectors, ...threads, ...proofs].filter(
  ({ file }) => names.length === 0 || names.some((name) => file.includes(name)),
);
let agreeing = 0;
for (const vector of chosen) {
  const fields = ['finding', 'failure', 'outcome', 'exit', 'open', 'decisions', 'takeovers'].filter(
    (field) => field in vector,
  );
  let differences;
  try {
    const found = await verify(vector);
    differences = fields
      .map((field) => [field, comparable(field, vector[field]), comparable(field, found[field])])
      .filter(([, expected, got]) => expected !== got);
  } catch (error) {
    differences = [['error', 'none', error.stack]];
  }
  if (differences.length === 0) agreeing++;
  else console.log(`${vector.file}: ${vector.description}`);
  for (const [field, expected, got] of differences) {
    console.log(`  ${field}\n    expected ${expected}\n    found    ${got}`);
  }
}
const unread = refused.filter(
  ({ file }) => names.length === 0 || names.some((name) => file.includes(name)),
);
for (const { file, description } of unread) {
  const isProof = file.endsWith('.json');
  const reading = isProof
    ? Handoff.verifyProof(read(file), optionsFor())
    : Handoff.readBundle(read(file));
  const error = await reading.then(
    () => null,
    (error) => error,
  );
  if (error instanceof Handoff.FormatError) agreeing++;
  else console.log(`${file}: ${description}\n  expected a refusal\n  found    ${error?.stack}`);
}
const count = chosen.length + unread.length;
const seconds = ((performance.now() - started) / 1000).toFixed(1);
console.log(`${agreeing} of ${count} agree, in ${seconds} s`);
process.exitCode = agreeing === count ? 0 : 1;
