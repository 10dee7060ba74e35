// The items of a plan, what they need, and their form in `item.json` (section 5).

import { byteLength, sortNames } from '../bytes.mjs';
import { limits } from '../limits.mjs';
import { isObject } from '../json.mjs';
import {
  allOf,
  anyOf,
  arrayOf,
  between,
  hasDistinct,
  isBoolean,
  isString,
  isText,
  mapOf,
  oneOf,
  shape,
} from '../values.mjs';
import {
  encodeSegment,
  haveClash,
  isDocumentName,
  isItemName,
  isPath,
  isRunName,
} from '../names.mjs';
import { readSchema } from '../schemas.mjs';
import { isCheckpointName, isOwnSource, isSelector } from '../entries/kinds.mjs';

/** The name of a run or thread, behind that of its remote if it has one. */
function isRemoteName(value) {
  if (!isString(value)) return false;
  const slash = value.lastIndexOf('/');
  return isRunName(value.slice(slash + 1)) && (slash < 0 || isPath(value.slice(0, slash)));
}

const isNeed = anyOf(
  shape({ run: isRemoteName, from: isItemName, select: isSelector }),
  shape({
    thread: isRemoteName,
    'from?': anyOf(oneOf('latest'), isCheckpointName),
    select: isSelector,
  }),
  allOf(
    shape({ from: isOwnSource, select: isSelector, 'apply?': isBoolean }),
    ({ from, select, apply }) => !apply || (!from.startsWith('@') && select.kind === 'patch'),
  ),
);

/** Returns needs in the form of `item.json`: `apply` only if true, and `from` of a thread always. */
function normaliseNeeds(needs) {
  const normal = Object.create(null);
  for (const [key, { apply, ...need }] of Object.entries(needs)) {
    normal[key] = apply ? { ...need, apply } : need;
    if ('thread' in need) need.from ??= 'latest';
  }
  return normal;
}

export const isFromElsewhere = (need) => 'run' in need || 'thread' in need;

/** Returns the `from` of the input ref of a need. */
export function sourceOf(need) {
  if (!isFromElsewhere(need)) return need.from;
  const name = need.run ?? need.thread;
  const slash = name.lastIndexOf('/');
  const parts = [name.slice(slash + 1), 'run' in need ? need.from : (need.from ?? 'latest')];
  if (slash >= 0) parts.unshift(name.slice(0, slash));
  return `@${'run' in need ? 'run' : 'thread'}/${parts.map(encodeSegment).join('/')}`;
}

/** Returns the item of the run that a need names, or null. */
export const itemOfNeed = (need) =>
  isFromElsewhere(need) || need.from.startsWith('@') ? null : need.from;

/** Returns the product that a selector selects. */
export function productOf(selector) {
  if (selector.kind === 'patch') return 'patch';
  return selector.kind === 'output' ? `outputs/${selector.path}` : `documents/${selector.name}`;
}

export const importName = (need) => `${sourceOf(need)}:${productOf(need.select)}`;

const isPlanSchema = (text) => readSchema(text) !== null;
const isDeclared = anyOf(
  shape({ kind: oneOf('patch'), 'type?': isText }),
  shape({ kind: oneOf('output'), path: isPath, 'schema?': isPlanSchema, 'type?': isText }),
  shape({
    kind: oneOf('document'),
    name: isDocumentName,
    path: isPath,
    'schema?': isPlanSchema,
    'type?': isText,
  }),
);

function isProduces(value) {
  if (!arrayOf(isDeclared)(value)) return false;
  if (!hasDistinct(value.map(productOf))) return false;
  return !haveClash(new Set(value.filter((each) => 'path' in each).map((each) => each.path)));
}

export function isPathspec(value) {
  if (!isText(value) || value.includes('\0')) return false;
  let path = value;
  const long = /^:\(([^)]*)\)(.*)$/s.exec(value);
  const short = /^:([!^/]*):?(.*)$/s.exec(value);
  if (long) {
    const isRefused = (word) => word === 'exclude' || /^(?:attr|prefix)/.test(word);
    if (long[1].split(',').some((word) => isRefused(word.trim()))) return false;
    path = long[2];
  } else if (short) {
    const magic = /^:([!-/;-@[-`{-~]*)/.exec(value)[1];
    if (!magic.startsWith('(') && /[!^]/.test(magic)) return false;
    path = short[2];
  }
  return !path.startsWith('/') && !path.split('/').includes('..');
}

/** A rule that protects every file except those that its pathspecs select. */
const isException = shape({ except: arrayOf(isPathspec) });

export const pathspecsOf = (rules) => rules.flatMap((rule) => (isString(rule) ? rule : rule.except));

/** Returns true if rules of protected files are within the limits of section 6. */
export function areRulesBounded(rules) {
  const bytes = pathspecsOf(rules).reduce((sum, pathspec) => sum + byteLength(pathspec) + 1, 0);
  const exceptions = rules.filter((rule) => !isString(rule));
  return exceptions.length <= limits.exceptions && bytes <= limits.pathspecs;
}

/** Returns the rules of protected files of an item as an array, each exception sorted. */
function normaliseProtect(protect) {
  const rules = Array.isArray(protect) ? protect : [protect];
  return rules.map((rule) =>
    isString(rule) ? rule : { except: sortNames(new Set(rule.except)) },
  );
}

const itemFields = {
  id: isItemName,
  executor: isText,
  '$comment?': isString,
  'inputs?': isObject,
  'depends_on?': arrayOf(isItemName),
  'protect?': allOf(anyOf(isException, arrayOf(anyOf(isPathspec, isException))), (value) =>
    areRulesBounded([value].flat()),
  ),
  'onProtectedChange?': oneOf('red', 'fail', 'judge'),
  'resourceLocks?': allOf(arrayOf(isText), hasDistinct),
  'subagentShape?': isText,
  'needs?': (value) => mapOf(isPath, isNeed)(value) && !haveClash(Object.keys(value)),
  'produces?': isProduces,
  'timeout?': between(1, 315360000),
  'maxAttempts?': between(1, 100),
};
const { id: _, ...unnamedItemFields } = itemFields;
const isItemOf = (fields) =>
  allOf(
    shape({ ...fields, 'replaces?': isItemName, 'continues?': isItemName }),
    (value) => !('replaces' in value && 'continues' in value),
  );
export const isPlanItem = shape(itemFields);
export const isAddedItem = isItemOf(itemFields);
export const isUnnamedItem = isItemOf(unnamedItemFields);

/** Returns the items that an item names in `depends_on` and `needs`, each once. */
export function dependenciesOf(item) {
  const needs = item.needs ?? {};
  const all = [
    ...(item.depends_on ?? []),
    ...sortNames(Object.keys(needs)).map((key) => itemOfNeed(needs[key])),
  ];
  return [...new Set(all.filter((each) => each !== null))];
}

/** Returns the item in the form of `item.json` (section 5). */
export function normaliseItem(item) {
  const normal = Object.assign(Object.create(null), {
    id: item.id,
    executor: item.executor,
    inputs: item.inputs ?? Object.create(null),
    depends_on: dependenciesOf(item),
    resourceLocks: item.resourceLocks ?? [],
    needs: normaliseNeeds(item.needs ?? {}),
  });
  const optional = ['subagentShape', 'produces', 'timeout', 'maxAttempts', 'replaces', 'continues'];
  for (const field of [...optional, 'onProtectedChange']) {
    if (field in item) normal[field] = item[field];
  }
  const protect = normaliseProtect(item.protect ?? []);
  if (protect.length) normal.protect = protect;
  return normal;
}
