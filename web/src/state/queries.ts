/** The page's requests to the server, and how long answers stay valid. */
import { QueryClient, queryOptions } from '@tanstack/react-query';
import { api } from '../api/client';
import { ApiError } from '../api/error';
import type { FlameTime } from '../api/types.gen';

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

/** Spans come all the time. */
const LIVE = { staleTime: 2_000, refetchInterval: 5_000 } as const;

export const servicesQuery = () => queryOptions({ queryKey: ['services'], queryFn: ({ signal }) => api.services(signal), ...LIVE });

export const tracesQuery = (search: Readonly<Record<string, string>>) =>
  queryOptions({
    queryKey: ['traces', search],
    queryFn: ({ signal }) => api.traces(search, signal),
    placeholderData: (previous) => previous,
    ...LIVE,
  });

export const recordingsQuery = () =>
  queryOptions({ queryKey: ['recordings'], queryFn: ({ signal }) => api.recordings(signal), staleTime: 2_000 });

export const summaryQuery = (recording: string) =>
  queryOptions({
    queryKey: [recording, 'summary'],
    queryFn: ({ signal }) => api.summary(recording, signal),
    ...SEALED,
  });

export const polesQuery = (recording: string) =>
  queryOptions({ queryKey: [recording, 'poles'], queryFn: ({ signal }) => api.poles(recording, signal), ...SEALED });

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

export const flameQuery = (recording: string, span: string | null, time: FlameTime) =>
  queryOptions({
    queryKey: [recording, 'flame', span, time],
    queryFn: ({ signal }) => api.flame(recording, span, time, signal),
    ...SEALED,
    structuralSharing: false,
  });

export const frameQuery = (recording: string, handle: string) =>
  queryOptions({
    queryKey: [recording, 'frame', handle],
    queryFn: ({ signal }) => api.frame(recording, handle, signal),
    ...SEALED,
  });

/** Not cached: the file may change. */
export const sourceQuery = (recording: string, handle: string) =>
  queryOptions({
    queryKey: [recording, 'source', handle],
    queryFn: ({ signal }) => api.source(recording, handle, signal),
  });
