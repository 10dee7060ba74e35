// Findings, their codes, and the rows and the failure that follow from them (section 9).

import { digestOf } from './crypto/hashes.mjs';

// The rows in their order, and the stages in theirs, each with its codes: [code, row, failure if not
// the row].
// codes: a test writes them from src/verify/codes.rs, up to the end
export const rowNames = ['chain', 'root', 'signature', 'anchor', 'handoff', 'plan', 'manifest', 'content'];
const codesOfStages = {
  chain: [
    ['ref', 'chain'],
    ['object', 'chain'],
    ['entry', 'chain'],
    ['order', 'chain'],
    ['misplaced', 'chain'],
    ['paths', 'chain'],
    ['signature', 'signature'],
    ['role', 'signature'],
    ['statement', 'signature'],
    ['seal-root', 'root'],
  ],
  plan: [
    ['bytes-missing', 'plan'],
    ['bytes', 'plan'],
    ['plan-invalid', 'plan'],
    ['plan-entry', 'plan'],
    ['rules-invalid', 'plan'],
    ['pipelines', 'plan'],
    ['imports', 'plan'],
    ['proof', 'handoff'],
    ['item-invalid', 'plan'],
    ['unknown-item', 'handoff'],
    ['need', 'handoff'],
    ['input', 'handoff'],
    ['input-bytes', 'handoff'],
    ['manifest-invalid', 'manifest'],
    ['manifest-plan', 'manifest'],
    ['rule-document', 'plan'],
    ['rule', 'plan'],
    ['blocks', 'plan'],
    ['transition', 'plan'],
    ['protected', 'plan'],
    ['rule-waits', 'plan'],
    ['stopped', 'plan'],
  ],
  content: [
    ['content-unread', 'content'],
    ['content-bytes', 'content'],
  ],
  policy: [
    ['anchor-differs', 'anchor', 'root'],
    ['key-revoked', 'signature'],
    ['key-not-valid', 'signature'],
    ['key-unknown', 'signature'],
    ['anchor-missing', 'anchor', 'anchor-missing'],
    ['anchor-broken', 'anchor', 'anchor-missing'],
    ['driven-twice', 'anchor', 'conflict'],
    ['same-id', 'anchor', 'conflict'],
    ['other-signer', 'signature', 'mismatch'],
    ['other-plan', 'plan', 'mismatch'],
    ['other-base', 'plan', 'mismatch'],
    ['other-source', 'handoff', 'mismatch'],
    ['not-sealed', 'root', 'not-sealed'],
  ],
};
// end

const stages = Object.keys(codesOfStages);

/** Code to {stage, rank, row, failure}; stage and rank are numbers that order findings. */
const codes = new Map(
  stages.flatMap((name, stage) =>
    codesOfStages[name].map(([code, row, failure = row], rank) => [
      code,
      { stage, rank, row, failure },
    ]),
  ),
);
export const codesOfRow = (row) => [...codes.keys()].filter((code) => codes.get(code).row === row);
export const codesOfDistrust = ['key-revoked', 'key-not-valid', 'key-unknown'];

/** The stage that first judges a row. */
const stageOfRow = (row) => Math.min(...codesOfRow(row).map((code) => codes.get(code).stage));
const isRequirement = (failure) => failure === 'mismatch' || failure === 'not-sealed';

/** Returns the place of a finding in the order of all findings: stage, entry and rank. */
function placeOf({ row, code, entry = 0 }) {
  const { stage, rank, failure } = codes.get(code) ?? { stage: stageOfRow(row), rank: -1 };
  return [stage, isRequirement(failure) ? Infinity : entry, rank];
}

function comparePlaces(one, other) {
  const [a, b] = [placeOf(one), placeOf(other)];
  const at = a.findIndex((number, i) => number !== b[i]);
  return at < 0 ? 0 : a[at] - b[at];
}

/** Returns true if a finding contradicts the run, as opposed to missing or distrusted evidence. */
export const contradicts = (finding) =>
  placeOf(finding)[0] < stages.indexOf('policy') || finding.code === 'anchor-differs';

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

  /** Returns the first finding of the first stage that has one, or null. */
  first() {
    return this.list.reduce(
      (first, each) => (first === null || comparePlaces(each, first) < 0 ? each : first),
      null,
    );
  }

  /** Returns true if a stage up to this one has a finding. */
  failsBy(stage) {
    const first = this.first();
    return first !== null && placeOf(first)[0] <= stages.indexOf(stage);
  }

  /** Returns {rows, codes, finding, failure, isTampered}. */
  conclude(names = rowNames) {
    const rows = {};
    const found = {};
    const first = this.first();
    const stage = first ? placeOf(first)[0] : Infinity;
    for (const row of names) {
      const own = this.of(row);
      const ownStage = own.length > 0 ? Math.min(...own.map((each) => placeOf(each)[0])) : null;
      if (names === rowNames && (ownStage ?? stageOfRow(row)) > stage) {
        rows[row] = { state: 'open', detail: `not judged, since the row ${first.row} fails` };
      } else if (own.length > 0) {
        const more = own.length > 1 ? ` (and ${own.length - 1} more)` : '';
        rows[row] = { state: 'fail', detail: own[0].text + more };
        const named = this.codesOf(row).filter((code) => code !== null);
        if (named.length > 0) found[row] = named;
      } else if (this.open.has(row)) {
        rows[row] = { state: 'open', detail: this.open.get(row) };
      } else {
        rows[row] = { state: 'ok', detail: this.details[row] ?? '' };
      }
    }
    const failure = first
      ? (codes.get(first.code)?.failure ?? first.row)
      : this.isIncomplete
        ? 'incomplete'
        : null;
    const isTampered = first !== null && contradicts(first);
    return { rows, codes: found, finding: first && shownFinding(first), failure, isTampered };
  }
}

/** Returns {stage, code, entry} of the first finding; a requirement has no entry. */
function shownFinding(first) {
  const [stage, entry] = placeOf(first);
  const shown = { stage: stages[stage] };
  if (first.code !== null) shown.code = first.code;
  if (entry !== Infinity) shown.entry = entry;
  return shown;
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
  if (plan != null && digestOf(plan) !== entry.plan.sha256 && !isSamePlan(plan))
    findings.add('plan', 'other-plan', 'the run has another plan than the one that is asked for');
  if (base != null && base !== entry.base)
    findings.add('plan', 'other-base', `the run starts from ${entry.base}`);
}
