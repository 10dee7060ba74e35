// Reads plans, rules and pipelines (sections 5, 6 and 14).

import { byteLength } from '../bytes.mjs';
import { limits } from '../limits.mjs';
import { isObject, tryJson, WrittenNumber } from '../json.mjs';
import {
  allOf,
  anyOf,
  arrayOf,
  between,
  hasDistinct,
  hasOneOf,
  isBoolean,
  isString,
  isText,
  mapOf,
  matches,
  notEmpty,
  oneOf,
  shape,
} from '../values.mjs';
import { foldCase, haveClash, isDocumentName, isItemName, isPath, isRunName } from '../names.mjs';
import { isSelector } from '../entries/kinds.mjs';
import { isAddedItem, isPlanItem, isUnnamedItem } from './items.mjs';

const operators = ['<', '<=', '==', '!=', '>=', '>'];
const statesOfItems = ['done', 'green', 'red', 'failed', 'skipped', 'cancelled', 'ended'];

const isState = oneOf(...statesOfItems);
const isItemCondition = allOf(
  shape({
    'items?': arrayOf(isItemName, 1, 1000),
    'createdBy?': isItemName,
    'are?': anyOf(isState, arrayOf(isState, 1)),
    'have?': isPath,
    'count?': oneOf('outputs', 'attempts', 'rounds'),
    'op?': oneOf(...operators),
    'value?': between(0, 2 ** 32 - 1),
  }),
  hasOneOf('items', 'createdBy'),
  hasOneOf('are', 'have', 'count'),
  (value) => 'op' in value === 'value' in value && ('op' in value || !('count' in value)),
  (value) => !('items' in value && value.count === 'rounds'),
);

export const isNumber = (value) => typeof value === 'number' || value instanceof WrittenNumber;

const isDocumentCondition = allOf(
  shape({
    document: isDocumentName,
    pointer: matches(/^(?:\/(?:[^~/]|~[01])*)*$/),
    op: oneOf(...operators),
    value: (each) => !Array.isArray(each) && !isObject(each),
  }),
  ({ op, value }) => op === '==' || op === '!=' || isNumber(value),
);

const isDocumentList = allOf(arrayOf(isDocumentName), hasDistinct);
const isWhen = allOf(
  shape({
    'present?': isDocumentList,
    'absent?': isDocumentList,
    'if?': arrayOf(isDocumentCondition),
    'items?': arrayOf(isItemCondition, 0, 20),
    'atMost?': between(1, 10000),
  }),
  ({ present = [], absent = [], if: conditions = [] }) => {
    const named = [...present, ...conditions.map(({ document }) => document)];
    return !absent.some((name) => named.includes(name));
  },
);

const isTemplate = anyOf(
  shape({ again: isItemName }),
  shape({
    item: isAddedItem,
    'optional?': arrayOf(isPath),
    'each?': shape({
      outputsOf: isItemName,
      key: isPath,
      from: isItemName,
      select: isSelector,
      'survivors?': isBoolean,
    }),
    'reasons?': mapOf(isString, isItemName),
  }),
);

const isOrder = allOf(mapOf(isItemName, arrayOf(isItemName)), (value) =>
  Object.entries(value).every(([item, others]) => !others.includes(item)),
);

const isRule = allOf(
  shape({
    id: (id) => isItemName(id) && isItemName(id + '-000000000000'),
    'when?': isWhen,
    'create?': anyOf(arrayOf(isTemplate, 0, 1000), isUnnamedItem),
    'forEach?': shape({ outputsOf: isItemName }),
    'outcome?': matches(/^[a-z-]{1,64}$/),
    'order?': isOrder,
    'gate?': shape({ item: isItemName, 'blocks?': isBoolean, 'votes?': isBoolean }),
  }),
  hasOneOf('create', 'outcome', 'order', 'gate'),
  (value) => 'when' in value || 'order' in value || 'gate' in value,
  (value) => !('forEach' in value) || Array.isArray(value.create),
);

const haveDistinctIds = (rules) => hasDistinct(rules.map((rule) => foldCase(rule.id)));
const isRuleList = allOf(arrayOf(isRule, 0, 10000), haveDistinctIds);

/** Returns a function that reads JSON, or returns null unless it fulfils a check. */
export const readerOf = (check, bounds) => (bytes) => {
  const value = tryJson(bytes, bounds);
  return check(value) ? value : null;
};

export const readRules = readerOf(notEmpty(isRuleList), { size: limits.file });

const isPlan = shape({
  id: isRunName,
  '$schema?': isString,
  '$comment?': isString,
  'queue?': isText,
  'base?': isText,
  'openEnded?': isBoolean,
  'concurrency?': between(1, 100000),
  'pattern?': isText,
  'rules?': isRuleList,
  'artifacts?': (value) => mapOf(isPath, isText)(value) && !haveClash(Object.keys(value)),
  items: arrayOf(isPlanItem, 1, 262144),
});

export const readPlan = readerOf(isPlan, { size: limits.file });

const isBlockCommand = allOf(
  matches(/\P{White_Space}/u),
  (text) => byteLength(text) <= 16384 && !text.includes('\0'),
);
const isBlockDefinition = anyOf(
  shape({ kind: oneOf('agent') }),
  shape({ kind: oneOf('capture'), what: oneOf('patch', 'outputs') }),
  shape({
    kind: oneOf('script'),
    command: isBlockCommand,
    'lens?': oneOf('gate', 'verify'),
    'timeoutSeconds?': between(1, 315360000),
  }),
);

const isPipeline = shape({
  schemaVersion: oneOf(1),
  id: matches(/^(?=.{1,128}$)[a-z0-9-]+\.[a-z0-9-]+$/),
  blocks: arrayOf(isBlockDefinition, 1, 100),
  'outputEdgeType?': isText,
  'inputEdgeTypes?': mapOf(isText, isText),
});

export const readPipeline = readerOf(isPipeline, { size: limits.pipeline });

/** Returns the pipeline that an item names, or null. */
export const pipelineNameOf = (item) => (isString(item.inputs?.pipeline) ? item.inputs.pipeline : null);
export const pipelineNamesOf = (items) =>
  new Set(items.map(pipelineNameOf).filter((name) => name !== null));

/** Returns the items that rules contain. */
export function itemsInRules(rules) {
  return rules.flatMap(({ create }) => {
    if (!create) return [];
    return Array.isArray(create) ? create.flatMap((each) => each.item ?? []) : [create];
  });
}
