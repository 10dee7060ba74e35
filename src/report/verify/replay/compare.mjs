// Compares the values that conditions of rules name.

import { canonical, isObject } from '../json.mjs';
import { compareBy } from '../values.mjs';
import { isNumber } from '../plan/plan.mjs';

/** Splits a decimal number into its sign, its digits and the power of ten of the first one. */
function readDecimal(text) {
  const [, sign, whole, fraction = '', exponent = '0'] =
    /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/.exec(text);
  const all = whole + fraction;
  let [zeros, end] = [0, all.length];
  while (zeros < end && all[zeros] === '0') zeros++;
  while (end > zeros && all[end - 1] === '0') end--;
  if (zeros === end) return { sign: 0, digits: '', magnitude: 0n };
  return {
    sign: sign ? -1 : 1,
    digits: all.slice(zeros, end),
    magnitude: BigInt(whole.length - zeros) + BigInt(exponent.replace('+', '')),
  };
}

/** Compares two decimal numbers exactly, however long they are. */
function compareDecimals(a, b) {
  const [x, y] = [readDecimal(a), readDecimal(b)];
  if (x.sign !== y.sign) return x.sign - y.sign;
  if (x.magnitude !== y.magnitude) return x.magnitude < y.magnitude ? -x.sign : x.sign;
  return x.digits === y.digits ? 0 : x.digits < y.digits ? -x.sign : x.sign;
}

/** Compares the value in a document by a condition. Returns null if they do not compare. */
export function compareValues(found, operator, wanted) {
  if (isNumber(found) && isNumber(wanted)) {
    return compareBy[operator](compareDecimals(found.text, canonical(wanted)));
  }
  if (operator !== '==' && operator !== '!=') return null;
  const isEqual = found === wanted;
  return operator === '==' ? isEqual : !isEqual;
}

/** Returns the value at a JSON pointer, or undefined. */
export function valueAt(value, pointer) {
  for (const part of pointer.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(value)) {
      if (!/^(?:0|[1-9][0-9]*)$/.test(key)) return undefined;
      value = value[Number(key)];
    } else {
      value = isObject(value) && key in value ? value[key] : undefined;
    }
    if (value === undefined) return undefined;
  }
  return value;
}
