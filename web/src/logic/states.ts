/** The states of a time as parts of a bar. */

import { type States, WAIT_KINDS, type WaitKind } from '../api/types';
import type { Nanos } from '../base/brand';
import { ratio } from '../base/math';

/** A state of a time; that of being blocked is told apart by what is waited for. */
export type StateName = 'on_cpu' | 'in_child' | WaitKind | 'unaccounted';

export interface StatePart {
  readonly state: StateName;
  readonly label: string;
  readonly explanation: string;
  readonly nanos: Nanos;
  readonly share: number;
}

/** The parts of a time, also those that are empty; all together are the whole. */
export interface StateParts {
  readonly onCpu: StatePart;
  readonly inChild: StatePart;
  readonly blocked: {
    readonly nanos: Nanos;
    readonly share: number;
    /** What for, longest first; what did not occur is left out. */
    readonly kinds: readonly StatePart[];
  };
  readonly unaccounted: StatePart;
}

const BLOCKED_ON: Readonly<Record<WaitKind, string>> = {
  lock: 'on a lock or another thread',
  disk: 'on a file',
  network: 'on a socket',
  sleep: 'for time to pass',
  page_fault: 'for memory to be brought in',
  child: 'for a child process',
  pipe: 'on a pipe',
  other: 'on something else',
};

/** `page fault`. */
export function labelOfWait(kind: WaitKind): string {
  return kind.replaceAll('_', ' ');
}

/** What a kind of wait means: `on a lock or another thread`. */
export function blockedOn(kind: WaitKind): string {
  return BLOCKED_ON[kind];
}

/** All of the time in which it was blocked. */
export function blockedNanos(states: States): Nanos {
  return WAIT_KINDS.reduce((sum, kind) => sum + states.blockedNanos[kind], 0) as Nanos;
}

/** Takes a time apart. */
export function stateParts(states: States): StateParts {
  const blocked = blockedNanos(states);
  const whole = states.onCpuNanos + states.inChildNanos + blocked + states.unaccountedNanos;
  const part = (state: StateName, label: string, explanation: string, nanos: Nanos): StatePart => ({
    state,
    label,
    explanation,
    nanos,
    share: ratio(nanos, whole),
  });
  const kinds = WAIT_KINDS.map((kind) => part(kind, labelOfWait(kind), `blocked ${BLOCKED_ON[kind]}`, states.blockedNanos[kind]));
  return {
    onCpu: part('on_cpu', 'on-CPU', 'running code of its own', states.onCpuNanos),
    inChild: part('in_child', 'in child', 'covered by spans below it', states.inChildNanos),
    blocked: {
      nanos: blocked,
      share: ratio(blocked, whole),
      kinds: kinds.filter(({ nanos }) => nanos > 0).sort((a, b) => b.nanos - a.nanos),
    },
    unaccounted: part('unaccounted', 'unaccounted', 'short waits, or not seen', states.unaccountedNanos),
  };
}
