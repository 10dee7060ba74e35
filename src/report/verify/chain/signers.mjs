// The keys that a verifier knows, requires and distrusts (section 9, keys).

import { ensure, fromBase64 } from '../bytes.mjs';
import { isFingerprint, secondsOf } from '../values.mjs';
import { fingerprintOfWire, readEd25519Key } from '../crypto/signature.mjs';

/** Reads `valid-after` and `valid-before`; a time without Z is local. */
function readValidity(text) {
  const match = /^([0-9]{4})([0-9]{2})([0-9]{2})(?:([0-9]{2})([0-9]{2})([0-9]{2})?)?(Z?)$/.exec(
    text,
  );
  ensure(match, `a time that cannot be understood: ${text}`);
  const [, year, month, day, hour = '00', minute = '00', second = '00', zone] = match;
  const time = `${year}-${month}-${day}T${hour}:${minute}:${second}.000`;
  ensure(secondsOf(time + 'Z') !== null, `a time that does not exist: ${text}`);
  return new Date(time + zone).getTime() / 1000;
}

function matchesPatterns(name, patterns) {
  let isMatched = false;
  for (const pattern of patterns) {
    const isNegated = pattern.startsWith('!');
    const body = (isNegated ? pattern.slice(1) : pattern).replace(/[.+^${}()|[\]\\]/g, '\\$&');
    const matches = new RegExp(`^${body.replaceAll('*', '.*').replaceAll('?', '.')}$`, 's').test(
      name,
    );
    if (matches && isNegated) return false;
    isMatched ||= matches;
  }
  return isMatched;
}

function splitQuoted(text, separator) {
  const parts = [''];
  let isQuoted = false;
  for (const character of text) {
    if (character === '"') isQuoted = !isQuoted;
    if (character === separator && !isQuoted) parts.push('');
    else parts[parts.length - 1] += character;
  }
  ensure(!isQuoted, 'a quote that does not end');
  return parts;
}

/** Reads a line of an allowed-signers file: {principals, fingerprint, after, before} or null. */
export function readSignerLine(line) {
  const words = splitQuoted(line.replace(/\t/g, ' '), ' ').filter((word) => word !== '');
  const principals = words.shift().replaceAll('"', '').split(',');
  const options = {};
  const hasOptions = !/^(?:ssh-|ecdsa-|sk-)/.test(words[0] ?? '');
  const given = hasOptions ? splitQuoted(words.shift() ?? '', ',') : [];
  if (given.some((option) => option.toLowerCase() === 'cert-authority')) return null;
  for (const option of given) {
    const [, name, value] = /^([a-zA-Z-]+)(?:="([^"]*)")?$/.exec(option) ?? [];
    const known = ['namespaces', 'valid-after', 'valid-before'].includes(name?.toLowerCase());
    ensure(known && value !== undefined, `an option that cannot be understood: ${option}`);
    ensure(!(name.toLowerCase() in options), `an option twice: ${option}`);
    options[name.toLowerCase()] = value;
  }
  const [type, encoded, ...comment] = words;
  const wire = fromBase64(encoded ?? '');
  ensure(encoded, 'a line without a key');
  ensure(type !== 'ssh-ed25519' || (wire && wire.length > 4), 'a key that cannot be read');
  const namesKey = comment.some(
    (word) => /AAAA/.test(word) || /sha256:|sha512:|md5:|since=/i.test(word),
  );
  ensure(!namesKey, 'a second key in a comment');
  const after = 'valid-after' in options ? readValidity(options['valid-after']) : -Infinity;
  const before = 'valid-before' in options ? readValidity(options['valid-before']) : Infinity;
  ensure(after <= before, 'a line that is valid at no time');
  const namespaces = options.namespaces?.split(',');
  if (type !== 'ssh-ed25519' || !readEd25519Key(wire)) return null;
  if (namespaces && !matchesPatterns('git', namespaces)) return null;
  return { principals, fingerprint: fingerprintOfWire(wire), after, before };
}

export function readLines(text) {
  ensure(!text.slice(1).includes('\ufeff'), 'a byte order mark inside the file');
  const lines = text
    .replace(/^\ufeff/, '')
    .replaceAll('\r\n', '\n')
    .split('\n');
  ensure(
    lines.every((line) => !/[^\P{Cc}\t]|[\u2028\u2029]/u.test(line)),
    'a control character',
  );
  return lines.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'));
}

/** The keys that a verifier knows, requires and distrusts. */
export class Signers {
  constructor({ signers, revoked, signer, strictSigners }) {
    this.lines = new Map();
    this.revoked = new Map();
    this.wanted = signer ?? null;
    this.knownOnly = strictSigners ?? (signers !== undefined && signers !== null);
    for (const line of readLines(signers ?? '')) {
      const read = readSignerLine(line);
      if (!read) continue;
      this.lines.set(read.fingerprint, [...(this.lines.get(read.fingerprint) ?? []), read]);
    }
    for (const line of readLines(revoked ?? '')) {
      const [, since, key] = /^(?:since=(\S+)\s+)?(\S.*)$/s.exec(line);
      const wire = /^ssh-ed25519\s+(\S+)/.exec(key);
      const bytes = wire && fromBase64(wire[1]);
      const fingerprint = bytes ? fingerprintOfWire(bytes) : key.split(/\s/)[0];
      ensure(isFingerprint(fingerprint), `a revoked key that cannot be understood: ${line}`);
      this.revoked.set(fingerprint, since ?? null);
    }
  }

  /** Returns true if logs by this key count as those of a known key. */
  isKnown(key) {
    return this.lines.has(key) && this.revoked.get(key) !== null;
  }

  /** Returns the first principal of the key, or null. */
  principalOf(key) {
    return this.lines.get(key)?.[0].principals[0] ?? null;
  }

  /** Returns the code of the finding about a key at a time, or null. */
  judge(key, seconds, conducts) {
    if (this.revoked.has(key)) return 'key-revoked';
    const lines = this.lines.get(key);
    if (!lines && this.knownOnly) return 'key-unknown';
    const valid = (lines ?? []).filter(
      ({ after, before }) => after <= seconds && seconds <= before,
    );
    if (lines && valid.length === 0) return 'key-not-valid';
    if (this.wanted === null || !conducts || this.wanted === key) return null;
    const isWanted = valid.some(({ principals }) => matchesPatterns(this.wanted, principals));
    return isWanted ? null : 'other-signer';
  }
}
