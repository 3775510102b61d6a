/** Words for profiles: what their values are, and the sentences above the page. */
import type { FunctionChange, Profile, ProfileDiff, ProfileFunction, ProfileType } from '../api/types.gen';
import { ratio } from '../base/math';
import { formatBytes, formatCount, formatDuration, formatShare, signed } from './format';

/** A value in its unit, as the terminal writes it. */
export function formatOfUnit(unit: string): (value: number) => string {
  if (unit === 'nanoseconds') return formatDuration;
  const format = unit === 'bytes' ? formatBytes : formatCount;
  return (value) => format(Math.max(0, value));
}

/** `+1.20s`, `−3.1MB`, `±0`. */
export function changeOfValue(before: number, after: number, unit: string): string {
  if (before === after) return '±0';
  return signed(after - before, formatOfUnit(unit)(Math.abs(after - before)));
}

/** What values of a type are. `sentence` continues the name of a service. */
interface Words {
  readonly label: string;
  readonly sentence: (value: string) => string;
}

const LOCKS: Words = { label: 'waits for locks', sentence: (value) => `waited ${value} times for locks` };
const BLOCKED: Words = { label: 'blocking calls', sentence: (value) => `was blocked ${value} times` };

/** By name and sample type, or by sample type alone. */
const KNOWN: Readonly<Record<string, Words>> = {
  cpu: { label: 'CPU time', sentence: (value) => `used ${value} of CPU time` },
  wall: { label: 'wall time', sentence: (value) => `spent ${value} of wall time` },
  'process_cpu:samples': { label: 'CPU samples', sentence: (value) => `has ${value} CPU samples` },
  alloc_space: { label: 'memory allocated', sentence: (value) => `allocated ${value}` },
  alloc_objects: { label: 'objects allocated', sentence: (value) => `allocated ${value} objects` },
  inuse_space: { label: 'memory in use', sentence: (value) => `had ${value} of memory in use` },
  resident: { label: 'resident memory', sentence: (value) => `had ${value} of resident memory` },
  inuse_objects: { label: 'objects in use', sentence: (value) => `had ${value} objects in use` },
  goroutine: { label: 'goroutines', sentence: (value) => `had ${value} goroutines` },
  goroutines: { label: 'goroutines', sentence: (value) => `had ${value} goroutines` },
  'mutex:contentions': LOCKS,
  'mutex:delay': { label: 'time waiting for locks', sentence: (value) => `waited ${value} for locks` },
  'block:contentions': BLOCKED,
  'block:delay': { label: 'time in blocking calls', sentence: (value) => `was blocked for ${value}` },
  exception: { label: 'exceptions', sentence: (value) => `threw ${value} exceptions` },
};

function wordsOf(profileType: string, sampleType: string): Words {
  const [name = ''] = profileType.split(':', 1);
  return (
    KNOWN[`${name}:${sampleType}`] ??
    KNOWN[sampleType] ?? { label: `${name} ${sampleType}`.trim(), sentence: (value) => `has ${value} of ${name} ${sampleType}` }
  );
}

/** What a type is of: `CPU time`. Two types of a list that are alike have their names behind. */
export function labelOfType(type: ProfileType, all: readonly ProfileType[]): string {
  const labelOf = ({ profileType, sampleType }: ProfileType) => wordsOf(profileType, sampleType).label;
  const label = labelOf(type);
  const isAlone = all.every((other) => other.profileType === type.profileType || labelOf(other) !== label);
  return isAlone ? label : `${label} (${type.profileType.split(':').slice(0, 2).join(':')})`;
}

/** What the type of this name is of; its name if the server does not list it. */
export function labelOfName(profileType: string, all: readonly ProfileType[]): string {
  const type = all.find((other) => other.profileType === profileType);
  return type === undefined ? profileType : labelOfType(type, all);
}

/** What the name of a query says of its type. */
const typeOfQuery = (query: string): string => query.slice(0, Math.max(0, query.indexOf('{')));

/** What has a unit of time or bytes is one thing. */
const pronounOf = (unit: string): string => (unit === 'nanoseconds' || unit === 'bytes' ? 'it' : 'them');

/** `cart used 3.96s of CPU time`, and for states `on average`. */
function usageInWords(
  { query, sampleType, unit, isState }: Pick<Profile, 'query' | 'sampleType' | 'unit' | 'isState'>,
  service: string,
  total: number,
): string {
  const words = wordsOf(typeOfQuery(query), sampleType).sentence(formatOfUnit(unit)(total));
  return `${service} ${words}${isState ? ' on average' : ''}`;
}

/** The answer in parts, so that the page can mark the value and the function. */
export interface ProfileSentence {
  /** `cart used 3.96s of CPU time`, and for states `on average`. */
  readonly what: string;
  /** `58%`, of the function that has most itself; `null` if there is none. */
  readonly share: string | null;
  /** `it`, or `them` for what is counted. */
  readonly of: string;
  readonly function: string;
}

/** How much a service used, and most of it in which function. */
export function profileSentence(profile: Profile, service: string): ProfileSentence {
  const { unit, total, functions } = profile;
  const [first] = functions;
  return {
    what: usageInWords(profile, service, total),
    share: first === undefined || first.own <= 0 ? null : formatShare(ratio(first.own, total)),
    of: pronounOf(unit),
    function: first?.function ?? '',
  };
}

/** Change of a function's self share, in percentage points. */
export function pointsOf({ ownShare: [before, after] }: FunctionChange): number {
  return (after - before) * 100;
}

/** `+27.5`, `−3.0`, `0.0`. */
export function formatPoints(points: number): string {
  const digits = Math.abs(points).toFixed(1);
  return digits === '0.0' ? digits : signed(points, digits);
}

/** From this factor on, a change is a factor. */
const FACTOR_MIN = 3;

/** `12% more than`, `3.1 times as much as`, `as much as`. */
function comparedWith(before: number, after: number): string {
  const factor = ratio(after, before);
  if (factor >= FACTOR_MIN) return `${factor >= 10 ? formatCount(factor) : factor.toFixed(1)} times as much as`;
  const percent = Math.round(Math.abs(factor - 1) * 100);
  return percent === 0 ? 'as much as' : `${percent}% ${factor > 1 ? 'more' : 'less'} than`;
}

/** A comparison in parts. */
export interface DiffSentence {
  readonly what: string;
  /** `12% more than`; `null` if one of the sides has nothing. */
  readonly than: string | null;
  /** How much it was before; `null` if nothing. */
  readonly before: string | null;
  readonly of: string;
  /** The function whose part changed most; `null` if none did. */
  readonly largest: { readonly function: string; readonly from: string; readonly to: string; readonly points: string } | null;
}

/** How much more a service used than before, and which function changed most. */
export function diffSentence(diff: ProfileDiff, service: string): DiffSentence {
  const { unit, before, after, functions } = diff;
  const [first] = functions;
  const areBoth = before.total > 0 && after.total > 0;
  const isChanged = first !== undefined && formatPoints(pointsOf(first)) !== '0.0';
  return {
    what: usageInWords(diff, service, after.total),
    than: areBoth ? comparedWith(before.total, after.total) : null,
    before: before.total > 0 ? formatOfUnit(unit)(before.total) : null,
    of: pronounOf(unit),
    largest:
      areBoth && isChanged
        ? {
            function: first.function,
            from: formatShare(first.ownShare[0]),
            to: formatShare(first.ownShare[1]),
            points: formatPoints(pointsOf(first)),
          }
        : null,
  };
}

/** The functions in the order of a column, without those that do not match. */
export function shownFunctions(
  functions: readonly ProfileFunction[],
  sort: 'own' | 'total',
  matches: (name: string) => boolean,
): readonly ProfileFunction[] {
  const found = functions.filter((row) => matches(row.function));
  return sort === 'own' ? found : found.sort((a, b) => b.total - a.total || b.own - a.own);
}

/** The functions that had something themselves, now or before, without those that do not match. The server lists callers, too. */
export function changedFunctions(functions: readonly FunctionChange[], matches: (name: string) => boolean): readonly FunctionChange[] {
  return functions.filter(({ function: name, own: [before, after] }) => (before !== 0 || after !== 0) && matches(name));
}
