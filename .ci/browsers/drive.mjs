// Opens pages in real browsers and checks what a reader gets. Prints a line for each group of checks
// and every fault, and ends with 1 if there is one.
//
//   node drive.mjs PAGES SNAPSHOTS [--sample] [--only GROUP]
import { awaitVerdict, chromium, fileUrl, firefox, openTab, serve } from './browsers.mjs';
import { closing, expect, fault, faults, flags, pages, pathOf } from './common.mjs';
import { tampering } from './forging.mjs';
import { hostileNames, pastedKeys, recomputed, withoutScripts } from './reading.mjs';
import { accessible, keyboard, large, printed, readable } from './using.mjs';

const only = flags.includes('--only') ? flags[flags.indexOf('--only') + 1] : null;
const start = Date.now();

/** Firefox recomputes the small page, and shows hostile names as text. */
async function inFirefox() {
  const browser = await firefox();
  try {
    await closing(await openTab(browser, fileUrl(pathOf('small'))), async (tab) => {
      const verdict = await awaitVerdict(tab);
      expect('Firefox, small', verdict === 'intact', `verdict ${verdict}`);
      expect('Firefox, small', tab.noise.length === 0, tab.noise.join('; '));
    });
    await hostileNames(browser, 'Firefox, hostile');
  } finally {
    await browser.close();
  }
}

async function main() {
  const server = await serve(pages);
  const browser = await chromium();
  const groups = {
    'scripts off and Jenkins': () => withoutScripts(browser, server),
    recomputed: () => recomputed(browser, server),
    'hostile names': () => hostileNames(browser, 'hostile'),
    axe: () => accessible(browser),
    keyboard: () => keyboard(browser),
    'widths and directions': () => readable(browser),
    print: () => printed(browser),
    'pasted keys': () => pastedKeys(browser),
    large: () => large(browser),
    Firefox: () => inFirefox(),
    tampering: () => tampering(browser),
  };
  try {
    for (const [name, check] of Object.entries(groups)) {
      if (only && only !== name) continue;
      const before = faults.length;
      await check().catch((error) => fault(name, error.stack));
      const count = faults.length - before;
      console.log(`${name}: ${count ? `${count} faults` : 'passed'} (after ${Math.round((Date.now() - start) / 1000)} s)`);
    }
  } finally {
    await browser.close();
    server.close();
  }
  if (faults.length) console.log(`${faults.length} faults`);
  process.exitCode = faults.length ? 1 : 0;
}

await main();
