// Bytes and texts: UTF-8, hex, base64, the order of names, and the error for wrong input.

const utf8Encoder = new TextEncoder();
const utf8Decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Input that is not what the format requires. The message says why. */
export class FormatError extends Error {}

export function ensure(condition, message) {
  if (!condition) throw new FormatError(message);
}

/** Calls a function that reads input, and returns undefined if it throws FormatError. */
export function tryToRead(read) {
  try {
    return read();
  } catch (error) {
    if (error instanceof FormatError) return undefined;
    throw error;
  }
}

export const toBytes = (text) => utf8Encoder.encode(text);

export function toText(bytes) {
  try {
    return utf8Decoder.decode(bytes);
  } catch {
    throw new FormatError('not UTF-8');
  }
}

/** Decodes each byte to one character, for data that is not UTF-8. */
export function toLatin(bytes) {
  let text = '';
  for (let i = 0; i < bytes.length; i += 4096) {
    text += String.fromCharCode.apply(null, bytes.subarray(i, i + 4096));
  }
  return text;
}

const hexOfByte = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

export function toHex(bytes) {
  let text = '';
  for (let i = 0; i < bytes.length; i++) text += hexOfByte[bytes[i]];
  return text;
}

export function fromHex(text) {
  const bytes = new Uint8Array(text.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = parseInt(text.substr(2 * i, 2), 16);
  return bytes;
}

export function concatBytes(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export function equalBytes(a, b) {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

export function toBase64(bytes, padded = true) {
  const text = btoa(toLatin(bytes));
  return padded ? text : text.replace(/=+$/, '');
}

/** Decodes padded base64, and returns null unless the text is exactly its canonical encoding. */
export function fromBase64(text) {
  try {
    const decoded = atob(text);
    return btoa(decoded) === text ? Uint8Array.from(decoded, (c) => c.charCodeAt(0)) : null;
  } catch {
    return null;
  }
}

/** Compares two strings by the bytes of their UTF-8, which is the order of names (section 1). */
export function compareNames(a, b) {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return (a.codePointAt(at) ?? -1) - (b.codePointAt(at) ?? -1);
}

export const sortNames = (names) => [...names].sort(compareNames);

export const byteLength = (text) => toBytes(text).length;
