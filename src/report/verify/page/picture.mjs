// Checks that the picture of a run shows its items and their dependencies.

import { sameSet } from '../json.mjs';
import { hasDistinct } from '../values.mjs';

/** Every box is wide enough for the longest label. `gap` is the largest space between two. */
const boxSize = { width: 200, height: 34, gap: 64, margin: 16 };

export function faultsOfPicture({ boxes, edges, width, height }, report) {
  const faults = [];
  const say = (text) => faults.push(`${report.run}: ${text}`);
  const ids = [...report.replay.items.keys()];
  const boxOf = new Map();
  for (const [number, [x, y, w, h, members]] of boxes.entries()) {
    if (w !== boxSize.width || h !== boxSize.height) say('a box of the graph has another size');
    if (x + w > width || y + h > height) say('a box of the graph is outside the picture');
    for (const at of members) {
      if (at >= ids.length || boxOf.has(at))
        say('an item is in two boxes of the graph, or unknown');
      boxOf.set(at, number);
    }
  }
  if (boxOf.size !== ids.length) say('an item is in no box of the graph');
  const { margin, gap } = boxSize;
  const most = (size) => 2 * margin + boxes.length * (size + gap);
  if (width > most(boxSize.width) || height > most(boxSize.height))
    say('the picture is larger than its boxes');
  const sorted = [...boxes].sort((a, b) => a[0] - b[0]);
  for (const [i, [x, y, w, h]] of sorted.entries()) {
    for (let j = i + 1; j < sorted.length && sorted[j][0] < x + w; j++) {
      const [, otherY, , otherH] = sorted[j];
      if (otherY < y + h && y < otherY + otherH) say('two boxes of the graph overlap');
    }
  }
  const positions = new Map(ids.map((id, i) => [id, i]));
  const expected = new Set();
  for (const id of ids) {
    for (const dependency of report.replay.dependencies(id)) {
      const [from, to] = [boxOf.get(positions.get(dependency)), boxOf.get(positions.get(id))];
      if (from !== undefined && from !== to) expected.add(`${from} ${to}`);
    }
  }
  const drawn = edges.map(([from, to]) => `${from} ${to}`);
  if (!hasDistinct(drawn) || sameSet(drawn) !== sameSet(expected)) {
    say('the edges of the graph are not the dependencies');
  }
  const isOutside = ([, , bend]) => bend !== null && (bend[0] > width || bend[1] > height);
  if (edges.some(isOutside)) say('an edge of the graph is outside the picture');
  return faults;
}
