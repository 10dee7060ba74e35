// Writes what a page shows as lines of text: for the snapshots, and to compare ways of opening it.

/**
 * Returns the outline of `main`. Runs in the page, so it uses nothing outside of itself.
 */
function linesOfMain() {
  const lines = [];
  const textOf = (node) => node.textContent.replace(/[ \t\r\n]+/g, ' ').trim();
  const cellOf = (cell) => {
    const copy = cell.cloneNode(true);
    for (const image of copy.querySelectorAll('img')) {
      image.replaceWith(` [image ${image.getAttribute('src').split(',')[0]}: ${image.alt}]`);
    }
    for (const link of copy.querySelectorAll('a')) {
      link.replaceWith(` [${link.textContent} ${link.getAttribute('href').split(',')[0]}]`);
    }
    for (const pre of copy.querySelectorAll('pre')) {
      const shown = pre.textContent.split('\n').map((line) => `\u2503 ${line}`);
      pre.replaceWith(`\u0001${shown.join('\u0001')}`);
    }
    return textOf(copy).replaceAll('\u0001', '\n    ').replace(/ +\n/g, '\n');
  };
  const write = (depth, text) => lines.push(`${'  '.repeat(depth)}${text}`);
  const drawing = (depth, svg) => {
    write(depth, `picture: ${svg.querySelectorAll('path').length} lines`);
    for (const node of svg.querySelectorAll('a, g')) {
      const target = node.getAttribute('href');
      write(depth + 1, [target, textOf(node)].filter(Boolean).join(' '));
    }
  };
  const walk = (element, depth) => {
    for (const child of element.children) {
      const name = child.localName;
      if (/^h\d$/.test(name)) write(depth, `${'#'.repeat(Number(name[1]))} ${textOf(child)}`);
      else if (name === 'summary') write(depth - 1, `[+] ${textOf(child)}`);
      else if (['p', 'caption', 'li'].includes(name)) write(depth, textOf(child));
      else if (name === 'tr') write(depth, [...child.children].map(cellOf).join(' | '));
      else if (name === 'svg') drawing(depth, child);
      else walk(child, name === 'details' || name === 'table' ? depth + 1 : depth);
    }
  };
  walk(document.querySelector('main'), 0);
  return lines.join('\n');
}

export const outlineOf = (page) => page.evaluate(linesOfMain);

// What differs from one machine or one minute to another.
const PLACEHOLDERS = [
  [/^( *)(Environment|Sandbox|Program|Network) \| .*$/gm, '$1$2 | <of the machine>'],
  [/sha256:[0-9a-f]{64}/g, '<digest>'],
  [/SHA256:[A-Za-z0-9+/]{43}/g, '<fingerprint>'],
  [/\b[0-9a-f]{40}\b/g, '<object>'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, '<time>'],
  [/\b\d+(\.\d+)? (ms|s|min|h)\b( \d+ (s|min)\b)?/g, '<duration>'],
  // The characters that isolate a name are invisible.
  [/\u2068/g, '<name>'],
  [/\u2069/g, '</name>'],
  [/git-handoff \d+\.\d+\.\d+/g, 'git-handoff <version>'],
];

/** Returns an outline with placeholders for digests, times, durations and the machine. */
export const settled = (outline) =>
  PLACEHOLDERS.reduce((text, [pattern, word]) => text.replace(pattern, word), outline)
    // A very long name stands in the snapshot as one character and its count.
    .replace(/(.)\1{60,}/g, (all, sign) => `${sign}<${all.length} times>`) + '\n';
