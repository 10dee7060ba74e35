// Fills the template of a page with facts.

import { ensure } from '../bytes.mjs';
import { canonical, isObject } from '../json.mjs';
import { isNumber } from '../plan/plan.mjs';
import { unprintable } from './printable.mjs';

/** The template of the page, which its script sets as `Handoff.template`. */
export const pageTemplate = { text: null };

const htmlEscapes = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const toHtml = (text) =>
  text.replace(unprintable, '\ufffd').replace(/[&<>"']/g, (character) => htmlEscapes[character]);

/** Splits a template into texts, values and sections. Throws FormatError if tags do not match. */
function parseTemplate(template) {
  const root = { parts: [] };
  const open = [root];
  // Each second piece is a tag.
  for (const [i, piece] of template.split(/\{\{(\{[^}]*\}|[^}]*)\}\}/).entries()) {
    const { parts } = open.at(-1);
    const [mark, name] = [piece[0], piece.slice(1)];
    if (i % 2 === 0) parts.push({ text: piece });
    else if (mark === '{') parts.push({ value: name.slice(0, -1), isRaw: true });
    else if (mark === '#' || mark === '^') {
      open.push({ section: name, isInverted: mark === '^', parts: [] });
      parts.push(open.at(-1));
    } else if (mark === '/')
      ensure(open.pop().section === name, 'a template whose sections do not match');
    else parts.push({ value: piece, isRaw: false });
  }
  ensure(open.length === 1, 'a template with a section that does not end');
  return root.parts;
}

function lookUp(stack, name) {
  if (name === '.') return stack.at(-1);
  const holder = stack.findLast((value) => isObject(value) && Object.hasOwn(value, name));
  return holder?.[name];
}

export const isShown = (value) =>
  Array.isArray(value) ? value.length > 0 : ![undefined, null, false, ''].includes(value);

/** Fills a template with facts. The language is that of src/report/template.rs. */
export function fill(template, facts) {
  const filled = [];
  function write(parts, stack) {
    for (const part of parts) {
      if ('text' in part) {
        filled.push(part.text);
      } else if ('value' in part) {
        const value = lookUp(stack, part.value);
        if (typeof value === 'string') filled.push(part.isRaw ? value : toHtml(value));
        else if (isNumber(value)) filled.push(canonical(value));
      } else {
        const value = lookUp(stack, part.section);
        if (isShown(value) === part.isInverted) continue;
        for (const each of part.isInverted ? [] : [value].flat())
          write(part.parts, [...stack, each]);
        if (part.isInverted) write(part.parts, stack);
      }
    }
  }
  write(parseTemplate(template), [facts]);
  return filled.join('');
}
