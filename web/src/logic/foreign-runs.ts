/**
 * Runs of foreign frames in a flame graph, each folded into one box:
 *
 *     all                            all
 *       start_thread        ┐          std, tokio · 3 frames ▸
 *         std::rt           │            work
 *           tokio::poll     ┘              Vec::push
 *             work                           alloc · 2 frames ▸
 *               Vec::push
 *                 alloc::grow      ┐
 *                   alloc::realloc ┘
 *
 * Foreign is what is not the program's. Two kinds of foreign frames stay: the first that the program calls, because its name is in the
 * program's source, and all frames of stacks without code of the program, which they would have to make room for. A run of one level stays too.
 * Boxes keep their place and width: only their level changes.
 */

import type { NodeIndex } from '../base/brand';
import { at, type Column } from '../base/column';
import type { DrawnFlame } from './drawn-flame';
import { originOfPlaced } from './placed-function';

/** Which runs the reader unfolded: all, or those that begin at these nodes. */
export type Unfolded = 'all' | ReadonlySet<number>;

export const NOTHING_UNFOLDED: Unfolded = new Set();

/** The boxes to draw: each node has one, its own or that of the folded run it is in. */
export interface FlameBoxes {
  /** Node whose box shows a node: the first of its run if that is folded, else itself. */
  readonly boxOf: Column;
  /** Level of the box. */
  readonly level: Column;
  /** Nodes at which a folded run begins. */
  readonly folded: ReadonlySet<number>;
  /** For each node, where the run that it is in begins, folded or not; -1 if it is in none. */
  readonly runOf: Int32Array;
  /** Whether there is a run to fold. */
  readonly hasRuns: boolean;
}

/** Origins that the label of a run names. */
const ORIGINS_MAX = 2;

/** Words for code whose name does not show its origin. */
const OWNERS: Readonly<Record<string, string>> = {
  library: 'library',
  language: 'language runtime',
  interpreter: 'interpreter',
  system: 'system',
  kernel: 'kernel',
};

/** For each node, whether its function is foreign. */
function foreignNodes(flame: DrawnFlame): Uint8Array {
  const isForeign = flame.frames.map(({ whose }) => whose !== 'program');
  return Uint8Array.from(flame.nodes.frame, (frame) => (isForeign[frame] === true ? 1 : 0));
}

/** For each node, whether code of the program is in it or below it. */
function leadingToProgram(flame: DrawnFlame, foreign: Uint8Array): Uint8Array {
  const leads = new Uint8Array(foreign.length);
  for (let node = leads.length - 1; node > 0; node--) {
    if (at(foreign, node) === 0) leads[node] = 1;
    if (at(leads, node) === 1) leads[at(flame.nodes.parent, node)] = 1;
  }
  return leads;
}

/** For each node, the first node of its run; -1 if it is in none. Runs of one level are among them. */
function runsOf(flame: DrawnFlame): Int32Array {
  const { parent } = flame.nodes;
  const foreign = foreignNodes(flame);
  const leads = leadingToProgram(flame, foreign);
  const runs = new Int32Array(parent.length).fill(-1);
  // Nodes of stacks without code of the program.
  const isAlone = new Uint8Array(parent.length);
  for (let node = 1; node < parent.length; node++) {
    const above = at(parent, node);
    const isCalledByProgram = above > 0 && at(foreign, above) === 0;
    if (at(foreign, node) === 0 || isCalledByProgram) continue;
    const run = at(runs, above) < 0 ? node : at(runs, above);
    if (at(leads, node) === 1) runs[node] = run;
    else if (above === 0 || at(isAlone, above) === 1) isAlone[node] = 1;
    // The first frame of a branch that leads away from the program stays.
    else if (at(leads, above) === 0) runs[node] = run;
  }
  return runs;
}

/** For each first node of a run, the number of its levels. */
function levelsOfRuns(flame: DrawnFlame, runs: Int32Array): ReadonlyMap<number, number> {
  const levels = new Map<number, number>();
  for (let node = 0; node < runs.length; node++) {
    const run = at(runs, node);
    if (run >= 0) levels.set(run, Math.max(levels.get(run) ?? 0, at(flame.nodes.depth, node) - at(flame.nodes.depth, run) + 1));
  }
  return levels;
}

/** The boxes of a graph with all runs folded except the unfolded ones. */
export function boxesOf(flame: DrawnFlame, unfolded: Unfolded): FlameBoxes {
  const { parent } = flame.nodes;
  const runOf = runsOf(flame);
  const levels = levelsOfRuns(flame, runOf);
  const boxOf = new Uint32Array(parent.length);
  const level = new Uint32Array(parent.length);
  const folded = new Set<number>();
  let hasRuns = false;
  for (let node = 0; node < parent.length; node++) {
    const run = at(runOf, node);
    const isRun = run >= 0 && (levels.get(run) ?? 0) > 1;
    if (isRun) hasRuns = true;
    else runOf[node] = -1;
    const isFolded = isRun && unfolded !== 'all' && !unfolded.has(run);
    if (isFolded) folded.add(run);
    const box = isFolded ? run : node;
    boxOf[node] = box;
    level[node] = box !== node ? at(level, box) : node === 0 ? 0 : at(level, at(boxOf, at(parent, node))) + 1;
  }
  return { boxOf, level, folded, runOf, hasRuns };
}

/** The box of a folded run. */
export interface FoldedRun {
  /** Whose its frames are: `tokio, std`. Names stand before words for code without them, and then those with the most frames first. */
  readonly whose: string;
  /** How many frames its longest stack has: `16 frames`, `up to 16 frames`. */
  readonly frames: string;
  /** Time in its functions themselves. */
  readonly selfNanos: number;
}

// Drawing asks for each run again and again; a run at the root is as large as the graph.
const known = new WeakMap<FlameBoxes, Map<number, FoldedRun>>();

/** The folded run that begins at a node. */
export function foldedRun(flame: DrawnFlame, boxes: FlameBoxes, first: NodeIndex): FoldedRun {
  const ofGraph = known.get(boxes) ?? new Map<number, FoldedRun>();
  known.set(boxes, ofGraph);
  const run = ofGraph.get(first) ?? readRun(flame, boxes, first);
  ofGraph.set(first, run);
  return run;
}

function readRun({ frames, nodes }: DrawnFlame, { boxOf }: FlameBoxes, first: NodeIndex): FoldedRun {
  const depth = at(nodes.depth, first);
  const framesOf = new Map<string, number>();
  const isNameless = new Set<string>();
  let count = 0;
  let levels = 0;
  let selfNanos = 0;
  for (let node: number = first; node < nodes.parent.length && (node === first || at(nodes.depth, node) > depth); node++) {
    const frame = frames[at(nodes.frame, node)];
    if (at(boxOf, node) !== first || frame === undefined) continue;
    count += 1;
    levels = Math.max(levels, at(nodes.depth, node) - depth + 1);
    selfNanos += at(nodes.selfNanos, node);
    const { name } = originOfPlaced(frame);
    const owner = name === '' ? (OWNERS[frame.whose] ?? '') : name;
    if (name === '') isNameless.add(owner);
    framesOf.set(owner, (framesOf.get(owner) ?? 0) + 1);
  }
  const rank = (owner: string) => Number(isNameless.has(owner));
  const names = [...framesOf].sort(([a, framesA], [b, framesB]) => rank(a) - rank(b) || framesB - framesA).map(([owner]) => owner);
  const whose = names.length > ORIGINS_MAX ? [...names.slice(0, ORIGINS_MAX), '…'] : names;
  return { whose: whose.join(', '), frames: `${count === levels ? '' : 'up to '}${levels} frames`, selfNanos };
}
