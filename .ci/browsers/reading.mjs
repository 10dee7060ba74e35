// What a reader gets: from a file, from servers, with scripts and without.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { awaitVerdict, fileUrl, INSECURE_HOST, openTab, verdictOf } from './browsers.mjs';
import { closing, expect, fault, openAll, pathOf, snapshots, VERDICTS } from './common.mjs';
import { outlineOf, settled } from './outline.mjs';

const SNAPSHOTS = ['small', 'red', 'hostile'];
const NOTHING = 'nothing has been recomputed in this page';

const verdictTextOf = (tab) => tab.evaluate(() => document.getElementById('verdict')?.textContent ?? '');

/** Returns the cells of the checks that the script fills. */
const cellsOf = (tab) =>
  tab.evaluate(() =>
    [...document.querySelectorAll('td[id]')]
      .filter((cell) => /^[rt]\d+-[a-z]+$/.test(cell.id))
      .map((cell) => [cell.id, cell.textContent]));

/** Without scripts, and under the header of Jenkins, a page says that nothing has been recomputed. */
export async function withoutScripts(browser, server) {
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
export async function recomputed(browser, server) {
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
      // Six products and an artifact.
      const most = { none: 7, small: 1, all: 0 }[content];
      expect(where, count === most, `${count} contents are left out instead of ${most}`);
      expect(where, text.includes('material/spec.md'), 'it does not name the artifact');
    });
  }
}

/** Hostile names are text. */
export async function hostileNames(browser, where) {
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
    // U+2068 and U+2069 isolate names where no markup can.
    expect(where, !/[\u202a-\u202e\u2066\u2067\u200e\u200f\u001b\ufeff]/.test(text), 'it shows characters that reorder or hide text');
    const dialogs = tab.noise.filter((one) => /^(dialog|request|page error)/.test(one));
    expect(where, dialogs.length === 0, dialogs.join('; '));
  });
}

/** The keys that a reader pastes are compared with those that signed. */
export async function pastedKeys(browser) {
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
