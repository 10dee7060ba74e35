// The protected files of a run: compares entries with manifests and patches.

import { FormatError, toBytes, toLatin, tryToRead } from '../bytes.mjs';
import { digestOf } from '../crypto/hashes.mjs';
import { readPatch, unquotePath } from '../protected/patch.mjs';
import { readProtectRules } from '../protected/pathspec.mjs';
import { faultsOfProtected } from '../protected/protected.mjs';

/** Compares the protected files of an entry with its manifest; their content needs the base. */
export function checkProtected(verifier, entry, report) {
  const manifest = verifier.readDispatchedManifest(entry.item, []);
  if (!manifest) return;
  const say = (text) => report('protected', `the protected files of ${entry.item}: ${text}`);
  if (!manifest.protect) {
    const fields = ['reference', 'protected', 'protectedAllowed', 'protectedJudged'];
    if (fields.some((field) => field in entry)) say('the manifest protects none');
    return;
  }
  const passes = (effect) => manifest.onProtectedChange === effect && 'protected' in entry;
  const isChecked = entry.verify?.passed === true && entry.verify.by === 'command';
  if ('protectedAllowed' in entry !== (passes('allow') && !isWithheld(verifier, entry)))
    say('the manifest does not allow what the entry allows');
  else if ('protectedJudged' in entry !== (passes('judge') && isChecked))
    say('the manifest and the check do not judge what the entry says');
  else if (!('reference' in entry)) say('the entry names no reference state');
  else compareProtected(verifier, entry, manifest.protect, say);
}

/** Returns true if the plan protects a changed file, which settings cannot allow. */
function isWithheld(verifier, entry) {
  const { protect = [] } = verifier.replay.items.get(entry.item).definition;
  const isProtected = tryToRead(() => readProtectRules(protect));
  const paths = entry.protected.map(({ path }) => unquotePath(toLatin(toBytes(path))));
  return paths.some((path) => isProtected?.(path, false));
}

/** Compares the protected files of an entry with its patch, which takes no base. */
function compareProtected(verifier, entry, rules, say) {
  const { replay, findings } = verifier;
  // What the reference state is takes the bytes of the base.
  verifier.notRecomputed.push({ item: entry.item, reason: 'without the base' });
  const item = replay.items.get(entry.item);
  const applied = replay.appliedItems(item).map(({ products }) => products.patch);
  const patches = [entry.products.patch, ...item.referencePatches, ...applied.filter(Boolean)];
  // Row content reports a patch that is missing or has other bytes.
  const readNamed = ({ oid, sha256 }) => {
    const bytes = verifier.store.readBlob(oid);
    return bytes !== null && digestOf(bytes) === sha256 ? bytes : null;
  };
  const [own, ...others] = patches.map((patch) => patch && readNamed(patch));
  if (own === null) return;
  const tryPatch = (bytes) => tryToRead(() => readPatch(bytes)) ?? new Map();
  try {
    const changes = own === undefined ? new Map() : readPatch(own);
    const before = changes.size === 0 ? [] : others.filter(Boolean).map(tryPatch);
    const listed = entry.protected ?? [];
    const faults = faultsOfProtected({
      rules,
      changes,
      others: before,
      listed,
      work: verifier.pathWork,
    });
    const open = `the patch of ${entry.item} changes too many paths`;
    if (faults === null) findings.addOpen('plan', open);
    else faults.forEach(say);
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    say(error.message);
  }
}
