// A second verifier of the format in docs/reference/format.md, in plain JavaScript: the command
// `node src/report/verify.mjs FILE`, and the names for the tests.
//
// Its modules are in the folder `verify`. All but those in `verify/node` are also joined to the
// script of a page; they touch no file, and only `verify/page/browser.mjs` touches a page. Section
// numbers in their comments are those of format.md.

import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { FormatError } from './verify/bytes.mjs';
import { toLine } from './verify/page/printable.mjs';
import { Handoff } from './verify/handoff.mjs';
import { usage, UsageError } from './verify/node/arguments.mjs';
import { main } from './verify/node/main.mjs';

export default Handoff;
export { checkPageFile } from './verify/node/page-file.mjs';

const isMain = process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url);
if (isMain) {
  try {
    process.exitCode = await main(process.argv.slice(2));
  } catch (error) {
    if (error instanceof UsageError || error.code?.startsWith('ERR_PARSE_ARGS')) {
      console.error(`error: ${toLine(error.message)}\n\n${usage}`);
      process.exitCode = 2;
    } else if (error instanceof FormatError || error.code !== undefined) {
      console.error(`error: ${toLine(error.message)}`);
      process.exitCode = 1;
    } else {
      throw error;
    }
  }
}
