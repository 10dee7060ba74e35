// Verifies a thread and returns its report (section 10).

import { digestOfBlob } from '../crypto/hashes.mjs';
import { sameJson } from '../json.mjs';
import { encodeSegment } from '../names.mjs';
import { Chain } from '../chain/chain.mjs';
import { Signers } from '../chain/signers.mjs';
import { logsOf } from '../chain/log.mjs';
import { codesOfDistrust, counted, Findings, judgeKeys } from '../findings.mjs';
import { linkOf, reportOf } from '../report.mjs';
import { contentOf, maxLineage, sourceOfThread, ThreadChain, threadRows } from './chain.mjs';
import { RunVerifier } from '../run/verifier.mjs';

/** Verifies one thread of a store. */
class ThreadVerifier {
  constructor(store, name, options) {
    this.store = store;
    this.name = name;
    this.options = options;
    this.signers = new Signers(options);
    this.findings = new Findings();
    this.keys = [];
    this.lineage = [];
  }

  async verify() {
    const { findings } = this;
    const head = this.store.refs.get(`refs/handoff/threads/${encodeSegment(this.name)}`);
    this.thread = await ThreadChain.read(this.store, this.name, head);
    const { thread } = this;
    for (const { text, entry } of thread.faults) findings.add('chain', null, text, { entry });
    for (const { entry } of thread.unsigned()) {
      const text = `entry ${entry.seq} is not signed by the key of the thread`;
      findings.add('signature', 'signature', text, { entry: entry.seq });
    }
    for (const { signer: key, seconds, entry } of thread.commits) {
      if (key !== null) this.keys.push({ key, seconds, conducts: true, entry });
    }
    if (thread.commits.length === 0) findings.addOpen('signature', 'no entry could be read');
    const entries = counted(thread.commits.length, 'entry', 'entries');
    findings.details.chain = `${entries}, hash-linked, no gaps`;
    if (!thread.isWhole) {
      if (thread.isLeftOut) findings.addLeftOut('chain');
      for (const row of ['anchor', 'lineage'])
        findings.addOpen(row, 'the thread cannot be read to its first entry');
      return;
    }
    await this.checkAnchor();
    await this.checkLineage();
    for (const chain of [thread, ...this.lineage]) {
      await this.checkRuns(chain);
      this.checkContent(chain);
    }
    const isTied = [thread, ...this.lineage].some((chain) => chain.tiedRuns.length > 0);
    if (this.lineage.length === 0 && !isTied) findings.addOpen('lineage', 'it began by itself');
    findings.details.content = `${counted(thread.checkpoints.size, 'checkpoint')} re-hashed`;
  }

  async checkAnchor() {
    const { findings, thread } = this;
    const report = (text) => findings.add('anchor', null, text);
    const isHeld = await this.compareLogs(thread, true, report);
    const own = (await logsOf(this.store)).filter(({ key }) => key === thread.key);
    if (own.some(({ isUnread }) => isUnread)) findings.addLeftOut('anchor');
    else if (!isHeld) findings.addOpen('anchor', 'no log at hand holds the thread');
    findings.details.anchor = 'local (detect)';
  }

  /**
   * Compares a thread with the latest sound statement of each log at hand, and then with all
   * statements of its key. If the thread is `isWhole`, the logs also say how long it is. Returns
   * true if a log holds the thread.
   */
  async compareLogs(chain, isWhole, report) {
    const logs = await logsOf(this.store);
    const own = logs.filter(({ key }) => key === chain.key);
    const faults = [];
    let isHeld = false;
    const compare = (log, { first, last, lastSeq }) => {
      const found = chain.commits[lastSeq]?.hash;
      if (chain.commits[0].hash !== first) faults.push(`the log ${log.ref} names another entry 0`);
      else if (found === last) isHeld = true;
      else if (found !== undefined)
        faults.push(`the log ${log.ref} names another entry ${lastSeq}`);
      else if (isWhole) faults.push(`the log ${log.ref} knows of entry ${lastSeq}`);
    };
    const latest = (log) => log.threads.get(chain.name);
    for (const log of logs) {
      if (latest(log) && (own.includes(log) || isWhole)) compare(log, latest(log));
    }
    if (faults.length === 0)
      for (const { isBroken, ref } of own) if (isBroken) faults.push(`the log ${ref} is broken`);
    // Earlier statements matter only if the latest ones cannot be compared.
    const isUnsure = (log) => (latest(log)?.lastSeq ?? -1) >= chain.commits.length;
    for (const log of faults.length === 0 ? own.filter(isUnsure) : []) {
      for (const statement of log.signedThreads)
        if (statement.thread === chain.name) compare(log, statement);
    }
    faults.forEach((text) => report(text));
    return isHeld;
  }

  async checkLineage() {
    const { findings } = this;
    const report = (text) => findings.add('lineage', null, text);
    let chain = this.thread;
    for (let steps = 0; ; steps++) {
      const taken = chain.commits[0].entry;
      const source = sourceOfThread(taken);
      if (!source) break;
      if (steps === maxLineage) {
        report('the lineage has more than 1,000 threads');
        return;
      }
      const earlier = await ThreadChain.read(this.store, source.thread, source.commit);
      if (earlier.isLeftOut) {
        findings.addLeftOut('lineage');
        return;
      }
      const say = (text) => report(`thread ${source.thread}: ${text}`);
      this.faultsOfSource(earlier, source, taken).forEach(say);
      if (!earlier.isWhole) return;
      // No log is beside an ancestor, of which only the beginning counts.
      await this.compareLogs(earlier, false, say);
      for (const { signer, seconds, entry } of earlier.commits)
        if (signer !== null) this.judgeLineageKey(signer, seconds, `entry ${entry.seq}`);
      this.lineage.push(earlier);
      chain = earlier;
    }
    const threads = counted(this.lineage.length, 'thread');
    findings.details.lineage =
      chain === this.thread ? 'it has no source' : `${threads} back to the first`;
  }

  faultsOfSource(earlier, source, taken) {
    const faults = earlier.faults.map(({ text }) => text);
    if (earlier.unsigned().length > 0) faults.push('an entry is not signed by its key');
    const last = earlier.commits.at(-1);
    const checkpoint = last && earlier.checkpoints.get(source.checkpoint);
    if (!checkpoint || checkpoint.commit !== last) {
      faults.push(`${source.commit} is not its checkpoint ${source.checkpoint}`);
    } else if (!sameJson(checkpoint.content, contentOf(taken))) {
      faults.push('its checkpoint has another content');
    }
    if ('adopted' in taken && earlier.key !== source.signer)
      faults.push('it belongs to another key');
    return faults;
  }

  judgeLineageKey(key, seconds, text) {
    const code = this.signers.judge(key, seconds, false);
    if (code) this.findings.add('lineage', code, `${text}: the key ${key} is not trusted`);
    else if (!this.signers.lines.has(key))
      this.findings.addOpen('lineage', `key ${key} not known to you`);
  }

  /** Verifies the runs to which checkpoints are tied. */
  async checkRuns(chain) {
    for (const { id, commit: head } of chain.tiedRuns) {
      const report = (text, code = null) =>
        this.findings.add('lineage', code, `run ${id}: ${text}`);
      if (this.store.isLeftOut(head)) {
        this.findings.addLeftOut('lineage');
        continue;
      }
      const run = new RunVerifier(this.store, id, {}, this.signers);
      run.head = head;
      await run.verify();
      const rows = ['chain', 'signature', 'handoff', 'plan', 'manifest'];
      const found = run.findings.list.find(({ row }) => rows.includes(row));
      if (found) report(found.text, codesOfDistrust.includes(found.code) ? found.code : null);
      for (const { key, seconds } of run.keys) this.judgeLineageKey(key, seconds, `run ${id}`);
      await this.compareOwnRun(run, report);
    }
  }

  /** Compares the tied run with the run of its id in the bundle, and with logs. */
  async compareOwnRun(run, report) {
    const own = this.store.refs.get(`refs/handoff/runs/${encodeSegment(run.run)}`);
    const { first } = run;
    if (!first) return;
    if (own !== undefined) {
      const copy = new Chain(this.store, own);
      await copy.signatures;
      const isOfKey = copy.isWhole && copy.valid[0]?.signer === first.signer;
      if (isOfKey && !copy.commits.some(({ name }) => name === run.head))
        report('the run that is here does not have the commit');
    }
    for (const log of await logsOf(this.store)) {
      const stated = log.runs.get(run.run);
      if (!stated) continue;
      if (stated.first !== first.hash) {
        if (log.key === first.signer) report(`the log ${log.ref} has another first entry`);
        continue;
      }
      const { last, lastSeq } = stated;
      const isOtherEnd = 'root' in stated && (run.seal?.lastSeq ?? lastSeq) !== lastSeq;
      const hash = run.commits[lastSeq]?.hash ?? last;
      if (isOtherEnd || hash !== last) report(`the log ${log.ref} names another entry ${lastSeq}`);
    }
  }

  checkContent(chain) {
    for (const { name, content } of chain.checkpoints.values()) {
      const where = `${chain.name} ${name}`;
      for (const field of ['state', 'packet']) {
        if (!(field in content)) continue;
        const { oid, sha256: digest, size } = content[field];
        const bytes = this.store.readBlob(oid);
        if (bytes === null) this.reportMissing(oid, `the ${field} of ${where}`);
        else if (digestOfBlob(bytes) !== digest || bytes.length !== size) {
          this.findings.add('content', 'content-bytes', `the ${field} of ${where} has other bytes`);
        }
      }
      if (content.worktree) this.checkWorktree(content.worktree.tree, where, new Set());
    }
  }

  reportMissing(oid, what) {
    if (this.store.isLeftOut(oid)) this.findings.addLeftOut('content');
    else
      this.findings.add('content', 'content-unread', `${what}: object ${oid} is not in the bundle`);
  }

  checkWorktree(oid, where, seen) {
    if (seen.has(oid)) return;
    seen.add(oid);
    const tree = this.store.readTree(oid);
    if (!tree?.isWellFormed) {
      this.reportMissing(oid, `a folder of the working tree of ${where}`);
      return;
    }
    for (const node of tree.nodes) {
      if (node.isFolder) this.checkWorktree(node.oid, where, seen);
      else if (node.mode !== '160000' && this.store.readBlob(node.oid) === null) {
        this.reportMissing(node.oid, `the file ${node.name} of the working tree of ${where}`);
      }
    }
  }
}

function headlineOfThread({ failure, isDistrust }, isTrusted) {
  if (failure === null) return isTrusted ? 'INTACT' : 'INTACT · unknown key';
  if (failure === 'incomplete') return 'INCOMPLETE';
  if (failure === 'mismatch') return 'MISMATCH';
  return isDistrust ? 'UNTRUSTED' : 'TAMPERED';
}

/** Verifies a thread of a store and returns the report. */
export async function verifyThread(store, name, options = {}) {
  const verifier = new ThreadVerifier(store, name, options);
  await verifier.verify();
  const { findings, signers, thread } = verifier;
  const listed = judgeKeys(verifier.keys, signers, findings);
  const { rows, codes } = findings.conclude(threadRows);
  const failed = threadRows.filter((row) => rows[row].state === 'fail');
  const found = findings.list.map(({ code }) => code);
  const isMismatch = failed.length > 0 && found.every((code) => code === 'other-signer');
  const isDistrust = found.every((code) => codesOfDistrust.includes(code));
  const failure = isMismatch
    ? 'mismatch'
    : (failed[0] ?? (findings.isIncomplete ? 'incomplete' : null));
  const concluded = { rows, codes, failure, isDistrust };
  return {
    kind: 'thread',
    thread: name,
    ...reportOf(concluded, headlineOfThread, listed, null),
    decisions: [],
    entries: thread.commits.length,
    findings: findings.list,
    links: thread.commits.map(linkOf),
  };
}
