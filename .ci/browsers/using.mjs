// How a page is used: by screen readers, by keyboard, on narrow screens, on paper, with many items.
import { readFile, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { awaitVerdict, fileUrl, openTab } from './browsers.mjs';
import { closing, exists, expect, isSample, openAll, pathOf, VERDICTS } from './common.mjs';

/** axe finds nothing, in light and in dark. */
export async function accessible(browser) {
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
export async function keyboard(browser) {
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
export async function readable(browser) {
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
export async function printed(browser) {
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

/** Large pages: their size, the time until the verdict, and whether they can be scrolled. */
export async function large(browser) {
  for (const [items, megabytes, seconds] of [[1_000, 5, 2], [10_000, 30, null]]) {
    const path = pathOf(`many-${items}`);
    if (!(await exists(path))) continue;
    const { size } = await stat(path);
    const where = `${items} items`;
    expect(where, size < megabytes * 1e6, `the page has ${size} bytes`);
    await closing(await openTab(browser, fileUrl(path), { isTimed: true }), async (tab) => {
      await tab.evaluate(() => scrollTo(0, document.body.scrollHeight));
      expect(where, await tab.evaluate(() => scrollY > 1_000), 'it cannot be scrolled');
      await tab.evaluate(() => (document.getElementById('r0i5').open = true));
      const verdict = await awaitVerdict(tab, { limit: 180_000 });
      const isOpen = await tab.evaluate(() => document.getElementById('r0i5').open !== false);
      expect(where, isOpen, 'an item that the reader opened meanwhile is closed');
      const took = await tab.evaluate(() => Math.round(window.verdictAt));
      expect(where, verdict === 'intact', `verdict ${verdict}`);
      console.log(`  ${where}: ${(size / 1e6).toFixed(1)} MB, recomputed after ${took} ms`);
      if (seconds) expect(where, took < seconds * 1_000, `the verdict took ${took} ms`);
      expect(where, tab.noise.length === 0, tab.noise.join('; '));
    });
  }
}
