// Recomputes a page from its evidence, and compares the two.

import { ensure, FormatError, fromBase64, sortNames, toBytes } from '../bytes.mjs';
import { limits } from '../limits.mjs';
import { settings } from '../crypto/ed25519.mjs';
import { readJson } from '../json.mjs';
import { decodeSegment } from '../names.mjs';
import { readBundle } from '../git/bundle.mjs';
import { logsOf } from '../chain/log.mjs';
import { isPartial } from '../findings.mjs';
import { sourceOfThread } from '../thread/chain.mjs';
import { verifyRun } from '../run/report.mjs';
import { verifyThread } from '../thread/verifier.mjs';
import { namesIn } from '../verification.mjs';
import { fill, pageTemplate } from './template.mjs';
import { pageFacts } from './facts.mjs';
import { areClaims, faultsOfClaims } from './claims.mjs';

/** Returns the runs and threads that the entries of a page's runs and threads name. */
function namedSources(reports) {
  const named = new Set();
  for (const { links, kind } of reports) {
    for (const { entry } of links) {
      if (kind === 'thread') named.add(entry.run?.id).add(sourceOfThread(entry)?.thread);
      else {
        named.add(entry.reused?.run).add(entry.continues?.run);
        for (const name of Object.keys(entry.imports ?? {})) {
          const parts = name.split(':')[0].split('/');
          named.add(decodeSegment(parts.at(-2) ?? ''));
        }
      }
    }
  }
  return named;
}

/** Returns the text between two marks that a page has exactly once, or null. */
export function textBetween(page, start, end) {
  const at = page.indexOf(start);
  if (at < 0 || page.indexOf(start, at + 1) >= 0) return null;
  const from = at + start.length;
  const to = page.indexOf(end, from);
  return to < 0 ? null : page.slice(from, to);
}

// The marks must not be in the script itself, which is a part of the page.
const openScript = '<' + 'script';
export const pageMarks = {
  claims: openScript + ' type="application/json" id="claims">',
  evidence: openScript + ' type="application/octet-stream" id="evidence">',
  script: openScript + ' id="script">',
  end: '<' + '/script>',
};

/**
 * Recomputes everything that the parts of a page say. Returns {verdict, reasons, runs, filled}:
 * `filled` is the whole page as it must be, or null if it cannot be computed.
 */
export async function recompute({ claimsText, evidenceText, scriptText, template }, options = {}) {
  const result = { verdict: 'tampered', reasons: [], runs: [], filled: null };
  try {
    const claims = readJson(toBytes(claimsText), { size: limits.file });
    ensure(areClaims(claims), 'the claims of the page are not in their form');
    const bytes = fromBase64(evidenceText);
    ensure(bytes, 'the evidence of the page is not base64');
    const store = await readBundle(bytes);
    const reports = await verifyNamed(store, claims, options, result);
    result.filled = tryToFill(template, store, reports, claims, scriptText, evidenceText);
    for (const { run, thread, failure, findings } of result.runs) {
      if (failure === null || failure === 'not-sealed') continue;
      result.reasons.push(`${run ?? thread}: ${findings[0]?.text ?? failure}`);
    }
    if (result.filled === null) result.reasons.push('the page cannot be computed from its claims');
    if (result.reasons.length === 0) result.verdict = verdictOf(result.runs);
  } catch (error) {
    result.reasons.push(
      error instanceof FormatError ? error.message : `an error in the script: ${error}`,
    );
  }
  return result;
}

/** Returns the page as it must be, or null if the claims do not fit what they are about. */
function tryToFill(template, store, reports, claims, scriptText, evidenceText) {
  try {
    return fill(template, pageFacts(store, reports, claims, scriptText, evidenceText));
  } catch (error) {
    if (error instanceof TypeError || error instanceof FormatError) return null;
    throw error;
  }
}

/** Verifies the runs and threads that the claims name, and compares them with the claims. */
async function verifyNamed(store, claims, options, result) {
  const reports = { runs: new Map(), threads: new Map() };
  for (const [kind, verify] of [
    ['runs', verifyRun],
    ['threads', verifyThread],
  ]) {
    for (const name of sortNames(Object.keys(claims[kind]))) {
      const report = await verify(store, name, options);
      reports[kind].set(name, report);
      result.runs.push(report);
      result.reasons.push(...faultsOfClaims(claims[kind][name], report));
      await settings.pause();
    }
  }
  ensure(result.runs.length > 0, 'the page shows no run and no thread');
  const sources = namedSources(result.runs);
  for (const [kind, inEvidence] of [
    ['runs', namesIn(store, 'runs')],
    ['threads', namesIn(store, 'threads')],
  ]) {
    for (const name of inEvidence) {
      if (reports[kind].has(name) || sources.has(name)) continue;
      result.reasons.push(`${name} is in the evidence, and not on the page`);
    }
  }
  const isShown = (name) =>
    reports.runs.has(name) || reports.threads.has(name) || sources.has(name);
  result.reasons.push(...(await faultsOfEvidence(store, claims, isShown)));
  return reports;
}

const refOfChain = /^refs\/handoff\/(?:runs|threads|logs)\/[^/]+$/;

/**
 * Returns what is wrong with the head of the bundle: its filter, refs that name no chain, and logs
 * of other runs and threads than those that are shown.
 */
async function faultsOfEvidence(store, { content }, isShown) {
  const faults = [];
  const filter = content === 'none' ? 'blob:none' : 'blob:limit=32769';
  if (store.filter !== null && store.filter !== filter)
    faults.push(`the evidence has the filter ${store.filter} instead of ${filter}`);
  for (const ref of [...store.refs.keys(), ...store.otherRefs])
    if (!refOfChain.test(ref)) faults.push(`${ref} does not belong in the evidence`);
  for (const { ref, hasOwnName, isUnread, sound } of await logsOf(store)) {
    if (!hasOwnName) faults.push(`${ref} in the evidence is not the log of its name`);
    else if (!isUnread && !sound.some(({ entry }) => isShown(entry.run ?? entry.thread)))
      faults.push(`${ref} in the evidence is about nothing on the page`);
  }
  return faults;
}

function verdictOf(runs) {
  const isGood = ({ failure, outcome }) => failure === null && !isPartial(outcome);
  return runs.every(isGood) ? 'intact' : 'partial';
}

/** Says where two texts differ first. */
export function firstDifference(expected, found) {
  let at = 0;
  while (at < expected.length && expected[at] === found[at]) at++;
  const line = expected.slice(0, at).split('\n').length;
  const around = (text) => JSON.stringify(text.slice(Math.max(at - 20, 0), at + 40));
  return `line ${line}: it should be ${around(expected)} and is ${around(found)}`;
}

/** Returns the three parts of a page, each null unless the page has exactly one. */
export function partsOfPage(page) {
  const part = (name) => textBetween(page, pageMarks[name], pageMarks.end);
  return { claimsText: part('claims'), evidenceText: part('evidence'), scriptText: part('script') };
}

/** Compares a page with the result of `recompute`. Returns {verdict, reasons, runs}. */
export function comparePage(page, { verdict, reasons, runs, filled }) {
  if (filled === null || filled === page) return { verdict, reasons, runs };
  const place = firstDifference(filled, page);
  const difference = `the page does not say what its evidence says, ${place}`;
  return { verdict: 'tampered', reasons: [...reasons, difference], runs };
}

/** Checks the text of a page. Returns {verdict, reasons, runs}. */
export async function checkPage(page, { template = pageTemplate.text } = {}) {
  const parts = partsOfPage(page);
  if (Object.values(parts).includes(null)) {
    const reason = 'the page has not exactly one part for claims, evidence and script';
    return { verdict: 'tampered', reasons: [reason], runs: [] };
  }
  return comparePage(page, await recompute({ ...parts, template }));
}
