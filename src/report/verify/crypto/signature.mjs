// SSH signatures: who signed a message (section 3).

import {
  concatBytes,
  ensure,
  fromBase64,
  toBase64,
  toBytes,
  toLatin,
  tryToRead,
} from '../bytes.mjs';
import { sha256, sha512 } from './hashes.mjs';
import { settings, verifyEd25519 } from './ed25519.mjs';
import { ByteReader } from '../git/reader.mjs';

function sshString(bytes) {
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, bytes.length);
  return concatBytes(length, bytes);
}

export const fingerprintOfWire = (wire) => 'SHA256:' + toBase64(sha256(wire), false);
const armourBegin = '-----BEGIN SSH SIGNATURE-----';
const armourEnd = '-----END SSH SIGNATURE-----';

/** Reads an armoured SSHSIG, or returns null unless it has exactly the form of section 3. */
function readSshSignature(armour) {
  const lines = armour.split('\n');
  if (lines.shift() !== armourBegin || lines.pop() !== armourEnd) return null;
  const last = lines.at(-1);
  if (!last || last.length > 70 || lines.slice(0, -1).some((line) => line.length !== 70))
    return null;
  const raw = fromBase64(lines.join(''));
  if (!raw || toLatin(raw.subarray(0, 6)) !== 'SSHSIG') return null;
  return tryToRead(() => readSignatureBytes(new ByteReader(raw, 6))) ?? null;
}

function readSignatureBytes(reader) {
  ensure(reader.takeUint32() === 1, 'another version');
  const wire = reader.takeString();
  const [namespace, reserved, hash] = [0, 1, 2].map(() => toLatin(reader.takeString()));
  const signature = new ByteReader(reader.takeString());
  ensure(reader.isAtEnd && namespace === 'git' && reserved === '', 'another purpose');
  ensure(hash === 'sha512' || hash === 'sha256', 'another hash');
  const key = readEd25519Key(wire);
  ensure(key && toLatin(signature.takeString()) === 'ssh-ed25519', 'another kind of key');
  const bytes = signature.takeString();
  ensure(signature.isAtEnd, 'more bytes than a signature');
  return { key, wire, hash, signature: bytes };
}

/** Returns the 32 bytes of an ed25519 key in SSH's encoding, or null. */
export function readEd25519Key(wire) {
  const reader = new ByteReader(wire);
  if (toLatin(reader.takeString()) !== 'ssh-ed25519') return null;
  const key = reader.takeString();
  return reader.isAtEnd && key.length === 32 ? key : null;
}

async function hashForSignature(hash, message) {
  if (hash === 'sha256') return sha256(message);
  if (settings.useSubtle && globalThis.crypto?.subtle) {
    return new Uint8Array(await globalThis.crypto.subtle.digest('SHA-512', message));
  }
  return sha512(message);
}

/** Returns the fingerprint of the key that signed the message, or null. */
export async function signerOf(armour, message) {
  const read = readSshSignature(armour);
  if (!read) return null;
  const digest = await hashForSignature(read.hash, message);
  const signed = concatBytes(
    toBytes('SSHSIG'),
    ...['git', '', read.hash].map((text) => sshString(toBytes(text))),
    sshString(digest),
  );
  const holds = await verifyEd25519(read.key, read.signature, signed);
  return holds ? fingerprintOfWire(read.wire) : null;
}
