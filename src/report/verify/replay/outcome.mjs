// The outcome of a run: how many items are done, and why rules stopped (section 9).

import {
  actionOf,
  conclusionsInForce,
  isAtLimit,
  rulesThatStopped,
  UnreadableDocument,
} from './rules.mjs';

export const outcomeWords = ['red', 'failed', 'skipped', 'cancelled', 'running', 'pending'];

/** In words: `2 of 4 done, 1 failed, 1 skipped`. */
export function textOfOutcome(outcome, words = outcomeWords) {
  const counts = words
    .filter((word) => outcome[word] > 0)
    .map((word) => `${outcome[word]} ${word}`);
  return [`${outcome.done} of ${outcome.total} done`, ...counts, ...(outcome.said ?? [])].join(
    ', ',
  );
}

export const emptyOutcome = () => ({
  total: 0,
  ...{ done: 0, red: 0, failed: 0, skipped: 0, cancelled: 0, running: 0, pending: 0 },
});

function handsOverNothing(replay, item) {
  return (
    Object.keys(item.products).length === 0 &&
    item.definition.executor !== 'approval' &&
    replay.gateOf(item.id) === null &&
    item.definition.produces?.length !== 0 &&
    (item.blocks === null || item.blocks.some((block) => block.kind === 'capture'))
  );
}

export function outcomeOf(replay) {
  const counts = emptyOutcome();
  let withNothing = 0;
  let claimed = 0;
  for (const item of replay.countingItems()) {
    counts.total++;
    if (item.status !== 'done') counts[item.status ?? 'pending']++;
    else {
      counts[replay.isGood(item) ? 'done' : 'red']++;
      if (handsOverNothing(replay, item)) withNothing++;
      if (item.definition.executor === 'claimed') claimed++;
    }
  }
  if (replay.superseded.size > 0) counts.superseded = replay.superseded.size;
  if (withNothing > 0) counts.handedOverNothing = withNothing;
  if (claimed > 0) counts.claimed = claimed;
  const said = [...conclusionsInForce(replay), ...replay.earlyConclusions];
  if (said.length > 0) counts.said = said.map((conclusion) => conclusion.outcome);
  const stopped = [
    ...said.map(({ rule, outcome, detail }) => ({
      rule,
      reason: detail ? `${outcome}: ${detail}` : outcome,
    })),
    ...(replay.stoppedAtSeal ?? stoppedForOutcome(replay)).map((rule) => ({
      rule,
      reason: whyStopped(replay, rule),
    })),
  ];
  if (stopped.length > 0) counts.stopped = stopped[0];
  if (stopped.length > 1) counts.alsoStopped = stopped.slice(1);
  return counts;
}

function stoppedForOutcome(replay) {
  try {
    return rulesThatStopped(replay);
  } catch (error) {
    // A rule whose document cannot be read may have stopped.
    if (error instanceof UnreadableDocument) return [error.rule];
    throw error;
  }
}

function whyStopped(replay, id) {
  const rule = replay.rulesById.get(id);
  if (!rule) return 'the run has no such rule';
  if (isAtLimit(replay, rule))
    return `it may act ${rule.when?.atMost ?? 1} times, and would act again`;
  try {
    if (replay.isClosed && actionOf(replay, rule)) return 'it still acts, and the run was closed';
  } catch (error) {
    if (!(error instanceof UnreadableDocument)) throw error;
    return error.message;
  }
  return 'it finds nothing to compare where it looks';
}
