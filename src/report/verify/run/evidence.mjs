// Row `handoff` of a run: the evidence of reused items, imports and continued runs.

import { ensure, equalBytes, FormatError } from '../bytes.mjs';
import { limits } from '../limits.mjs';
import { areNamed } from '../crypto/hashes.mjs';
import { canonicalBytes, readJson, sameJson } from '../json.mjs';
import { arrayOf, isString, shape } from '../values.mjs';
import { encodeSegment } from '../names.mjs';
import { isEndRed } from '../entries/subject.mjs';
import { hashText, readQuotedCommit } from '../entries/commit.mjs';
import { merkleRoot } from '../entries/merkle.mjs';
import { checkOrder } from '../chain/chain.mjs';
import { checkRoles } from '../chain/roles.mjs';
import { contradicts } from '../findings.mjs';
import { Proof } from '../proof.mjs';
import { checkpointName } from '../thread/chain.mjs';

const areCommits = shape({ commits: arrayOf(isString, 1) });

/**
 * Reads canonical evidence that an entry names, and checks it. Evidence that is left out is not
 * checked.
 */
async function checkEvidence(verifier, commit, named, subject, check) {
  const bytes = verifier.readNamed(named, ['handoff']);
  if (bytes === undefined) return;
  await reportWrong(verifier, commit, subject, async () => {
    ensure(bytes !== null && areNamed(bytes, named), 'is not the one that its entry names');
    const evidence = readJson(bytes, limits.evidence);
    ensure(equalBytes(canonicalBytes(evidence), bytes), 'is not canonical');
    await check(evidence);
  });
}

/** Checks evidence. Reports what does not hold, which is the message of a FormatError. */
async function reportWrong(verifier, commit, subject, check) {
  try {
    await check();
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    const text = `the evidence of ${subject} ${error.message}`;
    verifier.report('handoff', 'proof', commit, text);
  }
}

/** Reads evidence as the proof of an item that holds. */
async function readItemProof(verifier, commit, evidence) {
  const proof = await Proof.read(evidence);
  verifier.addKeysOf(proof.keys, commit);
  ensure(proof.holds && proof.fired, 'has a proof that does not hold');
  return proof;
}

export async function checkReused(verifier, commit) {
  const { entry } = commit;
  const { evidence: named } = entry.reused;
  const check = async (evidence) => {
    const shown = named
      ? await shownByProof(verifier, commit, evidence)
      : await shownByContinued(verifier, entry.reused);
    compareReused(verifier, entry, shown);
  };
  if (named) await checkEvidence(verifier, commit, named, entry.item, check);
  else await reportWrong(verifier, commit, entry.item, check);
}

async function shownByProof(verifier, commit, json) {
  const { reused } = commit.entry;
  const proof = await readItemProof(verifier, commit, json);
  ensure(!('product' in json), 'has a proof that does not hold');
  const fields = ['run', 'item', 'root'];
  ensure(
    fields.every((field) => json[field] === reused[field]),
    'is about something else',
  );
  await compareSource(verifier, proof);
  return { fired: proof.fired, end: proof.end, base: proof.first.entry.base };
}

async function shownByContinued(verifier, { run, root, item }) {
  const { continues } = verifier.begin.entry;
  const isSame = continues && continues.run === run && continues.root === root;
  ensure(isSame, 'is about a run that is not continued');
  const entries = ((await readContinued(verifier)) ?? []).map((commit) => commit.entry);
  const end = entries.findLast(
    (each) => each.kind === 'item.reconciled' && each.item === item && each.status === 'done',
  );
  ensure(end, 'names an item that was not done');
  const fired = entries.find(
    (each) => each.kind === 'item.fired' && each.item === item && each.attempt === end.attempt,
  );
  ensure(fired, 'names an attempt that there is not');
  return { fired, end, base: entries[0].base };
}

function compareReused(verifier, entry, { fired, end, base }) {
  ensure(base === verifier.begin.entry.base, 'is about a run with another base');
  const own = verifier.dispatches.get(entry.item)?.entry;
  const isSameTask =
    own?.manifest.sha256 === fired.manifest.sha256 && sameJson(own.inputRefs, fired.inputRefs);
  ensure(isSameTask, 'is about another task');
  ensure(!('reused' in end) && !isEndRed(end), 'is about an item that is red or was reused');
  ensure(!('protected' in end), 'is about an item that changes protected files');
  const isSame = ['products', 'verify', 'blocks'].every((field) =>
    sameJson(end[field], entry[field]),
  );
  ensure(isSame, 'shows other products');
}

export async function checkImports(verifier) {
  for (const [name, given] of Object.entries(verifier.begin.entry.imports ?? {})) {
    const check = async (evidence) => {
      const [, source, key] = /^([^:]*):(.*)$/s.exec(name) ?? [];
      const parts = (source ?? '').split('/');
      const product =
        parts[0] === '@run'
          ? await importedFromRun(verifier, evidence, parts, key)
          : await importedFromThread(verifier, evidence, parts, key);
      const isSame =
        product && product.sha256 === given.product.sha256 && product.size === given.product.size;
      ensure(isSame, 'shows another product');
    };
    await checkEvidence(verifier, verifier.begin, given.evidence, `the import ${name}`, check);
  }
}

async function importedFromRun(verifier, evidence, parts, key) {
  const proof = await readItemProof(verifier, verifier.begin, evidence);
  const { run, item } = evidence;
  ensure(
    encodeSegment(run) === parts.at(-2) && encodeSegment(item) === parts.at(-1),
    'is about another item',
  );
  ensure(!isEndRed(proof.end), 'is about an item that is red');
  await compareSource(verifier, proof);
  return proof.end.products[key];
}

async function importedFromThread(verifier, evidence, parts, key) {
  ensure(areCommits(evidence) && evidence.commits.length === 1, 'has other fields');
  const commit = await readQuotedCommit(evidence.commits[0], verifier.store.format);
  const { entry } = commit;
  ensure(entry?.kind === 'thread.checkpointed', 'is no checkpoint');
  ensure(encodeSegment(entry.thread) === parts.at(-2), 'is of another thread');
  ensure(commit.signer, 'is not signed');
  verifier.addKeysOf([{ key: commit.signer, seconds: commit.seconds }], verifier.begin);
  const isFirst = entry.seq === 0;
  const isInPlace = 'prev' in entry !== isFirst && (isFirst || commit.parents.length > 0);
  ensure(isInPlace, 'is at a place where it cannot be');
  ensure(
    parts.at(-1) === 'latest' || parts.at(-1) === encodeSegment(checkpointName(commit)),
    'is another checkpoint',
  );
  return { 'outputs/state': entry.state, 'outputs/packet.json': entry.packet }[key];
}

/** Reads the entries of the continued run once. Returns null if their evidence does not hold. */
export async function readContinued(verifier) {
  verifier.continued ??= (async () => {
    const { continues } = verifier.begin.entry;
    let commits = null;
    const check = async (evidence) => {
      ensure(areCommits(evidence), 'has other fields');
      commits = await Promise.all(evidence.commits.map((text) => readQuotedCommit(text)));
      await compareContinued(verifier, commits, continues);
    };
    const subject = `the continued run ${continues.run}`;
    await checkEvidence(verifier, verifier.begin, continues.evidence, subject, check);
    return commits;
  })();
  return verifier.continued;
}

async function compareContinued(verifier, commits, continues) {
  for (const [i, { entry, fault, parents }] of commits.entries()) {
    ensure(entry, `has a commit that is no entry: ${fault}`);
    const isOfRun = entry.run === continues.run && /^(?:run|item|document)\./.test(entry.kind);
    ensure(
      isOfRun && (entry.kind === 'run.submitted') === (i === 0),
      'has an entry that does not belong there',
    );
    ensure(i === 0 || commits[i - 1].entry.kind !== 'run.sealed', 'has an entry behind the seal');
    ensure(
      sameJson(parents, i === 0 ? [] : [commits[i - 1].name]),
      'has commits that are not linked',
    );
  }
  checkOrder(commits, true, (commit, text) => {
    throw new FormatError(`is not in order: ${text}`);
  });
  const faults = [];
  const keys = await checkRoles(commits, (code) => faults.push(code));
  verifier.addKeysOf(keys, verifier.begin);
  ensure(faults.length === 0, 'has a signature that does not hold');
  const last = commits.at(-1).entry;
  const isSealed = last.kind === 'run.sealed';
  const body = isSealed ? commits.slice(0, -1) : commits;
  const root = hashText(merkleRoot(body.map(({ leaf }) => leaf)));
  ensure(body.length === continues.entries && root === continues.root, 'has another root');
  ensure(!isSealed || last.root === root, 'has another seal');
  await compareContinuedCopy(verifier, commits, continues);
}

/** Compares a copy of the continued run that is in the bundle. */
async function compareContinuedCopy(verifier, commits, { run, entries, root }) {
  const copy = await verifier.verifySource(run);
  if (!copy || copy.first?.hash !== commits[0].hash || copy.commits.length < entries) return;
  if (copy.findings.has('chain') || copy.findings.has('signature')) return;
  const leaves = copy.commits.slice(0, entries).map(({ leaf }) => leaf);
  if (hashText(merkleRoot(leaves)) !== root)
    verifier.addOtherSource(`the continued run ${run} is here, with other entries`);
  else verifier.addFarSources(copy);
}

/** Compares the run of a proof that is in the bundle too with the proof. */
async function compareSource(verifier, proof) {
  const { run, root } = proof.json;
  const source = await verifier.verifySource(run);
  if (!source?.seal || source.first?.hash !== proof.first.hash) return;
  const first = source.findings.first();
  const doesNotHold = first !== null && contradicts(first);
  if (doesNotHold || source.seal.root !== root)
    verifier.addOtherSource(`the run ${run} is here, and contradicts the evidence`);
  else verifier.addFarSources(source);
}
