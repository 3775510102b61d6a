/** The critical path, ordered so that the pieces of a span, or of a folded subtree, are one slice. */

import type { Tree } from '../api/types.gen';
import type { SpanIndex } from '../base/brand';
import { at, lowerBound } from '../base/column';

export interface CriticalPath {
  /** Number of pieces. */
  readonly count: number;
  /** Span, start and end of each piece, ordered by span and then by time. */
  readonly span: Uint32Array;
  readonly start: Float64Array;
  readonly end: Float64Array;
  /** For each piece, the next span of the path, and -1 at its end. */
  readonly next: Int32Array;
}

/** Orders the pieces of the path by span. */
export function criticalPathOf(tree: Tree): CriticalPath {
  const source = tree.criticalPath;
  const count = source.span.length;
  const order = Uint32Array.from({ length: count }, (_, piece) => piece);
  // Pieces come in time order, so a stable sort by span keeps that order within each span.
  order.sort((a, b) => at(source.span, a) - at(source.span, b) || a - b);
  const path = {
    count,
    span: new Uint32Array(count),
    start: new Float64Array(count),
    end: new Float64Array(count),
    next: new Int32Array(count),
  };
  for (let slot = 0; slot < count; slot++) {
    const piece = at(order, slot);
    path.span[slot] = at(source.span, piece);
    path.start[slot] = at(source.startNanos, piece);
    path.end[slot] = at(source.endNanos, piece);
    path.next[slot] = piece + 1 < count ? at(source.span, piece + 1) : -1;
  }
  return path;
}

/** The pieces of a span, with its descendants if it is folded: first index, and index after the last. */
export function piecesOf(path: CriticalPath, tree: Tree, span: SpanIndex, withDescendants: boolean): readonly [number, number] {
  const last = withDescendants ? span + at(tree.spans.subtree, span) : span;
  const from = lowerBound(path.span, span);
  return [from, lowerBound(path.span, last + 1, from)];
}
