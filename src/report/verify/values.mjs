// Checks of values: types, numbers, digests, times, and the shapes of objects.

import { fromBase64 } from './bytes.mjs';
import { isObject, maxInteger } from './json.mjs';

export const isString = (value) => typeof value === 'string';
export const isText = (value) => typeof value === 'string' && value !== '';
export const isBoolean = (value) => typeof value === 'boolean';
export const isTrue = (value) => value === true;

export function isInteger(value, least = 0, most = maxInteger) {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most;
}

export const between = (least, most) => (value) => isInteger(value, least, most);
export const isCount = between(0);
export const isInt32 = between(-(2 ** 31), 2 ** 31 - 1);
export const isAttempt = between(0, 2 ** 32 - 1);
export const isPositive = between(1);

export function isFingerprint(value) {
  if (!isString(value) || !/^SHA256:[A-Za-z0-9+/]{43}$/.test(value)) return false;
  return fromBase64(value.slice(7) + '=') !== null;
}

export const oneOf =
  (...words) =>
  (value) =>
    words.includes(value);
export const matches = (pattern) => (value) => isString(value) && pattern.test(value);

export const allOf =
  (...checks) =>
  (value) =>
    checks.every((check) => check(value));
export const anyOf =
  (...checks) =>
  (value) =>
    checks.some((check) => check(value));

/** An array of so many values that are checked. */
export const arrayOf =
  (check, least = 0, most = Infinity) =>
  (value) =>
    Array.isArray(value) &&
    value.length >= least &&
    value.length <= most &&
    value.every((each) => check(each));

/** An object that has exactly one of the fields. */
export const hasOneOf =
  (...fields) =>
  (value) =>
    fields.filter((field) => field in value).length === 1;

export const isDigest = matches(/^sha256:[0-9a-f]{64}$/);
export const isObjectId = matches(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/);

/** An object whose keys and values are checked. */
export const mapOf = (checkKey, checkValue) => (value) =>
  isObject(value) && Object.keys(value).every((key) => checkKey(key) && checkValue(value[key]));

export const notEmpty = (check) => (value) => check(value) && Object.keys(value).length > 0;

/** An object of exactly these fields; a name that ends with `?` may be absent. */
export function shape(fields) {
  const checks = Object.create(null);
  const required = [];
  for (const [name, check] of Object.entries(fields)) {
    const optional = name.endsWith('?');
    checks[optional ? name.slice(0, -1) : name] = check;
    if (!optional) required.push(name);
  }
  return (value) =>
    isObject(value) &&
    required.every((name) => name in value) &&
    Object.keys(value).every((name) => name in checks && checks[name](value[name]));
}

/** Returns a time in seconds since 1970, rounded down, or null if it is no time. */
export function secondsOf(text) {
  if (!isString(text) || !/^[0-9]/.test(text)) return null;
  const date = new Date(text);
  const isReal = !isNaN(date) && date >= 0 && date.toISOString() === text;
  return isReal ? Math.floor(date / 1000) : null;
}

export const isTime = (value) => secondsOf(value) !== null;

export const hasDistinct = (values) => new Set(values).size === values.length;

export const compareBy = {
  '<': (order) => order < 0,
  '<=': (order) => order <= 0,
  '==': (order) => order === 0,
  '!=': (order) => order !== 0,
  '>=': (order) => order >= 0,
  '>': (order) => order > 0,
};
