/** Profiles of a server as a flame graph. */
import type { FlameColumns, Profile } from '../api/types.gen';
import { at } from '../base/column';
import type { DrawnFlame } from './drawn-flame';
import { formatOfUnit } from './profile-words';
import { originOfProfiled, shorterNamesOfProfiled } from './profiled-function';

/**
 * The calls as boxes below a root that stands for all. The answer has neither parents nor places:
 *
 *     depth 0 1 2 1      all ─────────────────────
 *     total 9 5 5 3        main ────────────────    9 of 10, the rest was cut
 *                            work ─── price ──
 *                            hash ───
 */
export function flameOfProfile({ calls, total, unit }: Profile, title: string): DrawnFlame {
  const count = calls.name.length + 1;
  const nodes: FlameColumns = {
    parent: new Int32Array(count),
    depth: new Uint32Array(count),
    frame: new Int32Array(count),
    offsetNanos: new Float64Array(count),
    totalNanos: new Float64Array(count),
    selfNanos: new Float64Array(count),
    waitedNanos: new Float64Array(count),
    wait: new Int32Array(count).fill(-1),
    line: new Uint32Array(count),
  };
  nodes.parent[0] = -1;
  nodes.frame[0] = -1;
  nodes.totalNanos[0] = total;
  // The open callers by level, and where the next box below each begins.
  const open = [0];
  const next = [0];
  for (let row = 0; row + 1 < count; row++) {
    const node = row + 1;
    // A call is at most one level below the one before it; a wrong answer is drawn, not refused.
    const level = Math.min((calls.depth[row] ?? 0) + 1, open.length);
    const parent = open[level - 1] ?? 0;
    const offset = next[level - 1] ?? 0;
    const size = calls.total[row] ?? 0;
    nodes.parent[node] = parent;
    nodes.depth[node] = level;
    nodes.frame[node] = calls.name[row] ?? -1;
    nodes.offsetNanos[node] = offset;
    nodes.totalNanos[node] = size;
    nodes.selfNanos[node] = calls.own[row] ?? 0;
    next[level - 1] = offset + size;
    open.length = level;
    next.length = level;
    open.push(node);
    next.push(offset);
  }
  return {
    title,
    time: 'wall',
    samples: 0,
    weightNanos: total as DrawnFlame['weightNanos'],
    waits: [],
    frames: calls.names.map((name, place) => ({
      handle: `f${place + 1}`,
      function: name,
      file: '',
      line: 0,
      reason: null,
      runtime: null,
      // Profiles do not say whose code it is: nothing is folded.
      whose: 'program',
      known: { origin: originOfProfiled(name), names: shorterNamesOfProfiled(name) },
    })),
    nodes,
    format: formatOfUnit(unit),
  };
}

/** Between the functions of a stack, as in folded stacks. */
const SEPARATOR = ';';

/** Whether the stack of a box ends so. Names may have the separator in them, as signatures of Java do, so nothing is split. */
function endsWith(flame: DrawnFlame, node: number, stack: string): boolean {
  let rest = stack;
  for (let here = node; here > 0; here = at(flame.nodes.parent, here)) {
    const name = flame.frames[at(flame.nodes.frame, here)]?.function ?? '';
    if (rest === name) return true;
    if (!rest.endsWith(SEPARATOR + name)) return false;
    rest = rest.slice(0, -name.length - SEPARATOR.length);
  }
  return false;
}

/** The widest box whose stack ends so; 0, the root, if there is none. */
export function nodeOfStack(flame: DrawnFlame, stack: string): number {
  let widest = 0;
  for (let node = 1; node < flame.nodes.parent.length; node++) {
    if (widest > 0 && at(flame.nodes.totalNanos, node) <= at(flame.nodes.totalNanos, widest)) continue;
    if (endsWith(flame, node, stack)) widest = node;
  }
  return widest;
}

/** The shortest end of a box's stack that finds it again, in these profiles and most likely in tomorrow's; `null` for the root. */
export function stackOfNode(flame: DrawnFlame, node: number): string | null {
  if (node <= 0) return null;
  let stack = '';
  for (let here = node; here > 0; here = at(flame.nodes.parent, here)) {
    const name = flame.frames[at(flame.nodes.frame, here)]?.function ?? '';
    stack = stack === '' ? name : `${name}${SEPARATOR}${stack}`;
    if (nodeOfStack(flame, stack) === node) break;
  }
  return stack;
}
