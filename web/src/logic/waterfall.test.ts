import { describe, expect, it } from 'vitest';
import type { Nanos, RowIndex, SpanIndex } from '../base/brand';
import { treeOf } from '../testing/text-tree';
import { criticalPathOf, piecesOf } from './critical-path';
import { NOTHING_FOLDED, visibleSpans } from './rows';
import {
  childCoverage,
  clampRange,
  fullRange,
  hitWaterfall,
  indentOf,
  operationsInFlight,
  panned,
  ROW_HEIGHT,
  RULER_HEIGHT,
  rangeOfSpan,
  rangeShowing,
  rowsOnScreen,
  ticksOf,
  timeAt,
  topRowMax,
  topRowShowing,
  type WaterfallBox,
  xOf,
  zoomed,
} from './waterfall';

const tree = treeOf(
  `
  deploy         0..100  engine
    build       10..60   builder
      pack      20..50   builder
      hash      40..60   builder
    upload      60..90   cloud
`,
  ['deploy 0..10', 'build 10..20', 'pack 20..50', 'hash 50..60', 'upload 60..90', 'deploy 90..100'],
);
const rows = visibleSpans(tree, NOTHING_FOLDED);
const full = fullRange(tree);
const box: WaterfallBox = { width: 300, height: RULER_HEIGHT + 3 * ROW_HEIGHT, nameWidth: 100 };
const millis = (start: number, end: number) => ({ start: (start * 1e6) as Nanos, end: (end * 1e6) as Nanos });

describe('time and pixels', () => {
  it('go back and forth', () => {
    expect(xOf(box, full, 50e6)).toBe(200);
    expect(timeAt(box, full, 200)).toBe(50e6);
  });

  it('zoom keeps the time under the anchor, and stays inside', () => {
    expect(zoomed(full, full, 0.5, 0.5)).toEqual(millis(25, 75));
    expect(zoomed(full, full, 0.5, 1)).toEqual(millis(50, 100));
    expect(zoomed(millis(0, 50), full, 4, 0)).toEqual(full);
    const closest = zoomed(full, full, 1e-12, 0.5);
    expect(closest.end - closest.start).toBeCloseTo(100, 5);
  });

  it('panning stops at the ends', () => {
    expect(panned(millis(25, 75), full, 0.1)).toEqual(millis(30, 80));
    expect(panned(millis(25, 75), full, 9)).toEqual(millis(50, 100));
    expect(clampRange(millis(-50, 10), full)).toEqual(millis(0, 60));
  });

  it('a span is shown with air around it', () => {
    expect(rangeOfSpan(tree, 2 as SpanIndex, full)).toEqual(millis(18.2, 51.8));
    expect(rangeOfSpan(tree, 0 as SpanIndex, full)).toEqual(full);
  });

  it('ticks are round and inside', () => {
    const { step, times } = ticksOf(millis(13, 87), 300);
    expect(step).toBe(20e6);
    expect(times.map((time) => time / 1e6)).toEqual([20, 40, 60, 80]);
    // A microsecond in 1970, seen from a run of today.
    const start = -(2 ** 60) as Nanos;
    expect(ticksOf({ start, end: (start + 1024) as Nanos }, 300).times.length).toBeLessThan(8);
  });
});

describe('what lies under a point', () => {
  const view = { range: full, topRow: 1 };
  const hit = (x: number, y: number) => hitWaterfall(tree, rows, view, box, x, y);

  it('is the ruler, a fold mark, a name, a place on the axis, or nothing', () => {
    expect(hit(150, 5)).toEqual({ zone: 'ruler' });
    expect(hit(50, 5)).toEqual({ zone: 'nothing' });
    expect(hit(indentOf(1, 100) + 2, RULER_HEIGHT + 3)).toEqual({ zone: 'fold', row: 1, span: 1 });
    expect(hit(90, RULER_HEIGHT + 3)).toEqual({ zone: 'name', row: 1, span: 1 });
    expect(hit(indentOf(2, 100) + 2, RULER_HEIGHT + ROW_HEIGHT + 1)).toEqual({ zone: 'name', row: 2, span: 2 });
    expect(hit(299, RULER_HEIGHT + 2 * ROW_HEIGHT)).toEqual({ zone: 'timeline', row: 3, span: 3 });
    expect(hit(300, 40)).toEqual({ zone: 'nothing' });
    expect(hit(150, box.height)).toEqual({ zone: 'nothing' });
  });

  it('below the last row there is nothing', () => {
    expect(hitWaterfall(tree, rows, { range: full, topRow: 4 }, box, 150, RULER_HEIGHT + ROW_HEIGHT + 1)).toEqual({ zone: 'nothing' });
  });
});

describe('scrolling', () => {
  it('knows the rows on the screen, also those cut', () => {
    expect(rowsOnScreen({ range: full, topRow: 0 }, box, 5)).toEqual([0, 3]);
    expect(rowsOnScreen({ range: full, topRow: 0.5 }, box, 5)).toEqual([0, 4]);
    expect(rowsOnScreen({ range: full, topRow: 0 }, box, 1)).toEqual([0, 1]);
    expect(topRowMax(box, 5)).toBe(2);
    expect(topRowMax(box, 1)).toBe(0);
  });

  it('shows a row with the least movement', () => {
    const show = (topRow: number, row: number) => topRowShowing({ range: full, topRow }, box, 100, row as RowIndex);
    expect(show(10, 11)).toBe(10);
    expect(show(10, 13)).toBe(12);
    expect(show(10, 5)).toBe(4);
    expect(show(10, 0)).toBe(0);
    expect(show(10, 99)).toBe(97);
  });
});

describe('what children cover', () => {
  const covered = (span: number, range = full, width = 10) => {
    const coverage = new Int32Array(width + 1);
    childCoverage(tree, span as SpanIndex, range, coverage);
    return [...coverage.subarray(0, width)].join('');
  };

  it('is counted pixel by pixel, by direct children only', () => {
    expect(covered(0)).toBe('0111111110');
    expect(covered(1)).toBe('0011210000');
    expect(covered(2)).toBe('0000000000');
  });

  it('is cut at the edges of the range', () => {
    expect(covered(0, millis(50, 70))).toBe('1111111111');
    expect(covered(0, millis(80, 100))).toBe('1111100000');
  });
});

describe('operations in flight', () => {
  it('are those without children, weighed by the part of a slice they take', () => {
    expect([...operationsInFlight(tree, full, 10)]).toEqual([0, 0, 1, 1, 2, 1, 1, 1, 1, 0]);
    expect([...operationsInFlight(tree, full, 4)].map((value) => value.toFixed(2))).toEqual(['0.20', '1.40', '1.00', '0.60']);
  });

  it('keep their sum at any width', () => {
    for (const width of [1, 3, 7, 100]) {
      const sum = operationsInFlight(tree, full, width).reduce((total, value) => total + value / width, 0);
      expect(sum).toBeCloseTo(0.8, 9);
    }
  });
});

describe('the critical path', () => {
  const path = criticalPathOf(tree);
  const pieces = (span: number, withDescendants: boolean) => {
    const [from, to] = piecesOf(path, tree, span as SpanIndex, withDescendants);
    return Array.from(
      { length: to - from },
      (_, slot) => `${(path.start[from + slot] ?? 0) / 1e6}..${(path.end[from + slot] ?? 0) / 1e6}`,
    ).join(' ');
  };

  it('has the pieces of a span, or of a folded one with all below, in one slice', () => {
    expect(pieces(0, false)).toBe('0..10 90..100');
    expect(pieces(1, false)).toBe('10..20');
    expect(pieces(1, true)).toBe('10..20 20..50 50..60');
    expect(pieces(4, false)).toBe('60..90');
  });

  it('knows where each piece goes on', () => {
    expect([...path.next]).toEqual([1, -1, 2, 3, 4, 0]);
  });
});

describe('a range that shows a span', () => {
  const full = fullRange(tree);
  const length = 2e6;
  const range = (start: number) => ({ start: start as Nanos, end: (start + length) as Nanos });
  it('stays if some of the span is in it, and moves to its middle if not', () => {
    const start = tree.spans.startNanos[2] ?? 0;
    const end = start + (tree.spans.durationNanos[2] ?? 0);
    expect(rangeShowing(tree, 2 as SpanIndex, range(start + 1e6), full)).toBeNull();
    const moved = rangeShowing(tree, 2 as SpanIndex, range(end + 5e6), full);
    expect(moved === null ? 0 : moved.end - moved.start).toBe(length);
    expect(moved !== null && moved.start <= start && moved.end > start).toBe(true);
  });
});
