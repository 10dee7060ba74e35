// Creates the items of a rule from its templates (section 6).

import { canonicalBytes } from '../json.mjs';
import {
  isAddedItem,
  isFromElsewhere,
  itemOfNeed,
  normaliseItem,
  productOf,
} from '../plan/items.mjs';

/** A template results in a name that is taken or not valid. */
export class NameClash extends Error {}

const templateLimits = { items: 262144, links: 1048576, bytes: 33554432 };

/** One application of a rule whose `create` is an array of templates. */
export class TemplateRound {
  constructor(replay, rule) {
    this.replay = replay;
    this.rule = rule;
    this.round = String(replay.roundsOf(rule) + 1);
    this.created = new Map();
    this.successors = new Map();
    this.isWaiting = false;
    this.links = 0;
    this.bytes = 0;
  }

  create() {
    for (const template of this.rule.create) {
      if ('again' in template) {
        this.copyAgain(template.again);
        continue;
      }
      const { forEach } = this.rule;
      const outputs = forEach ? this.outputsOf(forEach.outputsOf) : [null];
      for (const output of outputs) this.applyTemplate(template, output);
    }
    if (this.created.size === 0 || this.isWaiting) return null;
    if (!this.replay.doItemsFit(this.created, false)) throw new NameClash();
    return { items: this.created };
  }

  newest(id) {
    return this.replay.newest(id, this.successors);
  }

  outputsOf(id) {
    return this.replay.items.get(this.newest(id))?.outputs ?? [];
  }

  hasProduct(need) {
    const item = this.replay.items.get(need.from);
    return item !== undefined && productOf(need.select) in item.products;
  }

  countLinks(count) {
    this.links += count;
    if (this.links > templateLimits.links) throw new NameClash();
  }

  add(item) {
    if (this.created.has(item.id) || !isAddedItem(item)) throw new NameClash();
    const normal = normaliseItem(item);
    this.bytes += canonicalBytes(normal).length;
    const isTooMuch = this.bytes > templateLimits.bytes;
    if (isTooMuch || this.created.size >= templateLimits.items) throw new NameClash();
    this.created.set(item.id, normal);
  }

  /** Notes a successor. One that cannot be is reported when all items exist, and ends no search. */
  succeed(old, id) {
    const { items } = this.replay;
    if (items.has(old) && !items.has(id)) this.successors.set(old, id);
  }

  copyAgain(id) {
    const { replay } = this;
    const first = this.newest(id);
    if (!replay.items.has(first)) throw new NameClash();
    const copied = new Set([first]);
    for (let grows = true; grows;) {
      grows = false;
      for (const item of replay.items.values()) {
        if (copied.has(item.id) || item.status !== 'skipped' || this.newest(item.id) !== item.id)
          continue;
        if (!replay.dependencies(item.id).some((each) => copied.has(each))) continue;
        copied.add(item.id);
        grows = true;
      }
    }
    for (const each of copied) {
      if (!replay.items.get(each).hasEnded) this.isWaiting = true;
      this.succeed(each, nameOfCopy(each));
    }
    for (const each of copied) this.add(this.copyOf(each));
  }

  copyOf(id) {
    const { definition } = this.replay.items.get(id);
    const copy = { ...definition, id: nameOfCopy(id), replaces: id };
    delete copy.continues;
    const dependencies = this.replay.dependencies(id);
    this.countLinks(dependencies.length + Object.keys(definition.needs).length);
    copy.depends_on = dependencies.map((each) => this.newest(each));
    copy.needs = Object.create(null);
    for (const key of Object.keys(definition.needs)) {
      const need = definition.needs[key];
      copy.needs[key] =
        itemOfNeed(need) === null ? need : { ...need, from: this.newest(need.from) };
    }
    return copy;
  }

  fill(text, output) {
    const numbered = text.replaceAll('{{n}}', this.round);
    return output === null ? numbered : numbered.replaceAll('{{key}}', () => output);
  }

  fillNeed(need, output) {
    const filled = { ...need, select: { ...need.select } };
    if (!isFromElsewhere(need)) filled.from = this.fill(need.from, output);
    if ('path' in filled.select) filled.select.path = this.fill(filled.select.path, output);
    if (itemOfNeed(filled) !== null) filled.from = this.newest(filled.from);
    return filled;
  }

  applyTemplate(template, output) {
    const item = { ...template.item, id: this.fill(template.item.id, output) };
    const before = 'replaces' in item ? 'replaces' : 'continues';
    if (before in item) {
      item[before] = this.newest(item[before]);
      const named = this.replay.items.get(item[before]);
      if (before === 'replaces' && named && !named.hasEnded) this.isWaiting = true;
    }
    const listed = item.depends_on ?? [];
    this.countLinks(listed.length);
    item.depends_on = listed.map((each) => this.newest(this.fill(each, output)));
    item.needs = this.needsOf(template, output);
    item.inputs = this.inputsOf(template, output);
    this.add(item);
    if (before in item) this.succeed(item[before], item.id);
  }

  needsOf(template, output) {
    const needs = Object.create(null);
    const add = (key, need) => {
      if (key in needs) throw new NameClash();
      needs[key] = need;
    };
    const { optional = [], each } = template;
    for (const key of Object.keys(template.item.needs ?? {})) {
      this.countLinks(1);
      const need = this.fillNeed(template.item.needs[key], output);
      if (!optional.includes(key) || this.hasProduct(need)) add(this.fill(key, output), need);
    }
    for (const own of each ? this.outputsOf(each.outputsOf) : []) {
      this.countLinks(1);
      const need = this.fillNeed({ from: each.from, select: each.select }, own);
      if (!each.survivors || this.hasProduct(need)) add(this.fill(each.key, own), need);
    }
    return needs;
  }

  inputsOf(template, output) {
    const inputs = Object.assign(Object.create(null), template.item.inputs);
    for (const key of Object.keys(inputs)) {
      if (output !== null && inputs[key] === '{{key}}') inputs[key] = output;
    }
    for (const [key, id] of Object.entries(template.reasons ?? {})) {
      const item = this.replay.items.get(this.newest(id));
      if (item?.status === 'failed' && item.reason !== null) inputs[key] = item.reason;
    }
    return inputs;
  }
}

/** Returns the id of the copy of an item: `a` becomes `a~2`, and `a~2` becomes `a~3`. */
function nameOfCopy(id) {
  const match = /^(.*)~([0-9]+)$/s.exec(id);
  const number = match ? BigInt(match[2]) : null;
  if (number === null || number >= 2n ** 64n) return `${id}~2`;
  if (number === 2n ** 64n - 1n) throw new NameClash();
  return `${match[1]}~${number + 1n}`;
}
