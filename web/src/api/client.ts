/** The only file that speaks to the network, and only to the origin that served the page. */
import { decodeFlame, decodeTree } from './checks';
import { DecodeError, decodeRefusal } from './cursor';
import {
  decodeDiff,
  decodeFrame,
  decodeKept,
  decodeLanes,
  decodeLink,
  decodePoles,
  decodeProfile,
  decodeProfileDiff,
  decodeProfileTypes,
  decodeProfileValues,
  decodeRecordings,
  decodeServer,
  decodeServiceGrowth,
  decodeServiceMap,
  decodeServices,
  decodeSharedPoles,
  decodeSource,
  decodeSpan,
  decodeSummary,
  decodeThreads,
  decodeTraces,
  decodeTracesOfRecording,
  decodeWhatIf,
} from './decode.gen';
import { ApiError, type FailureKind } from './error';
import type {
  Diff,
  Flame,
  FlameTime,
  Frame,
  Kept,
  Lanes,
  Link,
  Poles,
  Profile,
  ProfileDiff,
  ProfileTypes,
  ProfileValues,
  Recordings,
  Server,
  ServiceGrowth,
  ServiceMap,
  Services,
  SharedPoles,
  Source,
  Span,
  Summary,
  Threads,
  Traces,
  TracesOfRecording,
  Tree,
  WhatIf,
} from './types.gen';

/**
 * Takes the token out of the address, so that it is in no bookmark and no screenshot. The cookie that the server set with this page speaks for us
 * from now on.
 */
export function hideTokenInAddress(): void {
  const address = new URL(window.location.href);
  if (!address.searchParams.has('token')) return;
  address.searchParams.delete('token');
  window.history.replaceState(window.history.state, '', address);
}

function kindOfStatus(status: number): FailureKind {
  if (status === 401) return 'unauthorized';
  return status === 404 ? 'not_found' : 'refused';
}

async function bodyOf(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    return undefined;
  }
}

const get = <T>(path: string, decode: (document: unknown) => T, signal: AbortSignal): Promise<T> => ask(path, decode, { signal });

const put = <T>(path: string, decode: (document: unknown) => T, body: Blob | null): Promise<T> =>
  ask(path, decode, { method: 'PUT', body });

async function ask<T>(path: string, decode: (document: unknown) => T, init: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers: { accept: 'application/json' }, credentials: 'same-origin' });
  } catch (cause) {
    if (init.signal?.aborted === true) throw cause;
    throw new ApiError('gone', 'server_gone', 'the longpole server does not respond', path, { cause });
  }
  const document = await bodyOf(response);
  if (!response.ok) {
    const refusal = decodeRefusal(document) ?? {
      code: `http_${response.status}`,
      message: `the server answered ${response.status}`,
    };
    throw new ApiError(kindOfStatus(response.status), refusal.code, refusal.message, path);
  }
  try {
    return decode(document);
  } catch (cause) {
    if (!(cause instanceof DecodeError)) throw cause;
    throw new ApiError('malformed', 'malformed_answer', cause.message, path, { cause });
  }
}

const at = (recording: string, rest = '') => `/api/recordings/${encodeURIComponent(recording)}${rest}`;

/** The part of a recording that a view is limited to: nanoseconds from its start, and a thread. */
export interface ExcerptParameters {
  readonly from?: string;
  readonly to?: string;
  readonly thread?: string;
}

/** The requests of docs/formats/http-api.md. */
export const api = {
  services: (signal: AbortSignal): Promise<Services> => get('/longpole/v1/services', decodeServices, signal),
  serviceMap: (range: Readonly<Record<string, string>>, signal: AbortSignal): Promise<ServiceMap> =>
    get(`/longpole/v1/services/map?${new URLSearchParams(range)}`, decodeServiceMap, signal),
  traces: (search: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Traces> =>
    get(`/longpole/v1/traces?${new URLSearchParams(search)}`, decodeTraces, signal),
  sharedPoles: (search: Readonly<Record<string, string>>, signal: AbortSignal): Promise<SharedPoles> =>
    get(`/longpole/v1/traces/poles?${new URLSearchParams(search)}`, decodeSharedPoles, signal),
  profileTypes: (range: Readonly<Record<string, string>>, signal: AbortSignal): Promise<ProfileTypes> =>
    get(`/longpole/v1/profiles/types?${new URLSearchParams(range)}`, decodeProfileTypes, signal),
  profile: (parameters: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Profile> =>
    get(`/longpole/v1/profiles?${new URLSearchParams(parameters)}`, decodeProfile, signal),
  profileDiff: (parameters: Readonly<Record<string, string>>, signal: AbortSignal): Promise<ProfileDiff> =>
    get(`/longpole/v1/profiles/diff?${new URLSearchParams(parameters)}`, decodeProfileDiff, signal),
  profileValues: (parameters: Readonly<Record<string, string>>, signal: AbortSignal): Promise<ProfileValues> =>
    get(`/longpole/v1/profiles/values?${new URLSearchParams(parameters)}`, decodeProfileValues, signal),
  /** What grew in the last week. */
  growth: (signal: AbortSignal): Promise<ServiceGrowth> => get('/longpole/v1/profiles/growth', decodeServiceGrowth, signal),
  /** The recordings with spans of a trace: they have its code. */
  recordingsOfTrace: (trace: string, signal: AbortSignal): Promise<Recordings> =>
    get(`/longpole/v1/traces/${trace}/recordings`, decodeRecordings, signal),
  /** The traces of a recording that the server received as well. */
  tracesOfRecording: (recording: string, signal: AbortSignal): Promise<TracesOfRecording> =>
    get(`/longpole/v1/recordings/${encodeURIComponent(recording)}/traces`, decodeTracesOfRecording, signal),
  link: (signal: AbortSignal): Promise<Link> => get('/api/link', decodeLink, signal),
  server: (signal: AbortSignal): Promise<Server> => get('/api/server', decodeServer, signal),
  /** Has the server make a recording of a file. */
  openFile: (file: File): Promise<Kept> => put(`/longpole/v1/recordings?${new URLSearchParams({ name: file.name })}`, decodeKept, file),
  /** Has the server make a recording of a trace. */
  keepTrace: (trace: string): Promise<Kept> => put(`/longpole/v1/traces/${trace}/recording`, decodeKept, null),
  recordings: (signal: AbortSignal): Promise<Recordings> => get('/api/recordings', decodeRecordings, signal),
  summary: (recording: string, signal: AbortSignal): Promise<Summary> => get(at(recording), decodeSummary, signal),
  poles: (recording: string, signal: AbortSignal): Promise<Poles> => get(at(recording, '/poles'), decodePoles, signal),
  whatIf: (recording: string, without: readonly string[], signal: AbortSignal): Promise<WhatIf> =>
    get(at(recording, `/whatif?${new URLSearchParams({ without: without.join(',') })}`), decodeWhatIf, signal),
  tree: (recording: string, signal: AbortSignal): Promise<Tree> => get(at(recording, '/tree'), decodeTree, signal),
  span: (recording: string, handle: string, signal: AbortSignal): Promise<Span> =>
    get(at(recording, `/spans/${encodeURIComponent(handle)}`), decodeSpan, signal),
  flame: (recording: string, span: string | null, time: FlameTime, excerpt: ExcerptParameters, signal: AbortSignal): Promise<Flame> =>
    get(at(recording, `/flame?${new URLSearchParams({ ...(span === null ? {} : { span }), time, ...excerpt })}`), decodeFlame, signal),
  diff: (before: string, after: string, signal: AbortSignal): Promise<Diff> =>
    get(at(after, `/diff?${new URLSearchParams({ before })}`), decodeDiff, signal),
  threads: (recording: string, excerpt: ExcerptParameters, signal: AbortSignal): Promise<Threads> =>
    get(at(recording, `/threads?${new URLSearchParams({ ...excerpt })}`), decodeThreads, signal),
  lanes: (recording: string, excerpt: ExcerptParameters, bins: number, limit: number, signal: AbortSignal): Promise<Lanes> =>
    get(at(recording, `/lanes?${new URLSearchParams({ ...excerpt, bins: `${bins}`, limit: `${limit}` })}`), decodeLanes, signal),
  frame: (recording: string, handle: string, signal: AbortSignal): Promise<Frame> =>
    get(at(recording, `/frames/${encodeURIComponent(handle)}`), decodeFrame, signal),
  source: (recording: string, handle: string, signal: AbortSignal): Promise<Source> =>
    get(at(recording, `/frames/${encodeURIComponent(handle)}/source`), decodeSource, signal),
};
