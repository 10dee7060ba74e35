// Reads a commit that carries an entry, and finds its signer (section 3).

import {
  byteLength,
  concatBytes,
  ensure,
  FormatError,
  toBytes,
  toHex,
  toText,
} from '../bytes.mjs';
import { limits } from '../limits.mjs';
import { objectName, sha256 } from '../crypto/hashes.mjs';
import { entryText, readJson } from '../json.mjs';
import { secondsOf } from '../values.mjs';
import { signerOf } from '../crypto/signature.mjs';
import { faultOfEntry } from './kinds.mjs';
import { authorOf, subjectOf } from './subject.mjs';

export const leafHash = (bytes) => sha256(concatBytes(Uint8Array.of(0), bytes));
export const hashText = (hash) => 'sha256:' + toHex(hash);

function indexOfBlankLine(bytes, from = 0) {
  for (let at = bytes.indexOf(10, from); at >= 0; at = bytes.indexOf(10, at + 1)) {
    if (bytes[at + 1] === 10) return at;
  }
  return -1;
}

/**
 * A commit of a chain. `entry` is null if it carries no valid entry; `fault` then says why.
 * `signer` is the fingerprint of the key that signed it, or null, after `checkSignatures`.
 */
export class Commit {
  constructor(bytes, format, name = null) {
    this.name = name;
    this.bytes = bytes;
    this.format = format;
    this.tree = null;
    this.parents = [];
    this.entry = null;
    this.fault = null;
    this.armour = null;
    this.signer = null;
    try {
      this.read();
    } catch (error) {
      if (!(error instanceof FormatError)) throw error;
      this.entry = null;
      this.fault = error.message;
    }
  }

  read() {
    const headEnd = indexOfBlankLine(this.bytes);
    ensure(headEnd >= 0, 'the commit has no message');
    const head = toText(this.bytes.subarray(0, headEnd)).replace(/\n /g, '\0').split('\n');
    const nameLength = this.format === 'sha1' ? 40 : 64;
    const objectLine = new RegExp(`^(tree|parent) ([0-9a-f]{${nameLength}})$`);
    const signatureHeader = this.format === 'sha1' ? 'gpgsig ' : 'gpgsig-sha256 ';
    const treeLine = objectLine.exec(head[0]);
    ensure(treeLine?.[1] === 'tree', 'the commit names no tree');
    this.tree = treeLine[2];
    for (const line of head.slice(1)) {
      const parentLine = objectLine.exec(line);
      if (parentLine?.[1] !== 'parent') break;
      this.parents.push(parentLine[2]);
    }
    const signatureLine = head.find((line) => line.startsWith(signatureHeader));
    if (signatureLine) {
      this.armour = signatureLine.slice(signatureHeader.length).replaceAll('\0', '\n');
    }
    ensure(this.bytes.length <= limits.commit, 'the commit is too large');
    const subjectEnd = indexOfBlankLine(this.bytes, headEnd + 2);
    const isMessage = subjectEnd >= 0 && this.bytes.at(-1) === 10;
    ensure(isMessage, 'the message is no subject and entry');
    this.readEntry(this.bytes.subarray(subjectEnd + 2, -1));
    this.compareHead(this.bytes.subarray(0, subjectEnd + 2), signatureHeader);
  }

  readEntry(bytes) {
    const { containers, commas } = limits;
    this.entry = readJson(bytes, { containers, commas });
    const fault = faultOfEntry(this.entry);
    ensure(fault === null, `the entry is not valid: ${fault}`);
    ensure(entryText(this.entry) === toText(bytes), 'the entry is not canonical');
    this.leaf = leafHash(bytes);
    this.hash = hashText(this.leaf);
    this.seconds = secondsOf(this.entry.at);
  }

  /** Requires that everything before the entry is what the entry makes. */
  compareHead(bytes, signatureHeader) {
    const who = (name) => `${name} <handoff@localhost> ${this.seconds} +0000\n`;
    const head = [
      `tree ${this.tree}\n`,
      ...this.parents.map((parent) => `parent ${parent}\n`),
      `author ${who(authorOf(this.entry.actor))}`,
      `committer ${who('git-handoff')}`,
    ].join('');
    const signature =
      this.armour === null ? '' : signatureHeader + this.armour.replaceAll('\n', '\n ') + '\n';
    const expected = `${head}${signature}\n${subjectOf(this.entry)}\n\n`;
    ensure(toText(bytes) === expected, 'the commit is not what its entry makes');
    // The signature covers the commit without its header.
    const place = byteLength(head);
    this.signed = concatBytes(
      this.bytes.subarray(0, place),
      this.bytes.subarray(place + byteLength(signature)),
    );
  }
}

/** Sets the signer of each commit that carries an entry. */
export async function checkSignatures(commits) {
  await Promise.all(
    commits.map(async (commit) => {
      if (!commit.entry || commit.armour === null || commit.isChecked) return;
      commit.isChecked = true;
      commit.signer = await signerOf(commit.armour, commit.signed);
    }),
  );
}

/** Reads a commit whose object format follows from the name of its own tree. */
export async function readQuotedCommit(text, format) {
  const bytes = toBytes(text);
  const tree = /^tree ([0-9a-f]+)\n/.exec(text)?.[1] ?? '';
  const own = format ?? (tree.length === 64 ? 'sha256' : 'sha1');
  const commit = new Commit(bytes, own, objectName(own, 'commit', bytes));
  await checkSignatures([commit]);
  return commit;
}
