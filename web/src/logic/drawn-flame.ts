/** What the drawing of a flame graph needs of it: of a recording, or of the profiles of a server. */
import type { Flame, FlameFrame } from '../api/types.gen';
import { formatDuration } from './format';
import type { PlacedFunction } from './placed-function';

/**
 * A flame graph to draw. Those of recordings are of times. One of profiles may be of bytes or of objects: then its `format` writes them, and what is
 * named nanos is in that unit.
 */
export interface DrawnFlame extends Pick<Flame, 'title' | 'time' | 'samples' | 'weightNanos' | 'waits' | 'nodes'> {
  readonly frames: readonly (FlameFrame & Pick<PlacedFunction, 'known'>)[];
  readonly format?: (value: number) => string;
}

/** A value of a flame graph for people: a time, unless it is of something else. */
export function valueInWords({ format = formatDuration }: DrawnFlame, value: number): string {
  return format(value);
}
