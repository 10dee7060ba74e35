// The script of a page, joined from its modules as src/report/script.rs does.

import { readFileSync } from 'node:fs';
import { inScript } from '../page/facts.mjs';

/** The modules of the script in their order: each imports only modules above it. */
const modules = [
  'bytes.mjs',
  'limits.mjs',
  'crypto/hashes.mjs',
  'crypto/ed25519.mjs',
  'json.mjs',
  'values.mjs',
  'names.mjs',
  'schemas.mjs',
  'git/inflate.mjs',
  'git/reader.mjs',
  'git/pack.mjs',
  'git/tree.mjs',
  'git/store.mjs',
  'git/bundle.mjs',
  'crypto/signature.mjs',
  'entries/kinds.mjs',
  'entries/subject.mjs',
  'entries/commit.mjs',
  'entries/merkle.mjs',
  'plan/items.mjs',
  'plan/plan.mjs',
  'plan/manifest.mjs',
  'protected/patch.mjs',
  'protected/pathspec.mjs',
  'protected/protected.mjs',
  'chain/chain.mjs',
  'chain/signers.mjs',
  'chain/roles.mjs',
  'chain/log.mjs',
  'findings.mjs',
  'report.mjs',
  'replay/item.mjs',
  'replay/compare.mjs',
  'replay/templates.mjs',
  'replay/rules.mjs',
  'replay/outcome.mjs',
  'replay/blocks.mjs',
  'replay/item-transitions.mjs',
  'replay/run-transitions.mjs',
  'replay/replay.mjs',
  'proof.mjs',
  'thread/chain.mjs',
  'run/chain.mjs',
  'run/root.mjs',
  'run/content.mjs',
  'run/manifests.mjs',
  'run/protected.mjs',
  'run/evidence.mjs',
  'run/start.mjs',
  'run/plan.mjs',
  'run/verifier.mjs',
  'run/report.mjs',
  'thread/verifier.mjs',
  'verification.mjs',
  'page/printable.mjs',
  'page/template.mjs',
  'page/words.mjs',
  'page/contents.mjs',
  'page/timing.mjs',
  'page/marks.mjs',
  'page/item-facts.mjs',
  'page/run-facts.mjs',
  'page/thread-facts.mjs',
  'page/facts.mjs',
  'page/picture.mjs',
  'page/claims.mjs',
  'page/check.mjs',
  'page/browser.mjs',
  'handoff.mjs',
];

/** Returns the text of a module without its imports, and without the word `export`. */
function withoutModuleSyntax(text) {
  return text.replace(/^import [^;]*;\n/gm, '').replace(/^export /gm, '');
}

/** Returns the verifier as one text, which is an ordinary script. */
export function joinModules() {
  const read = (file) => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
  const texts = modules.map((file) => withoutModuleSyntax(read(file)));
  return ["'use strict';\n", ...texts].join('\n');
}

/** Returns the script of every page: the verifier and the template. */
export function scriptOf(template) {
  const json = inScript(JSON.stringify(template));
  return `\n${joinModules()}\nHandoff.template = ${json};\nHandoff.openPage();\n`;
}
