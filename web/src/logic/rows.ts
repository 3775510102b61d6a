/** The spans in the list of rows: a pre-order walk that skips folded spans. */

import { SPAN_FLAG } from '../api/checks';
import type { Tree } from '../api/types.gen';
import type { RowIndex, SpanIndex } from '../base/brand';
import { at, lowerBound, upperBound } from '../base/column';

/** The folded spans: all or none, with exceptions. */
export interface Fold {
  readonly all: boolean;
  readonly except: ReadonlySet<number>;
}

export const NOTHING_FOLDED: Fold = { all: false, except: new Set() };
export const ALL_FOLDED: Fold = { all: true, except: new Set() };

/** Whether the span hides its descendants. */
export function isFolded(fold: Fold, span: SpanIndex): boolean {
  return fold.all !== fold.except.has(span);
}

/** The fold with the span toggled. */
export function toggled(fold: Fold, span: SpanIndex): Fold {
  const except = new Set(fold.except);
  if (!except.delete(span)) except.add(span);
  return { all: fold.all, except };
}

/** The fold in which no ancestor hides the span; the same object if none did. */
export function revealed(fold: Fold, tree: Tree, span: SpanIndex): Fold {
  const except = new Set(fold.except);
  let changed = false;
  for (let above = at(tree.spans.parent, span); above >= 0; above = at(tree.spans.parent, above)) {
    if (!isFolded(fold, above as SpanIndex)) continue;
    if (!except.delete(above)) except.add(above);
    changed = true;
  }
  return changed ? { all: fold.all, except } : fold;
}

/** The spans of the rows, from top to bottom. They ascend, because rows are in pre-order. */
export function visibleSpans(tree: Tree, fold: Fold): Uint32Array {
  const rows = new Uint32Array(tree.spans.parent.length);
  let length = 0;
  for (let span = 0; span < tree.spans.parent.length; ) {
    rows[length++] = span;
    const below = at(tree.spans.subtree, span);
    span += below > 0 && isFolded(fold, span as SpanIndex) ? below + 1 : 1;
  }
  return rows.slice(0, length);
}

/** The number of rows that are processes. */
export function countProcesses(tree: Tree): number {
  let count = 0;
  for (const flags of tree.spans.flags) if ((flags & SPAN_FLAG.process) !== 0) count += 1;
  return count;
}

/** The row of a span, or of the folded ancestor that hides it. */
export function rowOf(rows: Uint32Array, span: SpanIndex): RowIndex {
  return Math.max(0, upperBound(rows, span) - 1) as RowIndex;
}

/** The number of `marked` spans (ascending) hidden below this folded span. */
export function markedBelow(tree: Tree, marked: Uint32Array, span: SpanIndex): number {
  const end = span + at(tree.spans.subtree, span) + 1;
  return lowerBound(marked, end) - upperBound(marked, span);
}

/**
 * The pole after or before this one, by rank, wrapping at the ends; without one, the first or the last. Only poles with spans count; `null` if there
 * are none.
 */
export function neighbouringPole<P extends { readonly handle: string; readonly spans: readonly string[] }>(
  poles: readonly P[],
  from: string | null,
  direction: 1 | -1,
): P | null {
  const listed = poles.filter(({ spans }) => spans.length > 0);
  const place = listed.findIndex(({ handle }) => handle === from);
  const next = place < 0 ? (direction > 0 ? 0 : -1) : place + direction;
  return listed.at(next % listed.length) ?? null;
}

/** Whether a span is among the `marked` ones (ascending). */
export function isMarked(marked: Uint32Array, span: SpanIndex): boolean {
  return marked[lowerBound(marked, span)] === span;
}

/** The mark after or before a span, wrapping at the ends; `null` without marks. */
export function neighbouringMark(marked: Uint32Array, from: SpanIndex | null, direction: 1 | -1): SpanIndex | null {
  if (marked.length === 0) return null;
  const slot = direction > 0 ? upperBound(marked, from ?? -1) : lowerBound(marked, from ?? 0) - 1;
  return at(marked, (slot + marked.length) % marked.length) as SpanIndex;
}
