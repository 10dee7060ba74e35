// When the items of a run ran.

import { statusOf } from '../entries/subject.mjs';
import { durationWord } from './words.mjs';

export const timelineLimits = { rows: 200, left: 220, width: 640, row: 20, top: 24, names: 2000 };
const millisOf = (time) => Date.parse(time);

/** The times of a run, in milliseconds since 1970. */
export class Timing {
  constructor(report) {
    const entries = report.links.map((link) => link.entry);
    this.begin = millisOf(entries[0].at);
    this.items = new Map();
    for (const id of report.replay.items.keys())
      this.items.set(id, { since: this.begin, attempts: [] });
    for (const entry of entries) this.note(entry);
    const last = millisOf(entries.at(-1).at);
    const ends = [...this.items.values()].flatMap(({ attempts }) =>
      attempts.map(({ end }) => end ?? last),
    );
    // A seal may follow much later, and would squeeze everything else.
    if (ends.length === 0) ends.push(last);
    this.end = ends.reduce((latest, end) => Math.max(latest, end), this.begin);
  }

  note(entry) {
    const at = millisOf(entry.at);
    if (entry.kind === 'run.extended') {
      for (const id of Object.keys(entry.items))
        if (this.items.has(id)) this.items.get(id).since = at;
    }
    const times = entry.kind.startsWith('item.') ? this.items.get(entry.item) : undefined;
    if (!times) return;
    if (entry.kind === 'item.fired') {
      const { attempt: number, actor } = entry;
      times.attempts.push({ number, actor, begin: at, end: null, isFailed: false });
      return;
    }
    const open = times.attempts.at(-1);
    if (!open || open.end !== null) return;
    open.end = at;
    open.isFailed = statusOf(entry) !== 'done';
  }

  took(id) {
    const { attempts } = this.items.get(id);
    if (attempts.length === 0) return '';
    const lengths = attempts.map(({ begin, end }) => Math.max((end ?? this.end) - begin, 0));
    return durationWord(lengths.reduce((sum, length) => sum + length, 0));
  }

  endOf(id) {
    const last = this.items.get(id).attempts.at(-1);
    return last ? (last.end ?? this.end) : null;
  }

  /** The items on which the end of the run depended, in the order of the items. */
  critical(dependenciesOfItem) {
    const latest = (ids) => {
      let best = null;
      for (const id of ids) {
        const end = this.endOf(id);
        if (end !== null && (best === null || end > best.end)) best = { end, id };
      }
      return best?.id;
    };
    const path = new Set();
    for (let next = latest(this.items.keys()); next !== undefined && !path.has(next);) {
      path.add(next);
      next = latest(dependenciesOfItem(next));
    }
    return new Set([...this.items.keys()].filter((id) => path.has(id)));
  }

  x(at) {
    const span = Math.max(this.end - this.begin, 1);
    const clamped = Math.min(Math.max(at, this.begin), this.end);
    return timelineLimits.left + Math.floor(((clamped - this.begin) * timelineLimits.width) / span);
  }
}
