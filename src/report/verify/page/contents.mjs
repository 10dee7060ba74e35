// The contents of products, as a page shows them.

import { fromHex, toBase64, toText, tryToRead } from '../bytes.mjs';

const largestShown = 64 * 1024;
const largestImage = 256 * 1024;
const imageStarts = [
  ['89504e470d0a1a0a', 'image/png'],
  ['ffd8ff', 'image/jpeg'],
  ['47494638', 'image/gif'],
  ['52494646', 'image/webp'],
].map(([start, kind]) => [fromHex(start), kind]);

const dataUrl = (kind, bytes) => `data:${kind};base64,${toBase64(bytes)}`;

/** A product for the page, with its content if the page carries it and it can be shown. */
export function productFacts(store, name, product) {
  const shown = { name, sha256: product.sha256 ?? null, size: product.size ?? null };
  return contentFacts(shown, store.readBlob(product.oid));
}

/** Adds a content to what is shown of it, if the page carries it and it can be shown. */
export function contentFacts(shown, bytes) {
  if (bytes === null) return { ...shown, leftOut: true };
  if (shown.size > largestImage || bytes.length > largestImage) return shown;
  const image = imageStarts.find(([start]) => start.every((byte, i) => bytes[i] === byte));
  if (image) return { ...shown, image: dataUrl(image[1], bytes) };
  if (shown.size > largestShown || bytes.length === 0) return shown;
  const text = tryToRead(() => toText(bytes));
  if (text?.includes('\0') === false) return { ...shown, text };
  return { ...shown, save: dataUrl('application/octet-stream', bytes) };
}
