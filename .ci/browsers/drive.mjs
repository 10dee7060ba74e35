// Opens pages in real browsers and checks what a reader gets. Prints a line for each group of checks
// and every fault, and ends with 1 if there is one.
//
//   node drive.mjs PAGES SNAPSHOTS [--sample] [--only GROUP]
import { readFile, writeFile, rm, mkdir, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { awaitVerdict, chromium, fileUrl, firefox, INSECURE_HOST, openTab, serve, verdictOf } from './browsers.mjs';
import { outlineOf, settled } from './outline.mjs';
import { disguised, tampered, whitewashed } from './tampering.mjs';

const [pages, snapshots, ...flags] = process.argv.slice(2);
const isSample = flags.includes('--sample');
const only = flags.includes('--only') ? flags[flags.indexOf('--only') + 1] : null;
const start = Date.now();

/** The verdict of each page once it is recomputed. */
const VERDICTS = {
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
const SNAPSHOTS = ['small', 'red', 'hostile'];
const NOTHING = 'nothing has been recomputed in this page';

/** How many tabs work at once on the tampered pages. */
const TABS = 4;

const faults = [];
const fault = (where, text) => {
  faults.push(where);
  console.log(`FAULT ${where}: ${text}`);
};
const expect = (where, isRight, text) => isRight || fault(where, text);

const pathOf = (name) => join(pages, `${name}.html`);
const exists = (path) => stat(path).then(() => true, () => false);

const verdictTextOf = (tab) => tab.evaluate(() => document.getElementById('verdict')?.textContent ?? '');

/** Returns the cells of the checks that the script fills. */
const cellsOf = (tab) =>
  tab.evaluate(() =>
    [...document.querySelectorAll('td[id]')]
      .filter((cell) => /^[rt]\d+-[a-z]+$/.test(cell.id))
      .map((cell) => [cell.id, cell.textContent]));

const openAll = (tab) =>
  tab.evaluate(() => document.querySelectorAll('details').forEach((details) => (details.open = true)));

async function closing(tab, work) {
  try {
    return await work(tab);
  } finally {
    await tab.close();
  }
}

// ---- groups of checks ----

/** Without scripts, and under the header of Jenkins, a page says that nothing has been recomputed. */
async function withoutScripts(browser, server) {
  for (const name of Object.keys(VERDICTS)) {
    const still = async (where, tab) => {
      expect(where, (await verdictOf(tab)) === 'not-recomputed', `verdict ${await verdictOf(tab)}`);
      expect(where, (await verdictTextOf(tab)) === NOTHING, `it says ${await verdictTextOf(tab)}`);
      const filled = (await cellsOf(tab)).filter(([, text]) => text !== 'not recomputed');
      expect(where, filled.length === 0, `cells say ${filled}`);
      return outlineOf(tab);
    };
    const where = `${name}, scripts off`;
    const plain = await closing(await openTab(browser, fileUrl(pathOf(name)), { scripts: false }), async (tab) => {
      expect(where, tab.noise.length === 0, tab.noise.join('; '));
      return still(where, tab);
    });
    const jenkins = `${name}, Jenkins`;
    await closing(await openTab(browser, `http://127.0.0.1:${server.port}/jenkins/${name}.html`), async (tab) => {
      const requests = tab.noise.filter((text) => /^(request|dialog|page error)/.test(text));
      expect(jenkins, requests.length === 0, requests.join('; '));
      expect(jenkins, (await still(jenkins, tab)) === plain, 'it reads otherwise than with scripts off');
    });
    if (SNAPSHOTS.includes(name)) await compareSnapshot(name, settled(plain));
  }
}

async function compareSnapshot(name, text) {
  const path = join(snapshots, `${name}.txt`);
  if (process.env.UPDATE) {
    await mkdir(snapshots, { recursive: true });
    await writeFile(path, text);
    return;
  }
  const expected = await readFile(path, 'utf8').catch(() => '');
  if (text === expected) return;
  const [old, now] = [expected.split('\n'), text.split('\n')];
  const line = now.findIndex((one, index) => one !== old[index]);
  fault(`snapshot ${name}`, `line ${line + 1} was\n    ${old[line]}\n  and is\n    ${now[line]}\n  UPDATE=1 writes ${path}`);
}

/** With scripts a page recomputes itself, from a file and from a host that is no secure context. */
async function recomputed(browser, server) {
  for (const [name, verdict] of Object.entries(VERDICTS)) {
    const urls = [[fileUrl(pathOf(name)), 'file']];
    if (name === 'small') urls.push([`http://${INSECURE_HOST}:${server.port}/plain/small.html`, 'http']);
    for (const [url, way] of urls) {
      const where = `${name}, ${way}`;
      await closing(await openTab(browser, url), async (tab) => {
        const found = await awaitVerdict(tab);
        const notes = await tab.evaluate(() => document.getElementById('notes')?.textContent ?? '');
        expect(where, found === verdict, `verdict ${found} instead of ${verdict}: ${notes.slice(0, 500)}`);
        const text = await verdictTextOf(tab);
        expect(where, text.startsWith('recomputed here'), `it says ${text}`);
        const cells = await cellsOf(tab);
        expect(where, cells.length >= 4, `it has ${cells.length} cells of checks`);
        const left = cells.filter(([, cell]) => !cell.startsWith('recomputed here'));
        expect(where, left.length === 0, `cells say ${left}`);
        expect(where, tab.noise.length === 0, tab.noise.join('; '));
      });
    }
  }
  await contentsShown(browser);
  // A fragment within a closed element opens it: that is the browser's doing, not tampering.
  await closing(await openTab(browser, `${fileUrl(pathOf('small'))}#known`), async (tab) => {
    const found = await awaitVerdict(tab);
    expect('small#known', found === 'intact', `verdict ${found}`);
  });
}

/** A page shows the contents that it carries, and names those that it does not. */
async function contentsShown(browser) {
  for (const content of ['none', 'small', 'all']) {
    const where = `content ${content}`;
    await closing(await openTab(browser, fileUrl(pathOf(`content-${content}`))), async (tab) => {
      await openAll(tab);
      const image = await tab.evaluate(() => document.querySelector('img')?.naturalWidth ?? null);
      expect(where, image === (content === 'none' ? null : 2), `the image is ${image} pixels wide`);
      const text = await tab.evaluate(() => document.querySelector('main').textContent);
      const count = text.split('left out of this page').length - 1;
      const most = { none: 6, small: 1, all: 0 }[content];
      expect(where, count === most, `${count} products are left out instead of ${most}`);
      expect(where, text.includes('docs/spec.md'), 'it does not name the artifact');
    });
  }
}

/** Hostile names are text. */
async function hostileNames(browser, where) {
  await closing(await openTab(browser, fileUrl(pathOf('hostile'))), async (tab) => {
    await awaitVerdict(tab);
    const text = await tab.evaluate(() => document.querySelector('main').textContent);
    for (const name of ['<script>alert(1)</script>', `"quoted" 'item' & more &amp; <b>`, '\u6f22\u5b57', '__proto__',
      '{{title}} {{{evidence}}} {{#runs}}', '</title></svg><img src=x onerror=alert(1)>', 'x'.repeat(128),
      '\u6587\u4ef6 \u{1f4c4}.txt', '<img src=x onerror=alert(1)> \u05d0.json']) {
      expect(where, text.includes(name), `it does not show ${name}`);
    }
    const strange = await tab.evaluate(() => document.querySelectorAll('main script, main img, main b, [onerror], [onload]').length);
    expect(where, strange === 0, `${strange} elements come from names`);
    expect(where, !/[\u202a-\u202e\u2066-\u2069\u200e\u200f\u001b\ufeff]/.test(text), 'it shows characters that reorder or hide text');
    const dialogs = tab.noise.filter((one) => /^(dialog|request|page error)/.test(one));
    expect(where, dialogs.length === 0, dialogs.join('; '));
  });
}

/** axe finds nothing, in light and in dark. */
async function accessible(browser) {
  const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  const violations = async (where, tab) => {
    await openAll(tab);
    const found = await tab.evaluate(`${axe}; axe.run(document, { resultTypes: ['violations'] }).then((result) => result.violations.map((one) => one.id + ': ' + one.help + ' (' + one.nodes.length + ': ' + one.nodes[0].html.slice(0, 200) + ' ' + (one.nodes[0].any[0]?.message ?? '') + ')'))`);
    expect(where, found.length === 0, `\n    ${found.join('\n    ')}`);
  };
  for (const name of isSample ? ['red', 'cross', 'content-small'] : Object.keys(VERDICTS)) {
    await closing(await openTab(browser, fileUrl(pathOf(name))), async (tab) => {
      await awaitVerdict(tab);
      for (const scheme of ['light', 'dark']) {
        await tab.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
        await violations(`axe ${name}, ${scheme}`, tab);
      }
    });
  }
}

/** Tab reaches everything that a mouse reaches, Enter opens details, and a focus is visible. */
async function keyboard(browser) {
  const where = 'keyboard';
  await closing(await openTab(browser, fileUrl(pathOf('partial'))), async (tab) => {
    await awaitVerdict(tab);
    await tab.keyboard.press('Tab');
    const first = await tab.evaluate(() => document.activeElement.localName);
    expect(where, first === 'summary', `Tab reaches ${first} first`);
    await tab.keyboard.press('Enter');
    expect(where, await tab.evaluate(() => document.activeElement.parentElement.open), 'Enter does not open details');
    await openAll(tab);
    await tab.evaluate(() => {
      window.wanted = [...document.querySelectorAll('a[href], summary, button, textarea, [tabindex="0"]')];
      document.activeElement.blur();
    });
    const count = await tab.evaluate(() => window.wanted.length);
    const reached = new Set();
    for (let press = 0; press < count + 5; press++) {
      await tab.keyboard.press('Tab');
      const at = await tab.evaluate(() => {
        const { outlineStyle } = getComputedStyle(document.activeElement);
        return [window.wanted.indexOf(document.activeElement), outlineStyle, document.activeElement.outerHTML.slice(0, 80)];
      });
      reached.add(at[0]);
      if (at[0] >= 0) expect(where, at[1] !== 'none', `the focus cannot be seen on ${at[2]}`);
    }
    const missed = await tab.evaluate((seen) =>
      window.wanted.filter((_, index) => !seen.includes(index)).map((one) => one.outerHTML.slice(0, 80)), [...reached]);
    expect(where, missed.length === 0, `Tab does not reach ${missed.join(', ')}`);
  });
}

/** A page fits on a screen and on a phone, and a name does not reorder what stands behind it. */
async function readable(browser) {
  for (const name of Object.keys(VERDICTS)) {
    await closing(await openTab(browser, fileUrl(pathOf(name)), { scripts: false }), async (tab) => {
      await openAll(tab);
      for (const width of [1_000, 400]) {
        await tab.setViewport({ width, height: 800 });
        const wide = await tab.evaluate(() => document.documentElement.scrollWidth);
        expect(`${name}, ${width} wide`, wide <= width, `it is ${wide} wide`);
        // On a phone, the tables of many columns may break words.
        const word = await tab.evaluate(brokenWord, width > 400 ? 'td:not(.code), th[scope=col]' : 'td[id]');
        expect(`${name}, ${width} wide`, !word, `it breaks the word "${word}"`);
      }
    });
  }
  await closing(await openTab(browser, fileUrl(pathOf('hostile')), { scripts: false }), async (tab) => {
    const isInOrder = await tab.evaluate(() => {
      const heading = document.querySelector('h2');
      const walker = document.createTreeWalker(heading, NodeFilter.SHOW_TEXT);
      const places = [];
      while (walker.nextNode()) {
        const node = walker.currentNode;
        for (let at = 0; at < node.length; at++) {
          const range = document.createRange();
          range.setStart(node, at);
          range.setEnd(node, at + 1);
          places.push([node.data[at], range.getBoundingClientRect()]);
        }
      }
      const colon = places.findLastIndex(([sign]) => sign === ':');
      const end = Math.max(...places.slice(0, colon).map(([, place]) => place.right));
      return places.slice(colon).every(([, place]) => place.left >= end - 1 || place.top > places[0][1].top + 5);
    });
    expect('hostile, direction', isInOrder, 'the name in the heading reorders the text behind it');
  });
}

/** Returns a short word in a table that stands on two lines, or null. Runs in the page. */
function brokenWord(cells) {
  for (const cell of document.querySelectorAll(cells)) {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode;
      if (node.parentElement.closest('code, pre, .code')) continue;
      for (const match of node.data.matchAll(/[A-Za-z]{2,12}/g)) {
        const range = document.createRange();
        range.setStart(node, match.index);
        range.setEnd(node, match.index + match[0].length);
        if (new Set([...range.getClientRects()].map((one) => Math.round(one.top))).size > 1) return match[0];
      }
    }
  }
  return null;
}

/** A page can be printed. */
async function printed(browser) {
  await closing(await openTab(browser, fileUrl(pathOf('partial'))), async (tab) => {
    await awaitVerdict(tab);
    await tab.emulateMediaType('print');
    const shown = await tab.evaluate(() => [getComputedStyle(document.getElementById('check')).display, document.documentElement.scrollWidth <= innerWidth]);
    expect('print', shown[0] === 'none', 'the form for keys is printed');
    expect('print', shown[1], 'the page is wider than the paper');
    const pdf = await tab.pdf({ format: 'A4', printBackground: true });
    expect('print', Buffer.from(pdf.slice(0, 5)).toString() === '%PDF-' && pdf.length > 20_000, `the PDF has ${pdf.length} bytes`);
  });
}

/** The keys that a reader pastes are compared with those that signed. */
async function pastedKeys(browser) {
  await closing(await openTab(browser, fileUrl(pathOf('small'))), async (tab) => {
    await awaitVerdict(tab);
    await openAll(tab);
    const fingerprint = await tab.evaluate(() => document.body.textContent.match(/SHA256:[A-Za-z0-9+/]{43}/)[0]);
    const compared = async (text) => {
      const before = await tab.evaluate((value) => {
        document.getElementById('known').value = value;
        const compared = document.getElementById('compared');
        compared.textContent = '';
        document.getElementById('compare').click();
        return compared.textContent;
      }, text);
      for (let round = 0; round < 200; round++) {
        const now = await tab.evaluate(() => document.getElementById('compared').textContent);
        if (now) return now;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      return before;
    };
    const [known, unknown, nonsense] = [await compared(fingerprint), await compared(`SHA256:${'A'.repeat(42)}E`), await compared('what')];
    console.log(`  pasted keys: "${known}" / "${unknown}" / "${nonsense}"`);
    expect('pasted keys', known && unknown && nonsense, 'a comparison says nothing');
    expect('pasted keys', known !== unknown && known !== nonsense, `a strange key is answered as the right one: ${known}`);
    expect('pasted keys', tab.noise.length === 0, tab.noise.join('; '));
  });
}

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

/** Every change of a page ends in the verdict `tampered`. */
async function tampering(browser) {
  const most = isSample
    ? { texts: 120, attributes: 4, evidence: 40, claims: 30 }
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
  if (!isSample) {
    for (const name of ['hostile', 'cross', 'content-small', 'partial']) {
      const page = await readFile(pathOf(name), 'utf8');
      count += await each(browser, tampered(page, { texts: 150, attributes: 10, evidence: 40, claims: 60 }), mustBeTampered);
    }
  }
  console.log(`  ${count} changed pages`);
}

/** Large pages: their size, the time until the verdict, and whether they can be scrolled. */
async function large(browser) {
  for (const [items, megabytes, seconds] of [[1_000, 5, 2], [10_000, 30, null]]) {
    const path = pathOf(`many-${items}`);
    if (!(await exists(path))) continue;
    const { size } = await stat(path);
    const where = `${items} items`;
    expect(where, size < megabytes * 1e6, `the page has ${size} bytes`);
    await closing(await openTab(browser, fileUrl(path), { isTimed: true }), async (tab) => {
      await tab.evaluate(() => scrollTo(0, document.body.scrollHeight));
      expect(where, await tab.evaluate(() => scrollY > 1_000), 'it cannot be scrolled');
      const verdict = await awaitVerdict(tab, { limit: 180_000 });
      const took = await tab.evaluate(() => Math.round(window.verdictAt));
      expect(where, verdict === 'intact', `verdict ${verdict}`);
      console.log(`  ${where}: ${(size / 1e6).toFixed(1)} MB, recomputed after ${took} ms`);
      if (seconds) expect(where, took < seconds * 1_000, `the verdict took ${took} ms`);
      expect(where, tab.noise.length === 0, tab.noise.join('; '));
    });
  }
}

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
