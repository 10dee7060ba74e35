// Reads the logs of keys (section 8).

import { compareNames } from '../bytes.mjs';
import { pickFields, sameJson } from '../json.mjs';
import { isFingerprint } from '../values.mjs';
import { decodeSegment } from '../names.mjs';
import { checkSignatures } from '../entries/commit.mjs';
import { commitsFrom } from './chain.mjs';

const sealOf = (entry) => pickFields(entry, ['root', 'entries', 'seal', 'commit']);

/** A log of a key: what its sound entries say, and whether it is broken or unread. */
class Log {
  constructor(ref) {
    this.ref = ref;
    const [segment, digits = ''] = ref.slice(ref.lastIndexOf('/') + 1).split('.');
    this.key = decodeSegment(segment);
    this.digits = digits;
    this.isBroken = !isFingerprint(this.key);
    this.isUnread = false;
    this.sound = [];
    /** Each entry `log.thread` that the key signed, sound or not. */
    this.signedThreads = [];
    this.submitted = new Map();
    this.sealed = new Map();
    this.threads = new Map();
  }

  static async read(store, ref, head) {
    const log = new Log(ref);
    const commits = [...commitsFrom(store, head)].reverse();
    if (commits[0]?.isMissing) {
      if (commits[0].isLeftOut) log.isUnread = true;
      else log.isBroken = true;
    } else {
      await checkSignatures(commits);
      log.readEntries(commits);
    }
    const isOwn = ({ hash }) => hash.startsWith(`sha256:${log.digits}`);
    /** False if no sound entry is of the key and the digits in the name of the ref. */
    log.hasOwnName = log.isUnread || log.sound.some(isOwn);
    if (log.digits !== '' && !log.hasOwnName) log.isBroken = true;
    return log;
  }

  readEntries(commits) {
    this.signedThreads = commits
      .filter(({ entry, signer }) => entry?.kind === 'log.thread' && signer === this.key)
      .map(({ entry }) => entry);
    for (const [i, commit] of commits.entries()) {
      const before = this.sound.at(-1);
      if (!this.isInPlace(commit, i, before)) {
        this.isBroken = true;
        return;
      }
      this.sound.push(commit);
      const { entry } = commit;
      if (entry.kind === 'log.submitted') this.submitted.set(entry.run, entry.first);
      if (entry.kind === 'log.sealed') this.sealed.set(entry.run, sealOf(entry));
      if (entry.kind === 'log.thread')
        this.threads.set(entry.thread, [...(this.threads.get(entry.thread) ?? []), entry]);
    }
  }

  isInPlace({ entry, signer, parents }, index, before) {
    if (!entry || !entry.kind.startsWith('log.') || entry.log !== this.key) return false;
    if (signer !== this.key || parents.length !== (index === 0 ? 0 : 1) || entry.seq !== index)
      return false;
    if (entry.prev !== before?.hash || (before && entry.at < before.entry.at)) return false;
    return !this.contradictsEarlier(entry);
  }

  contradictsEarlier(entry) {
    const { run, kind } = entry;
    if (kind === 'log.submitted') {
      return (
        this.sealed.has(run) || (this.submitted.has(run) && this.submitted.get(run) !== entry.first)
      );
    }
    if (kind === 'log.sealed')
      return this.sealed.has(run) && !sameJson(this.sealed.get(run), sealOf(entry));
    if (kind === 'log.thread')
      return (this.threads.get(entry.thread)?.at(-1).entries ?? 0) >= entry.entries;
    return false;
  }
}

/** Reads the logs of a bundle once. */
export async function logsOf(store) {
  store.logs ??= await Promise.all(
    [...store.refs]
      .filter(([ref]) => ref.startsWith('refs/handoff/logs/'))
      .sort(([a], [b]) => compareNames(a, b))
      .map(([ref, head]) => Log.read(store, ref, head)),
  );
  return store.logs;
}
