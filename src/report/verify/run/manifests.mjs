// Row `manifest` of a run, and the inputs of its dispatches in row `handoff`.

import { limits } from '../limits.mjs';
import { areNamed } from '../crypto/hashes.mjs';
import { canonicalDigest, sameJson } from '../json.mjs';
import { isString } from '../values.mjs';
import { sourceOf } from '../plan/items.mjs';
import { pipelineNameOf } from '../plan/plan.mjs';
import { readManifest } from '../plan/manifest.mjs';

export function checkNeeds(verifier, commit) {
  const { entry } = commit;
  const report = (code, text) => verifier.report('handoff', code, commit, text);
  const item = verifier.replay.items.get(entry.item);
  if (!item) {
    report('unknown-item', `entry ${entry.seq} dispatches the unknown item ${entry.item}`);
    return;
  }
  const { needs } = item.definition;
  for (const key of Object.keys(needs)) {
    if (!(key in entry.inputRefs)) report('need', `${item.id} has no input ${key}`);
  }
  for (const [key, { from, select, ref }] of Object.entries(entry.inputRefs)) {
    const need = needs[key];
    verifier.inputCount++;
    if (!need) {
      report('input', `the input ${key} of ${item.id} belongs to no need`);
      continue;
    }
    if (from !== sourceOf(need) || !sameJson(select, need.select)) {
      report('input', `the input ${key} of ${item.id} is from elsewhere than its need`);
    } else if (ref !== verifier.replay.bindingOf(need)) {
      report('input-bytes', `the input ${key} of ${item.id} is not what its need is bound to`);
    }
  }
}

export function checkManifest(verifier, commit) {
  const { entry } = commit;
  verifier.manifestCount++;
  const name = `the manifest of ${entry.item} #${entry.attempt}`;
  const report = (code, text) =>
    verifier.report('manifest', code, commit, `${name} ${text}`);
  const bytes = verifier.readNamed(entry.manifest, ['manifest'], limits.manifest);
  if (bytes === undefined) return;
  if (bytes === null) report('manifest-invalid', 'cannot be read');
  else if (!areNamed(bytes, entry.manifest))
    report('manifest-invalid', 'is not the one that its entry names');
  else {
    const manifest = readManifest(bytes);
    const item = verifier.replay?.items.get(entry.item);
    if (!manifest) report('manifest-invalid', 'is not valid');
    else if (item && !fitsPlan(verifier, manifest, item.definition))
      report('manifest-plan', 'is not as the plan requires');
  }
}

function fitsPlan(verifier, manifest, definition) {
  const { executor, inputs, timeout, protect = [] } = definition;
  if (manifest.executor !== executor || manifest.inputs !== canonicalDigest(inputs)) return false;
  if (timeout !== undefined && manifest.timeout !== timeout) return false;
  const applies = Object.values(definition.needs ?? {}).some(({ apply }) => apply);
  if ('start' in manifest !== applies) return false;
  const isInManifest = (rule) => manifest.protect?.some((each) => sameJson(each, rule));
  if (!protect.every(isInManifest)) return false;
  const { subagent, command } = inputs;
  const isDispatch = executor === 'dispatch';
  if (isDispatch && subagent !== undefined) {
    if (manifest.subagent !== (isString(subagent) ? subagent : undefined)) return false;
  } else if ('subagent' in manifest !== isDispatch) return false;
  if (executor === 'command') {
    const argv = isString(command) ? ['sh', '-c', command] : command;
    if (!sameJson(manifest.argv, argv)) return false;
  } else if (manifest.argv.length === 0) return false;
  const name = pipelineNameOf(definition);
  const digest = name === null ? undefined : verifier.pipelineNames.get(name)?.sha256;
  return manifest.pipeline === digest && (name === null || digest !== undefined);
}
