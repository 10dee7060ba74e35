// Reads the manifest of a dispatch (section 5).

import { equalBytes } from '../bytes.mjs';
import { limits } from '../limits.mjs';
import { canonicalBytes, isObject, WrittenNumber } from '../json.mjs';
import {
  arrayOf,
  isCount,
  isDigest,
  isObjectId,
  isString,
  isTrue,
  notEmpty,
  oneOf,
  shape,
} from '../values.mjs';
import { isSortedRules } from '../entries/kinds.mjs';
import { readerOf } from './plan.mjs';

/** Returns true if all numbers in a value are integers; section 1 allows no others. */
function hasIntegersAlone(value) {
  if (value instanceof WrittenNumber) return false;
  return typeof value !== 'object' || Object.values(value ?? {}).every(hasIntegersAlone);
}

const isManifest = shape({
  schema: oneOf('git-handoff.manifest/1'),
  'start?': isObjectId,
  executor: isString,
  'subagent?': isString,
  argv: arrayOf(isString),
  'setup?': arrayOf(isString),
  'verify?': arrayOf(isString),
  'heldOut?': isDigest,
  'redFirst?': isTrue,
  'verifyIn?': oneOf('fresh'),
  'protect?': notEmpty(isSortedRules),
  'onProtectedChange?': oneOf('fail', 'allow', 'judge'),
  'pipeline?': isDigest,
  inputs: isDigest,
  timeout: isCount,
  claims: (value) => isObject(value) && hasIntegersAlone(value),
});

/** Reads `manifest.json`, or returns null. */
export function readManifest(bytes) {
  const { containers, commas, manifest: size } = limits;
  const value = readerOf(isManifest, { size, containers, commas })(bytes);
  if (!value) return null;
  return equalBytes(canonicalBytes(value), bytes) ? value : null;
}
