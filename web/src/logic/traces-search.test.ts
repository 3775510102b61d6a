import { describe, expect, it } from 'vitest';
import type { TraceRow } from '../api/types.gen';
import type { Micros, Nanos } from '../base/brand';
import { printDuration, readDuration } from './duration';
import {
  boxOf,
  readTags,
  readTracesSearch,
  requestOf,
  searchOfBox,
  type TracesBox,
  type TracesSearch,
  tracesInBox,
  withBox,
} from './traces-search';

describe('the search for traces', () => {
  it('reads an address, without what is invalid', () => {
    expect(readTracesSearch({ service: 'cart', minDuration: 5, sort: 'longest', other: 'x', operation: '' })).toEqual({
      service: 'cart',
      minDuration: '5',
      sort: 'longest',
    });
  });

  it('goes on behind the traces of an answer, until the filters change', () => {
    const after = `1795867200000000000,${'0f'.repeat(16)}`;
    expect(readTracesSearch({ service: 'cart', after })).toEqual({ service: 'cart', after });
    expect(readTracesSearch({ after: '5' })).toEqual({});
    expect(requestOf({ after }).parameters).toEqual({ after, limit: '1000' });
    expect(withBox({ after, live: 1 }, null)).toEqual({ live: 1 });
  });

  it('takes attributes as pairs', () => {
    expect(readTags('http.status_code=500 name="two words"')).toEqual(
      new Map([
        ['http.status_code', '500'],
        ['name', 'two words'],
      ]),
    );
    expect(readTags('error')).toBeNull();
    expect(readTags('=1')).toBeNull();
  });

  it('asks as Jaeger spells it, and says what is wrong', () => {
    expect(requestOf({ service: 'cart', tags: 'error=true', minDuration: '1.5s' })).toEqual({
      parameters: { service: 'cart', minDuration: '1.5s', tags: '{"error":"true"}', limit: '1000' },
      wrong: null,
    });
    expect(requestOf({ minDuration: 'soon' }).wrong).toContain('soon');
    expect(requestOf({ tags: 'error' }).wrong).toContain('key=value');
  });
});

const NO_BOX: TracesBox = { start: null, end: null, min: null, max: null };
const box = (part: { start?: number; end?: number; min?: number; max?: number }) => ({ ...NO_BOX, ...part }) as TracesBox;

describe('a duration', () => {
  it('is read as Go writes it', () => {
    expect(['204ms', '1.5s', '1m30s', '340µs', '7ns'].map(readDuration)).toEqual([204e6, 1.5e9, 90e9, 340e3, 7]);
    expect(['', '5', 's', '-1s', '1.2.3s'].map(readDuration)).toEqual([null, null, null, null, null]);
  });

  it('is printed outward with four digits', () => {
    expect(printDuration(204_361_234, 'down')).toBe('204.3ms');
    expect(printDuration(204_361_234, 'up')).toBe('204.4ms');
    expect(printDuration(999_990_000, 'up')).toBe('1000ms');
    expect(printDuration(75e9, 'down')).toBe('75s');
    expect(printDuration(340_000, 'up')).toBe('340µs');
    expect(printDuration(0.4, 'down')).toBe('0ns');
  });

  it.each([1, 999, 1001, 123_456_789, 3.9e12])('of %d ns lies between its prints', (nanos) => {
    expect(readDuration(printDuration(nanos, 'down'))).toBeLessThanOrEqual(nanos);
    expect(readDuration(printDuration(nanos, 'up'))).toBeGreaterThanOrEqual(nanos);
  });
});

describe('a rectangle in the address', () => {
  const selected = box({ start: 1_795_883_131_289_692.5, end: 1_795_884_366_031_619.5, min: 109_716_000, max: 1_523_400_000 });

  it('is written outward, and read again', () => {
    const address = searchOfBox(selected);
    expect(address).toEqual({ start: 1_795_883_131_289_692, end: 1_795_884_366_031_620, minWall: '109.7ms', maxWall: '1.524s' });
    expect(readTracesSearch(address)).toEqual(address);
    expect(boxOf(address)).toEqual(box({ start: 1_795_883_131_289_692, end: 1_795_884_366_031_620, min: 109.7e6, max: 1.524e9 }));
  });

  it('replaces the one before it, and nothing else', () => {
    const before: TracesSearch = { service: 'cart', live: 1, start: 1, end: 2, minWall: '1s' };
    expect(withBox(before, box({ max: 5e9 }))).toEqual({ service: 'cart', live: 1, maxWall: '5s' });
    expect(withBox(before, null)).toEqual({ service: 'cart', live: 1 });
  });

  it('is dropped if it is no range', () => {
    expect(readTracesSearch({ start: 9, end: 8, minWall: '2s', maxWall: '1s' })).toEqual({});
    expect(readTracesSearch({ start: -9, end: 'now', minWall: 'soon' })).toEqual({});
    expect(readTracesSearch({ start: '7', live: '1' })).toEqual({ start: 7, live: 1 });
  });

  it('holds traces by their start and their duration', () => {
    const trace = (startMicros: number, wallNanos: number) =>
      ({ startUnixNano: BigInt(startMicros) * 1000n, wallNanos: wallNanos as Nanos }) as TraceRow;
    const traces = [trace(10, 5), trace(20, 50), trace(30, 500)];
    expect(tracesInBox(traces, NO_BOX)).toBe(traces);
    expect(tracesInBox(traces, box({ start: 20 }))).toEqual(traces.slice(1));
    expect(tracesInBox(traces, box({ end: 20, min: 50 }))).toEqual([traces[1]]);
    expect(tracesInBox(traces, box({ max: 4 }))).toEqual([]);
  });

  it('asks for the spans of its time and for traces of its durations', () => {
    const { start, end } = { start: 1000 as Micros, end: 5000 as Micros };
    const times = (search: TracesSearch) => {
      const { limit: _, ...rest } = requestOf(search).parameters;
      return rest;
    };
    expect(times({ start, end, minWall: '1ms', maxWall: '2ms' })).toEqual({ start: '1000', end: '5000', minWall: '1ms', maxWall: '2ms' });
    // The span of the service may start as late as the longest trace ends.
    expect(times({ service: 'cart', start, end, maxWall: '2ms' })).toEqual({ service: 'cart', start: '1000', end: '7000', maxWall: '2ms' });
    expect(times({ service: 'cart', start, minDuration: '3ms' })).toEqual({ service: 'cart', start: '1000', minDuration: '3ms' });
  });
});
