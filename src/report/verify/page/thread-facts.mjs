// The facts that a page shows of a thread.

import { isObject } from '../json.mjs';
import { checkpointName, threadRows } from '../thread/chain.mjs';
import { claimFacts, factsOf, joinWords } from './words.mjs';
import { productFacts } from './contents.mjs';

/** The facts that a page shows of a thread. */
export function threadFacts(store, { thread, links }, claims, number) {
  const anchor = `t${number}`;
  const [first, last] = [links[0], links.at(-1)];
  const facts = factsOf([
    ['Entries', links.length],
    ['Begun at', first?.entry.at],
    ['Begun by', first?.entry.actor],
    ['Last commit', last?.commit],
  ]);
  return {
    thread,
    claims: claimFacts(claims, anchor, threadRows),
    anchor,
    facts,
    steps: links.map((link) => threadStep(store, link)),
  };
}

function threadStep(store, { entry, leafHash: hash }) {
  const { seq, at, kind, actor, summary = null } = entry;
  const contents = ['state', 'packet'].filter((name) => isObject(entry[name]));
  return {
    seq,
    at,
    kind,
    actor,
    checkpoint: kind === 'thread.resumed' ? null : checkpointName({ entry, hash }),
    note: noteOfThread(entry),
    summary,
    contents: contents.map((name) => productFacts(store, name, entry[name])),
    hash,
  };
}

/** Says where an entry of a thread comes from, or what it goes back to. */
function noteOfThread({ run, adopted, from, to, checkpoint }) {
  const place = (source) => `${source.thread}:${source.checkpoint}`;
  const unknown = adopted?.acceptedUnknown ? ', a key unknown to the adopter' : '';
  return joinWords([
    run ? `made in run ${run.id}` : '',
    adopted ? `adopted from ${place(adopted)}, signed by ${adopted.signer}${unknown}` : '',
    from ? `forked from ${place(from)}` : '',
    to === undefined ? '' : `rolled back to ${to}`,
    checkpoint === undefined ? '' : `resumed at ${checkpoint}`,
  ]);
}
