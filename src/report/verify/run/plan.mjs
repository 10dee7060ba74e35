// Row `plan` of a run: replays its entries.

import { equalBytes, sortNames } from '../bytes.mjs';
import { limits } from '../limits.mjs';
import { areNamed } from '../crypto/hashes.mjs';
import { settings } from '../crypto/ed25519.mjs';
import { canonicalBytes, sameJson, tryJson } from '../json.mjs';
import { isAddedItem, normaliseItem } from '../plan/items.mjs';
import { compareExpected, counted } from '../findings.mjs';
import { emptyOutcome, outcomeOf } from '../replay/outcome.mjs';
import { checkManifest, checkNeeds } from './manifests.mjs';
import { checkProtected } from './protected.mjs';
import { checkImports, checkReused, readContinued } from './evidence.mjs';
import { startReplay } from './start.mjs';

export async function checkPlan(verifier) {
  const { findings } = verifier;
  if (verifier.begin) verifier.replay = startReplay(verifier);
  else
    for (const row of ['plan', 'handoff'])
      findings.addOpen(row, 'the first entry is no run.submitted');
  for (const [i, commit] of verifier.commits.entries()) {
    const { entry } = commit;
    if (i % 500 === 499) await settings.pause();
    if (entry.kind === 'item.fired') verifier.dispatches.set(entry.item, commit);
    // Entries after the first finding have no defined meaning.
    if (verifier.isUnread || findings.failsBy('plan')) break;
    if (commit !== verifier.begin && verifier.replay) await replayEntry(verifier, commit);
  }
  for (const commit of verifier.commits) {
    if (commit.entry.kind === 'item.fired') checkManifest(verifier, commit);
  }
  if (verifier.begin) {
    await checkImports(verifier);
    if ('continues' in verifier.begin.entry) await readContinued(verifier);
  }
  closePlan(verifier);
}

function closePlan(verifier) {
  const { findings, replay } = verifier;
  if (!replay)
    for (const row of ['handoff', 'manifest']) findings.addOpen(row, 'the plan cannot be used');
  if (replay && !verifier.isUnread && !findings.failsBy('plan'))
    verifier.outcome = outcomeOf(replay);
  checkExpectations(verifier);
  const { total, pending, running } = verifier.outcome ?? emptyOutcome();
  const items = counted(total, 'item');
  const ended = total - pending - running;
  findings.details.plan = `${ended} of ${items} accounted for, every transition legal`;
  if (verifier.notRecomputed.length > 0) {
    const open = textOfNotRecomputed(verifier.notRecomputed);
    findings.addOpen('plan', `${findings.details.plan}, protected files of ${open}`);
  }
  const inputs = counted(verifier.inputCount, 'input ref');
  findings.details.handoff = verifier.inputCount > 0 ? `${inputs} accounted for` : inputs;
  const manifests = counted(verifier.manifestCount, 'manifest');
  const bound = verifier.manifestCount === 1 ? 'its entry' : 'their entries';
  findings.details.manifest = `${manifests} bound to ${bound}`;
}

/** Compares the plan and the base with those that the verifier requires. */
function checkExpectations(verifier) {
  if (!verifier.begin) return;
  const isSamePlan = (wanted) => {
    const bytes = verifier.readNamed(verifier.begin.entry.plan, []);
    const plan = tryJson(wanted);
    return plan !== undefined && sameJson(plan, bytes ? tryJson(bytes) : undefined);
  };
  compareExpected(verifier.options, verifier.begin.entry, verifier.findings, isSamePlan);
}

async function replayEntry(verifier, commit) {
  const { findings, replay } = verifier;
  const { entry } = commit;
  const report = (code, text, more) => verifier.report('plan', code, commit, text, more);
  if (entry.kind === 'item.fired') checkNeeds(verifier, commit);
  let added;
  if (entry.kind === 'run.extended') {
    added = readAdded(verifier, commit, report);
    if (!added) {
      verifier.isUnread = true;
      return;
    }
  }
  if ('reused' in entry) await checkReused(verifier, commit);
  const { codes, isLegal, isLeftOut } = replay.apply(entry, added);
  for (const code of codes) report(code, textOfPlanCode(code, entry));
  if (isLeftOut) findings.addLeftOut('plan');
  const isDone = entry.kind === 'item.reconciled' && entry.status === 'done';
  if (isLegal && isDone && !('reused' in entry)) checkProtected(verifier, entry, report);
}

/**
 * Reads the items that a `run.extended` adds: a map to their normalised form, or to null after a
 * finding. Returns null if the replay ends, since an item cannot be read.
 */
function readAdded(verifier, commit, report) {
  const { entry } = commit;
  const items = new Map();
  for (const id of sortNames(Object.keys(entry.items))) {
    const bytes = verifier.readNamed(entry.items[id], ['plan', 'handoff']);
    if (bytes === undefined) return null;
    if (bytes === null || !areNamed(bytes, entry.items[id])) {
      const code = bytes === null ? 'bytes-missing' : 'bytes';
      report(code, textOfPlanCode(code, entry), { item: id });
      return null;
    }
    const item = tryJson(bytes, { size: limits.file });
    const isValid =
      isAddedItem(item) && equalBytes(canonicalBytes(normaliseItem(item)), bytes);
    if (!isValid) report('item-invalid', textOfPlanCode('item-invalid', entry), { item: id });
    items.set(id, isValid ? normaliseItem(item) : null);
  }
  return items;
}

function textOfPlanCode(code, entry) {
  const subject = entry.item ? ` of item ${entry.item}` : '';
  const what = `entry ${entry.seq}: ${entry.kind}${subject}`;
  const texts = {
    transition: 'is not a legal transition',
    rule: 'is not what its rule does there',
    'rule-document': 'depends on a document that cannot be read',
    'rule-waits': 'seals the run although a rule still acts or stopped short',
    stopped: 'names other rules than those that stopped',
    blocks: 'has blocks that do not fit the pipeline',
    'bytes-missing': 'adds an item whose item.json cannot be read',
    bytes: 'adds an item whose item.json has other bytes',
    'item-invalid': 'adds an item whose item.json is not valid',
  };
  return `${what} ${texts[code] ?? code}`;
}

/** Names the first of some items and the reason, and counts the others. */
export function textOfNotRecomputed([{ item, reason }, ...others]) {
  const more = others.length > 0 ? ` and ${counted(others.length, 'more item')}` : '';
  return `${item}${more} not recomputed ${reason}`;
}
