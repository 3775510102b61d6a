/** States that grow, in the words of `longpole growth`, and the address of their profiles. */
import type { GrowingState } from '../api/types.gen';
import { formatCount, formatShare, unixMicros } from './format';
import { formatOfUnit } from './profile-words';
import { type ProfilesSearch, SINCE_LONGEST } from './profiles-search';
import { formatDay } from './scatter';
import { type Matcher, printSelector, readSelector } from './selector';

const GROWS: Readonly<Record<string, string>> = {
  inuse_space: 'memory in use grows',
  space: 'memory in use grows',
  resident: 'resident memory grows',
  goroutine: 'goroutines grow',
  goroutines: 'goroutines grow',
  threads: 'threads grow',
};

const DAY_NANOS = 86_400e9;
const RATE_SHORTEST = [60e9, 'a minute'] as const;
/** Units of a rate, the longest first: none is longer than the time that it is of. */
const RATES = [[DAY_NANOS, 'a day'], [3600e9, 'an hour'], RATE_SHORTEST] as const;

/** Counts below this have a decimal. */
const WHOLE_MIN = 100;

function formatAmount(amount: number, unit: string): string {
  return unit === 'count' && Math.abs(amount) < WHOLE_MIN ? amount.toFixed(1) : formatOfUnit(unit)(Math.round(amount));
}

/** The type in the query of a state, and its labels except the service. */
function partsOfQuery(query: string): { readonly type: string; readonly labels: readonly Matcher[] } {
  const brace = query.indexOf('{');
  if (brace < 0) return { type: query, labels: [] };
  const { matchers } = readSelector(query.slice(brace));
  return { type: query.slice(0, brace), labels: matchers.filter(({ name }) => name !== 'service_name') };
}

/** The profiles of a state that grows, with the function that holds most of the growth. */
export function searchOfGrowth({ service, query, functions }: GrowingState): ProfilesSearch {
  const { type, labels } = partsOfQuery(query);
  const [first] = functions;
  return {
    service,
    type,
    since: SINCE_LONGEST,
    ...(labels.length === 0 ? {} : { labels: printSelector(labels) }),
    ...(first === undefined ? {} : { function: first.function }),
  };
}

/** A state that grows, in parts, so that the page can mark names. */
export interface GrowthSentence {
  readonly service: string;
  /** Labels of the state; `null` if it is the only one of its service and type. */
  readonly labels: string | null;
  /** `memory in use grows by 2.0MB a day (1.0%)`, and `since 13 Nov` unless it grew before the first profile. */
  readonly grows: string;
  /** The label of a version whose first profiles came when it began to grow. */
  readonly version: string | null;
  /** The function that holds most of the growth, and how much of it. */
  readonly function: { readonly name: string; readonly share: string } | null;
}

/** A state of `all` in words, in the zone that is `zoneOf(micros)` minutes behind UTC. */
export function growthSentence(state: GrowingState, all: readonly GrowingState[], zoneOf: (micros: number) => number): GrowthSentence {
  const { service, query, sampleType, unit, processes, perDay, values, overNanos, isTakenBack, version, functions } = state;
  const { sinceUnixNano, sinceWithinNanos } = state;
  const { type, labels } = partsOfQuery(query);
  const isAlone = all.every((other) => other === state || other.service !== service || partsOfQuery(other.query).type !== type);
  const [before] = values;
  const [nanos, rate] = RATES.find(([nanos]) => overNanos >= nanos) ?? RATE_SHORTEST;
  const amount = (perDay * nanos) / DAY_NANOS;
  const part = before > 0 ? ` (${((amount / before) * 100).toFixed(1)}%)` : '';
  const each = processes > 1 ? ` in each of ${formatCount(processes)} processes` : '';
  const begin = sinceUnixNano === null ? null : unixMicros(sinceUnixNano);
  const about = sinceWithinNanos > 0 ? 'about ' : '';
  const since = begin === null ? '' : ` since ${about}${formatDay(begin, zoneOf(begin))}`;
  const until = isTakenBack ? ' until a restart takes it back,' : '';
  const [first] = functions;
  return {
    service,
    labels: isAlone || labels.length === 0 ? null : printSelector(labels),
    grows: `${GROWS[sampleType] ?? 'objects in use grow'} by ${formatAmount(amount, unit)} ${rate}${part}${each}${until}${since}`,
    version,
    function: first === undefined ? null : { name: first.function, share: formatShare(first.share) },
  };
}
