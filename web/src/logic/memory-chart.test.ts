import { expect, it } from 'vitest';
import type { Nanos } from '../base/brand';
import { memoryChart } from './memory-chart';

const nanos = (value: number) => value as Nanos;
const readings = (...pairs: (readonly [number, number])[]) => ({
  timeNanos: Float64Array.from(pairs.map(([time]) => time)),
  residentBytes: Float64Array.from(pairs.map(([, bytes]) => bytes)),
});

it('draws steps, because memory stays as it is while a process does not run', () => {
  const chart = memoryChart(readings([10, 100], [20, 400], [50, 200]), nanos(0), nanos(40));
  expect(chart?.area).toEqual([
    [0.2, 1],
    [0.2, 0.75],
    [0.4, 0.75],
    [0.4, 0],
    [1, 0],
    [1, 0.5],
    [1, 1],
  ]);
  expect(chart).toMatchObject({ start: 0, end: 50, topBytes: 400, span: { from: 0, to: 0.8 } });
});

it('reaches to the end of a span that is longer than what was read', () => {
  expect(memoryChart(readings([0, 1], [10, 2]), nanos(5), nanos(20))).toMatchObject({ end: 20, span: { from: 0.25, to: 1 } });
});

it('draws nothing of one reading, of none and of no memory', () => {
  for (const none of [readings(), readings([1, 5]), readings([1, 0], [2, 0])]) expect(memoryChart(none, nanos(0), nanos(9))).toBeNull();
});
