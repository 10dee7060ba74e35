// Reads the commits of a chain, and checks the order of their entries (section 9).

import { limits } from '../limits.mjs';
import { checkSignatures, Commit } from '../entries/commit.mjs';

/**
 * Yields the commits from a head back to the first one. In place of one that is not here, the last
 * is {name, isMissing, isLeftOut}.
 */
export function* commitsFrom(store, head) {
  let name = head;
  do {
    const bytes = store.read(name, 'commit');
    const commit = bytes && new Commit(bytes, store.format, name);
    yield commit ?? { name, isMissing: true, isLeftOut: store.isLeftOut(name) };
    name = commit?.parents[0];
  } while (name !== undefined);
}

/** The commits of a chain, oldest first, and whether it could be read to its first entry. */
export class Chain {
  constructor(store, head) {
    this.commits = [];
    this.isWhole = false;
    /** {code, text} of what was wrong with reading. */
    this.faults = [];
    /** True if a commit is not here in a store that leaves objects out. */
    this.isLeftOut = false;
    /** False if the ref names no commit at all. */
    this.hasRef =
      head !== undefined && (!store.objects.has(head) || store.read(head, 'commit') !== null);
    if (this.hasRef) this.walk(store, head);
    else this.fault('ref', 'the ref names no commit');
    this.commits.reverse();
    /** The check of the signatures, which goes on in the background. */
    this.signatures = checkSignatures(this.commits);
  }

  fault(code, text) {
    this.faults.push({ code, text });
  }

  walk(store, head) {
    let [invalid, size, allowed] = [0, 0, limits.chain];
    for (const commit of commitsFrom(store, head)) {
      const { name, entry, parents } = commit;
      if (commit.isMissing) {
        this.isLeftOut = commit.isLeftOut;
        if (!this.isLeftOut) this.fault('object', `object ${name} is not here`);
        return;
      }
      size += commit.bytes.length;
      allowed += 1024 * store.objects.get(name).packed;
      if (size > allowed) {
        this.fault('object', 'the commits are too large together');
        return;
      }
      this.commits.push(commit);
      if (!entry) this.fault('entry', `commit ${name} is no entry: ${commit.fault}`);
      if (!entry && ++invalid > limits.invalidCommits) {
        this.fault('entry', 'more than 100 commits are no entries');
        return;
      }
      this.isWhole = parents.length === 0 && commit.tree !== null;
    }
  }

  /** The commits that carry a valid entry. */
  get valid() {
    return this.commits.filter((commit) => commit.entry !== null);
  }
}

/** Calls `report(commit, text)` for each fault in the order of entries. */
export function checkOrder(commits, isWhole, report) {
  for (const [i, commit] of commits.entries()) {
    const { entry } = commit;
    const before = commits[i - 1];
    if (!before) {
      if (!isWhole) continue;
      if (entry.seq !== 0) report(commit, `the first entry has the number ${entry.seq}`);
      if ('prev' in entry) report(commit, 'the first entry names one before it');
      continue;
    }
    if (entry.seq !== before.entry.seq + 1) {
      report(commit, `entry ${entry.seq} follows entry ${before.entry.seq}`);
    }
    if (entry.prev !== before.hash)
      report(commit, `entry ${entry.seq} names another entry before it`);
    if (entry.at < before.entry.at)
      report(commit, `entry ${entry.seq} is dated before the one before it`);
  }
}
