// The state of a run after each of its entries (section 6).

import { sortNames } from '../bytes.mjs';
import { haveClash } from '../names.mjs';
import { readSchema, satisfiesSchema } from '../schemas.mjs';
import { changesProtected } from '../entries/subject.mjs';
import {
  importName,
  isFromElsewhere,
  itemOfNeed,
  normaliseItem,
  productOf,
  sourceOf,
} from '../plan/items.mjs';
import { itemsInRules } from '../plan/plan.mjs';
import { rolesOfEntryZero } from '../chain/roles.mjs';
import { documentNamesOf, ItemState } from './item.mjs';
import { UnreadableDocument } from './rules.mjs';
import { areBlocksLegal } from './blocks.mjs';
import { itemTransitions } from './item-transitions.mjs';
import { runTransitions } from './run-transitions.mjs';

/**
 * The state of a run after each of its entries. `apply` judges one entry, and changes the state
 * only if the entry is a legal transition.
 */
export class Replay {
  constructor(plan, addedRules, entryZero, readDocument) {
    this.plan = plan;
    this.entryZero = entryZero;
    this.readDocument = readDocument;
    this.rules = [...(plan.rules ?? []), ...addedRules];
    this.rulesById = new Map(this.rules.map((rule) => [rule.id, rule]));
    this.items = new Map();
    for (const item of plan.items)
      this.items.set(item.id, new ItemState(normaliseItem(item), 'plan'));
    /** Document name to its revisions, oldest first. */
    this.documents = new Map();
    /** The names of the pipelines so far. */
    this.pipelines = new Set(Object.keys(entryZero.pipelines ?? {}));
    /** Name to the pipeline, or to null if that cannot be used. */
    this.usablePipelines = new Map();
    /** Rule id to the number of its `run.extended`. */
    this.rounds = new Map();
    /** Rule id to the items that it created. */
    this.createdItems = new Map();
    /** The entries `run.concluded`: {rule, outcome, detail}. */
    this.conclusions = [];
    /** The further conclusions of an early end: {rule, outcome}. */
    this.earlyConclusions = [];
    /** Item to its successor. */
    this.successors = new Map();
    this.superseded = new Set();
    this.isClosed = false;
    /** The rules that had stopped at the latest `run.sealed`, legal or not. */
    this.stoppedAtSeal = null;
    /** The entry `run.closed` or `run.cancelled`. */
    this.closing = null;
    /** Statements that an earlier legal entry recorded. */
    this.recordedStatements = new Set();
    /** The roles of each key by entry 0 and the legal entries since. */
    this.roles = rolesOfEntryZero(entryZero);
    this.isShared = false;
    /** The items that run. */
    this.running = new Set();
    const orders = this.rules.map((rule) => rule.order ?? {});
    for (const [id, item] of this.items) {
      const ordered = orders.flatMap((order) => (Object.hasOwn(order, id) ? order[id] : []));
      const all = new Set([...item.dependencies, ...ordered]);
      item.dependencies = [...all].filter((each) => this.items.has(each));
    }
    this.declaredDocuments = new Set(
      [
        ...[...this.items.values()].map((item) => item.definition),
        ...itemsInRules(this.rules),
      ].flatMap(documentNamesOf),
    );
  }

  // -- items --

  newest(id, created = new Map()) {
    for (;;) {
      const successor = created.get(id) ?? this.successors.get(id);
      if (successor === undefined) return id;
      id = successor;
    }
  }

  dependencies(id) {
    return this.items.get(id).dependencies;
  }

  /** Returns the `gate` of the rule that makes the item a gate, or null. */
  gateOf(id) {
    for (;;) {
      const item = this.items.get(id);
      if (!item || item.origin === 'actor') return null;
      const gate = this.rules.findLast((rule) => rule.gate?.item === id)?.gate;
      if (gate) return gate;
      if (!('replaces' in item.definition)) return null;
      id = item.definition.replaces;
    }
  }

  isVote(id) {
    return this.gateOf(id)?.votes === true;
  }

  /** Returns true if a person approved an item's changes to protected files. */
  areChangesApproved(id) {
    return [...this.items.values()].some(
      (item) =>
        item.definition.executor === 'approval' &&
        item.end?.kind === 'item.decided' &&
        item.end.decision === 'approved' &&
        this.dependencies(item.id).includes(id),
    );
  }

  isRed(item) {
    const { end } = item;
    if (item.status !== 'done' || !end) return false;
    if (end.kind === 'item.decided') return end.decision === 'rejected';
    if (end.verify?.passed === false) return true;
    return changesProtected(end) && !this.areChangesApproved(item.id);
  }

  /** Returns true if the item counts as done and good, with a red vote. */
  isGood(item) {
    return item.status === 'done' && (!this.isRed(item) || this.isVote(item.id));
  }

  isLost(id, dependency) {
    const item = this.items.get(dependency);
    if (!item) return false;
    if (['failed', 'skipped', 'cancelled'].includes(item.status)) return true;
    if (!this.isRed(item) || !this.gateOf(dependency)?.blocks) return false;
    return !Object.values(this.items.get(id).definition.needs).some(
      (need) => itemOfNeed(need) === dependency && need.select.kind === 'output',
    );
  }

  isMet(id, dependency) {
    return this.items.get(dependency)?.status === 'done' && !this.isLost(id, dependency);
  }

  areAllMet(id) {
    return this.dependencies(id).every((dependency) => this.isMet(id, dependency));
  }

  get isSettled() {
    return [...this.items.values()].every((item) => item.hasEnded);
  }

  /** Returns the items that count: all but the superseded ones. */
  countingItems() {
    return [...this.items.values()].filter((item) => !this.superseded.has(item.id));
  }

  /** Returns the latest revision of a document, or undefined. */
  latestRevision(name) {
    return this.documents.get(name)?.at(-1);
  }

  /** Returns the digest to which a need is bound now (section 9), or null. */
  bindingOf(need) {
    const { select } = need;
    if (isFromElsewhere(need)) {
      return this.entryZero.imports?.[importName(need)]?.product.sha256 ?? null;
    }
    if (need.from === '@artifacts') {
      return select.kind === 'output' ? (this.entryZero.artifacts[select.path]?.sha256 ?? null) : null;
    }
    if (need.from === '@documents') {
      const revision = select.kind === 'document' ? this.latestRevision(select.name) : undefined;
      if (!revision) return null;
      const fits = !('schema' in select) || satisfiesSchema(revision.schema, select.schema);
      return fits ? revision.sha256 : null;
    }
    const item = this.items.get(need.from);
    const product = item?.status === 'done' ? item.products[productOf(select)] : undefined;
    if (!product) return null;
    if (select.kind === 'document' && 'schema' in select) {
      const declared = item.definition.produces?.find(
        (each) => each.kind === 'document' && each.name === select.name,
      );
      if (!satisfiesSchema(declared?.schema && readSchema(declared.schema), select.schema))
        return null;
    }
    return product.sha256;
  }

  /** Returns the subject of a decision about the item, or null if a part of it is not there. */
  subjectOfDecision(id) {
    const about = Object.create(null);
    for (const dependency of this.dependencies(id)) {
      about[dependency] = Object.create(null);
      const { products } = this.items.get(dependency);
      for (const key of Object.keys(products)) about[dependency][key] = products[key].sha256;
    }
    for (const need of Object.values(this.items.get(id).definition.needs)) {
      if (itemOfNeed(need) !== null) continue;
      const digest = this.bindingOf(need);
      if (digest === null) {
        if (need.from === '@documents' && need.select.kind === 'document') return null;
        continue;
      }
      const source = sourceOf(need);
      about[source] ??= Object.create(null);
      about[source][productOf(need.select)] = digest;
    }
    return about;
  }

  // -- entries --

  /**
   * Judges an entry, and applies it if it is legal. Returns {codes, isLegal, isLeftOut}.
   * `added` is, for `run.extended`, a map from items to their normalised form, or to null if an
   * item cannot be used.
   */
  apply(entry, added) {
    const { kind } = entry;
    this.codes = new Set();
    this.isLeftOut = false;
    const item = this.items.get(entry.item);
    const hasBlocks = ['item.reconciled', 'item.retried', 'item.requeued'].includes(kind);
    // Blocks that do not fit the pipeline are reported whether the entry is legal or not.
    if (item && hasBlocks && !areBlocksLegal(this, item, entry)) this.codes.add('blocks');
    const isLegal =
      Object.hasOwn(transitions, kind) &&
      !('said' in entry && this.recordedStatements.has(entry.said)) &&
      (item !== undefined || !kind.startsWith('item.')) &&
      transitions[kind](this, entry, item ?? added);
    // What a rule should have done is a finding of its own.
    if (!isLegal && !this.codes.has('rule')) this.codes.add('transition');
    if (isLegal && 'said' in entry) this.recordedStatements.add(entry.said);
    if (isLegal && item?.status !== 'running') this.running.delete(entry.item);
    return { codes: this.codes, isLegal, isLeftOut: this.isLeftOut };
  }

  /** Calls a function that reads documents, and notes one that cannot be read. */
  tryRules(read) {
    try {
      return { value: read() };
    } catch (error) {
      if (!(error instanceof UnreadableDocument)) throw error;
      if (error.isLeftOut) this.isLeftOut = true;
      else this.codes.add('rule-document');
      return null;
    }
  }

  /** Returns the items whose patches an item applies, directly or through others. */
  appliedItems(item) {
    const applied = new Set();
    const open = [item];
    while (open.length > 0) {
      for (const need of Object.values(open.pop().definition.needs ?? {})) {
        const producer = need.apply ? this.items.get(need.from) : undefined;
        if (producer === undefined || applied.has(producer)) continue;
        applied.add(producer);
        open.push(producer);
      }
    }
    return [...applied];
  }

  addRevision(name, revision) {
    const revisions = this.documents.get(name) ?? [];
    this.documents.set(name, revisions);
    revisions.push({ ...revision, revision: revisions.length + 1 });
  }

  hasConcluded(rule) {
    return this.conclusions.some((conclusion) => conclusion.rule === rule.id);
  }

  get hasConclusion() {
    return this.conclusions.length > 0 || this.earlyConclusions.length > 0;
  }

  // -- items that are added --

  addItems(items, origin) {
    for (const id of sortNames(items.keys())) {
      const definition = items.get(id);
      const item = new ItemState(definition, origin);
      this.items.set(id, item);
      for (const name of documentNamesOf(definition)) this.declaredDocuments.add(name);
      const before = definition.replaces ?? definition.continues;
      if (before !== undefined) this.successors.set(before, id);
      if ('replaces' in definition) this.superseded.add(definition.replaces);
      if (origin.rule === undefined) continue;
      this.createdItems.set(origin.rule, [...(this.createdItems.get(origin.rule) ?? []), id]);
    }
  }

  doItemsFit(items, byActor) {
    const documents = new Set([...this.declaredDocuments, ...this.documents.keys()]);
    const followed = new Set();
    for (const [id, item] of items) {
      if (this.items.has(id)) return false;
      if (!item.depends_on.every((each) => this.items.has(each) || items.has(each))) return false;
      for (const need of Object.values(item.needs)) {
        if (isFromElsewhere(need) && (byActor || this.bindingOf(need) === null)) return false;
      }
      for (const name of documentNamesOf(item)) documents.add(name);
      const before = item.replaces ?? item.continues;
      if (before === undefined) continue;
      if (byActor || !this.items.has(before) || this.successors.has(before)) return false;
      if (followed.has(before)) return false;
      if ('replaces' in item && !this.items.get(before).hasEnded) return false;
      followed.add(before);
    }
    return !haveClash(documents) && !hasCircle(items);
  }

  roundsOf(rule) {
    return this.rounds.get(rule.id) ?? 0;
  }
}

const transitions = { ...itemTransitions, ...runTransitions };

/** Returns true if one of the items depends on itself through others of them. */
function hasCircle(items) {
  const dependents = new Map([...items.keys()].map((id) => [id, []]));
  const waiting = new Map();
  for (const [id, { depends_on: all }] of items) {
    const own = all.filter((each) => items.has(each));
    waiting.set(id, own.length);
    for (const each of own) dependents.get(each).push(id);
  }
  const free = [...items.keys()].filter((id) => waiting.get(id) === 0);
  for (const each of free) {
    for (const id of dependents.get(each)) {
      waiting.set(id, waiting.get(id) - 1);
      if (waiting.get(id) === 0) free.push(id);
    }
  }
  return free.length < items.size;
}
