import { expect, it } from 'vitest';
import type { Source, SourceLine } from '../api/types.gen';
import { costedLines, hottestLine } from './source-lines';

const line = (number: number, totalNanos: number, waitedNanos = 0) =>
  ({ line: number, text: '', totalNanos, selfNanos: 0, waitedNanos }) as SourceLine;
const sourceOf = (...lines: SourceLine[]) => ({ lines }) as unknown as Source;

it('a line costs its time on CPUs and its waits', () => {
  const lines = costedLines(sourceOf(line(3, 10), line(4, 20, 60), line(9, 0)));
  expect(lines.map(({ costNanos, heat, followsGap }) => [costNanos, heat, followsGap])).toEqual([
    [10, 0.125, false],
    [80, 1, false],
    [0, 0, true],
  ]);
  expect(hottestLine(lines)).toBe(4);
});

it('without a cost no line is the costliest', () => {
  expect(hottestLine(costedLines(sourceOf(line(1, 0))))).toBeNull();
});
