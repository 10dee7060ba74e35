// Findings, their codes, and the rows and the failure that follow from them (section 9).

import { digestOf } from './crypto/hashes.mjs';

export const rowNames = ['chain', 'root', 'signature', 'anchor', 'handoff', 'plan', 'manifest', 'content'];

/** The order in which failures are named. */
const failureOrder = [
  'chain',
  'anchor-missing',
  'root',
  'signature',
  'manifest',
  'plan',
  'handoff',
  'content',
  'mismatch',
  'conflict',
  'required',
  'not-sealed',
  'incomplete',
];

/** The codes of findings that each row of a run can have (section 9). */
export const codesOfRows = {
  chain: [
    'ref',
    'object',
    'not-read',
    'entry',
    'seq',
    'prev',
    'parents',
    'time',
    'first',
    'misplaced',
    'after-seal',
    'other-run',
    'author',
    'paths',
    'tree-change',
    'tree-holds',
  ],
  root: [
    'not-sealed',
    'seal-root',
    'seal-entries',
    'seal-counts',
  ],
  signature: [
    'signature',
    'role',
    'admission',
    'decided-by',
    'statement',
    'key-revoked',
    'key-not-valid',
    'key-unknown',
    'other-signer',
  ],
  anchor: [
    'anchor-differs',
    'anchor-missing',
    'anchor-broken',
    'driven-twice',
    'same-id',
  ],
  handoff: [
    'unknown-item',
    'need',
    'input',
    'input-source',
    'input-bytes',
    'reused',
    'import',
    'continues',
    'other-source',
  ],
  plan: [
    'plan-unread',
    'plan-digest',
    'plan-invalid',
    'plan-items',
    'plan-entry',
    'rules-unread',
    'rules-digest',
    'rules-invalid',
    'rules-twice',
    'pipeline-unread',
    'pipeline-digest',
    'pipeline-invalid',
    'pipeline-name',
    'pipelines',
    'protected',
    'imports',
    'item-unread',
    'item-digest',
    'item-invalid',
    'transition',
    'rule',
    'rule-document',
    'rule-waits',
    'stopped',
    'blocks',
    'state',
    'other-plan',
    'other-base',
  ],
  manifest: [
    'manifest-unread',
    'manifest-digest',
    'manifest-invalid',
    'manifest-entry',
    'manifest-plan',
  ],
  content: [
    'content-unread',
    'content-bytes',
  ],
};

/** The failures of codes whose failure is not their row. */
const failureOfCode = {
  'not-sealed': 'not-sealed',
  'other-signer': 'mismatch',
  'anchor-differs': 'root',
  'anchor-missing': 'anchor-missing',
  'anchor-broken': 'anchor-missing',
  'driven-twice': 'conflict',
  'same-id': 'conflict',
  'other-source': 'mismatch',
  'other-plan': 'mismatch',
  'other-base': 'mismatch',
};
export const failureOf = ({ row, code }) => failureOfCode[code] ?? row;
export const codesOfDistrust = ['key-revoked', 'key-not-valid', 'key-unknown'];

/** Returns a number and a noun, such as `1 entry` and `2 entries`. */
export function counted(number, singular, plural = singular + 's') {
  return `${number} ${number === 1 ? singular : plural}`;
}

/** The findings, and the rows that are open, of one verification. */
export class Findings {
  constructor() {
    this.list = [];
    /** Row to the reason why it is open. */
    this.open = new Map();
    /** True if a row other than content is open because an object is not here. */
    this.isIncomplete = false;
    this.details = {};
  }

  /** Adds a finding; `place` may have `entry` (its number), `item` and `path`. */
  add(row, code, text, place = {}) {
    this.list.push({ row, code, text, ...place });
  }

  addOpen(row, reason) {
    if (!this.open.has(row)) this.open.set(row, reason);
  }

  addLeftOut(row) {
    this.addOpen(row, 'objects are left out');
    if (row !== 'content') this.isIncomplete = true;
  }

  of(row) {
    return this.list.filter((finding) => finding.row === row);
  }

  codesOf(row) {
    return [...new Set(this.of(row).map(({ code }) => code))];
  }

  has(row) {
    return this.of(row).length > 0;
  }

  /** Returns {rows, codes, failure, isTampered}. */
  conclude(names = rowNames) {
    const rows = {};
    const codes = {};
    const failures = this.list.map(failureOf);
    for (const row of names) {
      const found = this.of(row);
      if (found.length > 0) {
        const more = found.length > 1 ? ` (and ${found.length - 1} more)` : '';
        rows[row] = { state: 'fail', detail: found[0].text + more };
        const named = this.codesOf(row).filter((code) => code !== null);
        if (named.length > 0) codes[row] = named;
      } else if (this.open.has(row)) {
        rows[row] = { state: 'open', detail: this.open.get(row) };
      } else {
        rows[row] = { state: 'ok', detail: this.details[row] ?? '' };
      }
    }
    const doubts = ['anchor-missing', 'mismatch', 'conflict', 'not-sealed'];
    const isTampered = this.list.some(
      (finding) => !codesOfDistrust.includes(finding.code) && !doubts.includes(failureOf(finding)),
    );
    if (failures.length === 0 && this.isIncomplete) failures.push('incomplete');
    const failure = failureOrder.find((each) => failures.includes(each)) ?? null;
    return { rows, codes, failure, isTampered };
  }
}

export function headlineOf({ failure, isTampered }, isTrusted) {
  if (failure === null) return isTrusted ? 'INTACT · tamper-detecting' : 'INTACT · unknown key';
  if (isTampered) return 'TAMPERED';
  const words = {
    'anchor-missing': 'NOT ANCHORED',
    signature: 'UNTRUSTED',
    mismatch: 'MISMATCH',
    required: 'MISMATCH',
    conflict: 'CONFLICT',
    'not-sealed': 'NOT SEALED',
  };
  return words[failure] ?? 'INCOMPLETE';
}

export const isPartial = (outcome) =>
  Boolean(outcome) && (outcome.done !== outcome.total || 'said' in outcome || 'stopped' in outcome);

export function exitOf(failure, outcome) {
  if (failure !== null) return 3;
  return isPartial(outcome) ? 4 : 0;
}

const textsOfKeys = {
  'key-revoked': 'is revoked',
  'key-not-valid': 'is not valid at its time',
  'key-unknown': 'is not known to the signers',
  'other-signer': 'is not the one that is asked for',
};

/** Judges the keys that count, and returns the list of signers for the report. */
export function judgeKeys(keys, signers, findings) {
  const listed = new Map();
  for (const { key, seconds, conducts, entry } of keys) {
    const code = signers.judge(key, seconds, conducts);
    const principal = signers.principalOf(key);
    const before = listed.get(key)?.trusted ?? signers.lines.has(key);
    const trusted = before && code === null;
    listed.set(key, { fingerprint: key, principal, trusted, unknown: principal === null });
    if (code === null) continue;
    const place = entry ? { entry: entry.seq } : {};
    const where = entry ? `entry ${entry.seq}: ` : '';
    findings.add('signature', code, `${where}the key ${key} ${textsOfKeys[code]}`, place);
  }
  const list = [...listed.values()];
  const unknown = list.filter((signer) => !signer.trusted);
  if (unknown.length > 0) {
    const words = unknown.map(({ fingerprint }) => `valid, key ${fingerprint} not known to you`);
    findings.addOpen('signature', words.join('; '));
  }
  findings.details.signature = list
    .map(({ fingerprint, principal }) => `ed25519 ${fingerprint} · trusted as ${principal}`)
    .join('; ');
  return list;
}

/** Compares the plan and the base of entry 0 with those that the verifier requires. */
export function compareExpected({ plan, base }, entry, findings, isSamePlan = () => false) {
  if (plan != null && digestOf(plan) !== entry.plan && !isSamePlan(plan))
    findings.add('plan', 'other-plan', 'the run has another plan than the one that is asked for');
  if (base != null && base !== entry.base)
    findings.add('plan', 'other-base', `the run starts from ${entry.base}`);
}
