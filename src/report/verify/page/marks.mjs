// The marks, the colours and the order of statuses.

export const statusRanks = [
  'failed',
  'done, red',
  'running',
  'pending',
  'cancelled',
  'skipped',
  'done, claimed',
  'done',
  'superseded',
];
const marks = {
  done: '✓',
  'done, claimed': '✓',
  'done, red': '!',
  failed: '✗',
  running: '▶',
  skipped: '─',
  cancelled: '─',
  superseded: '─',
};
export const markOf = (status) => marks[status] ?? '·';
const statusColors = {
  done: ['#dff3e3', '#1a7f37'],
  'done, claimed': ['#dff3e3', '#1a7f37'],
  'done, red': ['#fff1c2', '#9a6700'],
  failed: ['#ffe1de', '#b3261e'],
  running: ['#dbeafe', '#1d4ed8'],
};
export const colorsOf = (status) => statusColors[status] ?? ['#eeeeee', '#6b6b6b'];
