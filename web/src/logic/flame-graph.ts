/** Geometry of a flame graph drawn downwards (an icicle), and facts derived from it. */

import type { FrameIndex, NodeIndex } from '../base/brand';
import { at, lowerBound, upperBound } from '../base/column';
import { ratio } from '../base/math';
import { type DrawnFlame, valueInWords } from './drawn-flame';
import { statesInWords } from './flame-legend';
import { type Totals, totalsBy } from './flame-totals';
import { boxesOf, type FlameBoxes, foldedRun } from './foreign-runs';
import { counted, formatShare } from './format';

/** Height of a level of boxes. */
export const LEVEL_HEIGHT = 20;

/** A flame graph with the nodes that have boxes by level, each level from left to right. */
export interface FlameLevels {
  readonly flame: DrawnFlame;
  readonly boxes: FlameBoxes;
  readonly levels: number;
  /** Nodes by level; level `l` is from `firstOf[l]` to `firstOf[l + 1]`. */
  readonly nodes: Uint32Array;
  readonly firstOf: Uint32Array;
  /** Offsets of `nodes`, in the same order, for binary search. */
  readonly offsets: Float64Array;
}

/** Lists the nodes by level. Pre-order keeps each level in order, so one counting pass is enough. */
export function levelsOf(flame: DrawnFlame, boxes: FlameBoxes = boxesOf(flame, 'all')): FlameLevels {
  const count = flame.nodes.parent.length;
  const { boxOf, level } = boxes;
  let levels = 0;
  for (let node = 0; node < count; node++) levels = Math.max(levels, at(level, node) + 1);
  const firstOf = new Uint32Array(levels + 1);
  for (let node = 0; node < count; node++) {
    if (at(boxOf, node) === node) firstOf[at(level, node) + 1] = at(firstOf, at(level, node) + 1) + 1;
  }
  for (let l = 0; l < levels; l++) firstOf[l + 1] = at(firstOf, l + 1) + at(firstOf, l);
  const next = firstOf.slice();
  const nodes = new Uint32Array(levels > 0 ? at(firstOf, levels) : 0);
  const offsets = new Float64Array(nodes.length);
  for (let node = 0; node < count; node++) {
    if (at(boxOf, node) !== node) continue;
    const slot = at(next, at(level, node));
    nodes[slot] = node;
    offsets[slot] = at(flame.nodes.offsetNanos, node);
    next[at(level, node)] = slot + 1;
  }
  return { flame, boxes, levels, nodes, firstOf, offsets };
}

/** Level of the box that shows a node. */
export function levelOf(graph: FlameLevels, node: NodeIndex): number {
  return at(graph.boxes.level, node);
}

/** The box that a box hangs from; -1 for the root. */
export function callerBox(graph: FlameLevels, node: NodeIndex): number {
  const parent = at(graph.flame.nodes.parent, node);
  return parent < 0 ? -1 : at(graph.boxes.boxOf, parent);
}

/** The part of the graph on the screen: the box of the zoomed node fills the width. */
export interface FlameView {
  readonly startNanos: number;
  readonly endNanos: number;
  /** Scrolled distance from the top, in pixels. */
  readonly top: number;
}

/** The view in which a node fills the width. */
export function viewOfNode(flame: DrawnFlame, node: NodeIndex, top: number): FlameView {
  const start = flame.nodes.parent.length > 0 ? at(flame.nodes.offsetNanos, node) : 0;
  const total = flame.nodes.parent.length > 0 ? at(flame.nodes.totalNanos, node) : 0;
  return { startNanos: start, endNanos: start + Math.max(total, 1), top };
}

/** The number of levels above the screen, at least partly. */
export function levelsAbove(view: FlameView): number {
  return Math.ceil(view.top / LEVEL_HEIGHT);
}

/** A box on the screen. */
export interface FlameBox {
  readonly node: NodeIndex;
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

/**
 * Visits the boxes on the screen from the top level down. It does not visit each box narrower than `widthMin`: the search jumps to
 * the first box that begins in the next `widthMin` pixels, so levels times pixels bound the cost, not the number of nodes.
 */
export function visitBoxes(
  graph: FlameLevels,
  view: FlameView,
  width: number,
  height: number,
  widthMin: number,
  visit: (node: NodeIndex, x: number, y: number, width: number) => void,
): void {
  const { flame, offsets, nodes, firstOf } = graph;
  const scale = width / (view.endNanos - view.startNanos);
  const firstLevel = Math.max(0, Math.floor(view.top / LEVEL_HEIGHT));
  const lastLevel = Math.min(graph.levels - 1, Math.floor((view.top + height - 1) / LEVEL_HEIGHT));
  for (let level = firstLevel; level <= lastLevel; level++) {
    const from = at(firstOf, level);
    const to = at(firstOf, level + 1);
    const y = level * LEVEL_HEIGHT - view.top;
    // The last box that begins left of the screen may reach into it.
    let slot = Math.max(from, upperBound(offsets, view.startNanos, from, to) - 1);
    while (slot < to) {
      const node = at(nodes, slot);
      const start = at(offsets, slot);
      if (start >= view.endNanos) break;
      const left = (start - view.startNanos) * scale;
      const right = (start + at(flame.nodes.totalNanos, node) - view.startNanos) * scale;
      if (right - left < widthMin) {
        if (right > 0) visit(node as NodeIndex, left, y, right - left);
        const next = lowerBound(offsets, start + widthMin / scale, slot + 1, to);
        // Boxes do not overlap, so of those between only the last can be wide.
        const isLastWide = next - 1 > slot && at(flame.nodes.totalNanos, at(nodes, next - 1)) * scale >= widthMin;
        slot = isLastWide ? next - 1 : next;
        continue;
      }
      const x = Math.max(0, left);
      const end = Math.min(width, right);
      if (end > x) visit(node as NodeIndex, x, y, end - x);
      slot += 1;
    }
  }
}

/** The boxes wide enough to distinguish, at most `limit`, for screen reader and keyboard. */
export function boxesOnScreen(
  graph: FlameLevels,
  view: FlameView,
  width: number,
  height: number,
  widthMin: number,
  limit: number,
): readonly FlameBox[] {
  const boxes: FlameBox[] = [];
  visitBoxes(graph, view, width, height, widthMin, (node, x, y, boxWidth) => {
    if (boxWidth >= widthMin && boxes.length < limit) boxes.push({ node, x, y, width: boxWidth });
  });
  return boxes;
}

/** The node under a point; `null` if there is none. */
export function hitFlame(graph: FlameLevels, view: FlameView, width: number, x: number, y: number): NodeIndex | null {
  const level = Math.floor((y + view.top) / LEVEL_HEIGHT);
  if (x < 0 || x >= width || level < 0 || level >= graph.levels) return null;
  const time = view.startNanos + (x / width) * (view.endNanos - view.startNanos);
  const from = at(graph.firstOf, level);
  const slot = upperBound(graph.offsets, time, from, at(graph.firstOf, level + 1)) - 1;
  if (slot < from) return null;
  const node = at(graph.nodes, slot);
  return time < at(graph.offsets, slot) + at(graph.flame.nodes.totalNanos, node) ? (node as NodeIndex) : null;
}

export type FlameStep = 'up' | 'down' | 'left' | 'right';

/** The largest of the boxes that hang from a box, the first of several; `null` if there is none. */
function largestCallee(graph: FlameLevels, node: NodeIndex): NodeIndex | null {
  const { offsetNanos, totalNanos } = graph.flame.nodes;
  const level = levelOf(graph, node) + 1;
  if (level >= graph.levels) return null;
  const to = at(graph.firstOf, level + 1);
  const end = at(offsetNanos, node) + at(totalNanos, node);
  let largest: number | null = null;
  for (let slot = lowerBound(graph.offsets, at(offsetNanos, node), at(graph.firstOf, level), to); slot < to; slot++) {
    const callee = at(graph.nodes, slot);
    if (at(offsetNanos, callee) > end) break;
    if (callerBox(graph, callee as NodeIndex) !== node) continue;
    if (largest === null || at(totalNanos, callee) > at(totalNanos, largest)) largest = callee;
  }
  return largest as NodeIndex | null;
}

/** The neighbour of a box: its caller, its largest callee, or the box beside it on the same level; the box itself if there is none. */
export function neighbour(graph: FlameLevels, node: NodeIndex, step: FlameStep): NodeIndex {
  if (step === 'up') return Math.max(0, callerBox(graph, node)) as NodeIndex;
  if (step === 'down') return largestCallee(graph, node) ?? node;
  const level = levelOf(graph, node);
  const from = at(graph.firstOf, level);
  const to = at(graph.firstOf, level + 1);
  const slot = lowerBound(graph.nodes, node, from, to) + (step === 'right' ? 1 : -1);
  return slot >= from && slot < to ? (at(graph.nodes, slot) as NodeIndex) : node;
}

/** Self and total of every function. A recursive function counts once in each stack. */
export function frameTotals(flame: DrawnFlame): Totals {
  return totalsBy(flame, (frame) => frame, flame.frames.length);
}

/** The functions with the largest self time, after the one with this handle, if it exists. */
export function hottestFrames(flame: DrawnFlame, totals: Totals, named: string | null, limit: number): readonly FrameIndex[] {
  const isNamed = (frame: number) => named !== null && flame.frames[frame]?.handle === named;
  return Array.from(totals.self, (_, frame) => frame as FrameIndex)
    .filter((frame) => at(totals.self, frame) > 0 || isNamed(frame))
    .sort((a, b) => Number(isNamed(b)) - Number(isNamed(a)) || at(totals.self, b) - at(totals.self, a) || a - b)
    .slice(0, limit);
}

/** The number of samples of a weight, by the ratio of the whole graph; `null` for waits, which have any length. */
export function samplesOf(flame: DrawnFlame, nanos: number): number | null {
  return flame.time === 'on_cpu' ? Math.round(ratio(nanos, flame.weightNanos) * flame.samples) : null;
}

/** The function of a node; for the root, the title of the graph. */
export function titleOfNode(flame: DrawnFlame, node: NodeIndex): string {
  return flame.frames[at(flame.nodes.frame, node)]?.function ?? flame.title;
}

/** What the label of a box names: a function, or a folded run as `tokio, std · 16 frames`. */
export function titleOfBox(graph: FlameLevels, node: NodeIndex): string {
  const { flame, boxes } = graph;
  if (!boxes.folded.has(node)) return titleOfNode(flame, node);
  const { whose, frames } = foldedRun(flame, boxes, node);
  return `${whose} · ${frames}`;
}

/** Time in the function of a box itself; of a folded run, in its functions. */
export function selfOfBox({ flame, boxes }: FlameLevels, node: NodeIndex): number {
  return boxes.folded.has(node) ? foldedRun(flame, boxes, node).selfNanos : at(flame.nodes.selfNanos, node);
}

/** A box in words: `hash_block, 93%, 2.10s total, 1.90s self, 2,098 samples`. */
export function boxInWords(graph: FlameLevels, node: NodeIndex): string {
  const { flame } = graph;
  const total = at(flame.nodes.totalNanos, node);
  const samples = samplesOf(flame, total);
  const states = statesInWords(flame, node);
  return [
    titleOfBox(graph, node),
    formatShare(ratio(total, flame.weightNanos)),
    `${valueInWords(flame, total)} total`,
    `${valueInWords(flame, selfOfBox(graph, node))} self`,
    ...(samples === null ? [] : [counted(samples, 'sample')]),
    ...(states === '' ? [] : [states]),
  ].join(', ');
}

/** The widest box of these functions; `null` if they have none. */
export function widestNodeOf(flame: DrawnFlame, frames: ReadonlySet<number>): NodeIndex | null {
  let widest: number | null = null;
  for (let node = 0; node < flame.nodes.parent.length; node++) {
    if (!frames.has(at(flame.nodes.frame, node))) continue;
    if (widest === null || at(flame.nodes.totalNanos, node) > at(flame.nodes.totalNanos, widest)) widest = node;
  }
  return widest as NodeIndex | null;
}

/** The part of the whole in these functions and in what they call: a stack with several of them counts once. */
export function shareOfFrames(flame: DrawnFlame, frames: ReadonlySet<number>): number {
  const { depth, frame, totalNanos } = flame.nodes;
  let sum = 0;
  for (let node = 0; node < depth.length; node++) {
    if (!frames.has(at(frame, node))) continue;
    sum += at(totalNanos, node);
    const level = at(depth, node);
    while (node + 1 < depth.length && at(depth, node + 1) > level) node++;
  }
  return ratio(sum, flame.weightNanos);
}

/** The number of levels that nine tenths of the stacks share: the trunk before the branches. */
export function trunkLevels(graph: FlameLevels): number {
  const { totalNanos } = graph.flame.nodes;
  if (graph.levels === 0) return 0;
  let node = 0 as NodeIndex;
  for (;;) {
    const callee = largestCallee(graph, node);
    if (callee === null || at(totalNanos, callee) < 0.9 * at(totalNanos, 0)) return levelOf(graph, node) + 1;
    node = callee;
  }
}

/** The number of levels to show without scrolling: down to the last with a box of a fiftieth of the whole. Thin towers need scrolling. */
export function levelsWorthShowing(graph: FlameLevels): number {
  const { totalNanos } = graph.flame.nodes;
  let deepest = 0;
  for (const node of graph.nodes) {
    if (at(totalNanos, node) * 50 >= at(totalNanos, 0)) deepest = Math.max(deepest, levelOf(graph, node as NodeIndex));
  }
  return deepest + 1;
}

/** The boxes that show these functions. */
export function boxesOfFrames({ flame, boxes }: FlameLevels, frames: ReadonlySet<number>): ReadonlySet<number> {
  const found = new Set<number>();
  for (let node = 0; node < flame.nodes.parent.length; node++) {
    if (frames.has(at(flame.nodes.frame, node))) found.add(at(boxes.boxOf, node));
  }
  return found;
}
