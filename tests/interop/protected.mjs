// Reads JSON from standard input, and answers with what verify.mjs makes of it:
// {paths: [{path, isSubmodule}], pathspecs} with the paths that each pathspec selects, or with null
// for a pathspec that is refused; {patch} in base64 with the changed paths, each with both sides,
// or with the reason why it is refused.
import { readFileSync } from 'node:fs';
import Handoff from '../../src/report/verify.mjs';

const question = JSON.parse(readFileSync(0, 'utf8'));
const toLatin = (text) => Buffer.from(text, 'utf8').toString('latin1');
const toText = (latin) => Buffer.from(latin, 'latin1').toString('utf8');

function select(pathspec) {
  try {
    const test = Handoff.readPathspec(pathspec);
    const found = question.paths.filter(({ path, isSubmodule }) => test(toLatin(path), isSubmodule));
    return found.map(({ path }) => path);
  } catch (error) {
    if (error instanceof Handoff.FormatError) return null;
    throw error;
  }
}

function changes(patch) {
  try {
    const entries = [...Handoff.readPatch(new Uint8Array(Buffer.from(patch, 'base64')))];
    return entries.map(([path, { old, now }]) => [toText(path), old, now]);
  } catch (error) {
    if (error instanceof Handoff.FormatError) return error.message;
    throw error;
  }
}

const answer = 'patch' in question ? changes(question.patch) : question.pathspecs.map(select);
console.log(JSON.stringify(answer));
