/** What the shape of a document does not say: indices point to rows, rows stand in pre-order. Everything behind this file may trust that. */
import { at, type Column } from '../base/column';
import { DecodeError } from './cursor';
import { decodeFlame as flameOf, decodeTree as treeOf } from './decode.gen';
import type { Flame, Tree } from './types.gen';

/** Bits of the `flags` column of a tree. */
export const SPAN_FLAG = { error: 1, parentInferred: 2, process: 4, orphan: 8, clamped: 16, cycle: 32 } as const;

function within(path: string, column: Column, low: number, high: number): void {
  for (let row = 0; row < column.length; row++) {
    const value = at(column, row);
    if (value < low || value >= high) throw new DecodeError(`${path}[${row}]`, `${value} is out of range`);
  }
}

/** A pre-order with depths: every parent precedes its child, is one level above, and is the nearest such row. */
function checkPreOrder(path: string, parent: Int32Array, depth: Uint32Array): void {
  // The open ancestors of the present row, by level.
  const open: number[] = [];
  for (let row = 0; row < parent.length; row++) {
    const level = at(depth, row);
    const expected = level === 0 ? -1 : open[level - 1];
    if (level > open.length || at(parent, row) !== expected) {
      throw new DecodeError(`${path}.parent[${row}]`, `${at(parent, row)} does not fit a pre-order at depth ${level}`);
    }
    open.length = level;
    open.push(row);
  }
}

function checkSubtrees(path: string, parent: Int32Array, subtree: Uint32Array): void {
  const counted = new Uint32Array(parent.length);
  for (let row = parent.length - 1; row >= 0; row--) {
    if (at(counted, row) !== at(subtree, row)) {
      throw new DecodeError(`${path}.subtree[${row}]`, `says ${at(subtree, row)} descendants, the rows hold ${at(counted, row)}`);
    }
    const above = at(parent, row);
    if (above >= 0) counted[above] = at(counted, above) + at(counted, row) + 1;
  }
}

/** One root, and the boxes of each level from left to right: the drawing searches levels by halves. */
function checkBoxes(path: string, depth: Uint32Array, offset: Float64Array): void {
  const lastOffset: number[] = [];
  for (let node = 0; node < depth.length; node++) {
    const level = at(depth, node);
    if (level === 0 && node > 0) throw new DecodeError(`${path}.depth[${node}]`, 'is a second root');
    if (at(offset, node) < (lastOffset[level] ?? 0)) {
      throw new DecodeError(`${path}.offset_nanos[${node}]`, 'lies left of the box before it');
    }
    lastOffset[level] = at(offset, node);
  }
}

/** `/api/recordings/{rec}/tree`. */
export function decodeTree(document: unknown): Tree {
  const tree = treeOf(document);
  const { spans, criticalPath } = tree;
  within('tree.spans.duration_nanos', spans.durationNanos, 0, Infinity);
  within('tree.spans.on_path_nanos', spans.onPathNanos, 0, Infinity);
  within('tree.spans.service', spans.service, 0, tree.services.length);
  within('tree.spans.name', spans.name, 0, tree.names.length);
  within('tree.critical_path.span', criticalPath.span, 0, spans.parent.length);
  checkPreOrder('tree.spans', spans.parent, spans.depth);
  checkSubtrees('tree.spans', spans.parent, spans.subtree);
  return tree;
}

/** `/api/recordings/{rec}/flame`. */
export function decodeFlame(document: unknown): Flame {
  const flame = flameOf(document);
  const { nodes } = flame;
  within('flame.nodes.frame', nodes.frame, -1, flame.frames.length);
  within('flame.nodes.wait', nodes.wait, -1, flame.waits.length);
  for (const [key, column] of Object.entries({
    offset_nanos: nodes.offsetNanos,
    total_nanos: nodes.totalNanos,
    self_nanos: nodes.selfNanos,
    waited_nanos: nodes.waitedNanos,
  })) {
    within(`flame.nodes.${key}`, column, 0, Infinity);
  }
  checkPreOrder('flame.nodes', nodes.parent, nodes.depth);
  checkBoxes('flame.nodes', nodes.depth, nodes.offsetNanos);
  return flame;
}
