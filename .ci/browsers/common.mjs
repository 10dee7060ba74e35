// What the groups of checks share: where the pages are, and the faults that were found.
import { join } from 'node:path';
import { stat } from 'node:fs/promises';

export const [pages, snapshots, ...flags] = process.argv.slice(2);
export const isSample = flags.includes('--sample');

/** The verdict of each page once it is recomputed. */
export const VERDICTS = {
  small: 'intact',
  red: 'partial',
  partial: 'partial',
  open: 'partial',
  hostile: 'partial',
  cross: 'intact',
  'content-none': 'intact',
  'content-small': 'intact',
  'content-all': 'intact',
  thread: 'intact',
  beside: 'intact',
};

export const faults = [];

export function fault(where, text) {
  faults.push(where);
  console.log(`FAULT ${where}: ${text}`);
}

export const expect = (where, isRight, text) => isRight || fault(where, text);

export const pathOf = (name) => join(pages, `${name}.html`);
export const exists = (path) => stat(path).then(() => true, () => false);

export const openAll = (tab) =>
  tab.evaluate(() => document.querySelectorAll('details').forEach((details) => (details.open = true)));

/** Does some work with a tab, and closes it. */
export async function closing(tab, work) {
  try {
    return await work(tab);
  } finally {
    await tab.close();
  }
}
