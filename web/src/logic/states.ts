/** The states of a time as parts of a bar. */

import { type States, WAIT_KINDS, type WaitKind } from '../api/types';
import type { Nanos } from '../base/brand';
import { ratio } from '../base/math';

/** A state of a time; that of being blocked is told apart by what is waited for. */
export type StateName = 'on_cpu' | 'runnable' | 'in_child' | WaitKind | 'unseen' | 'awaiting' | 'remote' | 'unaccounted';

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
  readonly runnable: StatePart;
  readonly inChild: StatePart;
  readonly blocked: {
    readonly nanos: Nanos;
    readonly share: number;
    /** What for, longest first, and not seen; what did not occur is left out. */
    readonly kinds: readonly StatePart[];
  };
  readonly awaiting: StatePart;
  readonly remote: StatePart;
  readonly unaccounted: StatePart;
}

const BLOCKED_ON: Readonly<Record<WaitKind, string>> = {
  lock: 'on a lock, or until another thread goes on',
  join: 'until another thread ends',
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
  return WAIT_KINDS.reduce((sum, kind) => sum + states.blockedNanos[kind], states.blockedUnseenNanos as number) as Nanos;
}

/** All of the time. */
export function wholeNanos(states: States): Nanos {
  const { onCpuNanos, runnableNanos, inChildNanos, awaitingNanos, remoteNanos, unaccountedNanos } = states;
  const others = onCpuNanos + runnableNanos + inChildNanos + awaitingNanos + remoteNanos + unaccountedNanos;
  return (others + blockedNanos(states)) as Nanos;
}

/** How the parts are known: a word or two, and what is meant. */
export function howKnown(states: States): { readonly mark: string; readonly explanation: string } {
  if (states.evidence === 'samples') return { mark: '≈ estimate', explanation: 'From samples, and from waits that were looked at' };
  if (!states.exact) return { mark: 'incomplete', explanation: 'Records of a journal or of switches were lost' };
  return states.evidence === 'journal'
    ? { mark: 'exact', explanation: 'From the journals of its threads and from switch records' }
    : { mark: 'exact', explanation: 'From switch records: its process has one thread, which can only have worked for it' };
}

/** Takes a time apart. */
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
  const seen = WAIT_KINDS.map((kind) => part(kind, labelOfWait(kind), `blocked ${BLOCKED_ON[kind]}`, states.blockedNanos[kind]));
  const kinds = [...seen, part('unseen', 'not seen', 'blocked on what was not looked at: short waits', states.blockedUnseenNanos)];
  const missing = states.evidence === 'samples' ? 'short waits, runnable, or not seen' : 'no record says what it did';
  return {
    onCpu: part('on_cpu', 'on-CPU', 'running code of its own', states.onCpuNanos),
    runnable: part('runnable', 'runnable', 'ready, and others had the CPUs', states.runnableNanos),
    inChild: part('in_child', 'in child', 'covered by spans below it', states.inChildNanos),
    blocked: {
      nanos: blocked,
      share: ratio(blocked, whole),
      kinds: kinds.filter(({ nanos }) => nanos > 0).sort((a, b) => b.nanos - a.nanos),
    },
    awaiting: part('awaiting', 'awaiting', 'open, and no thread works for it', states.awaitingNanos),
    remote: part('remote', 'remote', 'the network or another host works for it', states.remoteNanos),
    unaccounted: part('unaccounted', 'unaccounted', missing, states.unaccountedNanos),
  };
}
