// The facts that a page shows of a run.

import { tryJson } from '../json.mjs';
import { isString } from '../values.mjs';
import { outcomeWords, textOfOutcome } from '../replay/outcome.mjs';
import {
  checkPlaceWord,
  cutTo,
  durationWord,
  entriesInOrder,
  factsOf,
  isEntryRed,
  listWord,
  plainWord,
  protectionWord,
  rolesWord,
} from './words.mjs';
import { productFacts } from './contents.mjs';
import { timelineLimits, Timing } from './timing.mjs';
import { colorsOf, markOf, statusRanks } from './marks.mjs';
import { endFacts, manifestFacts, stepFacts } from './item-facts.mjs';

const mostDetailed = 2000;
const longestLabel = 22;

function commonPrefix([first = '', ...others]) {
  let prefix = [...first];
  for (const other of others.map((text) => [...text])) {
    const end = prefix.findIndex((character, i) => character !== other[i]);
    if (end >= 0) prefix = prefix.slice(0, end);
  }
  return prefix.join('');
}

/** Returns the digests of bytes by their names. */
const digestsOf = (named) =>
  Object.fromEntries(Object.entries(named).map(([name, { sha256 }]) => [name, sha256]));

/** The facts that a page shows of one run. All follow from the evidence. */
export class RunFacts {
  constructor(store, report, number) {
    this.store = store;
    this.report = report;
    this.number = number;
    this.replay = report.replay;
    this.ids = [...this.replay.items.keys()];
    this.positions = new Map(this.ids.map((id, i) => [id, i]));
    this.timing = new Timing(report);
    this.planned = new Map(this.replay.plan.items.map((item) => [item.id, item]));
  }

  facts(picture) {
    const decisions = this.linksOf((kind) => kind === 'item.decided');
    const documents = this.documents();
    const sources = this.sources();
    const artifacts = this.artifacts();
    return {
      anchor: `r${this.number}`,
      run: this.report.run,
      outcome: textOfOutcome(this.report.outcome, [...outcomeWords, 'superseded', 'claimed']),
      facts: this.runFacts(),
      graph: this.graph(picture),
      timeline: this.timeline(),
      items: this.items(),
      hasDocuments: documents.length > 0,
      documents,
      hasDecisions: decisions.length > 0,
      decisions,
      hasSources: sources.length > 0,
      sources,
      hasArtifacts: artifacts.length > 0,
      artifacts,
      events: this.linksOf((kind) => kind.startsWith('run.')),
    };
  }

  anchorOf(id) {
    return `r${this.number}i${this.positions.get(id)}`;
  }

  dependencies(id) {
    return this.replay.dependencies(id).filter((each) => this.positions.has(each));
  }

  status(id) {
    const item = this.replay.items.get(id);
    if (this.replay.superseded.has(id)) return 'superseded';
    if (item.status === 'done' && this.replay.isRed(item)) return 'done, red';
    if (item.status === 'done' && item.definition.executor === 'claimed') return 'done, claimed';
    return item.status ?? 'pending';
  }

  linksOf(isWanted) {
    return this.report.links
      .filter(({ entry }) => isWanted(entry.kind))
      .map((link) => ({ ...stepFacts(link), item: link.entry.item ?? null }));
  }

  runFacts() {
    const { links } = this.report;
    const first = links[0].entry;
    const last = links.at(-1);
    const { closing } = this.replay;
    return factsOf([
      ['Entries', links.length],
      ['Root', last.entry.root],
      ['Last commit', last.commit],
      ['Submitted at', first.at],
      ['Submitted by', first.actor],
      ['Plan', first.plan.sha256],
      ['Base', first.base],
      ['Queue', first.queue],
      ['Pattern', first.pattern],
      ['Rules of the queue', first.rules?.sha256],
      ['Roles of keys', rolesWord(first.roles)],
      ['Pipelines', first.pipelines && digestsOf(first.pipelines)],
      ['Object format', this.store.format],
      ['Program', first.tool],
      ['Closed early', closing?.kind === 'run.closed' ? closing.reason : ''],
      ['Cancelled', closing?.kind === 'run.cancelled' ? closing.reason : ''],
    ]);
  }

  /** Every revision of every document, in the order of the entries. */
  documents() {
    const numbers = new Map();
    const rows = [];
    const add = (name, product, author, at) => {
      numbers.set(name, (numbers.get(name) ?? 0) + 1);
      rows.push({
        ...productFacts(this.store, name, product),
        revision: numbers.get(name),
        at,
        author,
      });
    };
    for (const { entry } of this.report.links) {
      if (entry.kind === 'document.written') add(entry.name, entry, entry.author ?? entry.actor, entry.at);
      for (const [key, product] of entriesInOrder(entry.products)) {
        if (key.startsWith('documents/'))
          add(key.slice(10), product, plainWord(entry.item), entry.at);
      }
    }
    return rows;
  }

  sources() {
    const { imports, continues } = this.report.links[0].entry;
    const rows = entriesInOrder(imports).map(([name, { product, evidence }]) => ({
      name,
      sha256: product.sha256,
      evidence: evidence.sha256,
    }));
    if (continues) {
      const { run, root, evidence } = continues;
      rows.push({ name: `${run}, continued`, sha256: root, evidence: evidence.sha256 });
    }
    return rows;
  }

  /** The files that were sealed with the plan. */
  artifacts() {
    const { artifacts } = this.report.links[0].entry;
    return entriesInOrder(artifacts).map(([name, named]) => productFacts(this.store, name, named));
  }

  items() {
    const byItem = new Map(this.ids.map((id) => [id, []]));
    for (const link of this.report.links) byItem.get(link.entry.item)?.push(link);
    const items = this.ids.map((id) => this.item(id, byItem.get(id)));
    if (items.length > 0) items[0].isFirst = true;
    return items;
  }

  item(id, links) {
    const entries = links.map((link) => link.entry);
    const fired = entries.findLast(({ kind }) => kind === 'item.fired');
    const ended = entries.findLast(({ kind }) => kind === 'item.reconciled');
    const status = this.status(id);
    const shown = {
      anchor: this.anchorOf(id),
      id,
      status,
      mark: markOf(status),
      attempts: this.replay.items.get(id).attemptCount,
      took: this.timing.took(id),
      products: Object.keys(ended?.products ?? {}).length,
    };
    if ((status === 'done' || status === 'done, claimed') && this.ids.length > mostDetailed) return shown;
    shown.details = {
      facts: this.itemFacts(id, fired, ended),
      inputs: entriesInOrder(fired?.inputRefs).map(([key, input]) => ({
        key,
        from: plainWord(input.from),
        product: plainWord(input.select),
        sha256: input.ref,
      })),
      contents: entriesInOrder(ended?.products).map(([name, product]) =>
        productFacts(this.store, name, product),
      ),
      protected: ended?.protected ?? null,
      entries: links.map(stepFacts),
    };
    return shown;
  }

  /** Reads JSON that an entry names. */
  readNamed(named) {
    const bytes = named ? this.store.readBlob(named.oid) : null;
    return bytes === null ? undefined : tryJson(bytes);
  }

  /** Returns the names of the definition of an item that an entry added. */
  added(id) {
    const adding = this.report.links.find(({ entry }) => entry.items && id in entry.items);
    return adding?.entry.items[id];
  }

  itemFacts(id, fired, ended) {
    const definition = this.planned.get(id) ?? this.readNamed(this.added(id));
    const manifest = this.readNamed(fired?.manifest);
    const executor = plainWord(definition?.executor);
    const { subagent } = manifest ?? {};
    return factsOf([
      ['Goal', definition?.inputs?.goal],
      ['Executor', isString(subagent) ? `${executor} (${subagent})` : executor],
      ['Inputs in the plan', definition?.inputs],
      ['After', this.dependencies(id).join(', ')],
      ['Locks', listWord(definition?.resourceLocks)],
      ...manifestFacts(manifest ?? {}),
      ['Manifest', fired?.manifest.sha256],
      ...(ended ? endFacts(ended) : []),
      ['Protection', ended ? protectionWord(ended) : ''],
      ['Check ran', ended ? checkPlaceWord(manifest, ended) : ''],
      ['Protected changes approved by', this.approverOf(id)],
    ]);
  }

  /** Returns the key that approved the item's changes to protected files, or an empty text. */
  approverOf(id) {
    const item = this.replay.items.get(id);
    if (!item.end || item.end.kind !== 'item.reconciled' || !isEntryRed(item.end)) return '';
    if (item.end.verify?.passed === false) return '';
    const approvals = [...this.replay.items.values()].filter(
      ({ end, id: own }) =>
        end?.kind === 'item.decided' &&
        end.decision === 'approved' &&
        this.dependencies(own).includes(id),
    );
    approvals.sort((a, b) => a.end.seq - b.end.seq);
    return approvals[0]?.end.by ?? '';
  }

  graph({ boxes, edges, width, height }) {
    return {
      width,
      height,
      boxes: boxes.map((box, number) => this.box(box, number)),
      edges: edges.map(([from, to, bend]) => pathOfEdge(boxes[from], boxes[to], bend)),
    };
  }

  box([x, y, width, height, members], number) {
    const ids = members.map((at) => this.ids[at]);
    const counts = new Map();
    for (const id of ids) counts.set(this.status(id), (counts.get(this.status(id)) ?? 0) + 1);
    const rank = (status) =>
      statusRanks.includes(status) ? statusRanks.indexOf(status) : statusRanks.length;
    const statuses = [...counts.keys()].sort((a, b) => rank(a) - rank(b));
    const worst = statuses[0] ?? 'pending';
    const words = statuses.map((status) => `${counts.get(status)} ${status}`).join(', ');
    const prefix = commonPrefix(ids);
    const isOne = ids.length === 1;
    const shown = cutTo(isOne ? ids[0] : `${prefix}… ${ids.length}`, longestLabel);
    const [fillColor, stroke] = colorsOf(worst);
    const anchor = isOne ? this.anchorOf(ids[0]) : `r${this.number}g${number}`;
    const member = (id) => ({ anchor: this.anchorOf(id), id, mark: markOf(this.status(id)) });
    return {
      x,
      y,
      width,
      height,
      textX: x + 10,
      textY: y + Math.floor(height / 2) + 5,
      label: `${markOf(worst)} ${shown}`,
      name: isOne ? ids[0] : `${prefix}…`,
      title: isOne ? worst : words,
      anchor,
      fill: fillColor,
      stroke,
      lineWidth: isOne ? 1 : 3,
      group: isOne ? null : { anchor, members: ids.map(member) },
    };
  }

  timeline() {
    const { timing } = this;
    const { rows: most, left, width, row, top, names } = timelineLimits;
    const critical = timing.critical((id) => this.dependencies(id));
    const ran = this.ids.filter((id) => timing.items.get(id).attempts.length > 0);
    if (ran.length === 0) return null;
    const rows = ran
      .slice(0, most)
      .map((id, i) => this.timelineRow(id, top + i * row, critical.has(id)));
    return {
      width: left + width + 20,
      height: top + rows.length * row + 8,
      took: durationWord(timing.end - timing.begin),
      left,
      right: left + width,
      rows,
      more: Math.max(ran.length - most, 0),
      isMore: ran.length > most,
      critical: cutTo([...critical].join(', '), names),
    };
  }

  timelineRow(id, y, isCritical) {
    const { timing } = this;
    const { since, attempts } = timing.items.get(id);
    const ends = this.dependencies(id)
      .map((each) => timing.endOf(each))
      .filter((end) => end !== null);
    const ready = ends.reduce((latest, end) => Math.max(latest, end), since);
    const [from, to] = [timing.x(ready), timing.x(attempts[0]?.begin ?? ready)];
    return {
      label: cutTo(id, longestLabel),
      anchor: this.anchorOf(id),
      y,
      textY: y + 13,
      waitX: from,
      waitY: y + 7,
      waitWidth: Math.max(to - from, 0),
      bars: attempts.map((attempt) => this.timelineBar(id, attempt, y)),
      weight: isCritical ? 'bold' : 'normal',
    };
  }

  timelineBar(id, { number, actor, begin, end: ended, isFailed }, y) {
    const end = ended ?? this.timing.end;
    const [from, to] = [this.timing.x(begin), this.timing.x(end)];
    const status = ended === null ? 'running' : isFailed ? 'failed' : this.status(id);
    const took = durationWord(Math.max(end - begin, 0));
    const [fillColor, stroke] = colorsOf(status);
    return {
      x: from,
      y: y + 3,
      width: Math.max(to - from, 2),
      mark: markOf(status),
      name: id,
      title: `attempt ${number}, ${took}`,
      actor,
      fill: fillColor,
      stroke,
    };
  }
}

/** The path of an edge from the right side of a box to the left side of another. */
function pathOfEdge(from, to, bend) {
  const between = bend ? ` L${bend[0]} ${bend[1]}` : '';
  const start = `M${from[0] + from[2]} ${from[1] + Math.floor(from[3] / 2)}`;
  return `${start}${between} L${to[0]} ${to[1] + Math.floor(to[3] / 2)}`;
}
