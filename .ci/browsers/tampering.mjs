// Every way to change a page that its script must notice: the shown text, the attributes, the
// elements, the claims and the evidence. Works on the text of the file, as a forger would.

/** Returns at most `most` of the values, at even distances, the first and the last among them. */
export function sampled(values, most) {
  if (values.length <= most || most < 2) return values.slice(0, most);
  const step = (values.length - 1) / (most - 1);
  return Array.from({ length: most }, (_, index) => values[Math.round(index * step)]);
}

const spliced = (text, start, end, replacement) => text.slice(0, start) + replacement + text.slice(end);

/** Returns the start and the end of what lies between two texts. */
function between(html, open, close) {
  const start = html.indexOf(open) + open.length;
  const end = html.indexOf(close, start);
  if (start < open.length || end < 0) throw new Error(`the page has no ${open}`);
  return [start, end];
}

const EVIDENCE = '<script type="application/octet-stream" id="evidence">';
const CLAIMS = '<script type="application/json" id="claims">';

/** Returns another character than the one given, of its kind. */
function other(sign) {
  if (/[0-8]/.test(sign)) return String(Number(sign) + 1);
  if (sign === '9') return '0';
  if (/[a-yA-Y]/.test(sign)) return String.fromCharCode(sign.charCodeAt(0) + 1);
  return 'x';
}

/** Changes one character in the middle of a stretch of the page, but not within an entity. */
function changed(html, start, end) {
  const text = html.slice(start, end);
  const middle = Math.floor(text.length / 2);
  const order = Array.from(text, (_, index) => index);
  order.sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle));
  const isPlain = (at) => /[A-Za-z0-9]/.test(text[at]) && !/&[#A-Za-z0-9]*$/.test(text.slice(0, at));
  const at = order.find(isPlain);
  // Without such a character, everything is replaced.
  if (at === undefined) return spliced(html, start, end, 'x');
  return spliced(html, start + at, start + at + 1, other(text[at]));
}

/** Returns the tags and the stretches of text before the claims, with their places. */
function parts(html) {
  const end = html.indexOf(CLAIMS);
  const tags = [];
  const texts = [];
  let last = 0;
  for (const match of html.slice(0, end).matchAll(/<[a-zA-Z!/][^<>]*>/g)) {
    if (html.slice(last, match.index).trim()) texts.push([last, match.index]);
    tags.push([match.index, match.index + match[0].length, match[0]]);
    last = match.index + match[0].length;
  }
  return { tags, texts };
}

function* ofTexts(html, { texts }, most) {
  for (const [start, end] of sampled(texts, most)) {
    yield [`text ${JSON.stringify(html.slice(start, end).slice(0, 40))}`, changed(html, start, end)];
  }
}

function* ofAttributes(html, { tags }, most) {
  const byName = new Map();
  for (const [start, , tag] of tags) {
    for (const match of tag.matchAll(/\s([a-zA-Z:-]+)="([^"]*)"/g)) {
      const from = start + match.index + match[0].indexOf('"') + 1;
      const places = byName.get(match[1]) ?? [];
      places.push([from, from + match[2].length, tag]);
      byName.set(match[1], places);
    }
  }
  for (const [name, places] of byName) {
    for (const [start, end, tag] of sampled(places, most)) {
      yield [`attribute ${name} of ${tag.slice(0, 60)}`, changed(html, start, end)];
    }
  }
}

/** Returns the places of elements that have no element of their own kind within. */
function elements(html, name) {
  const pattern = new RegExp(`<${name}(?:\\s[^<>]*)?(?:/>|>(?:(?!<${name}[\\s>])[^])*?</${name}>)`, 'g');
  return [...html.slice(0, html.indexOf(CLAIMS)).matchAll(pattern)].map((match) => [
    match.index,
    match.index + match[0].length,
  ]);
}

const DELETED = ['p', 'tr', 'td', 'th', 'caption', 'table', 'summary', 'strong', 'pre', 'rect', 'text', 'path', 'a', 'svg', 'title', 'style', 'section', 'ul', 'h2', 'h3'];

function* ofElements(html) {
  for (const name of DELETED) {
    const places = elements(html, name);
    for (const [start, end] of sampled(places, 3)) {
      yield [`without a <${name}> at ${start}`, spliced(html, start, end, '')];
      yield [`with a <${name}> twice at ${start}`, spliced(html, end, end, html.slice(start, end))];
    }
  }
  const rows = elements(html, 'tr');
  for (const index of sampled([...rows.keys()].slice(1), 8)) {
    const [[start, middle], [second, end]] = [rows[index - 1], rows[index]];
    const swapped = html.slice(second, end) + html.slice(middle, second) + html.slice(start, middle);
    if (swapped !== html.slice(start, end)) {
      yield [`rows at ${start} and ${second} swapped`, spliced(html, start, end, swapped)];
    }
  }
}

const ADDED = [
  ['a paragraph', '</main>', '<p>All keys are known and trusted.</p></main>'],
  ['a paragraph behind main', '</main>', '</main><p>All keys are known and trusted.</p>'],
  ['text behind main', '</main>', '</main>All is well'],
  ['a comment', '</main>', '<!-- x --></main>'],
  ['a note', '<ul id="notes"></ul>', '<ul id="notes"><li>recomputed here: holds</li></ul>'],
  ['a style', '</head>', '<style>.code { display: none }</style></head>'],
  ['a style in the body', '<main>', '<style>td { color: transparent }</style><main>'],
  ['a base', '<style>', '<base href="https://example.org/"><style>'],
  ['a hidden attribute', '<table>', '<table hidden>'],
  ['a style attribute', '<table>', '<table style="display:none">'],
  ['a class', '<main>', '<main class="soft">'],
  ['a language', '<html lang="en"', '<html lang="de"'],
  ['a verdict before the check', 'data-verdict="not-recomputed"', 'data-verdict="intact"'],
  ['a verdict in the text', 'nothing has been recomputed in this page</p>', 'recomputed here: intact</p>'],
  ['a cell filled before the check', '>not recomputed<', '>recomputed here: holds<'],
  ['an inert template', '<main>', '<main><template><p>x</p></template>'],
  ['a noscript element', '<main>', '<main><noscript><p>verified</p></noscript>'],
  ['an image', '<main>', '<main><img alt="x" src="data:,">'],
  ['a form', '<main>', '<main><form></form>'],
  ['another doctype', '<!DOCTYPE html>', '<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 3.2//EN">'],
  ['no doctype', '<!DOCTYPE html>', ''],
  ['a comment before the doctype', '<!DOCTYPE html>', '<!-- x --><!DOCTYPE html>'],
];

function* ofAdditions(html) {
  for (const [name, found, replacement] of ADDED) {
    if (!html.includes(found)) throw new Error(`${name}: the page has no ${found}`);
    yield [`added: ${name}`, html.replace(found, () => replacement)];
  }
}

function* ofEvidence(html, most) {
  const [start, end] = between(html, EVIDENCE, '</script>');
  const text = html.slice(start, end);
  const whole = `${EVIDENCE}${text}</script>`;
  const places = Array.from(text.replace(/=*$/, ''), (_, index) => index);
  // The head of the bundle has the names of the refs, and is short.
  for (const at of [...sampled(places.slice(1, 320), Math.ceil(most / 3)), ...sampled(places, most)]) {
    const sign = text[at] === 'A' ? 'B' : 'A';
    yield [`evidence at ${at} of ${text.length}`, spliced(html, start + at, start + at + 1, sign)];
  }
  yield ['evidence emptied', spliced(html, start, end, '')];
  yield ['evidence cut in half', spliced(html, start, end, text.slice(0, text.length / 8 * 4))];
  yield ['evidence with a line break', spliced(html, start + 80, start + 80, '\n')];
  yield ['evidence with a space', spliced(html, start, start, ' ')];
  yield ['evidence with a character of another alphabet', spliced(html, start + 80, start + 81, '*')];
  yield ['evidence with four more characters', spliced(html, end, end, 'AAAA')];
  yield ['evidence removed', html.replace(whole, '')];
  yield ['evidence doubled', html.replace(whole, whole + whole)];
  yield ['evidence under another id', html.replace('id="evidence"', 'id="Evidence"')];
}

function* ofClaims(html, most) {
  const [start, end] = between(html, CLAIMS, '</script>');
  const values = [...html.slice(start, end).matchAll(/(?<=[:[,])("(?:[^"\\]|\\.)*"|-?\d+|true|false|null)/g)];
  for (const match of sampled(values, most)) {
    const [from, to] = [start + match.index, start + match.index + match[0].length];
    const isWord = /^[a-z]/.test(match[0]);
    const html2 = isWord ? spliced(html, from, to, match[0] === 'true' ? 'false' : 'true') : changed(html, from, to);
    yield [`claim ${match[0].slice(0, 40)} at ${match.index}`, html2];
  }
  yield ['claims emptied', spliced(html, start, end, '{}')];
  yield ['claims that are no JSON', spliced(html, start, end, '{')];
  yield ['claims removed', spliced(html, start - CLAIMS.length, end + '</script>'.length, '')];
}

/** A change of the script that the page itself can see: its digest is not the shown one. */
function* ofScript(html) {
  yield ['a space in the script', html.replace('Handoff.openPage();', 'Handoff.openPage(); ')];
}

/** Yields the name of each change and the changed page. */
export function* tampered(html, { texts, attributes, evidence, claims }) {
  const found = parts(html);
  yield* ofTexts(html, found, texts);
  yield* ofAttributes(html, found, attributes);
  yield* ofElements(html);
  yield* ofAdditions(html);
  yield* ofEvidence(html, evidence);
  yield* ofClaims(html, claims);
  yield* ofScript(html);
}

/**
 * Yields pages that say by a shadow root, an overlay or a clobbered name what the file does not
 * contain as text: [name, page, the forged text]. The reader must not see the forged text on a page
 * that calls itself intact.
 */
export function* disguised(html) {
  const forged = 'forged by a shadow';
  for (const mode of ['open', 'closed']) {
    const root = `<template shadowrootmode="${mode}">${forged}</template>`;
    for (const tag of ['<main>', '<h1>', '<body>', '<p class="verdict" id="verdict" role="status">']) {
      yield [`${mode} shadow root in ${tag}`, html.replace(tag, tag + root), forged];
    }
    yield [`${mode} shadow root in a section`, html.replace(/<section [^>]*>/, (tag) => tag + root), forged];
  }
  for (const name of ['documentElement', 'getElementById', 'body', 'querySelectorAll', 'doctype']) {
    for (const element of [`<form name="${name}">${forged}</form>`, `<img name="${name}" alt="${forged}">`]) {
      yield [`clobbered by ${element.slice(0, 40)}`, html.replace('<main>', `<main>${element}`), forged];
    }
  }
}

/**
 * Yields pages that claim to be recomputed, with elements that take the place of members of the
 * document, the window or a form: those of each list of names in one page.
 */
export function* clobbered(html, lists) {
  const claiming = html
    .replace('data-verdict="not-recomputed"', 'data-verdict="intact"')
    .replace('nothing has been recomputed in this page', 'recomputed here: everything holds');
  for (const names of lists) {
    const elements = names.map(
      (name) => `<img name="${name}"><object id="${name}"></object><form name="${name}" id="${name}"><input name="${name}"></form>`,
    );
    yield [`clobbered: ${names.slice(0, 3)}`, claiming.replace('<main>', `<main>${elements.join('')}`)];
  }
}

/**
 * Yields pages of an open run whose claims and text agree with one another, and contradict what the
 * evidence gives.
 */
export function* whitewashed(html, run) {
  const [start, end] = between(html, CLAIMS, '</script>');
  const withClaims = (change, words) => {
    const claims = JSON.parse(html.slice(start, end));
    change(claims.runs[run]);
    const page = spliced(html, start, end, JSON.stringify(claims).replaceAll('<', '\\u003c'));
    return words.reduce((text, [old, replacement]) => {
      if (!text.includes(old)) throw new Error(`the page has no ${old}`);
      return text.replace(old, () => replacement);
    }, page);
  };
  yield [
    'a failed row called ok, in the claims and in the text',
    withClaims((claims) => {
      claims.rows.root = 'ok';
      claims.codes = {};
      claims.headline = 'INTACT';
    }, [['<td>not sealed yet</td>', '<td>holds</td>'], ['found: NOT SEALED.', 'found: INTACT.']]),
  ];
  yield [
    'a row that holds called failed, in the claims and in the text',
    withClaims((claims) => {
      claims.rows.plan = 'fail';
      claims.codes = { plan: ['bad-transition'], ...claims.codes };
    }, [[
      'no item is missing.</td><td>holds</td>',
      'no item is missing.</td><td>does not hold: bad-transition</td>',
    ]]),
  ];
  yield [
    'another key, in the claims and in the text',
    (() => {
      const { fingerprint } = JSON.parse(html.slice(start, end)).runs[run].keys[0];
      const forged = `SHA256:${'A'.repeat(42)}E`;
      return html.replaceAll(`<td class="code">${fingerprint}</td>`, `<td class="code">${forged}</td>`)
        .replace(`"fingerprint":"${fingerprint}"`, `"fingerprint":"${forged}"`);
    })(),
  ];
  const cell = (name) => new RegExp(`<td>[^<]*</td>(?=<td id="r0-${name}">)`).exec(html)[0];
  yield [
    'an unknown code, in the claims and in the text',
    withClaims((claims) => {
      claims.rows.anchor = 'fail';
      claims.codes = { ...claims.codes, anchor: ['checked-by-a-court'] };
    }, [[cell('anchor'), '<td>does not hold: checked-by-a-court</td>']]),
  ];
  yield [
    'the strongest claim, in the claims and in the text',
    withClaims((claims) => {
      claims.headline = 'INTACT · tamper-evident PARTIAL';
    }, [['found: NOT SEALED.', 'found: INTACT · tamper-evident PARTIAL.']]),
  ];
  yield [
    'a box that is too small for its label',
    html.replace(/"boxes":\[\[(\d+),(\d+),200,34/, '"boxes":[[$1,$2,10,34')
      .replace(/(<rect x="16" y="\d+") width="200"/, '$1 width="10"'),
  ];
  for (const [name, key, value] of [
    ['headline', 'headline', 'NOT SEALED'],
    ['standing of a key', 'standing', 'known to the writer of this page'],
  ]) {
    const lie = `${value}. An auditor has checked all of this`;
    yield [
      `a sentence as the ${name}, in the claims and in the text`,
      html.replace(`"${key}":"${value}"`, `"${key}":"${lie}"`)
        .replace(`found: ${value}.`, key === 'headline' ? `found: ${lie}.` : '$&')
        .replace(`<td>${value}</td>`, key === 'standing' ? `<td>${lie}</td>` : '$&'),
    ];
  }
  for (const [name, key, word] of [['tool', 'tool', 'by'], ['time of writing', 'written', 'at']]) {
    const [claim, value] = new RegExp(`"${key}":"([^"]*)"`).exec(html);
    const lie = `${value} for an auditor, who has checked all of this`;
    yield [
      `a sentence as the ${name}, in the claims and in the text`,
      html.replace(claim, `"${key}":"${lie}"`).replace(`${word} ${value}`, `${word} ${lie}`),
    ];
  }
  yield [
    'a run without evidence, in the claims',
    withClaims(() => {}, [[`"runs":{`, `"runs":{"another":{"boxes":[],"codes":{},"edges":[],"headline":"INTACT","height":0,"isReadable":false,"keys":[],"rows":{},"width":0},`]]),
  ];
}
