// Ids and versions of schemas, and whether a document has the schema that a need wants.

import { byteLength } from './bytes.mjs';

export const maxSchemaVersion = 2 ** 31 - 1;

export const isSchemaId = (value) =>
  typeof value === 'string' &&
  value !== '' &&
  byteLength(value) <= 128 &&
  !/[@\p{White_Space}\p{Cc}]/u.test(value);

/** Reads `id@N`, or returns null. */
export function readSchema(text) {
  const match = typeof text === 'string' ? /^([^@]*)@([1-9][0-9]{0,9})$/.exec(text) : null;
  if (!match || !isSchemaId(match[1]) || Number(match[2]) > maxSchemaVersion) return null;
  return { id: match[1], version: Number(match[2]) };
}

export const isWantedSchema = (text) => isSchemaId(text) || readSchema(text) !== null;

/** Returns true if a document of the schema {id, version} satisfies the wanted schema. */
export function satisfiesSchema(schema, wanted) {
  return !!schema && (wanted === schema.id || wanted === `${schema.id}@${schema.version}`);
}
