// Makes texts printable: without characters that are invisible or turn the text around.

/** Characters that are never shown, because they are invisible or turn the text around. */
export const unprintable = new RegExp(
  '[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5' +
    '\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff' +
    '\\uffa0\\ufff0-\\ufffb\\u{13430}-\\u{1343f}\\u{1bca0}-\\u{1bca3}\\u{1d159}' +
    '\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]',
  'gu',
);

/** Makes a text printable on one line of a terminal, because a line end could imitate another. */
export const toLine = (text) => text.replace(unprintable, '\ufffd').replaceAll('\n', '\ufffd');

/** Writes the characters of a JSON that are never shown as escapes. */
export function toPrintableJson(value) {
  const escapeUnit = (unit) => '\\u' + unit.charCodeAt(0).toString(16).padStart(4, '0');
  const escapeAll = (character) => character.split('').map(escapeUnit).join('');
  return JSON.stringify(value).replace(unprintable, escapeAll);
}
