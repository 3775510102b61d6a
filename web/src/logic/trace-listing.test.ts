import { describe, expect, it } from 'vitest';
import type { TraceRow } from '../api/types.gen';
import type { Nanos } from '../base/brand';
import { FRESH_MILLIS, listingOf, mergedListing, sortedTraces } from './trace-listing';

const row = (traceId: string, spans = 1, wallNanos = 10): TraceRow => ({
  traceId,
  service: 'cart',
  name: 'GET /',
  startUnixNano: 1000n,
  wallNanos: wallNanos as Nanos,
  spans,
  errors: 0,
  services: [{ name: 'cart', spans }],
});
const answer = (readMillis: number, ...traces: readonly TraceRow[]) => listingOf({ traces, truncated: false, next: null }, readMillis);

describe('a list of traces that grows', () => {
  it('has nothing new at first', () => {
    expect([...answer(0, row('a')).fresh]).toEqual([]);
  });

  it('marks rows that the answer before did not have, in the order of the new answer', () => {
    const merged = mergedListing(answer(0, row('b'), row('a')), answer(1000, row('c'), row('b'), row('a')));
    expect(merged.traces.map(({ traceId }) => traceId)).toEqual(['c', 'b', 'a']);
    expect([...merged.fresh]).toEqual([['c', 1000]]);
  });

  it('keeps rows that did not change as the same objects', () => {
    const before = answer(0, row('b'), row('a'));
    const merged = mergedListing(before, answer(1000, row('c'), row('b'), row('a')));
    expect(merged.traces[1]).toBe(before.traces[0]);
    expect(mergedListing(before, answer(1000, row('b'), row('a'))).traces).toBe(before.traces);
    expect(mergedListing(before, before)).toBe(before);
  });

  it('takes more spans of a known trace without a mark', () => {
    const merged = mergedListing(answer(0, row('a', 1)), answer(1000, row('a', 7)));
    expect(merged.traces[0]?.spans).toBe(7);
    expect(merged.fresh.size).toBe(0);
  });

  it('leaves out rows that the answer no longer has', () => {
    expect(mergedListing(answer(0, row('b'), row('a')), answer(1000, row('b'))).traces).toHaveLength(1);
  });

  it('takes the mark away after its time', () => {
    const first = mergedListing(answer(0), answer(1000, row('a')));
    expect(mergedListing(first, answer(999 + FRESH_MILLIS, row('a'))).fresh.has('a')).toBe(true);
    expect(mergedListing(first, answer(1000 + FRESH_MILLIS, row('a'))).fresh.has('a')).toBe(false);
  });

  it('can have the longest first', () => {
    const traces = [row('a', 1, 5), row('b', 1, 9)];
    expect(sortedTraces(traces, 'longest').map(({ traceId }) => traceId)).toEqual(['b', 'a']);
    expect(sortedTraces(traces, '')).toBe(traces);
  });
});
