/** The URL is the state of the page: checked when read, printed when written. */
import type { FlameTime } from '../api/types.gen';
import type { Nanos } from '../base/brand';
import type { Excerpt } from '../logic/excerpt';
import { NOTHING_UNFOLDED, type Unfolded } from '../logic/foreign-runs';
import { isHandle } from '../logic/handles';
import { GROUPINGS, type Grouping, type OperationOrder, readOperationOrder } from '../logic/operations';
import { type Fold, NOTHING_FOLDED } from '../logic/rows';
import type { TimeRange } from '../logic/waterfall';

/** Search parameters of the list of recordings. */
export interface ListSearch {
  /** Words that the command has to contain. */
  readonly q?: string;
}

/** Search parameters of a recording. */
export interface RecordingSearch {
  /** Handle of the selected span. */
  readonly span?: string;
  /** Id of a span to select: a link from another recording or trace has no handle. */
  readonly id?: string;
  /** Handle of the selected pole. */
  readonly pole?: string;
  /** Handles of the poles that a run is imagined without: `p1.p3`. */
  readonly without?: string;
  /** Handle of the selected function. */
  readonly frame?: string;
  /** Selected range of time: `120000-4500000`, nanoseconds from the origin. */
  readonly range?: string;
  /** Number of the selected thread. */
  readonly thread?: number;
  /** Time range on the screen, spelled the same. */
  readonly t?: string;
  /** The folded spans: `s3.s9`, or `all.s1` for all except s1. */
  readonly fold?: string;
  /** Time that the flame graph shows; on-CPU by default. */
  readonly time?: Exclude<FlameTime, 'on_cpu'>;
  /** Node that fills the flame graph. */
  readonly node?: number;
  /** Runs of foreign frames that are unfolded: `n4.n90`, by their first nodes, or `all`. */
  readonly unfold?: string;
  /** Whether the source of the selected function is open. */
  readonly source?: 1;
  /** What rows of the trace are searched for. */
  readonly find?: string;
  /** Whether the trace shows only what was found. */
  readonly only?: 1;
  /** Whether the page shows the trace or its operations, if that does not follow from the rest. */
  readonly view?: View;
  /** What spans of an operation have in common; name and service by default. */
  readonly by?: Exclude<Grouping, 'operation'>;
  /** Order of the operations; by total time by default. */
  readonly sort?: OperationOrder;
  /** Key of the operation with the large histogram: `n3s1`. */
  readonly op?: string;
}

/** What the left half of a recording shows. */
export type View = 'trace' | 'operations';

// A URL of 400 handles is about 3 KiB; servers and chat programs take that.
const FOLDS_MAX = 400;
/** Poles of one question to the server. */
const WITHOUT_MAX = 100;
/** Runs that one has unfolded by hand; the toggle unfolds all. */
const UNFOLDED_MAX = 100;
const OPERATION = /^(n\d{1,9})?(s\d{1,9})?$/;
const NODE = /^n[1-9]\d{0,7}$/;
const QUERY_CHARACTERS_MAX = 200;
const SPAN_ID = /^[0-9a-f]{16}$/;
const RANGE = /^(-?\d{1,16})-(-?\d{1,16})$/;

/** Reads the search parameters of the list, without invalid ones. */
export function readListSearch(search: Readonly<Record<string, unknown>>): ListSearch {
  const { q } = search;
  // The router turns words that look like numbers into numbers.
  const words = typeof q === 'string' || typeof q === 'number' ? String(q).slice(0, QUERY_CHARACTERS_MAX) : '';
  return words === '' ? {} : { q: words };
}

/** Search parameters of a comparison: two recordings. */
export interface CompareSearch {
  readonly a?: string;
  readonly b?: string;
}

const RECORDING = /^(r[1-9]\d{0,9}|[0-9a-f]{32})$/;

/** Reads the search parameters of a comparison, without invalid ones. */
export function readCompareSearch(search: Readonly<Record<string, unknown>>): CompareSearch {
  const { a, b } = search;
  return {
    ...(typeof a === 'string' && RECORDING.test(a) ? { a } : {}),
    ...(typeof b === 'string' && RECORDING.test(b) ? { b } : {}),
  };
}

/** Reads the search parameters of a recording, without invalid ones. */
export function readRecordingSearch(search: Readonly<Record<string, unknown>>): RecordingSearch {
  const { span, id, pole, without, frame, range, thread, t, fold, time, node, unfold, source, find, only } = search;
  const { view, by, sort, op } = search;
  const grouping = GROUPINGS.find((known) => known === by);
  const order = readOperationOrder(sort);
  // The router turns words that look like numbers into numbers.
  const words = typeof find === 'string' || typeof find === 'number' ? String(find).slice(0, QUERY_CHARACTERS_MAX) : '';
  return {
    ...(isHandle(span, 's') ? { span } : {}),
    ...(typeof id === 'string' && SPAN_ID.test(id) ? { id } : {}),
    ...(isHandle(pole, 'p') ? { pole } : {}),
    ...(typeof without === 'string' && readWithout(without).length > 0 ? { without } : {}),
    ...(isHandle(frame, 'f') ? { frame } : {}),
    ...(typeof range === 'string' && readRange(range) !== null ? { range } : {}),
    ...(typeof thread === 'number' && Number.isSafeInteger(thread) && thread >= 0 ? { thread } : {}),
    ...(typeof t === 'string' && readRange(t) !== null ? { t } : {}),
    ...(typeof fold === 'string' && readFold(fold) !== null ? { fold } : {}),
    ...(time === 'off_cpu' || time === 'wall' ? { time } : {}),
    ...(typeof node === 'number' && Number.isSafeInteger(node) && node > 0 ? { node } : {}),
    ...(typeof unfold === 'string' && readUnfolded(unfold) !== null ? { unfold } : {}),
    ...(source === 1 || source === '1' ? { source: 1 } : {}),
    ...(words === '' ? {} : { find: words }),
    ...(words !== '' && (only === 1 || only === '1') ? { only: 1 } : {}),
    ...(view === 'trace' || view === 'operations' ? { view } : {}),
    ...(grouping === undefined || grouping === 'operation' ? {} : { by: grouping }),
    ...(order === null ? {} : { sort: order }),
    ...(typeof op === 'string' && op !== '' && OPERATION.test(op) ? { op } : {}),
  };
}

/** `p1.p3` as handles; empty if invalid. */
export function readWithout(text: string): readonly string[] {
  const handles = text.split('.');
  return handles.length <= WITHOUT_MAX && handles.every((handle) => isHandle(handle, 'p')) ? handles : [];
}

/** The poles that a run is imagined without, with one more or one less, in their order. */
export function toggledWithout(text: string | undefined, pole: string): string | null {
  const handles = new Set(text === undefined ? [] : readWithout(text));
  if (!handles.delete(pole)) handles.add(pole);
  const sorted = [...handles].sort((a, b) => Number(a.slice(1)) - Number(b.slice(1)));
  if (sorted.length > WITHOUT_MAX) return text ?? null;
  return sorted.length === 0 ? null : sorted.join('.');
}

/** `120000-4500000` as a range; `null` if invalid. */
export function readRange(text: string): TimeRange | null {
  const match = RANGE.exec(text);
  if (match === null) return null;
  const start = Number(match[1]);
  const end = Number(match[2]);
  return start < end ? { start: start as Nanos, end: end as Nanos } : null;
}

/** A range as text for the URL. */
export function printRange(range: TimeRange): string {
  return `${Math.floor(range.start)}-${Math.ceil(range.end)}`;
}

/** `s3.s9` or `all.s1` as a fold; `null` if invalid. */
export function readFold(text: string): Fold | null {
  const words = text.split('.');
  const all = words[0] === 'all';
  const handles = all ? words.slice(1) : words;
  if (handles.length > FOLDS_MAX || !handles.every((handle) => isHandle(handle, 's'))) return null;
  return { all, except: new Set(handles.map((handle) => Number(handle.slice(1)) - 1)) };
}

/** A fold as text for the URL, with at most 400 exceptions; `null` if nothing is folded. */
export function printFold(fold: Fold): string | null {
  const handles = [...fold.except]
    .sort((a, b) => a - b)
    .slice(0, FOLDS_MAX)
    .map((span) => `s${span + 1}`);
  if (fold.all) return ['all', ...handles].join('.');
  return handles.length === 0 ? null : handles.join('.');
}

/** The fold of a URL. */
export function foldOf(search: RecordingSearch): Fold {
  return search.fold === undefined ? NOTHING_FOLDED : (readFold(search.fold) ?? NOTHING_FOLDED);
}

/** `n4.n90` or `all` as unfolded runs; `null` if invalid. */
export function readUnfolded(text: string): Unfolded | null {
  if (text === 'all') return 'all';
  const words = text.split('.');
  if (words.length > UNFOLDED_MAX || !words.every((word) => NODE.test(word))) return null;
  return new Set(words.map((word) => Number(word.slice(1))));
}

/** The unfolded runs of a URL. */
export function unfoldedOf(search: RecordingSearch): Unfolded {
  return search.unfold === undefined ? NOTHING_UNFOLDED : (readUnfolded(search.unfold) ?? NOTHING_UNFOLDED);
}

/** The run that begins at a node unfolded, or folded again. With all unfolded, and with too many, nothing changes. */
export function toggledRun(search: RecordingSearch, first: number): RecordingSearch {
  const unfolded = unfoldedOf(search);
  if (unfolded === 'all') return search;
  const nodes = new Set(unfolded);
  if (!nodes.delete(first)) nodes.add(first);
  if (nodes.size > UNFOLDED_MAX) return search;
  return changed(search, { unfold: nodes.size === 0 ? null : [...nodes].map((node) => `n${node}`).join('.') });
}

/** What belongs to the nodes of one graph, for another graph: no zoom, and no single runs unfolded. */
function ofNewGraph({ unfold }: RecordingSearch): { readonly node: null; readonly unfold: 'all' | null } {
  return { node: null, unfold: unfold === 'all' ? unfold : null };
}

/** The search with changed parameters; `null` removes one. */
export function changed(
  search: RecordingSearch,
  change: { readonly [Key in keyof RecordingSearch]?: RecordingSearch[Key] | null },
): RecordingSearch {
  const merged = { ...search, ...change };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null && value !== undefined)) as RecordingSearch;
}

/**
 * What the page shows. A recording of many traces begins with its operations, until the address names a part of the trace: a link to a span shows the
 * span.
 */
export function viewOf({ view, span, id, pole, t, fold, find }: RecordingSearch, isOfRequests: boolean): View {
  if (view !== undefined) return view;
  const isInTrace = [span, id, pole, t, fold, find].some((part) => part !== undefined);
  return isOfRequests && !isInTrace ? 'operations' : 'trace';
}

/** Only the rows of the trace that a search finds. */
export function showingOnly(search: RecordingSearch, text: string): RecordingSearch {
  return changed(search, { find: text, only: 1, view: null });
}

/** Another part of the recording: a new graph, so the zoom resets. */
export function selectingExcerpt(search: RecordingSearch, { range, thread }: Partial<Excerpt>): RecordingSearch {
  return changed(search, {
    ...(range === undefined ? {} : { range: range === null ? null : printRange(range) }),
    ...(thread === undefined ? {} : { thread }),
    ...ofNewGraph(search),
  });
}

/** Another time of the flame graph: a new graph, so the zoom resets; the function stays selected. */
export function showingTime(search: RecordingSearch, time: FlameTime): RecordingSearch {
  return changed(search, { time: time === 'on_cpu' ? null : time, ...ofNewGraph(search) });
}

/** The selection of a span: a selected function stays, the zoom of another span's flame graph resets. */
export function selectingSpan(search: RecordingSearch, span: string | null, pole: string | null): RecordingSearch {
  return changed(search, { span, id: null, pole, ...(span === (search.span ?? null) ? {} : ofNewGraph(search)) });
}
