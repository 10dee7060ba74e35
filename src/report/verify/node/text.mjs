// What the command prints: reports as text or as JSON.

import { isPartial } from '../findings.mjs';
import { textOfOutcome } from '../replay/outcome.mjs';
import { textOfNotRecomputed } from '../run/plan.mjs';
import { textOfTakeover } from '../run/report.mjs';
import { toLine, toPrintableJson } from '../page/printable.mjs';

const symbols = { ok: '✓', open: '─', fail: '✗' };

export function textOfReport(report) {
  const partial = report.failure === null && isPartial(report.outcome) ? ' PARTIAL' : '';
  const state = report.failure ? 'fail' : report.headline.includes('unknown') ? 'open' : 'ok';
  const name = report.thread ?? report.run;
  const lines = [`${report.kind} ${name}  ${symbols[state]} ${report.headline}${partial}`];
  for (const [row, { state: each, detail }] of Object.entries(report.rows)) {
    lines.push(`${symbols[each]} ${row.padEnd(10)} ${detail}`);
  }
  if (report.outcome) {
    lines.push(
      `${isPartial(report.outcome) ? '✗' : '✓'} outcome    ${textOfOutcome(report.outcome)}`,
    );
  }
  for (const { item, decision, by, signed, onWordOf, roleShown = true } of report.decisions) {
    const unshown = roleShown ? '' : '; that this key may decide is not shown';
    const word = signed ? unshown : `, on the word of ${onWordOf}`;
    const mark = signed && roleShown ? symbols.ok : symbols.open;
    lines.push(`${mark} decided    ${item} ${decision} by ${by}${word}`);
  }
  const takeovers = report.takeovers ?? [];
  if (takeovers.length > 0) {
    lines.push(
      '─ take-over  verify holds holder, key, take-over and taker; ' +
        'that a driver was silent cannot be proven',
    );
  }
  for (const takeover of takeovers) {
    const by = takeover.key ?? 'no valid key';
    lines.push(`─ take-over  ${textOfTakeover(takeover)}, signed by ${by}`);
  }
  if (report.failure === 'required')
    lines.push(
      `✗ required   protected was required: protected files of ` +
        textOfNotRecomputed(report.notRecomputed),
    );
  return lines.map(toLine).join('\n');
}

export function jsonOfReport({ replay, proof, submitted, links, ...shown }) {
  return toPrintableJson({ ...shown, intact: shown.failure === null });
}

export function textOfPage({ verdict, reasons, runs }) {
  const marks = { intact: symbols.ok, partial: symbols.open, tampered: symbols.fail };
  const lines = [
    `page  ${marks[verdict]} ${verdict.toUpperCase()}`,
    ...reasons.map((reason) => `  ${reason}`),
  ];
  return [lines.map(toLine).join('\n'), ...runs.map(textOfReport)].join('\n\n');
}

export function jsonOfPage({ verdict, reasons, runs }) {
  return toPrintableJson({
    kind: 'page',
    verdict,
    reasons,
    runs: runs.map((run) => JSON.parse(jsonOfReport(run))),
  });
}
