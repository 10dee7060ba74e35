// Reads the chain of a thread (section 10).

import { concatBytes, fromHex, toBytes } from '../bytes.mjs';
import { objectName } from '../crypto/hashes.mjs';
import { pickFields, sameJson } from '../json.mjs';
import { checkSignatures } from '../entries/commit.mjs';
import { checkOrder, commitsFrom } from '../chain/chain.mjs';

export const checkpointName = ({ entry, hash }) => `${entry.seq}-${hash.slice(7, 19)}`;

/** Returns the tree that follows from the content of a checkpoint. */
export function threadTreeOf({ state, packet, worktree }, format) {
  const node = (mode, name, oid) => concatBytes(toBytes(`${mode} ${name}\0`), fromHex(oid));
  const nodes = [];
  if (packet) nodes.push(node('100644', 'packet.json', packet.oid));
  nodes.push(node('100644', 'state', state.oid));
  if (worktree) nodes.push(node('40000', 'worktree', worktree.tree));
  return objectName(format, 'tree', concatBytes(...nodes));
}

export const threadRows = ['chain', 'signature', 'anchor', 'lineage', 'content'];
export const maxLineage = 1000;
const contentFields = ['state', 'summary', 'packet', 'worktree', 'base'];
export const contentOf = (entry) => pickFields(entry, contentFields);

/** Returns the source of an adopted or forked thread, or null. */
export const sourceOfThread = (entry) => entry?.adopted_from ?? entry?.from ?? null;

/** A thread read from one of its commits back to its entry 0. */
export class ThreadChain {
  constructor(store, name) {
    this.store = store;
    this.name = name;
    this.commits = [];
    this.faults = [];
    this.isWhole = false;
    this.isLeftOut = false;
    /** Checkpoint name to {name, commit, content}. */
    this.checkpoints = new Map();
    this.latest = null;
    this.key = null;
  }

  static async read(store, name, head) {
    const chain = new ThreadChain(store, name);
    chain.walk(head);
    chain.commits.reverse();
    await checkSignatures(chain.commits);
    chain.key = chain.isWhole ? chain.commits[0].signer : null;
    chain.checkEntries();
    return chain;
  }

  fault(text, commit) {
    this.faults.push({ text, entry: commit?.entry?.seq });
  }

  walk(head) {
    for (const commit of commitsFrom(this.store, head)) {
      const { name, entry, parents } = commit;
      if (commit.isMissing) {
        this.isLeftOut = commit.isLeftOut;
        if (!this.isLeftOut) this.fault(`object ${name} is no commit that is here`);
        return;
      }
      if (!entry) {
        this.fault(`commit ${name} is no entry: ${commit.fault}`);
        return;
      }
      this.commits.push(commit);
      this.isWhole = !('prev' in entry);
      if (this.isWhole) return;
      if (parents.length === 0) this.fault(`entry ${entry.seq} has no parent`, commit);
    }
  }

  checkEntries() {
    checkOrder(this.commits, this.isWhole, (_, commit, text) => this.fault(text, commit));
    for (const [i, commit] of this.commits.entries()) {
      const { entry } = commit;
      const number = `entry ${entry.seq}`;
      if (entry.thread !== this.name) this.fault(`${number} is of another thread`, commit);
      const isFirst = i === 0 && this.isWhole;
      if (i > 0 || isFirst) {
        const further = sourceOfThread(entry)?.commit ?? entry.run?.commit;
        const expected = [this.commits[i - 1]?.name, further].filter((name) => name !== undefined);
        if (!sameJson(expected, commit.parents)) this.fault(`${number} has other parents`, commit);
      }
      const checkpoint = this.checkpointOf(commit, isFirst);
      if (!checkpoint) {
        this.fault(`${number} cannot be at this place`, commit);
        continue;
      }
      if (commit.tree !== threadTreeOf(checkpoint.content, this.store.format)) {
        this.fault(`${number} has another tree than its content`, commit);
      }
      if (entry.kind === 'thread.resumed') continue;
      this.latest = { name: checkpointName(commit), commit, content: checkpoint.content };
      this.checkpoints.set(this.latest.name, this.latest);
    }
  }

  /** Returns {content} of the checkpoint that the entry makes or resumes, or null. */
  checkpointOf({ entry }, isFirst) {
    const { kind, adopted_from: adopted, state } = entry;
    if (kind === 'thread.rolled-back')
      return isFirst ? null : (this.checkpoints.get(entry.to) ?? null);
    if (kind === 'thread.resumed')
      return !isFirst && this.latest?.name === entry.checkpoint ? this.latest : null;
    const isTaken = kind === 'thread.forked' || (adopted && adopted.sha256 === state.sha256);
    const isInPlace = kind === 'thread.checkpointed' || (isTaken && isFirst);
    return isInPlace ? { content: contentOf(entry) } : null;
  }

  get tiedRuns() {
    return this.commits.map(({ entry }) => entry.run).filter(Boolean);
  }

  /** Returns the entries that the key of entry 0 did not sign. */
  unsigned() {
    return this.commits.filter(
      ({ signer }) => signer === null || (this.key !== null && signer !== this.key),
    );
  }
}
