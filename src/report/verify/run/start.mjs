// Reads the plan, the rules and the pipelines of a run, with which its replay begins.

import { limits } from '../limits.mjs';
import { areNamed } from '../crypto/hashes.mjs';
import { sameSet } from '../json.mjs';
import { foldCase } from '../names.mjs';
import { dependenciesOf, importName, isFromElsewhere } from '../plan/items.mjs';
import { itemsInRules, pipelineNamesOf, readPipeline, readPlan, readRules } from '../plan/plan.mjs';
import { UnreadableDocument } from '../replay/rules.mjs';
import { Replay } from '../replay/replay.mjs';

/** Reads the plan and the rules. Returns null after a finding. */
export function startReplay(verifier) {
  const { entry } = verifier.begin;
  const report = (code, text, path) =>
    verifier.report('plan', code, verifier.begin, text, { path });
  const plan = readPlanFile(verifier, 'plan', entry.plan, readPlan, codesOfPlan, report);
  const nameLength = verifier.store.format === 'sha1' ? 40 : 64;
  if (entry.base.length !== nameLength) {
    report('plan-entry', 'the base has another object format than the repository');
  }
  if (!plan) return null;
  compareEntryZero(verifier, plan, entry, report);
  const rules =
    'rules' in entry
      ? readPlanFile(verifier, 'rules', entry.rules, readRules, codesOfRules, report)
      : [];
  if (!rules) return null;
  const ids = new Set((plan.rules ?? []).map((rule) => foldCase(rule.id)));
  if (rules.some((rule) => ids.has(foldCase(rule.id)))) {
    report('rules-invalid', 'rules.json has a rule of the plan', 'rules.json');
    return null;
  }
  const replay = new Replay(plan, rules, entry, (revision) => readRevision(verifier, revision));
  const names = pipelineNamesOf([...plan.items, ...itemsInRules(replay.rules)]);
  if (sameSet(names) !== sameSet(Object.keys(entry.pipelines ?? {}))) {
    report('pipelines', 'entry 0 has other pipelines than its items name');
  }
  const needs = plan.items
    .flatMap((item) => Object.values(item.needs ?? {}))
    .filter(isFromElsewhere);
  if (sameSet(needs.map(importName)) !== sameSet(Object.keys(entry.imports ?? {}))) {
    report('imports', 'entry 0 has other imports than its items need');
  }
  readPipelines(verifier, replay.usablePipelines);
  const hasUnknown = (item) => dependenciesOf(item).some((each) => !replay.items.has(each));
  if (replay.items.size < plan.items.length || plan.items.some(hasUnknown)) {
    const text = 'the plan has an item twice, or one that depends on an unknown one';
    report('plan-invalid', text, 'plan.json');
  }
  // Entries after the first finding have no defined meaning.
  return verifier.findings.failsBy('plan') ? null : replay;
}

const codesOfPlan = { missing: 'bytes-missing', other: 'bytes', invalid: 'plan-invalid' };
const codesOfRules = {
  missing: 'rules-invalid',
  other: 'rules-invalid',
  invalid: 'rules-invalid',
};

function readPlanFile(verifier, name, named, read, codes, report) {
  const path = `${name}.json`;
  const bytes = verifier.readNamed(named, ['plan', 'handoff']);
  if (bytes === undefined) return null;
  if (bytes === null || !areNamed(bytes, named)) {
    if (bytes === null) report(codes.missing, `${path} cannot be read`, path);
    else report(codes.other, `${path} is not the one that entry 0 names`, path);
    return null;
  }
  const value = read(bytes);
  if (value === null) report(codes.invalid, `${path} is not valid`, path);
  return value;
}

function compareEntryZero(verifier, plan, entry, report) {
  const fits =
    plan.id === verifier.run &&
    sameSet(Object.keys(plan.artifacts ?? {})) === sameSet(Object.keys(entry.artifacts));
  if (!fits) report('plan-entry', 'entry 0 contradicts the plan', 'plan.json');
}

/** Returns the bytes of a revision that a rule reads. */
function readRevision(verifier, named) {
  const bytes = verifier.store.readBlob(named.oid);
  const isRight = bytes !== null && areNamed(bytes, named);
  if (!isRight) throw new UnreadableDocument(bytes === null && verifier.store.isLeftOut(named.oid));
  return bytes;
}

/** Reads the pipelines that entries name: name to the pipeline, or to null after a finding. */
function readPipelines(verifier, usable) {
  for (const commit of verifier.commits) {
    const { kind, pipelines = {} } = commit.entry;
    if (commit !== verifier.begin && kind !== 'run.extended') continue;
    for (const [name, named] of Object.entries(pipelines)) {
      if (verifier.pipelineNames.has(name)) continue;
      verifier.pipelineNames.set(name, named);
      usable.set(name, readSealedPipeline(verifier, commit, name, named));
    }
  }
}

/** Returns a pipeline, or null after a finding. */
function readSealedPipeline(verifier, commit, name, named) {
  const bytes = verifier.readNamed(named, ['plan'], limits.pipeline);
  const fail = (text) => {
    verifier.report('plan', 'pipelines', commit, `the pipeline ${name} ${text}`);
    return null;
  };
  if (bytes === undefined) return null;
  if (bytes === null) return fail('cannot be read');
  if (!areNamed(bytes, named)) return fail('has other bytes');
  const pipeline = readPipeline(bytes);
  if (!pipeline) return fail('is not valid');
  const [, id, digest = named.sha256] = /^([^@]*)(?:@(.*))?$/s.exec(name);
  if (pipeline.id !== id || digest !== named.sha256) fail('has another id or digest than its name');
  return pipeline;
}
