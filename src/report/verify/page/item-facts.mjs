// The facts of an item: its manifest, its entries and its end.

import { isCount, isString } from '../values.mjs';
import { bytesWord, exitWord, joinWords, listWord, noteOf, plainWord } from './words.mjs';

/** Row of a table of entries. */
export function stepFacts({ entry, leafHash: hash }) {
  const { seq, at, kind, attempt = null, actor } = entry;
  return { seq, at, kind, attempt, actor, note: noteOf(entry), hash };
}

export function manifestFacts(manifest) {
  const claims = manifest.claims ?? {};
  const file = (value) => (isString(value?.path) ? `${value.path}, ${bytesWord(value)}` : '');
  const version = plainWord(claims.program?.version);
  const program = file(claims.program);
  const names = Array.isArray(claims.env) ? claims.env.length : 0;
  return [
    ['Command', manifest.argv],
    ['Setup', manifest.setup],
    ['Check', manifest.verify],
    ['Program', version === '' ? program : `${program}, ${version}`],
    ['Interpreter', file(claims.interpreter)],
    ['Sandbox', claims.sandbox],
    ['Network', claims.network],
    ['Access', accessWord(claims)],
    ['Time limit', isCount(manifest.timeout) ? `${manifest.timeout} s` : ''],
    ['Protected files', protectWord(manifest.protect)],
    ['Environment', names > 0 ? `${names} variables, named in the manifest` : ''],
  ];
}

/** Names the pathspecs of protected files, and the exceptions of everything. */
const protectWord = (rules) =>
  Array.isArray(rules)
    ? rules
        .map((rule) => (isString(rule) ? rule : `everything except ${listWord(rule?.except)}`))
        .join(', ')
    : '';

/** Says what a worker could reach besides its worktree. */
function accessWord(claims) {
  const home = isString(claims.home) ? [`home: ${claims.home}`] : [];
  const lists = ['writable', 'readable', 'linked', 'copied'].filter((name) =>
    Array.isArray(claims[name]),
  );
  const counted = lists.map((name) => {
    const count = claims[name].length;
    return `${name}: ${count} ${count === 1 ? 'place' : 'places'}: ${listWord(claims[name])}`;
  });
  return [...home, ...counted].join('; ');
}

export function endFacts({ claims = {}, reused, ...ended }) {
  const checkWord = (run) =>
    joinWords([plainWord(run?.argv), exitWord(run?.exit), bytesWord(run?.output)]);
  return [
    ['Summary by the worker', claims.summary],
    ['Model, by its own account', claims.model],
    ['Session', claims.session],
    ['Use, by its own account', ended.usage],
    ['Left out of the patch', listWord(claims.excluded)],
    ['Check before the work', checkWord(ended.checkBefore)],
    ['Check after the work', checkWord(ended.check)],
    ['Reused from', reused ? `${reused.run}/${reused.item}` : ''],
    ['Blocks of the pipeline', ended.blocks],
    ['Transcript, not in this page', bytesWord(ended.transcript)],
  ];
}
