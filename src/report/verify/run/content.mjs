// Row `content` of a run: the bytes that its entries name.

import { digestOfBlob } from '../crypto/hashes.mjs';
import { encodePath } from '../names.mjs';
import { unreadFile } from '../chain/changes.mjs';
import { counted } from '../findings.mjs';

export function checkContent(verifier) {
  const { findings } = verifier;
  verifier.contents = { products: 0, artifacts: 0, bytes: 0 };
  for (const commit of verifier.commits) {
    const { entry } = commit;
    const examineProduct = (what, product, path) =>
      examine(verifier, 'products', what, product, commit, path);
    if (entry.kind === 'document.written')
      examineProduct(`the document ${entry.name}`, entry, entry.name);
    if (entry.kind !== 'item.reconciled') continue;
    for (const [key, product] of Object.entries(entry.products))
      examineProduct(`${key} of ${entry.item}`, product, key);
  }
  if (verifier.begin) checkSealedContent(verifier, verifier.begin);
  const { products, artifacts, bytes } = verifier.contents;
  const also = artifacts > 0 ? ` and ${counted(artifacts, 'artifact')}` : '';
  findings.details.content = `${counted(products, 'product')}${also}, ${bytes} B re-hashed`;
}

/** Examines the artifacts and the imports that entry 0 seals. */
function checkSealedContent(verifier, { entry, files }) {
  for (const [path, sha256] of Object.entries(entry.artifacts)) {
    const oid = files?.get(`artifacts/${encodePath(path)}`);
    // Row chain reports an artifact that is not in the tree, or in a folder that is damaged.
    if (oid === unreadFile.leftOut) verifier.findings.addLeftOut('content');
    else if (oid !== undefined && oid !== unreadFile.unread)
      examine(verifier, 'artifacts', `the artifact ${path}`, { oid, sha256 }, verifier.begin, path);
  }
  for (const [name, { product }] of Object.entries(entry.imports ?? {}))
    examine(verifier, 'products', `the import ${name}`, product, verifier.begin, name);
}

/** Compares the bytes of a blob with an entry; a size may be absent. */
function examine(verifier, kind, what, { oid, sha256: digest, size }, commit, path) {
  const bytes = verifier.store.readBlob(oid);
  const fail = (code, text) => verifier.reportFile('content', code, commit, what + text, path);
  if (bytes === null) {
    if (verifier.store.isLeftOut(oid)) verifier.findings.addLeftOut('content');
    else fail('content-unread', `: object ${oid} is not in the bundle`);
  } else if (digestOfBlob(bytes) !== digest || bytes.length !== (size ?? bytes.length)) {
    fail('content-bytes', ' has other bytes than its entry says');
  } else {
    verifier.contents[kind]++;
    verifier.contents.bytes += bytes.length;
  }
}
