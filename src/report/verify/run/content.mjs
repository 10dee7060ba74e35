// Row `content` of a run: the bytes that its entries name.

import { areNamed } from '../crypto/hashes.mjs';
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
function checkSealedContent(verifier, { entry }) {
  for (const [path, named] of Object.entries(entry.artifacts))
    examine(verifier, 'artifacts', `the artifact ${path}`, named, verifier.begin, path);
  for (const [name, { product }] of Object.entries(entry.imports ?? {}))
    examine(verifier, 'products', `the import ${name}`, product, verifier.begin, name);
}

/** Compares the bytes of a blob with an entry. */
function examine(verifier, kind, what, named, commit, path) {
  const { oid } = named;
  const bytes = verifier.store.readBlob(oid);
  const fail = (code, text) => verifier.reportFile('content', code, commit, what + text, path);
  if (bytes === null) {
    if (verifier.store.isLeftOut(oid)) verifier.findings.addLeftOut('content');
    else fail('content-unread', `: object ${oid} is not in the bundle`);
  } else if (!areNamed(bytes, named)) {
    fail('content-bytes', ' has other bytes than its entry says');
  } else {
    verifier.contents[kind]++;
    verifier.contents.bytes += bytes.length;
  }
}
