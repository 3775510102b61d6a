/** The page's requests to the server, and how long answers stay valid. */
import { QueryClient, queryOptions, useQuery } from '@tanstack/react-query';
import { api } from '../api/client';
import { ApiError } from '../api/error';
import type { FlameTime } from '../api/types.gen';
import type { Micros } from '../base/brand';
import type { Excerpt } from '../logic/excerpt';
import {
  diffParametersOf,
  type ProfileRequest,
  type ProfilesSearch,
  profileParametersOf,
  typesParametersOf,
  valuesParametersOf,
} from '../logic/profiles-search';
import { mapRequestOf, type Range } from '../logic/service-map';
import { listingOf, mergedListing, type TraceListing } from '../logic/trace-listing';
import { TRACES_MAX } from '../logic/traces-search';
import type { TimeRange } from '../logic/waterfall';

// A sealed recording never changes, so loaded data stays valid while the page is open.
const SEALED = { staleTime: Number.POSITIVE_INFINITY, refetchOnWindowFocus: false } as const;
const RETRIES_MAX = 6;

/** A client that retries only if that can help: the server may come back, a refusal stays. */
export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        networkMode: 'always',
        retry: (failures, error) => error instanceof ApiError && error.kind === 'gone' && failures < RETRIES_MAX,
        retryDelay: (failures) => Math.min(500 * 2 ** failures, 10_000),
      },
    },
  });
}

/** Services come with time. */
const GROWING = { staleTime: 2_000, refetchInterval: 5_000 } as const;

export const servicesQuery = () => queryOptions({ queryKey: ['services'], queryFn: ({ signal }) => api.services(signal), ...GROWING });

/** What the server of the page has, which never changes while the page is open. */
export const serverQuery = () =>
  queryOptions({ queryKey: ['server'], queryFn: ({ signal }) => api.server(signal), ...SEALED, gcTime: Number.POSITIVE_INFINITY });

/** Whether the page is one of `longpole serve`. */
export const useIsServer = (): boolean => useQuery(serverQuery()).data?.traces === true;

/** Where the server of the page takes spans and profiles, by protocol; the usual ports until it says, and if it has none. */
export interface Receivers {
  readonly host: string;
  readonly otlpHttpPort: number;
  readonly otlpGrpcPort: number;
  readonly zipkinPort: number;
  readonly pyroscopePort: number;
  readonly needsToken: boolean;
}

export function useReceivers(): Receivers {
  const server = useQuery(serverQuery()).data;
  return {
    host: window.location.hostname,
    otlpHttpPort: server?.otlpHttpPort ?? 4318,
    otlpGrpcPort: server?.otlpGrpcPort ?? 4317,
    zipkinPort: server?.zipkinPort ?? 9411,
    pyroscopePort: server?.pyroscopePort ?? 4040,
    needsToken: server?.needsToken ?? false,
  };
}

/** How a list of traces follows the server. */
export interface Following {
  /** Whether it asks again each second. */
  readonly isLive: boolean;
  /** Whether a reader points at something that must not move. */
  readonly isHeld: boolean;
}

const LIVE_MILLIS = 1_000;
/** Between two attempts to reach a server that is gone, and between two looks for the first trace. */
const RETRY_MILLIS = 5_000;

export const tracesQuery = (search: Readonly<Record<string, string>>, { isLive, isHeld }: Following) =>
  queryOptions({
    queryKey: ['traces', search],
    queryFn: async ({ signal }): Promise<TraceListing> => listingOf(await api.traces(search, signal), Date.now()),
    placeholderData: (previous) => previous,
    structuralSharing: (before, next) => (before === undefined ? next : mergedListing(before as TraceListing, next as TraceListing)),
    staleTime: 2_000,
    // A live list reports at once that the server is gone, and its interval asks again.
    ...(isLive ? { retry: false } : {}),
    refetchInterval: ({ state: { data, status } }) => {
      if (isLive && status === 'error') return RETRY_MILLIS;
      if (isLive) return isHeld ? false : LIVE_MILLIS;
      return data?.traces.length === 0 ? RETRY_MILLIS : false;
    },
  });

/** Traces whose critical paths the page has read: those of the list, a second of work at most. */
const POLES_OF_TRACES = String(TRACES_MAX);

/** The long poles of the traces that a search finds. Newer traces change them little. */
export const sharedPolesQuery = ({ after: _after, ...search }: Readonly<Record<string, string>>) =>
  queryOptions({
    queryKey: ['shared poles', search],
    queryFn: ({ signal }) => api.sharedPoles({ ...search, limit: POLES_OF_TRACES }, signal),
    staleTime: MAP_FRESH_MILLIS,
    placeholderData: (previous) => previous,
  });

/** The server reads up to 2,000 traces for it. */
const MAP_FRESH_MILLIS = 30_000;

export const serviceMapQuery = (range: Range) =>
  queryOptions({
    queryKey: ['service map', range],
    queryFn: ({ signal }) => api.serviceMap(mapRequestOf(range, (Date.now() * 1000) as Micros), signal),
    staleTime: MAP_FRESH_MILLIS,
    refetchInterval: ({ state: { data } }) => (data?.traces === 0 ? RETRY_MILLIS : false),
  });

const nowMicros = (): Micros => (Date.now() * 1000) as Micros;

/** Services and types come with time. */
export const profileTypesQuery = ({ start, end, since }: ProfilesSearch) => {
  const range = start === undefined || end === undefined ? { ...(since === undefined ? {} : { since }) } : { start, end };
  return queryOptions({
    queryKey: ['profile types', range],
    queryFn: ({ signal }) => api.profileTypes(typesParametersOf(range, nowMicros()), signal),
    placeholderData: (previous) => previous,
    staleTime: MAP_FRESH_MILLIS,
    refetchInterval: ({ state: { data } }) => (data === undefined || data.types.length === 0 ? RETRY_MILLIS : MAP_FRESH_MILLIS),
  });
};

export const profileQuery = (request: ProfileRequest) =>
  queryOptions({
    queryKey: ['profile', request.query, request.range],
    queryFn: ({ signal }) => api.profile(profileParametersOf(request, nowMicros()), signal),
    staleTime: MAP_FRESH_MILLIS,
    refetchInterval: ({ state: { data } }) => (data?.total === 0 ? RETRY_MILLIS : false),
  });

export const profileValuesQuery = (request: ProfileRequest) =>
  queryOptions({
    queryKey: ['profile values', request.query, request.range],
    queryFn: ({ signal }) => api.profileValues(valuesParametersOf(request, nowMicros()), signal),
    staleTime: MAP_FRESH_MILLIS,
  });

export const profileDiffQuery = (request: ProfileRequest) =>
  queryOptions({
    queryKey: ['profile diff', request],
    queryFn: ({ signal }) => api.profileDiff(diffParametersOf(request, nowMicros()), signal),
    staleTime: MAP_FRESH_MILLIS,
  });

/** The server reads the profiles of a week for it. */
const GROWTH_FRESH_MILLIS = 300_000;

export const growthQuery = () =>
  queryOptions({ queryKey: ['growth'], queryFn: ({ signal }) => api.growth(signal), staleTime: GROWTH_FRESH_MILLIS });

export const recordingsQuery = () =>
  queryOptions({
    queryKey: ['recordings'],
    queryFn: ({ signal }) => api.recordings(signal),
    staleTime: 2_000,
    refetchInterval: ({ state: { data } }) =>
      data === undefined || (data.recordings.length > 0 && !data.recordings.some(({ state }) => state === 'recording'))
        ? false
        : LIVE_MILLIS,
  });

export const summaryQuery = (recording: string) =>
  queryOptions({
    queryKey: [recording, 'summary'],
    queryFn: ({ signal }) => api.summary(recording, signal),
    ...SEALED,
    // A run that goes on has its answer when it ends.
    refetchInterval: ({ state: { error } }) => (error instanceof ApiError && error.code === 'still_recording' ? LIVE_MILLIS : false),
  });

export const polesQuery = (recording: string) =>
  queryOptions({ queryKey: [recording, 'poles'], queryFn: ({ signal }) => api.poles(recording, signal), ...SEALED });

/** `without`: handles of poles, `p1.p3`. */
export const whatIfQuery = (recording: string, without: string) =>
  queryOptions({
    queryKey: [recording, 'what if', without],
    queryFn: ({ signal }) => api.whatIf(recording, without.split('.'), signal),
    placeholderData: (previous) => previous,
    ...SEALED,
  });

export const treeQuery = (recording: string) =>
  queryOptions({
    queryKey: [recording, 'tree'],
    queryFn: ({ signal }) => api.tree(recording, signal),
    ...SEALED,
    // Compare columns by identity; comparing a million numbers would take longer than drawing them.
    structuralSharing: false,
  });

export const spanQuery = (recording: string, handle: string) =>
  queryOptions({
    queryKey: [recording, 'span', handle],
    queryFn: ({ signal }) => api.span(recording, handle, signal),
    ...SEALED,
  });

/** An excerpt as parameters of a request. */
const parametersOf = ({ range, thread }: Excerpt) => ({
  ...(range === null ? {} : { from: `${Math.round(range.start)}`, to: `${Math.round(range.end)}` }),
  ...(thread === null ? {} : { thread: `${thread}` }),
});

export const diffQuery = (before: string, after: string) =>
  queryOptions({ queryKey: [after, 'diff', before], queryFn: ({ signal }) => api.diff(before, after, signal), ...SEALED });

export const threadsQuery = (recording: string, range: TimeRange | null) =>
  queryOptions({
    queryKey: [recording, 'threads', range],
    queryFn: ({ signal }) => api.threads(recording, parametersOf({ range, thread: null }), signal),
    ...SEALED,
  });

/** What threads did in a range, in `bins` pieces. While the reader moves on, the last answer stays. */
export const lanesQuery = (recording: string, range: TimeRange, bins: number, limit: number) =>
  queryOptions({
    queryKey: [recording, 'lanes', range, bins, limit],
    queryFn: ({ signal }) => api.lanes(recording, parametersOf({ range, thread: null }), bins, limit, signal),
    placeholderData: (previous) => previous,
    structuralSharing: false,
    ...SEALED,
  });

export const flameQuery = (recording: string, span: string | null, time: FlameTime, excerpt: Excerpt) =>
  queryOptions({
    queryKey: [recording, 'flame', span, time, excerpt],
    queryFn: ({ signal }) => api.flame(recording, span, time, parametersOf(excerpt), signal),
    ...SEALED,
    structuralSharing: false,
  });

export const frameQuery = (recording: string, handle: string) =>
  queryOptions({
    queryKey: [recording, 'frame', handle],
    queryFn: ({ signal }) => api.frame(recording, handle, signal),
    ...SEALED,
  });

export const recordingsOfTraceQuery = (trace: string) =>
  queryOptions({
    queryKey: [trace, 'recordings'],
    queryFn: ({ signal }) => api.recordingsOfTrace(trace, signal),
    staleTime: 2_000,
  });

export const tracesOfRecordingQuery = (recording: string) =>
  queryOptions({
    queryKey: [recording, 'traces'],
    queryFn: ({ signal }) => api.tracesOfRecording(recording, signal),
    staleTime: 2_000,
  });

/** Not cached: the file may change. */
export const sourceQuery = (recording: string, handle: string) =>
  queryOptions({
    queryKey: [recording, 'source', handle],
    queryFn: ({ signal }) => api.source(recording, handle, signal),
  });
