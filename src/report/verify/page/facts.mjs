// The facts for the whole page.

import { sortNames, toBytes } from '../bytes.mjs';
import { digestOf } from '../crypto/hashes.mjs';
import { canonical } from '../json.mjs';
import { rowNames } from '../findings.mjs';
import { claimFacts } from './words.mjs';
import { RunFacts } from './run-facts.mjs';
import { threadFacts } from './thread-facts.mjs';

/** Counts the blobs that the trees of the evidence name and that it does not have. */
function countLeftOut(store) {
  const missing = new Set();
  for (const [name, { type }] of store.objects) {
    const nodes = (type === 'tree' && store.readTree(name)?.nodes) || [];
    for (const { mode, isFolder, oid } of nodes)
      if (!isFolder && mode !== '160000' && !store.objects.has(oid)) missing.add(oid);
  }
  return missing.size;
}

export const inScript = (json) => json.replaceAll('<', '\\u003c');

/** The facts for the template, from the evidence, the claims, and the text of the script. */
export function pageFacts(store, reports, claims, scriptText, evidence) {
  const names = sortNames(Object.keys(claims.runs));
  const threadNames = sortNames(Object.keys(claims.threads));
  const runs = names.map((name, number) => {
    const own = claims.runs[name];
    const anchor = `r${number}`;
    const facts = own.isReadable
      ? new RunFacts(store, reports.runs.get(name), number).facts(own)
      : { anchor, run: name, outcome: 'unreadable', isUnreadable: true };
    return { ...facts, claims: claimFacts(own, anchor, rowNames) };
  });
  const threads = threadNames.map((name, number) =>
    threadFacts(store, reports.threads.get(name), claims.threads[name], number),
  );
  return {
    title: [...names, ...threadNames].join(', '),
    tool: claims.tool,
    written: claims.written,
    isNone: claims.content === 'none',
    isSmall: claims.content === 'small',
    isAll: claims.content === 'all',
    omitted: store.filtered ? countLeftOut(store) : 0,
    scriptHash: digestOf(toBytes(scriptText)),
    claimsJson: inScript(canonical(claims)),
    evidence,
    script: scriptText,
    runs,
    threads,
  };
}
