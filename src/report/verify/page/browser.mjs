// Checks the page in a browser, and shows the verdict in it.

import { ensure, FormatError, fromBase64 } from '../bytes.mjs';
import { settings } from '../crypto/ed25519.mjs';
import { isFingerprint } from '../values.mjs';
import { readBundle } from '../git/bundle.mjs';
import { readLines, readSignerLine, Signers } from '../chain/signers.mjs';
import { verifyAll } from '../verification.mjs';
import { unprintable } from './printable.mjs';
import { fill, pageTemplate } from './template.mjs';
import { wordOfClaim } from './words.mjs';
import { firstDifference, recompute } from './check.mjs';

const verdictWords = {
  intact: 'recomputed here: everything holds',
  partial: 'recomputed here: the evidence holds, and not everything is done and green',
  tampered: 'recomputed here: TAMPERED, this page does not hold',
};

/** Says in words what a verdict means for the runs. */
function sentenceOf({ verdict, runs, filled }) {
  const words = [verdictWords[verdict]];
  if (verdict === 'tampered' && filled !== null) {
    words.push('what follows is what the evidence says, and not what the file said');
  }
  if (verdict === 'partial' && runs.some(({ failure }) => failure === 'not-sealed')) {
    words.push('a run is not sealed yet');
  }
  if (verdict !== 'tampered') {
    if (runs.some(({ rows }) => rows.content.state === 'open'))
      words.push('contents that were left out were not checked');
    if (runs.some(({ signers }) => signers.some(({ trusted }) => !trusted)))
      words.push('compare the keys below');
  }
  return words.join('; ');
}

function wordOfRow(row, { state }, codes = []) {
  // This script knows no keys, so that signatures that match leave the row open.
  const found = state === 'open' && row === 'signature' ? 'holds; compare the keys' : null;
  return `recomputed here: ${found ?? wordOfClaim(state, codes.join(', '))}`;
}

/**
 * The members of a page's document, by name. An element can take the place of a document's own
 * member by its `name` or `id`, so they come from the prototypes.
 */
let members;

function readMembers({ Document, Element, EventTarget, Node }) {
  const method = ({ prototype }, name) => {
    const own = prototype[name];
    return (target, ...words) => Reflect.apply(own, target, words);
  };
  const getter = ({ prototype }, name) => {
    const { get } = Object.getOwnPropertyDescriptor(prototype, name);
    return (target) => Reflect.apply(get, target, []);
  };
  return {
    addEventListener: method(EventTarget, 'addEventListener'),
    childNodes: getter(Node, 'childNodes'),
    createElement: method(Document, 'createElement'),
    doctype: getter(Document, 'doctype'),
    documentElement: getter(Document, 'documentElement'),
    getElementById: method(Document, 'getElementById'),
    querySelectorAll: method(Document, 'querySelectorAll'),
    readyState: getter(Document, 'readyState'),
    replaceChildren: method(Element, 'replaceChildren'),
  };
}

/** Returns a copy of a page's root with every `details` closed: a browser opens them by itself. */
function copyOfRoot(page) {
  const root = members.documentElement(page).cloneNode(true);
  for (const details of root.querySelectorAll('details[open]')) details.removeAttribute('open');
  return root;
}

/** Returns true if a document has nothing but its root and the doctype of HTML. */
function isPlainDocument(page) {
  const [doctype, childNodes] = [members.doctype(page), members.childNodes(page)];
  const isOfHtml = doctype?.name === 'html' && doctype.publicId === '' && doctype.systemId === '';
  return isOfHtml && childNodes.length === 2;
}

const parsePage = (text) => new globalThis.DOMParser().parseFromString(text, 'text/html');

/** Checks the page that this script is in, and shows the verdict. */
export function openPage() {
  const page = globalThis.document;
  if (!page || typeof BigInt === 'undefined' || typeof TextDecoder === 'undefined') return;
  members = readMembers(globalThis);
  settings.pause = () => new Promise((resolve) => globalThis.setTimeout(resolve, 0));
  const start = () => {
    checkDocument(page)
      .catch((error) =>
        showResult(page, { verdict: 'tampered', reasons: [String(error)], runs: [], filled: null }),
      )
      .catch(() =>
        members.replaceChildren(members.documentElement(page), 'This page could not be checked.'),
      );
  };
  if (members.readyState(page) === 'loading')
    members.addEventListener(page, 'DOMContentLoaded', start);
  else start();
}

async function checkDocument(page) {
  const shown = { root: copyOfRoot(page), isPlain: isPlainDocument(page) };
  const parts = {};
  for (const id of ['claims', 'evidence', 'script']) {
    const found = members.querySelectorAll(page, `[id="${id}"]`);
    ensure(found.length === 1, `the page has not exactly one part "${id}"`);
    parts[`${id}Text`] = found[0].textContent;
  }
  const result = await recompute({ ...parts, template: pageTemplate.text });
  const fresh = result.filled === null ? null : members.documentElement(parsePage(result.filled));
  if (fresh) compareShown(shown, fresh, result);
  showResult(page, result, fresh);
  members.getElementById(page, 'compare').addEventListener('click', () => compareKeys(page, parts));
}

/** Compares the page as it was loaded with the root of the recomputed one. */
function compareShown({ root, isPlain }, fresh, result) {
  const fail = (difference) => {
    result.verdict = 'tampered';
    result.reasons.push(`the page does not say what its evidence says${difference}`);
  };
  if (!isPlain) fail(': there are other nodes around the page');
  if (root.isEqualNode(fresh)) return;
  // A parser may cut long texts at any place, which only the text of the page does not show.
  const [expected, found] = [fresh.outerHTML, root.outerHTML];
  if (expected === found) return;
  const main = (text) => text.slice(text.indexOf('<main>'), text.indexOf('</main>'));
  const isOutside = main(expected) === main(found);
  const cause = isOutside
    ? ' (outside the report itself: a browser extension may be the cause)'
    : '';
  fail(`${cause}, ${firstDifference(expected, found)}`);
}

/**
 * Puts the recomputed page in place of the one that was loaded, and shows the verdict in it. The
 * nodes of a page do not show everything: a shadow root hides what is compared here.
 */
function showResult(page, result, recomputed = null) {
  const title = 'A page that does not hold';
  const fresh = recomputed ?? members.documentElement(parsePage(fill(pageTemplate.text, { title })));
  const root = members.documentElement(page);
  // The reader may have opened some while this was recomputed.
  const opened = Array.from(members.querySelectorAll(page, 'details'), (details) => details.open);
  for (const { name } of [...root.attributes]) root.removeAttribute(name);
  for (const { name, value } of fresh.attributes) root.setAttribute(name, value);
  root.replaceChildren(...fresh.childNodes);
  members
    .querySelectorAll(page, 'details')
    .forEach((details, at) => (details.open = opened[at] ?? false));
  showVerdict(page, result);
  revealTarget(page);
}

/** Shows again what the address of the page names. */
function revealTarget(page) {
  const name = page.location?.hash.slice(1);
  const target = name ? members.getElementById(page, name) : null;
  for (let node = target; node; node = node.parentElement) {
    if (node.localName === 'details') node.open = true;
  }
  target?.scrollIntoView();
}

function showVerdict(page, result) {
  members.documentElement(page).setAttribute('data-verdict', result.verdict);
  members.getElementById(page, 'verdict').textContent = sentenceOf(result);
  const notes = members.getElementById(page, 'notes');
  for (const reason of result.reasons.slice(0, 50)) {
    const item = members.createElement(page, 'li');
    item.textContent = reason.replace(unprintable, '\ufffd');
    notes.append(item);
  }
  const numbers = { run: 0, thread: 0 };
  for (const report of result.runs) {
    const anchor = `${report.kind === 'run' ? 'r' : 't'}${numbers[report.kind]++}`;
    for (const [row, found] of Object.entries(report.rows)) {
      const cell = members.getElementById(page, `${anchor}-${row}`);
      if (cell) cell.textContent = wordOfRow(row, found, report.codes[row]);
    }
  }
}

/** Reads pasted keys: fingerprints, public keys, or lines of an allowed-signers file. */
function readPastedKeys(text) {
  const signers = [];
  const fingerprints = new Set();
  for (const line of readLines(text)) {
    const bare = /^ssh-ed25519 +(\S+)/.exec(line);
    const named = line.split(/\s+/).find(isFingerprint);
    if (named && !/ssh-ed25519/.test(line)) {
      fingerprints.add(named);
      continue;
    }
    const signer = bare ? `pasted ssh-ed25519 ${bare[1]}` : line;
    try {
      readSignerLine(signer);
    } catch {
      throw new FormatError(
        `"${line}" is neither a fingerprint, a public key nor a line of an allowed-signers file`,
      );
    }
    signers.push(signer);
  }
  return { signers: signers.join('\n'), fingerprints };
}

/** Compares the pasted keys with those that signed, and verifies again with them. */
async function compareKeys(page, { evidenceText }) {
  const answer = members.getElementById(page, 'compared');
  try {
    const pasted = readPastedKeys(members.getElementById(page, 'known').value);
    const known = new Set([...new Signers(pasted).lines.keys(), ...pasted.fingerprints]);
    ensure(known.size > 0, 'paste a fingerprint, a public key or an allowed-signers file');
    const store = await readBundle(fromBase64(evidenceText));
    const options = pasted.fingerprints.size > 0 ? {} : { signers: pasted.signers };
    const reports = await verifyAll(store, options);
    const used = reports.flatMap(({ signers }) => signers).map(({ fingerprint }) => fingerprint);
    const unknown = new Set(used.filter((key) => !known.has(key)));
    const isRefused = reports.some(({ rows }) => rows.signature.state === 'fail');
    if (unknown.size > 0) answer.textContent = `not among these keys: ${[...unknown].join(', ')}`;
    else if (isRefused)
      answer.textContent = 'all keys are among these, and a signature does not hold with them';
    else answer.textContent = 'every key that signed is among these';
  } catch (error) {
    answer.textContent = String(error.message ?? error);
  }
}
