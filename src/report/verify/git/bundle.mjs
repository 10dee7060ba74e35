// Reads a git bundle: its head, its refs and its pack (section 2).

import { ensure, toLatin, toText } from '../bytes.mjs';
import { decodeSegment, isRunName } from '../names.mjs';
import { endOfHead } from './reader.mjs';
import { readPack } from './pack.mjs';
import { Store } from './store.mjs';

const isKeyFile = (name) => /^SHA256:[A-Za-z0-9+/]{43}(?:\.[0-9a-f]{12})?$/.test(name);

/** The folders of refs that a bundle may have, with the names that are allowed in each. */
const refFolders = {
  runs: isRunName,
  threads: isRunName,
  logs: isKeyFile,
  archives: (name) => isKeyFile(name) && name.includes('.'),
  transcripts: isRunName,
  stamps: isRunName,
  'thread-stamps': isRunName,
};

/** Adds a ref of a bundle. Throws FormatError if it could be mistaken for another (section 2). */
function addRef(store, ref, name) {
  const [, folder, segment] = /^refs\/handoff\/([^/]*)\/(.*)$/s.exec(ref) ?? [];
  if (folder === undefined || !Object.hasOwn(refFolders, folder)) {
    store.otherRefs.push(ref);
    return;
  }
  const decoded = decodeSegment(segment);
  ensure(decoded !== null && refFolders[folder](decoded), 'a ref that names no run, thread or log');
  store.refs.set(ref, name);
}

const longestHead = 16 * 1024 * 1024;
const mostRefs = 50000;

/**
 * Reads the head of a bundle (section 2) and returns the bytes of its pack. Throws FormatError if
 * two readers could understand it differently.
 */
function readBundleHead(store, bytes) {
  ensure(toLatin(bytes.subarray(0, 13)).startsWith('# v'), 'not a git bundle of version 2 or 3');
  const end = endOfHead(bytes.subarray(0, longestHead));
  ensure(end > 0, 'a bundle whose head does not end');
  const [first, ...lines] = toText(bytes.subarray(0, end)).split('\n');
  const version = /^# v([23]) git bundle$/.exec(first)?.[1];
  ensure(version !== undefined, 'not a git bundle of version 2 or 3');
  const isCapability = (line) => line.startsWith('@');
  const at = lines.findIndex((line) => !isCapability(line));
  const capabilities = new Set(at < 0 ? lines : lines.slice(0, at));
  ensure(version === '3' || capabilities.size === 0, 'a bundle of version 2 with a capability');
  store.setCapabilities([...capabilities].map((line) => line.slice(1)));
  const refs = at < 0 ? [] : lines.slice(at);
  ensure(refs.length <= mostRefs, 'a bundle with too many refs');
  const names = new Set();
  for (const line of refs) {
    const [, needed, name, ref] = /^(-?)([0-9a-f]+)(?: (.*))?$/s.exec(line) ?? [];
    ensure(name?.length === (store.format === 'sha1' ? 40 : 64), 'a line that is no ref');
    ensure(needed === '', 'a bundle that needs objects of a repository');
    ensure(ref, 'a ref without a name');
    ensure(!names.has(ref), 'a ref that occurs twice');
    names.add(ref);
    addRef(store, ref, name);
  }
  return bytes.subarray(end + 2);
}

/** Reads a git bundle of version 2 or 3. Throws FormatError if git could not read it. */
export async function readBundle(bytes) {
  const store = new Store();
  ensure(bytes.length < 0x7fffffff, 'a bundle that is too large');
  const pack = readBundleHead(store, bytes);
  store.objects = readPack(pack, store.format);
  for (const name of store.refs.values())
    ensure(store.objects.has(name), 'a ref that names a missing object');
  return store;
}
