// The state of one item in a replay.

import { sortNames } from '../bytes.mjs';

const endedStates = ['done', 'failed', 'skipped', 'cancelled'];

/** An item, its state after the latest legal entry, and what its entries recorded about it. */
export class ItemState {
  constructor(definition, origin) {
    this.id = definition.id;
    this.definition = definition;
    /** `plan`, `actor`, or {rule}. */
    this.origin = origin;
    /** null while it waits, otherwise `running`, `done`, `failed`, `skipped` or `cancelled`. */
    this.status = null;
    this.attemptCount = 0;
    /** The attempts that `maxAttempts` limits. */
    this.limitedAttempts = 0;
    this.reason = null;
    this.products = Object.create(null);
    this.blocks = null;
    /** The driver that holds the running attempt, or null. */
    this.holder = null;
    /** The `item.reconciled` or `item.decided` that ended it, while it is the latest end. */
    this.end = null;
    /** The items that it depends on, without those that the plan does not have. */
    this.dependencies = definition.depends_on;
    /** The patches that give the latest attempt the reference state of its protected files. */
    this.referencePatches = [];
  }

  get hasEnded() {
    return endedStates.includes(this.status);
  }

  get outputs() {
    return sortNames(
      Object.keys(this.products)
        .filter((key) => key.startsWith('outputs/'))
        .map((key) => key.slice(8)),
    );
  }

  settle(status, reason, end = null) {
    this.status = status;
    this.holder = null;
    this.reason = reason ?? null;
    this.products = (status === 'done' && end?.products) || Object.create(null);
    this.end = end;
    this.blocks = end?.blocks ?? null;
  }
}

export const documentNamesOf = (item) =>
  (item.produces ?? []).filter((declared) => declared.kind === 'document').map((d) => d.name);
