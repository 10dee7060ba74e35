// The legal transitions of items and documents (section 6).

import { sameJson, sameSet } from '../json.mjs';
import { haveClash } from '../names.mjs';
import { readSchema } from '../schemas.mjs';
import { productOf } from '../plan/items.mjs';
import { isExitLegal } from './blocks.mjs';

/** Returns the patches of items that count for the reference state of protected files. */
function referencePatches(replay, item, inputRefs) {
  const consumed = Object.values(inputRefs)
    .filter(({ select }) => select.kind === 'patch')
    .map(({ from }) => replay.items.get(from));
  const continued = replay.items.get(item.definition.continues);
  const counts = (each) =>
    each?.status === 'done' && !replay.isRed(each) && !each.end.protectedJudged;
  return [...consumed, ...replay.appliedItems(item), continued]
    .filter(counts)
    .map(({ products }) => products.patch)
    .filter(Boolean);
}

function addProducedDocuments(replay, item, entry) {
  for (const declared of item.definition.produces ?? []) {
    if (declared.kind !== 'document') continue;
    replay.addRevision(declared.name, {
      ...entry.products[`documents/${declared.name}`],
      schema: declared.schema ? readSchema(declared.schema) : null,
    });
  }
}

/** Returns true if the key decided another vote with the same dependencies. */
function hasVotedBefore(replay, item, key) {
  const subject = sameSet(replay.dependencies(item.id));
  return [...replay.items.values()].some(
    (other) =>
      other !== item &&
      other.end?.kind === 'item.decided' &&
      other.end.by === key &&
      replay.isVote(other.id) &&
      sameSet(replay.dependencies(other.id)) === subject,
  );
}

/** Applies an entry of an item, or of a document, by its kind. Returns false if it is not legal. */
export const itemTransitions = {
  'item.fired'(replay, entry, item) {
    if (item.status !== null || replay.isClosed) return false;
    const { executor, maxAttempts = Infinity, resourceLocks } = item.definition;
    if (executor === 'approval' || entry.attempt !== item.attemptCount + 1) return false;
    if (item.limitedAttempts >= maxAttempts || !replay.areAllMet(item.id)) return false;
    if (replay.isShared && !('driver' in entry)) return false;
    if (replay.running.size >= (replay.plan.concurrency ?? Infinity)) return false;
    const held = [...replay.running].flatMap((id) => replay.items.get(id).definition.resourceLocks);
    if (resourceLocks.some((lock) => held.includes(lock))) return false;
    item.settle('running', null);
    item.holder = entry.driver ?? null;
    replay.running.add(item.id);
    item.referencePatches = referencePatches(replay, item, entry.inputRefs);
    item.attemptCount++;
    item.limitedAttempts++;
    return true;
  },

  'item.reconciled'(replay, entry, item) {
    const isDone = entry.status === 'done';
    const isRunning = item.status === 'running' && entry.attempt === item.attemptCount;
    const isRefused = item.status === null && !isDone;
    if (!(entry.attempt > 0 ? isRunning : isRefused)) return false;
    if ((entry.driver ?? null) !== item.holder || !isExitLegal(entry.exit, isDone)) return false;
    if (!isDone && Object.keys(entry.products).length > 0) return false;
    if ('reused' in entry && (!isDone || 'exit' in entry || 'transcript' in entry)) return false;
    const isClaimed = isDone && item.definition.executor === 'claimed';
    if ('grade' in entry !== isClaimed) return false;
    if (isDone && !hasDeclaredProducts(item.definition, entry.products)) return false;
    item.settle(entry.status, entry.reason, entry);
    if (isDone) addProducedDocuments(replay, item, entry);
    return true;
  },

  'item.decided'(replay, entry, item) {
    if (item.status !== null || replay.isClosed) return false;
    const { executor, inputs } = item.definition;
    if (executor !== 'approval' || entry.attempt !== item.attemptCount) return false;
    if (!replay.areAllMet(item.id)) return false;
    const subject = replay.subjectOfDecision(item.id);
    if (subject === null || !sameJson(subject, entry.about)) return false;
    const { approvers = [entry.by] } = inputs;
    if (!Array.isArray(approvers) || !approvers.includes(entry.by)) return false;
    const isVote = replay.isVote(item.id);
    if (isVote && hasVotedBefore(replay, item, entry.by)) return false;
    const isApproved = entry.decision === 'approved';
    if (entry.status !== (isApproved || isVote ? 'done' : 'failed')) return false;
    const message = 'message' in entry ? `: ${entry.message}` : '';
    item.settle(entry.status, isApproved ? null : `rejected${message}`, entry);
    return true;
  },

  'item.retried'(replay, entry, item) {
    if (item.status !== 'running' || entry.attempt !== item.attemptCount) return false;
    if (entry.reason !== 'failure' || !isExitLegal(entry.exit)) return false;
    if ((entry.driver ?? null) !== item.holder || !isTakeOverLegal(entry)) return false;
    item.settle(null, entry.detail);
    return true;
  },

  'item.requeued'(replay, entry, item) {
    if (entry.attempt !== item.attemptCount || !isExitLegal(entry.exit)) return false;
    const byOperator = entry.reason === 'operator';
    if (byOperator) {
      const canRestart = ['running', 'failed', 'skipped', 'cancelled'].includes(item.status);
      if (!canRestart || replay.isClosed || replay.superseded.has(item.id)) return false;
    } else if (entry.reason === 'failure' || item.status !== 'running') return false;
    // An operator need not name the driver.
    const mustName = !byOperator || 'driver' in entry;
    if (mustName && (entry.driver ?? null) !== item.holder) return false;
    if (!isTakeOverLegal(entry)) return false;
    item.limitedAttempts = byOperator ? 0 : item.limitedAttempts - 1;
    item.settle(null, entry.detail);
    return true;
  },

  'item.skipped'(replay, entry, item) {
    if (item.status !== null || entry.attempt !== item.attemptCount) return false;
    if (!replay.dependencies(item.id).some((each) => replay.isLost(item.id, each))) return false;
    item.settle('skipped', entry.reason);
    return true;
  },

  'item.cancelled'(replay, entry, item) {
    if (item.hasEnded || entry.attempt !== item.attemptCount) return false;
    item.settle('cancelled', entry.reason);
    return true;
  },

  'document.written'(replay, entry) {
    if (replay.isClosed) return false;
    const latest = replay.latestRevision(entry.name);
    if (entry.revision !== (latest?.revision ?? 0) + 1) return false;
    if (entry.previous !== latest?.sha256) return false;
    const others = [...replay.declaredDocuments, ...replay.documents.keys()];
    const clashes = others.some((other) => other !== entry.name && haveClash([other, entry.name]));
    if (clashes) return false;
    const { sha256: digest, oid, size, schema = null } = entry;
    replay.addRevision(entry.name, { sha256: digest, oid, size, schema });
    return true;
  },
};

function hasDeclaredProducts(definition, products) {
  const documents = new Set();
  for (const declared of definition.produces ?? []) {
    const product = products[productOf(declared)];
    if (!product) return false;
    if (declared.kind !== 'document') continue;
    if (!sameJson(product, products[`outputs/${declared.path}`])) return false;
    documents.add(productOf(declared));
  }
  return Object.keys(products).every((key) => !key.startsWith('documents/') || documents.has(key));
}

/** Returns true if an entry has `because` exactly with the reason `lost`, and `taker` only then. */
function isTakeOverLegal({ reason, driver, taker, because }) {
  if (reason !== 'lost') return taker === undefined && because === undefined;
  return driver !== undefined && because !== undefined && taker !== driver;
}
