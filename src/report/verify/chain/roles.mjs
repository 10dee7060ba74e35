// Which keys may sign which entries: roles and statements (section 6).

import { sameJson } from '../json.mjs';
import { secondsOf } from '../values.mjs';
import { roles } from '../entries/kinds.mjs';
import { readQuotedCommit } from '../entries/commit.mjs';

/** The roles for kinds of entries other than those of owners. */
const rolesByKind = {
  'run.shared': ['own', 'work'],
  'item.fired': ['work'],
  'item.reconciled': ['work'],
  'item.retried': ['work'],
  'item.skipped': ['own', 'work'],
  'run.closed': ['own', 'work'],
  'run.sealed': ['seal'],
  'run.concluded': roles,
};

/**
 * Returns the roles of which a key must have one to sign the entry. `holders` has the keys of the
 * attempts that drivers hold, by item.
 */
function rolesFor(entry, holders) {
  const { kind } = entry;
  const byStatement = ['own', 'work'];
  if (kind === 'item.requeued') {
    if (entry.reason === 'crash') return ['work'];
    if (entry.reason !== 'operator') return byStatement;
    if ('driver' in entry) return ['work'];
    return holders.has(entry.item) ? ['own'] : byStatement;
  }
  if (kind === 'item.decided') return 'said' in entry ? byStatement : ['approve'];
  if (kind === 'document.written') return 'said' in entry ? byStatement : ['document'];
  if (kind === 'run.extended') return entry.cause === 'actor' ? ['own'] : roles;
  return rolesByKind[kind] ?? ['own'];
}

/** Returns a map from each writer to its roles by entry 0. */
export function rolesOfEntryZero(entry) {
  const byKey = new Map();
  for (const [key, named] of Object.entries(entry.roles)) {
    const given = new Set(named);
    if (given.has('own') || given.has('work')) given.add('seal');
    byKey.set(key, given);
  }
  return byKey;
}

export function withRole(current, { key, role }) {
  return new Map(current).set(key, new Set([...(current.get(key) ?? []), role]));
}

export const withoutKey = (current, key) => new Map([...current].filter(([each]) => each !== key));

/** Reads the statement in `said`, or returns null unless it is a statement of the entry. */
export async function readStatement(entry, firstHash) {
  const commit = await readQuotedCommit(entry.said);
  const said = commit.entry;
  const isDecision = entry.kind === 'item.decided';
  if (!said || !commit.signer || said.kind !== (isDecision ? 'log.decided' : 'log.written'))
    return null;
  if (commit.signer !== said.log || said.run !== entry.run || said.first !== firstHash) return null;
  const isFirst = said.seq === 0;
  if (commit.parents.length !== (isFirst ? 0 : 1) || 'prev' in said === isFirst) return null;
  const shared = isDecision
    ? ['item', 'decision', 'about', 'message']
    : ['name', 'schema', 'sha256', 'oid', 'size'];
  if (!shared.every((field) => sameJson(said[field], entry[field]))) return null;
  if (isDecision ? entry.by !== said.log : entry.author !== said.actor) return null;
  if (!isDecision && 'previous' in said && said.previous !== entry.previous) return null;
  return { key: commit.signer, seconds: secondsOf(said.made ?? said.at), commit };
}

export const conductsRun = (entry) => entry.kind !== 'item.decided' && entry.kind !== 'document.written';

/**
 * Judges who signed the entries of a chain, and notes the roles before each entry in
 * `commit.rolesBefore`. Returns the keys that count: {key, seconds, conducts, entry}.
 */
export async function checkRoles(commits, report) {
  const keys = [];
  const first = commits[0]?.entry.kind === 'run.submitted' ? commits[0] : null;
  const initial = first ? rolesOfEntryZero(first.entry) : new Map();
  let current = initial;
  const holders = new Map();
  for (const commit of commits) {
    const { entry, signer } = commit;
    commit.rolesBefore = current;
    const fault =
      signer === null ? 'signature' : faultOfSigner(commit, { first, initial, current, holders });
    if (fault) report(codeOfSignerFault(fault), commit, textOfSignerFault(fault, commit));
    if (signer !== null)
      keys.push({ key: signer, seconds: commit.seconds, conducts: conductsRun(entry), entry });
    // A decision by another key than its signer's has its effects nevertheless.
    if (!fault || fault === 'decided-by') {
      if (entry.kind === 'run.admitted') current = withRole(current, entry);
      else if (entry.kind === 'run.dismissed') current = withoutKey(current, entry.key);
      else if (entry.kind === 'item.fired' && 'driver' in entry) holders.set(entry.item, signer);
      else if (entry.kind.startsWith('item.')) holders.delete(entry.item);
    }
    if (!('said' in entry) || signer === null) continue;
    commit.statement = await readStatement(entry, first?.hash);
    const role = entry.kind === 'item.decided' ? 'approve' : 'document';
    if (commit.statement && commit.rolesBefore.get(commit.statement.key)?.has(role)) {
      const { key, seconds } = commit.statement;
      keys.push({ key, seconds, conducts: false, entry });
    } else {
      const text = `entry ${entry.seq} has no statement of a key with the role ${role}`;
      report('statement', commit, text);
    }
  }
  return keys;
}

/** Returns true if an owner of the run admits a key to seal this very run. */
export const isSealAdmission = ({ kind, role, first: named }, signer, initial, first) =>
  kind === 'run.admitted' &&
  role === 'seal' &&
  initial.get(signer)?.has('own') === true &&
  named === first?.hash;

function faultOfSigner({ entry, signer }, { first, initial, current, holders }) {
  const held = current.get(signer);
  if (!held || !rolesFor(entry, holders).some((role) => held.has(role))) return 'role';
  const isAdmission = entry.kind === 'run.admitted' && entry.role === 'seal';
  if (isAdmission && !isSealAdmission(entry, signer, initial, first)) return 'admission';
  if (endsForHolder(entry) && (holders.get(entry.item) ?? signer) !== signer) return 'role';
  if (entry.because === 'dismissed' && current.has(holders.get(entry.item))) return 'role';
  if (entry.kind === 'item.decided' && !('said' in entry) && entry.by !== signer)
    return 'decided-by';
  return null;
}

/** Returns true if the entry ends an attempt in the name of the driver that holds it. */
function endsForHolder(entry) {
  if (!('driver' in entry)) return false;
  if (entry.kind === 'item.requeued') return entry.reason !== 'lost';
  return entry.kind === 'item.reconciled' || entry.kind === 'item.retried';
}

const codeOfSignerFault = (fault) => (fault === 'signature' ? fault : 'role');

function textOfSignerFault(fault, { entry, signer }) {
  const number = `entry ${entry.seq}`;
  if (fault === 'signature') return `${number} has no signature that matches`;
  if (fault === 'role') return `${number}: the key ${signer} has no role for ${entry.kind}`;
  if (fault === 'admission') return `${number} admits a key to seal, and its signer may not`;
  return `${number} is a decision by ${entry.by}, signed by another key`;
}
