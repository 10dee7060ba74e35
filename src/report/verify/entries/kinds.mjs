// The kinds of entries, and the fields of each (sections 3 and 4).

import { compareNames } from '../bytes.mjs';
import { isObject } from '../json.mjs';
import {
  anyOf,
  arrayOf,
  between,
  isAttempt,
  isBoolean,
  isCount,
  isDigest,
  isFingerprint,
  isInt32,
  isObjectId,
  isPositive,
  isString,
  isTime,
  isTrue,
  mapOf,
  matches,
  notEmpty,
  oneOf,
  shape,
} from '../values.mjs';
import { decodeSegment, isDocumentName, isItemName, isPath, isRunName } from '../names.mjs';
import { isSchemaId, isWantedSchema, maxSchemaVersion } from '../schemas.mjs';

export const roles = ['own', 'work', 'approve', 'document', 'seal'];

export const isProductKey = (key) =>
  key === 'patch' ||
  (key.startsWith('outputs/') && isPath(key.slice(8))) ||
  (key.startsWith('documents/') && isDocumentName(key.slice(10)));
const productFields = { sha256: isDigest, oid: isObjectId, size: isCount };
export const isProduct = shape(productFields);
const isSchemaObject = shape({ id: isSchemaId, version: between(1, maxSchemaVersion) });

export const isSelector = anyOf(
  shape({ kind: oneOf('patch') }),
  shape({ kind: oneOf('output'), path: isPath }),
  shape({ kind: oneOf('document'), name: isDocumentName, 'schema?': isWantedSchema }),
);

export const isCheckpointName = matches(/^(?:0|[1-9][0-9]*)-[0-9a-f]{12}$/);

/** Reads a source `@run/…` or `@thread/…` (section 14). */
function isElsewhereSource(value) {
  const match = isString(value) ? /^@(run|thread)\/(.+)$/s.exec(value) : null;
  if (!match) return false;
  const parts = match[2].split('/').map(decodeSegment);
  if (parts.includes(null) || parts.length < 2 || parts.length > 3) return false;
  const [name, last] = parts.slice(-2);
  if (!isRunName(name) || (parts.length === 3 && !isPath(parts[0]))) return false;
  return match[1] === 'run' ? isItemName(last) : last === 'latest' || isCheckpointName(last);
}

export const isOwnSource = anyOf(oneOf('@artifacts', '@documents'), isItemName);
const isSource = anyOf(isOwnSource, isElsewhereSource);

const isExit = shape({ 'code?': isInt32, 'signal?': isInt32 });
const isBytesClaim = shape({ sha256: isDigest, size: isCount });
const isVerdict = shape({ passed: isBoolean, by: oneOf('command', 'self') });
const isBlocks = arrayOf(
  shape({
    ordinal: isAttempt,
    kind: oneOf('agent', 'script', 'capture'),
    status: oneOf('done', 'failed', 'timed-out', 'interrupted'),
    'exit?': isExit,
    durationMs: isCount,
    'verify?': isVerdict,
  }),
  1,
);
const isAbout = mapOf(isSource, mapOf(isProductKey, isDigest));
const isInputRefs = mapOf(isPath, shape({ from: isSource, select: isSelector, ref: isDigest }));
const isCheckRun = shape({
  argv: arrayOf(isString),
  'exit?': isExit,
  durationMs: isCount,
  output: isBytesClaim,
  'restored?': isPositive,
  'heldOut?': isDigest,
});
const isPrice = matches(/^(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{0,8}[1-9])?$/);
const isUsage = notEmpty(
  shape({
    'inputTokens?': isCount,
    'outputTokens?': isCount,
    'cachedTokens?': isCount,
    'costUsd?': isPrice,
  }),
);
const isClaims = notEmpty(isObject);

/** An array that is sorted by the bytes of its names, each of them once. */
const inOrder =
  (check, nameOf = (each) => each) =>
  (value) =>
    arrayOf(check)(value) &&
    value.every((each, i) => i === 0 || compareNames(nameOf(value[i - 1]), nameOf(each)) < 0);

/** The sorted rules of a manifest. */
export const isSortedRules = (value) =>
  arrayOf(anyOf(isString, shape({ except: inOrder(isString) })))(value) &&
  value.every((each, i) => i === 0 || compareRules(value[i - 1], each) < 0);

const isProtectedChanges = notEmpty(
  inOrder(
    shape({ path: isString, change: oneOf('added', 'modified', 'deleted', 'type') }),
    (change) => change.path,
  ),
);
const isRoleList = (value) =>
  arrayOf(oneOf(...roles), 1)(value) &&
  value.every((role, i) => i === 0 || roles.indexOf(value[i - 1]) < roles.indexOf(role));
const arePipelines = notEmpty(mapOf(isString, isProduct));

const isPacketResult = oneOf('operational', 'critical');
const sourceFields = { thread: isRunName, checkpoint: isCheckpointName, commit: isObjectId };

const isDriver = matches(/^[0-9a-f]{32}$/);

const ending = {
  item: isItemName,
  attempt: isAttempt,
};
const interruption = {
  ...ending,
  reason: oneOf('failure', 'crash', 'operator', 'lost'),
  'detail?': isString,
  'exit?': isExit,
  'durationMs?': isCount,
  'transcript?': isBytesClaim,
  'usage?': isUsage,
  'claims?': isClaims,
  'notBefore?': isTime,
  'blocks?': isBlocks,
  'driver?': isDriver,
  'taker?': isDriver,
  'because?': oneOf('silent', 'told', 'lock', 'dismissed'),
};

const kindFields = {
  'run.submitted': {
    plan: isProduct,
    artifacts: mapOf(isPath, isProduct),
    'rules?': isProduct,
    'pipelines?': arePipelines,
    'imports?': notEmpty(mapOf(isString, shape({ product: isProduct, evidence: isProduct }))),
    'continues?': shape({
      run: isRunName,
      entries: isCount,
      root: isDigest,
      evidence: isProduct,
    }),
    base: isObjectId,
    queue: isString,
    pattern: isString,
    roles: mapOf(isFingerprint, isRoleList),
    tool: isString,
  },
  'item.fired': {
    ...ending,
    manifest: isProduct,
    inputRefs: isInputRefs,
    'driver?': isDriver,
    'claims?': isClaims,
  },
  'item.reconciled': {
    ...ending,
    status: oneOf('done', 'failed'),
    'reason?': isString,
    'exit?': isExit,
    durationMs: isCount,
    products: mapOf(isProductKey, isProduct),
    'verify?': isVerdict,
    'check?': isCheckRun,
    'checkBefore?': isCheckRun,
    'transcript?': isBytesClaim,
    'reused?': shape({
      run: isRunName,
      item: isItemName,
      root: isDigest,
      'evidence?': isProduct,
    }),
    'blocks?': isBlocks,
    'usage?': isUsage,
    'claims?': isClaims,
    'reference?': isObjectId,
    'protected?': isProtectedChanges,
    'grade?': oneOf('claimed'),
    'protectedAllowed?': isTrue,
    'protectedJudged?': isTrue,
    'driver?': isDriver,
  },
  'item.decided': {
    ...ending,
    decision: oneOf('approved', 'rejected'),
    status: oneOf('done', 'failed'),
    about: isAbout,
    by: isFingerprint,
    'message?': isString,
    'said?': isString,
  },
  'item.retried': interruption,
  'item.requeued': interruption,
  'item.skipped': { ...ending, reason: isString },
  'item.cancelled': { ...ending, reason: isString },
  'document.written': {
    name: isDocumentName,
    revision: isCount,
    'schema?': isSchemaObject,
    ...productFields,
    'previous?': isDigest,
    'author?': isString,
    'said?': isString,
  },
  'run.extended': {
    cause: anyOf(oneOf('actor'), shape({ rule: isItemName })),
    items: notEmpty(mapOf(isItemName, isProduct)),
    'pipelines?': arePipelines,
  },
  'run.admitted': { key: isFingerprint, role: oneOf(...roles), 'first?': isDigest },
  'run.dismissed': { key: isFingerprint },
  'run.shared': { heartbeat: isCount, lostAfter: isCount },
  'run.concluded': { rule: isItemName, outcome: isString, 'detail?': isString },
  'run.closed': { reason: isString },
  'run.cancelled': { reason: isString },
  'run.sealed': {
    root: isDigest,
    'stopped?': notEmpty(mapOf(isItemName, isString)),
  },
  'log.recorded': {
    log: isFingerprint,
    first: isDigest,
    last: isDigest,
    lastSeq: isCount,
    'root?': isDigest,
  },
  'log.decided': {
    log: isFingerprint,
    first: isDigest,
    item: isItemName,
    decision: oneOf('approved', 'rejected'),
    about: isAbout,
    'message?': isString,
    'made?': isTime,
  },
  'log.written': {
    log: isFingerprint,
    first: isDigest,
    name: isDocumentName,
    'schema?': isSchemaObject,
    ...productFields,
    'previous?': isDigest,
    'made?': isTime,
  },
  'thread.checkpointed': {
    state: isProduct,
    'summary?': isString,
    'packet?': isProduct,
    'worktree?': shape({ tree: isObjectId, ignored: arrayOf(shape({ path: isString })) }),
    'base?': isObjectId,
    'run?': shape({ id: isRunName, commit: isObjectId }),
    'adopted?': shape({
      ...sourceFields,
      sha256: isDigest,
      descriptor: isDigest,
      nonce: isString,
      signer: isFingerprint,
      acceptedUnknown: isBoolean,
      'acceptedPacket?': isPacketResult,
      'toAgent?': isString,
    }),
    'from?': shape(sourceFields),
    'to?': isCheckpointName,
  },
  'thread.resumed': {
    checkpoint: isCheckpointName,
    'resumeToken?': isString,
    'acceptedPacket?': isPacketResult,
  },
  'archive.added': {
    runs: mapOf(isRunName, shape({ commit: isObjectId, seal: isDigest, 'stamps?': isObjectId })),
  },
};

/** Returns the header fields of a kind, one of which says what an entry is about. */
function subjectFields(kind) {
  if (kind === 'log.recorded') return ['run', 'thread'];
  if (kind.startsWith('thread.')) return ['thread'];
  return kind === 'archive.added' ? ['archive'] : ['run'];
}

const entryShapes = Object.create(null);
for (const [kind, fields] of Object.entries(kindFields)) {
  const shapeAbout = (about) =>
    shape({
      v: oneOf(2),
      kind: isString,
      [about]: about === 'archive' ? isFingerprint : isRunName,
      seq: isCount,
      at: isTime,
      actor: isString,
      'prev?': isDigest,
      'clock?': oneOf('pinned'),
      ...fields,
    });
  entryShapes[kind] = anyOf(...subjectFields(kind).map(shapeAbout));
}

/** Returns the reason why an entry is not valid, or null. */
export function faultOfEntry(entry) {
  if (!isObject(entry)) return 'it is no object';
  if (entry.v !== 2) return 'it has another version';
  if (!isString(entry.kind) || !(entry.kind in entryShapes)) return 'it has an unknown kind';
  if (!entryShapes[entry.kind](entry)) return `its fields are not those of ${entry.kind}`;
  if (entry.kind === 'run.admitted' && 'first' in entry !== (entry.role === 'seal')) {
    return 'its role and its first do not fit';
  }
  if (entry.kind === 'document.written' && 'author' in entry !== 'said' in entry) {
    return 'its author and its statement do not fit';
  }
  const isCheckpoint = entry.kind === 'thread.checkpointed';
  if (isCheckpoint && !hasLegalOrigin(entry)) return 'its origin is illegal';
  if ('made' in entry && !(entry.made < entry.at)) return 'it was made after it was recorded';
  return null;
}

/** Returns true if a checkpoint has at most one origin, which fits its number and state. */
function hasLegalOrigin(entry) {
  const [origin, ...more] = ['run', 'adopted', 'from', 'to'].filter((name) => name in entry);
  if (more.length > 0) return false;
  if (origin === 'adopted' && entry.adopted.sha256 !== entry.state.sha256) return false;
  return origin === 'to' ? entry.seq > 0 : entry.seq === 0 || !origin || origin === 'run';
}

/** Compares two rules of protected files: pathspecs first, then exceptions as lists. */
function compareRules(a, b) {
  if (isString(a) && isString(b)) return compareNames(a, b);
  if (isString(a) || isString(b)) return isString(a) ? -1 : 1;
  const at = a.except.findIndex((name, i) => name !== b.except[i]);
  if (at === -1 || at === b.except.length) return a.except.length - b.except.length;
  return compareNames(a.except[at], b.except[at]);
}
