// Verifies proofs of single items (section 11).

import { ensure, toBytes } from './bytes.mjs';
import { entryText, isObject, readJson, sameJson } from './json.mjs';
import {
  allOf,
  arrayOf,
  isCount,
  isDigest,
  isString,
  secondsOf,
  shape,
} from './values.mjs';
import { isItemName, isRunName } from './names.mjs';
import { faultOfEntry, isProduct, isProductKey } from './entries/kinds.mjs';
import { isEndRed } from './entries/subject.mjs';
import { hashText, leafHash, readQuotedCommit } from './entries/commit.mjs';
import { digestBytes, rootByInclusion, rootsByConsistency } from './entries/merkle.mjs';
import { Signers } from './chain/signers.mjs';
import { readStatement, rolesOfEntryZero } from './chain/roles.mjs';
import { compareExpected, Findings, headlineOf, judgeKeys } from './findings.mjs';
import { decisionOf, reportOf } from './report.mjs';
import { emptyOutcome } from './replay/outcome.mjs';

const isInclusionPath = arrayOf(isDigest);
const isSignedCommit = shape({ commit: isString, path: isInclusionPath });
const proofSchema = 'git-handoff.proof/1';
const isProofShape = shape({
  schema: isString,
  run: isRunName,
  entries: isCount,
  root: isDigest,
  first: isSignedCommit,
  'admitted?': isSignedCommit,
  last: shape({ commit: isString }),
  'item?': isItemName,
  'product?': shape({ key: isProductKey, is: isProduct }),
  'shown?': arrayOf(shape({ entry: isObject, path: isInclusionPath }), 1),
  'since?': shape({ entries: isCount, root: isDigest, path: isInclusionPath }),
});

const isProofJson = allOf(isProofShape, (json) => {
  // The subject is an item with its entries, or how the run continued.
  const isAboutItem = 'item' in json && 'shown' in json;
  const isMixed = 'item' in json !== 'shown' in json || ('product' in json && !isAboutItem);
  return json.schema === proofSchema && !isMixed && isAboutItem !== 'since' in json;
});

/** A proof, what it shows, and what is wrong with its rows chain, root and signature. */
export class Proof {
  constructor(json) {
    this.json = json;
    this.faults = [];
    this.keys = [];
    this.decisions = [];
    this.first = this.last = this.admitted = this.fired = this.end = this.statement = null;
    this.shown = [];
  }

  static async read(json) {
    const proof = new Proof(json);
    const isReadable = isProofJson(json);
    const text = isReadable
      ? 'a commit of the proof carries no such entry'
      : 'the proof is not in the form of a proof';
    if (!isReadable || !(await proof.readCommits())) {
      for (const row of ['chain', 'root']) proof.require(row, false, text);
      return proof;
    }
    proof.checkChain();
    if ('shown' in json) await proof.checkShown();
    proof.checkRoot();
    proof.checkSigners();
    proof.noteDecision();
    return proof;
  }

  require(row, holds, text, code = null, entry = null) {
    if (!holds) this.faults.push({ row, code, text, entry: entry?.seq });
    return Boolean(holds);
  }

  get holds() {
    return this.faults.length === 0;
  }

  /** Returns false unless all commits carry entries of such kinds. */
  async readCommits() {
    const { first, last, admitted } = this.json;
    this.first = await readQuotedCommit(first.commit);
    const { entry } = this.first;
    this.format = this.first.format;
    this.last = await readQuotedCommit(last.commit, this.format);
    if (admitted) this.admitted = await readQuotedCommit(admitted.commit, this.format);
    if (entry?.kind !== 'run.submitted' || !this.last.entry) return false;
    this.initialRoles = rolesOfEntryZero(entry);
    return true;
  }

  hasRole(key, role) {
    return this.initialRoles.get(key)?.has(role) === true;
  }

  checkChain() {
    const { json, first, last, admitted } = this;
    const require = (holds, text) => this.require('chain', holds, text);
    const zero = first.entry;
    const nameLength = this.format === 'sha1' ? 40 : 64;
    require(zero.base.length === nameLength, 'the base has another object format');
    const isZero = zero.seq === 0 && !('prev' in zero) && first.parents.length === 0;
    require(isZero, 'the first entry is not entry 0');
    const isSeal = last.entry.kind === 'run.sealed' && last.parents.length === 1;
    require(isSeal, 'the last entry is no seal');
    if (admitted) require(this.admitsSealer(), 'the admission does not admit the key that sealed');
    for (const { entry, path } of json.shown ?? []) {
      if (require(faultOfEntry(entry) === null, 'a shown entry is not valid'))
        this.shown.push({ entry, path, leaf: leafHash(toBytes(entryText(entry))) });
    }
    const line = [first, ...this.shown];
    if (admitted?.entry) {
      const at = line.findIndex(({ entry }) => entry.seq > admitted.entry.seq);
      line.splice(at < 0 ? line.length : at, 0, admitted);
    }
    line.push(last);
    for (const [i, { entry }] of line.entries()) {
      require(entry.run === json.run, `entry ${entry.seq} is of another run`);
      if (i === 0) continue;
      const { entry: before, leaf } = line[i - 1];
      const isLater = entry.seq > before.seq && entry.at >= before.at && 'prev' in entry;
      const isLinked = entry.seq !== before.seq + 1 || entry.prev === hashText(leaf);
      const text = `entry ${entry.seq} does not follow the one that is shown before it`;
      require(isLater && isLinked, text);
    }
  }

  admitsSealer() {
    const { entry, parents } = this.admitted;
    return (
      entry?.kind === 'run.admitted' &&
      entry.role === 'seal' &&
      parents.length === 1 &&
      entry.key === this.last.signer &&
      !this.hasRole(entry.key, 'seal')
    );
  }

  async checkShown() {
    const { json } = this;
    const require = (holds, text) => this.require('chain', holds, text);
    const entries = this.shown.map(({ entry }) => entry);
    const kinds = entries.map(({ kind }) => kind).join(' ');
    require(entries.every(({ item }) => item === json.item), 'a shown entry is about another item');
    if (kinds === 'item.fired item.reconciled') {
      [this.fired, this.end] = entries;
      const { fired, end } = this;
      const isAttempt = fired.attempt >= 1 && fired.attempt === end.attempt;
      const isDone = end.status === 'done' && isAttempt;
      require(isDone, 'the shown entries are not an attempt that was done');
      if (!json.product) return;
      const { key, is } = json.product;
      require(sameJson(end.products[key], is), `${key} is not a product of the item`);
    } else if (kinds === 'item.decided') {
      [this.end] = entries;
      const isDone = this.end.status === 'done' && !json.product;
      require(isDone, 'the shown decision proves no product');
      if (!('said' in this.end)) return;
      this.statement = await readStatement(this.end, this.first.hash);
      require(this.statement, 'the statement of the decision is about something else');
    } else require(false, 'the shown entries are not those of an item');
  }

  checkRoot() {
    const { json, first, last, admitted } = this;
    const require = (holds, text) => this.require('root', holds, text);
    const isOfSeal = last.entry.root === json.root && last.entry.seq === json.entries;
    require(isOfSeal, 'the seal has another root or number');
    const under = [{ ...first, path: json.first.path }, ...this.shown];
    if (admitted?.entry) under.push({ ...admitted, path: json.admitted.path });
    for (const { path, entry, leaf } of under) {
      const found = rootByInclusion(path.map(digestBytes), entry.seq, json.entries, leaf);
      const isUnder = found && hashText(found) === json.root;
      require(isUnder, `entry ${entry.seq} is not under the root`);
    }
    if (json.since)
      require(this.extendsEarlier(json.since), 'the run did not go on from the earlier root');
  }

  extendsEarlier({ entries, root, path }) {
    const { json } = this;
    if (entries < 1 || entries > json.entries) return false;
    const hashes = path.map(digestBytes);
    const roots = rootsByConsistency(hashes, entries, json.entries, digestBytes(root));
    return roots && hashText(roots.before) === root && hashText(roots.after) === json.root;
  }

  checkSigners() {
    const { first, last, admitted } = this;
    const require = (holds, code, entry, text) =>
      this.require('signature', holds, text, code, entry);
    let admits = Boolean(admitted?.entry);
    for (const commit of [first, admitted, last]) {
      if (!commit) continue;
      const { signer: key, seconds, entry } = commit;
      const number = `entry ${entry?.seq}`;
      if (key !== null) this.keys.push({ key, seconds, conducts: true, entry });
      const isOwner = commit === last || this.hasRole(key, 'own');
      const isOfRun = commit !== admitted || entry.first === first.hash;
      const isFine =
        require(key !== null, 'signature', entry, `${number} has no signature that matches`) &&
        require(isOwner, 'role', entry, `${number}: the key ${key} has not the role own`) &&
        require(isOfRun, 'role', entry, `${number} is an admission to another run`);
      if (commit === admitted && !isFine) admits = false;
    }
    const { signer } = last;
    const isAdmitted = admits && admitted.entry.key === signer;
    const maySeal = signer === null || this.hasRole(signer, 'seal') || isAdmitted;
    require(maySeal, 'role', last.entry, `the key ${signer} has not the role seal`);
  }

  noteDecision() {
    const { end, last, statement } = this;
    if (end?.kind !== 'item.decided') return;
    const decision = decisionOf(end, statement !== null || end.by === last.signer, last.signer);
    if (statement) {
      const { key, seconds } = statement;
      this.keys.push({ key, seconds, conducts: false, entry: end });
    } else if (!decision.signed)
      this.claimed = { key: end.by, seconds: secondsOf(end.at), entry: end };
    if (!this.hasRole(end.by, 'approve')) decision.roleShown = false;
    this.decisions = [decision];
  }

  /** The outcome of the item alone, or null for a proof about an earlier state. */
  outcome() {
    if (!this.end) return null;
    const claimed = 'grade' in this.end ? { claimed: 1 } : {};
    return { ...emptyOutcome(), total: 1, [isEndRed(this.end) ? 'red' : 'done']: 1, ...claimed };
  }
}

function headlineOfProof(concluded, isTrusted) {
  if (concluded.failure === null) return isTrusted ? 'PROVEN' : 'PROVEN · unknown key';
  const headline = headlineOf(concluded, isTrusted);
  const kept = ['NOT ANCHORED', 'UNTRUSTED', 'MISMATCH', 'CONFLICT'];
  return kept.includes(headline) ? headline : 'NOT PROVEN';
}

/** Verifies the bytes of a `*.proof.json`. Throws FormatError if they hold none. */
export async function verifyProof(bytes, options = {}) {
  const json = readJson(bytes);
  ensure(isProofShape(json), 'not in the form of a proof');
  const proof = await Proof.read(json);
  const signers = new Signers(options);
  const findings = new Findings();
  for (const { row, code, text, entry } of proof.faults) findings.add(row, code, text, { entry });
  const reasons = {
    anchor: 'no log at hand holds the run',
    handoff: 'a proof shows single entries; this needs the run',
    plan: 'named by entry 0; this needs the run',
    manifest: 'a proof shows single entries; this needs the run',
    content: json.product
      ? `${json.product.key} is ${json.product.is?.sha256}`
      : 'the proof names no product',
  };
  for (const [row, reason] of Object.entries(reasons)) findings.addOpen(row, reason);
  const listed = judgeKeys(proof.keys, signers, findings);
  if (proof.claimed) {
    // The key is only named by the key that sealed, so that it is no signer.
    const { key, seconds, entry } = proof.claimed;
    const code = signers.judge(key, seconds, false);
    const text = `the key ${key} of a claimed decision is not trusted`;
    if (code) findings.add('signature', code, text, { entry: entry.seq });
  }
  const zero = proof.first?.entry ?? null;
  if (zero) compareExpected(options, zero, findings);
  const shown = 2 + proof.shown.length + (proof.admitted ? 1 : 0);
  findings.details.chain = `${shown} of ${json.entries + 1} entries shown, in canonical form`;
  findings.details.root = `merkle ${String(json.root).slice(7, 15)} = sealed root`;
  return {
    kind: 'proof',
    run: isString(json.run) ? json.run : null,
    ...reportOf(findings.conclude(), headlineOfProof, listed, proof.outcome()),
    decisions: proof.decisions,
    root: json.root ?? null,
    entries: json.entries ?? null,
    findings: findings.list,
    proof,
  };
}
