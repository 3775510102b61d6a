/** The states of a span or run as parts of a bar. */

import { type Blocked, EVERY_WAIT_KIND, type States, type WaitKind } from '../api/types.gen';
import type { Nanos } from '../base/brand';
import { ratio } from '../base/math';

/** A state; blocked time has one state per kind of wait. */
export type StateName = 'on_cpu' | 'runnable' | 'in_child' | WaitKind | 'unseen' | 'awaiting' | 'remote' | 'unaccounted';

export interface StatePart {
  readonly state: StateName;
  readonly label: string;
  readonly explanation: string;
  readonly nanos: Nanos;
  readonly share: number;
}

/** The parts of a time, including empty ones; they sum to the whole. */
export interface StateParts {
  readonly onCpu: StatePart;
  readonly runnable: StatePart;
  readonly inChild: StatePart;
  readonly blocked: {
    readonly nanos: Nanos;
    readonly share: number;
    /** Kinds of waits and `not sampled`, longest first, without those of length zero. */
    readonly kinds: readonly StatePart[];
  };
  readonly awaiting: StatePart;
  readonly remote: StatePart;
  readonly unaccounted: StatePart;
}

const BLOCKED_ON: Readonly<Record<WaitKind, string>> = {
  lock: 'on a lock',
  queue: 'until another thread wakes it',
  join: 'until another thread exits',
  disk: 'on the disk',
  network: 'on the network',
  sleep: 'in a sleep',
  page_fault: 'on a page fault',
  child: 'on a child process',
  pipe: 'on a pipe',
  idle: 'until work arrives',
  other: 'on something else',
};

export const KEY_OF_WAIT: Readonly<Record<WaitKind, keyof Blocked>> = {
  lock: 'lock',
  queue: 'queue',
  join: 'join',
  disk: 'disk',
  network: 'network',
  sleep: 'sleep',
  page_fault: 'pageFault',
  child: 'child',
  pipe: 'pipe',
  idle: 'idle',
  other: 'other',
};

/** `page fault`; `child process`, as a child span is another state. */
export function labelOfWait(kind: WaitKind): string {
  if (kind === 'queue') return 'another thread';
  return kind === 'child' ? 'child process' : kind.replaceAll('_', ' ');
}

/** Words for a kind of wait: `on a lock`. */
export function blockedOn(kind: WaitKind): string {
  return BLOCKED_ON[kind];
}

/** The sum of all blocked time. */
export function blockedNanos(states: States): Nanos {
  return EVERY_WAIT_KIND.reduce((sum, kind) => sum + states.blockedNanos[KEY_OF_WAIT[kind]], states.blockedUnseenNanos as number) as Nanos;
}

/** The sum of all states. */
export function wholeNanos(states: States): Nanos {
  const { onCpuNanos, runnableNanos, inChildNanos, awaitingNanos, remoteNanos, unaccountedNanos } = states;
  const others = onCpuNanos + runnableNanos + inChildNanos + awaitingNanos + remoteNanos + unaccountedNanos;
  return (others + blockedNanos(states)) as Nanos;
}

/** How exact the parts are: a short mark and its explanation. */
export function howKnown(states: States, isProcess = false): { readonly mark: string; readonly explanation: string } {
  if (states.evidence === 'samples')
    return { mark: '≈ all shares are estimates', explanation: 'From samples of running code and of waits' };
  if (!states.exact) return { mark: 'shares incomplete', explanation: 'Some journal or context-switch records were lost' };
  return states.evidence === 'journal'
    ? { mark: 'all shares exact', explanation: 'From span journals and context switches' }
    : {
        mark: 'all shares exact',
        explanation: `From context switches${isProcess ? '' : '; exact if its process worked only for this span'}`,
      };
}

/** Splits a time into its states. */
export function stateParts(states: States): StateParts {
  const blocked = blockedNanos(states);
  const whole = wholeNanos(states);
  const part = (state: StateName, label: string, explanation: string, nanos: Nanos): StatePart => ({
    state,
    label,
    explanation,
    nanos,
    share: ratio(nanos, whole),
  });
  const seen = EVERY_WAIT_KIND.map((kind) =>
    part(kind, labelOfWait(kind), `blocked ${BLOCKED_ON[kind]}`, states.blockedNanos[KEY_OF_WAIT[kind]]),
  );
  const kinds = [...seen, part('unseen', 'not sampled', 'it waited, mostly for less than 5ms; cause unknown', states.blockedUnseenNanos)];
  const between = states.runnableNanos > 0 ? 'between samples: short waits' : 'between samples: short waits, or waiting for a CPU';
  const missing = states.evidence === 'samples' ? between : 'not recorded';
  return {
    onCpu: part('on_cpu', 'on-CPU', 'running on a CPU', states.onCpuNanos),
    runnable: part('runnable', 'runnable', 'ready to run while others had the CPUs', states.runnableNanos),
    inChild: part('in_child', 'in a child', 'a child span or process, or a later stage of its pipeline, ran', states.inChildNanos),
    blocked: {
      nanos: blocked,
      share: ratio(blocked, whole),
      kinds: kinds.filter(({ nanos }) => nanos > 0).sort((a, b) => b.nanos - a.nanos),
    },
    awaiting: part('awaiting', 'awaiting', 'open, but no thread worked for it', states.awaitingNanos),
    remote: part(
      'remote',
      'remote',
      'an outgoing call on which no thread here worked or waited: the network or another host did',
      states.remoteNanos,
    ),
    unaccounted: part('unaccounted', 'unaccounted', missing, states.unaccountedNanos),
  };
}
