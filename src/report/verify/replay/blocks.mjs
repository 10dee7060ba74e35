// Compares the blocks that an entry records with the pipeline of its item.

import { pipelineNameOf } from '../plan/plan.mjs';

export function areBlocksLegal(replay, item, entry) {
  const name = pipelineNameOf(item.definition);
  const pipeline = replay.pipelines.has(name) ? replay.usablePipelines.get(name) : undefined;
  if (pipeline === null) return true;
  if (pipeline === undefined || entry.attempt === 0) return !('blocks' in entry);
  const blocks = entry.blocks ?? [];
  if (blocks.length > pipeline.blocks.length) return false;
  let canFollow = true;
  let firstVerdict = null;
  for (const [i, block] of blocks.entries()) {
    const definition = pipeline.blocks[i];
    if (!canFollow || block.ordinal !== i || !isBlockLegal(block, definition)) return false;
    firstVerdict ??= block.verify ?? null;
    canFollow = isCheckBlock(definition) ? 'verify' in block : block.status === 'done';
  }
  if (entry.kind !== 'item.reconciled' || entry.status !== 'done') return true;
  if (blocks.length < pipeline.blocks.length || !canFollow) return false;
  const { verify } = entry;
  const isOwnVerdict = verify?.by === 'self';
  const fits = firstVerdict
    ? verify && (isOwnVerdict ? !verify.passed : verify.passed === firstVerdict.passed)
    : !verify || isOwnVerdict;
  if (!fits) return false;
  const captured = pipeline.blocks.map((block) => block.what);
  return Object.keys(entry.products).every((key) =>
    captured.includes(key === 'patch' ? 'patch' : 'outputs'),
  );
}

export function isExitLegal(exit, isDone = false) {
  if (exit === undefined) return true;
  if ('code' in exit === 'signal' in exit) return false;
  return !isDone || exit.code === 0;
}

const isCheckBlock = (definition) => definition.kind === 'script' && definition.lens === 'verify';

function isBlockLegal(block, definition) {
  if (block.kind !== definition.kind) return false;
  if (!isExitLegal(block.exit) || ('exit' in block && block.kind === 'capture')) return false;
  const isDone = block.status === 'done';
  if (isDone && block.kind !== 'capture' && block.exit?.code !== 0) return false;
  if (!('verify' in block)) return !(isCheckBlock(definition) && isDone);
  const { passed, by } = block.verify;
  return isCheckBlock(definition) && by === 'command' && passed === isDone;
}
