import { describe, expect, it } from 'vitest';
import { decodeProfileValues } from '../api/decode.gen';
import type { ProfileValues } from '../api/types.gen';
import type { Micros } from '../base/brand';
import { MARGIN, xOf } from './scatter';
import {
  axesOf,
  finished,
  lineInWords,
  momentInWords,
  piecesOf,
  pointAt,
  pointInWords,
  stripeOf,
  valueWords,
  versionMarks,
} from './value-line';

const NOON = Date.UTC(2026, 10, 28, 12) * 1000;
const SIZE = { width: MARGIN.left + 1000 + MARGIN.right, height: 92 };

/** An answer for an hour in steps of a minute. */
function valuesOf(step: readonly number[], value: readonly number[], changed: Readonly<Record<string, unknown>> = {}): ProfileValues {
  return decodeProfileValues({
    query: 'process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="cart"}',
    sample_type: 'cpu',
    unit: 'nanoseconds',
    is_state: false,
    from_unix_nano: `${NOON}000`,
    to_unix_nano: `${NOON + 3600e6}000`,
    step_nanos: 60e9,
    step,
    value,
    versions: [],
    ...changed,
  });
}

const versionsAt = (...minutes: readonly number[]) =>
  minutes.map((minute, index) => ({ label: `version="1.${index}"`, first_unix_nano: `${NOON + minute * 60e6}000` }));

describe('a value', () => {
  const written = (sample_type: string, unit: string, is_state: boolean, ...numbers: readonly number[]) => {
    const { short, whole, behind } = valueWords(valuesOf([], [], { sample_type, unit, is_state }));
    return [...numbers.map(short), whole(numbers[0] ?? 0), behind];
  };

  it('of CPU time is a number of CPUs', () => {
    expect(written('cpu', 'nanoseconds', false, 1, 0, 0.0421, 2.345, 0.00058, 0.00004)).toEqual([
      '1',
      '0',
      '0.042',
      '2.35',
      '0.0006',
      '<0.0001',
      '1 CPU',
      ', in CPUs',
    ]);
    expect(valueWords(valuesOf([], [])).whole(1.5)).toBe('1.5 CPUs');
  });

  it('of a state has its unit, and of all others is so much a second', () => {
    expect(written('inuse_space', 'bytes', true, 235.3e6)).toEqual(['235MB', '235MB', '']);
    expect(written('goroutine', 'count', true, 737.4, 2.5, 1_234_567)).toEqual(['737', '2.5', '1.23M', '737', '']);
    expect(written('alloc_space', 'bytes', false, 2.1e6)).toEqual(['2.1MB', '2.1MB a second', ', per second']);
    expect(written('delay', 'nanoseconds', false, 0.12)).toEqual(['120.0ms', '120.0ms a second', ', per second']);
  });
});

describe('the line', () => {
  const lengths = (...step: readonly number[]) => piecesOf(valuesOf(step, step)).map((piece) => piece.length);

  it('has a gap where steps have no value', () => {
    expect(lengths(0, 1, 2, 5, 6, 9)).toEqual([3, 2, 1]);
    expect(lengths()).toEqual([]);
  });

  it('has none where profiles come less often than in each step', () => {
    expect(lengths(0, 4, 8, 13, 17, 30, 34)).toEqual([5, 2]);
    expect(lengths(3, 40)).toEqual([1, 1]);
    expect(lengths(0, 1, 3, 4, 6, 7, 9, 10)).toEqual([8]);
  });

  it('ends before a step that has not all of its profiles yet', () => {
    const steps = (endsNow: boolean, last: number, changed = {}) =>
      finished(valuesOf([0, 1, last], [2, 2, 1], changed), endsNow).step.length;
    expect([steps(true, 59), steps(false, 59), steps(true, 58)]).toEqual([2, 3, 3]);
    expect([steps(true, 59, { is_state: true }), steps(true, 5, { step_nanos: 600e9 })]).toEqual([3, 3]);
  });

  it('has points in the middle of their steps, found by the nearest place', () => {
    const values = valuesOf([0, 1, 30], [1, 3, 2]);
    const [points, plot] = [piecesOf(values).flat(), axesOf(values)];
    expect(points[1]).toEqual({ begin: NOON + 60e6, middle: NOON + 90e6, value: 3 });
    expect([0, MARGIN.left + 20, MARGIN.left + 900].map((x) => pointAt(points, plot, SIZE, x))).toEqual([0, 1, 2]);
  });

  it('begins at 0, unless a state varies by a small part of itself', () => {
    const ends = (is_state: boolean, ...value: readonly number[]) => {
      const { low, high } = axesOf(valuesOf([0, 1], value, { is_state }));
      return [low, high];
    };
    expect(ends(true, 400, 500)).toEqual([300, 500]);
    expect(ends(false, 400, 500)).toEqual([0, 500]);
    expect(ends(true, 100, 500)).toEqual([0, 500]);
    expect(ends(true, 495, 500)).toEqual([0, 500]);
    expect(ends(true, 0, 0)).toEqual([0, 1]);
  });

  it('marks versions, with labels where there is room', () => {
    const values = valuesOf([0], [1], { versions: versionsAt(6, 7, 30, 59) });
    const plot = axesOf(values);
    const marks = versionMarks(values.versions, plot, SIZE);
    expect(marks.map(({ label, side }) => [label, side])).toEqual([
      ['version="1.0"', 'right'],
      ['', 'right'],
      ['version="1.2"', 'right'],
      ['version="1.3"', 'left'],
    ]);
    expect(marks[0]?.x).toBe(xOf(plot, SIZE, NOON + 360e6));
  });

  it('is in words', () => {
    const values = valuesOf([0, 1, 2], [1, 3, 2], { versions: versionsAt(1) });
    const points = piecesOf(values).flat();
    expect(lineInWords('CPU time of cart', points, values, 0)).toBe(
      'CPU time of cart from 28 Nov 12:00 to 28 Nov 13:00, highest 3 CPUs on 28 Nov 12:01, latest 2 CPUs on 28 Nov 12:02, version="1.0" since 28 Nov 12:01',
    );
    expect(points.map((point) => pointInWords(point, values, 0))[1]).toBe('28 Nov 12:01: 3 CPUs');
    expect(momentInWords((NOON - 12 * 3600e6) as Micros, 0, 30e6)).toBe('28 Nov 00:00:00');
  });
});

describe('a drag', () => {
  it('selects the full height, unless a hand trembled', () => {
    expect(stripeOf(MARGIN.left + 400, MARGIN.left + 100, SIZE)).toEqual({
      x0: MARGIN.left + 100,
      x1: MARGIN.left + 400,
      y0: MARGIN.top,
      y1: SIZE.height - MARGIN.bottom,
    });
    expect(stripeOf(100, 103, SIZE)).toBeNull();
  });
});
