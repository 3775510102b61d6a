/** The states of a time as parts of a bar. */

import type { States } from '../api/types';
import type { Nanos } from '../base/brand';
import { ratio } from '../base/math';

export type StateName = 'on_cpu' | 'in_child' | 'unaccounted';

export interface StatePart {
  readonly state: StateName;
  readonly label: string;
  readonly explanation: string;
  readonly nanos: Nanos;
  readonly share: number;
}

/** The parts of the bar, always in the same order, also those that are empty. */
export function stateParts(states: States): readonly StatePart[] {
  const whole = states.onCpuNanos + states.inChildNanos + states.unaccountedNanos;
  const part = (state: StateName, label: string, explanation: string, nanos: Nanos): StatePart => ({
    state,
    label,
    explanation,
    nanos,
    share: ratio(nanos, whole),
  });
  return [
    part('on_cpu', 'on-CPU', 'its own threads were running', states.onCpuNanos),
    part('in_child', 'in child', 'covered by spans below it', states.inChildNanos),
    part(
      'unaccounted',
      'unaccounted',
      'neither running nor in a child: waiting for something that was not recorded',
      states.unaccountedNanos,
    ),
  ];
}
