// Checks pages that `git handoff report` wrote, and that each change of them is found.
//
// Usage: node tests/interop/pages.mjs [--only-check] PAGE…
//        node tests/interop/pages.mjs --evidence BUNDLE PAGE: a page with this evidence is refused

import { readFileSync } from 'node:fs';
import { runInNewContext } from 'node:vm';
import Handoff, { checkPageFile } from '../../src/report/verify.mjs';
import { joinModules } from '../../src/report/verify/node/script.mjs';

const words = process.argv.slice(2);
const files = words.filter((word) => !word.startsWith('--'));
const mostOfAKind = 400;
/** About how long the changes of the evidence, and those of the claims, may take, in ms. */
const longest = 4000;
const template = readFileSync(new URL('../../src/report/page.html', import.meta.url), 'utf8');

/** Recomputes each different claims, evidence and script once. */
const known = new Map();

async function check(page) {
  const parts = Handoff.partsOfPage(page);
  if (Object.values(parts).includes(null)) return { verdict: 'tampered' };
  const key = Object.values(parts).join('\0');
  if (!known.has(key)) {
    if (known.size > 20) known.clear();
    known.set(key, await Handoff.recompute({ ...parts, template }));
  }
  return Handoff.comparePage(page, known.get(key));
}

/** Returns at most so many elements, evenly spread. */
function sample(list, most) {
  const step = Math.max(list.length / most, 1);
  return Array.from({ length: Math.min(list.length, most) }, (_, i) => list[Math.floor(i * step)]);
}

const replaceAt = (text, at, character) => text.slice(0, at) + character + text.slice(at + 1);
const otherCharacter = (character) => (character === 'x' ? 'y' : 'x');

/** Yields places of one character in each text and each attribute value within main. */
function placesInMain(page) {
  const start = page.indexOf('<main>');
  const end = page.indexOf('</main>');
  const places = [];
  const tag = /<[^>]*>/g;
  tag.lastIndex = start;
  for (let last = start; ;) {
    const match = tag.exec(page);
    if (!match || match.index > end) return places;
    if (match.index > last && page.slice(last, match.index).trim() !== '') {
      const text = page.slice(last, match.index);
      places.push(last + text.length - text.trimStart().length);
    }
    for (const value of match[0].matchAll(/="([^"]+)"/g))
      places.push(match.index + value.index + 2);
    last = match.index + match[0].length;
  }
}

/** Yields copies of a JSON in each of which one value is another, or one field is missing. */
function* changesOfJson(value) {
  if (typeof value === 'string') yield replaceAt(value || ' ', 0, otherCharacter(value[0]));
  else if (typeof value === 'number') yield value + 1;
  else if (typeof value === 'boolean') yield !value;
  else if (value === null) yield [1, 1];
  else if (Array.isArray(value)) {
    if (value.length > 0) yield value.slice(1);
    for (const [i, each] of value.entries()) {
      for (const changed of changesOfJson(each))
        yield value.with?.(i, changed) ?? Object.assign([...value], { [i]: changed });
    }
  } else {
    for (const key of Object.keys(value)) {
      const { [key]: own, ...rest } = value;
      yield rest;
      for (const changed of changesOfJson(own)) yield { ...value, [key]: changed };
    }
  }
}

/** Yields [what, page] for each change of a page, at most `most` of those that take long to check. */
function* changesOf(page, most) {
  const mostTexts = Math.min(mostOfAKind, Math.ceil(1e8 / page.length));
  for (const at of sample(placesInMain(page), mostTexts)) {
    yield [`character ${at} of the page`, replaceAt(page, at, otherCharacter(page[at]))];
  }
  const { claimsText, evidenceText } = Handoff.partsOfPage(page);
  const evidenceAt = page.indexOf(evidenceText);
  const bytes = Array.from(
    { length: Math.floor(evidenceText.length / 997) + 1 },
    (_, i) => i * 997,
  );
  // The head of the bundle, up to the blank line, is text: each of its characters counts.
  const headBytes = Buffer.from(evidenceText.slice(0, 4000), 'base64').indexOf('\n\n');
  const head = Array.from({ length: Math.floor((headBytes / 3) * 4) }, (_, i) => i);
  for (const at of [...sample(bytes, Math.min(most, 100)), ...sample(head, Math.min(most, 100))]) {
    const other = evidenceText[at] === 'A' ? 'B' : 'A';
    yield [`character ${at} of the evidence`, replaceAt(page, evidenceAt + at, other)];
  }
  const claims = JSON.parse(claimsText);
  for (const changed of sample([...changesOfJson(claims)], Math.min(most, 200))) {
    const text = JSON.stringify(changed).replaceAll('<', '\\u003c');
    yield [`claims ${text.slice(0, 200)}`, page.replace(claimsText, () => text)];
  }
  const scriptAt = page.lastIndexOf('Handoff.openPage()');
  yield ['the script', page.slice(0, scriptAt) + '/**/' + page.slice(scriptAt)];
  yield ['a note after the page', page + '<p>all is well</p>'];
  yield ['a part twice', page.replace('</main>', `</main><i id="evidence">${evidenceText}</i>`)];
}

/** Yields [what, claims] for claims that are in their form, and say what no program says. */
function* forgeries(claims) {
  for (const thread of Object.keys(claims.threads)) {
    const copy = structuredClone(claims);
    copy.threads[thread].rows.lineage = 'fail';
    copy.threads[thread].headline = 'NOT INTACT: and-yet-it-holds';
    yield ['an unknown failure of a thread', copy];
  }
  const run = Object.keys(claims.runs).find((name) => claims.runs[name].isReadable);
  if (run === undefined) return;
  const bend = (change) => {
    const copy = structuredClone(claims);
    change(copy.runs[run]);
    return copy;
  };
  const setCodes = (codes) =>
    bend((own) => {
      own.rows.signature = 'fail';
      own.codes = { ...own.codes, signature: codes };
      own.headline = 'UNTRUSTED';
    });
  yield ['an unknown code', setCodes(['all-is-well'])];
  yield ['a code of another row', setCodes(['seal-root'])];
  yield ['codes that are none', setCodes([])];
  const evident = (own) => (own.headline = own.headline.replace(/· .*?( PARTIAL)?$/, '· tamper-evident$1'));
  if (claims.runs[run].headline.startsWith('INTACT')) yield ['tamper-evident', bend(evident)];
  for (const principal of ['a'.repeat(256), 'ada, checked by a court', 'ada\u2800', 'ada"', 'a\\b'])
    yield [`the principal ${principal}`, bend((own) => (own.keys[0].principal = principal))];
  yield ['a principal of an unknown key', bend((own) => {
    Object.assign(own.keys[0], { standing: 'unknown to the writer of this page', principal: 'ada' });
  })];
  yield ['a date before 1970', { ...structuredClone(claims), written: '1969-12-31T23:59:59.999Z' }];
  const withBox = (change) => bend((own) => change(own.boxes[0], own));
  yield ['a narrow box', withBox((box) => (box[2] = 1))];
  yield ['a flat box', withBox((box) => (box[3] = 1))];
  yield ['a box outside', withBox((box, own) => (box[0] = own.width))];
  yield ['a wide picture', bend((own) => (own.width = 10 ** 8))];
  yield ['a high picture', bend((own) => (own.height = 10 ** 8))];
}

/** Judges the page that other claims or another evidence make, which is consistent in itself. */
const judge = (page, changes) =>
  Handoff.recompute({ ...Handoff.partsOfPage(page), ...changes, template });
const inScript = (claims) => JSON.stringify(claims).replaceAll('<', '\\u003c');

/** Checks pages that are filled from other claims. */
async function checkForgeries(file, page) {
  const claims = JSON.parse(Handoff.partsOfPage(page).claimsText);
  for (const [what, changed] of forgeries(claims)) {
    const { verdict } = await judge(page, { claimsText: inScript(changed) });
    if (verdict !== 'tampered') fail(`${file}: a forgery was not found: ${what}`);
  }
  const known = structuredClone(claims);
  Object.values(known.runs).forEach(({ keys: [key] }) => {
    key.standing = 'known to the writer of this page';
    key.principal = 'ada@example.com,*@example.org';
  });
  const { verdict, reasons } = await judge(page, { claimsText: inScript(known) });
  if (verdict === 'tampered') fail(`${file}: an honest principal is refused: ${reasons}`);
}

let failed = 0;
function fail(text) {
  failed++;
  console.log(text);
}

// The script stands in a page, which it would end or hide with one of these.
const embedded = joinModules();
for (const [mark] of embedded.matchAll(/<\/?script|<!--|-->/gi))
  fail(`the script contains ${mark}`);

// As an ordinary script with no more than a browser has, it defines the same as its modules.
const defined = runInNewContext(`${embedded}\nHandoff`, { TextDecoder, TextEncoder });
if (Object.keys(defined).join() !== Object.keys(Handoff).join())
  fail('the joined script defines other names than its modules');

if (words.includes('--evidence')) {
  const [bundle, file] = files.splice(0);
  const page = readFileSync(file, 'utf8');
  const evidenceText = readFileSync(bundle).toString('base64');
  const { verdict, reasons } = await judge(page, { evidenceText });
  console.log([verdict, ...reasons].join('; '));
}

for (const file of files) {
  const started = performance.now();
  const bytes = new Uint8Array(readFileSync(file));
  const { verdict, reasons } = await checkPageFile(bytes);
  const most = Math.ceil(longest / (performance.now() - started));
  if (verdict === 'tampered') fail(`${file}: ${reasons.join('\n  ')}`);
  else await checkForgeries(file, new TextDecoder().decode(bytes));
  let count = 0;
  if (verdict !== 'tampered' && !words.includes('--only-check')) {
    for (const [what, changed] of changesOf(new TextDecoder().decode(bytes), most)) {
      count++;
      const found = await check(changed);
      if (found.verdict !== 'tampered') fail(`${file}: a change was not found: ${what}`);
    }
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${file}: ${verdict}, ${count} changes tried, in ${seconds} s`);
}
process.exitCode = failed === 0 ? 0 : 1;
