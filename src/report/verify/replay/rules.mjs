// Which rules act in a replay, and which have stopped (section 6).

import { sortNames } from '../bytes.mjs';
import { limits } from '../limits.mjs';
import { hexOfSha256 } from '../crypto/hashes.mjs';
import { canonical, tryJson } from '../json.mjs';
import { compareBy } from '../values.mjs';
import { normaliseItem } from '../plan/items.mjs';
import { compareValues, valueAt } from './compare.mjs';
import { NameClash, TemplateRound } from './templates.mjs';

/** A document that a rule reads is missing, damaged or other bytes. */
export class UnreadableDocument extends Error {
  constructor(isLeftOut) {
    super('a document that a rule reads cannot be read');
    this.isLeftOut = isLeftOut;
  }
}

/** How much a condition in `if` forgives, to find the rules that stopped. */
const forgive = { nothing: 0, missingValue: 1, unusable: 2 };

function namedDocuments(rule) {
  const { present = [], absent = [], if: conditions = [] } = rule.when ?? {};
  return [...present, ...absent, ...conditions.map((condition) => condition.document)];
}

/** Returns the JSON of the latest revision, or undefined if it is not such JSON. */
function readLatest(replay, name) {
  const revision = replay.latestRevision(name);
  // Many rules may read one revision, and at many entries.
  if (replay.latestRead?.revision !== revision) {
    const isTooLarge = revision.size > limits.ruleDocument;
    const bytes = isTooLarge ? null : replay.readDocument(revision);
    const json = bytes === null ? undefined : tryJson(bytes, { exactNumbers: true });
    replay.latestRead = { revision, json };
  }
  return replay.latestRead.json;
}

function holdsForDocument(replay, condition, forgiven) {
  const json = readLatest(replay, condition.document);
  if (json === undefined) return forgiven >= forgive.unusable;
  const value = valueAt(json, condition.pointer);
  if (value === undefined) return forgiven >= forgive.missingValue;
  return compareValues(value, condition.op, condition.value) ?? forgiven >= forgive.unusable;
}

function holdsForItems(replay, condition) {
  const listed = condition.items ?? replay.createdItems.get(condition.createdBy) ?? [];
  const items = listed.map((id) => replay.items.get(replay.newest(id))).filter(Boolean);
  const count = countForCondition(replay, condition, items);
  if ('op' in condition) return compareBy[condition.op](count - condition.value);
  return count === listed.length && count !== 0;
}

function countForCondition(replay, condition, items) {
  if ('are' in condition) {
    const states = [condition.are].flat();
    return items.filter((item) => states.some((state) => isInState(replay, item, state))).length;
  }
  if ('have' in condition) {
    return items.filter((item) => `outputs/${condition.have}` in item.products).length;
  }
  if (condition.count === 'rounds') return replay.rounds.get(condition.createdBy) ?? 0;
  const numberOf = (item) =>
    condition.count === 'outputs' ? item.outputs.length : item.attemptCount;
  return items.reduce((sum, item) => sum + numberOf(item), 0);
}

function isInState(replay, item, state) {
  if (state === 'green') return item.status === 'done' && !replay.isRed(item);
  if (state === 'red') return replay.isRed(item);
  return state === 'ended' ? item.hasEnded : item.status === state;
}

function doItemConditionsHold(replay, rule) {
  return (rule.when?.items ?? []).every((condition) => holdsForItems(replay, condition));
}

export function isAtLimit(replay, rule) {
  return 'create' in rule && replay.roundsOf(rule) >= (rule.when?.atMost ?? 1);
}

/**
 * Returns what the rule does now, {outcome} or {items}, or null if it does not act.
 * Reads the documents of `if` that the run has whenever the other points hold.
 */
export function actionOf(replay, rule, forgiven = forgive.nothing, ignoreLimit = false) {
  if (!('create' in rule || 'outcome' in rule) || replay.hasConcluded(rule)) return null;
  if (!ignoreLimit && isAtLimit(replay, rule)) return null;
  if (!doItemConditionsHold(replay, rule)) return null;
  const action = resultOf(replay, rule);
  if (!action) return null;
  const { present = [], absent = [], if: conditions = [] } = rule.when ?? {};
  const has = (name) => replay.documents.has(name);
  const holding = conditions
    .filter((condition) => has(condition.document))
    .map((condition) => holdsForDocument(replay, condition, forgiven));
  const areThere = [...present, ...conditions.map((each) => each.document)].every(has);
  return areThere && !absent.some(has) && holding.every(Boolean) ? action : null;
}

function resultOf(replay, rule) {
  if ('outcome' in rule) return { outcome: rule.outcome };
  if (!Array.isArray(rule.create)) return createByDocuments(replay, rule);
  try {
    return new TemplateRound(replay, rule).create();
  } catch (error) {
    if (error instanceof NameClash) return { outcome: 'name-clash', isClash: true };
    throw error;
  }
}

/** Creates the item whose id depends on the revisions that the rule sees. */
function createByDocuments(replay, rule) {
  const documents = Object.create(null);
  for (const name of namedDocuments(rule)) {
    const latest = replay.latestRevision(name);
    if (latest) documents[name] = { revision: latest.revision, sha256: latest.sha256 };
  }
  const id = `${rule.id}-${hexOfSha256(canonical({ documents, rule })).slice(0, 12)}`;
  if (replay.items.has(id)) return null;
  return { items: new Map([[id, normaliseItem({ ...rule.create, id })]]) };
}

export function hasStoppedShort(replay, rule, forgiven = forgive.missingValue) {
  if (replay.conclusions.length > 0 || namedDocuments(rule).length === 0) return false;
  if (!('create' in rule || 'outcome' in rule) || actionOf(replay, rule)) return false;
  const createsOne = 'create' in rule && !Array.isArray(rule.create);
  if (isAtLimit(replay, rule) && !createsOne) return false;
  for (const { document } of rule.when?.if ?? []) {
    if (replay.documents.has(document)) readLatest(replay, document);
  }
  return Boolean(actionOf(replay, rule, forgiven, createsOne));
}

/** Returns the conclusions of entries that are in force: {rule, outcome, detail}. */
export function conclusionsInForce(replay) {
  return replay.conclusions.filter(
    ({ rule, outcome }) =>
      outcome === 'name-clash' || doItemConditionsHold(replay, replay.rulesById.get(rule)),
  );
}

/** Returns the ids of the rules that stopped. */
export function rulesThatStopped(replay) {
  if (!replay.isSettled || replay.hasConclusion) return [];
  const areAllGood = replay.countingItems().every((item) => replay.isGood(item));
  const stopped = [];
  for (const rule of replay.rules) {
    try {
      const isActing = Boolean(actionOf(replay, rule));
      if (isActing && !replay.isClosed) return [];
      if (isActing ? areAllGood : hasStoppedShort(replay, rule, forgive.unusable))
        stopped.push(rule.id);
    } catch (error) {
      if (error instanceof UnreadableDocument) error.rule = rule.id;
      throw error;
    }
  }
  return sortNames(new Set(stopped));
}
