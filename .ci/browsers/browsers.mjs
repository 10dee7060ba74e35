// Starts the browsers, opens pages in them, and notes what a page does beyond being read.
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import puppeteer from 'puppeteer-core';

/** The header that Jenkins sends with the artifacts of a build. */
export const JENKINS = "sandbox; default-src 'none'; img-src 'self'; style-src 'self';";

/** A name that leads to this machine and is not a secure context, so `crypto.subtle` is missing. */
export const INSECURE_HOST = 'reports.example';

export const chromium = () =>
  puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    headless: true,
    // Root in a container has no sandbox for the renderers, and /dev/shm is small there.
    args: [
      '--no-sandbox',
      '--disable-dev-shm-usage',
      `--host-resolver-rules=MAP ${INSECURE_HOST} 127.0.0.1`,
    ],
  });

export const firefox = () =>
  puppeteer.launch({
    browser: 'firefox',
    executablePath: process.env.FIREFOX ?? '/usr/bin/firefox-esr',
    headless: true,
  });

/**
 * Serves the files of a folder: below /jenkins/ with the header of Jenkins, below /plain/ without.
 * Returns the port, the paths that were asked for, and a function that ends the server.
 */
export async function serve(folder) {
  const asked = [];
  const server = createServer(async (request, response) => {
    asked.push(request.url);
    const [, way, name] = request.url.split('/');
    try {
      const bytes = await readFile(join(folder, basename(decodeURIComponent(name ?? ''))));
      const headers = { 'Content-Type': 'text/html' };
      if (way === 'jenkins') headers['Content-Security-Policy'] = JENKINS;
      response.writeHead(200, headers).end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: server.address().port, asked, close: () => server.close() };
}

export const fileUrl = (path) => pathToFileURL(path).href;

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Returns the verdict of a page, in which an element may have taken the place of the root. */
export const verdictOf = (page) =>
  page.evaluate(() => Object.getOwnPropertyDescriptor(Document.prototype, 'documentElement').get.call(document).dataset.verdict);

/**
 * Waits until the script has changed the verdict, or until it is the one that is expected, and
 * returns it; after the time limit, whatever it is by then.
 */
export async function awaitVerdict(page, { limit = 8_000, expected = null } = {}) {
  const end = Date.now() + limit;
  for (;;) {
    const verdict = await verdictOf(page);
    const isReached = expected ? verdict === expected : verdict !== 'not-recomputed';
    if (isReached || Date.now() > end) return verdict;
    await pause(15);
  }
}

/** Notes in `window.verdictAt` how long after the start of the navigation the verdict stood. */
function noteVerdict() {
  const timer = setInterval(() => {
    const verdict = document.documentElement?.dataset.verdict;
    if (!verdict || verdict === 'not-recomputed') return;
    window.verdictAt = performance.now();
    clearInterval(timer);
  }, 5);
}

/**
 * Opens a page in a tab of its own. The tab has `noise`: messages of level error or warning,
 * uncaught errors, dialogs, and requests for anything but the page itself.
 */
export async function openTab(browser, url, { scripts = true, isTimed = false } = {}) {
  const tab = await browser.newPage();
  if (isTimed) await tab.evaluateOnNewDocument(noteVerdict);
  tab.noise = [];
  tab.on('console', (message) => {
    if (['error', 'warn', 'warning', 'assert'].includes(message.type())) {
      tab.noise.push(`console ${message.type()}: ${message.text()}`);
    }
  });
  tab.on('pageerror', (error) => tab.noise.push(`page error: ${error}`));
  tab.on('dialog', (dialog) => {
    tab.noise.push(`dialog: ${dialog.message()}`);
    dialog.dismiss().catch(() => {});
  });
  tab.on('request', (request) => {
    const wanted = request.url().split('#')[0];
    // The content of a data URL is in the page.
    if (wanted !== url.split('#')[0] && !wanted.startsWith('data:')) {
      tab.noise.push(`request: ${wanted.slice(0, 200)}`);
    }
  });
  if (!scripts) await tab.setJavaScriptEnabled(false);
  await tab.goto(url, { waitUntil: 'load' });
  return tab;
}
