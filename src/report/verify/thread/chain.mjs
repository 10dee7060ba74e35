// Reads the chain of a thread (section 10).

import { pickFields, sameJson } from '../json.mjs';
import { checkSignatures } from '../entries/commit.mjs';
import { checkOrder, commitsFrom } from '../chain/chain.mjs';

export const checkpointName = ({ entry, hash }) => `${entry.seq}-${hash.slice(7, 19)}`;

export const threadRows = ['chain', 'signature', 'anchor', 'lineage', 'content'];
export const maxLineage = 1000;
const contentFields = ['state', 'summary', 'packet', 'worktree', 'base'];
export const contentOf = (entry) => pickFields(entry, contentFields);

/** Returns the source of an adopted or forked thread, or null. */
export const sourceOfThread = (entry) => entry?.adopted ?? entry?.from ?? null;

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
      if (i > 0 || this.isWhole) {
        const further = sourceOfThread(entry)?.commit ?? entry.run?.commit;
        const expected = [this.commits[i - 1]?.name, further].filter((name) => name !== undefined);
        if (!sameJson(expected, commit.parents)) this.fault(`${number} has other parents`, commit);
      }
      if (!this.apply(commit)) this.fault(`${number} cannot be at this place`, commit);
    }
  }

  /** Adds the checkpoint that an entry makes. Returns false if the entry is illegal here. */
  apply(commit) {
    const { entry } = commit;
    if (entry.kind === 'thread.resumed') return this.latest?.name === entry.checkpoint;
    const content = contentOf(entry);
    const isOther = 'to' in entry && !sameJson(this.checkpoints.get(entry.to)?.content, content);
    if (entry.kind !== 'thread.checkpointed' || isOther) return false;
    this.latest = { name: checkpointName(commit), commit, content };
    this.checkpoints.set(this.latest.name, this.latest);
    return true;
  }

  get tiedRuns() {
    return [...this.checkpoints.values()].map(({ commit }) => commit.entry.run).filter(Boolean);
  }

  /** Returns the entries that the key of entry 0 did not sign. */
  unsigned() {
    return this.commits.filter(
      ({ signer }) => signer === null || (this.key !== null && signer !== this.key),
    );
  }
}
