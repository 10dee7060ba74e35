// Prints the number of each character that src/report/verify.mjs replaces on a terminal.
//
// Usage: node tests/interop/printable.mjs

import Handoff from '../../src/report/verify.mjs';

const replaced = [];
for (let point = 0; point <= 0x10ffff; point++) {
  const isSurrogate = point >= 0xd800 && point <= 0xdfff;
  if (!isSurrogate && Handoff.toLine(String.fromCodePoint(point)) === '\ufffd') replaced.push(point);
}
console.log(replaced.join('\n'));
