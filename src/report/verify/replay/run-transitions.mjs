// The legal transitions of a run (section 6).

import { sortNames } from '../bytes.mjs';
import { canonicalDigest, sameJson, sameSet } from '../json.mjs';
import { pipelineNamesOf } from '../plan/plan.mjs';
import { withoutKey, withRole } from '../chain/roles.mjs';
import { actionOf, conclusionsInForce, hasStoppedShort, rulesThatStopped } from './rules.mjs';

function isCreation(action, entry) {
  if (!action?.items || 'pipelines' in entry) return false;
  const digests = Object.create(null);
  for (const [id, item] of action.items) digests[id] = canonicalDigest(item);
  const named = Object.entries(entry.items).map(([id, { sha256 }]) => [id, sha256]);
  return sameJson(digests, Object.fromEntries(named));
}

/** Applies an entry of a run by its kind. Returns false if it is not legal. */
export const runTransitions = {
  'run.admitted'(replay, entry) {
    if (replay.isClosed && entry.role !== 'seal') return false;
    if (replay.roles.get(entry.key)?.has(entry.role)) return false;
    replay.roles = withRole(replay.roles, entry);
    return true;
  },

  'run.dismissed'(replay, { key }) {
    const held = replay.roles.get(key);
    if (!held || held.has('seal') || Object.hasOwn(replay.entryZero.roles, key)) return false;
    replay.roles = withoutKey(replay.roles, key);
    return true;
  },

  'run.shared'(replay, { heartbeat, lostAfter }) {
    if (replay.isShared || replay.isClosed) return false;
    if (heartbeat < 100 || heartbeat > 3600000) return false;
    if (lostAfter < 4 * heartbeat || lostAfter > 30 * 86400000) return false;
    replay.isShared = true;
    return true;
  },

  'run.extended'(replay, entry, items) {
    const { cause } = entry;
    const rule = cause === 'actor' ? undefined : replay.rulesById.get(cause.rule);
    if (rule) {
      const acting = replay.tryRules(() => actionOf(replay, rule));
      if (acting && !isCreation(acting.value, entry)) {
        replay.codes.add('rule');
        return false;
      }
    }
    const areUsable = [...items].every(([id, item]) => item?.id === id);
    if (!areUsable || replay.isClosed) return false;
    if (cause === 'actor') {
      const names = [...pipelineNamesOf([...items.values()])];
      const missing = names.filter((name) => !replay.pipelines.has(name));
      const named = Object.keys(entry.pipelines ?? {});
      if (!replay.plan.openEnded || !replay.doItemsFit(items, true)) return false;
      if (sameSet(missing) !== sameSet(named)) return false;
      for (const name of named) replay.pipelines.add(name);
      replay.addItems(items, 'actor');
      return true;
    }
    if (!rule || 'pipelines' in entry || !replay.doItemsFit(items, false)) return false;
    if (replay.roundsOf(rule) >= (rule.when?.atMost ?? 1)) return false;
    replay.rounds.set(rule.id, replay.roundsOf(rule) + 1);
    replay.addItems(items, { rule: rule.id });
    return true;
  },

  'run.concluded'(replay, entry) {
    const rule = replay.rulesById.get(entry.rule);
    if (!rule) return false;
    const acting = replay.tryRules(() => actionOf(replay, rule));
    const isClash = Boolean(acting?.value?.isClash);
    if (acting && (acting.value?.outcome !== entry.outcome || 'detail' in entry !== isClash)) {
      replay.codes.add('rule');
      return false;
    }
    if (replay.isClosed || replay.hasConcluded(rule)) return false;
    const { outcome, detail = null } = entry;
    replay.conclusions.push({ rule: rule.id, outcome, detail });
    return true;
  },

  'run.closed'(replay, entry) {
    if (replay.isClosed || !replay.isSettled) return false;
    if (
      replay.countingItems().every((item) => replay.isGood(item)) &&
      conclusionsInForce(replay).length === 0
    ) {
      for (const rule of replay.rules.filter((each) => !each.when?.if?.length)) {
        const action = actionOf(replay, rule);
        if (!action) continue;
        const outcome = 'create' in rule ? 'closed-early' : action.outcome;
        replay.earlyConclusions.push({ rule: rule.id, outcome });
      }
    }
    replay.isClosed = true;
    replay.closing = entry;
    return true;
  },

  'run.cancelled'(replay, entry) {
    return runTransitions['run.closed'](replay, entry);
  },

  'run.sealed'(replay, entry) {
    const isComplete = () =>
      !replay.plan.openEnded && replay.countingItems().every((item) => item.status === 'done');
    const named = Object.keys(entry.stopped ?? {});
    const areRules = !replay.hasConclusion && named.every((id) => replay.rulesById.has(id));
    const isLegal =
      replay.isSettled &&
      (replay.isClosed || isComplete()) &&
      (areRules || !('stopped' in entry));
    for (const rule of replay.isClosed ? [] : replay.rules) {
      const doesWait = () => Boolean(actionOf(replay, rule)) || hasStoppedShort(replay, rule);
      if (replay.tryRules(doesWait)?.value) replay.codes.add('rule-waits');
    }
    const read = replay.tryRules(() => rulesThatStopped(replay));
    replay.stoppedAtSeal = read ? read.value : sortNames(named);
    if (sameSet(replay.stoppedAtSeal) !== sameSet(named)) replay.codes.add('stopped');
    return isLegal;
  },
};
