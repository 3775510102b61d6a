/**
 * The spans of a trace by operation: how many there are, how many failed, and how long they took. One pass over the columns counts, one sorts the
 * durations of each operation; both keep numbers in typed columns, so that a million spans make no objects.
 */
import { SPAN_FLAG } from '../api/checks';
import type { Quality, Tree } from '../api/types.gen';
import type { Nanos } from '../base/brand';
import { at } from '../base/column';
import { countedNodes } from './answer';
import { counted, formatCount } from './format';
import { namedService } from './span-words';

/** What spans of one row have in common. */
export const GROUPINGS = ['operation', 'name', 'service'] as const;
export type Grouping = (typeof GROUPINGS)[number];

/** A row of the table. Durations are of spans with a known one. */
export interface Operation {
  /** Distinguishes it from the others of its grouping: `n3s1`. */
  readonly key: string;
  /** The common name; `null` if spans are grouped by service. */
  readonly name: string | null;
  /** The common service; `null` if spans are grouped by name. */
  readonly service: string | null;
  /** Number of the service in the tree, on which its colour depends; -1 without a common service. */
  readonly serviceNumber: number;
  readonly count: number;
  readonly errors: number;
  /** The sum; spans inside others of the operation count once. */
  readonly totalNanos: Nanos;
  readonly p50Nanos: Nanos | null;
  readonly p95Nanos: Nanos | null;
  readonly p99Nanos: Nanos | null;
  readonly maxNanos: Nanos | null;
  /** Time of the critical path in which one of them was the innermost. */
  readonly onPathNanos: Nanos;
  /** The known durations, ascending. */
  readonly durations: Float64Array;
}

export interface Operations {
  readonly grouping: Grouping;
  readonly rows: readonly Operation[];
  /** Spans of all rows. */
  readonly spans: number;
  /** Spans that end before they start: no duration of the table counts them. */
  readonly unknown: number;
  /** Whether the rows are of processes: there are no spans. */
  readonly areProcesses: boolean;
}

/**
 * A quantile, in percent: the shortest duration that at least this share of all durations does not exceed, as in the map of services. It is always the
 * duration of a span. `null` if the operation has too few spans: a p95 of fewer than 20, or a p99 of fewer than 100, would be the longest span.
 */
export function quantileOf(ascending: Float64Array, percent: number): Nanos | null {
  const rank = Math.max(1, Math.ceil((ascending.length * percent) / 100));
  const isLongest = rank === ascending.length && percent > 50;
  return ascending.length === 0 || isLongest ? null : (at(ascending, rank - 1) as Nanos);
}

/** The least number of spans with a quantile above the median. */
export function spansForQuantile(percent: number): number {
  return Math.ceil(100 / (100 - percent));
}

/** Numbers the groups in the order in which they come. */
class Groups {
  readonly names: number[] = [];
  readonly services: number[] = [];
  private readonly numbers = new Map<number, number>();

  constructor(
    private readonly grouping: Grouping,
    private readonly nameCount: number,
  ) {}

  numberOf(name: number, service: number): number {
    const key = this.grouping === 'name' ? name : this.grouping === 'service' ? service : service * this.nameCount + name;
    const known = this.numbers.get(key);
    if (known !== undefined) return known;
    this.numbers.set(key, this.names.length);
    this.names.push(this.grouping === 'service' ? -1 : name);
    this.services.push(this.grouping === 'name' ? -1 : service);
    return this.names.length - 1;
  }
}

/** The spans by operation; the processes if there are no spans. */
export function operationsOf(tree: Tree, grouping: Grouping): Operations {
  const { spans } = tree;
  const rows = spans.parent.length;
  const areProcesses = spans.flags.every((flags) => (flags & SPAN_FLAG.process) !== 0);
  const isOmitted = (flags: number) => !areProcesses && (flags & SPAN_FLAG.process) !== 0;

  const groups = new Groups(grouping, tree.names.length);
  const groupOf = new Int32Array(rows);
  for (let span = 0; span < rows; span++) {
    groupOf[span] = isOmitted(at(spans.flags, span)) ? -1 : groups.numberOf(at(spans.name, span), at(spans.service, span));
  }

  const size = groups.names.length;
  const count = new Uint32Array(size);
  const known = new Uint32Array(size);
  const errors = new Uint32Array(size);
  const total = new Float64Array(size);
  const onPath = new Float64Array(size);
  // The last row below the group's outermost span: rows stand in pre-order, so what comes before it lies inside that span.
  const lastInside = new Int32Array(size).fill(-1);
  for (let span = 0; span < rows; span++) {
    const group = at(groupOf, span);
    if (group < 0) continue;
    const flags = at(spans.flags, span);
    count[group] = at(count, group) + 1;
    if ((flags & SPAN_FLAG.error) !== 0) errors[group] = at(errors, group) + 1;
    if ((flags & SPAN_FLAG.clamped) === 0) known[group] = at(known, group) + 1;
    onPath[group] = at(onPath, group) + at(spans.onPathNanos, span);
    if (span <= at(lastInside, group) || (flags & SPAN_FLAG.clamped) !== 0) continue;
    lastInside[group] = span + at(spans.subtree, span);
    total[group] = at(total, group) + at(spans.durationNanos, span);
  }

  // The known durations, group by group.
  const first = new Uint32Array(size + 1);
  for (let group = 0; group < size; group++) first[group + 1] = at(first, group) + at(known, group);
  const next = first.slice();
  const durations = new Float64Array(at(first, size));
  for (let span = 0; span < rows; span++) {
    const group = at(groupOf, span);
    if (group < 0 || (at(spans.flags, span) & SPAN_FLAG.clamped) !== 0) continue;
    const place = at(next, group);
    durations[place] = at(spans.durationNanos, span);
    next[group] = place + 1;
  }

  const operations = groups.names.map((name, group): Operation => {
    const service = groups.services[group] ?? -1;
    const ascending = durations.subarray(at(first, group), at(first, group + 1)).sort();
    return {
      key: `${name < 0 ? '' : `n${name}`}${service < 0 ? '' : `s${service}`}`,
      name: name < 0 ? null : (tree.names[name] ?? ''),
      service: service < 0 ? null : (tree.services[service] ?? ''),
      serviceNumber: service,
      count: at(count, group),
      errors: at(errors, group),
      totalNanos: at(total, group) as Nanos,
      p50Nanos: quantileOf(ascending, 50),
      p95Nanos: quantileOf(ascending, 95),
      p99Nanos: quantileOf(ascending, 99),
      maxNanos: ascending.length === 0 ? null : (at(ascending, ascending.length - 1) as Nanos),
      onPathNanos: at(onPath, group) as Nanos,
      durations: ascending,
    };
  });
  const counts = operations.reduce((sum, operation) => sum + operation.count, 0);
  return { grouping, rows: operations, spans: counts, unknown: counts - durations.length, areProcesses };
}

// A tree stays as long as its recording is open; its tables stay with it.
const made = new WeakMap<Tree, Map<Grouping, Operations>>();

/** The same, made once for each tree and grouping. */
export function keptOperations(tree: Tree, grouping: Grouping): Operations {
  const ofTree = made.get(tree) ?? new Map<Grouping, Operations>();
  made.set(tree, ofTree);
  const operations = ofTree.get(grouping) ?? operationsOf(tree, grouping);
  ofTree.set(grouping, operations);
  return operations;
}

/** Columns of the table. */
export const OPERATION_SORTS = ['name', 'count', 'errors', 'total', 'p50', 'p95', 'p99', 'max', 'path'] as const;
export type OperationSort = (typeof OPERATION_SORTS)[number];
/** A column, with a minus in front if the least comes first; names come first from A to Z. */
export type OperationOrder = OperationSort | `-${OperationSort}`;

export const NUMBER_OF: Readonly<Record<Exclude<OperationSort, 'name'>, (operation: Operation) => number | null>> = {
  count: ({ count }) => count,
  errors: ({ errors }) => errors,
  total: ({ totalNanos, durations }) => (durations.length === 0 ? null : totalNanos),
  p50: ({ p50Nanos }) => p50Nanos,
  p95: ({ p95Nanos }) => p95Nanos,
  p99: ({ p99Nanos }) => p99Nanos,
  max: ({ maxNanos }) => maxNanos,
  path: ({ onPathNanos }) => onPathNanos,
};

/** Reads an order of the address; `null` if it is none. */
export function readOperationOrder(text: unknown): OperationOrder | null {
  return OPERATION_SORTS.flatMap((sort): readonly OperationOrder[] => [sort, `-${sort}`]).find((known) => known === text) ?? null;
}

export interface ReadOrder {
  readonly sort: OperationSort;
  readonly isReversed: boolean;
}

/** The column and the direction; those of the total time if the address names none. */
export function orderOf(order: OperationOrder | undefined): ReadOrder {
  const sort = OPERATION_SORTS.find((known) => order === known || order === `-${known}`);
  return { sort: sort ?? 'total', isReversed: sort !== undefined && order !== sort };
}

/** The order after a click on the heading of a column: by it, or the other way round if the table is in its order. */
export function clickedOrder(column: OperationSort, { sort, isReversed }: ReadOrder): OperationOrder {
  return column === sort && !isReversed ? `-${column}` : column;
}

/** Whether the least stands first, for `aria-sort`. */
export function isAscendingOrder({ sort, isReversed }: ReadOrder): boolean {
  return (sort === 'name') !== isReversed;
}

const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
const nameInOrder = ({ name, service }: Operation): string => `${name ?? ''}\n${service ?? ''}`;

/** The rows in the order of a column. Rows without that number come last in both directions. */
export function sortedOperations(rows: readonly Operation[], order: ReadOrder): readonly Operation[] {
  const sign = order.isReversed ? -1 : 1;
  const byName = (a: Operation, b: Operation) => compareTexts(nameInOrder(a), nameInOrder(b));
  if (order.sort === 'name') return [...rows].sort((a, b) => sign * byName(a, b));
  const numberOf = NUMBER_OF[order.sort];
  return [...rows].sort((a, b) => {
    const [left, right] = [numberOf(a), numberOf(b)];
    if (left === null || right === null) return Number(left === null) - Number(right === null) || b.count - a.count || byName(a, b);
    return sign * (right - left) || b.count - a.count || byName(a, b);
  });
}

/** The common name, or the common service of a row without one. */
export function titleOfOperation({ name, service }: Operation): string {
  if (name === null) return namedService(service ?? '') || 'no service';
  return name === '' ? '(no name)' : name;
}

/** `POST /checkout of shop`; only a name or a service if the row has only that. */
export function operationInWords(operation: Operation): string {
  const named = operation.name === null ? '' : namedService(operation.service ?? '');
  return `${titleOfOperation(operation)}${named === '' ? '' : ` of ${named}`}`;
}

/** The operation with the most total time among those that traces begin with; `null` if there is none. */
export function mainOperation(tree: Tree): Operation | null {
  const { spans } = tree;
  const entries = new Set<number>();
  for (let span = 0; span < spans.parent.length; ) {
    const isProcess = (at(spans.flags, span) & SPAN_FLAG.process) !== 0;
    if (!isProcess) entries.add(at(spans.service, span) * tree.names.length + at(spans.name, span));
    span += isProcess ? 1 : at(spans.subtree, span) + 1;
  }
  const keys = new Set([...entries].map((entry) => `n${entry % tree.names.length}s${Math.floor(entry / tree.names.length)}`));
  const rows = keptOperations(tree, 'operation').rows.filter(({ key }) => keys.has(key));
  return rows.reduce<Operation | null>((most, row) => (most === null || row.totalNanos > most.totalNanos ? row : most), null);
}

/** A quantile in words: the highest that an operation has, `p99`; `null` without a known duration. */
export function tailOf({ p50Nanos, p95Nanos, p99Nanos }: Operation): { readonly label: string; readonly nanos: Nanos } | null {
  if (p99Nanos !== null) return { label: 'p99', nanos: p99Nanos };
  if (p95Nanos !== null) return { label: 'p95', nanos: p95Nanos };
  return p50Nanos === null ? null : { label: 'the median', nanos: p50Nanos };
}

/** What a table counts and what it misses, as sentences. */
export function coverageInWords({ rows, spans, unknown, areProcesses }: Operations, notes: readonly Quality[]): readonly string[] {
  const unfinished = notes.find(({ code }) => code === 'spans_unfinished')?.count ?? 0;
  return [
    `${countedNodes(spans, areProcesses ? 0 : spans)} in ${counted(rows.length, 'row')}`,
    ...(unknown > 0 ? [`durations omit ${counted(unknown, 'span')} whose end is before the start`] : []),
    ...(unfinished > 0
      ? [`${counted(unfinished, 'span')} without an end ${unfinished === 1 ? 'counts' : 'count'} up to the last known time`]
      : []),
  ];
}

/** A large histogram of fewer spans says no more than the row. */
const HISTOGRAM_SPANS_MIN = 20;

/** The operation with the large histogram: the chosen one, else the first with enough spans; `undefined` if none has. */
export function drawnOperation(rows: readonly Operation[], key: string | undefined): Operation | undefined {
  const chosen = rows.find((row) => row.key === key && row.durations.length > 0);
  return chosen ?? rows.find(({ durations }) => durations.length >= HISTOGRAM_SPANS_MIN);
}

/** Why a quantile is missing: `41 spans are too few: the p99 would be the longest of them. It needs 100.` */
export function missingQuantileInWords({ durations }: Operation, percent: number): string {
  if (durations.length === 0) return 'no duration is known';
  const spans = durations.length === 1 ? '1 span is' : `${formatCount(durations.length)} spans are`;
  return `${spans} too few: the p${percent} would be the longest duration. It needs ${spansForQuantile(percent)} spans.`;
}
