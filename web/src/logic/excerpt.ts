/** The part of a recording that the reader chose beside spans: a range of time, a thread, or both; and what threads did in it. */
import type { Lane, Lanes, Thread, Threads, WaitKind } from '../api/types.gen';
import { counted, formatDuration, formatShare, formatTick } from './format';
import { shortName } from './function-name';
import { labelOfWait } from './states';
import { type TimeRange, ticksOf } from './waterfall';

export interface Excerpt {
  readonly range: TimeRange | null;
  /** Number of a thread. */
  readonly thread: number | null;
}

export const WHOLE: Excerpt = { range: null, thread: null };

export const isWhole = ({ range, thread }: Excerpt): boolean => range === null && thread === null;

/** `1.20s to 1.40s`: as exact as the length of the range needs. */
export function rangeInWords(range: TimeRange): string {
  const { step } = ticksOf(range, 1_000);
  return `${formatTick(range.start, step)} to ${formatTick(range.end, step)}`;
}

/** The name of a thread: its own, or the function that it begins with, or its program. */
export function nameOfThread({ process, name, entry }: Pick<Thread & Lane, 'process' | 'name' | 'entry'>): string {
  if (name !== '' && name !== process) return name;
  return entry === null ? process : shortName(entry);
}

/** The function that it mostly ran, unless it is called by that. */
export function codeOfThread(thread: Thread): string | null {
  const code = thread.function === null ? null : shortName(thread.function.function);
  return code === nameOfThread(thread) ? null : code;
}

/** Threads that a sentence names. */
const NAMED_MAX = 3;

/** `4 threads used 224.0ms of CPU time: python3 187.1ms, mostly in parse; compress_bundle 36.5ms`. */
export function threadsInWords({ threads }: Threads): string {
  const busy = threads.filter(({ onCpuNanos }) => onCpuNanos > 0);
  if (busy.length === 0) return 'No thread was on a CPU.';
  const total = busy.reduce((sum, { onCpuNanos }) => sum + onCpuNanos, 0);
  const named = busy.slice(0, NAMED_MAX).map((thread) => {
    const code = codeOfThread(thread) === null ? '' : `, mostly in ${codeOfThread(thread)}`;
    return `${nameOfThread(thread)} ${formatDuration(thread.onCpuNanos)}${code}`;
  });
  return `${counted(busy.length, 'thread')} used ${formatDuration(total)} of CPU time: ${named.join('; ')}${busy.length > NAMED_MAX ? '; …' : '.'}`;
}

/** Waits that have a colour of their own. */
const isColoured = (state: string): state is WaitKind => state !== 'unseen' && state !== 'idle';

/** The states that lanes show in colour, those that take most places first. */
export function statesOnLanes({ threads, states }: Lanes): readonly ('on_cpu' | WaitKind)[] {
  const counts = new Map<string, number>();
  for (const { rest } of threads) {
    for (const place of rest) {
      const state = states[place];
      if (state !== undefined) counts.set(state, (counts.get(state) ?? 0) + 1);
    }
  }
  const waits = [...counts].sort((a, b) => b[1] - a[1]).map(([state]) => state);
  return ['on_cpu', ...waits.filter(isColoured)];
}

/** What a thread did at a place of its lane. */
export function laneInWords(lane: Lane, states: readonly string[], bin: number): string {
  const share = (word: string, perMille = 0): readonly string[] => (perMille > 0 ? [`${word} ${formatShare(perMille / 1_000)}`] : []);
  const rest = states[lane.rest[bin] ?? -1];
  const parts = [
    ...share('on-CPU', lane.onCpu[bin]),
    ...share('runnable', lane.runnable[bin]),
    ...(rest === undefined ? [] : [rest === 'unseen' ? 'blocked, not sampled' : `blocked: ${labelOfWait(rest as 'lock')}`]),
  ];
  return parts.length === 0 ? 'nothing known' : parts.join(', ');
}
