// Makes a screenshot small: rounds its colours and writes the PNG with a palette.
import zlib from 'node:zlib';

/** How many levels each channel is rounded to, from fine to coarse. */
const LEVELS = [32, 16, 12, 8, 6];

/** Yields the chunks of a PNG: their names and contents. */
function* chunks(png) {
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    yield [png.toString('latin1', at + 4, at + 8), png.subarray(at + 8, at + 8 + length)];
    at += length + 12;
  }
}

/** Returns the width, the height and the bytes of the pixels of a PNG with 8 bits a channel. */
function decoded(png) {
  const found = [...chunks(png)];
  const header = found.find(([name]) => name === 'IHDR')[1];
  const [width, height, depth, kind] = [header.readUInt32BE(0), header.readUInt32BE(4), header[8], header[9]];
  const channels = { 2: 3, 6: 4 }[kind];
  if (depth !== 8 || !channels || header[12] !== 0) throw new Error('the screenshot is no plain PNG');
  const raw = zlib.inflateSync(Buffer.concat(found.filter(([name]) => name === 'IDAT').map(([, data]) => data)));
  const line = width * channels;
  const pixels = Buffer.alloc(height * line);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (line + 1)];
    for (let x = 0; x < line; x++) {
      const at = y * line + x;
      const left = x < channels ? 0 : pixels[at - channels];
      const above = y === 0 ? 0 : pixels[at - line];
      const corner = x < channels || y === 0 ? 0 : pixels[at - line - channels];
      pixels[at] = raw[y * (line + 1) + 1 + x] + predicted(filter, left, above, corner);
    }
  }
  return { width, height, channels, pixels };
}

/** Returns what a filter of PNG predicts of a byte from its neighbours. */
function predicted(filter, left, above, corner) {
  if (filter === 1) return left;
  if (filter === 2) return above;
  if (filter === 3) return (left + above) >> 1;
  if (filter !== 4) return 0;
  const [a, b, c] = [above - corner, left - corner, left + above - 2 * corner].map(Math.abs);
  if (a <= b && a <= c) return left;
  return b <= c ? above : corner;
}

/** Returns the colours of a picture, and the number of each pixel's; null if there are over 256. */
function indexed({ width, height, channels, pixels }, levels) {
  const round = (value) => Math.round((Math.round((value / 255) * (levels - 1)) / (levels - 1)) * 255);
  const numbers = new Map();
  const lines = Buffer.alloc(height * (width + 1));
  for (let at = 0, y = 0; y < height; y++) {
    for (let x = 0; x < width; x++, at += channels) {
      const colour = (round(pixels[at]) << 16) | (round(pixels[at + 1]) << 8) | round(pixels[at + 2]);
      if (!numbers.has(colour)) {
        if (numbers.size === 256) return null;
        numbers.set(colour, numbers.size);
      }
      lines[y * (width + 1) + 1 + x] = numbers.get(colour);
    }
  }
  return { colours: [...numbers.keys()], lines };
}

function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

/** Returns the checksum of PNG. */
function crc32(bytes) {
  let sum = ~0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}

/** Returns a PNG with at most 256 colours that looks like the one given. */
export function withPalette(png) {
  const picture = decoded(png);
  const found = LEVELS.map((levels) => indexed(picture, levels)).find(Boolean);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(picture.width, 0);
  header.writeUInt32BE(picture.height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(found.colours.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  return Buffer.concat([
    png.subarray(0, 8),
    chunk('IHDR', header),
    chunk('PLTE', colours),
    chunk('IDAT', zlib.deflateSync(found.lines, { level: 9, memLevel: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}
