// The names of this verifier for others: for the page, the command and the tests.

import { FormatError } from './bytes.mjs';
import { settings } from './crypto/ed25519.mjs';
import { readBundle } from './git/bundle.mjs';
import { readPatch } from './protected/patch.mjs';
import { readPathspec } from './protected/pathspec.mjs';
import { isPartial } from './findings.mjs';
import { verifyProof } from './proof.mjs';
import { verifyRun } from './run/report.mjs';
import { verifyThread } from './thread/verifier.mjs';
import { namesIn } from './verification.mjs';
import { toLine } from './page/printable.mjs';
import { fill, pageTemplate } from './page/template.mjs';
import { pageFacts } from './page/facts.mjs';
import { checkPage, comparePage, partsOfPage, recompute } from './page/check.mjs';
import { openPage } from './page/browser.mjs';

export const Handoff = {
  readBundle,
  verifyRun,
  verifyProof,
  verifyThread,
  runsIn: (store) => namesIn(store, 'runs'),
  threadsIn: (store) => namesIn(store, 'threads'),
  fill,
  pageFacts,
  checkPage,
  partsOfPage,
  recompute,
  comparePage,
  openPage,
  get template() {
    return pageTemplate.text;
  },
  /** The script of a page sets its template. */
  set template(text) {
    pageTemplate.text = text;
  },
  FormatError,
  settings,
  isPartial,
  readPatch,
  readPathspec,
  toLine,
};
