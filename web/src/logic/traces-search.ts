/** The search for traces: from the address of the page to the request, and to what the page leaves out of the answer. */
import type { TraceRow } from '../api/types.gen';
import type { Micros, Nanos } from '../base/brand';
import { printDuration, readDuration } from './duration';
import { unixMicros } from './format';

/** Search parameters of the list of traces. */
export interface TracesSearch {
  readonly service?: string;
  readonly operation?: string;
  /** Pairs `key=value`, separated by spaces; a value with spaces stands in quotes. */
  readonly tags?: string;
  /** Shortest and longest duration of the span that matches, as Jaeger spells them. */
  readonly minDuration?: string;
  readonly maxDuration?: string;
  readonly sort?: 'longest' | '';
  /** First and last start of a trace, in microseconds since 1970. */
  readonly start?: number;
  readonly end?: number;
  /** Shortest and longest duration of the whole trace. */
  readonly minWall?: string;
  readonly maxWall?: string;
  /** Whether the page asks again each second. */
  readonly live?: 1;
  /** What the traces come after: the `next` of an answer. */
  readonly after?: string;
}

/** The traces that a rectangle in the plot selects: by their start and their duration. What is `null` has no bound. */
export interface TracesBox {
  readonly start: Micros | null;
  readonly end: Micros | null;
  readonly min: Nanos | null;
  readonly max: Nanos | null;
}

/** Traces of an answer: as many as the plot draws without delay. The server's limit is 5,000. */
export const TRACES_MAX = 1000;

const CHARACTERS_MAX = 400;
const TEXTS = ['service', 'operation', 'tags', 'minDuration', 'maxDuration'] as const;
const WALLS = ['minWall', 'maxWall'] as const;
const CURSOR = /^-?\d{1,19},[0-9a-f]{32}$/;

/** The router turns words that look like numbers into numbers. */
const textOf = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' ? String(value).slice(0, CHARACTERS_MAX) : '';

function readMicros(value: unknown): number | null {
  const text = textOf(value);
  return /^\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : null;
}

/** Reads the search parameters of the list of traces, without invalid ones. */
export function readTracesSearch(search: Readonly<Record<string, unknown>>): TracesSearch {
  const texts = TEXTS.flatMap((name) => (textOf(search[name]) === '' ? [] : [[name, textOf(search[name])] as const]));
  const start = readMicros(search.start);
  const end = readMicros(search.end);
  const isRange = start === null || end === null || start < end;
  const [min, max] = WALLS.map((name) => readDuration(textOf(search[name])));
  const areWalls = min == null || max == null || min < max;
  const walls = WALLS.flatMap((name) =>
    areWalls && readDuration(textOf(search[name])) !== null ? [[name, textOf(search[name])] as const] : [],
  );
  return {
    ...Object.fromEntries([...texts, ...walls]),
    ...(search.sort === 'longest' ? { sort: 'longest' as const } : {}),
    ...(start !== null && isRange ? { start } : {}),
    ...(end !== null && isRange ? { end } : {}),
    ...(textOf(search.live) === '1' ? { live: 1 as const } : {}),
    ...(CURSOR.test(textOf(search.after)) ? { after: textOf(search.after) } : {}),
  };
}

/** `a=1 b="two words"` as pairs; `null` if a word is no pair. */
export function readTags(text: string): ReadonlyMap<string, string> | null {
  const pairs = new Map<string, string>();
  const words = text.match(/[^\s=]+=("[^"]*"|\S*)|\S+/g) ?? [];
  for (const word of words) {
    const at = word.indexOf('=');
    if (at < 1) return null;
    pairs.set(word.slice(0, at), word.slice(at + 1).replace(/^"(.*)"$/, '$1'));
  }
  return pairs;
}

/** The rectangle of an address. */
export function boxOf(search: TracesSearch): TracesBox {
  return {
    start: (search.start ?? null) as Micros | null,
    end: (search.end ?? null) as Micros | null,
    min: readDuration(search.minWall ?? ''),
    max: readDuration(search.maxWall ?? ''),
  };
}

/** The part of an address that stands for a rectangle. Durations grow to four digits, so that nothing inside is lost. */
export function searchOfBox(box: TracesBox): Pick<TracesSearch, 'start' | 'end' | 'minWall' | 'maxWall'> {
  return {
    ...(box.start === null ? {} : { start: Math.floor(box.start) }),
    ...(box.end === null ? {} : { end: Math.ceil(box.end) }),
    ...(box.min === null ? {} : { minWall: printDuration(box.min, 'down') }),
    ...(box.max === null ? {} : { maxWall: printDuration(box.max, 'up') }),
  };
}

/** The address with another rectangle, or without one. Everything else stays. */
export function withBox(search: TracesSearch, box: TracesBox | null): TracesSearch {
  const { start: _start, end: _end, minWall: _min, maxWall: _max, after: _after, ...rest } = search;
  return box === null ? rest : { ...rest, ...searchOfBox(box) };
}

/** Whether the rectangle bounds anything. */
export function isBounded({ start, end, min, max }: TracesBox): boolean {
  return start !== null || end !== null || min !== null || max !== null;
}

/** When a trace started. */
export function startOf(trace: TraceRow): Micros {
  return unixMicros(trace.startUnixNano);
}

/** The traces inside of the rectangle. */
export function tracesInBox(traces: readonly TraceRow[], box: TracesBox): readonly TraceRow[] {
  if (!isBounded(box)) return traces;
  const { start, end, min, max } = box;
  return traces.filter((trace) => {
    const from = startOf(trace);
    return (
      (start === null || from >= start) &&
      (end === null || from <= end) &&
      (min === null || trace.wallNanos >= min) &&
      (max === null || trace.wallNanos <= max)
    );
  });
}

/**
 * The parameters of the request, or what is wrong with the search.
 *
 * The server compares times and durations with those of a span that matches, the plot with those of the whole trace:
 *
 *     trace    ├──────────── wall ────────────┤      starts in the rectangle
 *     span of the service ─────────► ├──────┤        may start behind it, and is shorter
 *
 * So the request does not hold the durations of the rectangle, and its end is later by the longest of them; `tracesInBox` leaves out the rest.
 */
export function requestOf(search: TracesSearch): { readonly parameters: Readonly<Record<string, string>>; readonly wrong: string | null } {
  const tags = readTags(search.tags ?? '');
  const durations = [search.minDuration, search.maxDuration].filter((text) => text !== undefined && text !== '');
  const badDuration = durations.find((text) => readDuration(text ?? '') === null);
  const wrong =
    tags === null
      ? 'Write attributes as key=value, with spaces between them.'
      : badDuration !== undefined
        ? `${badDuration} is not a duration: write 100ms, 1.5s or 2m.`
        : null;
  const { service = '', operation = '', minDuration = '', maxDuration = '' } = search;
  const { start, end, max } = boxOf(search);
  const isAnySpan = TEXTS.every((name) => (search[name] ?? '') === '');
  const later = isAnySpan || max === null ? 0 : Math.ceil(max / 1000);
  const { minWall = '', maxWall = '' } = search;
  const all = {
    service,
    operation,
    minDuration,
    maxDuration,
    tags: tags === null || tags.size === 0 ? '' : JSON.stringify(Object.fromEntries(tags)),
    start: start === null ? '' : String(start),
    end: end === null ? '' : String(end + later),
    minWall,
    maxWall,
    after: search.after ?? '',
    limit: String(TRACES_MAX),
  };
  return { parameters: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== '')), wrong };
}
