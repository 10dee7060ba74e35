// Changed pages: each must say so.
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { awaitVerdict, fileUrl } from './browsers.mjs';
import { expect, isSample, pages, pathOf } from './common.mjs';
import { clobbered, disguised, tampered, whitewashed } from './tampering.mjs';

/** How many tabs work at once on the changed pages. */
const TABS = 4;

/** Opens changed pages, several at once, and hands each tab to a check. */
async function each(browser, changes, check) {
  const queue = changes[Symbol.iterator]();
  let count = 0;
  const worker = async (number) => {
    const path = join(pages, `tampered-${number}.html`);
    const tab = await browser.newPage();
    for (let next = queue.next(); !next.done; next = queue.next()) {
      count += 1;
      await writeFile(path, next.value[1]);
      await tab.goto(fileUrl(path), { waitUntil: 'domcontentloaded' });
      await check(tab, next.value);
    }
    await tab.close();
    await rm(path, { force: true });
  };
  await Promise.all(Array.from({ length: TABS }, (_, number) => worker(number)));
  return count;
}

/** Returns lists of the names of members that an element could take: all at once, then one by one. */
async function namesOfMembers(browser, most) {
  const tab = await browser.newPage();
  const names = await tab.evaluate(() => {
    const all = new Set();
    for (const type of [Document, Window, HTMLFormElement]) {
      for (let own = type.prototype; own; own = Object.getPrototypeOf(own)) {
        for (const name of Object.getOwnPropertyNames(own)) all.add(name);
      }
    }
    for (const name of Object.getOwnPropertyNames(window)) all.add(name);
    return [...all];
  });
  await tab.close();
  return [names, ...names.slice(0, most).map((name) => [name])];
}

/** Every change of a page ends in the verdict `tampered`. */
export async function tampering(browser) {
  const most = isSample
    ? { texts: 100, attributes: 3, evidence: 40, claims: 20 }
    : { texts: Infinity, attributes: 60, evidence: 300, claims: Infinity };
  const mustBeTampered = async (tab, [name]) => {
    // With another policy the script may not run at all.
    const isStill = name.startsWith('attribute content of <meta http-equiv');
    const verdict = await awaitVerdict(tab, { limit: isStill ? 1_000 : 5_000, expected: 'tampered' });
    const isRight = verdict === 'tampered' || (isStill && verdict === 'not-recomputed');
    expect(`tampered: ${name}`, isRight, `verdict ${verdict}`);
  };
  const mustNotDeceive = async (tab, [name, , forged]) => {
    const verdict = await awaitVerdict(tab, { limit: 1_000 });
    const isSeen = await tab.evaluate((text) => document.body.innerText.includes(text), forged).catch(() => true);
    const snapshot = JSON.stringify(await tab.accessibility.snapshot({ interestingOnly: false }));
    const isHeard = snapshot.includes(forged);
    expect(`disguised: ${name}`, ['tampered', 'not-recomputed'].includes(verdict) || !(isSeen || isHeard), `verdict ${verdict} beside a forged text`);
  };
  const html = await readFile(pathOf('small'), 'utf8');
  const open = await readFile(pathOf('open'), 'utf8');
  const red = await readFile(pathOf('red'), 'utf8');
  const evidence = /(id="evidence">)[^<]*/;
  const exchanged = [['evidence of another run', html.replace(evidence, () => red.match(evidence)[0])]];
  let count = await each(browser, tampered(html, most), mustBeTampered);
  count += await each(browser, whitewashed(open, 'open'), mustBeTampered);
  count += await each(browser, exchanged, mustBeTampered);
  count += await each(browser, disguised(html), mustNotDeceive);
  const lists = await namesOfMembers(browser, isSample ? 20 : Infinity);
  count += await each(browser, clobbered(html, lists), mustBeTampered);
  if (!isSample) {
    for (const name of ['hostile', 'cross', 'content-small', 'partial']) {
      const page = await readFile(pathOf(name), 'utf8');
      count += await each(browser, tampered(page, { texts: 150, attributes: 10, evidence: 40, claims: 60 }), mustBeTampered);
    }
  }
  console.log(`  ${count} changed pages`);
}
