import { expect, it } from 'vitest';
import { lowerBound, upperBound } from './column';

it('bounds of a value in an ascending column', () => {
  const column = Float64Array.of(1, 3, 3, 3, 8);
  expect([0, 1, 2, 3, 4, 8, 9].map((value) => lowerBound(column, value))).toEqual([0, 0, 1, 1, 4, 4, 5]);
  expect([0, 1, 2, 3, 4, 8, 9].map((value) => upperBound(column, value))).toEqual([0, 1, 1, 4, 4, 5, 5]);
  expect(lowerBound(column, 3, 2)).toBe(2);
  expect(upperBound(column, 3, 0, 2)).toBe(2);
});
