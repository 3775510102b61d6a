/** The page of profiles: from its address to the requests. */
import type { ProfileType } from '../api/types.gen';
import type { Micros } from '../base/brand';
import { clamp } from '../base/math';
import { formatCommand } from './format';
import { startsInWords } from './scatter';
import { type Matcher, queryOf, readSelector } from './selector';

/** How far profiles go back. */
export const SINCE = ['15m', '1h', '6h', '1d', '7d'] as const;
export type Since = (typeof SINCE)[number];
export const SINCE_DEFAULT: Since = '1h';
export const SINCE_LONGEST: Since = '7d';

/** How much earlier the profiles are that a comparison begins with. */
export const EARLIER = ['1h', '1d', '7d'] as const;
export type Earlier = (typeof EARLIER)[number];

/** Search parameters of the page of profiles. */
export interface ProfilesSearch {
  readonly service?: string;
  /** The whole name of a type. */
  readonly type?: string;
  /** Conditions on labels. */
  readonly labels?: string;
  readonly since?: Since;
  /** First time and the first that is too late, in microseconds since 1970; instead of `since`. */
  readonly start?: number;
  readonly end?: number;
  /** Compare with the same length of time so much earlier, */
  readonly before?: Earlier;
  /** or with the same time of series with these labels instead of `labels`. */
  readonly beforeLabels?: string;
  /** Column that orders the functions; self by default. */
  readonly sort?: 'total';
  /** What functions are searched for. */
  readonly find?: string;
  /** Name of the selected function. */
  readonly function?: string;
  /** What fills the flame graph: the end of its stack, callers first, as `serve;parse`. */
  readonly zoom?: string;
}

const MINUTE_MICROS = 60e6;
const MICROS_OF: Readonly<Record<Since, number>> = {
  '15m': 15 * MINUTE_MICROS,
  '1h': 60 * MINUTE_MICROS,
  '6h': 360 * MINUTE_MICROS,
  '1d': 1440 * MINUTE_MICROS,
  '7d': 10_080 * MINUTE_MICROS,
};
const WORDS: Readonly<Record<Since, string>> = { '15m': '15 minutes', '1h': 'hour', '6h': '6 hours', '1d': 'day', '7d': '7 days' };
const EARLIER_WORDS: Readonly<Record<Earlier, string>> = { '1h': '1 hour', '1d': '1 day', '7d': '7 days' };

/** Characters of a field, and of a stack in the address. */
const CHARACTERS_MAX = 1000;
const TEXTS = ['service', 'type', 'labels', 'beforeLabels', 'find', 'function', 'zoom'] as const;

/** The router turns words that look like numbers into numbers. */
const textOf = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' ? String(value).slice(0, CHARACTERS_MAX) : '';

function readMicros(value: unknown): number | null {
  const text = textOf(value);
  return /^\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : null;
}

/** Reads the search parameters of the page, without invalid ones. */
export function readProfilesSearch(search: Readonly<Record<string, unknown>>): ProfilesSearch {
  const texts = TEXTS.flatMap((name) => (textOf(search[name]) === '' ? [] : [[name, textOf(search[name])] as const]));
  const start = readMicros(search.start);
  const end = readMicros(search.end);
  const since = SINCE.find((known) => known === search.since);
  const before = EARLIER.find((known) => known === search.before);
  const range = start !== null && end !== null && start < end ? { start, end } : null;
  return {
    ...Object.fromEntries(texts),
    ...(range ?? (since === undefined ? {} : { since })),
    ...(before === undefined || textOf(search.beforeLabels) !== '' ? {} : { before }),
    ...(search.sort === 'total' ? { sort: 'total' as const } : {}),
  };
}

/** `last hour`, `last 7 days`. */
export function sinceInWords(since: Since): string {
  return `last ${WORDS[since]}`;
}

/** `in the last hour`, `from 28 Nov 14:05:00 to 15:05:00`. */
export function timeInWords({ since = SINCE_DEFAULT, start, end }: ProfilesSearch, zoneMinutes: number): string {
  if (start === undefined || end === undefined) return `in the ${sinceInWords(since)}`;
  return `from ${startsInWords({ start: start as Micros, end: end as Micros }, zoneMinutes).replace('–', ' to ')}`;
}

/** `1 hour earlier`. */
export function earlierInWords(earlier: Earlier): string {
  return `${EARLIER_WORDS[earlier]} earlier`;
}

/** The range of an address: its own, or so much back from now. */
export function rangeOf({ since = SINCE_DEFAULT, start, end }: ProfilesSearch, now: Micros): readonly [Micros, Micros] {
  if (start !== undefined && end !== undefined) return [start as Micros, end as Micros];
  return [(now - MICROS_OF[since]) as Micros, now];
}

/** The range of an address moved by its own length: back, or forward. */
export function movedRange(search: ProfilesSearch, now: Micros, direction: -1 | 1): Pick<ProfilesSearch, 'start' | 'end'> {
  const [start, end] = rangeOf(search, now);
  const length = (end - start) * direction;
  return { start: Math.round(start + length), end: Math.round(end + length) };
}

/** The range to list services and types of: that of the address and the last days, so that a quiet hour hides none. */
export function typesParametersOf(search: ProfilesSearch, now: Micros): Readonly<Record<string, string>> {
  const [start, end] = rangeOf(search, now);
  return { start: String(Math.min(start, now - MICROS_OF[SINCE_LONGEST])), end: String(Math.max(end, now)) };
}

/** The service and the type of the profiles on the page. */
export interface ProfileChoice {
  readonly service: string;
  readonly type: string;
}

const CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds';

/** Types by how often readers want them: CPU time, then wall time, then all others. */
const rankOf = ({ profileType, sampleType }: ProfileType): number =>
  profileType.startsWith('process_cpu:cpu:') ? 0 : sampleType === 'cpu' ? 1 : sampleType === 'wall' ? 2 : 3;

/** The services of a server, by name. */
export function servicesOf(types: readonly ProfileType[]): readonly string[] {
  return [...new Set(types.flatMap(({ services }) => services))].sort();
}

/** The types of a service, the one that readers want most first. */
export function typesOf(types: readonly ProfileType[], service: string): readonly ProfileType[] {
  return types.filter(({ services }) => services.includes(service)).sort((a, b) => rankOf(a) - rankOf(b));
}

/** The service and the type of an address; where it names none, the first that has what readers want most. `null` if there are no profiles. */
export function choiceOf(types: readonly ProfileType[], search: ProfilesSearch): ProfileChoice | null {
  const [first] = [...types].sort((a, b) => rankOf(a) - rankOf(b));
  const ofType = search.type === undefined ? first : types.find(({ profileType }) => profileType === search.type);
  const service = search.service ?? ofType?.services[0] ?? first?.services[0];
  if (service === undefined) return null;
  return { service, type: search.type ?? typesOf(types, service)[0]?.profileType ?? CPU };
}

/** Functions of an answer, and boxes of its flame graph. */
export const FUNCTIONS_MAX = 2000;
const NODES_MAX = 4000;
const CHANGES_MAX = 500;

/** The profiles that an address names. It has no times: those of `since` count back from when the request is sent. */
export interface ProfileRequest {
  readonly query: string;
  /** The query to compare with; `null` for none. */
  readonly before: string | null;
  readonly range: Pick<ProfilesSearch, 'since' | 'start' | 'end'>;
  readonly earlier: Earlier | null;
}

/** The request of an address, and what is wrong with its labels. */
export function readRequest(
  search: ProfilesSearch,
  { service, type }: ProfileChoice,
): { readonly request: ProfileRequest; readonly wrong: string | null; readonly wrongBefore: string | null } {
  const labels = readSelector(search.labels ?? '');
  const other = readSelector(search.beforeLabels ?? '');
  const of = (matchers: readonly Matcher[]) => queryOf(type, service, matchers);
  const { since = SINCE_DEFAULT, start, end } = search;
  const range = start === undefined || end === undefined ? { since } : { start, end };
  const query = of(labels.matchers);
  const isCompared = search.beforeLabels !== undefined || search.before !== undefined;
  const before = !isCompared ? null : search.beforeLabels === undefined ? query : of(other.matchers);
  return { request: { query, before, range, earlier: search.before ?? null }, wrong: labels.wrong, wrongBefore: other.wrong };
}

/** The command that shows the same in a terminal; `null` if it has no such option. */
export function commandOf({ query, before, range, earlier }: ProfileRequest, origin: string): string | null {
  if (range.since === undefined || (before !== null && earlier === null)) return null;
  const diff = earlier === null ? [] : ['--diff', earlier];
  return formatCommand(['longpole', 'profile', query, '--since', range.since, ...diff, '--at', origin]);
}

/** The parameters of the request for the profiles. */
export function profileParametersOf({ query, range }: ProfileRequest, now: Micros): Readonly<Record<string, string>> {
  const [start, end] = rangeOf(range, now);
  return { query, start: String(start), end: String(end), limit: String(FUNCTIONS_MAX), nodes: String(NODES_MAX) };
}

/** Values of a line: more would lie closer than a screen shows, and in shorter steps only some have one of the profiles that SDKs send every 15 seconds. */
const VALUES_MAX = 240;
const STEP_MICROS_MIN = 30e6;

/** The parameters of the request for values over time. */
export function valuesParametersOf({ query, range }: ProfileRequest, now: Micros): Readonly<Record<string, string>> {
  const [start, end] = rangeOf(range, now);
  const steps = clamp(Math.floor((end - start) / STEP_MICROS_MIN), 1, VALUES_MAX);
  return { query, start: String(start), end: String(end), steps: String(steps) };
}

/** The parameters of the request for the comparison. */
export function diffParametersOf({ query, before, range, earlier }: ProfileRequest, now: Micros): Readonly<Record<string, string>> {
  const [start, end] = rangeOf(range, now);
  const back = earlier === null ? 0 : MICROS_OF[earlier];
  return {
    query,
    before: before ?? query,
    start: String(start),
    end: String(end),
    beforeStart: String(start - back),
    beforeEnd: String(end - back),
    limit: String(CHANGES_MAX),
  };
}
