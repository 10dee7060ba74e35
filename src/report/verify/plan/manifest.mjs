// Reads the manifest of a dispatch (section 5).

import { equalBytes } from '../bytes.mjs';
import { limits } from '../limits.mjs';
import { canonicalBytes } from '../json.mjs';
import {
  arrayOf,
  isAttempt,
  isCount,
  isDigest,
  isObjectId,
  isString,
  isText,
  isTrue,
  notEmpty,
  oneOf,
  shape,
} from '../values.mjs';
import { isItemName } from '../names.mjs';
import { isInputRefs, isSortedRules } from '../entries/kinds.mjs';
import { readerOf } from './plan.mjs';

const isProgramClaim = {
  path: isString,
  sha256: isDigest,
  size: isCount,
};
const isManifest = shape({
  schema: oneOf('git-handoff.manifest/1'),
  item: isItemName,
  attempt: isAttempt,
  inputRefs: isInputRefs,
  'start?': isObjectId,
  executor: isString,
  'subagent?': isString,
  argv: arrayOf(isString),
  'setup?': arrayOf(isString),
  'verify?': arrayOf(isString),
  'commandDigest?': isDigest,
  'heldOut?': isDigest,
  'redFirst?': isTrue,
  'verifyIn?': oneOf('fresh'),
  'program?': shape({
    ...isProgramClaim,
    'version?': (value) => isText(value) && [...value].length <= 200,
  }),
  'interpreter?': shape(isProgramClaim),
  'protect?': notEmpty(isSortedRules),
  'onProtectedChange?': oneOf('fail', 'allow', 'judge'),
  'pipeline?': isDigest,
  inputs: isDigest,
  env: arrayOf(isString),
  secretEnv: arrayOf(isString),
  timeout: isCount,
  sandbox: isString,
  'network?': oneOf('any', 'loopback', 'none'),
  'sockets?': oneOf('reachable'),
  'home?': oneOf('real'),
  'readable?': notEmpty(arrayOf(isString)),
  'writable?': notEmpty(arrayOf(isString)),
  'linked?': notEmpty(arrayOf(isString)),
  'copied?': notEmpty(arrayOf(isString)),
  'tags?': isDigest,
  'branches?': isDigest,
  tool: isString,
});

/** Reads `manifest.json`, or returns null. */
export function readManifest(bytes) {
  const { containers, commas, manifest: size } = limits;
  const value = readerOf(isManifest, { size, containers, commas })(bytes);
  if (!value || 'tags' in value !== 'branches' in value) return null;
  return equalBytes(canonicalBytes(value), bytes) ? value : null;
}
