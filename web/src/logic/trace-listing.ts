/** A list of traces that grows while the page shows it. */
import type { TraceRow, Traces } from '../api/types.gen';

/** An answer, and which of its traces are new. */
export interface TraceListing {
  readonly traces: readonly TraceRow[];
  readonly truncated: boolean;
  /** What older traces come after; `null` if there are none. */
  readonly next: string | null;
  /** When the answer came, in Unix milliseconds. */
  readonly readMillis: number;
  /** Traces that the answers before did not have, with the time of the first that had them. */
  readonly fresh: ReadonlyMap<string, number>;
}

/** How long a new row is marked. */
export const FRESH_MILLIS = 2500;

/** The first answer: nothing in it is new. */
export function listingOf(answer: Traces, readMillis: number): TraceListing {
  return { ...answer, readMillis, fresh: new Map() };
}

function isSame(a: TraceRow, b: TraceRow): boolean {
  return (
    a.spans === b.spans &&
    a.wallNanos === b.wallNanos &&
    a.errors === b.errors &&
    a.startUnixNano === b.startUnixNano &&
    a.service === b.service &&
    a.name === b.name &&
    a.services.length === b.services.length
  );
}

/** The next answer to the same request. Rows that did not change stay the same objects, so that React leaves them alone. */
export function mergedListing(before: TraceListing, next: TraceListing): TraceListing {
  if (before === next) return before;
  const known = new Map(before.traces.map((trace) => [trace.traceId, trace]));
  const fresh = new Map([...before.fresh].filter(([, since]) => next.readMillis - since < FRESH_MILLIS));
  const traces = next.traces.map((trace) => {
    const old = known.get(trace.traceId);
    if (old === undefined) fresh.set(trace.traceId, next.readMillis);
    return old !== undefined && isSame(old, trace) ? old : trace;
  });
  const isUnchanged = traces.length === before.traces.length && traces.every((trace, index) => trace === before.traces[index]);
  return { ...next, traces: isUnchanged ? before.traces : traces, fresh };
}

/** The order of the list: as it came, the newest first, or the longest first. */
export function sortedTraces(traces: readonly TraceRow[], sort: 'longest' | ''): readonly TraceRow[] {
  return sort === 'longest' ? [...traces].sort((a, b) => b.wallNanos - a.wallNanos) : traces;
}
