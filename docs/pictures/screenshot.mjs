// Takes a picture of the top of a page, down to the timeline, once the page is recomputed:
//
//   node screenshot.mjs PAGE PICTURE
import { writeFile } from 'node:fs/promises';
import { awaitVerdict, chromium, fileUrl } from '../../.ci/browsers/browsers.mjs';
import { withPalette } from './palette.mjs';

const WIDTH = 1200;

const [page, picture] = process.argv.slice(2);
const browser = await chromium();
try {
  const tab = await browser.newPage();
  await tab.setViewport({ width: WIDTH, height: 1000 });
  await tab.goto(fileUrl(page));
  const verdict = await awaitVerdict(tab);
  if (verdict !== 'partial') throw new Error(`the page says ${verdict}`);
  const bottom = await tab.evaluate(() =>
    Math.max(...[...document.querySelectorAll('.picture')].map((one) => one.getBoundingClientRect().bottom)));
  const clip = { x: 0, y: 0, width: WIDTH, height: Math.ceil(bottom) + 6 };
  const taken = await tab.screenshot({ clip, captureBeyondViewport: true });
  await writeFile(picture, withPalette(Buffer.from(taken)));
} finally {
  await browser.close();
}
