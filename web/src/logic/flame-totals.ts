/** Self and total of a flame graph by function, or by what functions belong to, such as a crate. */
import { at } from '../base/column';
import type { DrawnFlame } from './drawn-flame';

/** Columns by key. */
export interface Totals {
  readonly self: Float64Array;
  readonly total: Float64Array;
}

/** Self and total of each key. A stack with several functions of a key counts once for it; a function with a negative key counts for none. */
export function totalsBy(flame: DrawnFlame, keyOf: (frame: number) => number, keys: number): Totals {
  const { depth, frame, selfNanos, totalNanos } = flame.nodes;
  const self = new Float64Array(keys);
  const total = new Float64Array(keys);
  // The number of open ancestors of each key, and the keys of the open nodes by level.
  const open = new Uint32Array(keys);
  const stack: number[] = [];
  for (let node = 0; node < depth.length; node++) {
    while (stack.length > at(depth, node)) {
      const left = stack.pop() ?? -1;
      if (left >= 0) open[left] = at(open, left) - 1;
    }
    const key = keyOf(at(frame, node));
    stack.push(key);
    if (key < 0) continue;
    self[key] = at(self, key) + at(selfNanos, node);
    if (at(open, key) === 0) total[key] = at(total, key) + at(totalNanos, node);
    open[key] = at(open, key) + 1;
  }
  return { self, total };
}
