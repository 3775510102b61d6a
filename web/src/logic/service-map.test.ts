import { describe, expect, it } from 'vitest';
import type { MappedService, Requests, ServiceCalls } from '../api/types.gen';
import type { Micros, Nanos } from '../base/brand';
import {
  clickedSort,
  errorsInColumn,
  isAscending,
  mapRequestOf,
  RANGES,
  rangeInWords,
  readServicesSearch,
  requestsInWords,
  type SortOrder,
  sortedCalls,
  sortedServices,
  sortOf,
} from './service-map';

const requests = (count: number, errors: number, medianMillis: number, p95Millis: number, p99Millis = p95Millis): Requests => ({
  count,
  errors,
  medianNanos: (medianMillis * 1e6) as Nanos,
  p95Nanos: (p95Millis * 1e6) as Nanos,
  p99Nanos: (p99Millis * 1e6) as Nanos,
});

describe('the address of the map', () => {
  it('has a time and an order, and nothing else', () => {
    expect(readServicesSearch({ range: '6h', sort: '-p95', service: 'cart' })).toEqual({ range: '6h', sort: '-p95' });
    expect(readServicesSearch({ range: '7h', sort: '--p95' })).toEqual({});
    expect(RANGES.map(rangeInWords)).toEqual(['last 15 minutes', 'last hour', 'last 6 hours', 'last day', 'last 2 days']);
  });

  it('asks for the time before now', () => {
    const noon = (Date.UTC(2026, 10, 28, 12) * 1000) as Micros;
    expect(mapRequestOf('15m', noon)).toEqual({ start: String(Date.UTC(2026, 10, 28, 11, 45) * 1000) });
    expect(mapRequestOf('2d', noon)).toEqual({ start: String(Date.UTC(2026, 10, 26, 12) * 1000) });
  });
});

describe('requests', () => {
  it('are written with what they miss', () => {
    expect(requestsInWords(requests(1204, 37, 12, 40.1, 1160), 'call')).toBe(
      '1,204\u00a0calls, 37\u00a0errors (3%), median 12.0ms, p99 1.16s',
    );
    expect(requestsInWords(requests(1, 0, 2000, 2000), 'request')).toBe('1\u00a0request, no errors, median 2.00s, p99 2.00s');
    expect([requests(1204, 1, 1, 1), requests(9, 0, 1, 1)].map(errorsInColumn)).toEqual(['1 (<1%)', '0']);
  });
});

describe('the tables of the map', () => {
  const services: readonly MappedService[] = [
    { name: 'cart', requests: requests(20, 0, 5, 9) },
    { name: 'shop', requests: requests(10, 3, 50, 90) },
  ];
  const calls: readonly ServiceCalls[] = [
    { caller: 'shop', callee: 'cart', requests: requests(20, 0, 5, 9) },
    { caller: 'cart', callee: 'prices', requests: requests(40, 1, 1, 200) },
    { caller: 'cart', callee: 'mail', requests: requests(1, 1, 7, 7) },
  ];
  const callees = (order?: SortOrder) => sortedCalls(calls, order).map(({ callee }) => callee);

  it('begin with the most, and names with A', () => {
    expect(callees()).toEqual(['prices', 'cart', 'mail']);
    expect(callees('-count')).toEqual(['mail', 'cart', 'prices']);
    expect(callees('p95')).toEqual(['prices', 'cart', 'mail']);
    expect(callees('p99')).toEqual(['prices', 'cart', 'mail']);
    expect(callees('median')).toEqual(['mail', 'cart', 'prices']);
    expect(callees('caller')).toEqual(['prices', 'mail', 'cart']);
    expect(callees('-callee')).toEqual(['prices', 'mail', 'cart']);
    expect(sortedServices(services, 'errors').map(({ name }) => name)).toEqual(['shop', 'cart']);
  });

  it('are in the order of requests if they do not have the column', () => {
    expect(sortOf('-caller', ['service'])).toEqual({ sort: 'count', isReversed: false });
    expect(sortedServices(services, 'caller')).toEqual(services);
    expect(callees('service')).toEqual(callees());
  });

  it('turn round with a second click', () => {
    expect(clickedSort('p95', sortOf(undefined, []))).toBe('p95');
    expect(clickedSort('count', sortOf(undefined, []))).toBe('-count');
    expect(clickedSort('p95', sortOf('-p95', []))).toBe('p95');
    expect((['count', '-count', 'service', '-service'] as const).map((order) => isAscending(sortOf(order, ['service'])))).toEqual([
      false,
      true,
      true,
      false,
    ]);
  });
});
