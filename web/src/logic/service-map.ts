/** The map of services: from the address to the request, and the words and the order of its tables. `service-map-layout.ts` has the drawing. */
import type { MappedService, Requests, ServiceCalls } from '../api/types.gen';
import type { Micros } from '../base/brand';
import { ratio } from '../base/math';
import { counted, formatCount, formatDuration, formatShare } from './format';

/** How far a map goes back. */
export const RANGES = ['15m', '1h', '6h', '1d', '2d'] as const;
export type Range = (typeof RANGES)[number];
export const RANGE_DEFAULT: Range = '1h';
export const RANGE_LONGEST: Range = '2d';

const MINUTE_MICROS = 60e6;
const MICROS_OF: Readonly<Record<Range, number>> = {
  '15m': 15 * MINUTE_MICROS,
  '1h': 60 * MINUTE_MICROS,
  '6h': 360 * MINUTE_MICROS,
  '1d': 1440 * MINUTE_MICROS,
  '2d': 2880 * MINUTE_MICROS,
};
const WORDS: Readonly<Record<Range, string>> = { '15m': '15 minutes', '1h': 'hour', '6h': '6 hours', '1d': 'day', '2d': '2 days' };

/** `last hour`, `last 2 days`. */
export function rangeInWords(range: Range): string {
  return `last ${WORDS[range]}`;
}

/** Columns of the tables. */
export const SORTS = ['service', 'caller', 'callee', 'count', 'errors', 'median', 'p95', 'p99'] as const;
export type Sort = (typeof SORTS)[number];
/** A column, with a minus in front if the least comes first; names come first from A to Z. */
export type SortOrder = Sort | `-${Sort}`;

/** Search parameters of the map. */
export interface ServicesSearch {
  readonly range?: Range;
  readonly sort?: SortOrder;
}

/** Reads the search parameters of the map, without invalid ones. */
export function readServicesSearch(search: Readonly<Record<string, unknown>>): ServicesSearch {
  const range = RANGES.find((known) => known === search.range);
  const sort = SORTS.flatMap((known): readonly SortOrder[] => [known, `-${known}`]).find((known) => known === search.sort);
  return { ...(range === undefined ? {} : { range }), ...(sort === undefined ? {} : { sort }) };
}

/** The parameters of the request. */
export function mapRequestOf(range: Range, now: Micros): Readonly<Record<string, string>> {
  return { start: String(now - MICROS_OF[range]) };
}

/** `120 requests`, `3 errors (3%)`, `median 12ms, p99 40ms`. */
export function requestsInWords(requests: Requests, noun: string): string {
  const { count, errors, medianNanos, p99Nanos } = requests;
  const failed = errors === 0 ? 'no errors' : `${counted(errors, 'error')} (${errorShare(requests)})`;
  return `${counted(count, noun)}, ${failed}, median ${formatDuration(medianNanos)}, p99 ${formatDuration(p99Nanos)}`;
}

/** `3%`. */
export function errorShare({ count, errors }: Requests): string {
  return formatShare(ratio(errors, count));
}

/** `3 (3%)`; `0`. */
export function errorsInColumn(requests: Requests): string {
  return requests.errors === 0 ? '0' : `${formatCount(requests.errors)} (${errorShare(requests)})`;
}

const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const NUMBERS = {
  count: ({ count }: Requests): number => count,
  errors: ({ errors }: Requests): number => errors,
  median: ({ medianNanos }: Requests): number => medianNanos,
  p95: ({ p95Nanos }: Requests): number => p95Nanos,
  p99: ({ p99Nanos }: Requests): number => p99Nanos,
} as const;

const isNumber = (sort: Sort): sort is keyof typeof NUMBERS => Object.hasOwn(NUMBERS, sort);

/** The column and direction of a table that has these names as its first columns: by count if it does not have the wanted one. */
export function sortOf(order: SortOrder | undefined, names: readonly Sort[]): { readonly sort: Sort; readonly isReversed: boolean } {
  const isReversed = order?.startsWith('-') ?? false;
  const sort = SORTS.find((known) => order === known || order === `-${known}`);
  return sort !== undefined && (isNumber(sort) || names.includes(sort)) ? { sort, isReversed } : { sort: 'count', isReversed: false };
}

/** What a click on a column asks for: the column, or the other way round if the table is in its order. */
export function clickedSort(column: Sort, current: { readonly sort: Sort; readonly isReversed: boolean }): SortOrder {
  return column === current.sort && !current.isReversed ? `-${column}` : column;
}

/** Whether the least stands first, for `aria-sort`. */
export function isAscending({ sort, isReversed }: { readonly sort: Sort; readonly isReversed: boolean }): boolean {
  return isNumber(sort) === isReversed;
}

function sorted<Row extends { readonly requests: Requests }>(
  rows: readonly Row[],
  order: { readonly sort: Sort; readonly isReversed: boolean },
  nameOf: (row: Row, sort: Sort) => string,
): readonly Row[] {
  const { sort, isReversed } = order;
  const sign = isReversed ? -1 : 1;
  const compare = isNumber(sort)
    ? (a: Row, b: Row) => NUMBERS[sort](b.requests) - NUMBERS[sort](a.requests)
    : (a: Row, b: Row) => compareTexts(nameOf(a, sort), nameOf(b, sort));
  return [...rows].sort((a, b) => sign * compare(a, b));
}

/** The services in the order of a column. */
export function sortedServices(services: readonly MappedService[], order: SortOrder | undefined): readonly MappedService[] {
  return sorted(services, sortOf(order, ['service']), ({ name }) => name);
}

/** The calls in the order of a column. */
export function sortedCalls(calls: readonly ServiceCalls[], order: SortOrder | undefined): readonly ServiceCalls[] {
  return sorted(calls, sortOf(order, ['caller', 'callee']), (row, sort) => (sort === 'caller' ? row.caller : row.callee));
}
