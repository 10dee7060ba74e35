// Reads the logs of keys (section 8).

import { compareNames } from '../bytes.mjs';
import { pickFields, sameJson } from '../json.mjs';
import { isFingerprint } from '../values.mjs';
import { decodeSegment } from '../names.mjs';
import { checkSignatures } from '../entries/commit.mjs';
import { commitsFrom } from './chain.mjs';

const stated = (entry) => pickFields(entry, ['first', 'last', 'lastSeq', 'root']);

/** Returns true if a log may state this after its last statement about the same run or thread. */
function mayFollow(entry, before) {
  const { first, last, lastSeq } = entry;
  const hasRoot = 'run' in entry && lastSeq !== 0;
  if ('root' in entry !== hasRoot || (lastSeq === 0 && last !== first)) return false;
  if (!before || sameJson(before, stated(entry))) return true;
  return !('root' in before) && first === before.first && lastSeq > before.lastSeq;
}

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
    /** Each statement about a thread that the key signed, sound or not. */
    this.signedThreads = [];
    /** The last sound statement about each run and thread: {first, last, lastSeq, root?}. */
    this.runs = new Map();
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
    for (const { entry, signer } of commits) {
      if (entry?.kind === 'log.recorded' && 'thread' in entry && signer === this.key)
        this.signedThreads.push({ thread: entry.thread, ...stated(entry) });
    }
    for (const [i, commit] of commits.entries()) {
      if (!this.isSound(commit, i, this.sound.at(-1))) {
        this.isBroken = true;
        return;
      }
      this.sound.push(commit);
    }
  }

  /** Returns true if an entry is sound, and notes what it states. */
  isSound({ entry, signer, parents }, index, before) {
    if (!entry || !entry.kind.startsWith('log.') || entry.log !== this.key) return false;
    if (signer !== this.key || parents.length !== (index === 0 ? 0 : 1) || entry.seq !== index)
      return false;
    if (entry.prev !== before?.hash || (before && entry.at < before.entry.at)) return false;
    if (entry.kind !== 'log.recorded') return true;
    const [chains, name] = 'run' in entry ? [this.runs, entry.run] : [this.threads, entry.thread];
    if (!mayFollow(entry, chains.get(name))) return false;
    chains.set(name, stated(entry));
    return true;
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
