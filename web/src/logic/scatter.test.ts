import { describe, expect, it } from 'vitest';
import type { TraceRow } from '../api/types.gen';
import type { Micros, Nanos } from '../base/brand';
import {
  boxOfRectangle,
  type Drag,
  dotAt,
  dotsOf,
  durationsInWords,
  durationTicks,
  extentOf,
  formatClock,
  MARGIN,
  type PlotSize,
  rectangleOf,
  scatterOf,
  startsInWords,
  timeTicks,
  xOf,
  yOf,
} from './scatter';
import { searchOfBox, type TracesBox } from './traces-search';

const NO_BOX: TracesBox = { start: null, end: null, min: null, max: null };
/** 1000 by 200 pixels for the dots. */
const SIZE: PlotSize = { width: MARGIN.left + 1000 + MARGIN.right, height: MARGIN.top + 200 + MARGIN.bottom };
const NOON = Date.UTC(2026, 10, 28, 12) * 1000;

const trace = (seconds: number, wallNanos: number, spans = 1, errors = 0) =>
  ({
    traceId: `${seconds}`,
    startUnixNano: BigInt(NOON + seconds * 1e6) * 1000n,
    wallNanos: wallNanos as Nanos,
    spans,
    errors,
  }) as TraceRow;
const plotOf = (...walls: readonly number[]) =>
  scatterOf(
    walls.map((wall, second) => trace(second, wall)),
    NO_BOX,
  );
const box = (part: { start?: number; end?: number; min?: number; max?: number }) => ({ ...NO_BOX, ...part }) as TracesBox;

describe('the axes of the plot', () => {
  it('have a log scale if the durations differ by more than 20 times', () => {
    expect(plotOf(10e6, 200e6).isLog).toBe(false);
    expect(plotOf(10e6, 201e6).isLog).toBe(true);
  });

  it('show a rectangle from edge to edge, and choose its scale anew', () => {
    const plot = scatterOf([trace(0, 2e6), trace(1, 900e6)], box({ start: NOON, end: NOON + 5e6, min: 100e6, max: 400e6 }));
    expect(plot).toEqual({ from: NOON, to: NOON + 5e6, low: 100e6, high: 400e6, isLog: false });
  });

  it('have room for a single trace, and for one without a duration', () => {
    for (const plot of [plotOf(5e6), plotOf(0), scatterOf([], NO_BOX)]) {
      expect(plot.to - plot.from).toBeGreaterThanOrEqual(1e6);
      expect(plot.high).toBeGreaterThan(plot.low);
    }
    const plot = plotOf(0, 5e6);
    expect(yOf(plot, SIZE, 0)).toBe(MARGIN.top + 200);
  });

  it('grow to the right and upwards', () => {
    const plot = plotOf(1e6, 1e9);
    expect(xOf(plot, SIZE, plot.from)).toBe(MARGIN.left);
    expect(xOf(plot, SIZE, plot.to)).toBe(MARGIN.left + 1000);
    expect(yOf(plot, SIZE, 31.6e6)).toBeCloseTo(MARGIN.top + 100, 0);
  });

  it('have round ticks', () => {
    const labels = (...walls: readonly number[]) => durationTicks(plotOf(...walls), SIZE).map(({ label }) => label);
    expect(labels(1.5e6, 5e9)).toEqual(['10ms', '100ms', '1s']);
    expect(labels(15e6, 400e6)).toEqual(['20ms', '50ms', '100ms', '200ms']);
    expect(labels(50e6, 130e6)).toEqual(['60ms', '80ms', '100ms', '120ms']);
    expect(labels(20e9, 2000e9)).toEqual(['20s', '1m', '2m', '5m', '10m', '20m']);
  });

  it('have ticks at round times of the clock', () => {
    const plot = { ...plotOf(1), from: (NOON - 100 * 60e6) as Micros, to: (NOON + 20 * 60e6) as Micros };
    const ticks = timeTicks(plot, SIZE, 0);
    expect(ticks.map(({ label }) => label)).toEqual([
      '10:20',
      '10:30',
      '10:40',
      '10:50',
      '11:00',
      '11:10',
      '11:20',
      '11:30',
      '11:40',
      '11:50',
      '12:00',
      '12:10',
      '12:20',
    ]);
    expect(ticks.map(({ place }) => place)).toEqual(ticks.map((_, index) => expect.closeTo(MARGIN.left + (index * 1000) / 12)));
    // India is 330 minutes before UTC.
    expect(timeTicks(plot, SIZE, -330)[0]?.label).toBe('15:50');
  });
});

describe('the dots', () => {
  const traces = [trace(0, 1e6, 1, 2), trace(10, 1e6, 1000)];
  const dots = dotsOf(traces, scatterOf(traces, NO_BOX), SIZE);

  it('are larger with more spans, and errors lie on top', () => {
    expect(dots.map(({ trace: { errors } }) => errors)).toEqual([0, 2]);
    expect(dots[0]?.radius).toBeGreaterThan(dots[1]?.radius ?? Infinity);
  });

  it('are found under the pointer and a little beside', () => {
    const [dot] = dots;
    if (dot === undefined) throw new Error('no dot');
    expect(dotAt(dots, dot.x, dot.y)).toBe(dot);
    expect(dotAt(dots, dot.x + dot.radius + 8, dot.y)).toBe(dot);
    expect(dotAt(dots, dot.x + dot.radius + 10, dot.y)).toBeNull();
  });
});

describe('a drag', () => {
  const plot = scatterOf([], box({ start: NOON, end: NOON + 1000e6, min: 1e6, max: 1e9 }));
  const select = (drag: Drag, before = NO_BOX) => {
    const rectangle = rectangleOf(drag, SIZE);
    return rectangle === null ? null : searchOfBox(boxOfRectangle(rectangle, plot, SIZE, before));
  };
  const [left, right, top, bottom] = [MARGIN.left, MARGIN.left + 1000, MARGIN.top, MARGIN.top + 200];

  it('selects a range of time and of duration, in either direction', () => {
    const address = { start: NOON + 100e6, end: NOON + 400e6, minWall: '31.62ms', maxWall: '501.2ms' };
    expect(select({ x0: left + 100, y0: top + 20, x1: left + 400, y1: top + 100 })).toEqual(address);
    expect(select({ x0: left + 400, y0: top + 100, x1: left + 100, y1: top + 20 })).toEqual(address);
  });

  it('along one axis selects on that axis', () => {
    expect(select({ x0: left + 100, y0: top + 50, x1: left + 400, y1: top + 53 })).toEqual({ start: NOON + 100e6, end: NOON + 400e6 });
    expect(select({ x0: left + 100, y0: top + 20, x1: left + 102, y1: top + 100 })).toEqual({ minWall: '31.62ms', maxWall: '501.2ms' });
  });

  it('over an edge leaves that side as it was', () => {
    const drag = { x0: left + 100, y0: top + 100, x1: right + 30, y1: top - 30 };
    expect(select(drag)).toEqual({ start: NOON + 100e6, minWall: '31.62ms' });
    expect(select(drag, box({ end: NOON + 1000e6, max: 1e9 }))).toEqual({
      start: NOON + 100e6,
      end: NOON + 1000e6,
      minWall: '31.62ms',
      maxWall: '1s',
    });
  });

  it('of a trembling hand, or beside the dots, selects nothing', () => {
    expect(select({ x0: left + 100, y0: top + 50, x1: left + 103, y1: top + 48 })).toBeNull();
    expect(select({ x0: left - 40, y0: top + 50, x1: left - 10, y1: bottom - 5 })).toBeNull();
  });
});

describe('a selection in words', () => {
  it('has the day once, and milliseconds if it is short', () => {
    const words = (start: number | null, end: number | null) =>
      startsInWords({ start: start as Micros | null, end: end as Micros | null }, 0);
    expect(words(NOON, NOON + 90e6)).toBe('28 Nov 12:00:00–12:01:30');
    expect(words(NOON, NOON + 1.25e6)).toBe('28 Nov 12:00:00.000–12:00:01.250');
    expect(words(NOON, NOON + 13 * 3600e6)).toBe('28 Nov 12:00:00–29 Nov 01:00:00');
    expect(words(NOON, null)).toBe('since 28 Nov 12:00:00');
    expect(words(null, NOON)).toBe('until 28 Nov 12:00:00');
    expect(formatClock((NOON + 12 * 3600e6) as Micros, 0, 60e6)).toBe('29 Nov');
  });

  it('has durations as everywhere', () => {
    expect(durationsInWords(box({ min: 204e6, max: 1.52e9 }))).toBe('204.0ms–1.52s');
    expect(durationsInWords(box({ min: 204e6 }))).toBe('at least 204.0ms');
    expect(durationsInWords(box({ max: 204e6 }))).toBe('at most 204.0ms');
  });

  it('can be of all traces', () => {
    expect(extentOf([trace(3, 7), trace(1, 9)])).toEqual(box({ start: NOON + 1e6, end: NOON + 3e6, min: 7, max: 9 }));
    expect(extentOf([])).toEqual(NO_BOX);
  });
});
