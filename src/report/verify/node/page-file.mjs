// Checks a page in a file.

import { readFileSync } from 'node:fs';
import { fromBase64, toText, tryToRead } from '../bytes.mjs';
import { readBundle } from '../git/bundle.mjs';
import { verifyRun } from '../run/report.mjs';
import { verifyThread } from '../thread/verifier.mjs';
import { checkPage, pageMarks, partsOfPage, textBetween } from '../page/check.mjs';
import { scriptOf } from './script.mjs';

/**
 * Checks a page with the script and the template of this checkout. The page is judged without
 * signers, as in a browser; its runs and threads are reported with them.
 */
export async function checkPageFile(bytes, options = {}) {
  const template = readFileSync(new URL('../../page.html', import.meta.url), 'utf8');
  const page = tryToRead(() => toText(bytes));
  if (page === undefined)
    return { verdict: 'tampered', reasons: ['the page is not UTF-8'], runs: [] };
  const result = await checkPage(page, { template });
  if (textBetween(page, pageMarks.script, pageMarks.end) !== scriptOf(template)) {
    result.verdict = 'tampered';
    result.reasons.push('the script of the page is not the one of this program');
  }
  if (Object.keys(options).length > 0 && result.runs.length > 0) {
    const store = await readBundle(fromBase64(partsOfPage(page).evidenceText));
    result.runs = await Promise.all(
      result.runs.map(({ run, thread }) =>
        run === undefined ? verifyThread(store, thread, options) : verifyRun(store, run, options),
      ),
    );
  }
  return result;
}
