// Verifies one run, row by row.

import { limits } from '../limits.mjs';
import { areNamed } from '../crypto/hashes.mjs';
import { settings } from '../crypto/ed25519.mjs';
import { pickFields } from '../json.mjs';
import { encodeSegment } from '../names.mjs';
import { readManifest } from '../plan/manifest.mjs';
import { mostPathWork } from '../protected/protected.mjs';
import { Chain } from '../chain/chain.mjs';
import { Findings, rowNames } from '../findings.mjs';
import { checkChain, checkSigners } from './chain.mjs';
import { checkAnchors, checkRoot } from './root.mjs';
import { checkContent } from './content.mjs';
import { checkPlan } from './plan.mjs';

/** Verifies one run of a store. */
export class RunVerifier {
  constructor(store, run, options, signers, sources = new Set()) {
    this.store = store;
    this.run = run;
    this.options = options;
    this.signers = signers;
    /** The runs that are being verified, so that sources of imports end. */
    this.sources = new Set([...sources, run]);
    this.findings = new Findings();
    this.keys = [];
    this.replay = null;
    this.outcome = null;
    /** True if an added item cannot be read, which ends the replay. */
    this.isUnread = false;
    this.seal = null;
    this.manifestCount = 0;
    this.inputCount = 0;
    /** Item to the commit of its latest dispatch. */
    this.dispatches = new Map();
    /** Pipeline name to the bytes that the first entry with this name names. */
    this.pipelineNames = new Map();
    /** What comparing paths with pathspecs may still cost. */
    this.pathWork = { left: mostPathWork };
    /** The items whose protected files were not recomputed: {item, reason}. */
    this.notRecomputed = [];
  }

  async verify() {
    const ref = `refs/handoff/runs/${encodeSegment(this.run)}`;
    this.head ??= this.store.refs.get(ref);
    this.chain = new Chain(this.store, this.head);
    this.commits = this.chain.valid;
    for (const { code, text } of this.chain.faults) this.findings.add('chain', code, text);
    if (!this.chain.hasRef) {
      this.findings.add('root', 'not-sealed', 'not sealed: the ref names no run');
      for (const row of rowNames) {
        if (!['chain', 'root', 'anchor'].includes(row)) this.findings.addOpen(row, 'no entry can be read');
      }
      await checkAnchors(this);
      return;
    }
    const first = this.chain.isWhole ? this.commits[0] : undefined;
    this.first = first ?? null;
    this.begin = first?.entry.kind === 'run.submitted' ? first : null;
    checkChain(this);
    await this.chain.signatures;
    await checkSigners(this);
    if (!this.chain.isWhole) {
      this.openUnreadable();
      checkContent(this);
      return;
    }
    checkRoot(this);
    if (this.findings.failsBy('chain')) return;
    await settings.pause();
    await checkPlan(this);
    if (this.findings.failsBy('plan')) return;
    checkContent(this);
    if (!this.findings.failsBy('content')) await checkAnchors(this);
  }

  openUnreadable() {
    if (this.chain.isLeftOut) this.findings.addLeftOut('chain');
    for (const row of rowNames) {
      if (!['chain', 'content'].includes(row))
        this.findings.addOpen(row, 'the chain cannot be read to its first entry');
    }
    if (this.commits.length === 0) this.findings.addOpen('content', 'no entry was read');
  }

  /** Adds a finding about an entry; `more` may have the path. */
  report(row, code, { entry }, text, more = {}) {
    const place = pickFields(entry, ['item']);
    this.findings.add(row, code, text, { entry: entry.seq, ...place, ...more });
  }

  /** Adds a finding about bytes of an entry. The first entry is entry 0, whatever it says. */
  reportFile(row, code, commit, text, path) {
    const isFirst = commit === this.begin;
    this.report(row, code, commit, text, isFirst ? { entry: 0, path } : { path });
  }

  /**
   * Reads bytes that an entry names. Returns null if they are missing or too large, and undefined
   * if they are left out, which leaves `rows` open. The caller compares them with their names.
   */
  readNamed({ oid }, rows, size = limits.file) {
    const bytes = this.store.readBlob(oid);
    if (bytes === null && this.store.isLeftOut(oid)) {
      for (const row of rows) this.findings.addLeftOut(row);
      return undefined;
    }
    return bytes !== null && bytes.length <= size ? bytes : null;
  }

  /** Returns the manifest of the latest dispatch of an item, null, or undefined like `readNamed`. */
  readDispatchedManifest(item, rows) {
    const dispatch = this.dispatches.get(item);
    if (!dispatch) return null;
    const named = dispatch.entry.manifest;
    const bytes = this.readNamed(named, rows, limits.manifest);
    if (!bytes) return bytes;
    return areNamed(bytes, named) ? readManifest(bytes) : null;
  }

  /** Adds the keys of evidence, whose findings stand at the entry that has it. */
  addKeysOf(keys, { entry }) {
    this.keys.push(...keys.map((key) => ({ ...key, conducts: false, entry })));
  }

  addOtherSource(text) {
    this.findings.add('handoff', 'other-source', text);
  }

  /** Adds the findings about the sources of a source. */
  addFarSources({ findings }) {
    for (const { code, text } of findings.list)
      if (code === 'other-source') this.addOtherSource(text);
  }

  /** Verifies a run of the bundle that is a source of this one, or returns null. */
  async verifySource(run) {
    if (this.sources.has(run) || !this.store.refs.has(`refs/handoff/runs/${encodeSegment(run)}`))
      return null;
    const source = new RunVerifier(this.store, run, {}, this.signers, this.sources);
    await source.verify();
    return source;
  }
}
