import { describe, expect, it } from 'vitest';
import { decodeTree, SPAN_FLAG } from '../api/checks';
import type { Tree } from '../api/types.gen';
import { deployRecording, loadRecording } from '../testing/recordings.mjs';
import { treeOf } from '../testing/text-tree';
import { foundSpans, readFind } from './find';
import { searchOf } from './operation-search';
import {
  clickedOrder,
  coverageInWords,
  drawnOperation,
  isAscendingOrder,
  keptOperations,
  mainOperation,
  missingQuantileInWords,
  operationsOf,
  orderOf,
  quantileOf,
  readOperationOrder,
  sortedOperations,
  tailOf,
} from './operations';

const ascending = (count: number): Float64Array => Float64Array.from({ length: count }, (_, index) => index + 1);

describe('a quantile', () => {
  it('is the shortest duration that its share of all does not exceed', () => {
    expect([50, 95, 99].map((percent) => quantileOf(ascending(200), percent))).toEqual([100, 190, 198]);
    expect(quantileOf(ascending(3), 50)).toBe(2);
    expect(quantileOf(ascending(1), 50)).toBe(1);
    expect(quantileOf(ascending(0), 50)).toBeNull();
  });
  it('is missing where it would be the longest span', () => {
    expect([19, 20].map((count) => quantileOf(ascending(count), 95))).toEqual([null, 19]);
    expect([99, 100].map((count) => quantileOf(ascending(count), 99))).toEqual([null, 99]);
  });
});

// `a` and `c` call `b`, which calls itself.
const tree = treeOf(
  `
  run         0..100  run
    a         0..40   shop
      b       5..35   cart
        b    10..30   cart
    c        50..90   shop
      b      60..80   mail
  `,
  ['run 0..60', 'b 60..100'],
);
const rows = (grouping: 'operation' | 'name' | 'service') =>
  operationsOf(tree, grouping).rows.map(({ name, service, count, totalNanos }) => [name, service, count, totalNanos / 1e6]);

describe('operations', () => {
  it('have what spans have in common, and count time inside themselves once', () => {
    expect(rows('operation')).toEqual([
      ['run', 'run', 1, 100],
      ['a', 'shop', 1, 40],
      ['b', 'cart', 2, 30],
      ['c', 'shop', 1, 40],
      ['b', 'mail', 1, 20],
    ]);
    expect(rows('name')).toEqual([
      ['run', null, 1, 100],
      ['a', null, 1, 40],
      ['b', null, 3, 50],
      ['c', null, 1, 40],
    ]);
    expect(rows('service')).toEqual([
      [null, 'run', 1, 100],
      [null, 'shop', 2, 80],
      [null, 'cart', 2, 30],
      [null, 'mail', 1, 20],
    ]);
  });

  it('are found by their search, however their names are written', () => {
    const deploy = decodeTree(deployRecording().tree());
    for (const operation of operationsOf(deploy, 'operation').rows) {
      expect(foundSpans(deploy, readFind(searchOf(operation))).length).toBe(operation.count);
    }
    const odd: Tree = { ...tree, names: ['run', 'SELECT "id"', `x "${'long '.repeat(60)}`, ''] };
    for (const operation of operationsOf(odd, 'name').rows) {
      expect(searchOf(operation).length).toBeLessThan(200);
      expect(foundSpans(odd, readFind(searchOf(operation))).length).toBe(operation.count);
    }
  });

  it('omit processes if there are spans, and durations of spans that end before they start', () => {
    const flags = tree.spans.flags.slice();
    flags[0] = SPAN_FLAG.process;
    flags[3] = SPAN_FLAG.clamped | SPAN_FLAG.error;
    const { rows: some, ...all } = operationsOf({ ...tree, spans: { ...tree.spans, flags } }, 'name');
    expect(some.map(({ name, count, errors, durations }) => [name, count, errors, durations.length])).toEqual([
      ['a', 1, 0, 1],
      ['b', 3, 1, 2],
      ['c', 1, 0, 1],
    ]);
    expect(coverageInWords({ rows: some, ...all }, [{ code: 'spans_unfinished', title: '', count: 2, detail: '' }])).toEqual([
      '5\u00a0spans in 3\u00a0rows',
      'durations omit 1\u00a0span whose end is before the start',
      '2\u00a0spans without an end count up to the last known time',
    ]);
  });

  it('are processes if there are no spans', () => {
    const flags = tree.spans.flags.map(() => SPAN_FLAG.process);
    const processes = operationsOf({ ...tree, spans: { ...tree.spans, flags } }, 'name');
    expect(coverageInWords(processes, [])).toEqual(['6\u00a0processes in 4\u00a0rows']);
  });

  it('are made once for a tree', () => {
    expect(keptOperations(tree, 'name')).toBe(keptOperations(tree, 'name'));
  });
});

describe('the order of the table', () => {
  it('is by total time, the most first, and turns round with a second click', () => {
    expect(orderOf(undefined)).toEqual({ sort: 'total', isReversed: false });
    expect(clickedOrder('total', orderOf(undefined))).toBe('-total');
    expect(clickedOrder('p99', orderOf('-total'))).toBe('p99');
    expect([orderOf('p99'), orderOf('name')].map(isAscendingOrder)).toEqual([false, true]);
    expect([readOperationOrder('-max'), readOperationOrder('mean')]).toEqual(['-max', null]);
  });
  it('has rows without the number last in both directions', () => {
    const some = operationsOf(tree, 'name').rows.map((row, index) => (index === 1 ? row : { ...row, p99Nanos: row.maxNanos }));
    for (const order of ['p99', '-p99'] as const) expect(sortedOperations(some, orderOf(order)).at(-1)?.name).toBe('a');
    expect(sortedOperations(some, orderOf('-p99'))[0]?.name).toBe('b');
    expect(sortedOperations(some, orderOf('-name')).map(({ name }) => name)).toEqual(['run', 'c', 'b', 'a']);
  });
});

describe('a file of many traces', () => {
  const load = decodeTree(loadRecording().tree());
  it('has a main operation: the one with the most time among those that traces begin with', () => {
    const main = mainOperation(load);
    expect(main?.name).toBe('POST /checkout');
    expect(main === null ? null : tailOf(main)).toEqual({ label: 'p99', nanos: main?.p99Nanos });
  });
  it('draws the durations of the first row with enough spans, or of the chosen one', () => {
    const all = sortedOperations(operationsOf(load, 'operation').rows, orderOf('-count'));
    expect(drawnOperation(all, undefined)).toBe(all[0]);
    expect(drawnOperation(all, all[2]?.key)).toBe(all[2]);
    expect(drawnOperation(operationsOf(tree, 'name').rows, undefined)).toBeUndefined();
  });
  it('says why a quantile is missing', () => {
    const [first] = operationsOf(tree, 'name').rows;
    if (first !== undefined) {
      expect(missingQuantileInWords(first, 99)).toBe('1 span is too few: the p99 would be the longest duration. It needs 100 spans.');
    }
  });
});
